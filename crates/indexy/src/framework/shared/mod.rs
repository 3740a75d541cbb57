//! What all trees of one database share: budget, log, counters, signals, and (in `admission.rs`) the waiting room for memory.
//!
//! Keeps: I5 (`wait_for_log`), I6 (`sweep_floor`), I7 (`admit`).
//! Threads: any.

#![forbid(unsafe_code)]

mod admission;
mod signal;

pub(crate) use admission::Admitted;
#[cfg(test)]
pub(crate) use admission::STALL_LIMIT;
pub(crate) use signal::Signal;

use super::{background::Trees, batches::Batches, counters::Counters, watermark::Watermarks};
use crate::{
    error::{Error, Result},
    mem::budget::{Budget, Holder},
    poison::Poison,
    wal::{Log, Lsn},
};
use parking_lot::{Condvar, Mutex};
use std::{
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// So often the releaser looks whether readers have left.
const READERS_POLL: Duration = Duration::from_micros(200);

/// The largest batch and its copy for the log take less than this part of the budget: more is never wanted at once.
const MOST_WANTED_PART: usize = 2;

/// A batch, and so a record of one, is no more than this part of the budget.
const LARGEST_COPY_PART: usize = 4;

/// The releaser rests until this part of the budget more is used.
const REST_PART: usize = 1024;

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
    /// The database is being closed: nobody waits for memory any more.
    closing: AtomicBool,
    /// Set by the releaser when it finds too little that is clean.
    pub urgent: AtomicBool,
    /// Bytes of resident trees (never released), as the releaser last saw them.
    pub resident_bytes: AtomicUsize,
    /// Bytes that a release could free if all was clean, as the releaser last saw them.
    pub releasable_bytes: AtomicUsize,
    /// Why Y refused the last run, while it does: writers that wait for memory get it.
    y_failure: Mutex<Option<Error>>,
    /// Bytes that writers of large amounts wait for, summed.
    wanted: AtomicUsize,
    /// Writers that wait for memory.
    waiting: AtomicUsize,
    /// Bytes that X has to make room for, so that the caches of Y get their part.
    owed_to_y: AtomicUsize,
    /// Below so many bytes in use the releaser is not woken.
    release_mark: AtomicUsize,
    /// The trees of the database, once its threads run.
    trees: OnceLock<Weak<dyn Trees>>,
    /// What may live, in bytes, all else included: the releaser's goal.
    live_limit: AtomicUsize,
    /// What lives is below that, as somebody saw it last; see [`Shared::look_at_live`].
    live_fits: AtomicBool,
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
            closing: AtomicBool::new(false),
            urgent: AtomicBool::new(false),
            resident_bytes: AtomicUsize::new(0),
            releasable_bytes: AtomicUsize::new(usize::MAX),
            y_failure: Mutex::new(None),
            wanted: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            owed_to_y: AtomicUsize::new(0),
            release_mark: AtomicUsize::new(0),
            trees: OnceLock::new(),
            live_limit: AtomicUsize::new(usize::MAX),
            live_fits: AtomicBool::new(true),
            freed: Default::default(),
        }
    }

    pub(crate) fn watermarks(&self) -> Watermarks {
        Watermarks::of(self.budget.limit())
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

    /// What to ask for when the log has to copy a record of `bytes`: all of it. More than any batch has is not asked for,
    /// because it might never be free: such a value goes to Y alone, one at a time, beside the budget.
    pub(crate) fn copy_bytes(&self, bytes: usize) -> usize {
        bytes.min(self.budget.limit() / LARGEST_COPY_PART)
    }

    /// Bytes that may still be taken before writers have to wait.
    pub(crate) fn room(&self) -> usize {
        self.watermarks().hard.saturating_sub(self.budget.used())
    }

    /// There is room to build something before what it replaces is freed.
    pub(crate) fn may_copy(&self) -> bool {
        self.budget.used() < self.watermarks().hard.midpoint(self.budget.limit())
    }

    /// Where the budget is full, waits until readers have left what was replaced so far, so that this is freed, or there is room again.
    /// Until `deadline` at most: some reader may take long, and others wait for what the releaser frees.
    pub(crate) fn wait_for_readers(&self, deadline: Instant) {
        if !self.budget.is_full() {
            return;
        }
        let Some(trees) = self.trees.get().and_then(Weak::upgrade) else {
            return;
        };
        let freed = trees.when_freed();
        while !freed.all()
            && self.budget.is_full()
            && Instant::now() < deadline
            && !self.closing.load(Ordering::Acquire)
        {
            std::thread::sleep(READERS_POLL);
        }
    }

    /// For who takes memory that nobody refuses: X has to make room.
    pub(crate) fn ask_for_release(&self) {
        self.wake_releaser_at(self.budget.used(), &self.watermarks());
    }

    /// Wakes the releaser when `used` calls for it: not before more is used than when it last found nothing to do.
    #[inline]
    fn wake_releaser_at(&self, used: usize, marks: &Watermarks) {
        if used >= marks.high && used >= self.release_mark.load(Ordering::Relaxed) {
            self.wake_releaser.notify();
        }
    }

    /// The releaser has done what it can, or has nothing to do: it need not be woken again for a little more.
    pub(crate) fn rest_release(&self) {
        let mark = self.budget.used() + self.budget.limit() / REST_PART;
        let mark = mark.min(self.watermarks().ceiling);
        self.release_mark.store(mark, Ordering::Relaxed);
    }

    /// Whose Xs are to be counted.
    pub(crate) fn watch(&self, trees: &Arc<dyn Trees>) {
        let _ = self.trees.set(Arc::downgrade(trees));
    }

    /// Bytes in use: what lives in X, all that others hold, and what somebody waits for. Cost: a few cache misses per tree and
    /// thread that wrote to it.
    pub(crate) fn live(&self) -> usize {
        let others = self
            .budget
            .used()
            .saturating_sub(self.budget.held(Holder::Arena));
        let x = self.trees.get().and_then(Weak::upgrade);
        others + x.map_or(0, |trees| trees.x_bytes()) + self.wanted()
    }

    /// From now on so many bytes may live; who waits for that hears of it. For the releaser.
    pub(crate) fn set_live_limit(&self, bytes: usize) {
        self.live_limit.store(bytes, Ordering::Relaxed);
        self.look_at_live();
        if self.waiting.load(Ordering::Relaxed) > 0 && self.live_fits.load(Ordering::Relaxed) {
            self.announce_freed();
        }
    }

    /// Compares what lives with what may. Who fills holes does so itself, by the byte ([`LOOK_AGAIN_BYTES`]): writers are fast
    /// enough to fill all holes, and the room up to the ceiling, while the releaser is looking elsewhere.
    pub(crate) fn look_at_live(&self) {
        let fits = self.live() <= self.live_limit.load(Ordering::Relaxed);
        if fits != self.live_fits.load(Ordering::Relaxed) {
            self.live_fits.store(fits, Ordering::Relaxed);
        }
    }

    /// A part of a release is done: writers need not wait for the rest.
    pub(crate) fn announce_room(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.look_at_live();
            self.announce_freed();
        }
    }

    /// Bytes beyond the marks that the releaser should make room for: somebody waits for so many at once.
    pub(crate) fn wanted(&self) -> usize {
        self.writers_want() + self.owed_to_y.load(Ordering::Relaxed)
    }

    /// Bytes that writers wait for, as far as they can be had.
    pub(crate) fn writers_want(&self) -> usize {
        let most = self.budget.limit() / MOST_WANTED_PART;
        self.wanted.load(Ordering::Relaxed).min(most)
    }

    /// Says how much the caches of Y want beyond what they have.
    pub(crate) fn owe_to_y(&self, bytes: usize) {
        self.owed_to_y.store(bytes, Ordering::Relaxed);
    }

    /// Sends away whoever waits for memory, now and later.
    pub(crate) fn begin_closing(&self) {
        self.closing.store(true, Ordering::Release);
        self.announce_freed();
    }

    /// Memory became free: waiting writers look again.
    pub(crate) fn announce_freed(&self) {
        let _guard = self.freed.0.lock();
        self.freed.1.notify_all();
    }

    /// What a write to Y, or to the files of the log, came to. A failure poisons, whoever met it: what a failed write or sync
    /// left on the device nobody knows, and a later one that succeeds says nothing about it. Not so a full device, and what
    /// Y refuses beforehand.
    pub(crate) fn guarded<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            match error {
                Error::OutOfSpace { .. }
                | Error::Closed
                | Error::KeyTooLong { .. }
                | Error::ValueTooLong { .. } => return result,
                error if error.is_transient() => return result,
                Error::Poisoned { cause } => self.poison.set(cause),
                error => self.poison.set(error),
            };
            self.announce_freed();
        }
        result
    }

    /// Remembers or clears why Y refuses runs.
    pub(crate) fn set_y_failure(&self, failure: Option<Error>) {
        *self.y_failure.lock() = failure;
    }

    pub(crate) fn y_failure(&self) -> Option<Error> {
        self.y_failure.lock().clone()
    }
}
