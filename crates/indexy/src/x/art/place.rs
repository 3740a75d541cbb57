//! Where a descent ended, and the bounds of the range that is there.

#![forbid(unsafe_code)]

use super::{
    Radix,
    inner::{Child, InnerSeen},
    parent::{ParentLatched, ParentSeen},
    symbol::{END, LAST, Symbol},
};
use crate::{
    key::prefix_end,
    x::{
        Order, Stamp,
        bounds::{Bounds, Probe},
        leaf::{FETCHED_AT_ONCE, LeafSeen},
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
    Range(Spot<'g>),
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

impl Site<'_> {
    /// Complete, and without a live entry; `None` when the leaf changed.
    pub(super) fn is_dead(&self) -> Option<bool> {
        match self {
            Self::Range(Spot::Leaf(leaf)) => leaf.is_dead(),
            Self::Range(Spot::Empty(mount)) | Self::Gap(Gap { mount, .. }) => Some(mount.is_none()),
        }
    }
}

impl Gap<'_> {
    /// `probe`, which leads here, is above the keys of the node, whose path starts at `start`; else
    /// it is below them.
    pub(super) fn is_above(&self, probe: Probe<'_>, start: usize) -> bool {
        let given = match probe.rest(start + self.matched).first() {
            Some(&byte) => Some(byte),
            None => probe.padded.then_some(u8::MAX),
        };
        given > Some(self.node.node().prefix_byte(self.matched))
    }
}

/// The next symbol in this order beside those of a range.
pub(super) fn beside((first, last): (Symbol, Symbol), order: Order) -> Option<Symbol> {
    match order {
        Order::Ascending => (last < LAST).then_some(last + 1),
        Order::Descending => (first > END).then(|| first - 1),
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
        if gap.is_above(probe, depth) {
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

    /// The bounds of the children from symbol `first` to `last` of the parent, if that is a node.
    fn bounds_of(&self, probe: Probe<'_>, first: Symbol, last: Symbol) -> Bounds {
        let mut start = Vec::with_capacity(self.depth + 1);
        probe.fill(self.depth, &mut start);
        let end = after(&start, last);
        if first != END {
            start.push((first - 1) as u8);
        }
        Bounds { start, end }
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
    fn spot(&self) -> Option<Spot<'g>> {
        Some(match self.site {
            Site::Range(spot) => spot,
            Site::Gap(gap) => Spot::Empty(gap.mount),
        })
    }

    fn bounds(&self, probe: Probe<'_>) -> Option<Bounds> {
        if let Some(gap) = self.gap() {
            return Some(self.gap_bounds(gap, probe));
        }
        let ParentSeen::Inner(parent) = self.parent else {
            return Some(Bounds::default());
        };
        let (first, last) = parent.range(self.symbol)?;
        Some(self.bounds_of(probe, first, last))
    }

    fn dead_row(&self, probe: Probe<'_>, order: Order) -> Option<(Bounds, usize)> {
        let Some(parent) = self.node_of_siblings() else {
            return self.bounds(probe).map(|bounds| (bounds, 1));
        };
        let (mut first, mut last) = parent.range(self.symbol)?;
        // Often it is alone.
        let (mut ranges, mut at_once) = (1, 1);
        loop {
            let mut row = [((first, last), Child::Empty(None)); FETCHED_AT_ONCE];
            let mut n = 0;
            let mut next = (first, last);
            while n < at_once
                && let Some(symbol) = beside(next, order)
            {
                next = parent.range(symbol)?;
                row[n] = (next, parent.child(symbol)?);
                n += 1;
            }
            let dead = row[..n].iter().take_while(|(_, child)| is_dead(child));
            for ((start, end), _) in dead {
                (first, last) = (first.min(*start), last.max(*end));
                ranges += 1;
                n -= 1;
            }
            if n > 0 || beside((first, last), order).is_none() {
                return Some((self.bounds_of(probe, first, last), ranges));
            }
            at_once = (2 * at_once).min(FETCHED_AT_ONCE);
        }
    }

    fn fetch_beside(&self, order: Order) {
        if let Some(parent) = self.node_of_siblings()
            && let Some(range) = parent.range(self.symbol)
            && let Some(symbol) = beside(range, order)
            && let Some(word) = parent.word(symbol)
        {
            word.prefetch();
        }
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
