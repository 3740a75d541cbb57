//! What a tree was rid of as a whole, until it is taken apart.
//!
//! Threads: any may add; one at a time takes apart, in steps. Locks: `in_work` before `added`, so
//! that who adds waits for nobody who takes apart.

#![forbid(unsafe_code)]

use super::child::ChildWord;
use parking_lot::{Mutex, MutexGuard};

/// Words of subtrees to which nothing leads any more.
#[derive(Default)]
pub(crate) struct Detached {
    added: Mutex<Vec<ChildWord>>,
    in_work: Mutex<Vec<ChildWord>>,
}

impl Detached {
    pub(crate) fn add(&self, word: ChildWord) {
        self.added.lock().push(word);
    }

    /// What is there now, for one who takes it apart, and puts nothing else in than what he found
    /// inside. Waits for the step of another one.
    pub(crate) fn work(&self) -> MutexGuard<'_, Vec<ChildWord>> {
        let mut work = self.in_work.lock();
        work.append(&mut self.added.lock());
        work
    }

    /// All of it, of a tree that is being dropped.
    pub(crate) fn take(&mut self) -> Vec<ChildWord> {
        let mut all = std::mem::take(self.in_work.get_mut());
        all.append(self.added.get_mut());
        all
    }
}
