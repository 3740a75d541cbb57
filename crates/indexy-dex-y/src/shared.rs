//! What the trees of one database share: the memory for their caches.
//!
//! A pool's tree has a cache of fixed size, so a tree gets a slice of the share when it is opened:
//! nine tenths of what is left, and the others less. Where the nodes above the leaves need more, it
//! takes up to three times as much, and `memory_bytes` says so. The database takes it from its
//! other memory, in which a KiB of keys saves fewer reads than such a node. The backing's caches,
//! which reads need only without a pool, have a small part.

use crate::{
    pooled::{self, Pooled},
    pools::Pools,
    slice::{Slice, Slices},
    tree::DexY,
};
use indexy::{
    Result,
    index_y::{IndexY, IndexYFactory, IndexYShared},
};
use indexy_dex::Options;
use parking_lot::Mutex;
use std::{path::Path, sync::Arc};

/// The backing's part of the share.
const BACKING_DIVISOR: usize = 16;

/// The caches and the backing's share of one database.
pub struct DexShared<P, const N: usize> {
    pools: Arc<P>,
    backing: Arc<dyn IndexYShared>,
    tune: fn(Options) -> Options,
    slices: Arc<Mutex<Slices>>,
}

impl<P: Pools, const N: usize> DexShared<P, N> {
    pub(crate) fn new(
        pools: Arc<P>,
        backing: &dyn IndexYFactory,
        tune: fn(Options) -> Options,
        cache_bytes: usize,
    ) -> Result<Self> {
        let part = cache_bytes / BACKING_DIVISOR;
        let share = cache_bytes - part;
        Ok(Self {
            pools,
            backing: backing.share(part)?,
            tune,
            slices: Arc::new(Mutex::new(Slices { share, taken: 0 })),
        })
    }

    /// Opens the tree in `dir`, or creates it unless `read_only`; fills its pool.
    ///
    /// Cost: everything in the backing is read, and a node written for about 40 entries.
    pub fn open_tree(&self, dir: &Path, read_only: bool) -> Result<DexY<P, N>> {
        let backing = self.backing.open(dir, read_only)?;
        let mut slice = Slice::take(&self.slices);
        let options = |inner_nodes| {
            let pages = slice.pages_for(inner_nodes);
            let options = Options::new(pooled::OWNER, pages);
            // Runs ascend: a leaf is read and written once for all of its keys.
            (self.tune)(options.leaf_admission(0.0).write_admission(1.0))
        };
        let pooled = Pooled::fill(Arc::clone(&self.pools), dir, options, &*backing)?;
        Ok(DexY::new(backing, pooled, slice, dir))
    }
}

impl<P: Pools, const N: usize> IndexYShared for DexShared<P, N> {
    fn open(&self, dir: &Path, read_only: bool) -> Result<Arc<dyn IndexY>> {
        Ok(Arc::new(self.open_tree(dir, read_only)?))
    }

    fn memory_bytes(&self) -> usize {
        self.slices
            .lock()
            .taken
            .saturating_add(self.backing.memory_bytes())
    }

    /// For trees opened from now on: a cache cannot shrink. `memory_bytes` goes on saying what is
    /// held.
    fn set_memory(&self, cache_bytes: usize) {
        let part = cache_bytes / BACKING_DIVISOR;
        self.slices.lock().share = cache_bytes - part;
        self.backing.set_memory(part);
    }
}

impl<P, const N: usize> std::fmt::Debug for DexShared<P, N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DexShared").finish_non_exhaustive()
    }
}
