//! Giving memory back when entries are gone: leaves shrink and vanish.
//!
//! Best effort: a latch that is not free is not waited for, the rest stays for the next time.
//!
//! Keeps: a range that swallows others is mounted if one of them was, with a fresh stamp (I3).
//! Not here: joining leaves and dropping nodes (`merge.rs`).

#![forbid(unsafe_code)]

use super::{
    Art,
    leaf::{LeafLatched, split::leaf_bytes},
    parent::ParentLatched,
    reshape::leaf_arena_bytes,
    search::Place,
};
use crate::{mem::Guard, x::counts::Delta};

/// A leaf is rebuilt when less than one part in so many of it is used.
const SPARSE: usize = 2;
/// Smaller leaves are not rebuilt.
const SMALL_LEAF_BYTES: usize = 128;

impl Art {
    /// After entries were dropped from `leaf`, which is at `place`: makes it fit what is left. True when
    /// that changed its size, so that it is worth while to look around it (`merge.rs`).
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
        } else {
            self.vanish(&parent, place, leaf);
        }
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
}
