//! Loads pause while Y changes behind X's back: a value that goes past X, a range that is removed.
//!
//! Y shows such a change when X has no entry that tells, and whoever read Y just before could load
//! what he read after somebody was told of the newer state. So the writer *pauses* loads, then
//! gives the keys fresh stamps, then has Y show the change, then drops what X has of the keys,
//! which changes the stamps again, and ends the pause. A load looks whether there is a pause just
//! before it takes place.
//!
//! Keeps: I3, also for plain readers meanwhile. Suppose that what was read of Y before the change
//! is loaded. Its search was before the first stamps: then the load was, too, and whoever asks is
//! told by X until the entry goes, which is after Y shows the change. Or it was between the first
//! stamps and the last ones: then the load found a pause, or came after the last ones, and its
//! stamp is old. Or it was after the last ones: then Y said the new state.
//!
//! Threads: any number of writers, and of loads, which look at one word.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// See the module header.
#[derive(Debug, Default)]
pub(crate) struct LoadPause(AtomicUsize);

/// While it lives, nothing is loaded.
#[derive(Debug)]
pub(crate) struct Paused<'a>(&'a LoadPause);

impl LoadPause {
    /// Before the first stamp.
    pub(crate) fn begin(&self) -> Paused<'_> {
        self.0.fetch_add(1, SeqCst);
        Paused(self)
    }

    /// Just before a load.
    pub(super) fn is_on(&self) -> bool {
        self.0.load(SeqCst) != 0
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, SeqCst);
    }
}
