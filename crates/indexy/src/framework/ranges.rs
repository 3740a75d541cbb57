//! What happens to a whole range of one tree: removed, hidden, compacted, discarded.
//!
//! Keeps: I1 (a range goes from Y before it goes from X). Threads: `tree.rs`; the run lock is held
//! while a range goes.

#![forbid(unsafe_code)]

use super::{disk_writer::Runs, policies::Evicted, regions::key_range::KeyRange, tree::Joined};
use crate::{
    error::{Error, Result},
    x::{IndexX, Order},
    y::Maintained,
};
use std::ops::ControlFlow;

/// So much of what was removed as a whole is freed in one step, of one or two milliseconds.
const FREED_BYTES: usize = 1 << 20;

impl Joined {
    /// Drops every entry, dirty ones too, and writes nothing to Y any more: the tree was dropped.
    /// Whoever waits for this Y hears of it.
    pub(crate) fn discard(&self) {
        self.discard_with(&mut self.writer.lock());
    }

    /// The same once more: a writer that was late may have left something. False, and nothing was
    /// done, if a run is in flight or a copy is being made of Y.
    pub(crate) fn try_discard(&self) -> bool {
        let runs = self.writer.try_lock();
        runs.map(|mut runs| self.discard_with(&mut runs)).is_some()
    }

    fn discard_with(&self, runs: &mut Runs) {
        self.writer.discard();
        // I3: what was read of Y before is not loaded after X was emptied.
        self.x.restamp(&[], None);
        self.drop_from_x(runs, &[], None);
        self.give_back();
        if let Some(radix) = &self.radix {
            radix.cache.writer.discard();
            radix.forget(&[], None);
        }
        // Whoever reads the tree is told that it is gone.
        self.versions.clear();
        self.shared.maintained.advance();
    }

    /// Drops every clean entry: the database was closed, and nobody is going to read it.
    pub(crate) fn forget(&self) {
        let settled = self.writer.settled();
        self.x.cut(&[], None, settled, false, usize::MAX);
        let _run = self.writer.lock();
        self.give_back();
        if let Some(radix) = &self.radix {
            radix.forget(&[], None);
        }
    }

    /// What was removed of X as a whole, and what it has of Y beside X: the filter, the counts of
    /// misses, and what was read ahead.
    fn give_back(&self) {
        while self.free_part_of_removed() {}
        self.writer.evicted().choose(Evicted::Ranges);
        self.misses.give_back();
        self.ends.forget();
    }

    /// Drops the entries of `[from, to)`, dirty ones too; the range is mounted then. The caller
    /// holds the run lock.
    pub(super) fn drop_from_x(&self, runs: &mut Runs, from: &[u8], to: Option<&[u8]>) {
        self.bury_operands(from, to);
        let run = runs.begin();
        // Only what is clean is cut.
        let _ = self
            .x
            .clean(from, to, run, &mut |_, _, _| ControlFlow::Continue(()));
        self.writer.settle(run);
        self.x.cut(from, to, run, false, usize::MAX);
    }

