//! Stripe locks: a writer holds the stripe of its key from before it looks until it has applied.
//!
//! Keeps I8: writers of one key are serial, so log order is apply order for it, read-modify-write is atomic, and a
//! batch, which takes all its stripes in ascending order, is ordered with everything else.
//! A stripe may be held across one read of Y and while its holder waits for memory or for the log. Locks are taken in
//! the order stripe, room in memory, room in the log, transfer lock, leaf latch; what frees memory takes no stripe.

#![forbid(unsafe_code)]

use crossbeam_utils::CachePadded;
use parking_lot::{Mutex, MutexGuard};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The lock table of a database.
pub(crate) struct Stripes {
    locks: Box<[CachePadded<Mutex<()>>]>,
}

/// One stripe per so many bytes of budget, so that the table stays a small part of it.
const BUDGET_BYTES_PER_STRIPE: usize = 16 << 10;
const MIN_STRIPES: usize = 64;
const MAX_STRIPES: usize = 4096;

impl Stripes {
    pub(crate) fn new(budget_bytes: usize) -> Self {
        let n = (budget_bytes / BUDGET_BYTES_PER_STRIPE)
            .next_power_of_two()
            .clamp(MIN_STRIPES, MAX_STRIPES);
        Self {
            locks: (0..n).map(|_| CachePadded::default()).collect(),
        }
    }

    /// Number of the stripe of a key.
    #[inline]
    pub(crate) fn of(&self, tree: u32, key: &[u8]) -> usize {
        xxh3_64_with_seed(key, u64::from(tree)) as usize & (self.locks.len() - 1)
    }

    /// Locks the stripe of a key. Cost when free: one compare-and-swap on a line of its own.
    #[inline]
    pub(crate) fn lock(&self, tree: u32, key: &[u8]) -> MutexGuard<'_, ()> {
        self.locks[self.of(tree, key)].lock()
    }

    /// Locks several stripes; `numbers` ascend strictly, so that two batches cannot deadlock.
    pub(crate) fn lock_all(&self, numbers: &[usize]) -> Vec<MutexGuard<'_, ()>> {
        debug_assert!(numbers.windows(2).all(|w| w[0] < w[1]));
        numbers.iter().map(|&n| self.locks[n].lock()).collect()
    }

    /// Waits until every writer that held a stripe when this was called has let it go. What a writer
    /// checks under its stripe (closed, dropped) and was set before is seen by all later ones.
    pub(crate) fn barrier(&self) {
        for lock in &self.locks {
            drop(lock.lock());
        }
    }

    /// Memory of the table in bytes.
    pub(crate) fn bytes(&self) -> usize {
        std::mem::size_of_val(&*self.locks)
    }
}
