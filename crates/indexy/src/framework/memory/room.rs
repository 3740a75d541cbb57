//! The room that a budget leaves: what is in use, what is waited for, and who hears of it.
//!
//! Keeps I7. Bytes *used* are what was taken from the budget: whole slabs, buffers, caches. Bytes
//! *live* are the same with what lives in X instead of its slabs: what was released leaves holes in
//! slabs, which the next small entries fill.
//!
//! Threads: any. Writers read a few words; those who wait hold the queue's lock only to look. The
//! releaser alone sets the limit of what may live.
//! A waiting writer is woken by the releaser after each of its steps, by a large write that gives
//! its reservation back, by a failure, and by a close; it looks by itself every few milliseconds
//! (`admission.rs`).

#![forbid(unsafe_code)]

use super::{queue::Queue, watermarks::Watermarks};
use crate::{
    error::Error,
    framework::{counters::Counters, signal::Signal},
    mem::{
        Freed,
        budget::{Budget, Holder},
    },
    poison::Poison,
};
use parking_lot::{Condvar, Mutex};
use std::{
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// The releaser looks this often whether readers have left.
const READERS_POLL: Duration = Duration::from_micros(200);

/// The releaser makes room for this part of the budget at once, or for the first who waits.
const WANTED_DIVISOR: usize = 2;

/// A record of the log that is copied as a whole is reserved up to this part of the budget.
const LARGEST_COPY_DIVISOR: usize = 4;

/// The releaser rests until this part of the budget more is used.
const REST_DIVISOR: usize = 1024;

/// What the room asks of the database.
pub(crate) trait Holdings: Send + Sync + 'static {
    /// Live bytes of all Xs.
    fn x_bytes(&self) -> usize;
    /// The part of them that is in resident trees.
    fn resident_bytes(&self) -> usize;
    /// What the Ys of all trees hold for themselves at this moment.
    fn y_bytes(&self) -> usize;
    /// Pushes reclamation; tells when everything that was retired so far is freed.
    fn when_freed(&self) -> Freed;
    /// A writer waits for memory: what is kept for snapshots is to go to disk. Waits for nobody.
    fn spill_images(&self);
    /// It has waited for long: what cannot go to disk goes with the oldest snapshot.
    fn give_up_images(&self);
}

/// How long writers wait, at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitLimits {
    /// For memory that somebody holds up: then `MemoryStalled`. A time in which the whole process
    /// stands still does not count.
    pub stall: Duration,
    /// Where Index Y leaves X next to nothing: then `BudgetTooSmall`. Merges may make Y smaller.
    pub crowded_out: Duration,
    /// For an amount that does not fit beside what is never released: then `BudgetTooSmall`.
    pub too_large: Duration,
}

impl Default for WaitLimits {
    fn default() -> Self {
        Self {
            stall: Duration::from_secs(60),
            crowded_out: Duration::from_secs(10),
            too_large: Duration::from_secs(1),
        }
    }
}

/// See the module header.
pub(crate) struct Room {
    pub(super) budget: Arc<Budget>,
    pub(super) poison: Arc<Poison>,
    pub(super) counters: Arc<Counters>,
    pub(super) wait_limits: WaitLimits,
    pub(crate) wake_releaser: Signal,
    /// The database is being closed: nobody waits for memory any more.
    pub(super) closing: AtomicBool,
    /// Bytes that a release could free if all was clean, as the releaser last saw them.
    pub(crate) releasable_bytes: AtomicUsize,
    /// Why Y refused the last run, while it does: writers that wait get it.
    pub(super) y_failure: Mutex<Option<Error>>,
    /// Those who wait for large amounts.
    pub(super) queue: Mutex<Queue>,
    /// With the queue's lock: memory became free.
    pub(super) freed: Condvar,
    /// Writers that wait.
    pub(super) waiting: AtomicUsize,
    /// Bytes that writers wait for.
    wanted: AtomicUsize,
    /// Bytes that X has to make room for, so that the caches of Y get their part.
    owed_to_y: AtomicUsize,
    /// Bytes that X has lent to filters of Y, and gets back when it needs them.
    lent_to_y: AtomicUsize,
    /// Bytes that caches of Y hold beyond what they were given: they cannot shrink.
    kept_by_caches: AtomicUsize,
    /// Below so many bytes in use the releaser is not woken.
    release_mark: AtomicUsize,
    /// What may live, in bytes, all else included: the releaser's goal.
    live_limit: AtomicUsize,
    /// What lives was below that when somebody looked last.
    pub(super) live_fits: AtomicBool,
    holdings: OnceLock<Weak<dyn Holdings>>,
}

