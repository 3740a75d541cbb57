//! The cleaner: the thread that says when to clean.
//!
//! Source: IndeXY II-B (a timer that counts inserts). In this order of urgency:
//! 1. the releaser is short of clean regions: the oldest dirty ones of every tree, a run each;
//! 2. the timer expired: one check-back pass, and when memory is short, the oldest ones too (or
//!    what [`Precleaning`] says instead);
//! 3. the log is over its limit: every region with something dirty below a target.
//!
//! Then it cuts the log. A Y that is out of space is asked again while someone needs it; any other
//! failure of Y poisons.
//!
//! Threads: one. It waits for Y in `write_run`; for a congested Y, until that is not, the tree is
//! dropped, the releaser asks while there are other trees, or the database stops; and between two
//! looks, until it is woken. For the releaser it waits for a congested Y only where no other tree
//! has anything to write.

#![forbid(unsafe_code)]

use super::{run::Pick, sizes, truncate};
use crate::{
    error::Result,
    events,
    framework::{
        counters, host::Host, policies::Precleaning, shared::Shared, signal::Stop, tree::Joined,
    },
    wal::Lsn,
    x::IndexX,
};
use std::{sync::Arc, time::Duration};

/// The cleaner looks around this often without being woken.
const IDLE: Duration = Duration::from_millis(200);

/// Pause before Y is asked again after it failed.
const RETRY: Duration = Duration::from_millis(100);

/// Memory that grows by this part of the budget from pass to pass is about to be released.
const GROWING_DIVISOR: usize = 64;
/// A log over its limit is cut down to this part of it.
const LOG_TARGET_DIVISOR: u64 = 2;
/// A floor that moved by this part of the log's limit frees a segment.
const FLOOR_STEP_DIVISOR: u64 = 8;

/// What was written, released and used when a check-back pass began.
#[derive(Debug, Default, Clone, Copy)]
struct Pass {
    /// Keys.
    written: u64,
    /// Bytes.
    released: u64,
    /// Bytes.
    used: usize,
}

/// What is due. Chosen by [`next`].
#[derive(Debug, PartialEq, Eq)]
enum Due {
    /// Somebody waits for clean regions.
    ForRelease,
    /// A check-back pass.
    Pass,
    Nothing,
}

/// Pure: `timer`: keys whose insertion makes a pass due.
fn next(asked: bool, last: &Pass, written: u64, timer: u64) -> Due {
    if asked {
        Due::ForRelease
    } else if written - last.written >= timer {
        Due::Pass
    } else {
        Due::Nothing
    }
}

/// Memory was released between two passes, or soon will be. Pure.
fn needs_room(last: &Pass, now: &Pass, limit: usize, low: usize) -> bool {
    let growing = now.used >= last.used + limit / GROWING_DIVISOR;
    now.released > last.released || growing && now.used >= low
}

/// Half of what a tree has in X is dirty: the next release might find too little.
fn mostly_dirty(tree: &Joined) -> bool {
    let stats = tree.x.stats();
    stats.dirty * 2 > stats.keys
}

/// See the module header.
pub(crate) struct Cleaner {
    pub stop: Stop,
    pub shared: Arc<Shared>,
    pub host: Arc<dyn Host>,
}

impl Cleaner {
    pub(crate) fn run(&self) {
        let mut last = Pass::default();
        let mut next_floor = Lsn(0);
        while !self.stop.is_set() {
            self.shared.wake_cleaner.wait(IDLE);
            if self.stop.is_set() {
                break;
            }
            let result = self.step(&mut last, &mut next_floor);
            let failure = self.shared.guarded(result).err();
            let failed = failure.is_some();
            if let Some(failure) = &failure {
                events::refused(failure);
            }
            // Writers that wait for memory get it.
            self.shared.room.set_y_failure(failure);
            if failed {
                self.shared.clean_request.answer();
                self.shared.room.announce_freed();
                std::thread::sleep(RETRY);
            }
        }
    }

