//! The walk over leaf sizes.
//!
//! Goes down once per node, not per leaf: the leaves of one node are looked at in a row, a few fetched at a time.
//!
//! Threads: any; no latch is taken. The guard is entered for one node at a time.

#![forbid(unsafe_code)]

use super::{
    Art,
    leaf::Measured,
    parent::ParentSeen,
    pointer::{Child, END, LAST, Symbol},
    search::Spot,
    walk::{Step, after},
};
use crate::x::{LeafInfo, StopWalk, bounds::first};
use std::ops::ControlFlow;

impl Art {
    /// See [`IndexX::leaves`](crate::x::IndexX::leaves).
    pub(super) fn visit_leaves(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        visit: &mut dyn FnMut(LeafInfo<'_>) -> ControlFlow<StopWalk>,
    ) -> ControlFlow<StopWalk> {
        let mut at = first(from, to);
        let mut siblings = Vec::new();
        let mut start = Vec::new();
        while let Some(key) = at {
            let (bounds, depth) = self.step(&key, |step| step.measure_siblings(&mut siblings));
            start.clone_from(&bounds.start);
            let mut end = bounds.end;
            for (i, sibling) in siblings.iter().enumerate() {
                if i > 0 {
                    start.truncate(depth);
                    start.push((sibling.first - 1) as u8);
                    end = after(&start[..depth], sibling.last);
                    if to.is_some_and(|to| &start[..] >= to) {
                        return ControlFlow::Continue(());
                    }
                }
                let seen = sibling.seen;
                if seen.bytes > 0 {
                    visit(LeafInfo {
                        start: &start,
                        keys: seen.keys,
                        dirty: seen.dirty,
                        bytes: seen.bytes,
                    })?;
                }
            }
            at = end.filter(|end| to.is_none_or(|to| &end[..] < to));
        }
        ControlFlow::Continue(())
    }
}

/// A range of a node: the symbols that it covers, and what is there.
struct Sibling {
    first: Symbol,
    last: Symbol,
    seen: Measured,
}

/// So many leaves are fetched at once: a trip to memory for each would be most of the cost.
const FETCHED_AT_ONCE: usize = 8;

impl Step<'_, '_> {
    /// Puts what is here, and in the ranges after it in the same node up to one with a node of its own, into `out`, and returns where
    /// suffixes below that node start. `None` when what is here changed; a later one that changed ends it.
    fn measure_siblings(&self, out: &mut Vec<Sibling>) -> Option<usize> {
        out.clear();
        let depth = self.place.depth;
        let seen = match self.place.spot {
            Spot::Leaf(leaf) => leaf.measure()?,
            Spot::Empty(_) | Spot::Gap { .. } => Measured::default(),
        };
        let (parent, last) = match (self.place.parent, self.place.spot) {
            (ParentSeen::Inner(parent), Spot::Leaf(_) | Spot::Empty(_)) => {
                (parent, parent.range(self.place.symbol)?.1)
            }
            _ => {
                out.push(Sibling {
                    first: END,
                    last: LAST,
                    seen,
                });
                return Some(depth);
            }
        };
        out.push(Sibling {
            first: END,
            last,
            seen,
        });
        let mut next = last + 1;
        let mut fetched = [None; FETCHED_AT_ONCE];
        while next <= LAST {
            let mut n = 0;
            while n < FETCHED_AT_ONCE
                && next <= LAST
                && let (Some((first, last)), Some(child)) = (parent.range(next), parent.child(next))
                && !matches!(child, Child::Inner(_))
            {
                fetched[n] = Some((first, last, child));
                n += 1;
                next = last + 1;
            }
            for (first, last, child) in fetched[..n].iter().flatten().copied() {
                let seen = match child {
                    Child::Leaf(leaf) => leaf.see().and_then(|leaf| leaf.measure()),
                    _ => Some(Measured::default()),
                };
                let Some(seen) = seen else {
                    return Some(depth);
                };
                out.push(Sibling { first, last, seen });
            }
            if n < FETCHED_AT_ONCE {
                break;
            }
        }
        Some(depth)
    }
}
