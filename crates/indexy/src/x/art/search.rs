//! Going down from the root to where a key is, or would be.
//!
//! Optimistic: each node is read at a version and validated before what it said is used. Because neither
//! nodes nor leaves ever move to another place (`inner/mod.rs`), a child that is not obsolete is the right one,
//! whatever happened to its parent since.
//!
//! A key may be padded with endless 0xFF: that stands for "just below" something, and finds the last range.
//!
//! Threads: any, under a guard. No latch is taken.

#![forbid(unsafe_code)]

use super::{
    Art,
    inner::InnerSeen,
    leaf::LeafSeen,
    parent::ParentSeen,
    pointer::{Child, END, LAST, Symbol, first_symbol},
};
use crate::{
    mem::Guard,
    x::{Lookup, Stamp, bounds::Probe, patience::Patience, root::Root},
};

impl Probe<'_> {
    fn symbol(&self, at: usize) -> Symbol {
        let rest = self.rest(at);
        if rest.is_empty() && self.padded {
            LAST
        } else {
            first_symbol(rest)
        }
    }

    /// The number of prefix bytes of `node` that the probe has from `start` on.
    fn match_prefix(&self, node: &InnerSeen<'_>, start: usize) -> usize {
        let rest = self.rest(start);
        let mut matched = node.node().match_prefix(rest);
        if self.padded && matched == rest.len() {
            let len = node.node().prefix_len();
            while matched < len && node.node().prefix_byte(matched) == u8::MAX {
                matched += 1;
            }
        }
        matched
    }
}

/// Where a way down ended.
pub(super) struct Place<'g> {
    /// The parent's parent, and the symbol that selects the parent there.
    pub above: Option<(ParentSeen<'g>, Symbol)>,
    pub parent: ParentSeen<'g>,
    /// Selects the child in the parent.
    pub symbol: Symbol,
    /// Where suffixes below the parent start.
    pub depth: usize,
    pub spot: Spot<'g>,
}

/// What is there.
#[derive(Clone, Copy)]
pub(super) enum Spot<'g> {
    Leaf(LeafSeen<'g>),
    /// An empty range; mounted with this stamp, or complete.
    Empty(Option<Stamp>),
    /// The gap beside the prefix of `node`, a child of the parent; `matched` bytes of it fit.
    Gap {
        node: InnerSeen<'g>,
        matched: usize,
        mount: Option<Stamp>,
    },
}

impl Place<'_> {
    /// The mount of the range, if it is an empty one.
    pub(super) fn empty(&self) -> Option<Option<Stamp>> {
        match self.spot {
            Spot::Leaf(_) => None,
            Spot::Empty(mount) | Spot::Gap { mount, .. } => Some(mount),
        }
    }

    /// Where the path of an inner node in this place starts.
    pub(super) fn node_start(&self) -> usize {
        if self.parent.is_root() {
            0
        } else {
            self.depth + 1
        }
    }
}

impl Art {
    /// Goes down to `probe`; starts again as often as something changes on the way.
    pub(super) fn descend<'g>(&'g self, guard: &'g Guard<'_>, probe: Probe<'_>) -> Place<'g> {
        let mut patience = Patience::default();
        loop {
            if let Some(place) = try_descend(&self.root, guard, probe) {
                return place;
            }
            patience.wait();
        }
    }

    /// See [`IndexX::get`](crate::x::IndexX::get).
    #[inline]
    pub(super) fn search<R, F: FnOnce(&[u8]) -> R>(&self, key: &[u8], found: F) -> Lookup<R> {
        let guard = self.memory.enter();
        let track = self.tracks();
        let mut patience = Patience::default();
        let mut found = found;
        loop {
            match try_search(&self.root, &guard, key, track, found) {
                Ok(answer) => return answer,
                Err(again) => found = again,
            }
            patience.wait();
        }
    }
}

fn try_descend<'g>(root: &'g Root, guard: &'g Guard<'_>, probe: Probe<'_>) -> Option<Place<'g>> {
    let mut above = None;
    let mut parent = ParentSeen::Root(root.see(guard));
    let (mut symbol, mut depth, mut start) = (END, 0, 0);
    loop {
        let spot = match parent.child(symbol)? {
            Child::Leaf(leaf) => Spot::Leaf(leaf.see()?),
            Child::Empty(mount) => Spot::Empty(mount),
            Child::Inner(node) => {
                let node = node.see()?;
                let matched = probe.match_prefix(&node, start);
                if matched == node.node().prefix_len() {
                    above = Some((parent, symbol));
                    parent = ParentSeen::Inner(node);
                    depth = start + matched;
                    symbol = probe.symbol(depth);
                    start = depth + 1;
                    continue;
                }
                let mount = node.gap()?;
                Spot::Gap {
                    node,
                    matched,
                    mount,
                }
            }
        };
        return Some(Place {
            above,
            parent,
            symbol,
            depth,
            spot,
        });
    }
}

/// As `try_descend`, and looks the key up there; `Err` gives `found` back.
#[inline]
fn try_search<R, F: FnOnce(&[u8]) -> R>(
    root: &Root,
    guard: &Guard<'_>,
    key: &[u8],
    track: bool,
    found: F,
) -> Result<Lookup<R>, F> {
    let mut rest = key;
    let mut child = ParentSeen::Root(root.see(guard)).child(END);
    loop {
        let Some(now) = child else {
            return Err(found);
        };
        let mount = match now {
            Child::Leaf(leaf) => {
                return match leaf.see() {
                    Some(leaf) => leaf.get(rest, track, found),
                    None => Err(found),
                };
            }
            Child::Empty(mount) => mount,
            Child::Inner(node) => {
                let Some(node) = node.see() else {
                    return Err(found);
                };
                let matched = node.node().match_prefix(rest);
                if matched == node.node().prefix_len() {
                    rest = &rest[matched..];
                    child = node.child(first_symbol(rest));
                    if let Some(Child::Inner(_)) = child {
                        rest = &rest[1..];
                    }
                    continue;
                }
                match node.gap() {
                    Some(mount) => mount,
                    None => return Err(found),
                }
            }
        };
        // I1: no entry; only a mount makes Y's word count.
        return Ok(mount.map_or(Lookup::Absent, Lookup::AskY));
    }
}
