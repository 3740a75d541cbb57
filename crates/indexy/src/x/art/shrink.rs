//! Giving memory back when entries are gone: leaves shrink and vanish, nodes without anything below vanish.
//!
//! All of it is best effort: a latch that is not free is not waited for, the rest stays for the next time.
//!
//! Keeps: a range that swallows others is mounted if one of them was, with a fresh stamp (I3).

#![forbid(unsafe_code)]

use super::{
    Art,
    counts::Delta,
    leaf::{LeafLatched, split::leaf_bytes},
    parent::{ParentLatched, ParentSeen},
    reshape::leaf_arena_bytes,
    search::{Place, Probe, Spot},
};
use crate::{
    mem::{Guard, Memory},
    x::Stamp,
};

/// A leaf is rebuilt when less than one part in so many of it is used.
const SPARSE: usize = 2;
/// Smaller leaves are not rebuilt.
const SMALL_LEAF_BYTES: usize = 128;

impl Art {
    /// After entries were dropped from `leaf`, which is at `place`: makes it fit what is left. True when the
    /// range is empty now, so that nodes above may be.
    pub(super) fn tidy<'g>(
        &self,
        guard: &'g Guard<'_>,
        place: &Place<'g>,
        leaf: LeafLatched<'g>,
    ) -> bool {
        let meta = leaf.leaf().meta();
        let size = leaf.leaf().size();
        let used = leaf_bytes(meta.n, size - meta.top - meta.dead);
        if meta.n > 0 && (size <= SMALL_LEAF_BYTES || used * SPARSE >= size) {
            return false;
        }
        let Some(parent) = place.parent.try_latch() else {
            return false;
        };
        if meta.n > 0 {
            self.resize(guard, &parent, place.symbol, leaf, used);
            return false;
        }
        self.vanish(&parent, place, leaf);
        true
    }

    /// Replaces `leaf`, which has no entries, by an empty range.
    pub(super) fn vanish<'g>(
        &self,
        parent: &ParentLatched<'g>,
        place: &Place<'g>,
        leaf: LeafLatched<'g>,
    ) {
        let bytes = -leaf_arena_bytes(&leaf);
        let mounted = leaf.mount().is_some();
        let mount = mounted.then(|| self.tick());
        let mounts = parent.empty_leaf(&self.memory, place.symbol, leaf, mount);
        let mounts = mounts - isize::from(mounted);
        self.counts.add(Delta {
            bytes,
            mounts,
            ..Delta::default()
        });
    }

    /// Replaces the nodes on the way to `key` that have nothing below them by empty ranges. Returns the bytes freed.
    pub(super) fn collapse(&self, guard: &Guard<'_>, probe: Probe<'_>) -> usize {
        let mut freed = 0;
        loop {
            let place = self.descend(guard, probe);
            match self.collapse_parent(&place) {
                Some(bytes) => freed += bytes,
                None => return freed,
            }
        }
    }

    fn collapse_parent(&self, place: &Place<'_>) -> Option<usize> {
        let (Spot::Empty(_), ParentSeen::Inner(node)) = (place.spot, place.parent) else {
            return None;
        };
        let (above, symbol) = place.above?;
        let node = node.try_latch()?;
        let mut mount: Option<Stamp> = node.gap();
        let mut bare = true;
        node.node().for_each_child(|_, _, word| {
            bare &= word.is_empty();
            if word.is_mount() {
                mount = Some(0);
            }
        });
        if !bare {
            return None;
        }
        let above = above.try_latch()?;
        let bytes = Memory::size_of(node.node().block());
        let own = node.mounts();
        let mount = mount.map(|_| self.tick());
        let mounts = above.empty_inner(&self.memory, symbol, node, mount) - own;
        self.counts.add(Delta {
            bytes: -(bytes as isize),
            mounts,
            ..Delta::default()
        });
        Some(bytes)
    }
}
