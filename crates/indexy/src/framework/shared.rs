//! What all trees of one database share: budget, log, counters, signals, and the waiting room for memory.
//!
//! Keeps: I5 (`wait_for_log`), I6 (`sweep_floor`), I7 (`admit`).
//! Threads: any. Waits are bounded by [`STALL_LIMIT`].

#![forbid(unsafe_code)]

use super::{
    background::Trees,
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
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{
    cell::Cell,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// Longest time that a writer waits for memory before it gets `MemoryStalled`; a time in which the whole process stands still
/// does not count. Tests of this crate do not have so long.
pub(crate) const STALL_LIMIT: Duration = Duration::from_secs(if cfg!(test) { 4 } else { 60 });

/// So often the releaser looks whether readers have left.
const READERS_POLL: Duration = Duration::from_micros(200);

/// Where X has less than this part of the budget left beside what Index Y holds, and the least of its caches, a writer that waited so
/// long gives up.
const LEAST_X_PART: usize = 32;
const LEAST_CACHE_PART: usize = 4;
/// What a budget should leave beside the others, beyond as much again.
const MIN_ABOVE_OTHERS: usize = 1 << 20;
const CROWDED_OUT_LIMIT: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 10 });

/// A waiting writer looks again at least this often.
const STALL_POLL: Duration = Duration::from_millis(5);
/// What took longer was a process that was stopped, not a writer that waits.
const LONGEST_POLL: Duration = Duration::from_millis(200);

/// More than this part of the budget at once is large; a good many threads may be admitted at the same time with less.
const LARGE_PART: usize = 4096;

/// The largest batch and its copy for the log take less than this part of the budget: more is never wanted at once.
const MOST_WANTED_PART: usize = 2;

/// A batch, and so a record of one, is no more than this part of the budget.
const LARGEST_COPY_PART: usize = 4;

/// A thread that writes into holes looks whether what lives still fits whenever it was admitted so many bytes more.
const LOOK_AGAIN_BYTES: usize = 32 << 10;

/// The releaser rests until this part of the budget more is used.
const REST_PART: usize = 1024;

