//! Where a descent ended, and the bounds of the range that is there.

#![forbid(unsafe_code)]

use super::{
    Radix,
    inner::InnerSeen,
    leaf::{LeafRef, LeafSeen, Packed},
    parent::{ParentLatched, ParentSeen},
    symbol::{END, LAST, Symbol},
};
use crate::{
    key::prefix_end,
    x::{
        Stamp,
        bounds::{Bounds, Probe},
        tree::{self, Spot},
    },
};

/// Where a descent ended.
pub(crate) struct Place<'g> {
    /// The parent's parent, and the symbol that selects the parent there.
    pub above: Option<(ParentSeen<'g>, Symbol)>,
    pub parent: ParentSeen<'g>,
    /// Selects the child in the parent.
    pub symbol: Symbol,
    /// Where suffixes below the parent start.
    pub depth: usize,
    pub site: Site<'g>,
}

/// What is there.
#[derive(Clone, Copy)]
pub(crate) enum Site<'g> {
    Range(Spot<'g, Packed>),
    /// An empty range: the gap beside the prefix of a node.
    Gap(Gap<'g>),
}

/// The gap beside the prefix of `node`, a child of the parent; `matched` bytes of it fit.
#[derive(Clone, Copy)]
pub(crate) struct Gap<'g> {
    pub node: InnerSeen<'g>,
    pub matched: usize,
    pub mount: Option<Stamp>,
}

/// Where the range ends that reaches to the symbol `last` of a node with this path; `None`: at
/// the end of the key space.
pub(super) fn after(path: &[u8], last: Symbol) -> Option<Vec<u8>> {
    if last == LAST {
        return prefix_end(path);
    }
    let mut end = Vec::with_capacity(path.len() + 1);
    end.extend_from_slice(path);
    end.push(last as u8);
    Some(end)
}

impl<'g> Place<'g> {
    /// The gap that is here.
    pub(super) fn gap(&self) -> Option<Gap<'g>> {
        match self.site {
            Site::Gap(gap) => Some(gap),
            Site::Range(_) => None,
        }
    }

    /// The leaf that is here.
    pub(super) fn leaf(&self) -> Option<LeafSeen<'g>> {
        match self.site {
            Site::Range(Spot::Leaf(leaf)) => Some(leaf),
            _ => None,
        }
    }

    /// The parent, if it is a node and the range is one of its children: not a gap.
    pub(super) fn node_of_siblings(&self) -> Option<InnerSeen<'g>> {
        match (self.parent, self.site) {
            (ParentSeen::Inner(parent), Site::Range(_)) => Some(parent),
            _ => None,
        }
    }

    /// Where the path of an inner node in this place starts.
    fn node_start(&self) -> usize {
        if self.parent.is_root() {
            0
        } else {
            self.depth + 1
        }
    }

    /// The bounds of the part of a gap that `probe` is in: below or above the keys of the node.
    fn gap_bounds(&self, gap: Gap<'_>, probe: Probe<'_>) -> Bounds {
        let depth = self.node_start();
        let mut start = Vec::new();
        probe.fill(depth, &mut start);
        let after_all = prefix_end(&start);
        let mut node_path = start.clone();
        gap.node.node().push_prefix(&mut node_path);
        let mut given = Vec::new();
        probe.fill_if_there(depth + gap.matched + 1, &mut given);
        if given.get(depth + gap.matched) > node_path.get(depth + gap.matched) {
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
        }
    }

    /// All that comes to the node that has the gap.
    fn gap_surroundings(&self, probe: Probe<'_>) -> Bounds {
        let mut start = Vec::new();
        probe.fill(self.node_start(), &mut start);
        let end = prefix_end(&start);
        Bounds { start, end }
    }
}

impl<'g> tree::Place<'g, Radix> for Place<'g> {
    #[inline(always)]
    fn spot(&self) -> Option<Spot<'g, Packed>> {
        Some(match self.site {
            Site::Range(spot) => spot,
            Site::Gap(gap) => Spot::Empty(gap.mount),
        })
    }

    fn bounds(&self, probe: Probe<'_>) -> Option<Bounds> {
        if let Some(gap) = self.gap() {
            return Some(self.gap_bounds(gap, probe));
        }
        let mut start = Vec::new();
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

    #[inline(always)]
    fn depth(&self, _leaf: LeafRef<'_>) -> usize {
        self.depth
    }

    fn parent_address(&self) -> usize {
        self.parent.address()
    }

    fn try_latch_parent(&self) -> Option<ParentLatched<'g>> {
        self.parent.try_latch()
    }

    fn mark_is_within(
        &self,
        probe: Probe<'_>,
        bounds: &Bounds,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> bool {
        match self.gap() {
            // The gap has one mark for what is below and above the node's keys.
            Some(_) => self.gap_surroundings(probe).within(from, to),
            None => bounds.within(from, to),
        }
    }
}