    fn step(&self, last: &mut Pass, next_floor: &mut Lsn) -> Result<()> {
        let mut trees = self.host.trees();
        self.monitor(&trees);
        // Of those nothing is ever written.
        trees.retain(|tree| !tree.has_locators);
        let written = self.shared.counters.writes();
        let timer = self.timer_keys(&trees);
        match next(self.shared.clean_request.is_pending(), last, written, timer) {
            Due::ForRelease => {
                self.clean_for_release(&trees)?;
                if self.shared.policies.precleaning != Precleaning::Off {
                    self.keep_ahead(&trees, timer)?;
                }
            }
            Due::Pass => {
                let now = Pass {
                    written,
                    released: counters::read(&self.shared.counters.released_bytes),
                    used: self.shared.budget.used(),
                };
                let before = std::mem::replace(last, now);
                let cleaned = self.one_pass(&trees)?;
                if self.shared.policies.precleaning == Precleaning::Off {
                    return self.tend_log(next_floor);
                }
                let (limit, marks) = (self.shared.budget.limit(), self.shared.room.watermarks());
                if needs_room(&before, &now, limit, marks.low) {
                    let written = written - before.written;
                    self.keep_ahead(&trees, written.saturating_sub(cleaned))?;
                }
            }
            Due::Nothing => {}
        }
        self.tend_log(next_floor)
    }

    /// Regions are chosen and watched once the low watermark is first reached (II-C).
    fn monitor(&self, trees: &[Arc<Joined>]) {
        if self.shared.budget.used() < self.shared.room.watermarks().low {
            return;
        }
        for tree in trees.iter().filter(|t| !t.regions.monitored()) {
            tree.try_rechoose_regions();
        }
    }

    /// Keys whose insertion makes a pass due.
    fn timer_keys(&self, trees: &[Arc<Joined>]) -> u64 {
        let (keys, bytes) = trees.iter().fold((0, 0), |(keys, bytes), tree| {
            let stats = tree.x.stats();
            (keys + stats.keys as u64, bytes + stats.bytes as u64)
        });
        sizes::timer_keys(self.shared.budget.limit(), keys, bytes)
    }

    /// One pass of pre-cleaning over every monitored tree; returns how many keys it wrote.
    fn one_pass(&self, trees: &[Arc<Joined>]) -> Result<u64> {
        let mut cleaned = 0;
        for tree in trees
            .iter()
            .filter(|t| t.regions.monitored() && !t.resident)
        {
            let pick = match self.shared.policies.precleaning {
                Precleaning::CheckBack => Some(Pick::CheckBack),
                Precleaning::Oldest => Some(Pick::Oldest),
                Precleaning::Off => None,
            };
            if let Some(pick) = pick {
                if !self.takes_runs(tree, trees.len() > 1) {
                    continue;
                }
                cleaned += tree.write_back(pick)?.keys;
            }
            if tree.y.approximate_len() == 0 {
                tree.clear_mounts_if_y_is_empty()?;
            }
        }
        Ok(cleaned)
    }

    /// Memory is short, and too little went quiet: what was cleaned longest ago, in the dirtiest
    /// tree, run by run, so that the releaser need not wait for it. Ends when half is clean, or
    /// with as many `keys` as were written meanwhile.
    fn keep_ahead(&self, trees: &[Arc<Joined>], keys: u64) -> Result<()> {
        let mut cleaned = 0;
        while cleaned < keys && !self.stop.is_set() {
            let releasable = trees.iter().filter(|t| !t.resident);
            let Some(tree) = releasable
                .max_by_key(|t| t.x.stats().dirty)
                .filter(|tree| mostly_dirty(tree))
            else {
                break;
            };
            if !self.takes_runs(tree, trees.len() > 1) {
                break;
            }
            let written = tree.write_back(Pick::Oldest)?.keys;
            self.answer_releaser();
            if written == 0 {
                break;
            }
            cleaned += written;
        }
        Ok(())
    }

