//! Giving memory back above leaves: small leaves are joined, nodes with a single child are
//! replaced by it, small nodes are joined, large nodes that hold little become smaller ones.
//!
//! Best effort: a latch that is not free is not waited for, the rest stays for the next time.
//! Nothing is done that does not free bytes.
//!
//! Keeps: a range that takes others in is mounted if one of them was, with a fresh stamp (I3); a
//! leaf made of two remembers the later run (I4).

#![forbid(unsafe_code)]

use super::{
    BPlus,
    inner::{
        Child, InnerLatched, InnerSeen,
        build::{Parts, Room},
        layout::INNER_BYTES,
    },
    parent::{ParentLatched, ParentSeen},
    place::{Place, common_prefix},
};
use crate::{
    mem::{Guard, Memory},
    x::{bounds::Probe, counters::Delta, leaf::LeafLatched},
};

/// A node is rebuilt when less than one part in so many of it is used.
const SPARSE_DIVISOR: usize = 2;
/// Nodes are joined up to this size.
const JOINED_INNER_BYTES: usize = INNER_BYTES * 5 / 8;

impl BPlus {
    /// Merges around `probe`, from the leaf up, as long as something can be. Returns the bytes
    /// freed.
    pub(super) fn merge_around(&self, guard: &Guard<'_>, probe: Probe<'_>) -> isize {
        let mut freed = 0;
        'again: loop {
            let place = self.descend(guard, probe);
            if let Some(bytes) = self.join_leaf(guard, &place, probe) {
                freed += bytes;
                continue;
            }
            let mut level = place.hop.parent.level();
            while level < usize::MAX {
                let place = self.descend_to(guard, probe, level);
                let Some(node) = place.node() else {
                    break;
                };
                if node.node().level() == level
                    && let Some(bytes) = self.merge_inner(guard, &place, probe)
                {
                    freed += bytes;
                    continue 'again;
                }
                level = place.hop.parent.level();
            }
            return freed;
        }
    }

    /// Joins the small leaf at `place` with one beside it.
    fn join_leaf<'g>(
        &self,
        guard: &'g Guard<'_>,
        place: &Place<'g>,
        probe: Probe<'_>,
    ) -> Option<isize> {
        let leaf = place.leaf()?;
        let at = place.hop.at;
        if !LeafLatched::is_small(leaf.leaf().len()) {
            return None;
        }
        at.checked_sub(1)
            .and_then(|left| self.join_leaves(guard, place, probe, left))
            .or_else(|| self.join_leaves(guard, place, probe, at))
    }

    /// Joins the leaves `first` and `first + 1` of the parent at `place`.
    fn join_leaves<'g>(
        &self,
        guard: &'g Guard<'_>,
        place: &Place<'g>,
        probe: Probe<'_>,
        first: usize,
    ) -> Option<isize> {
        let ParentSeen::Inner(node) = place.hop.parent else {
            return None;
        };
        if first + 1 >= node.children() {
            return None;
        }
        let bounds = place.bounds_of(probe, first, first + 1)?;
        let (Child::Leaf(left), Child::Leaf(right)) = (node.child(first)?, node.child(first + 1)?)
        else {
            return None;
        };
        let middle = key_between(&node, first, probe)?;
        let (left, right) = (left.see()?.try_latch()?, right.see()?.try_latch()?);
        let mounted = left.leaf().mount().is_some();
        if mounted != right.leaf().mount().is_some() {
            return None;
        }
        let depth = common_prefix(&bounds.start, bounds.end.as_deref());
        let parts = [&left, &right].map(|leaf| (leaf, &middle[depth..leaf.leaf().depth()]));
        let before = left.arena_bytes() + right.arena_bytes();
        let node = node.try_latch()?;
        let mount = || self.union(mounted);
        let new = LeafLatched::joined(&self.memory, guard, &parts, depth, before, mount)?;
        node.set_child(first, new.leaf().word());
        let freed = before - new.arena_bytes() + node.remove(&self.memory, first);
        left.retire(&self.memory);
        right.retire(&self.memory);
        self.counters.add(Delta {
            bytes: -freed,
            mounts: -isize::from(mounted),
            ..Delta::default()
        });
        Some(freed)
    }

    /// Makes the node at `place` smaller, or takes it out.
    fn merge_inner(&self, guard: &Guard<'_>, place: &Place<'_>, probe: Probe<'_>) -> Option<isize> {
        let seen = place.node()?;
        let at = place.hop.at;
        if seen.children() == 1 {
            let node = seen.try_latch()?;
            let parent = place.hop.parent.try_latch()?;
            return Some(self.pull_up(&parent, at, node));
        }
        if seen.used_bytes() > JOINED_INNER_BYTES {
            return None;
        }
        at.checked_sub(1)
            .and_then(|left| self.join_nodes(guard, place, probe, left))
            .or_else(|| self.join_nodes(guard, place, probe, at))
            .or_else(|| self.shrink(guard, place))
    }

    /// Puts the only child of `node` in its place.
    fn pull_up(&self, parent: &ParentLatched<'_>, at: usize, node: InnerLatched<'_>) -> isize {
        let word = node.child_word(0);
        let mut freed = node.arena_bytes();
        self.counters.add(Delta {
            bytes: -freed,
            ..Delta::default()
        });
        if word.is_empty() {
            let mounted = word.is_mount();
            freed += self.empty(parent, at, mounted, isize::from(mounted));
        } else {
            parent.set(at, word);
        }
        node.retire(&self.memory);
        freed
    }

    /// Joins the nodes `first` and `first + 1`, of one level, of the parent at `place`.
    fn join_nodes(
        &self,
        guard: &Guard<'_>,
        place: &Place<'_>,
        probe: Probe<'_>,
        first: usize,
    ) -> Option<isize> {
        let ParentSeen::Inner(parent) = place.hop.parent else {
            return None;
        };
        if first + 1 >= parent.children() {
            return None;
        }
        let bounds = place.bounds_of(probe, first, first + 1)?;
        let (Child::Inner(left), Child::Inner(right)) =
            (parent.child(first)?, parent.child(first + 1)?)
        else {
            return None;
        };
        let middle = key_between(&parent, first, probe)?;
        let (left, right) = (left.see()?, right.see()?);
        let level = left.node().level();
        if level != right.node().level()
            || left.used_bytes() + right.used_bytes() > JOINED_INNER_BYTES
        {
            return None;
        }
        let (left, right) = (left.try_latch()?, right.try_latch()?);
        let depth = common_prefix(&bounds.start, bounds.end.as_deref());
        let mut parts = Parts::default();
        parts.add(&left, &middle[depth..left.meta().depth]);
        parts.separators.push(middle[depth..].to_vec());
        parts.add(&right, &middle[depth..right.meta().depth]);
        if parts.bytes() > JOINED_INNER_BYTES {
            return None;
        }
        let parent = parent.try_latch()?;
        let new = parts.build(&self.memory, guard, level, depth, 0, Room::Some);
        parent.set_child(first, new.node().word());
        let before = left.arena_bytes() + right.arena_bytes();
        let freed = before - new.arena_bytes() + parent.remove(&self.memory, first);
        left.retire(&self.memory);
        right.retire(&self.memory);
        self.counters.add(Delta {
            bytes: -freed,
            ..Delta::default()
        });
        Some(freed)
    }

    /// Replaces the node at `place` by a smaller one.
    fn shrink(&self, guard: &Guard<'_>, place: &Place<'_>) -> Option<isize> {
        let seen = place.node()?;
        if seen.used_bytes() * SPARSE_DIVISOR > seen.node().size() {
            return None;
        }
        let node = seen.try_latch()?;
        let parent = place.hop.parent.try_latch()?;
        let mut parts = Parts::default();
        parts.add(&node, &[]);
        let (_, bytes) = parts.size(0, Room::Some);
        if Memory::class_size(bytes) >= Memory::size_of(node.node().block()) {
            return None;
        }
        let meta = node.meta();
        let new = parts.build(&self.memory, guard, meta.level, meta.depth, 0, Room::Some);
        parent.set(place.hop.at, new.node().word());
        let freed = node.arena_bytes() - new.arena_bytes();
        node.retire(&self.memory);
        self.counters.add(Delta {
            bytes: -freed,
            ..Delta::default()
        });
        // Where memory is tight, blocks may be larger than they were asked for.
        (freed > 0).then_some(freed)
    }
}

/// The whole key of separator `at` of `node`, which `probe` led to; `None` when the node changed.
fn key_between(node: &InnerSeen<'_>, at: usize, probe: Probe<'_>) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    probe.fill(node.node().depth(), &mut key);
    node.push_separator(at, &mut key)?;
    Some(key)
}
