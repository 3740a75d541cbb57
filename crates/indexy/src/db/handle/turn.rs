//! Whose turn it is to commit: everybody's, or that of one who has met too many conflicts.
//!
//! Threads: a commit shares the turn for as long as it takes; who runs alone has it from before its
//! transaction begins until that is over. Its own thread may commit other transactions meanwhile.

#![forbid(unsafe_code)]

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::{cell::RefCell, marker::PhantomData};

thread_local! {
    /// Addresses of the turns that this thread has alone.
    static ALONE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// See the module header.
#[derive(Debug, Default)]
pub(crate) struct Turn(RwLock<()>);

/// The turn, alone.
pub(in crate::db) struct Alone<'a> {
    turn: &'a Turn,
    _guard: RwLockWriteGuard<'a, ()>,
    /// It belongs to its thread.
    _not_send: PhantomData<*const ()>,
}

impl Turn {
    /// For a commit. `None`: this thread has the turn already.
    pub(in crate::db) fn share(&self) -> Option<RwLockReadGuard<'_, ()>> {
        let ours = ALONE.with_borrow(|turns| turns.contains(&self.address()));
        (!ours).then(|| self.0.read())
    }

    /// For a transaction and its commit; waits for commits under way. `None`: this thread has the
    /// turn already.
    pub(in crate::db) fn take(&self) -> Option<Alone<'_>> {
        let address = self.address();
        if ALONE.with_borrow(|turns| turns.contains(&address)) {
            return None;
        }
        let guard = self.0.write();
        ALONE.with_borrow_mut(|turns| turns.push(address));
        Some(Alone {
            turn: self,
            _guard: guard,
            _not_send: PhantomData,
        })
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        let address = self.turn.address();
        ALONE.with_borrow_mut(|turns| turns.retain(|turn| *turn != address));
    }
}