    /// The releaser found too little clean: the oldest dirty regions of every tree, a run each.
    fn clean_for_release(&self, trees: &[Arc<Joined>]) -> Result<()> {
        let cleaned = self.clean_oldest(trees);
        self.answer_releaser();
        cleaned
    }

    fn clean_oldest(&self, trees: &[Arc<Joined>]) -> Result<()> {
        let dirty = |tree: &&Arc<Joined>| !tree.resident && tree.x.stats().dirty > 0;
        let (mut congested, others): (Vec<_>, Vec<_>) = trees
            .iter()
            .filter(dirty)
            .partition(|tree| tree.y.congested());
        let mut cleaned = 0;
        for tree in others {
            cleaned += tree.write_back(Pick::Oldest)?.keys;
        }
        while cleaned == 0 && !congested.is_empty() && !self.stop.is_set() {
            let seen = self.shared.maintained.seen();
            let ready = |tree: &&Arc<Joined>| tree.discarded() || !tree.y.congested();
            match congested.iter().position(ready) {
                Some(at) => cleaned += congested.remove(at).write_back(Pick::Oldest)?.keys,
                None => self.await_maintenance(seen),
            }
        }
        Ok(())
    }

    /// Something was cleaned: the releaser may look again.
    fn answer_releaser(&self) {
        if self.shared.clean_request.answer() {
            self.shared.room.wake_releaser.notify();
        }
    }

    /// Waits until Y takes runs again, the tree is dropped, or the database stops. False: the
    /// releaser asks, and there are `others`, which may have something for it.
    fn takes_runs(&self, tree: &Joined, others: bool) -> bool {
        loop {
            let seen = self.shared.maintained.seen();
            if self.stop.is_set() || tree.discarded() || !tree.y.congested() {
                return true;
            }
            if others && self.shared.clean_request.is_pending() {
                return false;
            }
            self.await_maintenance(seen);
        }
    }

    /// Woken by each step of maintenance and by the drop of a tree; a Y that maintains itself is
    /// looked at every now and then.
    fn await_maintenance(&self, seen: u64) {
        self.shared.wake_compactor.notify();
        self.shared.maintained.wait_past(seen, Stop::LOOK);
    }

    /// Keeps the log under its limit: cuts what is below the floor, cleans by age when that is not
    /// enough.
    fn tend_log(&self, next_floor: &mut Lsn) -> Result<()> {
        let Some(log) = self.shared.log.get() else {
            return Ok(());
        };
        let limit = self.host.log_limit_bytes();
        let (host, shared) = (&*self.host, &*self.shared);
        if log.bytes_on_disk() > limit {
            let target = Lsn(log.end().0.saturating_sub(limit / LOG_TARGET_DIVISOR));
            let target = target.max(shared.log.first_cut());
            truncate::clean_below(host, target)?;
            truncate::truncate(host, shared)?;
        } else if let Some(floor) = truncate::floor(host, shared)
            && floor >= *next_floor
            && floor > log.start()
        {
            truncate::truncate(host, shared)?;
            *next_floor = Lsn(floor.0 + limit / FLOOR_STEP_DIVISOR);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_releaser_asks_for_comes_first() {
        let last = Pass {
            written: 100,
            ..Pass::default()
        };
        assert_eq!(next(true, &last, 1000, 10), Due::ForRelease);
        assert_eq!(next(false, &last, 110, 10), Due::Pass);
        assert_eq!(next(false, &last, 109, 10), Due::Nothing);
    }

    #[test]
    fn a_pass_goes_on_when_memory_grows_or_was_released() {
        let (limit, low) = (6400, 5000);
        let last = Pass {
            written: 0,
            released: 7,
            used: 5000,
        };
        let used = |used| Pass { used, ..last };
        assert!(!needs_room(&last, &used(5099), limit, low));
        assert!(needs_room(&last, &used(5100), limit, low));
        assert!(!needs_room(&last, &used(5100), limit, 5101));
        let released = Pass {
            released: 8,
            ..last
        };
        assert!(needs_room(&last, &released, limit, low));
    }
}
