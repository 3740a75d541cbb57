//! The waiting room: who puts bytes into X waits here until they fit, or is told why they will not.
//!
//! Keeps: I7. Threads: any. Waits are bounded by [`STALL_LIMIT`].

#![forbid(unsafe_code)]

use super::Shared;
use crate::{
    error::{Error, Result},
    framework::{counters, watermark::Watermarks},
    mem::budget::Holder,
};
use parking_lot::MutexGuard;
use std::{
    cell::Cell,
    sync::{Weak, atomic::Ordering},
    time::{Duration, Instant},
};

/// Longest time that a writer waits for memory before it gets `MemoryStalled`; a time in which the whole process stands still
/// does not count. Tests of this crate do not have so long.
pub(crate) const STALL_LIMIT: Duration = Duration::from_secs(if cfg!(test) { 4 } else { 60 });

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

/// A thread that writes into holes looks whether what lives still fits whenever it was admitted so many bytes more.
const LOOK_AGAIN_BYTES: usize = 32 << 10;

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

impl Shared {
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
}
