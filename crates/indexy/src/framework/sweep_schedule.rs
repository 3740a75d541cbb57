//! When a tree with expiry is swept, and how far that is.
//!
//! Here is no I/O and no lock: what is to be known is told (`sweep.rs`).

#![forbid(unsafe_code)]

use super::expiry;
use crate::versions::time::Millis;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Fewer bytes written to Y are worth no sweep.
const LEAST_BYTES: u64 = 256 << 10;
/// A sweep is due when so large a part of what Y has was written since the last one.
const WRITTEN_DIVISOR: u64 = 2;
/// Or when so large a part of what the last one left has expired.
const EXPIRED_DIVISOR: u64 = 4;
/// After an open nobody knows what Y has: the first sweep comes so many milliseconds later at the
/// latest, and learns it. Whoever opens for a shorter time has no sweep to pay for.
const FIRST_SWEEP: Millis = 10 * 60 * 1000;
/// Bits of a time to come: one bucket for each power of two.
const BUCKETS: usize = Millis::BITS as usize;

/// What a tree with expiry has beside its entries.
#[derive(Debug)]
pub(crate) struct Expiry {
    /// How long an entry lives unless its writer says something else; [`expiry::NEVER`]: for ever.
    default: AtomicU64,
    /// Bytes written to Y since the last sweep began.
    written: AtomicU64,
    /// Locked by whoever sweeps, for a piece.
    pub(super) sweeps: Mutex<Sweeps>,
}

impl Expiry {
    pub(crate) fn new(default: Millis, now: Millis) -> Self {
        Self {
            default: AtomicU64::new(default),
            written: AtomicU64::new(0),
            // What is there now, and lives as long as the default, has expired after that.
            sweeps: Mutex::new(Sweeps::new(now.saturating_add(default.min(FIRST_SWEEP)))),
        }
    }

    pub(crate) fn default_ttl(&self) -> Millis {
        self.default.load(Relaxed)
    }

    /// What is written from now on lives so long, unless its writer says something else.
    pub(crate) fn set_default_ttl(&self, ttl: Millis) {
        self.default.store(ttl, Relaxed);
    }

    /// So many bytes were written to Y.
    pub(crate) fn wrote(&self, bytes: u64) {
        self.written.fetch_add(bytes, Relaxed);
    }

    /// Whether `sweeps`, those of this tree, are to go on or to begin.
    pub(super) fn is_due(&self, sweeps: &Sweeps, horizon: Millis, y_bytes: u64) -> bool {
        let written = self.written.load(Relaxed);
        let much = written >= (y_bytes / WRITTEN_DIVISOR).max(LEAST_BYTES);
        let expired = horizon >= sweeps.due && sweeps.due != expiry::NEVER;
        sweeps.at.is_some() || much || expired
    }

    /// Where the sweep under way, or a new one, goes on.
    pub(super) fn go_on(&self, sweeps: &mut Sweeps) -> Vec<u8> {
        sweeps.at.take().unwrap_or_else(|| {
            sweeps.left = Left::default();
            self.written.store(0, Relaxed);
            Vec::new()
        })
    }
}

/// When a tree is swept, and how far that is.
#[derive(Debug)]
pub(crate) struct Sweeps {
    /// Where the sweep under way goes on.
    at: Option<Vec<u8>>,
    /// What it has left so far.
    left: Left,
    /// Enough of what the last one left has expired by then.
    due: Millis,
}

impl Sweeps {
    /// The first sweep comes at `due`.
    fn new(due: Millis) -> Self {
        Self {
            at: None,
            left: Left::default(),
            due,
        }
    }

    /// The piece from `from` on could not be swept: it is due again.
    pub(super) fn again(&mut self, from: Vec<u8>) {
        self.at = Some(from);
    }

