//! The one way to write to a tree's Index Y: one run at a time, each settled before the next.
//!
//! Keeps I2 and I4 (a run that nobody knows the end of poisons), I1 (the filter of a tree knows a
//! key before Y does), and serves I5 and I6, which its callers keep. Threads: any. The *run lock*
//! admits one run, one new choice of regions, or one direct write at a time, and is held across the
//! I/O of Y; readers and writers of X do not need it. The lock under which Y is made durable comes
//! after the run lock. No wait in here but for
//! these locks: each is given back when a call of Y returns.

#![forbid(unsafe_code)]

use super::{
    ends::{Showing, Shown},
    evicted::{EvictedKeys, Noted},
    shared::Shared,
};
use crate::{
    error::{Error, Result},
    x::RunId,
    y::{IndexY, KeyRange, RangeRemoval, RunEntry, RunSource, SortedLoad},
};
use parking_lot::{Mutex, MutexGuard};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

/// See the module header.
pub(crate) struct DiskWriter {
    y: Arc<dyn IndexY>,
    shared: Arc<Shared>,
    runs: Mutex<Runs>,
    /// Held while Y is made durable.
    making_durable: Mutex<()>,
    /// Every run up to this one is settled: acknowledged, or failed and dirty again.
    settled: AtomicU32,
    /// The tree was dropped: its Y may be gone. Set under the run lock.
    discarded: AtomicBool,
    /// Changes of what Y shows; each is announced before it can be seen.
    shown: Shown,
    /// Which keys Y has; knows of each before Y does.
    evicted: EvictedKeys,
}

/// State under the run lock.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    last: RunId,
    /// Where the next check-back pass starts.
    pub cursor: usize,
}

impl Runs {
    /// The number of the next run.
    pub(crate) fn begin(&mut self) -> RunId {
        self.last += 1;
        self.last
    }
}

impl DiskWriter {
    pub(crate) fn new(y: Arc<dyn IndexY>, shared: Arc<Shared>) -> Self {
        Self {
            y,
            shared,
            runs: Mutex::default(),
            making_durable: Mutex::default(),
            settled: AtomicU32::new(0),
            discarded: AtomicBool::new(false),
            shown: Shown::default(),
            evicted: EvictedKeys::default(),
        }
    }

    /// Changes of what Y shows. Nothing else changes it.
    pub(crate) fn shown(&self) -> &Shown {
        &self.shown
    }

    /// What is known of the keys that Y has.
    pub(crate) fn evicted(&self) -> &EvictedKeys {
        &self.evicted
    }

