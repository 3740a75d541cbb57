//! Looking a key up.
//!
//! Keeps: I1 (an entry wins; without one, only a mount makes Y's word count).
//! Threads: any, under a guard. No latch is taken.

use super::{BPlus, child::Child, leaf::LeafSeen, parent::ParentSeen};
use crate::{
    mem::Guard,
    x::{Lookup, patience::Patience, root::Root},
};

impl BPlus {
    /// See [`IndexX::get`](crate::x::IndexX::get).
    #[inline]
    pub(super) fn search<R, F: FnOnce(&[u8]) -> R>(&self, key: &[u8], found: F) -> Lookup<R> {
        let guard = self.memory.enter();
        let track = self.tracks();
        let mut patience = Patience::default();
        let mut found = found;
        loop {
            match try_search(&self.root, &guard, key, track, found) {
                Ok(answer) => return answer,
                Err(again) => found = again,
            }
            patience.wait();
        }
    }
}

impl BPlus {
    /// The leaf of `key`, if there is one and nothing changes on the way: what most writes need to know of it.
    #[inline]
    pub(super) fn leaf_of<'g>(&'g self, guard: &'g Guard<'_>, key: &[u8]) -> Option<LeafSeen<'g>> {
        let mut child = ParentSeen::Root(self.root.see(guard)).child(0);
        loop {
            match child? {
                Child::Inner(node) => child = node.see().and_then(|node| node.child_for(key)),
                Child::Leaf(leaf) => return leaf.see(),
                Child::Empty(_) => return None,
            }
        }
    }
}

/// `Err` gives `found` back: something changed on the way.
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
