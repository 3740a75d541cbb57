//! What the arena has taken of the budget; given back when it is dropped.

#![forbid(unsafe_code)]

use crate::mem::budget::{Budget, Holder};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// What the arena has taken of the budget.
pub(super) struct Charge {
    budget: Arc<Budget>,
    bytes: AtomicUsize,
}

impl Charge {
    pub(super) fn new(budget: Arc<Budget>) -> Self {
        Self {
            budget,
            bytes: AtomicUsize::new(0),
        }
    }

    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Bytes charged.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    pub(super) fn take(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Relaxed);
        self.budget.take(Holder::Arena, bytes);
    }

    pub(super) fn give(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Relaxed);
        self.budget.give(Holder::Arena, bytes);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.give(Holder::Arena, *self.bytes.get_mut());
    }
}
