//! What all LSM trees of a database share: block cache, buffers for direct reads, open files.

#![forbid(unsafe_code)]

use crate::y::lsm::cache::{block_cache::BlockCache, buffers::ReadBuffers};
use lsm_tree::{Cache, DescriptorTable};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Open table files kept, at most; a process has 1,024 descriptors by default.
const MAX_OPEN_TABLES: usize = 256;
/// Least block cache, in bytes, that a tree works with.
const MIN_CACHE_BYTES: usize = 256 << 10;
/// Descriptor tables and the engine's own cache, which nothing is read through.
const FIXED_BYTES: usize = 256 << 10;
/// Part of the memory that buffers for direct reads may take.
const BUFFERS_DIVISOR: usize = 8;
/// Part of the cache up to which filters are worth loading for every read.
const FILTER_DIVISOR: usize = 2;

/// Shared by all trees of a database: see the module header.
pub(crate) struct LsmShared {
    pub(crate) blocks: BlockCache,
    pub(crate) descriptors: DescriptorTable,
    /// Blocks are read past the system's page cache...
    pub(crate) direct_reads: bool,
    /// ...several at once with these.
    pub(crate) buffers: ReadBuffers,
    /// For the engine, which insists on having them.
    pub(crate) engine_cache: Arc<Cache>,
    pub(crate) engine_descriptors: Arc<DescriptorTable>,
    /// Filters of all trees, in bytes.
    filter_bytes: AtomicUsize,
}

impl LsmShared {
    /// Caches of together `memory_bytes` bytes (a few hundred KiB at least); see
    /// [`LsmShared::memory_bytes`].
    pub(crate) fn new(memory_bytes: usize, direct_reads: bool) -> Self {
        let shared = Self {
            blocks: BlockCache::new(0),
            descriptors: DescriptorTable::new(MAX_OPEN_TABLES),
            direct_reads,
            buffers: ReadBuffers::default(),
            engine_cache: Arc::new(Cache::with_capacity_bytes(0)),
            engine_descriptors: Arc::new(DescriptorTable::new(1)),
            filter_bytes: AtomicUsize::new(0),
        };
        shared.set_memory(memory_bytes);
        shared
    }

    /// Upper bound in bytes of what this holds in memory, whatever the trees do (I7).
    pub(crate) fn memory_bytes(&self) -> usize {
        self.blocks.bytes() + self.buffers.bytes() + FIXED_BYTES
    }

    /// Changes the size, at any time; what was cached is forgotten.
    pub(crate) fn set_memory(&self, memory_bytes: usize) {
        let bytes = memory_bytes.saturating_sub(FIXED_BYTES);
        let for_buffers = if self.direct_reads {
            bytes / BUFFERS_DIVISOR
        } else {
            0
        };
        self.buffers.set_memory(for_buffers);
        let for_blocks = bytes.saturating_sub(self.buffers.bytes());
        self.blocks.resize(for_blocks.max(MIN_CACHE_BYTES));
    }

    /// A tree's filters went from `before` to `now` bytes.
    pub(crate) fn account_filters(&self, before: usize, now: usize) {
        // Wrapping addition of the difference; the sum is never negative.
        self.filter_bytes
            .fetch_add(now.wrapping_sub(before), Relaxed);
    }

    /// Whether filters that are the first `bytes` of a tree's `of_bytes` bytes are worth loading
    /// for every read.
    ///
    /// The newest runs come first: they are small, and asked for nearly every key in vain. A tree
    /// has its share of the cache, by the size of its filters. What does not fit would be read from
    /// the device for each key, and a filter costs as much as the data block it may save.
    pub(crate) fn filters_fit(&self, bytes: usize, of_bytes: usize) -> bool {
        let all = self.filter_bytes.load(Relaxed).max(of_bytes);
        let room = self.blocks.bytes() / FILTER_DIVISOR;
        all <= room || bytes as u128 * all as u128 <= room as u128 * of_bytes as u128
    }
}
