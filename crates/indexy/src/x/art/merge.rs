//! Giving memory back above leaves: small leaves are joined, nodes that hold a single thing are
//! pulled up, nodes that hold nothing vanish, large nodes that hold little become smaller ones.
//!
//! Best effort: a latch that is not free is not waited for, the rest stays for the next time.
//! Nothing is done that does not free bytes.
//!
//! Keeps: a range that takes others in is mounted if one of them was, with a fresh stamp (I3); a
//! leaf made of two remembers the later run (I4).

#![forbid(unsafe_code)]

use super::{
    Art,
    inner::{Child, InnerLatched, Kind},
    parent::{ParentLatched, ParentSeen},
    place::Place,
    reshape::arena_bytes,
    symbol::{END, Symbol},
};
use crate::{
    mem::Guard,
    x::{bounds::Probe, counters::Delta, leaf::LeafLatched},
};

/// A node becomes one of a smaller kind when that is filled by no more than so many parts of four.
const FILLED_QUARTERS: usize = 3;

impl Art {
    /// Merges around `probe` as long as that should free bytes. Returns how many it freed: less
    /// than none where memory is tight, and blocks are larger than they were asked for.
    pub(super) fn merge_around(&self, guard: &Guard<'_>, probe: Probe<'_>) -> isize {
        let mut freed = 0;
        loop {
            let place = self.descend(guard, probe);
            match self.merge_here(guard, &place) {
                Some(bytes) => freed += bytes,
                None => return freed,
            }
        }
    }

