//! The part of the budget that filters of all trees may take.
//!
//! Keeps I7: bytes are taken before they are allocated, and given back when they are freed.
//! Threads: any.

use crate::mem::budget::{Budget, Holder};
use std::sync::Arc;

/// Filters take this part of the budget at most.
const BUDGET_DIVISOR: usize = 8;

/// See the module header.
#[derive(Debug, Clone)]
pub(crate) struct FilterRoom(Arc<Budget>);

/// Bytes that were taken; dropped, they are given back.
#[derive(Debug)]
pub(in crate::framework) struct Reserved {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Reserved {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.give(Holder::Filters, self.bytes);
    }
}

impl FilterRoom {
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        Self(budget)
    }

    /// What filters may take together, in bytes.
    pub(crate) fn limit(&self) -> usize {
        self.0.limit() / BUDGET_DIVISOR
    }

    /// What they take now.
    pub(crate) fn bytes(&self) -> usize {
        self.0.held(Holder::Filters)
    }

    /// What they may take more.
    pub(crate) fn left(&self) -> usize {
        self.limit().saturating_sub(self.bytes())
    }

    /// They take more than they may: the budget has become smaller.
    pub(in crate::framework) fn is_exceeded(&self) -> bool {
        self.bytes() > self.limit()
    }

    /// Takes `bytes`, unless there is no room for them, or memory is short.
    pub(in crate::framework) fn reserve(&self, bytes: usize) -> Option<Reserved> {
        // Before the look: of two that reserve at once, neither overlooks the other.
        self.0.take(Holder::Filters, bytes);
        let reserved = Reserved {
            budget: Arc::clone(&self.0),
            bytes,
        };
        (!self.is_exceeded() && !self.0.is_full()).then_some(reserved)
    }
}
