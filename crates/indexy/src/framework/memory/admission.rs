//! Admission: a writer that puts bytes into X waits here until they fit, or is told why they will
//! not.
//!
//! Keeps I7. Threads: any.
//! - *Small* amounts are not reserved: the distance between the hard mark and the budget is enough
//!   for a good many threads that are admitted at the same moment. They may also go into the holes
//!   that releases leave in slabs.
//! - *Large* amounts are reserved until they are in X, and wait in order of arrival (`queue.rs`).
//!
//! A wait ends when the bytes fit; with the failure of Y while Y refuses runs; with
//! `ResidentTreesTooLarge`, `BudgetTooSmall`, `Poisoned` or `Closed`; else with `MemoryStalled`
//! after [`WaitLimits::stall`](super::WaitLimits). What never fits, because it is more than a
//! release of all of X would leave, does not wait for that long, nor does who waits beside resident
//! trees that fill the budget while nothing else comes free. Images of snapshots that are in the
//! way go to disk during the wait; where there is no disk for them, the oldest snapshots are given
//! up.

#![forbid(unsafe_code)]

use super::{queue::Place, queue::Queue, room::Room, watermarks::Watermarks};
use crate::{
    error::{Error, Result},
    events,
    framework::counters,
    mem::budget::Holder,
};
use parking_lot::MutexGuard;
use std::{
    cell::Cell,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// Where Index Y and the least of its caches leave X less than this part of the budget, writers
/// give up in the end.
const LEAST_X_DIVISOR: usize = 32;
/// The caches of Y count for this part of the budget at most: they give way.
const LEAST_CACHE_DIVISOR: usize = 4;
/// What a budget should leave beside the others, beyond as much again.
const MIN_ABOVE_OTHERS: usize = 1 << 20;

/// A waiting writer looks again, and wakes the releaser, at least this often: some of what gives
/// memory back does not announce it (scans, buffers of the log).
const STALL_POLL: Duration = Duration::from_millis(5);
/// What took longer was a process that was stopped, not a writer that waits.
const LONGEST_POLL: Duration = Duration::from_millis(200);

/// Who has waited so long waits for more than what is being freed: images of snapshots are to go
/// to disk.
const IMAGES_AFTER: Duration = Duration::from_millis(100);
/// After so long, and again each time that [`IMAGES_AFTER`] has passed, a snapshot is given up
/// whose images cannot go there.
const SNAPSHOTS_AFTER: Duration = Duration::from_secs(1);

/// More than this part of the budget at once is large.
const LARGE_DIVISOR: usize = 4096;

/// A thread that writes into holes looks whether what lives still fits once in so many bytes.
const LOOK_AGAIN_BYTES: usize = 32 << 10;

/// Leave to put bytes into X; a large amount is reserved while it lives.
#[must_use]
pub(crate) struct Admitted<'a>(Option<(&'a Room, usize)>);

impl Drop for Admitted<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some((room, bytes)) = self.0 {
            room.budget.give(Holder::Admitted, bytes);
            room.announce_freed();
        }
    }
}

/// How long a writer has waited, by reason.
#[derive(Default)]
struct Waited {
    all: Duration,
    crowded_out: Duration,
    too_large: Duration,
    /// What is never released fills the budget, and nothing else was released.
    resident: Duration,
    /// In which snapshots were given up, beyond [`SNAPSHOTS_AFTER`].
    for_snapshots: Duration,
}

