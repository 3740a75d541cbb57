//! Going through ranges in key order: one way down per range, from the end of the one before.
//!
//! Nothing is kept between two steps but a key, so that no guard and no latch spans a callback. Because
//! a range never changes as long as its leaf lives, the next one starts where this one ended.

#![forbid(unsafe_code)]

use super::{
    Art,
    leaf::stable::StableLeaf,
    parent::ParentSeen,
    pointer::{END, LAST, Symbol},
    search::{Place, Spot},
};
use crate::{
    key::prefix_end,
    mem::Guard,
    x::{
        bounds::{Bounds, Probe, entries_within},
        patience::Patience,
    },
};
use std::ops::Range;

/// Where the range ends that reaches to the symbol `last` of a node with this path; `None`: at the end of the key space.
pub(super) fn after(path: &[u8], last: Symbol) -> Option<Vec<u8>> {
    if last == LAST {
        return prefix_end(path);
    }
    let mut end = Vec::with_capacity(path.len() + 1);
    end.extend_from_slice(path);
    end.push(last as u8);
    Some(end)
}

impl Place<'_> {
    /// The bounds of the range that `probe` led to; `None` when the parent changed since.
    pub(super) fn bounds(&self, probe: Probe<'_>) -> Option<Bounds> {
        let mut start = Vec::new();
        if let Spot::Gap { node, matched, .. } = self.spot {
            let depth = self.node_start();
            probe.fill(depth, &mut start);
            let after_all = prefix_end(&start);
            let mut node_path = start.clone();
            node.node().push_prefix(&mut node_path);
            let mut given = Vec::new();
            probe.fill_if_there(depth + matched + 1, &mut given);
            return Some(
                if given.get(depth + matched) > node_path.get(depth + matched) {
                    let start = prefix_end(&node_path).unwrap_or_default();
                    Bounds {
                        start,
                        end: after_all,
                    }
                } else {
                    Bounds {
                        start,
                        end: Some(node_path),
                    }
                },
            );
        }
        let ParentSeen::Inner(parent) = self.parent else {
            return Some(Bounds { start, end: None });
        };
        let (first, last) = parent.range(self.symbol)?;
        start.reserve_exact(self.depth + 1);
        probe.fill(self.depth, &mut start);
        let end = after(&start, last);
        if first != END {
            start.push((first - 1) as u8);
        }
        Some(Bounds { start, end })
    }

    /// The key path of the gap's whole surroundings: what comes to its node.
    pub(super) fn gap_surroundings(&self, probe: Probe<'_>) -> Bounds {
        let mut start = Vec::new();
        probe.fill(self.node_start(), &mut start);
        let end = prefix_end(&start);
        Bounds { start, end }
    }
}

impl Art {
    /// Goes down to `key` and lets `act` look at or change what is there, again until it answers.
    /// Returns the bounds of the range, as they were, with the answer.
    pub(super) fn step<R>(
        &self,
        key: &[u8],
        mut act: impl FnMut(&Step<'_, '_>) -> Option<R>,
    ) -> (Bounds, R) {
        let guard = self.memory.enter();
        let probe = Probe::at(key);
        let mut patience = Patience::default();
        loop {
            let place = self.descend(&guard, probe);
            if let Some(bounds) = place.bounds(probe) {
                let step = Step {
                    guard: &guard,
                    place,
                    bounds,
                    key,
                };
                if let Some(answer) = act(&step) {
                    return (step.bounds, answer);
                }
            }
            patience.wait();
        }
    }
}

/// One range on a way through ranges.
pub(super) struct Step<'g, 'k> {
    pub guard: &'g Guard<'g>,
    pub place: Place<'g>,
    pub bounds: Bounds,
    /// The key that led here: what is below it was dealt with before.
    pub key: &'k [u8],
}

impl<'g> Step<'g, '_> {
    /// The indices of the entries of `leaf`, which is here, from the step's key up to `to`.
    pub(super) fn entries(&self, leaf: StableLeaf<'_>, to: Option<&[u8]>) -> Range<usize> {
        let find = |suffix: &[u8]| leaf.find(suffix).unwrap_or_else(|i| i);
        entries_within(
            &self.bounds,
            self.place.depth,
            leaf.len(),
            self.key,
            to,
            find,
        )
    }
}