impl Room {
    pub(crate) fn new(
        budget: Arc<Budget>,
        poison: Arc<Poison>,
        counters: Arc<Counters>,
        wait_limits: WaitLimits,
    ) -> Self {
        Self {
            budget,
            poison,
            counters,
            wait_limits,
            wake_releaser: Signal::default(),
            closing: AtomicBool::new(false),
            releasable_bytes: AtomicUsize::new(usize::MAX),
            y_failure: Mutex::new(None),
            queue: Mutex::default(),
            freed: Condvar::new(),
            waiting: AtomicUsize::new(0),
            wanted: AtomicUsize::new(0),
            owed_to_y: AtomicUsize::new(0),
            lent_to_y: AtomicUsize::new(0),
            kept_by_caches: AtomicUsize::new(0),
            release_mark: AtomicUsize::new(0),
            live_limit: AtomicUsize::new(usize::MAX),
            live_fits: AtomicBool::new(true),
            holdings: OnceLock::new(),
        }
    }

    #[inline]
    pub(crate) fn watermarks(&self) -> Watermarks {
        Watermarks::of(self.budget.limit())
    }

    /// Whose holdings are counted.
    pub(crate) fn watch(&self, holdings: Weak<dyn Holdings>) {
        let _ = self.holdings.set(holdings);
    }

    pub(super) fn holdings(&self) -> Option<Arc<dyn Holdings>> {
        self.holdings.get().and_then(Weak::upgrade)
    }

    /// Bytes that may still be taken before writers have to wait.
    pub(crate) fn left(&self) -> usize {
        self.watermarks().hard.saturating_sub(self.budget.used())
    }

    /// There is room for `bytes` more that nobody waits for, below where release stops.
    pub(crate) fn has_spare(&self, bytes: usize) -> bool {
        self.budget.spoken_for().saturating_add(bytes) < self.watermarks().low
    }

    /// What to reserve when the log copies a record of `bytes`: all of it, up to what the largest
    /// batch may have. A larger value goes to Y alone, one at a time, beside the budget.
    #[inline]
    pub(crate) fn copy_bytes(&self, bytes: usize) -> usize {
        bytes.min(self.budget.limit() / LARGEST_COPY_DIVISOR)
    }

    /// There is room to build something before what it replaces is freed.
    pub(crate) fn may_copy(&self) -> bool {
        self.budget.used() < self.watermarks().hard.midpoint(self.budget.limit())
    }

    // --- the releaser's part ----------------------------------------------------

    /// Bytes in use: what lives in X, all that others hold, and what is waited for. Cost: a few
    /// cache misses per tree and thread that wrote to it.
    pub(crate) fn live(&self) -> usize {
        let used = self.budget.used();
        let others = used.saturating_sub(self.budget.held(Holder::Arena));
        others + self.holdings().map_or(0, |h| h.x_bytes()) + self.wanted()
    }

    /// From now on so many bytes may live; writers who wait for that hear of it.
    pub(crate) fn set_live_limit(&self, bytes: usize) {
        self.live_limit.store(bytes, Ordering::Relaxed);
        self.look_at_live();
        if self.is_awaited() && self.live_fits.load(Ordering::Relaxed) {
            self.announce_freed();
        }
    }

    /// Compares what lives with what may. A writer that fills holes looks itself, once in so many
    /// bytes: writers fill all holes while the releaser looks elsewhere. The first one to see that
    /// the limit is passed wakes the releaser.
    pub(crate) fn look_at_live(&self) {
        // Writers do not wait for what caches are to get.
        let live = self
            .live()
            .saturating_sub(self.owed_to_y.load(Ordering::Relaxed));
        let fits = live <= self.live_limit.load(Ordering::Relaxed);
        if fits != self.live_fits.load(Ordering::Relaxed) {
            self.live_fits.store(fits, Ordering::Relaxed);
            if !fits {
                self.wake_releaser.notify();
            }
        }
    }

