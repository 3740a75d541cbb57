//! What a database counts about itself.
//!
//! Counters of the hit path live in a block per thread that only its owner
//! writes (a load and a store, no read-modify-write, no shared line); readers add the blocks up.
//! Counters of misses and of the background are plain shared atomics.

#![forbid(unsafe_code)]

use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use thread_local::ThreadLocal;

/// Levels of the tree of regions that are told apart: 16 times as many regions each.
const RELEASE_LEVELS: usize = 4;

/// Counted by the thread that owns the block.
#[derive(Debug, Default)]
pub(crate) struct PerThread {
    pub hits: AtomicU64,
    pub absent_without_io: AtomicU64,
    pub denied: AtomicU64,
    pub writes: AtomicU64,
}

/// Adds one to a counter that only the calling thread writes.
#[inline]
fn bump(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

/// All counters of a database.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    threads: ThreadLocal<CachePadded<PerThread>>,
    pub misses: AtomicU64,
    pub y_reads: AtomicU64,
    /// Of those, by a locator, and with one that was stale.
    pub located: AtomicU64,
    pub stale_locators: AtomicU64,
    pub cleaned_keys: AtomicU64,
    pub cleaned_bytes: AtomicU64,
    pub runs: AtomicU64,
    /// Of the cleaned keys, by what asked for them.
    pub cleaned_by_check_back: AtomicU64,
    pub cleaned_by_age: AtomicU64,
    pub cleaned_for_log: AtomicU64,
    pub releases: AtomicU64,
    /// What releases chose, by its level in the tree of regions; the last one is for all above.
    pub released_by_level: [AtomicU64; RELEASE_LEVELS],
    pub spared_keys: AtomicU64,
    pub released_regions: AtomicU64,
    pub released_bytes: AtomicU64,
    pub released_keys: AtomicU64,
    pub stalls: AtomicU64,
    pub stall_micros: AtomicU64,
    pub loads_refused: AtomicU64,
    pub not_admitted: AtomicU64,
}

impl Counters {
    #[inline]
    fn mine(&self) -> &PerThread {
        match self.threads.get() {
            Some(mine) => mine,
            None => self.first_of_thread(),
        }
    }

    #[cold]
    fn first_of_thread(&self) -> &PerThread {
        self.threads.get_or_default()
    }

    #[inline]
    pub(crate) fn hit(&self) {
        bump(&self.mine().hits);
    }

    #[inline]
    pub(crate) fn absent(&self) {
        bump(&self.mine().absent_without_io);
    }

    #[inline]
    pub(crate) fn denied(&self) {
        bump(&self.mine().denied);
    }

    /// Counts a write; returns this thread's total.
    #[inline]
    pub(crate) fn write(&self) -> u64 {
        let writes = &self.mine().writes;
        bump(writes);
        writes.load(Relaxed)
    }

    fn sum(&self, of: impl Fn(&PerThread) -> &AtomicU64) -> u64 {
        self.threads.iter().map(|t| of(t).load(Relaxed)).sum()
    }

    pub(crate) fn hits(&self) -> u64 {
        self.sum(|t| &t.hits)
    }

    pub(crate) fn absent_without_io(&self) -> u64 {
        self.sum(|t| &t.absent_without_io)
    }

    pub(crate) fn denials(&self) -> u64 {
        self.sum(|t| &t.denied)
    }

    pub(crate) fn writes(&self) -> u64 {
        self.sum(|t| &t.writes)
    }
}

/// Adds to a shared counter.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Relaxed);
}

/// Reads a shared counter.
pub(crate) fn read(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed)
}
