//! What all RocksDB trees of a database share: the block cache, and the settings made with it.

#![forbid(unsafe_code)]

use super::settings;
use rocksdb::{BlockBasedOptions, Cache, LruCacheOptions, Options};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Part of the memory granted that is the cache's capacity: blocks are single allocations, and what the allocator adds to
/// them (a few per cent each, freed ones kept by each thread's arena) is not charged by the cache.
const CAPACITY_PERCENT: usize = 75;
/// Least capacity, in bytes, that a tree works with.
const MIN_CAPACITY_BYTES: usize = 128 << 10;

/// Shared by all RocksDB trees of a database: see the module header.
pub(crate) struct RocksShared {
    cache: Cache,
    /// What the cache was told; it cannot be asked.
    capacity: AtomicUsize,
    table: BlockBasedOptions,
    /// For writing the tables of runs.
    pub(super) run: Options,
}

impl RocksShared {
    /// A block cache within `memory_bytes` bytes. It holds data, index and filter blocks of all trees.
    ///
    /// Its limit is not strict: what a read needs right now is held even where there is no room, so that no read fails for memory.
    pub(crate) fn new(memory_bytes: usize) -> Self {
        let capacity = capacity(memory_bytes);
        let mut options = LruCacheOptions::default();
        options.set_capacity(capacity);
        let cache = Cache::new_lru_cache_opts(&options);
        let table = settings::table(&cache);
        let run = settings::run(&table);
        Self {
            cache,
            capacity: AtomicUsize::new(capacity),
            table,
            run,
        }
    }

    /// Upper bound in bytes of what this holds in memory between reads, whatever the trees do (I7).
    pub(crate) fn memory_bytes(&self) -> usize {
        self.capacity.load(Relaxed) * 100 / CAPACITY_PERCENT
    }

    /// Changes the size, at any time. Cost: frees what is over.
    pub(crate) fn set_memory(&self, memory_bytes: usize) {
        let capacity = capacity(memory_bytes);
        self.capacity.store(capacity, Relaxed);
        // A handle: the cache is one for all of them.
        self.cache.clone().set_capacity(capacity);
    }

    /// Settings of one tree.
    pub(super) fn tree(&self) -> Options {
        settings::tree(&self.table)
    }

    /// What the cache holds, in bytes as it counts them.
    #[cfg(test)]
    pub(super) fn cached_bytes(&self) -> usize {
        self.cache.get_usage()
    }
}

fn capacity(memory_bytes: usize) -> usize {
    (memory_bytes / 100 * CAPACITY_PERCENT).max(MIN_CAPACITY_BYTES)
}
