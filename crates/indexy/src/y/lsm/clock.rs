//! When writers rest, and whether maintenance has come to its end then. Any thread may ask.

use super::compact::Effort;
use parking_lot::Mutex;
use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

/// See the module header.
pub(super) struct Clock {
    /// Without a run for so long, writers are thought to rest.
    quiet: Duration,
    last_run: Mutex<Option<Instant>>,
    runs: AtomicU64,
    /// The runs after which nothing was left to do while writers rested, and one more; 0: never.
    rested: AtomicU64,
}

impl Clock {
    pub(super) fn new(quiet: Duration) -> Self {
        Self {
            quiet,
            last_run: Mutex::default(),
            runs: AtomicU64::new(0),
            rested: AtomicU64::new(0),
        }
    }

    /// A run was written, or a range removed.
    pub(super) fn wrote(&self) {
        self.runs.fetch_add(1, Relaxed);
        *self.last_run.lock() = Some(Instant::now());
    }

    /// How much to do now, and after how many runs.
    pub(super) fn effort(&self) -> (Effort, u64) {
        let runs = self.runs.load(Relaxed);
        let quiet = self
            .last_run
            .lock()
            .is_none_or(|at| at.elapsed() >= self.quiet);
        let effort = if quiet { Effort::Quiet } else { Effort::Busy };
        (effort, runs)
    }

    /// Nothing was left to do with this effort after so many runs.
    pub(super) fn rests(&self, effort: Effort, runs: u64) {
        if effort != Effort::Busy {
            self.rested.store(runs + 1, Relaxed);
        }
    }

    /// Nothing was left to do when it was last looked at with writers at rest, and nothing was
    /// written since.
    pub(super) fn settled(&self) -> bool {
        self.rested.load(Relaxed) == self.runs.load(Relaxed) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_settled_when_nothing_was_left_to_do_at_rest() {
        let clock = Clock::new(Duration::from_millis(20));
        assert!(
            !clock.settled(),
            "what an earlier process left is not known"
        );
        let (effort, runs) = clock.effort();
        assert_eq!(effort, Effort::Quiet);
        clock.rests(effort, runs);
        assert!(clock.settled());
        clock.wrote();
        let (effort, runs) = clock.effort();
        assert_eq!(effort, Effort::Busy);
        clock.rests(effort, runs);
        assert!(!clock.settled(), "writers do not rest yet");
        std::thread::sleep(Duration::from_millis(25));
        let (effort, runs) = clock.effort();
        clock.rests(effort, runs);
        assert!(clock.settled());
    }
}
