//! Images of a tree on their way to disk, and writers that wait for that.
//!
//! Keeps: I12 (the run lock is held while markers are read and until the file is shown), I10 with
//! `versions/spill.rs`.
//!
//! Threads: the spiller (`spiller.rs`), and whoever replaces markers with the run lock held and has
//! no room for them. A writer of a single key, and a batch before it holds more than stripes, wait
//! for the spiller, which takes run locks and nothing that a writer holds meanwhile.

#![forbid(unsafe_code)]

use super::{signal::Stop, tree::Joined};
use crate::{
    error::{Error, Result},
    mem::budget::Budget,
    versions::{Image, spill::Cold},
    y::IndexY,
};
use std::time::{Duration, Instant};

/// So many markers are read together at most,
const MARKERS_AT_ONCE: usize = 64;
/// and as many as take this part of the budget when they are as large as the largest so far.
const READ_DIVISOR: usize = 64;
/// A writer waits so long for a spiller that does not get on. Then the oldest snapshots are given
/// up.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Reads what markers stand for: few at once where values are large.
pub(super) struct ColdReads<'y> {
    y: &'y dyn IndexY,
    budget: usize,
    at_once: usize,
    largest: usize,
}

impl<'y> ColdReads<'y> {
    pub(super) fn new(y: &'y dyn IndexY, budget: &Budget) -> Self {
        Self {
            y,
            budget: budget.limit(),
            at_once: 1,
            largest: 0,
        }
    }
}

impl Cold for ColdReads<'_> {
    fn at_once(&self) -> usize {
        self.at_once
    }

    fn read(&mut self, keys: &[&[u8]]) -> Result<Vec<Image>> {
        let found = self.y.multi_get(keys)?;
        let largest = found.iter().flatten().map(|value| value.len()).max();
        self.largest = self.largest.max(largest.unwrap_or(0));
        let most = self.budget / READ_DIVISOR / self.largest.max(1);
        self.at_once = (self.at_once * 2).min(most).clamp(1, MARKERS_AT_ONCE);
        let image = |value| match value {
            Some(value) => Image::Value(value),
            None => Image::Absent,
        };
        Ok(found.into_iter().map(image).collect())
    }
}

/// Whether a caller holds the run lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunLock {
    Held,
    /// The caller holds all stripes instead.
    Free,
}

impl Joined {
    /// Spills the images of this tree. Errors: those of Y and of the disk; nothing has changed
    /// then.
    pub(crate) fn spill(&self, run_lock: RunLock) -> Result<()> {
        let versions = &self.shared.versions;
        let Some(disk) = versions.disk() else {
            return Ok(());
        };
        let frozen = self.versions.freeze();
        let must_lock = run_lock == RunLock::Free && frozen.has_markers();
        let _run = must_lock.then(|| self.writer.lock());
        if self.discarded() {
            self.versions.clear();
            return Ok(());
        }
        let mut cold = ColdReads::new(&*self.y, &self.shared.budget);
        let spilled = self
            .versions
            .spill(&frozen, disk, &versions.epochs(), &mut cold);
        drop(frozen);
        versions.spilled();
        self.shared.spilled.advance();
        self.shared.room.announce_freed();
        spilled
    }

    /// Merges files of images of this tree; see [`Store::merge`](crate::versions::store::Store).
    pub(super) fn merge_images(&self, between: &mut dyn FnMut() -> bool) -> Result<bool> {
        let versions = &self.shared.versions;
        let Some(disk) = versions.disk().filter(|_| !self.discarded()) else {
            return Ok(false);
        };
        let open = || versions.epochs();
        self.versions
            .merge(disk, open, versions.disk_room(), between)
    }

    /// Does `admit` again, which was `refused` memory beside resident trees, if images were in its
    /// way: it has not waited for them to go to disk, as it does where nothing is resident.
    pub(crate) fn admit_after_spill<T>(
        &self,
        refused: Error,
        admit: impl Fn() -> Result<T>,
    ) -> Result<T> {
        match refused {
            Error::ResidentTreesTooLarge { .. } if self.spill_for_memory() => admit(),
            _ => Err(refused),
        }
    }

    /// Memory is short: waits until the images of all trees are on disk. The caller holds stripes
    /// at most. False if there was nothing to spill.
    pub(crate) fn spill_for_memory(&self) -> bool {
        let shared = &self.shared;
        if shared.versions.disk().is_none() || shared.versions.bytes().0 == 0 {
            return false;
        }
        let deadline = Instant::now() + LONGEST_WAIT;
        shared.spill_request.ask();
        while shared.spill_request.is_pending()
            && Instant::now() < deadline
            && shared.poison.check().is_ok()
        {
            let seen = shared.spilled.seen();
            shared.wake_spiller.notify();
            shared.spilled.wait_past(seen, Stop::LOOK);
        }
        true
    }

    /// Waits until images may be left. The caller holds stripes at most. Ends when the spiller has
    /// made room, no snapshot is open, or after a while in which it did nothing: then the oldest
    /// snapshots are given up. Cost where there is room: some loads.
    pub(crate) fn await_image_room(&self) {
        if self.shared.versions.is_full() {
            self.await_spill();
        }
    }

    #[cold]
    fn await_spill(&self) {
        let (versions, spilled) = (&self.shared.versions, &self.shared.spilled);
        let (mut seen, mut deadline) = (spilled.seen(), Instant::now() + LONGEST_WAIT);
        while versions.is_full() && versions.watch() != 0 {
            if Instant::now() >= deadline || self.shared.poison.check().is_err() {
                while versions.is_full() && versions.give_up_oldest() {}
                return;
            }
            self.shared.wake_spiller.notify();
            spilled.wait_past(seen, Stop::LOOK);
            let now = spilled.seen();
            if now > seen {
                (seen, deadline) = (now, Instant::now() + LONGEST_WAIT);
            }
        }
    }
}
