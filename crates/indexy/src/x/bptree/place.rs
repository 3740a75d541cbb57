//! Where a descent ended, and the bounds of the range that is there.

#![forbid(unsafe_code)]

use super::{
    Balanced,
    inner::{Child, InnerSeen},
    parent::{ParentLatched, ParentSeen},
};
use crate::x::{
    Order,
    bounds::{Bounds, Probe},
    leaf::{FETCHED_AT_ONCE, LeafSeen},
    tree::{self, Spot},
};

/// A separator on the way down.
#[derive(Clone, Copy)]
pub(crate) struct Fence<'g> {
    pub(super) node: InnerSeen<'g>,
    pub(super) at: usize,
}

impl Fence<'_> {
    /// The whole key; `None` when its node changed.
    fn key(&self, probe: Probe<'_>) -> Option<Vec<u8>> {
        let mut key = Vec::with_capacity(probe.bytes.len());
        probe.fill(self.node.node().depth(), &mut key);
        self.node.push_separator(self.at, &mut key)?;
        Some(key)
    }
}

/// A parent, and which of its children is meant.
#[derive(Clone, Copy)]
pub(crate) struct Hop<'g> {
    pub parent: ParentSeen<'g>,
    pub at: usize,
}

/// Where a descent ended.
pub(crate) struct Place<'g> {
    /// The parent, and which of its children this is.
    pub hop: Hop<'g>,
    /// The fences of the parent's range; `None`: the end of the key space.
    pub(super) outer: [Option<Fence<'g>>; 2],
    pub site: Site<'g>,
}

/// What is there.
#[derive(Clone, Copy)]
pub(crate) enum Site<'g> {
    Range(Spot<'g>),
    /// A node of the level that was asked for, or below.
    Node(InnerSeen<'g>),
}

impl<'g> Place<'g> {
    /// The leaf that is here.
    pub(super) fn leaf(&self) -> Option<LeafSeen<'g>> {
        match self.site {
            Site::Range(Spot::Leaf(leaf)) => Some(leaf),
            _ => None,
        }
    }

    /// The node that is here.
    pub(super) fn node(&self) -> Option<InnerSeen<'g>> {
        match self.site {
            Site::Node(node) => Some(node),
            Site::Range(_) => None,
        }
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

impl<'g> tree::Place<'g, Balanced> for Place<'g> {
    #[inline(always)]
    fn spot(&self) -> Option<Spot<'g>> {
        match self.site {
            Site::Range(spot) => Some(spot),
            Site::Node(_) => None,
        }
    }

    fn bounds(&self, probe: Probe<'_>) -> Option<Bounds> {
        self.bounds_of(probe, self.hop.at, self.hop.at)
    }

    fn dead_row(&self, probe: Probe<'_>, order: Order) -> Option<(Bounds, usize)> {
        let parent = self.hop.parent;
        let (mut first, mut last) = (self.hop.at, self.hop.at);
        let children = parent.children();
        // Often it is alone.
        let mut at_once = 1;
        loop {
            let mut row = [Child::Empty(None); FETCHED_AT_ONCE];
            let beside = match order {
                Order::Ascending => children.saturating_sub(last + 1),
                Order::Descending => first,
            };
            let n = beside.min(at_once);
            for (i, child) in row[..n].iter_mut().enumerate() {
                *child = parent.child(match order {
                    Order::Ascending => last + 1 + i,
                    Order::Descending => first - 1 - i,
                })?;
            }
            let dead = row[..n].iter().take_while(|child| is_dead(child)).count();
            match order {
                Order::Ascending => last += dead,
                Order::Descending => first -= dead,
            }
            if dead < at_once {
                let bounds = self.bounds_of(probe, first, last)?;
                return Some((bounds, last - first + 1));
            }
            at_once = (2 * at_once).min(FETCHED_AT_ONCE);
        }
    }

    fn fetch_beside(&self, order: Order) {
        let at = match order {
            Order::Ascending => self.hop.at + 1,
            Order::Descending => self.hop.at.wrapping_sub(1),
        };
        if at < self.hop.parent.children() {
            // A child that is looked at is fetched.
            let _ = self.hop.parent.child(at);
        }
    }

    fn parent_address(&self) -> usize {
        self.hop.parent.address()
    }

    fn try_latch_parent(&self) -> Option<ParentLatched<'g>> {
        self.hop.parent.try_latch()
    }

    fn mark_is_within(
        &self,
        _probe: Probe<'_>,
        bounds: &Bounds,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> bool {
        bounds.within(from, to)
    }
}

/// Complete, and without a live entry.
fn is_dead(child: &Child<'_>) -> bool {
    match child {
        Child::Empty(mount) => mount.is_none(),
        Child::Leaf(leaf) => leaf.is_dead(),
        Child::Inner(_) => false,
    }
}

/// How many bytes all keys of a range have in common.
pub(super) fn common_prefix(start: &[u8], end: Option<&[u8]>) -> usize {
    let same = |end: &[u8]| start.iter().zip(end).take_while(|(a, b)| a == b).count();
    end.map_or(0, same)
}
