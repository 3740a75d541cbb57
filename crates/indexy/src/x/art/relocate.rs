//! Moving leaves and nodes out of slabs that are to run empty.
//!
//! Best effort: a latch that is not free is not waited for, and what changed is left where it is.
//!
//! Keeps: what is moved stays what it was: a leaf its entries, marks, mount and run (I3, I4), a node its children.
//! Threads: any, beside everything else; one leaf or one node and what it hangs on are latched at a time.
//! Not here: which slabs (`mem/`), large values, which stay where they are.

#![forbid(unsafe_code)]

use super::{
    Art, inner::InnerSeen, leaf::LeafRef, parent::ParentSeen, reshape::arena_bytes, search::Spot,
    walk::Step,
};
use crate::{
    mem::Memory,
    x::{bounds::Probe, counts::Delta},
};
use std::ops::ControlFlow;

/// `parent`, if it is a node that is to be moved.
fn node_in_the_way(parent: ParentSeen<'_>) -> Option<InnerSeen<'_>> {
    match parent {
        ParentSeen::Inner(node) if Memory::is_in_the_way(node.node().block()) => Some(node),
        _ => None,
    }
}

impl Art {
    /// See [`IndexX::relocate`](crate::x::IndexX::relocate). A leaf that stays is fetched, and not waited for.
    pub(super) fn leave_emptying_slabs(&self) {
        let look = |parent: ParentSeen<'_>, leaf: Option<LeafRef<'_>>| {
            let leaf = leaf.is_some_and(|leaf| Memory::is_in_the_way(leaf.block()));
            Some((leaf, node_in_the_way(parent).is_some()))
        };
        let _ = self.visit_siblings(&[], None, look, &mut |start, (leaf, node)| {
            if leaf {
                self.step(start, |step| Some(self.move_leaf(step)));
            }
            if node {
                self.move_node(start);
            }
            ControlFlow::Continue(())
        });
    }

    fn move_leaf(&self, step: &Step<'_, '_>) -> Option<()> {
        let Spot::Leaf(leaf) = step.place.spot else {
            return None;
        };
        let block = leaf.leaf().block();
        if !Memory::is_in_the_way(block) {
            return None;
        }
        let leaf = leaf.try_latch()?;
        let parent = step.place.parent.try_latch()?;
        let bytes = leaf.leaf().size();
        Memory::moving(block, || {
            self.resize(step.guard, &parent, step.place.symbol, leaf, bytes);
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
            self.counts.add(Delta {
                bytes,
                ..Delta::default()
            });
        });
        Some(())
    }
}
