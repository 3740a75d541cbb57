//! The policies of release, pre-cleaning and admission without an index, for programs that replay
//! traces over a model of memory. Compiled for tests and with the feature `testing`.
//!
//! Everything here calls the code that the engine runs: the table of regions, `release/order.rs`,
//! `clean/check_back.rs`, `misses/`. What the engine takes from its surroundings (the time, a
//! random seed, what regions hold) is the caller's, so that a replay is the same each time. Keys
//! are 64-bit numbers; in the engine's tables they are eight bytes, big-endian.
//!
//! Not here: the memory index, whose sizes the caller models; threads; clocks.

#![forbid(unsafe_code)]

use super::{
    clean::{check_back, sizes},
    memory::Watermarks,
    misses::{MissCounts, Misses, Purpose},
    policies::{Admission, Release},
    regions::{Regions, boundaries, sample},
    release::{
        algorithm1::Candidate,
        order::{self, Aged},
    },
};
use crate::{
    mem::budget::{Budget, Holder},
    wal::Lsn,
};
use std::sync::Arc;

/// The engine counts one access in so many.
pub const SAMPLED_ONE_IN: u32 = sample::PERIOD;

/// Bytes of memory that one region should hold in a budget of `budget` bytes.
pub fn region_bytes(budget: u64) -> u64 {
    boundaries::region_bytes(saturated(budget)) as u64
}

/// Bytes above which a region calls for a new choice of all of them.
pub fn oversize_bytes(budget: u64) -> u64 {
    boundaries::oversize_bytes(saturated(budget)) as u64
}

/// Bytes at which a release ends, and at which it begins, in a budget of `budget` bytes.
pub fn marks(budget: u64) -> (u64, u64) {
    let marks = Watermarks::of(saturated(budget));
    (marks.low as u64, marks.high as u64)
}

/// The most bytes of one run of the cleaner.
pub fn run_bytes(budget: u64) -> u64 {
    sizes::run_bytes(saturated(budget), usize::MAX, false) as u64
}

/// Keys whose writing makes a pass of pre-cleaning due, where `keys` keys take `bytes` bytes.
pub fn timer_keys(budget: u64, keys: u64, bytes: u64) -> u64 {
    sizes::timer_keys(saturated(budget), keys, bytes)
}

fn saturated(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// What one region holds.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Keys in memory.
    pub keys: u64,
    /// Bytes that releasing it would free: of what is clean.
    pub clean_bytes: u64,
}

/// The regions of one tree over 64-bit keys.
///
/// ```
/// use indexy::{Release, replay::{Held, RegionTable}};
/// let regions = RegionTable::new();
/// regions.choose_anew(&[0, 100]);
/// regions.note_access(7, 1);
/// let held = [Held { keys: 10, clean_bytes: 240 }; 2];
/// let chosen = regions.choose(Release::Coldest, &held, 1, 0, 2);
/// assert_eq!(chosen, [1]);
/// ```
#[derive(Debug)]
pub struct RegionTable(Regions);

impl Default for RegionTable {
    fn default() -> Self {
        Self::new()
    }
}

impl RegionTable {
    /// One region over everything.
    pub fn new() -> Self {
        Self(Regions::new(Lsn(0)))
    }

    /// Regions that begin at `starts`: ascending, the first one 0. What was known of the old ones
    /// is shared out.
    pub fn choose_anew(&self, starts: &[u64]) {
        let bytes = |(i, start): (usize, &u64)| match i {
            0 => Box::default(),
            _ => Box::from(start.to_be_bytes()),
        };
        self.0
            .rebound(starts.iter().enumerate().map(bytes).collect());
    }

    /// A sampled access to `key` at the moment `now`.
    pub fn note_access(&self, key: u64, now: u64) {
        self.0.table().note_accesses(&key.to_be_bytes(), 1, now);
    }

    /// `key` was written.
    pub fn note_write(&self, key: u64) {
        self.0.note_write(&key.to_be_bytes());
    }

    /// A release went over `region` at the moment `now`.
    pub fn note_release(&self, region: usize, now: u64) {
        self.0.table().set_cut(region, now);
    }

    /// Run number `run` cleaned `region`.
    pub fn note_run(&self, region: usize, run: u32) {
        self.0.table().set_cleaned(region, run);
    }

    /// A release that freed something is over: all counts are halved.
    pub fn decay(&self) {
        self.0.decay();
    }