    /// Removes every key of `[from, to)` from Y and X. The caller holds the stripes of all keys and
    /// the run lock, and the log is durable up to here (I5).
    ///
    /// Operands are buried before: they would be merged into nothing. Y comes first: a reader that
    /// finds nothing in X must not be told of an older version (I1). Nothing is loaded meanwhile,
    /// and then every mounted range has a fresh stamp, so that nothing read from Y before is loaded
    /// any more (I3, `load_pause.rs`), and what was loaded goes with the rest. After an error
    /// nobody knows what Y shows: the caller poisons.
    pub(crate) fn remove_range(
        &self,
        runs: &mut Runs,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> Result<()> {
        if self.discarded() {
            return Ok(());
        }
        let _paused = self.load_pause.begin();
        self.before_removal(from, to);
        self.writer.remove_range(from, to)?;
        self.remove_range_from_x(runs, from, to);
        Ok(())
    }

    /// Before Y shows that `[from, to)` is removed; the caller has paused loads until X has dropped
    /// it. Operands are buried, and loads that are taking place come to their end.
    pub(crate) fn before_removal(&self, from: &[u8], to: Option<&[u8]>) {
        if self.discarded() {
            return;
        }
        self.bury_operands(from, to);
        self.shared.loads.wait();
    }

    /// The same in X, when Y has nothing of the range any more.
    pub(crate) fn remove_range_from_x(&self, runs: &mut Runs, from: &[u8], to: Option<&[u8]>) {
        if self.discarded() {
            return;
        }
        if from.is_empty() && to.is_none() {
            self.x.clear();
            self.removed_range(from, to);
            return;
        }
        // I3: before the first entry goes. A range that a cut has passed takes no load of what was
        // read from Y earlier, and what is loaded before this goes with the cut.
        self.x.restamp(from, to);
        self.drop_from_x(runs, from, to);
        self.x.clear_mounts(from, to);
        self.removed_range(from, to);
    }

    /// Frees a part of what was removed of X as a whole; false when nothing is left of it. Waits
    /// for another thread that does so.
    pub(crate) fn free_part_of_removed(&self) -> bool {
        let freed = self.x.take_apart(FREED_BYTES) > 0;
        if freed {
            self.shared.room.announce_room();
        }
        freed
    }

    /// After the removal of everything, when other writers go on: frees a part of what was in X,
    /// and has the releaser free the rest.
    pub(crate) fn free_removed(&self) {
        if self.free_part_of_removed() {
            self.shared.room.wake_releaser.notify();
        }
    }

    fn removed_range(&self, from: &[u8], to: Option<&[u8]>) {
        if let Some(radix) = &self.radix {
            radix.forget(from, to);
        }
        self.regions.note_write(from);
        self.shared.room.announce_freed();
        self.shared.wake_compactor.notify();
    }

    /// Replays the removal of a range from the log.
    pub(crate) fn replay_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<()> {
        let mut runs = self.writer.lock();
        self.remove_range(&mut runs, from, to)?;
        while self.free_part_of_removed() {}
        Ok(())
    }

    /// Before a batch is replayed that removes several ranges: `ranges`, some of these, go from Y
    /// at once; they ascend and do not overlap. Nothing that Y has of them is wanted any more, and
    /// what the batch puts there comes later. So each removal finds nothing in Y to write a version
    /// for.
    pub(crate) fn replay_ranges_of_y(&self, ranges: &[KeyRange<'_>]) -> Result<()> {
        if self.discarded() {
            return Ok(());
        }
        let _run = self.writer.lock();
        // X keeps its stamps beyond the pause: nothing is loaded during replay.
        let _paused = self.load_pause.begin();
        for (from, to) in ranges {
            self.before_removal(from, *to);
        }
        let removal = self.writer.begin_removal(ranges)?;
        self.writer.publish_removal(removal)
    }

    /// The same where Y must not be changed: each key that Y has is hidden by a tombstone. Calls
    /// `admit` with the bytes of each before.
    pub(crate) fn hide_range(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        admit: impl Fn(usize) -> Result<()>,
    ) -> Result<()> {
        self.drop_from_x(&mut self.writer.lock(), from, to);
        for entry in self.y.range(from, to, Order::Ascending)? {
            let (key, _) = entry?;
            admit(key.len())?;
            self.apply(&key, None);
        }
        Ok(())
    }

    /// One step of Y towards less space; see [`IndexY::compact`].
    pub(crate) fn compact(&self, from: &[u8], to: Option<&[u8]>) -> Result<Maintained> {
        match self.discarded() {
            true => Ok(Maintained::Idle),
            false => match self.y.compact(from, to) {
                // Found, and left as it was.
                Err(found @ Error::Corrupt { .. }) => Err(found),
                // Its files went under it.
                Err(_) if self.discarded() => Ok(Maintained::Idle),
                step => self.shared.guarded(step),
            },
        }
    }

    /// Clears the mounts of a tree whose Y is empty, but where they have operands, and while merges
    /// are replayed. Waits for a run in flight.
    pub(crate) fn clear_mounts_if_y_is_empty(&self) -> Result<()> {
        if self.merging.operator.get().is_some() && !self.shared.log.may_resolve() {
            return Ok(());
        }
        let _run = self.writer.lock();
        if !self.discarded() && self.x.stats().mounts > 0 && self.y.is_empty()? {
            self.x.clear_mounts(&[], None);
        }
        Ok(())
    }
}