    /// A piece was swept at `horizon`, which left `left`, and the next one begins at `next`. True
    /// if that was the last one.
    pub(super) fn swept(&mut self, left: &Left, next: Option<Vec<u8>>, horizon: Millis) -> bool {
        let sums = left.0.iter().zip(&mut self.left.0);
        sums.for_each(|(more, sum)| *sum += more);
        self.at = next;
        let ended = self.at.is_none();
        if ended {
            self.due = horizon.saturating_add(self.left.worth_a_sweep());
        }
        ended
    }
}

/// Bytes of what a sweep has left, by the power of two of the milliseconds that they live on.
#[derive(Debug)]
pub(super) struct Left([u64; BUCKETS]);

impl Default for Left {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

impl Left {
    /// `lives_on`: [`expiry::NEVER`] for what does not expire.
    pub(super) fn add(&mut self, lives_on: Millis, bytes: usize) {
        let bucket = lives_on.checked_ilog2().unwrap_or(0) as usize;
        if let Some(sum) = self.0.get_mut(bucket) {
            *sum += bytes as u64;
        }
    }

    /// After so many milliseconds enough of it has expired; [`expiry::NEVER`] if that never
    /// happens.
    fn worth_a_sweep(&self) -> Millis {
        let all: u64 = self.0.iter().sum();
        let mut gone = 0;
        for (bucket, bytes) in self.0.iter().enumerate() {
            gone += bytes;
            let last = bucket + 1 == BUCKETS;
            if !last && gone > 0 && gone >= all / EXPIRED_DIVISOR {
                return 2 << bucket;
            }
        }
        expiry::NEVER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_is_due_when_a_quarter_of_what_was_left_has_expired() {
        let mut left = Left::default();
        assert_eq!(left.worth_a_sweep(), expiry::NEVER);
        left.add(expiry::NEVER, 300);
        assert_eq!(left.worth_a_sweep(), expiry::NEVER);
        left.add(5, 50);
        left.add(1000, 50);
        // 50 of 400 after 8 ms, 100 after 1024.
        assert_eq!(left.worth_a_sweep(), 1024);
        left.add(7, 50);
        assert_eq!(left.worth_a_sweep(), 1024);
        left.add(4, 20);
        assert_eq!(left.worth_a_sweep(), 8);
    }

    #[test]
    fn the_first_sweep_waits_for_the_default_but_not_for_long() {
        for (default, due) in [
            (7, 7),
            (FIRST_SWEEP + 1, FIRST_SWEEP),
            (expiry::NEVER, FIRST_SWEEP),
        ] {
            let expiry = Expiry::new(default, 5000);
            let sweeps = expiry.sweeps.lock();
            assert!(
                !expiry.is_due(&sweeps, 4999 + due, 1) && expiry.is_due(&sweeps, 5000 + due, 1)
            );
        }
    }

    #[test]
    fn sweeps_are_due_by_what_was_written_and_by_time() {
        let expiry = Expiry::new(1000, 5000);
        let mut sweeps = expiry.sweeps.lock();
        assert!(!expiry.is_due(&sweeps, 5999, 1 << 20) && expiry.is_due(&sweeps, 6000, 1 << 20));
        expiry.wrote(LEAST_BYTES - 1);
        assert!(!expiry.is_due(&sweeps, 5000, 0));
        expiry.wrote(1);
        assert!(expiry.is_due(&sweeps, 5000, 0));
        assert!(!expiry.is_due(&sweeps, 5000, 4 * LEAST_BYTES));
        assert!(expiry.go_on(&mut sweeps).is_empty());
        assert!(!sweeps.swept(&Left::default(), Some(vec![7]), 6000));
        assert!(expiry.is_due(&sweeps, 0, 0));
        assert_eq!(expiry.go_on(&mut sweeps), [7]);
        assert!(sweeps.swept(&Left::default(), None, 6000));
        // Nothing is left that could expire.
        assert!(!expiry.is_due(&sweeps, expiry::NEVER, 0));
    }
}
