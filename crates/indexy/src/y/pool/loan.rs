//! Memory that a tree's filters borrow from Index X, and what they would do with it.
//!
//! A tree says what all of its filters take and how often an absent key is looked for; who divides
//! the memory (`db/handle/lending.rs`) says how much of it is lent. The trees of a pool share what
//! filters have there without a loan, by what they take.
//!
//! Threads: any. Readers load one word, and count one key in some in another cache line; all
//! figures are estimates, and what is stale places a page less or more.

#![forbid(unsafe_code)]

use crossbeam_utils::CachePadded;
use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
};

/// What the trees of a pool have in common.
#[derive(Debug, Default)]
pub(crate) struct Borrowers {
    /// How many they are.
    count: AtomicUsize,
    /// Bytes of all of their filters.
    all: AtomicUsize,
    /// The most that is lent to them together.
    offered: AtomicUsize,
}

impl Borrowers {
    /// Up to `bytes` are lent, if absent keys are asked for enough.
    pub(crate) fn offer(&self, bytes: usize) {
        self.offered.store(bytes, Relaxed);
    }
}

/// See the module header.
#[derive(Debug)]
pub(crate) struct FilterLoan {
    together: Arc<Borrowers>,
    all: AtomicUsize,
    usual: AtomicUsize,
    lent: AtomicUsize,
    absent: CachePadded<AtomicU64>,
}

impl FilterLoan {
    pub(crate) fn new(together: &Arc<Borrowers>) -> Self {
        together.count.fetch_add(1, Relaxed);
        Self {
            together: Arc::clone(together),
            all: AtomicUsize::new(0),
            usual: AtomicUsize::new(0),
            lent: AtomicUsize::new(0),
            absent: CachePadded::default(),
        }
    }

    #[cfg(test)]
    pub(crate) fn together(&self) -> &Borrowers {
        &self.together
    }

    /// The filters of the tree take `all` bytes; those of all trees have `usual` bytes without a
    /// loan. One thread at a time.
    pub(crate) fn need(&self, all: usize, usual: usize) {
        self.usual.store(usual, Relaxed);
        let before = self.all.swap(all, Relaxed);
        self.together.all.fetch_add(all, Relaxed);
        self.together.all.fetch_sub(before, Relaxed);
    }

    /// Bytes of all filters of the tree.
    pub(crate) fn all(&self) -> usize {
        self.all.load(Relaxed)
    }

    /// Bytes of those that have no place without a loan.
    pub(crate) fn needed(&self) -> usize {
        let (all, usual) = (self.all(), self.usual.load(Relaxed));
        let together = self.together.all.load(Relaxed).max(all).max(1);
        let has = usual as f64 * (all as f64 / together as f64);
        all.saturating_sub(has as usize)
    }

    /// What the tree may reckon with: its part of what is lent at most, by what it takes, and at
    /// least as much as any.
    pub(crate) fn offered(&self) -> usize {
        let (count, all) = (&self.together.count, &self.together.all);
        let by_bytes = self.all() as f64 / all.load(Relaxed).max(1) as f64;
        let part = by_bytes.max(1.0 / count.load(Relaxed).max(1) as f64);
        (self.together.offered.load(Relaxed) as f64 * part.min(1.0)) as usize
    }

    /// About `keys` were looked for and are not there.
    pub(crate) fn note_absent(&self, keys: u64) {
        self.absent.fetch_add(keys, Relaxed);
    }

    /// How many were since the last [`take_absent`](Self::take_absent).
    pub(crate) fn absent(&self) -> u64 {
        self.absent.load(Relaxed)
    }

    pub(crate) fn take_absent(&self) -> u64 {
        self.absent.swap(0, Relaxed)
    }

    /// From now on `bytes` are lent.
    pub(crate) fn lend(&self, bytes: usize) {
        self.lent.store(bytes, Relaxed);
    }

    #[inline]
    pub(crate) fn lent(&self) -> usize {
        self.lent.load(Relaxed)
    }
}

impl Drop for FilterLoan {
    fn drop(&mut self) {
        self.together.count.fetch_sub(1, Relaxed);
        self.together.all.fetch_sub(self.all(), Relaxed);
    }
}
