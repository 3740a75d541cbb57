//! Memory that a tree's filters borrow from Index X, and what they would do with it.
//!
//! A tree says what all of its filters take and how often an absent key is looked for; who divides
//! the memory (`db/handle/lending.rs`) says how much of it is lent. A tree has its usual part of
//! the pool besides.
//!
//! Threads: any. Readers count one key in some, and load one word; all figures are estimates, and
//! what is stale places a page less or more.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// See the module header.
#[derive(Debug, Default)]
pub(crate) struct FilterLoan {
    all: AtomicUsize,
    needed: AtomicUsize,
    absent: AtomicU64,
    lent: AtomicUsize,
    offered: AtomicUsize,
}

impl FilterLoan {
    /// The filters of the tree take `all` bytes, `usual` of which have a place without a loan.
    pub(crate) fn need(&self, all: usize, usual: usize) {
        self.all.store(all, Relaxed);
        self.needed.store(all.saturating_sub(usual), Relaxed);
    }

    /// Bytes of all filters of the tree.
    pub(crate) fn all(&self) -> usize {
        self.all.load(Relaxed)
    }

    /// Bytes of those that have no place without a loan.
    pub(crate) fn needed(&self) -> usize {
        self.needed.load(Relaxed)
    }

    /// About `keys` were looked for and are not there.
    pub(crate) fn note_absent(&self, keys: u64) {
        self.absent.fetch_add(keys, Relaxed);
    }

    /// How many were since the last call.
    pub(crate) fn take_absent(&self) -> u64 {
        self.absent.swap(0, Relaxed)
    }

    /// Up to `bytes` are lent to the filters of all trees, if they are asked for enough.
    pub(crate) fn offer(&self, bytes: usize) {
        self.offered.store(bytes, Relaxed);
    }

    pub(crate) fn offered(&self) -> usize {
        self.offered.load(Relaxed)
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
