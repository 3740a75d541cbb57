//! The compactor: the thread that does the maintenance of Index Y.
//!
//! Threads: one. It waits for Y in `maintain`, which ends soon after `interrupt`, and between two
//! looks, until it is woken: after a run, and by whoever waits for a congested Y.

#![forbid(unsafe_code)]

use super::{host::Host, shared::Shared, signal::Stop, tree::Joined};
use crate::{events, y::Maintained};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// The compactor looks around this often without being woken.
const IDLE: Duration = Duration::from_millis(200);

/// Pause before a Y is asked again after it failed.
const RETRY: Duration = Duration::from_millis(100);

/// See the module header.
pub(super) struct Compactor {
    pub stop: Stop,
    pub shared: Arc<Shared>,
    pub host: Arc<dyn Host>,
}

impl Compactor {
    pub(super) fn run(&self) {
        while !self.stop.is_set() {
            self.shared.wake_compactor.wait(IDLE);
            for tree in self.host.trees() {
                self.maintain(&tree);
            }
        }
    }

    /// Until nothing is due, the tree is dropped, or the database stops.
    fn maintain(&self, tree: &Joined) {
        while !self.stop.is_set() && !tree.discarded() {
            let from = Instant::now();
            let step = tree.y.maintain();
            self.shared.maintained.advance();
            match step {
                Ok(Maintained::More) => events::compacted(tree.id, from.elapsed()),
                Ok(Maintained::Idle) => break,
                Err(_) if tree.discarded() => break,
                Err(error) => {
                    events::refused(&error);
                    let failure = self.shared.guarded::<()>(Err(error)).err();
                    self.shared.room.set_y_failure(failure);
                    self.shared.room.announce_freed();
                    std::thread::sleep(RETRY);
                    break;
                }
            }
        }
    }
}
