//! Thread-local sampling of accesses: about one in [`PERIOD`] (IndeXY II-C: 1 in 100).

#![forbid(unsafe_code)]

use std::cell::Cell;

/// One access in this many is counted. A prime, so that regular access patterns do not hide from
/// it.
pub(crate) const PERIOD: u32 = 97;

thread_local! {
    static COUNTDOWN: Cell<u32> = const { Cell::new(PERIOD) };
}

/// True once in [`PERIOD`] calls of this thread. Cost: a decrement, nothing shared.
#[inline]
pub(crate) fn due() -> bool {
    COUNTDOWN.with(|c| {
        let left = c.get() - 1;
        c.set(if left == 0 { PERIOD } else { left });
        left == 0
    })
}
