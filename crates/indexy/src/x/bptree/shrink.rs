//! Giving memory back when entries are gone or shorter: leaves shrink and vanish.
//!
//! Best effort: a latch that is not free is not waited for, the rest stays for the next time.
//!
//! Keeps: a range that takes others in is mounted if one of them was, with a fresh stamp (I3).
//! Not here: joining leaves and nodes (`merge.rs`).

#![forbid(unsafe_code)]

use super::{
    BPlus, Balanced,
    parent::ParentLatched,
    place::{Place, Site},
};
use crate::{
    mem::Guard,
    x::{
        bounds::Probe,
        counters::Delta,
        leaf::{LeafLatched, Spare},
        tree::{Shrink, Spot},
    },
};

impl Shrink for Balanced {
    const MERGES_PARENTS: bool = false;

    fn tidy<'g>(
        tree: &BPlus,
        guard: &'g Guard<'_>,
        place: &Place<'g>,
        leaf: LeafLatched<'g>,
    ) -> bool {
        let smaller = leaf.smaller();
        if leaf.leaf().len() > 0 && smaller.is_none() {
            return false;
        }
        let Some(parent) = place.hop.parent.try_latch() else {
            return false;
        };
        match smaller.filter(|contents| contents.n > 0) {
            Some(contents) => {
                tree.resize(guard, &parent, place.hop.at, leaf, &contents, Spare::None);
            }
            None => {
                Self::vanish(tree, &parent, place, leaf);
            }
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
        let new = leaf.part(&tree.memory, guard, keep, 0, Spare::None);
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

    fn merge(tree: &BPlus, guard: &Guard<'_>, probe: Probe<'_>) -> isize {
        tree.merge_around(guard, probe)
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
