//! Stripe locks: a writer holds the stripe of its key from before it looks until it has applied.
//!
//! Keeps I8: writers of one key are serial, so log order is apply order for it, read-modify-write
//! is atomic, and a batch, which takes all its stripes in ascending order, is ordered with
//! everything else. A stripe may be held across one read of Y and while its holder waits for memory
//! or for the log. Locks are taken in the order stripe, room in memory, run lock, room in the log,
//! leaf latch; what frees memory takes no stripe.

#![forbid(unsafe_code)]

use crossbeam_utils::CachePadded;
use parking_lot::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The lock table of a database.
pub(crate) struct Stripes {
    locks: Box<[CachePadded<Mutex<()>>]>,
}

/// Numbers of stripes that a barrier did not come past.
pub(crate) struct Unpassed(Vec<usize>);

impl Unpassed {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
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

    /// What says which stripe a key has.
    #[inline]
    pub(crate) fn hash(tree: u32, key: &[u8]) -> u64 {
        xxh3_64_with_seed(key, u64::from(tree))
    }

    /// Number of the stripe of a key with this hash.
    #[inline]
    fn number(&self, hash: u64) -> usize {
        hash as usize & (self.locks.len() - 1)
    }

    /// Locks the stripe of a key. Cost when free: one compare-and-swap on a line of its own.
    #[inline]
    pub(crate) fn lock(&self, tree: u32, key: &[u8]) -> MutexGuard<'_, ()> {
        self.locks[self.number(Self::hash(tree, key))].lock()
    }

    /// The hashes in the order in which stripes are taken, equal ones side by side.
    pub(crate) fn in_order(&self, hashes: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut hashes: Vec<u64> = hashes.collect();
        hashes.sort_unstable_by_key(|&hash| (self.number(hash), hash));
        hashes
    }

    /// Locks the stripes of several keys, each once; the hashes are [`Stripes::in_order`], so that
    /// two batches cannot deadlock.
    pub(crate) fn lock_all(&self, hashes: &[u64]) -> Vec<MutexGuard<'_, ()>> {
        debug_assert!(hashes.is_sorted_by_key(|&hash| self.number(hash)));
        let mut guards = Vec::with_capacity(hashes.len().min(self.locks.len()));
        let mut last = None;
        for number in hashes.iter().map(|&hash| self.number(hash)) {
            if last != Some(number) {
                guards.push(self.locks[number].lock());
                last = Some(number);
            }
        }
        guards
    }

    /// Locks every stripe: nobody writes any key meanwhile.
    pub(crate) fn lock_every(&self) -> Vec<MutexGuard<'_, ()>> {
        self.locks.iter().map(|lock| lock.lock()).collect()
    }

    /// Waits until every writer that held a stripe when this was called has let it go. What a
    /// writer checks under its stripe (closed, dropped) and was set before is seen by all later
    /// ones.
    pub(crate) fn barrier(&self) {
        for lock in &self.locks {
            drop(lock.lock());
        }
    }

    /// As [`Stripes::barrier`], for `limit` at most: a writer that waits for memory holds its
    /// stripe. Returns the stripes that were held all the time.
    pub(crate) fn barrier_for(&self, limit: Duration) -> Unpassed {
        let deadline = Instant::now() + limit;
        let held = |&number: &usize| self.locks[number].try_lock_until(deadline).is_none();
        Unpassed((0..self.locks.len()).filter(held).collect())
    }

    /// Takes those out of `unpassed` that nobody holds. Waits for nobody.
    pub(crate) fn pass(&self, unpassed: &mut Unpassed) {
        let held = |&number: &usize| self.locks[number].try_lock().is_none();
        unpassed.0.retain(held);
    }

    /// Memory of the table in bytes.
    pub(crate) fn bytes(&self) -> usize {
        std::mem::size_of_val(&*self.locks)
    }
}
