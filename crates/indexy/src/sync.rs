//! The atomics of protocols that are checked by a model: everything of them that synchronizes comes
//! from here.
//!
//! In the library these are the standard ones. Two kinds of models check them:
//! - The memory model: a test compiles the protocol's file a second time, in a crate whose own
//!   `sync` module has the checker's types (`tests/latch_model.rs`), so that the library itself
//!   needs no switch and its layouts stay what they are.
//! - Interleavings of the whole index: in the library's own tests a scheduler may put another
//!   thread in at every [`point`] (`x/conformance/interleaved.rs`).
//!
//! Not here: the words of nodes (`mem/words.rs`), which lie over raw memory and are always the
//! standard ones.

#![forbid(unsafe_code)]

pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(test))]
pub(crate) use std::{hint::spin_loop, thread::yield_now};

/// Between two steps that other threads can tell apart.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn point() {}

#[cfg(test)]
pub(crate) use scheduled::{point, spin_loop, while_scheduled, yield_now};

#[cfg(test)]
mod scheduled {
    use std::cell::Cell;

    thread_local!(static SCHEDULED: Cell<bool> = const { Cell::new(false) });

    /// Runs `body`, the steps of whose threads a scheduler chooses. They all run on this thread of
    /// the system.
    pub(crate) fn while_scheduled(body: impl FnOnce()) {
        struct End;
        impl Drop for End {
            fn drop(&mut self) {
                SCHEDULED.set(false);
            }
        }
        SCHEDULED.set(true);
        let _end = End;
        body();
    }

    /// See the library's.
    pub(crate) fn point() {
        if SCHEDULED.get() && !std::thread::panicking() {
            shuttle::thread::yield_now();
        }
    }

    pub(crate) fn spin_loop() {
        if SCHEDULED.get() {
            point();
        } else {
            std::hint::spin_loop();
        }
    }

    pub(crate) fn yield_now() {
        if SCHEDULED.get() {
            point();
        } else {
            std::thread::yield_now();
        }
    }
}