impl Room {
    /// Waits until `bytes` more fit the budget (I7). Cost when they do: a few loads of one line;
    /// for large amounts a short lock. Errors: see the module header.
    #[inline]
    pub(crate) fn admit(&self, bytes: usize) -> Result<Admitted<'_>> {
        let used = self.budget.spoken_for() + bytes;
        let marks = self.watermarks();
        self.wake_releaser_at(used, &marks);
        if self.is_large(bytes) || !self.fits(used, bytes, &marks) {
            return self.wait_for_memory(bytes);
        }
        Ok(Admitted(None))
    }

    /// Admits a load of `bytes` into X if there is room at once; asks for release when it gets
    /// tight.
    pub(crate) fn admit_load(&self, bytes: usize) -> Option<Admitted<'_>> {
        let used = self.budget.spoken_for() + bytes;
        let marks = self.watermarks();
        self.wake_releaser_at(used, &marks);
        if self.is_large(bytes) {
            return self.enter(&self.queue.lock(), bytes, None);
        }
        self.fits(used, bytes, &marks).then_some(Admitted(None))
    }

    /// Waits a moment until `bytes` more stay below the budget, whatever fills it: for what makes
    /// X smaller, and copies a little for it. Buffers of runs and of the log, which take what is
    /// left, come free by themselves. False if they do not. Errors: `Poisoned`, `Closed`.
    #[cold]
    pub(crate) fn await_room_to_shrink(&self, bytes: usize) -> Result<bool> {
        let mut queue = self.queue.lock();
        let deadline = Instant::now() + self.wait_limits.too_large;
        while self.budget.used() + bytes >= self.budget.limit() {
            self.poison.check()?;
            if self.closing.load(Ordering::Acquire) {
                return Err(Error::Closed);
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            self.wake_releaser.notify();
            self.freed.wait_for(&mut queue, STALL_POLL);
        }
        Ok(true)
    }

    #[inline]
    fn is_large(&self, bytes: usize) -> bool {
        bytes > self.budget.limit() / LARGE_DIVISOR
    }

    /// Whether a small amount of `bytes` fits that makes it `used` bytes: below the hard mark, or
    /// below the ceiling while there are holes in what X has.
    #[inline]
    fn fits(&self, used: usize, bytes: usize, marks: &Watermarks) -> bool {
        used < marks.hard || used < marks.ceiling && self.fits_into_holes(bytes)
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

    /// Admits `bytes` if they fit now, beside what those ahead in the queue wait for.
    fn enter(&self, queue: &Queue, bytes: usize, place: Option<Place>) -> Option<Admitted<'_>> {
        let marks = self.watermarks();
        if !self.is_large(bytes) {
            let used = self.budget.spoken_for() + bytes;
            return self.fits(used, bytes, &marks).then_some(Admitted(None));
        }
        let ahead = queue.ahead_of(place);
        let used = self.budget.used().saturating_add(ahead) + bytes;
        (used < marks.hard).then(|| {
            self.budget.take(Holder::Admitted, bytes);
            Admitted(Some((self, bytes)))
        })
    }

    #[cold]
    fn wait_for_memory(&self, bytes: usize) -> Result<Admitted<'_>> {
        let mut queue = self.queue.lock();
        if let Some(admitted) = self.enter(&queue, bytes, None) {
            return Ok(admitted);
        }
        let started = Instant::now();
        counters::add(&self.counters.stalls, 1);
        let place = self.is_large(bytes).then(|| queue.join(bytes));
        self.publish(&queue);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let result = self.wait_until_freed(&mut queue, bytes, place);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        if let Some(place) = place {
            queue.leave(place);
            self.publish(&queue);
            // Another one may be the first now.
            self.freed.notify_all();
        }
        // An event goes to the user's subscriber, which may take its time.
        drop(queue);
        let waited = started.elapsed();
        counters::add(&self.counters.stall_micros, waited.as_micros() as u64);
        events::stalled(bytes, waited, result.is_err());
        result
    }

    fn wait_until_freed(
        &self,
        queue: &mut MutexGuard<'_, Queue>,
        bytes: usize,
        place: Option<Place>,
    ) -> Result<Admitted<'_>> {
        let mut waited = Waited::default();
        let mut least = usize::MAX;
        self.wake_releaser.notify();
        loop {
            self.poison.check()?;
            if self.closing.load(Ordering::Acquire) {
                return Err(Error::Closed);
            }
            if let Some(admitted) = self.enter(queue, bytes, place) {
                return Ok(admitted);
            }
            if let Some(failure) = self.y_failure() {
                return Err(failure);
            }
            let releasable = self.check_resident(bytes, waited.resident)?;
            self.check_patience(bytes, &waited)?;
            self.ask_for_images(queue, &mut waited);
            let lasting = self.lasting(self.budget.held(Holder::IndexYTrees));
            let from = Instant::now();
            if self.freed.wait_for(queue, STALL_POLL).timed_out() {
                self.wake_releaser.notify();
            }
            let polled = from.elapsed().min(LONGEST_POLL);
            let add = |sum: &mut Duration, counts: bool| {
                *sum = if counts {
                    *sum + polled
                } else {
                    Duration::ZERO
                };
            };
            waited.all += polled;
            add(&mut waited.crowded_out, self.crowds_out(lasting));
            add(&mut waited.too_large, self.never_fits(bytes, lasting));
            add(
                &mut waited.resident,
                releasable.is_some_and(|now| now >= least),
            );
            least = releasable.map_or(usize::MAX, |now| now.min(least));
        }
    }

    /// Images of snapshots make way for a writer that has waited.
    fn ask_for_images(&self, queue: &mut MutexGuard<'_, Queue>, waited: &mut Waited) {
        let Some(holdings) = self.holdings().filter(|_| waited.all >= IMAGES_AFTER) else {
            return;
        };
        holdings.spill_images();
        if waited.all >= SNAPSHOTS_AFTER + waited.for_snapshots {
            waited.for_snapshots += IMAGES_AFTER;
            MutexGuard::unlocked(queue, || holdings.give_up_images());
        }
    }

    /// Whether a writer of `bytes` waits on.
    fn check_patience(&self, bytes: usize, waited: &Waited) -> Result<()> {
        let limits = &self.wait_limits;
        let hopeless = waited.crowded_out >= limits.crowded_out
            || waited.too_large >= limits.too_large && self.is_large(bytes);
        if hopeless && let Some(minimum_bytes) = self.budget_for(bytes) {
            return Err(Error::BudgetTooSmall {
                budget_bytes: self.budget.limit(),
                minimum_bytes,
            });
        }
        if waited.all >= limits.stall {
            return Err(Error::MemoryStalled {
                budget_bytes: self.budget.limit(),
                waited_ms: waited.all.as_millis() as u64,
            });
        }
        Ok(())
    }

    /// What no release of X makes less: what Index Y holds for its data (`y_trees`), buffers,
    /// filters, and what the caches keep: the least of them, or more if they cannot shrink.
    fn lasting(&self, y_trees: usize) -> usize {
        let held = |holder| self.budget.held(holder);
        let cache = held(Holder::IndexY).saturating_sub(self.lent_to_y());
        let cache = cache.min(self.budget.limit() / LEAST_CACHE_DIVISOR);
        y_trees + held(Holder::Transfer) + held(Holder::Filters) + cache.max(self.kept_by_caches())
    }

    /// `lasting` bytes leave X next to nothing.
    fn crowds_out(&self, lasting: usize) -> bool {
        lasting + self.budget.limit() / LEAST_X_DIVISOR >= self.watermarks().hard
    }

    /// `bytes` do not fit beside `lasting` ones.
    fn never_fits(&self, bytes: usize, lasting: usize) -> bool {
        lasting + self.budget.held(Holder::Log) + bytes >= self.watermarks().hard
    }

    /// The most that is admitted at once when X has released all, in bytes. Index Y may take more
    /// meanwhile, or less.
    pub(crate) fn most_at_once(&self) -> usize {
        let lasting = self.lasting(self.budget.held(Holder::IndexYTrees));
        let taken = lasting + self.budget.held(Holder::Log);
        self.watermarks().hard.saturating_sub(taken + 1)
    }

    /// A budget in which `bytes` would fit, if they do not fit this one: by what the Ys hold at
    /// this moment.
    fn budget_for(&self, bytes: usize) -> Option<usize> {
        let y_trees = self.holdings()?.y_bytes();
        let (limit, lasting) = (self.budget.limit(), self.lasting(y_trees));
        let held = |holder| self.budget.held(holder);
        let others = y_trees + held(Holder::Transfer) + held(Holder::Filters) + held(Holder::Log);
        let crowded = self.crowds_out(lasting).then_some(others / 2 * 5);
        let large = self.is_large(bytes) && self.never_fits(bytes, lasting);
        // Marks and caches take a fifth of a budget; a batch has a quarter, and its copy as much.
        let large = large.then_some((others + bytes) / 2 * 3);
        let least = crowded.max(large)? + MIN_ABOVE_OTHERS;
        Some(least.max(limit + limit / 8))
    }

    /// Where resident trees are what fills the budget: what may be released beside them. An error
    /// if that is next to nothing, or if nothing of it came free for a while: what X holds of other
    /// trees is not all to be had.
    fn check_resident(&self, bytes: usize, waited: Duration) -> Result<Option<usize>> {
        let Some(holdings) = self.holdings() else {
            return Ok(None);
        };
        // As they are now: what the releaser saw last may be of a tree that was dropped since.
        let resident = holdings.resident_bytes();
        let releasable = holdings.x_bytes().saturating_sub(resident);
        let used = self.budget.used();
        let others = used.saturating_sub(self.budget.held(Holder::Arena) + self.lent_to_y());
        let available = self.watermarks().low.saturating_sub(others);
        if resident == 0 || resident + bytes <= available {
            return Ok(None);
        }
        if releasable < bytes.max(available / 64) || waited >= self.wait_limits.too_large {
            return Err(Error::ResidentTreesTooLarge {
                needed_bytes: resident + bytes,
                available_bytes: available,
            });
        }
        Ok(Some(releasable))
    }
}
