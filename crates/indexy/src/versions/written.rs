//! When keys of a tree were written last, as far as a table of hashes can tell.
//!
//! Most keys that a transaction reads, nobody has written since it began. The table says so by one
//! load, where the images would have to be searched.
//!
//! Each place has the largest `until` of the images of the keys that share it. It is raised before
//! the image is there, as the newest `until` of a generation is: who sees the write finds it so. It
//! never falls. It goes with the generations, when no open snapshot needs what it says.
//!
//! Threads: any.

#![forbid(unsafe_code)]

use super::{clock::Epoch, generation::raise};
use crate::mem::budget::{Budget, Holder};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::SeqCst},
};
use xxhash_rust::xxh3::xxh3_64;

/// A table takes this part of the budget, from the least to the most bytes: there is one for each
/// tree that has images, and there may be many trees.
const BUDGET_DIVISOR: usize = 16 << 10;
const LEAST_BYTES: usize = 512;
const MOST_BYTES: usize = 32 << 10;

/// See the module header.
pub(super) struct Written {
    budget: Arc<Budget>,
    /// A power of two of them.
    newest: Box<[AtomicU64]>,
}

impl Written {
    pub(super) fn new(budget: Arc<Budget>) -> Self {
        let part = budget.limit() / BUDGET_DIVISOR;
        let places = part.clamp(LEAST_BYTES, MOST_BYTES) / size_of::<AtomicU64>();
        let places = 1 << places.ilog2();
        budget.take(Holder::Transfer, places * size_of::<AtomicU64>());
        Self {
            budget,
            newest: (0..places).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    #[inline]
    fn place(&self, key: &[u8]) -> &AtomicU64 {
        &self.newest[xxh3_64(key) as usize & (self.newest.len() - 1)]
    }

    /// An image of `key` is about to be left.
    #[inline]
    pub(super) fn raise(&self, key: &[u8], until: Epoch) {
        raise(self.place(key), until);
    }

    /// The same of every key.
    pub(super) fn raise_all(&self, until: Epoch) {
        self.newest.iter().for_each(|newest| raise(newest, until));
    }

    /// No image of `key` was left that a snapshot at `epoch` needs. If false, there may be one.
    #[inline]
    pub(super) fn is_unchanged_since(&self, key: &[u8], epoch: Epoch) -> bool {
        self.place(key).load(SeqCst) <= epoch
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let bytes = size_of_val(&*self.newest);
        self.budget.give(Holder::Transfer, bytes);
    }
}
