//! Going down to a key: the ways of reads and writes.
//!
//! Keeps: I1 (an entry wins; without one, only a mount makes Y's word count).
//! Threads: any, under a guard. No latch is taken.

#![forbid(unsafe_code)]

use super::{Balanced, inner::Child, leaf::LeafSeen, parent::ParentSeen, path, place::Place};
use crate::{
    mem::Guard,
    x::{Lookup, bounds::Probe, root::Root, tree::Descend},
};

impl Descend for Balanced {
    fn try_descend<'g>(
        root: &'g Root,
        guard: &'g Guard<'_>,
        probe: Probe<'_>,
    ) -> Option<Place<'g>> {
        path::try_descend(root, guard, probe, 0)
    }

    #[inline]
    fn leaf_of<'g>(
        root: &'g Root,
        guard: &'g Guard<'_>,
        key: &[u8],
    ) -> Option<(LeafSeen<'g>, usize)> {
        let mut child = ParentSeen::Root(root.see(guard)).child(0);
        loop {
            match child? {
                Child::Inner(node) => child = node.see().and_then(|node| node.child_for(key)),
                Child::Leaf(leaf) => {
                    let leaf = leaf.see()?;
                    leaf.leaf().prefetch_to_write();
                    return Some((leaf, leaf.leaf().depth()));
                }
                Child::Empty(_) => return None,
            }
        }
    }

    #[inline]
    fn try_search<R, F: FnOnce(&[u8]) -> R>(
        root: &Root,
        guard: &Guard<'_>,
        key: &[u8],
        track: bool,
        found: F,
    ) -> Result<Lookup<R>, F> {
        let mut child = ParentSeen::Root(root.see(guard)).child(0);
        loop {
            match child {
                Some(Child::Inner(node)) => {
                    child = node.see().and_then(|node| node.child_for(key));
                }
                Some(Child::Leaf(leaf)) => {
                    let suffix = key.get(leaf.depth()..).unwrap_or_default();
                    return match leaf.see() {
                        Some(leaf) => leaf.get(suffix, track, found),
                        None => Err(found),
                    };
                }
                // I1: no entry.
                Some(Child::Empty(mount)) => {
                    return Ok(mount.map_or(Lookup::Absent, Lookup::AskY));
                }
                None => return Err(found),
            }
        }
    }
}
