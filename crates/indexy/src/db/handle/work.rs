//! What background work is counted for in the budget.
//!
//! Keeps: I7. Threads: any.

#![forbid(unsafe_code)]

use crate::{
    mem::budget::{Budget, Holder},
    y::lsm::SCRATCH_WRITER_BYTES,
};
use parking_lot::Mutex;

/// What runs and compactions in flight take is counted up to this part of the budget.
const WORK_DIVISOR: usize = 32;
/// What a spill of images and a merge of their files hold,
const SPILL_BYTES: usize = 2 * SCRATCH_WRITER_BYTES;
/// counted up to this part of the budget.
const SPILL_DIVISOR: usize = 256;

/// What background work is counted for. Small budgets do not have as much as it takes: there the
/// rest is a fixed cost beside the budget (README, limits).
pub(crate) struct Work {
    /// What runs and compactions take.
    runs: usize,
    /// Bytes taken from the budget.
    counted: Mutex<usize>,
}

impl Work {
    /// Runs and compactions take so many bytes. Nothing is counted yet.
    pub(crate) fn new(runs: usize) -> Self {
        Self {
            runs,
            counted: Mutex::default(),
        }
    }

    /// Bytes that are to be counted in a budget of `limit` bytes.
    pub(super) fn of(&self, limit: usize) -> usize {
        SPILL_BYTES.min(limit / SPILL_DIVISOR) + self.runs.min(limit / WORK_DIVISOR)
    }

    /// Bytes that are counted now.
    pub(super) fn counted(&self) -> usize {
        *self.counted.lock()
    }

    /// Counts what the present limit of `budget` asks for. Cost: a lock.
    pub(super) fn follow(&self, budget: &Budget) {
        let mut counted = self.counted.lock();
        let now = self.of(budget.limit());
        budget.take(Holder::Transfer, now);
        budget.give(Holder::Transfer, *counted);
        *counted = now;
    }
}
