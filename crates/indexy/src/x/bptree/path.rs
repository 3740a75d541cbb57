//! Going down from the root to where a key is, or would be.
//!
//! Optimistic: each node is read at a version and validated before what it said is used. Because neither
//! nodes nor leaves ever move or change their range, a child that is not obsolete is the right one, whatever
//! happened to its parent since. The bounds of a range are the nearest separators on the way down: they
//! serve as fence keys, and no node stores its own.
//!
//! Threads: any, under a guard. No latch is taken.

#![forbid(unsafe_code)]

use super::leaf::stable::StableLeaf;
use super::{BPlus, child::Child, inner::InnerSeen, leaf::LeafSeen, parent::ParentSeen};
use crate::{
    mem::Guard,
    x::{
        Stamp,
        bounds::{Bounds, Probe, entries_within},
        patience::Patience,
    },
};
use std::ops::Range;

/// A separator on the way down.
#[derive(Clone, Copy)]
pub(super) struct Fence<'g> {
    node: InnerSeen<'g>,
    at: usize,
}

impl Fence<'_> {
    /// The whole key; `None` when its node changed.
    fn key(&self, probe: Probe<'_>) -> Option<Vec<u8>> {
        let mut key = Vec::new();
        probe.fill(self.node.node().depth(), &mut key);
        self.node.push_separator(self.at, &mut key)?;
        Some(key)
    }
}

/// A parent, and which of its children is meant.
#[derive(Clone, Copy)]
pub(super) struct Hop<'g> {
    pub parent: ParentSeen<'g>,
    pub at: usize,
}

/// Where a way down ended.
pub(super) struct Place<'g> {
    /// The parent, and which of its children this is.
    pub hop: Hop<'g>,
    /// The fences of the parent's range; `None`: the end of the key space.
    outer: [Option<Fence<'g>>; 2],
    pub spot: Spot<'g>,
}

/// What is there.
#[derive(Clone, Copy)]
pub(super) enum Spot<'g> {
    Leaf(LeafSeen<'g>),
    /// An empty range; mounted with this stamp, or complete.
    Empty(Option<Stamp>),
    /// A node of the level that was asked for, or below.
    Inner(InnerSeen<'g>),
}

impl Place<'_> {
    /// The mount of the range, if it is an empty one.
    pub(super) fn empty(&self) -> Option<Option<Stamp>> {
        match self.spot {
            Spot::Empty(mount) => Some(mount),
            _ => None,
        }
    }

    /// The bounds of the range that `probe` led to; `None` when a node on the way changed since.
    pub(super) fn bounds(&self, probe: Probe<'_>) -> Option<Bounds> {
        self.bounds_of(probe, self.hop.at, self.hop.at)
    }

    /// The bounds of the children `first..=last` of the parent.
    pub(super) fn bounds_of(&self, probe: Probe<'_>, first: usize, last: usize) -> Option<Bounds> {
        let [mut lower, mut upper] = self.outer;
        if let ParentSeen::Inner(node) = self.hop.parent {
            if first > 0 {
                lower = Some(Fence {
                    node,
                    at: first - 1,
                });
            }
            if last + 1 < node.children() {
                upper = Some(Fence { node, at: last });
            }
            if !node.unchanged() {
                return None;
            }
        }
        let start = match lower {
            Some(fence) => fence.key(probe)?,
            None => Vec::new(),
        };
        let end = match upper {
            Some(fence) => Some(fence.key(probe)?),
            None => None,
        };
        Some(Bounds { start, end })
    }
}

/// How many bytes all keys of a range have in common.
pub(super) fn common_prefix(start: &[u8], end: Option<&[u8]>) -> usize {
    let same = |end: &[u8]| start.iter().zip(end).take_while(|(a, b)| a == b).count();
    end.map_or(0, same)
}

impl BPlus {
    /// Goes down to `probe`; starts again as often as something changes on the way.
    pub(super) fn descend<'g>(&'g self, guard: &'g Guard<'_>, probe: Probe<'_>) -> Place<'g> {
        self.descend_to(guard, probe, 0)
    }

    /// As `descend`, but stops at a node of this level or below.
    pub(super) fn descend_to<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        probe: Probe<'_>,
        level: usize,
    ) -> Place<'g> {
        let mut patience = Patience::default();
        loop {
            if let Some(place) = self.try_descend(guard, probe, level) {
                return place;
            }
            patience.wait();
        }
    }

    fn try_descend<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        probe: Probe<'_>,
        level: usize,
    ) -> Option<Place<'g>> {
        let mut hop = Hop {
            parent: ParentSeen::Root(self.root.see(guard)),
            at: 0,
        };
        let (mut outer, mut inner) = ([None, None], [None, None]);
        loop {
            let spot = match hop.parent.child(hop.at)? {
                Child::Leaf(leaf) => Spot::Leaf(leaf.see()?),
                Child::Empty(mount) => Spot::Empty(mount),
                Child::Inner(node) => {
                    let node = node.see()?;
                    if node.node().level() <= level {
                        Spot::Inner(node)
                    } else {
                        outer = inner;
                        let at = node.index_for(probe)?;
                        if at > 0 {
                            inner[0] = Some(Fence { node, at: at - 1 });
                        }
                        if at + 1 < node.children() {
                            inner[1] = Some(Fence { node, at });
                        }
                        hop = Hop {
                            parent: ParentSeen::Inner(node),
                            at,
                        };
                        continue;
                    }
                }
            };
            return Some(Place { hop, outer, spot });
        }
    }

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

impl Step<'_, '_> {
    /// The indices of the entries of `leaf`, which is here, from the step's key up to `to`.
    pub(super) fn entries(&self, leaf: StableLeaf<'_>, to: Option<&[u8]>) -> Range<usize> {
        let find = |suffix: &[u8]| leaf.find(suffix).unwrap_or_else(|i| i);
        let (n, depth) = (leaf.len(), leaf.meta().depth);
        entries_within(&self.bounds, depth, n, self.key, to, find)
    }
}
