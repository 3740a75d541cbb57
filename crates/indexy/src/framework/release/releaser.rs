//! The releaser: the thread that frees memory, from the high watermark down to the low one.
//!
//! Source: IndeXY II-C. What to do next is decided in `step.rs`; here it is done. Threads: one. It
//! waits for the cleaner's answer (which comes also when Y fails, and is not waited for after a
//! stop), for readers (bounded), and between two looks, until it is woken: by a writer that finds
//! memory short, or sees that what lives has reached its limit.

#![forbid(unsafe_code)]

use super::{
    cut,
    step::{Plan, Snapshot, Step},
};
use crate::{
    framework::{
        host::Host,
        shared::Shared,
        signal::{Signal, Stop},
        tree::Joined,
    },
    mem::budget::Holder,
    x::IndexX,
};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// The releaser looks around this often without being woken.
const IDLE: Duration = Duration::from_millis(200);

/// Readers get this long to leave before what they kept is looked at again.
const RECLAIM_POLL: Duration = Duration::from_micros(500);

/// See the module header.
pub(crate) struct Releaser {
    pub stop: Stop,
    pub shared: Arc<Shared>,
    pub host: Arc<dyn Host>,
    /// Nothing is written: there is no cleaner.
    pub read_only: bool,
}

impl Releaser {
    pub(crate) fn run(&self) {
        let mut plan = Plan::default();
        while !self.stop.is_set() {
            self.wake().wait(IDLE);
            self.tally_index_y();
            while !self.stop.is_set() && self.step(&mut plan) {}
            self.shared.room.rest_release();
        }
    }

    fn wake(&self) -> &Signal {
        &self.shared.room.wake_releaser
    }

    /// Does one step; false when it was a rest.
    fn step(&self, plan: &mut Plan) -> bool {
        self.host.divide_memory();
        self.host.empty_dropped();
        let (room, trees) = (&self.shared.room, self.host.trees());
        if self.free_removed(&trees) {
            return true;
        }
        let now = self.look(&trees);
        let (step, goal) = plan.next(&now);
        // Where nothing but resident trees is left, writers are not told of a cap that nothing can
        // be released for.
        let releasable = room.releasable_bytes.load(Ordering::Relaxed) > 0;
        if goal.high == now.marks.high || releasable {
            room.set_live_limit(goal.high);
        }
        match step {
            Step::Release { need, effort } => {
                let freed = cut::release(&trees, &self.shared, need, effort);
                self.host.collect_garbage();
                room.look_at_live();
                plan.released(freed, need, effort);
                if freed > 0 {
                    room.announce_freed();
                }
            }
            Step::Clean => {
                let asked = self.shared.clean_request.ask();
                self.shared.wake_cleaner.notify();
                // What is removed as a whole meanwhile is not what Y may be long in taking.
                let free = || while self.free_removed(&self.host.trees()) {};
                self.shared.clean_request.wait(asked, &self.stop, free);
            }
            Step::Reclaim => {
                self.host.collect_garbage();
                room.announce_freed();
                std::thread::sleep(RECLAIM_POLL);
            }
            Step::EmptySlabs { bytes } => {
                self.host.empty_slabs(bytes);
                room.announce_freed();
            }
            Step::Rest { exhausted } => {
                if exhausted && now.dirty && !self.read_only {
                    // Y refuses runs: it is asked again.
                    self.shared.clean_request.ask();
                    self.shared.wake_cleaner.notify();
                }
                return false;
            }
        }
        true
    }

    /// A part of what was removed as a whole; false when there is nothing. It comes before all
    /// else: nobody wants it any more.
    fn free_removed(&self, trees: &[Arc<Joined>]) -> bool {
        let freed = trees.iter().any(|tree| tree.free_part_of_removed());
        if freed {
            self.host.collect_garbage();
            self.shared.room.announce_room();
        }
        freed
    }

    fn look(&self, trees: &[Arc<Joined>]) -> Snapshot {
        let room = &self.shared.room;
        Snapshot {
            marks: room.watermarks(),
            limit: self.shared.budget.limit(),
            used: self.shared.budget.used(),
            live: room.live(),
            wanted: room.wanted(),
            awaited: room.is_awaited(),
            dirty: trees.iter().any(|t| !t.resident && t.x.stats().dirty > 0),
            can_clean: !self.read_only && room.y_failure().is_none(),
        }
    }

    /// Charges what the Ys hold now.
    fn tally_index_y(&self) {
        let bytes = self.host.y_bytes();
        self.shared.budget.set(Holder::IndexYTrees, bytes);
    }
}
