//! Looking a key up.
//!
//! Keeps: I1 (an entry wins; without one, only a mount makes Y's word count).
//! Threads: any, under a guard. No latch is taken.

#![forbid(unsafe_code)]

use crate::x::{
    Lookup,
    backoff::Backoff,
    tree::{Descend, Spot, Tree},
};

impl<S: Descend> Tree<S> {
    /// See [`IndexX::get`](crate::x::IndexX::get).
    #[inline]
    pub(super) fn search<R, F: FnOnce(&[u8]) -> R>(&self, key: &[u8], found: F) -> Lookup<R> {
        let guard = self.memory.enter();
        let track = self.tracks_references();
        let mut backoff = Backoff::default();
        let mut found = found;
        loop {
            match S::try_find(&self.root, &guard, key) {
                Some(Spot::Leaf(leaf)) => {
                    let suffix = key.get(leaf.leaf().depth()..).unwrap_or_default();
                    match leaf.get(suffix, track, found) {
                        Ok(answer) => return answer,
                        Err(again) => found = again,
                    }
                }
                // I1: no entry; only a mount makes Y's word count.
                Some(Spot::Empty(mount)) => return mount.map_or(Lookup::Absent, Lookup::AskY),
                None => {}
            }
            backoff.wait();
        }
    }
}
