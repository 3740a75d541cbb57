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
        // Those in which something may be due.
        let mut trees = Vec::new();
        while !self.stop.is_set() {
            let pause = if trees.is_empty() {
                IDLE
            } else {
                Duration::ZERO
            };
            if self.shared.wake_compactor.wait(pause) || trees.is_empty() {
                trees = self.host.trees();
            }
            // A step each, those that runs wait for first: a tree with much to do must not keep
            // the others congested.
            trees.sort_by_key(|tree| !tree.y.congested());
            trees.retain(|tree| !self.stop.is_set() && self.step(tree));
        }
    }

    /// One step of maintenance; whether more is due.
    fn step(&self, tree: &Joined) -> bool {
        if tree.discarded() {
            return false;
        }
        let from = Instant::now();
        let step = tree.y.maintain();
        self.shared.maintained.advance();
        match step {
            Ok(Maintained::More) => {
                events::compacted(tree.id, from.elapsed());
                return true;
            }
            Ok(Maintained::Idle) => {}
            Err(_) if tree.discarded() => {}
            Err(error) => {
                events::refused(&error);
                let failure = self.shared.guarded::<()>(Err(error)).err();
                self.shared.room.set_y_failure(failure);
                self.shared.room.announce_freed();
                std::thread::sleep(RETRY);
            }
        }
        false
    }
}
