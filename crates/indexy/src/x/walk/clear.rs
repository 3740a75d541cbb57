//! Dropping everything at once.
//!
//! The root gets an empty range. What hung on it is taken apart afterwards, in steps, from the top:
//! each node and leaf is latched, becomes obsolete and is retired. Whoever works inside holds a
//! latch, which is waited for; whoever comes there later finds it obsolete and goes down from the
//! root again. A node that is obsolete gets no other children, so that each block is met once.
//! Whoever came in before the root changed may stay longer than that: a reader, who has the tree as
//! it was when he went down, and a load, which goes with the rest.
//!
//! Keeps: I3 (a load that was under way finds a complete range, or goes with the rest).
//! Threads: one clears; any take apart, one at a time (`detached.rs`); cuts, loads and readers
//! beside them. One latch is held at a time.

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
        // Nobody writes: all that counts is what was there.
        let held = self.counters.total();
        self.counters.add(Delta::default().minus(held));
        self.detached.add(all, held);
    }

    /// See [`IndexX::take_apart`](crate::x::IndexX::take_apart).
    pub(super) fn take_detached_apart(&self, enough_bytes: usize) -> usize {
        let mut parts = self.detached.work();
        if parts.words.is_empty() {
            return 0;
        }
        let gone = S::take_apart(&self.memory, &mut parts.words, enough_bytes);
        parts.held = parts.held.minus(Delta::of(gone));
        if parts.words.is_empty() {
            self.counters.add(std::mem::take(&mut parts.held));
        }
        gone.bytes
    }
}
