//! Going down from the root to where a key is, or would be.
//!
//! Optimistic: each node is read at a version and validated before what it said is used. Because
//! neither nodes nor leaves ever move to another place (`inner/mod.rs`), a child that is not
//! obsolete is the right one, whatever happened to its parent since.
//!
//! A key may be padded with endless 0xFF: that stands for "just below" something, and finds the
//! last range.
//!
//! Threads: any, under a guard. No latch is taken.

#![forbid(unsafe_code)]

use super::{
    Radix,
    inner::{Child, InnerSeen, ValidWord},
    parent::ParentSeen,
    place::{Gap, Place, Site},
    symbol::{END, LAST, Symbol, first_symbol},
};
use crate::{
    mem::Guard,
    x::{
        bounds::Probe,
        root::{Root, RootSeen},
        tree::{Descend, Spot},
    },
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

impl Descend for Radix {
    fn try_descend<'g>(
        root: &'g Root,
        guard: &'g Guard<'_>,
        probe: Probe<'_>,
    ) -> Option<Place<'g>> {
        let mut above = None;
        let mut parent = ParentSeen::Root(root.see(guard));
        let (mut symbol, mut depth, mut start) = (END, 0, 0);
        loop {
            let site = match parent.child(symbol)? {
                Child::Leaf(leaf) => Site::Range(Spot::Leaf(leaf.see()?)),
                Child::Empty(mount) => Site::Range(Spot::Empty(mount)),
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
                    Site::Gap(Gap {
                        node,
                        matched,
                        mount,
                    })
                }
            };
            return Some(Place {
                above,
                parent,
                symbol,
                depth,
                site,
            });
        }
    }

    #[inline]
    fn try_find<'g>(root: &'g Root, guard: &'g Guard<'_>, key: &[u8]) -> Option<Spot<'g>> {
        match find(root.see(guard), key)?.resolve() {
            Child::Leaf(leaf) => leaf.see().map(Spot::Leaf),
            Child::Empty(mount) => Some(Spot::Empty(mount)),
            Child::Inner(_) => unreachable!("a search ends at a range"),
        }
    }
}

/// The word of the leaf or the empty range that has `key`; `None` when something changed on the
/// way. A function of its own, and words, so that all that it works with is in registers.
#[inline(never)]
fn find<'g>(root: RootSeen<'g>, key: &[u8]) -> Option<ValidWord<'g>> {
    let word = ValidWord::of_root(root)?;
    let Some(mut inner) = word.inner() else {
        return Some(word);
    };
    let mut rest = key;
    loop {
        let node = inner.see()?;
        let matched = inner.match_prefix(rest);
        if matched < inner.prefix_len() {
            return node.gap_word();
        }
        rest = &rest[matched..];
        let word = node.valid_word(first_symbol(rest))?;
        let Some(next) = word.inner() else {
            return Some(word);
        };
        inner = next;
        // An inner child covers one byte.
        rest = rest.get(1..).unwrap_or_default();
    }
}
