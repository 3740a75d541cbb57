//! What all trees of one database share: budget and waiting room, log, counters, and the signals
//! between its threads. Each part keeps its own rules; here they only stand together.

#![forbid(unsafe_code)]

use super::{
    counters::Counters,
    evicted::room::FilterRoom,
    heat::Heat,
    journal::Journal,
    load_pause::Loads,
    memory::{Room, WaitLimits},
    misses::MissCounts,
    policies::Policies,
    signal::{Progress, Request, Signal},
};
use crate::{
    error::{Error, Result},
    mem::budget::Budget,
    poison::Poison,
    versions::{Versions, time::Clock},
};
use parking_lot::Mutex;
use std::sync::{Arc, atomic::AtomicBool};

/// See the module header.
pub(crate) struct Shared {
    pub budget: Arc<Budget>,
    pub poison: Arc<Poison>,
    pub counters: Arc<Counters>,
    pub room: Room,
    pub log: Journal,
    pub wake_cleaner: Signal,
    pub wake_compactor: Signal,
    pub wake_spiller: Signal,
    /// Whoever keeps the hot set: the database closes.
    pub wake_keeper: Signal,
    /// Whoever builds filters: there is a new one, or the database closes.
    pub wake_builder: Signal,
    /// That thread runs.
    pub has_builder: AtomicBool,
    /// What filters may take.
    pub filters: FilterRoom,
    /// Images were spilled, or given up: whoever waits for room for images looks again.
    pub spilled: Progress,
    /// Memory is short: all images are to be spilled.
    pub spill_request: Request,
    /// The releaser found too little that is clean: what the cleaner does first.
    pub clean_request: Request,
    /// A step of maintenance was done, or a tree was dropped: whoever waits for a congested Y looks
    /// again.
    pub maintained: Progress,
    /// What snapshots need.
    pub versions: Versions,
    /// How often keys were missed lately, where a tree wants to know.
    pub miss_counts: MissCounts,
    /// Values of Y that are being put into memory.
    pub loads: Loads,
    /// Held by a release by hand while it cuts.
    pub releasing: Mutex<()>,
    /// How often keys are read, where a hot set is kept.
    pub heat: Option<Heat>,
    /// What was chosen about cold data.
    pub policies: Policies,
}

impl Shared {
    pub(crate) fn new(budget: Arc<Budget>, poison: Arc<Poison>) -> Self {
        Self::with_wait_limits(budget, poison, WaitLimits::default())
    }

    pub(crate) fn with_wait_limits(
        budget: Arc<Budget>,
        poison: Arc<Poison>,
        wait_limits: WaitLimits,
    ) -> Self {
        let counters = Arc::<Counters>::default();
        let room = Room::new(
            Arc::clone(&budget),
            Arc::clone(&poison),
            Arc::clone(&counters),
            wait_limits,
        );
        Self {
            versions: Versions::new(Arc::clone(&budget)),
            miss_counts: MissCounts::new(Arc::clone(&budget)),
            loads: Loads::default(),
            filters: FilterRoom::new(Arc::clone(&budget)),
            budget,
            poison,
            counters,
            room,
            log: Journal::default(),
            wake_cleaner: Signal::default(),
            wake_compactor: Signal::default(),
            wake_spiller: Signal::default(),
            wake_keeper: Signal::default(),
            wake_builder: Signal::default(),
            has_builder: AtomicBool::new(false),
            spilled: Progress::default(),
            spill_request: Request::default(),
            clean_request: Request::default(),
            maintained: Progress::default(),
            releasing: Mutex::default(),
            heat: None,
            policies: Policies::default(),
        }
    }

    /// The same with counts of what is read.
    pub(crate) fn with_heat(self) -> Self {
        let heat = Some(Heat::new(Arc::clone(&self.budget)));
        Self { heat, ..self }
    }

    /// The same by another clock.
    pub(crate) fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        let versions = self.versions.with_clock(clock);
        Self { versions, ..self }
    }

    /// The same with other policies.
    pub(crate) fn with_policies(self, policies: Policies) -> Self {
        Self { policies, ..self }
    }

    /// What a write to Y, or to the files of the log, came to. A failure poisons, on whatever
    /// thread: nobody knows what a failed write or sync left on the device, and a later one that
    /// succeeds says nothing about it. A full device does not poison, nor a want of descriptors,
    /// nor what Y refuses beforehand.
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
            self.room.announce_freed();
        }
        result
    }
}
