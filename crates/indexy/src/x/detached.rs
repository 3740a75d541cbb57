//! What a tree was rid of as a whole, until it is taken apart.
//!
//! Its entries stop counting when it is detached. A load or a cut that is inside by then counts
//! later what it did, so the two are compared in the end: what was said to be there, and what was
//! found.
//!
//! Threads: any may add; one at a time takes apart, in steps. Locks: `in_work` before `added`, so
//! that who adds waits for nobody who takes apart.

#![forbid(unsafe_code)]

use super::{child::ChildWord, counters::Delta};
use parking_lot::{Mutex, MutexGuard};

/// See the module header.
#[derive(Default)]
pub(crate) struct Detached {
    added: Mutex<Parts>,
    in_work: Mutex<Parts>,
}

/// Subtrees to which nothing leads any more.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) words: Vec<ChildWord>,
    /// What was said to be in them, less what was found so far.
    pub(crate) held: Delta,
}

impl Parts {
    fn append(&mut self, other: &mut Self) {
        self.words.append(&mut other.words);
        self.held = self.held.plus(std::mem::take(&mut other.held));
    }
}

impl Detached {
    /// `held`: what is counted of it, about.
    pub(crate) fn add(&self, word: ChildWord, held: Delta) {
        let words = vec![word];
        self.added.lock().append(&mut Parts { words, held });
    }

    /// What is there now, for one who takes it apart, and puts nothing else in than what he found
    /// inside. Waits for the step of another one.
    pub(crate) fn work(&self) -> MutexGuard<'_, Parts> {
        let mut work = self.in_work.lock();
        work.append(&mut self.added.lock());
        work
    }

    /// All of it, of a tree that is being dropped.
    pub(crate) fn take(&mut self) -> Vec<ChildWord> {
        let mut all = std::mem::take(self.in_work.get_mut());
        all.append(self.added.get_mut());
        all.words
    }
}
