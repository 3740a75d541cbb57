//! What a program registers.

use crate::{pools::Pools, shared::DexShared};
use indexy::{
    Result,
    index_y::{IndexYFactory, IndexYShared, LsmFactory},
};
use indexy_dex::Options;
use std::sync::Arc;

/// Makes disk indexes in memory pools. `N`: the longest key, 16, 32, 64 or 128 bytes; the shorter,
/// the more entries a node has.
#[derive(Clone)]
pub struct DexFactory<P, const N: usize = 128> {
    pools: Arc<P>,
    backing: Arc<dyn IndexYFactory>,
    tune: fn(Options) -> Options,
}

impl<P: Pools, const N: usize> DexFactory<P, N> {
    /// Trees in `pools`, with IndeXY's LSM tree behind them.
    pub fn new(pools: P) -> Self {
        Self {
            pools: Arc::new(pools),
            backing: Arc::new(LsmFactory),
            tune: |options| options,
        }
    }

    /// Another disk index behind the pools.
    #[must_use]
    pub fn backing(mut self, backing: Arc<dyn IndexYFactory>) -> Self {
        self.backing = backing;
        self
    }

    /// Changes the options of the pool's trees. They admit no leaves to their caches when they are
    /// read, for hot keys are in the database's memory, and all that a run changes.
    #[must_use]
    pub fn tune(mut self, tune: fn(Options) -> Options) -> Self {
        self.tune = tune;
        self
    }

    /// What the trees of one database share, with `cache_bytes` for their caches.
    pub fn share_of(&self, cache_bytes: usize) -> Result<DexShared<P, N>> {
        DexShared::new(
            Arc::clone(&self.pools),
            &*self.backing,
            self.tune,
            cache_bytes,
        )
    }
}

impl<P: Pools, const N: usize> IndexYFactory for DexFactory<P, N> {
    fn share(&self, cache_bytes: usize) -> Result<Arc<dyn IndexYShared>> {
        Ok(Arc::new(self.share_of(cache_bytes)?))
    }

    fn work_bytes(&self) -> usize {
        self.backing
            .work_bytes()
            .saturating_add(crate::staged::MEMORY_BYTES)
    }
}

impl<P, const N: usize> std::fmt::Debug for DexFactory<P, N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DexFactory").finish_non_exhaustive()
    }
}
