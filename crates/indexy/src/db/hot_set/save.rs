//! Saving: a walk over what is in memory, the best first.
//!
//! Keys go by tiers, from sampled reads, into blocks of their own. In each tier regions of all
//! trees go by access density, and within each the keys in order: so reads lie side by side. Where
//! the file is full, the coldest regions are missing.
//!
//! Threads: one at a time. Nothing is latched; writers, release and drops of trees go on. Between
//! two keys nothing is held but references to trees.

#![forbid(unsafe_code)]

use super::{
    file::Writer,
    format::{LONGEST_KEY_BYTES, Totals},
};
use crate::{
    error::Result,
    framework::{
        host::Host,
        hot::{HotKey, HotRange},
        shared::Shared,
        tree::Joined,
    },
    mem::budget::{Budget, Holder},
    storage::Storage,
};
use std::{ops::ControlFlow, path::Path, sync::Arc};

/// The file takes this part of the budget at most.
const BUDGET_DIVISOR: u64 = 2;

/// Keys of a leaf that a walk holds at once.
const LEAF_KEYS: usize = 64;

/// Bytes of memory that are taken from the budget while this lives.
pub(super) struct Taken<'a> {
    budget: &'a Budget,
    bytes: usize,
}

impl<'a> Taken<'a> {
    pub(super) fn new(budget: &'a Budget, bytes: usize) -> Self {
        budget.take(Holder::Transfer, bytes);
        Self { budget, bytes }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.budget.give(Holder::Transfer, self.bytes);
    }
}

/// Memory that a save takes. Whoever keeps a hot set has taken it beforehand.
pub(super) const BYTES: usize = Writer::BYTES + LEAF_KEYS * LONGEST_KEY_BYTES;

/// Where a hot set goes, and whose it is.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub storage: &'a dyn Storage,
    pub dir: &'a Path,
    pub database_id: u128,
}

/// Writes what is in memory; `None`, with the file as it was, if it was told to stop.
pub(super) fn save(
    place: Place<'_>,
    shared: &Shared,
    host: &dyn Host,
    stopped: &dyn Fn() -> bool,
) -> Result<Option<Totals>> {
    let mut file = Writer::begin(place.storage, place.dir, place.database_id)?;
    let most_bytes = shared.budget.limit() as u64 / BUDGET_DIVISOR;
    for (tree, range) in best_first(host) {
        if stopped() {
            return Ok(None);
        }
        if file.bytes() >= most_bytes {
            break;
        }
        let mut written = Ok(());
        let mut push = |entry: HotKey<'_>| {
            let before = file.bytes();
            written = file.push(tree.id, &entry);
            let block_ended = file.bytes() > before;
            match written.is_err() || block_ended && (file.bytes() >= most_bytes || stopped()) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let _ = tree.hot_keys(&range, LONGEST_KEY_BYTES, &mut push);
        written?;
    }
    match stopped() {
        true => Ok(None),
        false => file.finish().map(Some),
    }
}

/// The regions of all trees, those with the highest density first.
fn best_first(host: &dyn Host) -> Vec<(Arc<Joined>, HotRange)> {
    let trees = host.trees();
    let of = |tree: &Arc<Joined>| {
        let ranges = tree.hot_ranges().into_iter();
        let tree = Arc::clone(tree);
        ranges.map(move |range| (Arc::clone(&tree), range))
    };
    let mut ranges: Vec<_> = trees.iter().flat_map(of).collect();
    // Stable: regions of one density stay side by side.
    ranges.sort_by(|(_, a), (_, b)| b.density.total_cmp(&a.density));
    ranges
}
