//! The compactor: the thread that does the maintenance of Index Y, and sweeps (`sweep.rs`).
//!
//! Threads: one. It waits for Y in `maintain`, which ends soon after `interrupt`, and between two
//! looks, until it is woken: after a run, and by whoever waits for a congested Y. A Y that fails is
//! asked again later and later (`back_off.rs`), and so is a sweep that cannot read: nothing was
//! written then, so it holds up nobody.

#![forbid(unsafe_code)]

use super::{
    back_off::BackOff,
    counters::read,
    host::Host,
    shared::Shared,
    signal::Stop,
    sweep::{Failed, Sweeping},
    tree::Joined,
};
use crate::{error::Error, events, y::Maintained};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// The compactor looks around this often without being woken.
const IDLE: Duration = Duration::from_millis(200);

/// See the module header.
pub(super) struct Compactor {
    pub stop: Stop,
    pub shared: Arc<Shared>,
    pub host: Arc<dyn Host>,
}

/// Which trees are left alone for a while.
#[derive(Default)]
pub(super) struct Pauses {
    /// By Y's maintenance.
    y: BackOff,
    sweeps: BackOff,
}

impl Pauses {
    fn worked(&mut self, tree: u32, sweeping: Sweeping) {
        self.y.worked(tree);
        if sweeping == Sweeping::IfDue {
            self.sweeps.worked(tree);
        }
    }
}

impl Compactor {
    pub(super) fn run(&self) {
        // Those in which something may be due.
        let mut trees: Vec<Arc<Joined>> = Vec::new();
        let mut pauses = Pauses::default();
        while !self.stop.is_set() {
            let pause = if trees.is_empty() {
                IDLE
            } else {
                Duration::ZERO
            };
            if self.shared.wake_compactor.wait(pause) || trees.is_empty() {
                trees = self.host.trees();
                for back_off in [&mut pauses.y, &mut pauses.sweeps] {
                    back_off.keep(|id| trees.iter().any(|tree| tree.id == id));
                }
            }
            // A step each, those that runs wait for first: a tree with much to do must not keep
            // the others congested.
            trees.sort_by_key(|tree| !tree.y.congested());
            trees.retain(|tree| !self.stop.is_set() && self.step(tree, &mut pauses));
        }
    }

    /// One step of maintenance; whether more is due.
    pub(super) fn step(&self, tree: &Joined, pauses: &mut Pauses) -> bool {
        if tree.discarded() {
            return false;
        }
        let (from, runs) = (Instant::now(), read(&self.shared.counters.runs));
        if let Some(error) = pauses.y.holds(tree.id, from, runs) {
            // Runs wait for it: whoever waits for them must not do so in vain.
            if tree.y.congested() {
                self.refuse(error.clone());
            }
            return false;
        }
        let sweeping = match pauses.sweeps.holds(tree.id, from, runs) {
            Some(_) => Sweeping::No,
            None => Sweeping::IfDue,
        };
        let step = tree.maintain(sweeping);
        self.shared.maintained.advance();
        match step {
            Ok(Maintained::More) => {
                pauses.worked(tree.id, sweeping);
                events::compacted(tree.id, from.elapsed());
                return true;
            }
            Ok(Maintained::Idle) => pauses.worked(tree.id, sweeping),
            Err(_) if tree.discarded() => {}
            Err(Failed::Sweep(error)) => {
                events::refused(&error);
                pauses.y.worked(tree.id);
                pauses.sweeps.failed(tree.id, error, Instant::now(), runs);
            }
            Err(Failed::Maintenance(error)) => {
                events::refused(&error);
                if let Err(error) = self.shared.guarded::<()>(Err(error)) {
                    if tree.y.congested() {
                        self.refuse(error.clone());
                    }
                    pauses.y.failed(tree.id, error, Instant::now(), runs);
                }
            }
        }
        false
    }

    /// Tells those who wait for memory why they will not get it now.
    fn refuse(&self, error: Error) {
        self.shared.room.set_y_failure(Some(error));
        self.shared.room.announce_freed();
    }
}
