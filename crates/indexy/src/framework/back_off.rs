//! When maintenance of a tree is tried again after it failed: later each time, and at once when a
//! run has worked meanwhile, because then a full device has room again.
//!
//! Pure: who asks says what time it is, and how many runs were written. Threads: one.

use crate::error::Error;
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// The first pause, and the longest: each is twice the one before.
const SHORTEST: Duration = Duration::from_millis(300);
const LONGEST: Duration = Duration::from_secs(10);

/// See the module header.
#[derive(Default)]
pub(super) struct BackOff {
    /// Trees whose maintenance failed, by their numbers.
    failed: HashMap<u32, Failed>,
}

struct Failed {
    error: Error,
    pause: Duration,
    until: Instant,
    runs: u64,
}

impl BackOff {
    /// Why `tree` is not to be tried `now`, after so many runs; `None`: it is.
    pub(super) fn holds(&self, tree: u32, now: Instant, runs: u64) -> Option<&Error> {
        let failed = self.failed.get(&tree)?;
        (now < failed.until && runs == failed.runs).then_some(&failed.error)
    }

    /// It was tried and failed with `error`.
    pub(super) fn failed(&mut self, tree: u32, error: Error, now: Instant, runs: u64) {
        let pause = match self.failed.get(&tree) {
            Some(before) => (before.pause * 2).min(LONGEST),
            None => SHORTEST,
        };
        let until = now + pause;
        let failed = Failed {
            error,
            pause,
            until,
            runs,
        };
        self.failed.insert(tree, failed);
    }

    /// It was tried, and went well.
    pub(super) fn worked(&mut self, tree: u32) {
        self.failed.remove(&tree);
    }

    /// Forgets the trees that are not there any more.
    pub(super) fn keep(&mut self, is_there: impl Fn(u32) -> bool) {
        self.failed.retain(|tree, _| is_there(*tree));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Error {
        Error::OutOfSpace { path: "/y".into() }
    }

    #[test]
    fn pauses_grow_up_to_a_bound() {
        let (mut back_off, start) = (BackOff::default(), Instant::now());
        let (mut now, mut tries) = (start, Vec::new());
        while now < start + Duration::from_secs(60) {
            if back_off.holds(7, now, 3).is_none() {
                tries.push(now);
                back_off.failed(7, full(), now, 3);
            }
            assert!(back_off.holds(8, now, 3).is_none(), "another tree");
            now += Duration::from_millis(50);
        }
        let pauses: Vec<Duration> = tries.windows(2).map(|two| two[1] - two[0]).collect();
        assert_eq!(pauses[0], SHORTEST);
        assert!(
            pauses
                .windows(2)
                .all(|two| two[1] == (two[0] * 2).min(LONGEST))
        );
        assert_eq!(pauses.last(), Some(&LONGEST));
        assert!(tries.len() < 12, "{} tries in a minute", tries.len());
    }

    #[test]
    fn a_run_that_works_ends_the_pause() {
        let (mut back_off, now) = (BackOff::default(), Instant::now());
        (0..9).for_each(|_| back_off.failed(7, full(), now, 3));
        assert!(back_off.holds(7, now, 3).is_some());
        assert!(back_off.holds(7, now, 4).is_none());
        // If there is still no room, the pause is as long as before.
        back_off.failed(7, full(), now, 4);
        let later = now + LONGEST - Duration::from_millis(1);
        assert!(back_off.holds(7, later, 4).is_some());
        assert!(back_off.holds(7, now + LONGEST, 4).is_none());
        back_off.worked(7);
        back_off.failed(7, full(), now, 4);
        assert!(back_off.holds(7, now + SHORTEST, 4).is_none());
        back_off.keep(|tree| tree != 7);
        assert!(back_off.holds(7, now, 4).is_none());
    }
}
