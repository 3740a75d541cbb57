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
/// Between two looks whether the other one is still there.
const LOOK: Duration = Duration::from_millis(15);

pub(crate) struct Wait {
    limit: Duration,
    attempts: u32,
    started: Option<Instant>,
    /// When [`Wait::is_due`] last said so.
    looked: Option<Instant>,
}

impl Wait {
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            limit,
            attempts: 0,
            started: None,
            looked: None,
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

    /// Now and then, from the first sleep on or where an attempt takes long: it is time to look
    /// whether the other one is still there.
    pub(crate) fn is_due(&mut self) -> bool {
        let Some(since) = self.looked.or(self.started) else {
            return false;
        };
        let due = since.elapsed() >= LOOK;
        if due {
            self.looked = Some(Instant::now());
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends() {
        let started = Instant::now();
        let mut wait = Wait::new(Duration::from_millis(20));
        let mut looks = 0;
        while wait.again() {
            looks += u32::from(wait.is_due());
        }
        assert!(started.elapsed() >= Duration::from_millis(20));
        assert!((1..3).contains(&looks), "{looks}");
    }
}
