//! What all RocksDB trees of a database share: the block cache, and the settings made with it.

#![forbid(unsafe_code)]

use super::settings;
use rocksdb::{BlockBasedOptions, Cache, LruCacheOptions, Options};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Part of the memory granted that is the cache's capacity. RocksDB allocates each block by itself,
/// in the thread that reads it, and glibc gives every thread a heap (arena) of its own that keeps
/// what others free there: with 64 threads reading, a cache of 16 MiB has been seen to take 60 MiB.
/// See `docs/decisions/0003-rocksdb-as-index-y.md` and `memory_tests.rs`.
const CAPACITY_PERCENT: usize = 25;
/// Least capacity, in bytes, that a tree works with.
const MIN_CAPACITY_BYTES: usize = 64 << 10;

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
    /// A block cache within `memory_bytes` bytes. It holds data, index and filter blocks of all
    /// trees.
    ///
    /// Its limit is not strict: what a read needs right now is held even where there is no room, so
    /// that no read fails for memory.
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

    /// Upper bound in bytes of what this holds in memory between reads, whatever the trees do (I7):
    /// with one heap for all threads by far; with glibc's heaps for each, small caches may take up
    /// to 1.5 MiB a reading thread more.
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
