//! Counting live entries without building them.
//!
//! Keeps: I1 (where Y has a say, nothing is counted).
//! Threads: any; no latch is taken. Each leaf is counted as it was at one moment.

#![forbid(unsafe_code)]

use super::step::Step;
use crate::x::{
    bounds::first,
    leaf::{Bit, LeafBuffer, LeafSeen, mask},
    tree::{Descend, Spot, Tree},
};

impl<S: Descend> Tree<S> {
    /// See [`IndexX::count`](crate::x::IndexX::count).
    pub(super) fn count_live(&self, from: &[u8], to: Option<&[u8]>) -> (usize, Option<Vec<u8>>) {
        let mut live = 0;
        let mut at = first(from, to);
        while let Some(key) = at {
            let (bounds, counted) = self.step(&key, |step| match step.spot()? {
                Spot::Leaf(leaf) => count_leaf(step, leaf, from, to),
                Spot::Empty(mount) => Some(mount.is_none().then_some(0)),
            });
            match counted {
                Some(more) => live += more,
                None => return (live, Some(key)),
            }
            at = bounds.next(to);
        }
        (live, None)
    }
}

/// The live entries of `leaf` in `from..to`; `Some(None)` when it is mounted. `None`: it changed.
fn count_leaf<S: Descend>(
    step: &Step<'_, '_, S>,
    leaf: LeafSeen<'_>,
    from: &[u8],
    to: Option<&[u8]>,
) -> Option<Option<usize>> {
    let live = |within: u64| (within & !leaf.leaf().bits(Bit::Tombstone)).count_ones() as usize;
    let counted = if leaf.leaf().mount().is_some() {
        None
    } else if step.bounds.within(from, to) {
        Some(live(mask(0..leaf.leaf().len())))
    } else {
        let mut buffer = LeafBuffer::new();
        Some(live(mask(step.entries(leaf.copy(&mut buffer)?, to))))
    };
    leaf.unchanged().then_some(counted)
}
