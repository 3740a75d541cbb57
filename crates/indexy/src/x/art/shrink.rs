//! Giving memory back when entries are gone or shorter: leaves shrink and vanish.
//!
//! Best effort: a latch that is not free is not waited for, the rest stays for the next time.
//!
//! Keeps: a range that takes others in is mounted if one of them was, with a fresh stamp (I3).
//! Not here: joining leaves and dropping nodes (`merge.rs`).

#![forbid(unsafe_code)]

use super::{Art, Radix, parent::ParentLatched, place::Place};
use crate::{
    mem::Guard,
    x::{
        bounds::Probe,
        counters::Delta,
        leaf::{LeafLatched, Spare},
        tree::Shrink,
    },
};

impl Shrink for Radix {
    const MERGES_PARENTS: bool = true;

    fn tidy<'g>(art: &Art, guard: &'g Guard<'_>, place: &Place<'g>, leaf: LeafLatched<'g>) -> bool {
        let smaller = leaf.smaller();
        if leaf.leaf().len() > 0 && smaller.is_none() {
            return false;
        }
        let Some(parent) = place.parent.try_latch() else {
            return false;
        };
        match smaller.filter(|contents| contents.n > 0) {
            Some(contents) => {
                art.resize(guard, &parent, place.symbol, leaf, &contents, Spare::None);
            }
            None => {
                Self::vanish(art, &parent, place, leaf);
            }
        }
        true
    }

    fn keep<'g>(
        art: &Art,
        guard: &'g Guard<'_>,
        parent: &ParentLatched<'g>,
        place: &Place<'g>,
        leaf: LeafLatched<'g>,
        keep: u64,
    ) -> isize {
        let new = leaf.part(&art.memory, guard, keep, 0, Spare::None);
        let freed = leaf.arena_bytes() - new.arena_bytes();
        art.counters.add(Delta {
            bytes: -freed,
            ..Delta::default()
        });
        parent.swap_leaf(&art.memory, place.symbol, leaf, new.leaf());
        freed
    }

    fn vanish<'g>(
        art: &Art,
        parent: &ParentLatched<'g>,
        place: &Place<'g>,
        leaf: LeafLatched<'g>,
    ) -> usize {
        let bytes = leaf.arena_bytes();
        let mounted = leaf.leaf().mount().is_some();
        let mount = art.union(mounted);
        let mounts = parent.empty_leaf(&art.memory, place.symbol, leaf, mount);
        art.counters.add(Delta {
            bytes: -bytes,
            mounts: mounts - isize::from(mounted),
            ..Delta::default()
        });
        bytes.unsigned_abs()
    }

    fn mark_empty(art: &Art, place: &Place<'_>, mounted: bool) -> Option<()> {
        let mounts = match place.gap() {
            Some(gap) => gap.node.try_latch()?.set_gap(art.union(mounted)),
            None => {
                let parent = place.parent.try_latch()?;
                parent.remount(place.symbol, art.union(mounted))
            }
        };
        art.counters.add(Delta {
            mounts,
            ..Delta::default()
        });
        Some(())
    }

    fn merge(art: &Art, guard: &Guard<'_>, probe: Probe<'_>) -> isize {
        art.merge_around(guard, probe)
    }

    fn leave_emptying_slabs(art: &Art) {
        art.move_all();
    }
}
