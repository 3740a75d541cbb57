//! How often keys were read lately, from sampled accesses: a sketch for all trees of a database.
//!
//! Source: the IndeXY paper finds hot keys offline, from a file of sampled accesses. Differs: the
//! samples are counted as they come, in a few bytes that age, and not written.
//!
//! There where a hot set is kept. Asked when that is saved, and by nobody else. I7: its bytes are
//! taken from the budget while it lives.
//! Threads: any, without a lock. Cost of a sample: a hash and a cache line.

#![forbid(unsafe_code)]

use super::misses::sketch::Sketch;
use crate::mem::budget::{Budget, Holder};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The sketch takes this part of the budget,
const BUDGET_DIVISOR: usize = 256;
/// and no more than so many bytes.
const MOST_BYTES: usize = 8 << 20;

/// See the module header.
pub(crate) struct Heat {
    budget: Arc<Budget>,
    sketch: Sketch,
}

impl Heat {
    pub(super) fn new(budget: Arc<Budget>) -> Self {
        let sketch = Sketch::new((budget.limit() / BUDGET_DIVISOR).min(MOST_BYTES));
        budget.take(Holder::Transfer, sketch.bytes());
        Self { budget, sketch }
    }

    /// Counts a sampled read of `key` of `tree`.
    pub(super) fn note(&self, tree: u32, key: &[u8]) {
        self.sketch.count(hash(tree, key));
    }

    /// How many of the reads of `key` lately were sampled: 15 at most.
    pub(super) fn of(&self, tree: u32, key: &[u8]) -> u8 {
        self.sketch.estimate(hash(tree, key))
    }
}

impl Drop for Heat {
    fn drop(&mut self) {
        self.budget.give(Holder::Transfer, self.sketch.bytes());
    }
}

fn hash(tree: u32, key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, tree.into())
}
