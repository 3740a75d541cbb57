//! Dropping everything at once.
//!
//! The root gets an empty range. What hung on it is taken apart from the top: each node and leaf is
//! latched, becomes obsolete and is retired. Whoever works inside holds a latch, which is waited
//! for; whoever comes there later finds it obsolete and goes down from the root again. A node that
//! is obsolete gets no other children, so that each block is met once.
//!
//! Keeps: I3 (a load that was under way finds a complete range, or goes with the rest).
//! Threads: one for each tree; cuts, loads and readers beside it. One latch is held at a time.

#![forbid(unsafe_code)]

use crate::x::{
    backoff::Backoff,
    child::ChildWord,
    counters::Delta,
    tree::{Kind, Tree},
};

impl<S: Kind> Tree<S> {
    /// See [`IndexX::clear`](crate::x::IndexX::clear).
    pub(super) fn drop_all(&self) {
        let mut backoff = Backoff::default();
        let all = loop {
            let guard = self.memory.enter();
            if let Some(root) = self.root.see(&guard).try_latch() {
                let all = root.word();
                root.set(ChildWord::EMPTY);
                break all;
            }
            backoff.wait();
        };
        let gone = S::take_apart(&self.memory, all);
        let less = |n: usize| -(n as isize);
        self.counters.add(Delta {
            bytes: less(gone.bytes),
            keys: less(gone.keys),
            tombstones: less(gone.tombstones),
            operands: less(gone.operands),
            dirty: less(gone.dirty),
            mounts: less(gone.mounts),
        });
    }
}
