//! When level 0 is compacted: as late as reads and space allow.
//!
//! Each compaction of level 0 rewrites what it overlaps below, so the more runs go into one, the
//! less is rewritten a key: while writers are fast (a load), the processor time that merging takes
//! is theirs. The runs of the framework are key ranges, and disjoint tables count as one run, so
//! that six runs of level 0 can be eighty tables. What lateness costs are reads that look into
//! several runs in vain. So level 0 is compacted when
//! - reads have paid as much for it as compacting it costs (a ski-rental: at most twice the best
//!   choice in hindsight), or
//! - nothing was written for a while: then nobody waits for the processor, or
//! - it has too many runs or tables.
//!
//! The levels below follow at once. Threads: any may count; one decides (`maintaining`).

#![forbid(unsafe_code)]

use crate::y::lsm::compaction::level_sizes::LEVEL0_TRIGGER;
use parking_lot::Mutex;
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

/// Runs of level 0 that are compacted whatever reads do.
const MOST_RUNS: usize = 6;
/// Tables of level 0 that are compacted whatever reads do; the engine counts up to 255.
const MOST_TABLES: usize = 192;
/// What the engine cannot reach.
const NEVER: u8 = u8::MAX;
/// Fewer tables are not worth a compaction, unless all that there is makes not much more than they
/// do.
const FEWEST_TABLES: usize = LEVEL0_TRIGGER as usize;
/// Without a run for so long, writers are thought to rest.
const QUIET: Duration = Duration::from_secs(5);
/// Entries that are merged in the time of one block looked at in vain: 100 us with two threads at
/// one device, at 0.5 us an entry.
const ENTRIES_A_BLOCK: u64 = 200;

/// Level 0 as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Level0 {
    pub(crate) runs: usize,
    pub(crate) tables: usize,
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
    /// Bytes of all levels below.
    pub(crate) below: u64,
}

/// What has happened since level 0 was compacted last.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// Blocks of level 0 that reads looked into in vain.
    wasted: AtomicU64,
    last_run: Mutex<Option<Instant>>,
    /// Bytes of level 0 when it was compacted last: how large the level below should be.
    compacted_bytes: AtomicU64,
    /// The levels below are not of their sizes yet.
    settling: AtomicBool,
    /// Runs written, here and as the last step began that was planned while writers rested.
    runs: AtomicU64,
    asked: AtomicU64,
    /// The runs after which such a step found nothing to do, and one more; 0: there was none yet.
    rested: AtomicU64,
}

/// What to ask the engine for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Level 0 and what follows from it.
    Compact,
    /// The levels below it.
    Settle,
    /// Tables that can be moved without merging.
    Rest,
}

impl Schedule {
    /// A read looked into `blocks` of level 0 in vain.
    pub(crate) fn waste(&self, blocks: u64) {
        self.wasted.fetch_add(blocks, Relaxed);
    }

    /// A run was written.
    pub(crate) fn wrote(&self) {
        self.runs.fetch_add(1, Relaxed);
        *self.last_run.lock() = Some(Instant::now());
    }

    /// Nothing was left to do when it was last looked at with writers at rest, and nothing was
    /// written since.
    pub(crate) fn settled(&self) -> bool {
        self.rested.load(Relaxed) == self.runs.load(Relaxed) + 1
    }

    fn quiet(&self) -> bool {
        self.last_run.lock().is_none_or(|at| at.elapsed() >= QUIET)
    }

    /// What to do now, and with how many tables of level 0 its compaction starts.
    pub(crate) fn plan(&self, level0: Level0, table_bytes: u64) -> (Mode, u8) {
        let runs = self.runs.load(Relaxed);
        let quiet = self.quiet();
        self.asked.store(if quiet { runs + 1 } else { 0 }, Relaxed);
        if due(level0, self.wasted.load(Relaxed), quiet) {
            self.compacted_bytes.store(level0.bytes, Relaxed);
            return (
                Mode::Compact,
                trigger(level0.bytes, table_bytes).min(at_most_u8(level0.tables)),
            );
        }
        if quiet {
            // Towards the sizes that are best for reads: the first level as small as can be.
            return (Mode::Settle, LEVEL0_TRIGGER);
        }
        if self.settling.load(Relaxed) {
            let tables = trigger(self.compacted_bytes.load(Relaxed), table_bytes);
            return (Mode::Settle, tables.max(at_most_u8(level0.tables + 1)));
        }
        (Mode::Rest, NEVER)
    }

    /// `changed`: the engine found something to do in `mode`.
    pub(crate) fn done(&self, mode: Mode, changed: bool) {
        let rested = if changed { 0 } else { self.asked.load(Relaxed) };
        self.rested.store(rested, Relaxed);
        match mode {
            Mode::Compact => {
                self.wasted.store(0, Relaxed);
                self.settling.store(true, Relaxed);
            }
            Mode::Settle if !changed => self.settling.store(false, Relaxed),
            Mode::Settle | Mode::Rest => {}
        }
    }
}

