//! What all LSM trees of a database share: block cache, open files, reading threads.

#![forbid(unsafe_code)]

use super::read_pool::ReadPool;
use lsm_tree::{Cache, DescriptorTable};
use std::sync::Arc;

/// Open table files kept, at most; a process has 1,024 descriptors by default.
const MAX_OPEN_TABLES: usize = 256;
/// Least block cache, in bytes, that a tree works with.
const MIN_CACHE_BYTES: usize = 256 << 10;
/// What the cache's bookkeeping and the descriptor table take, in bytes.
const FIXED_BYTES: usize = 512 << 10;

/// Shared by all trees of a database: see the module header.
pub(crate) struct LsmShared {
    pub(super) cache: Arc<Cache>,
    pub(super) descriptors: Arc<DescriptorTable>,
    pub(super) pool: ReadPool,
    memory_bytes: usize,
}

impl LsmShared {
    /// Caches of together at most about `memory_bytes` bytes; see [`LsmShared::memory_bytes`] for what it comes to.
    pub(crate) fn new(memory_bytes: usize) -> Self {
        // A cached block costs its bytes, a header and the allocator's rounding: an eighth covers it.
        let cache_bytes = (memory_bytes.saturating_sub(FIXED_BYTES) / 9 * 8).max(MIN_CACHE_BYTES);
        Self {
            cache: Arc::new(Cache::with_capacity_bytes(cache_bytes as u64)),
            descriptors: Arc::new(DescriptorTable::new(MAX_OPEN_TABLES)),
            pool: ReadPool::new(),
            memory_bytes: cache_bytes / 8 * 9 + FIXED_BYTES,
        }
    }

    /// Upper bound in bytes of what this holds in memory, whatever the trees do (I7).
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }
}
