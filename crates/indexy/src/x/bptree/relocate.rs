//! Moving leaves, nodes and large blocks out of slabs that are to run empty.
//!
//! Best effort: a latch that is not free is not waited for, and what changed is left where it is.
//!
//! Keeps: what is moved stays what it was, byte by byte: a leaf its entries, mark, stamp and run
//! (I3, I4), a node its children.
//! Threads: any, beside everything else; one leaf or one node and what it hangs on are latched at a
//! time.
//! Not here: which slabs (`mem/`), how a large block is moved (`x/leaf/relocate.rs`, of separators
//! `inner/edit.rs`).

#![forbid(unsafe_code)]

use super::{BPlus, inner::Child, parent::ParentSeen, place::Place};
use crate::{
    mem::{Guard, Memory},
    x::{
        backoff::Backoff,
        bounds::{Bounds, Probe},
        counters::Delta,
        leaf::LeafRef,
    },
};

/// The children of one parent that stand side by side and are no nodes.
struct Row<'g> {
    /// Which of them are leaves in the way.
    leaves: Vec<usize>,
    /// All of their leaves, where large blocks may be in the way.
    with_large: Vec<LeafRef<'g>>,
    bounds: Bounds,
}

impl BPlus {
    /// See [`IndexX::relocate`](crate::x::IndexX::relocate). Of a leaf that stays, its header is
    /// looked at, and its entries where large blocks may be in the way.
    pub(super) fn move_all(&self) {
        let large = self.memory.out_of_line_is_in_the_way();
        let mut at = Some(Vec::new());
        let mut backoff = Backoff::default();
        while let Some(key) = at {
            let guard = self.memory.enter();
            let place = self.descend(&guard, Probe::at(&key));
            at = match row_at(&place, &key, large) {
                Some(row) => {
                    for leaf in &row.with_large {
                        self.counters.add(leaf.move_large(&self.memory));
                    }
                    row.leaves.iter().for_each(|&i| {
                        self.move_leaf(&guard, place.hop.parent, i);
                    });
                    self.move_nodes(&guard, &key, large);
                    backoff = Backoff::default();
                    row.bounds.end
                }
                None => {
                    backoff.wait();
                    Some(key)
                }
            };
        }
    }

    /// Moves child `at` of `parent` if it is a leaf in the way; it need not be the one that was
    /// there before.
    fn move_leaf(&self, guard: &Guard<'_>, parent: ParentSeen<'_>, at: usize) -> Option<()> {
        let parent = parent.again()?;
        // It may have lost children since; behind the last one are words of old.
        if at >= parent.children() {
            return None;
        }
        let Child::Leaf(leaf) = parent.child(at)? else {
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
            parent.set(at, new.leaf().word());
            self.more_bytes(new.arena_bytes() - leaf.arena_bytes());
            leaf.retire(&self.memory);
        });
        Some(())
    }

    /// Moves those nodes on the way to `key` that are in the way, and with `large` the blocks of
    /// their separators.
    fn move_nodes(&self, guard: &Guard<'_>, key: &[u8], large: bool) {
        let mut level = 1;
        while level < usize::MAX {
            let place = self.descend_to(guard, Probe::at(key), level);
            level = place.hop.parent.level();
            if large {
                let _ = self.move_separators(&place);
            }
            let _ = self.move_node(guard, &place);
        }
    }

    fn move_separators(&self, place: &Place<'_>) -> Option<()> {
        let node = place.node()?;
        if node.has_large_in_the_way()? {
            self.more_bytes(node.try_latch()?.move_large(&self.memory));
        }
        Some(())
    }

    fn more_bytes(&self, bytes: isize) {
        self.counters.add(Delta {
            bytes,
            ..Delta::default()
        });
    }

    fn move_node(&self, guard: &Guard<'_>, place: &Place<'_>) -> Option<()> {
        let node = place.node()?;
        let block = node.node().block();
        if !Memory::is_in_the_way(block) {
            return None;
        }
        let node = node.try_latch()?;
        let parent = place.hop.parent.try_latch()?;
        Memory::moving(block, || {
            let new = node.copy(&self.memory, guard);
            parent.set(place.hop.at, new.node().word());
            // Large separators are the new node's.
            self.more_bytes(new.arena_bytes() - node.arena_bytes());
            node.replaced(&self.memory);
        });
        Some(())
    }
}

/// The row that begins with the child at `place`, which `key` led to; `None` when the parent
/// changed. With `large` all of its leaves are named.
fn row_at<'g>(place: &Place<'g>, key: &[u8], large: bool) -> Option<Row<'g>> {
    let first = place.hop.at;
    let (mut leaves, mut with_large, mut last) = (Vec::new(), Vec::new(), first);
    for i in first..place.hop.parent.children() {
        match place.hop.parent.child(i)? {
            Child::Inner(_) if i > first => break,
            Child::Leaf(leaf) => {
                if Memory::is_in_the_way(leaf.block()) {
                    leaves.push(i);
                }
                if large {
                    with_large.push(leaf);
                }
            }
            _ => {}
        }
        last = i;
    }
    let bounds = place.bounds_of(Probe::at(key), first, last)?;
    Some(Row {
        leaves,
        with_large,
        bounds,
    })
}