    /// A part of a release is done: writers need not wait for the rest.
    pub(crate) fn announce_room(&self) {
        if self.is_awaited() {
            self.look_at_live();
            self.announce_freed();
        }
    }

    pub(crate) fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Memory became free: waiting writers look again.
    pub(crate) fn announce_freed(&self) {
        if self.is_awaited() {
            let _queue = self.queue.lock();
            self.freed.notify_all();
        }
    }

    /// Bytes beyond the marks that the releaser should make room for: they are waited for.
    pub(crate) fn wanted(&self) -> usize {
        self.writers_want() + self.owed_to_y.load(Ordering::Relaxed)
    }

    /// The part of it that writers wait for.
    pub(crate) fn writers_want(&self) -> usize {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Caches of Y hold `bytes` more than they were given, and cannot give them back.
    pub(crate) fn caches_keep(&self, bytes: usize) {
        self.kept_by_caches.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn kept_by_caches(&self) -> usize {
        self.kept_by_caches.load(Ordering::Relaxed)
    }

    /// Says how much of the caches of Y X gets back when it needs it.
    pub(crate) fn lend_to_y(&self, bytes: usize) {
        self.lent_to_y.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn lent_to_y(&self) -> usize {
        self.lent_to_y.load(Ordering::Relaxed)
    }

    /// Says how much the caches of Y want beyond what they have.
    pub(crate) fn owe_to_y(&self, bytes: usize) {
        self.owed_to_y.store(bytes, Ordering::Relaxed);
    }

    /// The queue changed. The caller holds its lock.
    pub(super) fn publish(&self, queue: &Queue) {
        let (claim, all) = (queue.claim(), queue.ahead_of(None));
        let most = self.budget.limit() / WANTED_DIVISOR;
        self.wanted
            .store(all.min(most).max(claim), Ordering::Relaxed);
        self.budget.set(Holder::Claimed, claim);
    }

    /// For threads that take memory which nobody refuses: X has to make room.
    pub(crate) fn ask_for_release(&self) {
        self.wake_releaser_at(self.budget.used(), &self.watermarks());
    }

    /// Wakes the releaser when `used` calls for it: not before more is used than when it last found
    /// nothing to do.
    #[inline]
    pub(super) fn wake_releaser_at(&self, used: usize, marks: &Watermarks) {
        if used >= marks.high && used >= self.release_mark.load(Ordering::Relaxed) {
            self.wake_releaser.notify();
        }
    }

    /// The releaser has done what it can, or has nothing to do: a little more does not wake it.
    pub(crate) fn rest_release(&self) {
        let mark = self.budget.used() + self.budget.limit() / REST_DIVISOR;
        let mark = mark.min(self.watermarks().ceiling);
        self.release_mark.store(mark, Ordering::Relaxed);
    }

    /// Where the budget is full, waits until readers have left what was replaced so far, so that it
    /// is freed, or there is room again. Until `deadline` at most: a reader may take long, and
    /// others wait for what the releaser frees.
    pub(crate) fn wait_for_readers(&self, deadline: Instant) {
        if !self.budget.is_full() {
            return;
        }
        let Some(freed) = self.holdings().map(|h| h.when_freed()) else {
            return;
        };
        while !freed.all()
            && self.budget.is_full()
            && Instant::now() < deadline
            && !self.closing.load(Ordering::Acquire)
        {
            std::thread::sleep(READERS_POLL);
        }
    }

    // --- ends of a wait ---------------------------------------------------------

    /// Sends away whoever waits for memory, now and later.
    pub(crate) fn begin_closing(&self) {
        self.closing.store(true, Ordering::Release);
        self.announce_freed();
    }

    /// Remembers or clears why Y refuses runs.
    pub(crate) fn set_y_failure(&self, failure: Option<Error>) {
        *self.y_failure.lock() = failure;
    }

    pub(crate) fn y_failure(&self) -> Option<Error> {
        self.y_failure.lock().clone()
    }
}
