//! Giving memory back when entries are gone: leaves shrink and vanish.
//!
//! Best effort: a latch that is not free is not waited for, the rest stays for the next time.
//!
//! Keeps: a range that takes others in is mounted if one of them was, with a fresh stamp (I3).
//! Not here: joining leaves and nodes (`merge.rs`).

#![forbid(unsafe_code)]

use super::{
    BPlus, Balanced,
    leaf::{Builder, Contents, LeafLatched, Shift, Spare},
    parent::ParentLatched,
    place::{Place, Site},
};
use crate::{
    mem::Guard,
    x::{
        bounds::Probe,
        counters::Delta,
        leaf::mask,
        tree::{Shrink, Spot},
    },
};

/// A leaf is rebuilt when less than one part in so many of it is used.
const SPARSE_DIVISOR: usize = 2;
/// Smaller leaves are not rebuilt.
const SMALL_LEAF_BYTES: usize = 128;

impl Shrink for Balanced {
    const MERGES_PARENTS: bool = false;

    fn tidy<'g>(
        tree: &BPlus,
        guard: &'g Guard<'_>,
        place: &Place<'g>,
        leaf: LeafLatched<'g>,
    ) -> bool {
        let old = leaf.stable();
        let mut contents = Contents::default();
        contents.add_from(old, mask(0..old.len()), Shift::Strip(0));
        let size = leaf.leaf().size();
        let dense = contents.bytes() * SPARSE_DIVISOR >= size;
        if contents.n > 0 && (size <= SMALL_LEAF_BYTES || dense) {
            return false;
        }
        let Some(parent) = place.hop.parent.try_latch() else {
            return false;
        };
        if contents.n > 0 {
            tree.resize(guard, &parent, place.hop.at, leaf, &contents, Spare::None);
        } else {
            Self::vanish(tree, &parent, place, leaf);
        }
        true
    }

    fn keep<'g>(
        tree: &BPlus,
        guard: &'g Guard<'_>,
        parent: &ParentLatched<'g>,
        place: &Place<'g>,
        leaf: LeafLatched<'g>,
        keep: u64,
    ) -> isize {
        let old = leaf.stable();
        let mut contents = Contents::default();
        contents.add_from(old, keep, Shift::Strip(0));
        let depth = old.raw().depth();
        let mut new = Builder::new(&tree.memory, guard, &contents, Spare::None, depth);
        new.push_from(old, keep, Shift::Strip(0));
        let new = new.finish(old.mount(), old.run());
        parent.set(place.hop.at, new.leaf().word());
        let freed = leaf.arena_bytes() - new.arena_bytes();
        tree.counters.add(Delta {
            bytes: -freed,
            ..Delta::default()
        });
        leaf.retire(&tree.memory);
        freed
    }

    fn vanish<'g>(
        tree: &BPlus,
        parent: &ParentLatched<'g>,
        place: &Place<'g>,
        leaf: LeafLatched<'g>,
    ) -> usize {
        let mounted = leaf.leaf().mount().is_some();
        let at = place.hop.at;
        let freed = tree.empty(parent, at, mounted, isize::from(mounted)) + leaf.arena_bytes();
        tree.counters.add(Delta {
            bytes: -leaf.arena_bytes(),
            ..Delta::default()
        });
        leaf.retire(&tree.memory);
        freed.unsigned_abs()
    }

    fn mark_empty(tree: &BPlus, place: &Place<'_>, mounted: bool) -> Option<()> {
        let Site::Range(Spot::Empty(mount)) = place.site else {
            return None;
        };
        let parent = place.hop.parent.try_latch()?;
        tree.empty(&parent, place.hop.at, mounted, isize::from(mount.is_some()));
        Some(())
    }

    fn merge(tree: &BPlus, guard: &Guard<'_>, probe: Probe<'_>) -> usize {
        tree.merge_around(guard, probe).unsigned_abs()
    }

    fn leave_emptying_slabs(tree: &BPlus) {
        tree.move_all();
    }
}

impl BPlus {
    /// Makes child `at` an empty range in place of what had `marks` mounted ranges. Returns the
    /// bytes freed in the parent.
    pub(super) fn empty(
        &self,
        parent: &ParentLatched<'_>,
        at: usize,
        mounted: bool,
        marks: isize,
    ) -> isize {
        let (mounts, bytes) = parent.put_empty(&self.memory, at, self.union(mounted));
        self.counters.add(Delta {
            bytes,
            mounts: mounts - marks,
            ..Delta::default()
        });
        -bytes
    }
}
