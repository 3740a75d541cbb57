//! The spiller: the thread that writes images to disk, and merges their files.
//!
//! Threads: one. It waits for a run in flight where images have markers, and for the disk; between
//! two looks, until it is woken: when there are many images, and by writers who wait for room. It
//! makes room between the steps of a merge, too. Where it cannot, the oldest snapshots are given
//! up.

#![forbid(unsafe_code)]

use super::{host::Host, shared::Shared, signal::Stop, spill::RunLock};
use crate::events;
use std::{sync::Arc, time::Duration};

/// The spiller looks around this often without being woken.
const IDLE: Duration = Duration::from_millis(200);

/// See the module header.
pub(super) struct Spiller {
    pub stop: Stop,
    pub shared: Arc<Shared>,
    pub host: Arc<dyn Host>,
}

impl Spiller {
    pub(super) fn run(&self) {
        while !self.stop.is_set() {
            self.shared.wake_spiller.wait(IDLE);
            self.make_room(|| self.shared.versions.give_up_oldest());
            self.merge();
        }
    }

    /// Spills the largest images first until they are few; all of them where memory is short. What
    /// cannot be spilled is left to `refused`: nothing more is spilled if that says false.
    fn make_room(&self, mut refused: impl FnMut() -> bool) -> bool {
        let versions = &self.shared.versions;
        if self.shared.spill_request.is_pending() {
            for tree in self.host.trees() {
                if let Err(error) = tree.spill(RunLock::Free) {
                    events::refused(&error);
                    versions.give_up_oldest();
                }
            }
            self.shared.spill_request.answer();
            self.shared.spilled.advance();
        }
        if versions.is_crowded() {
            versions.collect();
        }
        while versions.is_crowded() && !self.stop.is_set() {
            let trees = self.host.trees();
            let largest = trees.iter().max_by_key(|tree| tree.versions.bytes());
            let spilled = largest
                .filter(|tree| tree.versions.bytes() > 0)
                .map(|tree| {
                    let spilled = tree.spill(RunLock::Free);
                    spilled.inspect_err(|error| events::refused(error)).is_ok()
                });
            // Snapshots pay for what cannot be spilled.
            if spilled != Some(true) && !refused() {
                return false;
            }
            self.shared.spilled.advance();
        }
        true
    }

    fn merge(&self) {
        for tree in self.host.trees() {
            // What the merge takes may be all that a spill lacks: it ends before a snapshot does.
            let mut between = || self.make_room(|| false) && !self.stop.is_set();
            // A file that cannot be merged can be read all the same.
            while tree.merge_images(&mut between).unwrap_or(false) {}
        }
    }
}
