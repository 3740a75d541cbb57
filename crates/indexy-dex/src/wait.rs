//! Waiting for what another thread or another compute server ends: yields first, then short
//! sleeps, and never for longer than a limit.

use std::{
    thread::{sleep, yield_now},
    time::{Duration, Instant},
};

/// Longest wait for a node or a table that another compute server changes.
pub(crate) const LOCK_LIMIT: Duration = Duration::from_secs(5);

/// Attempts that are cheap enough to be made at once.
const EAGER: u32 = 4;
/// Attempts with a yield before them, until the first sleep.
const YIELDS: u32 = 256;
const NAP: Duration = Duration::from_micros(50);

pub(crate) struct Wait {
    limit: Duration,
    attempts: u32,
    started: Option<Instant>,
}

impl Wait {
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            limit,
            attempts: 0,
            started: None,
        }
    }

    /// Waits a little; `false`: for long enough.
    pub(crate) fn again(&mut self) -> bool {
        self.attempts += 1;
        if self.attempts <= EAGER {
            return true;
        }
        let started = *self.started.get_or_insert_with(Instant::now);
        if self.attempts <= YIELDS {
            yield_now();
        } else {
            sleep(NAP);
        }
        started.elapsed() < self.limit
    }

    pub(crate) fn attempts(&self) -> u32 {
        self.attempts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends() {
        let started = Instant::now();
        let mut wait = Wait::new(Duration::from_millis(20));
        while wait.again() {}
        assert!(started.elapsed() >= Duration::from_millis(20));
        assert!(wait.attempts() > EAGER);
    }
}