    /// Takes the run lock; waits for a run in flight.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock()
    }

    /// The same, unless a run is in flight.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Runs>> {
        self.runs.try_lock()
    }

    /// Has Y write a run. The caller holds the run lock.
    ///
    /// A Y that panics, on whatever thread, leaves a run of which nobody knows what Y took: its
    /// entries are marked clean (I2), and the next run to go well would let them be cut and their
    /// log be truncated. So nothing is written from then on; poisoned before the run lock is let
    /// go.
    pub(crate) fn write_run(&self, source: &mut dyn RunSource) -> Result<()> {
        let mut source = Announced {
            source,
            noted: self.evicted.for_run(),
            shown: &self.shown,
            showing: None,
        };
        let result = self.alarmed(|| self.y.write_run(&mut source));
        self.shared.guarded(result)
    }

    /// Has Y remove a range. The caller holds the run lock, and poisons after an error.
    pub(crate) fn remove_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<()> {
        let _showing = self.shown.announce();
        self.alarmed(|| self.y.remove_range(from, to))?;
        self.evicted.forget_removed(from, to);
        Ok(())
    }

    /// Has Y make the removal of `ranges` ready. The caller holds the run lock until it has dropped
    /// or published it. After an error nothing has changed.
    pub(crate) fn begin_removal(
        &self,
        ranges: &[KeyRange<'_>],
    ) -> Result<Box<dyn RangeRemoval + '_>> {
        match self.y.begin_removal(ranges) {
            Err(found @ Error::Corrupt { .. }) => Err(found),
            begun => {
                let begun = self.shared.guarded(begun)?;
                for (from, to) in ranges {
                    self.evicted.forget_removed(from, *to);
                }
                Ok(begun)
            }
        }
    }

    /// Has Y show a removal. The caller holds the run lock, and poisons after an error.
    pub(crate) fn publish_removal(&self, removal: Box<dyn RangeRemoval + '_>) -> Result<()> {
        let _showing = self.shown.announce();
        self.alarmed(|| removal.publish())
    }

    /// Has Y show a load of keys in `[from, to)`. The caller holds the run lock.
    pub(crate) fn publish(
        &self,
        load: Box<dyn SortedLoad + '_>,
        from: &[u8],
        to: &[u8],
    ) -> Result<()> {
        // I1: no run has noted its keys.
        self.evicted.forget(from, Some(to));
        let _showing = self.shown.announce();
        let result = self.alarmed(|| load.publish());
        self.shared.guarded(result)
    }

    /// Poisons when `write` panics.
    fn alarmed(&self, write: impl FnOnce() -> Result<()>) -> Result<()> {
        struct Alarm<'a>(&'a Shared);
        impl Drop for Alarm<'_> {
            fn drop(&mut self) {
                self.0.poison.set(&"writing to Index Y panicked");
                self.0.room.announce_freed();
            }
        }
        let alarm = Alarm(&self.shared);
        let result = write();
        std::mem::forget(alarm);
        result
    }

    /// From now on leaves of this run may be cut; pairs with the load in `settled`.
    pub(crate) fn settle(&self, run: RunId) {
        self.settled.store(run, Ordering::Release);
    }

    /// Settled runs; pairs with the store in `settle`.
    pub(crate) fn settled(&self) -> RunId {
        self.settled.load(Ordering::Acquire)
    }

    /// The tree was dropped. The caller holds the run lock.
    pub(crate) fn discard(&self) {
        self.discarded.store(true, Ordering::Release);
    }

    /// The tree was dropped: failures of its Y mean nothing any more.
    pub(crate) fn is_discarded(&self) -> bool {
        self.discarded.load(Ordering::Acquire)
    }

    /// Makes every run that is acknowledged by now durable. One thread at a time: a Y need not
    /// expect two.
    pub(crate) fn make_durable(&self) -> Result<()> {
        let _one = self.making_durable.lock();
        match self.y.make_durable() {
            Err(_) if self.is_discarded() => Ok(()),
            made => self.shared.guarded(made),
        }
    }

    /// Copies Y, as it is between two runs, into the absent directory `dest`.
    pub(crate) fn copy_to(&self, dest: &std::path::Path) -> Result<()> {
        let _no_run = (!self.y.copies_beside_runs()).then(|| self.lock());
        // What fails from there on is the copy.
        self.make_durable()?;
        self.y.copy_to(dest).inspect_err(|_| {
            // Unless it is this database that can write no more: that is found out here (runs may
            // go on beside the copy).
            let _ = self.make_durable();
        })
    }
}

/// A run that tells when Y is about to show it.
struct Announced<'a> {
    source: &'a mut dyn RunSource,
    noted: Noted,
    shown: &'a Shown,
    /// Until Y has shown it, or has failed.
    showing: Option<Showing<'a>>,
}

impl RunSource for Announced<'_> {
    fn drain(&mut self, sink: &mut dyn FnMut(RunEntry<'_>) -> Result<()>) -> Result<()> {
        // I1: before Y has the key.
        let noted = &self.noted;
        self.source.drain(&mut |(key, value)| {
            noted.note(key, value);
            sink((key, value))
        })
    }

    fn before_publish(&mut self) -> Result<()> {
        self.source.before_publish()?;
        self.showing = Some(self.shown.announce());
        Ok(())
    }
}
