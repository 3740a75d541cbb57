//! What all trees of one database share: budget, log, counters, signals, and the waiting room for memory.
//!
//! Keeps: I5 (`wait_for_log`), I6 (`sweep_floor`), I7 (`admit`).
//! Threads: any. Waits are bounded by [`STALL_LIMIT`].

#![forbid(unsafe_code)]

use super::{
    batches::Batches,
    counters::{self, Counters},
    watermark::Watermarks,
};
use crate::{
    error::{Error, Result},
    mem::budget::{Budget, Holder},
    poison::Poison,
    wal::{Log, Lsn},
};
use parking_lot::{Condvar, Mutex};
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// Longest time that a writer waits for memory before it gets `MemoryStalled`.
pub(crate) const STALL_LIMIT: Duration = Duration::from_secs(60);

/// A waiting writer looks again at least this often.
const STALL_POLL: Duration = Duration::from_millis(5);

/// What all trees of one database share.
pub(crate) struct Shared {
    pub budget: Arc<Budget>,
    pub poison: Arc<Poison>,
    pub counters: Counters,
    pub batches: Batches,
    /// Set once recovery is over; never with `Durability::None`.
    pub log: OnceLock<Log>,
    /// While the log is replayed: the LSN of the record being applied.
    pub replay_position: AtomicU64,
    pub wake_cleaner: Signal,
    pub wake_releaser: Signal,
    pub wake_compactor: Signal,
    /// Set by the releaser when it finds too little that is clean.
    pub urgent: AtomicBool,
    /// Bytes of resident trees (never released), as the releaser last saw them.
    pub resident_bytes: AtomicUsize,
    /// Bytes that a release could free if all was clean, as the releaser last saw them.
    pub releasable_bytes: AtomicUsize,
    /// Writers that wait for memory, and the most that one of them asks for.
    waiting: AtomicUsize,
    wanted: AtomicUsize,
    /// Why Y refused the last run, while it does: writers that wait for memory get it.
    y_failure: Mutex<Option<Error>>,
    freed: (Mutex<()>, Condvar),
}

impl Shared {
    pub(crate) fn new(budget: Arc<Budget>, poison: Arc<Poison>) -> Self {
        Self {
            budget,
            poison,
            counters: Counters::default(),
            batches: Batches::default(),
            log: OnceLock::new(),
            replay_position: AtomicU64::new(0),
            wake_cleaner: Signal::default(),
            wake_releaser: Signal::default(),
            wake_compactor: Signal::default(),
            urgent: AtomicBool::new(false),
            resident_bytes: AtomicUsize::new(0),
            releasable_bytes: AtomicUsize::new(usize::MAX),
            waiting: AtomicUsize::new(0),
            wanted: AtomicUsize::new(0),
            y_failure: Mutex::new(None),
            freed: Default::default(),
        }
    }

    pub(crate) fn watermarks(&self) -> Watermarks {
        Watermarks::of(self.budget.limit())
    }

    /// The marks that the releaser keeps to: lower while a writer waits for much at once.
    pub(crate) fn release_marks(&self) -> Watermarks {
        let marks = self.watermarks();
        let wanted = self.wanted.load(Ordering::Relaxed);
        let room = |mark: usize| mark.min(marks.hard.saturating_sub(wanted));
        Watermarks {
            low: room(marks.low),
            high: room(marks.high),
            hard: room(marks.hard),
        }
    }

    /// I6: a sweep that starts now meets every record below the answer applied.
    pub(crate) fn sweep_floor(&self) -> Lsn {
        // The end first, the batches second; see `batches.rs`.
        let end = match self.log.get() {
            Some(log) => log.end(),
            None => Lsn(self.replay_position.load(Ordering::Acquire)),
        };
        self.batches.oldest().map_or(end, |oldest| oldest.min(end))
    }

    /// I5: waits until everything logged so far is durable.
    pub(crate) fn wait_for_log(&self) -> Result<()> {
        self.log
            .get()
            .map_or(Ok(()), |log| log.wait_durable(log.end()))
    }

