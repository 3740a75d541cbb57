//! The walk that looks at leaves: how large they are and how much of each is dirty.
//!
//! Goes down once per node, not per leaf: the leaves of one node are looked at in a row, a few
//! fetched at a time.
//!
//! Threads: any; no latch is taken. The guard is entered for one node at a time.

#![forbid(unsafe_code)]

use super::{
    Art, Radix,
    inner::Child,
    place::after,
    symbol::{END, LAST, Symbol},
};
use crate::x::{
    LeafInfo, StopWalk,
    bounds::first,
    leaf::{FETCHED_AT_ONCE, LeafRef, Measured},
    walk::Step,
};
use std::ops::ControlFlow;

impl Art {
    /// See [`IndexX::leaves`](crate::x::IndexX::leaves).
    pub(super) fn measure_leaves(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        visit: &mut dyn FnMut(LeafInfo<'_>) -> ControlFlow<StopWalk>,
    ) -> ControlFlow<StopWalk> {
        let mut at = first(from, to);
        let mut siblings = Vec::new();
        let mut start = Vec::new();
        while let Some(key) = at {
            let (bounds, depth) = self.step(&key, |step| siblings_at(step, &mut siblings));
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

/// A range of a node: the symbols that it covers, and what was found there.
struct Sibling {
    first: Symbol,
    last: Symbol,
    seen: Measured,
}

/// `None` when something changed.
fn look(leaf: Option<LeafRef<'_>>) -> Option<Measured> {
    match leaf {
        Some(leaf) => leaf.see()?.measure(),
        None => Some(Measured::default()),
    }
}

/// Looks at what is here, and in the ranges after it in the same node up to one with a node of its
/// own; returns where suffixes below that node start. `None` when what is here changed; a later one
/// that changed ends it.
fn siblings_at(step: &Step<'_, '_, Radix>, out: &mut Vec<Sibling>) -> Option<usize> {
    out.clear();
    let depth = step.place.depth;
    let leaf = step.place.leaf().map(|leaf| leaf.leaf());
    let seen = look(leaf)?;
    let siblings_of = step.place.node_of_siblings();
    let last = match siblings_of {
        Some(parent) => parent.range(step.place.symbol)?.1,
        None => LAST,
    };
    // Where the first one starts the step says.
    let first = END;
    out.push(Sibling { first, last, seen });
    let Some(parent) = siblings_of else {
        return Some(depth);
    };
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
            let leaf = match child {
                Child::Leaf(leaf) => Some(leaf),
                _ => None,
            };
            let Some(seen) = look(leaf) else {
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