    /// The regions to release for `need_bytes`, in the order in which to cut them. `held`: what
    /// each holds; `now`: the moment, for the hand of [`Release::Clock`]. Cost: that of the policy.
    pub fn choose(
        &self,
        policy: Release,
        held: &[Held],
        need_bytes: u64,
        seed: u64,
        now: u64,
    ) -> Vec<usize> {
        let table = self.0.table();
        let clean = held.iter().enumerate().filter(|(_, h)| h.clean_bytes > 0);
        let aged = clean.map(|(i, held)| Aged {
            region: Candidate {
                accesses: table.accesses(i),
                keys: held.keys,
                bytes: held.clean_bytes,
                first: i,
                len: 1,
                children: Vec::new(),
            },
            times: table.times(i),
        });
        let chosen = order::choose(policy, aged.collect(), need_bytes, seed);
        for region in chosen.passed {
            table.set_passed(region, now);
        }
        let all = chosen.regions.into_iter();
        all.flat_map(|c| c.first..c.first + c.len).collect()
    }

    /// A check-back pass from region `cursor` on: the regions to clean, ascending, and where the
    /// next pass starts. `dirty_bytes`: of each region.
    pub fn check_back(
        &self,
        dirty_bytes: &[u64],
        cursor: usize,
        run_bytes: u64,
    ) -> (Vec<usize>, usize) {
        check_back::check_back(&self.0.table(), dirty_bytes, cursor, run_bytes)
    }

    /// The dirty regions from the one that was cleaned longest ago on, for one run.
    pub fn oldest(&self, dirty_bytes: &[u64], run_bytes: u64) -> Vec<usize> {
        check_back::oldest(&self.0.table(), dirty_bytes, run_bytes)
    }
}

/// Which of the keys that reads find on disk come into memory.
///
/// ```
/// use indexy::{Admission, replay::Loads};
/// let loads = Loads::new(Admission::OnUpdate, 64 << 20);
/// assert!(loads.admits(1, true) && !loads.admits(1, false));
/// ```
#[derive(Debug)]
pub struct Loads {
    misses: Misses,
    budget: Arc<Budget>,
}

impl Loads {
    /// By `admission`, in a budget of `budget` bytes.
    pub fn new(admission: Admission, budget: u64) -> Self {
        let budget = Arc::new(Budget::new(saturated(budget)));
        let misses = Misses::default();
        misses.choose(admission, &MissCounts::new(Arc::clone(&budget)));
        Self { misses, budget }
    }

    /// Bytes that the counts of misses take of the budget.
    pub fn bytes(&self) -> u64 {
        self.budget.held(Holder::Transfer) as u64
    }

    /// Counts a miss of `key`; whether it comes into memory. `update`: it is read to be written.
    pub fn admits(&self, key: u64, update: bool) -> bool {
        let purpose = if update {
            Purpose::Update
        } else {
            Purpose::Read
        };
        self.misses.admit(0, &key.to_be_bytes(), purpose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_the_engines() {
        let budget = 128 << 20;
        let (low, high) = marks(budget);
        assert!(low < high && high < budget);
        assert_eq!(region_bytes(budget), budget / 128);
        assert_eq!(oversize_bytes(budget), 4 * region_bytes(budget));
        assert!(run_bytes(budget) <= budget / 4 && timer_keys(budget, 1, 32) > 0);
        assert!(Loads::new(Admission::Top { percent: 5 }, budget).bytes() > budget / 256);
        assert_eq!(Loads::new(Admission::Always, budget).bytes(), 0);
    }

    #[test]
    fn what_is_dirty_is_not_chosen_and_the_clock_goes_round() {
        let regions = RegionTable::new();
        regions.choose_anew(&[0, 10, 20]);
        let held = |clean: [u64; 3]| {
            clean.map(|clean_bytes| Held {
                keys: 1,
                clean_bytes,
            })
        };
        assert_eq!(
            regions.choose(Release::AccessDensity, &held([0, 9, 0]), 5, 0, 1),
            [1]
        );
        regions.note_access(0, 5);
        // The hand spares what was used, and takes the next.
        assert_eq!(regions.choose(Release::Clock, &held([9; 3]), 9, 0, 6), [1]);
        // It passed the first one at 6: that is unused since, and comes behind the others.
        assert_eq!(
            regions.choose(Release::Clock, &held([9; 3]), 20, 0, 7),
            [1, 2, 0]
        );
    }

    #[test]
    fn a_quiet_region_is_cleaned_by_check_back() {
        let regions = RegionTable::new();
        regions.choose_anew(&[0, 10]);
        let dirty = [5, 5];
        assert_eq!(regions.check_back(&dirty, 0, 100).0, [] as [usize; 0]);
        regions.note_write(3);
        assert_eq!(regions.check_back(&dirty, 0, 100).0, [1]);
        regions.note_run(1, 7);
        assert_eq!(regions.oldest(&dirty, 1), [0]);
    }
}