/// Leave to put bytes into X; a large amount is reserved while it lives.
#[must_use]
pub(crate) struct Admitted<'a>(Option<(&'a Shared, usize)>);

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        if let Some((shared, bytes)) = self.0 {
            shared.budget.give(Holder::Admitted, bytes);
        }
    }
}

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

    /// Waits until `bytes` more fit the budget (I7). Cost when they do: a few loads of one line; for large ones a short lock.
    ///
    /// Large ones are reserved while the answer lives, or several threads could be admitted into the same room; for
    /// small ones the distance between the hard mark and the budget is enough.
    /// Errors: `OutOfSpace` and other refusals of Y while nothing can be cleaned, `ResidentTreesTooLarge`,
    /// `Poisoned`, `Closed`, `MemoryStalled` after [`STALL_LIMIT`].
    #[inline]
    pub(crate) fn admit(&self, bytes: usize) -> Result<Admitted<'_>> {
        let used = self.budget.used() + bytes;
        let marks = self.watermarks();
        self.wake_releaser_at(used, &marks);
        if self.is_large(bytes) || !self.fits(used, bytes, &marks) {
            return self.wait_for_memory(bytes);
        }
        Ok(Admitted(None))
    }

    /// Admits a load of `bytes` into X if there is room now; asks for release when it gets tight.
    pub(crate) fn admit_load(&self, bytes: usize) -> Option<Admitted<'_>> {
        let used = self.budget.used() + bytes;
        let marks = self.watermarks();
        self.wake_releaser_at(used, &marks);
        if self.is_large(bytes) {
            let _guard = self.freed.0.lock();
            return self.reserve(bytes);
        }
        self.fits(used, bytes, &marks).then_some(Admitted(None))
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

    /// Whether holes take `bytes` more.
    #[cold]
    fn fits_into_holes(&self, bytes: usize) -> bool {
        thread_local!(static UNSEEN: Cell<usize> = const { Cell::new(usize::MAX) });
        let unseen = UNSEEN.get().saturating_add(bytes);
        if unseen < LOOK_AGAIN_BYTES {
            UNSEEN.set(unseen);
        } else {
            UNSEEN.set(0);
            self.look_at_live();
        }
        self.live_fits.load(Ordering::Relaxed)
    }

    /// A part of a release is done: writers need not wait for the rest.
    pub(crate) fn announce_room(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.look_at_live();
            self.announce_freed();
        }
    }

    fn is_large(&self, bytes: usize) -> bool {
        bytes > self.budget.limit() / LARGE_PART
    }

    /// Reserves a large amount if it fits. The caller holds the lock of `freed`, so that no other does meanwhile.
    fn reserve(&self, bytes: usize) -> Option<Admitted<'_>> {
        let (used, marks) = (self.budget.used() + bytes, self.watermarks());
        if !self.is_large(bytes) {
            return self.fits(used, bytes, &marks).then_some(Admitted(None));
        }
        (used < marks.hard).then(|| {
            self.budget.take(Holder::Admitted, bytes);
            Admitted(Some((self, bytes)))
        })
    }

    /// Whether a small amount of `bytes` fits that makes it `used` bytes, if X has to take more for it, which it need not
    /// while there are holes in what it has.
    #[inline]
    fn fits(&self, used: usize, bytes: usize, marks: &Watermarks) -> bool {
        used < marks.hard || used < marks.ceiling && self.fits_into_holes(bytes)
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

    #[cold]
    fn wait_for_memory(&self, bytes: usize) -> Result<Admitted<'_>> {
        let mut guard = self.freed.0.lock();
        if let Some(admitted) = self.reserve(bytes) {
            return Ok(admitted);
        }
        let started = Instant::now();
        counters::add(&self.counters.stalls, 1);
        let wanted = if self.is_large(bytes) { bytes } else { 0 };
        self.wanted.fetch_add(wanted, Ordering::Relaxed);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let result = self.wait_until_freed(&mut guard, bytes);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.wanted.fetch_sub(wanted, Ordering::Relaxed);
        counters::add(
            &self.counters.stall_micros,
            started.elapsed().as_micros() as u64,
        );
        result
    }

    fn wait_until_freed(
        &self,
        guard: &mut MutexGuard<'_, ()>,
        bytes: usize,
    ) -> Result<Admitted<'_>> {
        let (mut waited, mut crowded_out) = (Duration::ZERO, Duration::ZERO);
        loop {
            self.poison.check()?;
            if self.closing.load(Ordering::Acquire) {
                return Err(Error::Closed);
            }
            if let Some(admitted) = self.reserve(bytes) {
                return Ok(admitted);
            }
            if let Some(failure) = self.y_failure.lock().clone() {
                return Err(failure);
            }
            self.check_resident(bytes)?;
            let seen = self.crowding_out(self.budget.held(Holder::IndexYTrees));
            if crowded_out >= CROWDED_OUT_LIMIT
                && let Some(minimum_bytes) = self.crowded_out_by()
            {
                let budget_bytes = self.budget.limit();
                return Err(Error::BudgetTooSmall {
                    budget_bytes,
                    minimum_bytes,
                });
            }
            if waited >= STALL_LIMIT {
                return Err(Error::MemoryStalled {
                    budget_bytes: self.budget.limit(),
                    waited_ms: waited.as_millis() as u64,
                });
            }
            self.wake_releaser.notify();
            let from = Instant::now();
            self.freed.1.wait_for(guard, STALL_POLL);
            let polled = from.elapsed().min(LONGEST_POLL);
            waited += polled;
            crowded_out = match seen {
                Some(_) => crowded_out + polled,
                None => Duration::ZERO,
            };
        }
    }

    /// What Index Y holds for its data leaves X next to nothing, however much X releases: the budget that would do. (Merging may
    /// make its tables smaller; what others hold comes and goes.)
    fn crowding_out(&self, y_trees: usize) -> Option<usize> {
        let (limit, marks) = (self.budget.limit(), self.watermarks());
        let held = |holder| self.budget.held(holder);
        // Caches give way, but for the least of them.
        let cache = held(Holder::IndexY).min(limit / LEAST_CACHE_PART);
        let lasting = y_trees + held(Holder::Transfer) + cache;
        (lasting + limit / LEAST_X_PART >= marks.hard).then(|| {
            let others = y_trees + held(Holder::Transfer) + held(Holder::Log);
            // What `set_memory_budget` asks for is less.
            (others / 2 * 5 + MIN_ABOVE_OTHERS).max(limit + limit / 8)
        })
    }

    /// As [`Shared::crowding_out`], with what the Ys hold at this moment.
    fn crowded_out_by(&self) -> Option<usize> {
        let trees = self.trees.get().and_then(Weak::upgrade)?.trees();
        self.crowding_out(trees.iter().map(|tree| tree.y.memory_bytes()).sum())
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
