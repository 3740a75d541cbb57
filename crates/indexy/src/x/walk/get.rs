//! Looking a key up.
//!
//! Keeps: I1 (an entry wins; without one, only a mount makes Y's word count).
//! Threads: any, under a guard. No latch is taken.

#![forbid(unsafe_code)]

use crate::x::{
    Lookup,
    backoff::Backoff,
    leaf::ValueCopy,
    tree::{Descend, Spot, Tree},
};

impl<S: Descend> Tree<S> {
    /// See [`IndexX::get`](crate::x::IndexX::get).
    #[inline]
    pub(super) fn search<R>(&self, key: &[u8], found: impl FnOnce(&[u8]) -> R) -> Lookup<R> {
        let guard = self.memory.enter();
        let track = self.tracks_references();
        let mut copy = ValueCopy::new();
        let mut backoff = Backoff::default();
        loop {
            match S::try_find(&self.root, &guard, key) {
                Some(Spot::Leaf(leaf)) => {
                    let suffix = key.get(leaf.leaf().depth()..).unwrap_or_default();
                    if let Some(answer) = leaf.get(suffix, track, &mut copy) {
                        return answer.map(|value| found(value.of(&copy)));
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