/// Whether level 0 is to be compacted now.
fn due(level0: Level0, wasted: u64, quiet: bool) -> bool {
    if level0.runs >= MOST_RUNS || level0.tables >= MOST_TABLES {
        return true;
    }
    // Where a tree is hardly more than its level 0, a few tables (which may have 64 MiB each) are
    // all that keeps reads from being answered by one block, and merging them rewrites twice their
    // bytes at most.
    let layers = level0.runs + usize::from(level0.below > 0);
    let small = layers >= 2 && level0.tables > 0 && level0.below <= level0.bytes;
    let cost = match small {
        true => 2 * level0.entries,
        false => level0.entries,
    };
    let paid = wasted.saturating_mul(ENTRIES_A_BLOCK) >= cost;
    (small || level0.tables >= FEWEST_TABLES) && (quiet || paid)
}

/// Tables that have `bytes` together, as the engine counts the size of the first level.
fn trigger(bytes: u64, table_bytes: u64) -> u8 {
    let tables = bytes / table_bytes.max(1);
    u8::try_from(tables).unwrap_or(NEVER).max(LEVEL0_TRIGGER)
}

fn at_most_u8(n: usize) -> u8 {
    u8::try_from(n).unwrap_or(NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: u64 = 8 << 20;

    fn level0(runs: usize, tables: usize) -> Level0 {
        Level0 {
            runs,
            tables,
            bytes: tables as u64 * (5 << 20),
            entries: tables as u64 * 250_000,
            below: 1 << 40,
        }
    }

    #[test]
    fn a_load_is_left_alone_until_runs_overlap_too_often() {
        let schedule = Schedule::default();
        schedule.wrote();
        assert_eq!(schedule.plan(level0(1, 40), TABLE), (Mode::Rest, NEVER));
        assert_eq!(schedule.plan(level0(5, 65), TABLE), (Mode::Rest, NEVER));
        let (mode, tables) = schedule.plan(level0(6, 80), TABLE);
        assert_eq!(
            (mode, tables),
            (Mode::Compact, 50),
            "400 MiB in tables of 8 MiB"
        );
        schedule.done(mode, true);
        assert_eq!(schedule.plan(level0(1, 9), TABLE), (Mode::Settle, 50));
        schedule.done(Mode::Settle, false);
        assert_eq!(schedule.plan(level0(1, 9), TABLE), (Mode::Rest, NEVER));
    }

    #[test]
    fn reads_that_paid_for_it_get_it() {
        let schedule = Schedule::default();
        schedule.wrote();
        let now = level0(2, 8);
        schedule.waste(now.entries / ENTRIES_A_BLOCK - 1);
        assert_eq!(schedule.plan(now, TABLE).0, Mode::Rest);
        schedule.waste(1);
        assert_eq!(schedule.plan(now, TABLE), (Mode::Compact, LEVEL0_TRIGGER));
        assert_eq!(
            schedule.plan(level0(2, 5), TABLE).0,
            Mode::Rest,
            "too little to merge"
        );
        schedule.done(Mode::Compact, true);
        assert_eq!(schedule.plan(now, TABLE).0, Mode::Settle, "paid once");
    }

    /// A load that left three large tables, each a run, and nothing below: reads would look into
    /// two of them for ever.
    #[test]
    fn a_few_large_runs_are_merged_when_there_is_not_much_else() {
        let schedule = Schedule::default();
        schedule.wrote();
        let alone = Level0 {
            below: 0,
            ..level0(3, 3)
        };
        assert_eq!(schedule.plan(alone, TABLE).0, Mode::Rest, "nobody paid");
        schedule.waste(2 * alone.entries / ENTRIES_A_BLOCK);
        assert_eq!(schedule.plan(alone, TABLE), (Mode::Compact, 3));
        let one = Level0 {
            runs: 1,
            tables: 1,
            ..alone
        };
        assert_eq!(
            schedule.plan(one, TABLE).0,
            Mode::Rest,
            "a run alone is fine"
        );
        let rested = Schedule::default();
        assert_eq!(rested.plan(alone, TABLE).0, Mode::Compact, "at rest");
        assert_eq!(
            rested.plan(level0(3, 3), TABLE).0,
            Mode::Settle,
            "much below"
        );
    }

    #[test]
    fn quiet_times_are_used() {
        let schedule = Schedule::default();
        assert_eq!(
            schedule.plan(level0(1, 6), TABLE),
            (Mode::Compact, LEVEL0_TRIGGER)
        );
        assert_eq!(
            schedule.plan(level0(1, 5), TABLE),
            (Mode::Settle, LEVEL0_TRIGGER)
        );
    }

    /// Who waits for the end of background work waits also for what is put off until writers rest.
    #[test]
    fn it_has_settled_when_nothing_was_left_to_do_at_rest() {
        let schedule = Schedule::default();
        assert!(
            !schedule.settled(),
            "what an earlier process left is not known"
        );
        let step = |level0, changed| {
            let (mode, _) = schedule.plan(level0, TABLE);
            schedule.done(mode, changed);
        };
        step(level0(1, 8), true);
        assert!(!schedule.settled());
        step(level0(0, 0), false);
        assert!(schedule.settled());
        schedule.wrote();
        assert!(!schedule.settled());
        step(level0(1, 1), false);
        assert!(!schedule.settled(), "writers do not rest yet");
    }

    #[test]
    fn many_tables_are_too_many_and_few_overlapping_ones_too() {
        let schedule = Schedule::default();
        schedule.wrote();
        assert_eq!(schedule.plan(level0(1, 192), TABLE).0, Mode::Compact);
        assert_eq!(schedule.plan(level0(6, 6), TABLE), (Mode::Compact, 6));
    }
}
