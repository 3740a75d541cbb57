//! How a thread waits for a modelled device: asleep, never in a loop, and right on average down to
//! times that no timer has.
//!
//! Each thread knows by how much its modelled time is *ahead* of the clock. An operation begins at
//! its modelled time. Where its end is less than [`NAP`] ahead, the thread goes on and owes the
//! rest to the next operation; else it sleeps up to that end. What a timer wakes it too late, up to
//! [`MOST_LATE`], is taken off the next operation. So a thousand operations of 1 µs take a
//! millisecond, in naps of 50 µs, and each of them by itself is wrong by a nap at most. A thread
//! that waited for a processor for longer is late in earnest.
//!
//! Threads: any; all state is the thread's own. A thread that waits gets a timer slack of 1 ns (50
//! µs by default), for good.

use rustix::{
    thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack},
    time::{Timespec, clock_gettime},
};
use std::{cell::Cell, num::NonZeroU64};

/// A shorter sleep costs more processor than it is worth, and is not short.
pub(super) const NAP: i64 = 50_000;
/// What the timer of a busy machine is late by.
const MOST_LATE: i64 = 100_000;
const SECOND: u64 = 1_000_000_000;

thread_local! {
    /// Nanoseconds by which the modelled time is ahead of the clock.
    static AHEAD: Cell<i64> = const { Cell::new(0) };
    static PRECISE: Cell<bool> = const { Cell::new(false) };
}

/// Nanoseconds of the clock.
pub(super) fn clock() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * SECOND + now.tv_nsec.unsigned_abs()
}

/// When an operation of this thread begins.
pub(super) fn begin() -> u64 {
    clock().saturating_add_signed(AHEAD.get())
}

/// The operation of this thread ends at `done`.
pub(super) fn end(done: u64) {
    let mut ahead = done.wrapping_sub(clock()).cast_signed();
    while ahead > NAP {
        sleep_until(done);
        ahead = done.wrapping_sub(clock()).cast_signed();
    }
    AHEAD.set(ahead.max(-MOST_LATE));
}

fn sleep_until(done: u64) {
    if !PRECISE.replace(true) {
        // Without it naps are longer, and what they are too long by is made up for.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
    }
    let until = Timespec {
        tv_sec: (done / SECOND).cast_signed(),
        tv_nsec: (done % SECOND).cast_signed(),
    };
    // A signal ends it early; `end` looks at the clock.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &until);
}