    fn merge_here<'g>(&self, guard: &'g Guard<'_>, place: &Place<'g>) -> Option<isize> {
        let (ParentSeen::Inner(node), Some((above, symbol))) = (place.parent, place.above) else {
            return None;
        };
        let node = node.try_latch()?;
        let census = node.census();
        if census.full >= 2 {
            if let Some(freed) = self.join_left(guard, &node, place) {
                return Some(freed);
            }
            return self.shrink_kind(guard, above, symbol, node, census.children);
        }
        let above = above.try_latch()?;
        let mounted = census.mounts > 0;
        match node.resolve(census.first_full) {
            Child::Empty(_) => Some(self.drop_node(&above, symbol, node, mounted)),
            Child::Leaf(leaf) => {
                let leaf = leaf.see()?.try_latch()?;
                let mounted = mounted || leaf.leaf().mount().is_some();
                self.pull_up_leaf(guard, &above, symbol, node, leaf, mounted)
            }
            Child::Inner(below) => {
                let below = below.see()?.try_latch()?;
                let byte = census.first_full.checked_sub(1)? as u8;
                self.pull_up_inner(guard, &above, symbol, node, below, byte, mounted)
            }
        }
    }

    /// Replaces a node with nothing below it by an empty range.
    fn drop_node<'g>(
        &self,
        above: &ParentLatched<'g>,
        symbol: Symbol,
        node: InnerLatched<'g>,
        mounted: bool,
    ) -> isize {
        let bytes = arena_bytes(node.node());
        let own = node.mounts();
        let mounts = above.empty_inner(&self.memory, symbol, node, self.union(mounted)) - own;
        self.counters.add(Delta {
            bytes: -bytes,
            mounts,
            ..Delta::default()
        });
        bytes
    }

    /// Joins the small leaf at `place` with the one before it.
    fn join_left<'g>(
        &self,
        guard: &'g Guard<'_>,
        node: &InnerLatched<'g>,
        place: &Place<'g>,
    ) -> Option<isize> {
        let right = place.leaf()?;
        let (first, _) = node.range(place.symbol);
        if first == END || !LeafLatched::is_small(right.leaf().len()) {
            return None;
        }
        let Child::Leaf(left) = node.resolve(first - 1) else {
            return None;
        };
        let (left, right) = (left.see()?.try_latch()?, right.try_latch()?);
        let mounted = left.leaf().mount().is_some();
        if mounted != right.leaf().mount().is_some() {
            return None;
        }
        let before = left.arena_bytes() + right.arena_bytes();
        let parts = [(&left, &[][..]), (&right, &[])];
        let mount = || self.union(mounted);
        let new = LeafLatched::joined(&self.memory, guard, &parts, place.depth, before, mount)?;
        node.join_leaves(&self.memory, place.symbol, left, right, new.leaf());
        let bytes = new.arena_bytes() - before;
        let mounts = -isize::from(mounted);
        self.counters.add(Delta {
            bytes,
            mounts,
            ..Delta::default()
        });
        Some(-bytes)
    }

    /// Replaces `node` by a smaller copy, if it has few enough children.
    fn shrink_kind<'g>(
        &self,
        guard: &'g Guard<'_>,
        above: ParentSeen<'g>,
        symbol: Symbol,
        node: InnerLatched<'g>,
        children: usize,
    ) -> Option<isize> {
        let roomy = (children * 4).div_ceil(FILLED_QUARTERS);
        let kind = Kind::for_children(roomy);
        if kind >= node.node().shape().kind {
            return None;
        }
        let above = above.try_latch()?;
        let new = node.copy(&self.memory, guard, kind, 0);
        let bytes = arena_bytes(new) - arena_bytes(node.node());
        above.swap_inner(&self.memory, symbol, node, new);
        self.counters.add(Delta {
            bytes,
            ..Delta::default()
        });
        Some(-bytes)
    }

    /// Puts the only leaf below `node` in its place.
    fn pull_up_leaf<'g>(
        &self,
        guard: &'g Guard<'_>,
        above: &ParentLatched<'g>,
        symbol: Symbol,
        node: InnerLatched<'g>,
        leaf: LeafLatched<'g>,
        mounted: bool,
    ) -> Option<isize> {
        let front = front(above, symbol, &node);
        let depth = leaf.leaf().depth() - front.len();
        let before = arena_bytes(node.node()) + leaf.arena_bytes();
        let own = node.mounts() + isize::from(leaf.leaf().mount().is_some());
        let mount = || self.union(mounted);
        let parts = [(&leaf, &front[..])];
        let new = LeafLatched::joined(&self.memory, guard, &parts, depth, before, mount)?;
        above.pull_up_leaf(&self.memory, symbol, node, leaf, new.leaf());
        let bytes = new.arena_bytes() - before;
        let mounts = isize::from(mounted) - own;
        self.counters.add(Delta {
            bytes,
            mounts,
            ..Delta::default()
        });
        Some(-bytes)
    }

    /// Puts the only node below `node`, at `byte`, in its place, with a prefix that covers both.
    #[allow(clippy::too_many_arguments)]
    fn pull_up_inner<'g>(
        &self,
        guard: &'g Guard<'_>,
        above: &ParentLatched<'g>,
        symbol: Symbol,
        node: InnerLatched<'g>,
        below: InnerLatched<'g>,
        byte: u8,
        mounted: bool,
    ) -> Option<isize> {
        let mut prefix = Vec::new();
        node.node().push_prefix(&mut prefix);
        prefix.push(byte);
        below.node().push_prefix(&mut prefix);
        let mounted = mounted || below.gap().is_some();
        let before = arena_bytes(node.node()) + arena_bytes(below.node());
        let own = node.mounts() + below.mounts();
        let new = below.copy_under(&self.memory, guard, &prefix, self.union(mounted));
        let bytes = arena_bytes(new) - before;
        let mounts = new.mounts() - own;
        above.pull_up_inner(&self.memory, symbol, node, below, new);
        self.counters.add(Delta {
            bytes,
            mounts,
            ..Delta::default()
        });
        Some(-bytes)
    }
}

/// What comes before the suffixes of the leaves below `node` when they hang on `above`.
fn front(above: &ParentLatched<'_>, symbol: Symbol, node: &InnerLatched<'_>) -> Vec<u8> {
    let mut front = Vec::new();
    if !above.is_root() {
        front.push((symbol - 1) as u8);
    }
    node.node().push_prefix(&mut front);
    front
}
