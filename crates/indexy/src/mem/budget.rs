//! One memory budget over everything that a database holds (I7).
//!
//! Who takes bytes says so here, where it takes them: the arena by whole
//! slabs, the log its buffers, Index Y its documented upper bound, scans their
//! chunks. The counters are per category and touched by the slab, never by the
//! entry, so that no hot path shares one.
//!
//! Threads: any. The sum of relaxed counters may lag by what is in flight.
//! Not here: who releases and who waits (`framework/`).

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Who holds the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Holder {
    /// Slabs and large blocks of Index X, retired garbage included.
    Arena,
    /// Buffers of the log.
    Log,
    /// Records of the log beside its buffers: they go once they are written.
    LogPieces,
    /// Caches that all Index Ys share (upper bound).
    IndexY,
    /// Tables, filters and buffers of each Index Y (upper bound).
    IndexYTrees,
    /// Runs on their way to Y, sketches of what is read, tables of what was written.
    Transfer,
    /// Chunks of open scans.
    Scans,
    /// Entries of Y at the ends of trees, read ahead.
    Ends,
    /// Keys that wait to be read from Y.
    Fetches,
    /// Filters of keys that left memory.
    Filters,
    /// Large writes and loads that were admitted and have not reached X yet.
    Admitted,
    /// Nothing yet: what the first large write that waits is going to take. Not a part of what is
    /// used.
    Claimed,
}
const HOLDERS: usize = 12;

/// The budget is tight from this part of it on, in 1/256.
const TIGHT: usize = 226;
/// What is left above the ceiling, in 1/256 and at least in bytes; and how low it is at least, in
/// 1/256.
const ABOVE_CEILING: usize = 8;
const MIN_ABOVE_CEILING: usize = 256 << 10;
const LEAST_CEILING: usize = 238;

/// Above this many bytes of a budget of `limit` bytes is only what nobody can be refused.
#[inline]
pub(crate) fn ceiling(limit: usize) -> usize {
    let part = |n: usize| (limit / 256).saturating_mul(n);
    let above = part(ABOVE_CEILING).max(MIN_ABOVE_CEILING);
    part(LEAST_CEILING).max(limit.saturating_sub(above))
}

/// The budget and what is taken of it, in bytes.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: AtomicUsize,
    held: [AtomicUsize; HOLDERS],
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit: AtomicUsize::new(limit),
            held: Default::default(),
        }
    }

    #[inline]
    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Relaxed)
    }

    pub(crate) fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Relaxed);
    }

    /// Takes `bytes` for `holder`. Never refuses: admission is asked for before (framework/).
    pub(crate) fn take(&self, holder: Holder, bytes: usize) {
        self.held[holder as usize].fetch_add(bytes, Relaxed);
    }

    /// Gives `bytes` back.
    pub(crate) fn give(&self, holder: Holder, bytes: usize) {
        let before = self.held[holder as usize].fetch_sub(bytes, Relaxed);
        debug_assert!(
            before >= bytes,
            "{holder:?} gave back {bytes} of {before} bytes"
        );
    }

    /// Replaces what `holder` holds, where one thread measures it from time to time.
    pub(crate) fn set(&self, holder: Holder, bytes: usize) {
        self.held[holder as usize].store(bytes, Relaxed);
    }

    #[inline]
    pub(crate) fn held(&self, holder: Holder) -> usize {
        self.held[holder as usize].load(Relaxed)
    }

    /// Little is left: who can use what is taken already takes no more.
    pub(crate) fn is_tight(&self) -> bool {
        self.used() >= self.limit() / 256 * TIGHT
    }

    /// Nothing is left but for what cannot be refused.
    pub(crate) fn is_full(&self) -> bool {
        self.used() >= ceiling(self.limit())
    }

    /// All that is taken.
    #[inline]
    pub(crate) fn used(&self) -> usize {
        self.held[..Holder::Claimed as usize]
            .iter()
            .map(|h| h.load(Relaxed))
            .sum()
    }

    /// All that is taken but what is only promised to writers, who take it or give it back. Read
    /// holder by holder: a promise that ends meanwhile must not count.
    pub(crate) fn taken(&self) -> usize {
        let taken = self.held[..Holder::Admitted as usize].iter();
        taken.map(|h| h.load(Relaxed)).sum()
    }

    /// All that is taken or claimed: what a later write is to respect.
    #[inline]
    pub(crate) fn spoken_for(&self) -> usize {
        self.held.iter().map(|h| h.load(Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i7_a_promise_that_ends_does_not_count_as_taken() {
        const READS: usize = 200_000;
        let budget = Budget::new(1 << 20);
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|s| {
            s.spawn(|| {
                while !done.load(Relaxed) {
                    budget.take(Holder::Admitted, 4096);
                    budget.give(Holder::Admitted, 4096);
                }
            });
            let most = (0..READS).map(|_| budget.taken()).max();
            done.store(true, Relaxed);
            assert_eq!(most, Some(0));
        });
    }
}
