//! What the phases of the demo share: the tree, what must be in it, the threads and the clock.

use super::{
    generate::{Fingerprint, Versions, record_key, record_value},
    live::Live,
    stop::Stop,
};
use crate::{format::escape::escaped, interrupt::Interrupt};
use anyhow::bail;
use indexy::{Db, Tree};
use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

/// Operations between two looks at the clock and additions to shared counters.
pub const STRIDE: u64 = 64;

/// What the phases share.
pub struct Stage<'a> {
    pub db: Db,
    pub tree: Tree,
    pub live: &'a Live,
    pub interrupt: &'a Interrupt,
    pub budget: u64,
    pub threads: u64,
    /// Generated records: numbers below this are there.
    pub records: u64,
    pub versions: Versions,
    /// All that must be in the tree.
    pub expected: Fingerprint,
}

/// Ends a phase: by time, by the user or by a failure.
pub struct Clock<'a> {
    deadline: Instant,
    interrupt: &'a Interrupt,
    failed: AtomicBool,
}

impl Clock<'_> {
    /// False once the time is over, the user asked to stop or another thread failed.
    pub fn goes_on(&self) -> bool {
        Instant::now() < self.deadline && !self.interrupt.is_set() && !self.failed.load(Relaxed)
    }
}

impl Stage<'_> {
    /// A clock that ends after `duration`.
    pub fn clock(&self, duration: Duration) -> Clock<'_> {
        Clock {
            deadline: Instant::now() + duration,
            interrupt: self.interrupt,
            failed: AtomicBool::new(false),
        }
    }

    /// Runs `work` on every thread; the first failure ends all.
    pub fn on_threads<T: Send>(
        &self,
        clock: &Clock<'_>,
        work: impl Fn(u64) -> anyhow::Result<T> + Sync,
    ) -> anyhow::Result<Vec<T>> {
        let results: Vec<anyhow::Result<T>> = thread::scope(|scope| {
            let work = &work;
            let spawned: Vec<_> = (0..self.threads)
                .map(|n| {
                    scope.spawn(move || {
                        let result = work(n);
                        if result.is_err() {
                            clock.failed.store(true, Relaxed);
                        }
                        result
                    })
                })
                .collect();
            spawned
                .into_iter()
                .map(|thread| {
                    thread
                        .join()
                        .unwrap_or_else(|_| Err(anyhow::anyhow!("a thread of the demo panicked")))
                })
                .collect()
        });
        let results = results.into_iter().collect::<anyhow::Result<Vec<T>>>()?;
        if self.interrupt.is_set() {
            bail!(Stop);
        }
        Ok(results)
    }

    /// Checks that `value` is that of record `i` in one of `versions`.
    pub fn check(
        &self,
        i: u64,
        versions: std::ops::RangeInclusive<u64>,
        value: &[u8],
        expected: &mut Vec<u8>,
    ) -> anyhow::Result<()> {
        for version in versions.clone() {
            record_value(i, version, expected);
            if value == *expected {
                return Ok(());
            }
        }
        let found = value
            .get(..8)
            .and_then(|v| v.try_into().ok())
            .map(u64::from_le_bytes);
        bail!(
            "wrong read: {} has version {found:?} (or none), expected {versions:?}",
            escaped(&record_key(i))
        )
    }
}
