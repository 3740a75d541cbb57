//! The Index Y of one tree.
//!
//! A run goes to the backing, which drains the source, waits for the log and publishes; then to
//! the pool. So the backing has at any time what was acknowledged, and what the contract says of
//! files and crashes is what the backing does. A pool that cannot follow is given up (D1 of
//! `pooled.rs`), and the run is acknowledged all the same. A removal of ranges goes the
//! same way.

use crate::{entries::Entries, pooled::Pooled, pools::Pools, slice::Slice, staged::Staged};
use indexy::{
    Error, Result, Value,
    index_y::{
        Capabilities, Compression, IndexY, KeyRange, Maintained, Order, RangeRemoval, RunSource,
        YIter,
    },
};
use indexy_dex::{ByteTree, MAX_VALUE_BYTES, remote::Counts};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

/// Addresses of replaced values, and what threads hold, rounded up.
const FIXED_BYTES: usize = 256 << 10;

/// The disk index of one tree: a tree in a pool, and its backing.
pub struct DexY<P: Pools, const N: usize = 128> {
    // Dropped before the backing: it reads nothing of it.
    pooled: Pooled<P, N>,
    backing: Arc<dyn IndexY>,
    dir: PathBuf,
    /// Runs begun and runs ended.
    runs: [AtomicU64; 2],
    _slice: Slice,
}

impl<P: Pools, const N: usize> DexY<P, N> {
    pub(crate) fn new(
        backing: Arc<dyn IndexY>,
        pooled: Pooled<P, N>,
        slice: Slice,
        dir: &Path,
    ) -> Self {
        Self {
            pooled,
            backing,
            dir: dir.to_path_buf(),
            runs: Default::default(),
            _slice: slice,
        }
    }

    /// The tree in the pool; `None`: it was given up, and reads go to the disk.
    pub fn pooled(&self) -> Option<&ByteTree<P::Memory, N>> {
        self.pooled.tree()
    }

    /// Verbs and bytes so far; `None`: the pool was given up.
    pub fn counts(&self) -> Option<Counts> {
        self.pooled().map(ByteTree::counts)
    }

    fn runs(&self) -> [u64; 2] {
        [self.runs[0].load(SeqCst), self.runs[1].load(SeqCst)]
    }
}

impl<P: Pools, const N: usize> IndexY for DexY<P, N> {
    fn capabilities(&self) -> Capabilities {
        let backing = self.backing.capabilities();
        Capabilities {
            max_key_bytes: backing.max_key_bytes.min(N),
            max_value_bytes: backing.max_value_bytes.min(MAX_VALUE_BYTES),
            ..backing
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        match self.pooled.get(key) {
            Some(found) => Ok(found),
            None => self.backing.get(key),
        }
    }

    fn range(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<YIter<'_>> {
        if to.is_some_and(|to| to <= from) {
            return Ok(Box::new(std::iter::empty()));
        }
        let range = (from, to);
        Ok(Box::new(Entries::new(
            &self.pooled,
            &*self.backing,
            range,
            order,
        )))
    }

    fn write_run(&self, source: &mut dyn RunSource) -> Result<()> {
        let limit = self.capabilities().max_key_bytes;
        let keeps = self.pooled.tree().is_some();
        let mut staged = Staged::new(source, limit, &self.dir, keeps);
        self.runs[0].fetch_add(1, SeqCst);
        let written = self.backing.write_run(&mut staged);
        if written.is_ok() {
            // The backing has the run: a pool that does not get it is given up.
            let applied = match staged.into_kept() {
                Some(Ok(kept)) => kept.each(|key, value| self.pooled.apply(key, value)),
                Some(Err(error)) => Err(std::io::Error::other(error)),
                None => Ok(()),
            };
            if let Err(error) = applied {
                self.pooled.cannot_follow(error);
            }
        }
        self.runs[1].fetch_add(1, SeqCst);
        written
    }

    fn removes_ranges(&self) -> bool {
        self.backing.removes_ranges()
    }

    fn remove_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<()> {
        self.begin_removal(&[(from, to)])?.publish()
    }

    fn begin_removal<'y>(&'y self, ranges: &[KeyRange<'_>]) -> Result<Box<dyn RangeRemoval + 'y>> {
        let own = |(from, to): &KeyRange<'_>| (from.to_vec(), to.map(<[u8]>::to_vec));
        Ok(Box::new(Removal {
            backing: self.backing.begin_removal(ranges)?,
            ranges: ranges.iter().map(own).collect(),
            pooled: &self.pooled,
            runs: &self.runs,
        }))
    }

    fn set_compression(&self, compression: Compression) -> Result<()> {
        self.backing.set_compression(compression)
    }

    fn make_durable(&self) -> Result<()> {
        self.backing.make_durable()
    }

    fn maintain(&self) -> Result<Maintained> {
        self.backing.maintain()
    }

    fn compact(&self, from: &[u8], to: Option<&[u8]>) -> Result<Maintained> {
        self.backing.compact(from, to)
    }

    fn dead_bytes(&self) -> u64 {
        self.backing.dead_bytes()
    }

    fn interrupt(&self) {
        self.backing.interrupt();
    }

    fn congested(&self) -> bool {
        self.backing.congested()
    }

    fn settled(&self) -> bool {
        self.backing.settled()
    }

    fn is_empty(&self) -> Result<bool> {
        self.backing.is_empty()
    }

    fn approximate_len(&self) -> u64 {
        self.backing.approximate_len()
    }

    fn memory_bytes(&self) -> usize {
        self.backing.memory_bytes().saturating_add(FIXED_BYTES)
    }

    fn disk_bytes(&self) -> u64 {
        self.backing.disk_bytes()
    }

    fn run_count(&self) -> usize {
        self.backing.run_count()
    }

    /// The backing's check, and that the pool has as many entries, unless runs came meanwhile.
    fn verify(&self) -> Result<u64> {
        let before = self.runs();
        let entries = self.backing.verify()?;
        let Some(pooled) = self.pooled.count() else {
            return Ok(entries);
        };
        let pooled = pooled?;
        // No run was under way, and none began.
        let is_still = before[0] == before[1] && before == self.runs();
        if is_still && pooled != entries {
            let what = format!("the pool has {pooled} entries, the disk {entries}");
            return Err(Error::corrupt(&self.dir, 0, what));
        }
        Ok(entries)
    }

    fn damage(&self, found: &mut dyn FnMut(Error)) {
        self.backing.damage(found);
    }

    fn release_files(&self) -> bool {
        self.backing.release_files()
    }

    fn copies_beside_runs(&self) -> bool {
        self.backing.copies_beside_runs()
    }

    fn copy_to(&self, dest: &Path) -> Result<()> {
        self.backing.copy_to(dest)
    }
}

/// A removal of ranges: by the backing, then in the pool.
struct Removal<'y, P: Pools, const N: usize> {
    backing: Box<dyn RangeRemoval + 'y>,
    ranges: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pooled: &'y Pooled<P, N>,
    runs: &'y [AtomicU64; 2],
}

impl<P: Pools, const N: usize> RangeRemoval for Removal<'_, P, N> {
    fn publish(self: Box<Self>) -> Result<()> {
        self.runs[0].fetch_add(1, SeqCst);
        let removed = self.backing.publish();
        if removed.is_ok() {
            for (from, to) in &self.ranges {
                self.pooled.remove_range(from, to.as_deref());
            }
        }
        self.runs[1].fetch_add(1, SeqCst);
        removed
    }
}

impl<P: Pools, const N: usize> std::fmt::Debug for DexY<P, N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DexY")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}
