//! Moving leaves, nodes and large blocks out of slabs that are to run empty.
//!
//! Best effort: a latch that is not free is not waited for, and what changed is left where it is.
//!
//! Keeps: what is moved stays what it was: a leaf its entries, marks, mount and run (I3, I4), a
//! node its children.
//! Threads: any, beside everything else; one leaf or one node and what it hangs on are latched at a
//! time.
//! Not here: which slabs (`mem/`), how a large block is moved (`x/leaf/relocate.rs`).

#![forbid(unsafe_code)]

use super::{
    Art, Radix,
    inner::{Child, InnerSeen},
    parent::ParentSeen,
    place::after,
    reshape::arena_bytes,
    symbol::{LAST, Symbol},
};
use crate::{
    mem::{Guard, Memory},
    x::{
        bounds::Probe,
        child::{ChildWord, Target},
        counters::Delta,
        leaf::LeafRef,
        walk::Step,
    },
};

/// `parent`, if it is a node that is to be moved.
fn node_in_the_way(parent: ParentSeen<'_>) -> Option<InnerSeen<'_>> {
    match parent {
        ParentSeen::Inner(node) if Memory::is_in_the_way(node.node().block()) => Some(node),
        _ => None,
    }
}

/// Whether the word, of a node that was as it was seen afterwards, is that of a leaf in the way.
/// The leaf is not looked at.
fn is_leaf_in_the_way(word: ChildWord) -> bool {
    matches!(word.target(), Target::Leaf(block) if Memory::is_in_the_way(block))
}

impl Art {
    /// See [`IndexX::relocate`](crate::x::IndexX::relocate). Of the leaves of a node the first is
    /// fetched, and those that move; all of them where large blocks may be in the way.
    pub(super) fn move_all(&self) {
        let large = self.memory.out_of_line_is_in_the_way();
        let mut at = Some(Vec::new());
        while let Some(key) = at {
            let (bounds, (last, node)) = self.step(&key, |step| {
                let last = self.move_row(step, large)?;
                Some((last, node_in_the_way(step.place.parent).is_some()))
            });
            if node {
                self.move_node(&bounds.start);
            }
            at = match last {
                Some((depth, last)) => after(&bounds.start[..depth], last),
                None => bounds.end,
            };
        }
    }

    /// Moves the leaf that is here, if it is to be moved, and those in the ranges after it in the
    /// same node up to one with a node of its own. Returns where suffixes below the node start and
    /// the last symbol that was looked at (of the root and of a gap: `None`); `None` when the node
    /// changed before anything was moved. `large`: moves their large blocks, too.
    fn move_row(&self, step: &Step<'_, '_, Radix>, large: bool) -> Option<Option<(usize, Symbol)>> {
        let place = &step.place;
        let Some(parent) = place.node_of_siblings() else {
            if let Some(leaf) = place.leaf().filter(|_| large) {
                self.move_large(&[leaf.leaf()]);
            }
            self.move_leaf(step.guard, place.parent, place.symbol);
            return Some(None);
        };
        let (mut leaves, mut next, mut last) = (Vec::new(), place.symbol, place.symbol);
        let mut with_large = Vec::new();
        while next <= LAST {
            let word = parent.word(next)?;
            if word.is_inner() {
                break;
            }
            if let Some(Child::Leaf(leaf)) = parent.child(next).filter(|_| large) {
                with_large.push(leaf);
            }
            if is_leaf_in_the_way(word) {
                leaves.push(next);
            }
            last = parent.range(next)?.1;
            next = last + 1;
        }
        self.move_large(&with_large);
        for symbol in leaves {
            self.move_leaf(step.guard, place.parent, symbol);
        }
        Some(Some((place.depth, last)))
    }

    /// Moves the large blocks of `leaves`.
    fn move_large(&self, leaves: &[LeafRef<'_>]) {
        for leaf in leaves {
            self.counters.add(leaf.move_large(&self.memory));
        }
    }

    /// Moves the leaf that covers `symbol` in `parent` if it is in the way; it need not be the one
    /// that was there before.
    fn move_leaf<'g>(
        &self,
        guard: &'g Guard<'_>,
        parent: ParentSeen<'g>,
        symbol: Symbol,
    ) -> Option<()> {
        let parent = parent.again()?;
        let Child::Leaf(leaf) = parent.child(symbol)? else {
            return None;
        };
        let block = leaf.block();
        if !Memory::is_in_the_way(block) {
            return None;
        }
        let leaf = leaf.see()?.try_latch()?;
        let parent = parent.try_latch()?;
        Memory::moving(block, || {
            let new = leaf.copy(&self.memory, guard);
            self.counters.add(Delta {
                bytes: new.arena_bytes() - leaf.arena_bytes(),
                ..Delta::default()
            });
            parent.swap_leaf(&self.memory, symbol, leaf, new.leaf());
        });
        Some(())
    }

    /// Moves the node that the range at `key` hangs on.
    fn move_node(&self, key: &[u8]) -> Option<()> {
        let guard = self.memory.enter();
        let place = self.descend(&guard, Probe::at(key));
        let node = node_in_the_way(place.parent)?.try_latch()?;
        let (above, symbol) = place.above?;
        let above = above.try_latch()?;
        Memory::moving(node.node().block(), || {
            let new = node.copy(&self.memory, &guard, node.node().shape().kind, 0);
            let bytes = arena_bytes(new) - arena_bytes(node.node());
            above.swap_inner(&self.memory, symbol, node, new);
            self.counters.add(Delta {
                bytes,
                ..Delta::default()
            });
        });
        Some(())
    }
}
