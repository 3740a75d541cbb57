//! Going down to a key: the ways of reads and writes.
//!
//! Threads: any, under a guard. No latch is taken.

#![forbid(unsafe_code)]

use super::{Balanced, inner::Child, parent::ParentSeen, path, place::Place};
use crate::{
    mem::Guard,
    x::{
        Order,
        bounds::{Passed, Probe},
        root::Root,
        tree::{Descend, Spot},
    },
};

impl Descend for Balanced {
    fn try_descend<'g>(
        root: &'g Root,
        guard: &'g Guard<'_>,
        probe: Probe<'_>,
    ) -> Option<Place<'g>> {
        path::try_descend(root, guard, probe, 0)
    }

    /// Stays: where the next range begins is a separator, which has to be put together.
    fn try_descend_past<'g>(
        root: &'g Root,
        guard: &'g Guard<'_>,
        probe: Probe<'_>,
        _: Order,
        _: &mut Passed,
    ) -> Option<Place<'g>> {
        Self::try_descend(root, guard, probe)
    }

    #[inline]
    fn try_find<'g>(root: &'g Root, guard: &'g Guard<'_>, key: &[u8]) -> Option<Spot<'g>> {
        let mut child = ParentSeen::Root(root.see(guard)).child(0);
        loop {
            match child? {
                Child::Inner(node) => child = node.see().and_then(|node| node.child_for(key)),
                Child::Leaf(leaf) => return leaf.see().map(Spot::Leaf),
                Child::Empty(mount) => return Some(Spot::Empty(mount)),
            }
        }
    }
}