    /// Waits until `bytes` more fit the budget (I7). Cost when they do: a few loads of one line.
    ///
    /// Errors: `OutOfSpace` and other refusals of Y while nothing can be cleaned, `ResidentTreesTooLarge`,
    /// `Poisoned`, `MemoryStalled` after [`STALL_LIMIT`].
    #[inline]
    pub(crate) fn admit(&self, bytes: usize) -> Result<()> {
        let used = self.budget.used() + bytes;
        let marks = self.watermarks();
        if used >= marks.high {
            self.wake_releaser.notify();
            if used >= marks.hard {
                return self.wait_for_memory(bytes);
            }
        }
        Ok(())
    }

    /// True if a load of `bytes` may go into X now; asks for release when it gets tight.
    pub(crate) fn room_for_load(&self, bytes: usize) -> bool {
        let used = self.budget.used() + bytes;
        let marks = self.watermarks();
        if used >= marks.high {
            self.wake_releaser.notify();
        }
        used < marks.hard
    }

    #[cold]
    fn wait_for_memory(&self, bytes: usize) -> Result<()> {
        let start = Instant::now();
        counters::add(&self.counters.stalls, 1);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.wanted.fetch_max(bytes, Ordering::Relaxed);
        let result = self.wait_for_memory_until(start + STALL_LIMIT, bytes);
        if self.waiting.fetch_sub(1, Ordering::Relaxed) == 1 {
            // Another one may have come just now: it asks again when it looks again.
            self.wanted.store(0, Ordering::Relaxed);
        }
        counters::add(
            &self.counters.stall_micros,
            start.elapsed().as_micros() as u64,
        );
        result
    }

    fn wait_for_memory_until(&self, deadline: Instant, bytes: usize) -> Result<()> {
        let started = Instant::now();
        let mut guard = self.freed.0.lock();
        loop {
            self.poison.check()?;
            if self.budget.used() + bytes < self.watermarks().hard {
                return Ok(());
            }
            if let Some(failure) = self.y_failure.lock().clone() {
                return Err(failure);
            }
            self.check_resident(bytes)?;
            if Instant::now() >= deadline {
                return Err(Error::MemoryStalled {
                    budget_bytes: self.budget.limit(),
                    waited_ms: started.elapsed().as_millis() as u64,
                });
            }
            self.wanted.fetch_max(bytes, Ordering::Relaxed);
            self.wake_releaser.notify();
            self.freed.1.wait_for(&mut guard, STALL_POLL);
        }
    }

    /// Nothing can be released and resident trees are what fills the budget.
    fn check_resident(&self, bytes: usize) -> Result<()> {
        let resident = self.resident_bytes.load(Ordering::Relaxed);
        let releasable = self.releasable_bytes.load(Ordering::Relaxed);
        let others = self
            .budget
            .used()
            .saturating_sub(self.budget.held(Holder::Arena));
        let available = self.watermarks().low.saturating_sub(others);
        if resident > 0 && releasable < bytes.max(available / 64) && resident + bytes > available {
            return Err(Error::ResidentTreesTooLarge {
                needed_bytes: resident + bytes,
                available_bytes: available,
            });
        }
        Ok(())
    }

    /// Memory became free: waiting writers look again.
    pub(crate) fn announce_freed(&self) {
        let _guard = self.freed.0.lock();
        self.freed.1.notify_all();
    }

    /// Remembers or clears why Y refuses runs.
    pub(crate) fn set_y_failure(&self, failure: Option<Error>) {
        *self.y_failure.lock() = failure;
    }

    pub(crate) fn y_failure(&self) -> Option<Error> {
        self.y_failure.lock().clone()
    }
}

/// Wakes one background thread. Notifying an already pending signal costs one load.
#[derive(Default)]
pub(crate) struct Signal {
    pending: AtomicBool,
    lock: Mutex<()>,
    condvar: Condvar,
}

impl Signal {
    pub(crate) fn notify(&self) {
        // Pairs with the swap in `wait`: who sees `pending` still set is served by the coming wake-up.
        if !self.pending.load(Ordering::Relaxed) && !self.pending.swap(true, Ordering::AcqRel) {
            let _guard = self.lock.lock();
            self.condvar.notify_one();
        }
    }

    /// Waits until notified or `limit` has passed; true if notified.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let mut guard = self.lock.lock();
        if !self.pending.load(Ordering::Acquire) {
            self.condvar.wait_for(&mut guard, limit);
        }
        self.pending.swap(false, Ordering::AcqRel)
    }
}
