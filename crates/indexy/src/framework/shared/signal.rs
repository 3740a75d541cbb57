//! Waking a background thread.

#![forbid(unsafe_code)]

use parking_lot::{Condvar, Mutex};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Wakes one background thread. Notifying an already pending signal costs one load.
#[derive(Default)]
pub(crate) struct Signal {
    pending: AtomicBool,
    lock: Mutex<()>,
    condvar: Condvar,
}

impl Signal {
    pub(crate) fn notify(&self) {
        // Pairs with the swap in `wait`: who sees `pending` still set is served by the coming wake-up.
        if !self.pending.load(Ordering::Relaxed) && !self.pending.swap(true, Ordering::AcqRel) {
            let _guard = self.lock.lock();
            self.condvar.notify_one();
        }
    }

    /// Waits until notified or `limit` has passed; true if notified.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let mut guard = self.lock.lock();
        if !self.pending.load(Ordering::Acquire) {
            self.condvar.wait_for(&mut guard, limit);
        }
        self.pending.swap(false, Ordering::AcqRel)
    }
}
