//! The end of a sorted load: its entries become the tree's.
//!
//! `docs/design.md` (Sorted loads) has the protocol, `db/tree/load_sorted.rs` what comes before.
//! In short: the range holds no key. Y is made to hold none of it either, durably. Then the log
//! says, durably, that its older records count for nothing there. Then Y shows the load and makes
//! it durable. Last, X asks Y about the range.
//!
//! Keeps:
//! - I8: replay applies no record from before the load to a key of its range, so it can neither
//!   undo the load nor bring back what Y forgot. The caller keeps writers out until the load is
//!   durable, so no record that a crash keeps comes after a load that it does not keep.
//! - I5: Y shows the load when the log is durable up to its record.
//! - I1: until X is told to ask Y, it says that the keys are absent, or hides them by tombstones;
//!   both were true. I3: ranges that lose tombstones get a fresh stamp first.
//! - I4: nothing but tombstones is dropped from X.
//! - I10, I11: open snapshots, and with them transactions, learn that the range had no key; none
//!   begins meanwhile. I12: markers of the range are resolved before Y forgets it.
//!
//! Threads: any; the caller holds every stripe, and holds off checkpoints: a copy of Y from before
//! the load with a log from after it would be of no moment.

#![forbid(unsafe_code)]

use super::{disk_writer::Runs, scan::MergeLimits, spill::RunLock, tree::Joined};
use crate::{
    error::{Error, Result},
    wal::RecordRef,
    x::{IndexX, Order},
    y::SortedLoad,
};

/// A look for one key.
const ONE: MergeLimits = MergeLimits {
    bytes: 1,
    entries: 1,
    at_hand: 1,
};
/// Bytes of the log record beside the ends of the range.
const RECORD_OVERHEAD_BYTES: usize = 32;

/// What became of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    Yes,
    /// The range has a key. Nothing happened.
    NotEmpty,
}

impl Joined {
    /// Puts the sealed `load`, whose keys lie in `[from, to)`, into the tree. See the module
    /// header. After an error nothing of it is in the tree, unless the handle is poisoned: then the
    /// next open finds all of it or nothing.
    pub(crate) fn take_load(
        &self,
        load: Box<dyn SortedLoad + '_>,
        from: &[u8],
        to: &[u8],
    ) -> Result<Taken> {
        let mut runs = self.writer.lock();
        if self.discarded() {
            return Err(Error::Closed);
        }
        if self.has_key(from, to)? {
            return Ok(Taken::NotEmpty);
        }
        // What makes no key of nothing.
        self.bury_operands(from, Some(to));
        // I12: before Y forgets what it has.
        self.resolve_markers(from, Some(to), RunLock::Held);
        self.forget_in_y(from, to)?;
        // Whoever follows the log hears of the load when it can be read.
        let _registered = self.shared.log.register();
        self.log_load(from, to)?;
        // I9: Y shows the keys at a moment that no latch tells.
        let _held_off = self.dead.hold_off_all();
        // I10, I11: no snapshot begins before all of the load is seen; those that are open learn
        // that there was no key.
        let versions = &self.shared.versions;
        let _gate = versions.gate();
        versions.push_span(&self.versions, from, to);
        let published = self.writer.publish(load, from, to);
        if let Err(error) = published {
            return Err(self.take_back(&mut runs, from, to, error));
        }
        self.ask_y(&mut runs, from, to);
        self.x.mount(from, Some(to));
        self.shared.wake_compactor.notify();
        Ok(Taken::Yes)
    }

    /// Whether readers see a key in `[from, to)`.
    fn has_key(&self, from: &[u8], to: &[u8]) -> Result<bool> {
        let mut at = Some(from.to_vec());
        while let Some(from) = at {
            let chunk = self.scan_chunk(&from, Some(to), Order::Ascending, ONE)?;
            if !chunk.entries.is_empty() {
                return Ok(true);
            }
            at = chunk.resume;
        }
        Ok(false)
    }

    /// Y has no key of the range afterwards, nor has what a crash leaves of Y. Readers see no
    /// difference: tombstones in X, or in the log, stand over whatever there was.
    fn forget_in_y(&self, from: &[u8], to: &[u8]) -> Result<()> {
        let stale = self
            .y
            .range(from, Some(to), Order::Ascending)?
            .next()
            .transpose()?;
        if stale.is_some() {
            self.shared
                .guarded(self.writer.remove_range(from, Some(to)))?;
        }
        self.writer.make_durable()
    }

    /// From now on replay begins for the range with what Y has: nothing. True whatever becomes of
    /// the load.
    fn log_load(&self, from: &[u8], to: &[u8]) -> Result<()> {
        let Some(log) = self.shared.log.get() else {
            return Ok(());
        };
        let record = RecordRef::Load {
            tree: self.id,
            from,
            to: Some(to),
        };
        // Under the run lock: whoever has room in the log waits for no run.
        let _room = log.admit(from.len() + to.len() + RECORD_OVERHEAD_BYTES)?;
        let end = log.append(record)?;
        // I5.
        log.wait_durable(end)
    }

    /// What X has of the range goes: tombstones, for nobody wrote there.
    fn ask_y(&self, runs: &mut Runs, from: &[u8], to: &[u8]) {
        // I3: a range that loses a tombstone takes no load of what was read from Y earlier.
        self.x.restamp(from, Some(to));
        self.drop_from_x(runs, from, Some(to));
        self.shared.room.announce_freed();
    }

    /// Y could not show the load, or not make it durable, because of `error`: it shows nothing of
    /// it afterwards, or the handle gives up.
    fn take_back(&self, runs: &mut Runs, from: &[u8], to: &[u8], error: Error) -> Error {
        let removed = self.writer.remove_range(from, Some(to));
        // What readers loaded meanwhile.
        self.ask_y(runs, from, to);
        let gone = removed.and_then(|()| self.writer.make_durable());
        if gone.is_err() && self.shared.poison.check().is_ok() {
            self.shared.poison.set(&error);
            self.shared.room.announce_freed();
        }
        error
    }
}
