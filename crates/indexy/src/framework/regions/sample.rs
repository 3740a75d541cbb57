//! Thread-local sampling of accesses: about one in [`PERIOD`] (IndeXY II-C: 1 in 100).

#![forbid(unsafe_code)]

use std::{cell::Cell, sync::OnceLock, time::Instant};

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

/// Of `n` accesses at once, how many are counted. Cost: as [`due`].
pub(crate) fn due_of(n: usize) -> u32 {
    COUNTDOWN.with(|c| {
        let (left, n) = (u64::from(c.get()), n as u64);
        if n < left {
            c.set((left - n) as u32);
            return 0;
        }
        let (over, period) = (n - left, u64::from(PERIOD));
        c.set((period - over % period) as u32);
        u32::try_from(1 + over / period).unwrap_or(u32::MAX)
    })
}

/// Microseconds since the first call in this process, and never 0.
pub(crate) fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    1 + START.get_or_init(Instant::now).elapsed().as_micros() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_accesses_at_once_are_counted_as_one_by_one() {
        // A thread of its own, and so a countdown of its own.
        let counted = |chunks: &'static [usize]| {
            let count = move || chunks.iter().map(|&n| due_of(n)).sum::<u32>();
            std::thread::spawn(count).join().unwrap()
        };
        let one_by_one = |n| {
            let count = move || (0..n).filter(|_| due()).count() as u32;
            std::thread::spawn(count).join().unwrap()
        };
        for chunks in [
            &[96][..],
            &[97],
            &[1, 96, 97],
            &[1000, 0, 5, 4096],
            &[194, 1],
        ] {
            assert_eq!(
                counted(chunks),
                one_by_one(chunks.iter().sum()),
                "{chunks:?}"
            );
        }
    }
}
