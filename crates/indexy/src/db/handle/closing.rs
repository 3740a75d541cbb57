//! Whether the database is open, and which thread ends it.
//!
//! Threads: any. The first one to ask ends the database; others wait for it, unless it waits for
//! them. What ends every wait: [`InProgress`] is dropped, also by a panic.

#![forbid(unsafe_code)]

use parking_lot::{Condvar, Mutex};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread::ThreadId,
};

/// See the module header.
#[derive(Default)]
pub(crate) struct Closing {
    /// Stays set.
    begun: AtomicBool,
    /// The thread that is at it; none before and afterwards.
    thread: Mutex<Option<ThreadId>>,
    ended: Condvar,
}

/// While it lives its thread ends the database.
pub(super) struct InProgress<'a>(&'a Closing);

impl Closing {
    /// Cost: one load.
    pub(crate) fn has_begun(&self) -> bool {
        // Pairs with the swap in `begin`.
        self.begun.load(Ordering::Acquire)
    }

    /// `None`: somebody has begun before.
    pub(super) fn begin(&self) -> Option<InProgress<'_>> {
        let mut thread = self.thread.lock();
        if self.begun.swap(true, Ordering::AcqRel) {
            return None;
        }
        *thread = Some(std::thread::current().id());
        Some(InProgress(self))
    }

    /// Waits until the database has ended. False, at once, if this thread would wait for itself:
    /// it is the one that ends the database, or that one waits for it (`awaited`).
    pub(super) fn wait(&self, awaited: bool) -> bool {
        let mut thread = self.thread.lock();
        while let Some(ends) = *thread {
            if awaited || ends == std::thread::current().id() {
                return false;
            }
            self.ended.wait(&mut thread);
        }
        true
    }
}

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        *self.0.thread.lock() = None;
        self.0.ended.notify_all();
    }
}
