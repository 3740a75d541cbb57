//! How large the levels should be, from how much there is, and what to do next: pure functions.
//!
//! The engine's leveled compaction takes fixed sizes, counted from the first level. That makes the
//! last two levels alike for most amounts of data, and then every read looks into both. Here the
//! sizes are counted from the last level, at each step anew: the level above the last has a tenth
//! of it, and so on up to a first level of a few tables. So about nine tenths of the keys are in
//! the last level, the filters of the others are small enough to stay in the cache, and one step of
//! compaction is bounded.
//!
//! The engine looks at no more than 50 tables' worth of the next level for one table. Tables whose
//! keys lie far apart may find no partner within that, and then it does nothing, however full level
//! 0 is. The way out is to merge whole levels ([`Step::PullDown`]).

#![forbid(unsafe_code)]

/// Tables in level 0 that are worth a compaction.
pub(crate) const LEVEL0_TRIGGER: u8 = 6;
/// Runs in level 0 from which on writers should wait. They go on while those that start a
/// compaction (`level0.rs`) are merged, which takes as long as it takes to write about as many.
pub(crate) const LEVEL0_CONGESTED: usize = 12;
/// Levels of the engine.
pub(crate) const LEVELS: usize = 7;
/// Between neighbouring levels; the first ratio is between a fifth of it and twice it.
const RATIO: u64 = 10;
/// A level that is this many times too large, and is not compacted, is stuck.
const STUCK: u64 = 3;

/// Sizes of the levels, in bytes of table data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LevelSizes {
    /// Tables to write.
    pub(crate) table_bytes: u64,
    /// Tables that start a compaction of level 0, and that the first level has.
    pub(crate) trigger: u8,
    /// Between the first and the second level, and so on; the last one counts for all that follow.
    pub(crate) ratios: Vec<u64>,
}

/// What to do when the engine's leveled compaction does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Nothing,
    /// Merge all of one level into another.
    PullDown(u8, u8),
}

impl LevelSizes {
    /// For `total` bytes in all, in tables of `table_bytes`, with `trigger` of them in the first
    /// level.
    pub(crate) fn of(total: u64, table_bytes: u64, trigger: u8) -> Self {
        let first_level = (table_bytes * u64::from(trigger)).max(1);
        let mut first_ratio = total / first_level;
        let mut ratios = Vec::new();
        while first_ratio > 2 * RATIO && ratios.len() + 3 < LEVELS {
            first_ratio /= RATIO;
            ratios.push(RATIO);
        }
        ratios.insert(0, first_ratio.max(2));
        Self {
            table_bytes,
            trigger,
            ratios,
        }
    }

    fn first_level_bytes(&self) -> u64 {
        self.table_bytes * u64::from(self.trigger)
    }

    /// What has to be done by force, when compaction found nothing to do with levels of these
    /// sizes.
    pub(crate) fn when_idle(&self, level0_runs: usize, level_bytes: &[u64; LEVELS]) -> Step {
        if level0_runs < LEVEL0_CONGESTED {
            return Step::Nothing;
        }
        let last = LEVELS - 1;
        let first = (1..last).find(|&n| level_bytes.get(n).is_some_and(|&bytes| bytes > 0));
        match first {
            // Further down first, lest the first level grow without end.
            Some(n) if level_bytes.get(n) > Some(&(STUCK * self.first_level_bytes())) => {
                Step::PullDown(n as u8, n as u8 + 1)
            }
            first => Step::PullDown(0, first.unwrap_or(last) as u8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn most_is_in_the_last_level() {
        for total in (0..200).map(|n| (1.15f64.powi(n) * MIB as f64) as u64) {
            let sizes = LevelSizes::of(total, 8 * MIB, LEVEL0_TRIGGER);
            let all: u64 = sizes.ratios.iter().product();
            let last = sizes.first_level_bytes() * all;
            assert!(sizes.ratios.iter().all(|r| (2..=20).contains(r)) || total > 10 << 40);
            if sizes.ratios.len() > 1 {
                assert_eq!(sizes.ratios.last(), Some(&RATIO));
            }
            if total > 200 * MIB && total < 10 << 40 {
                assert!(last <= total && last * 3 > total * 2, "{total} {sizes:?}");
            }
        }
    }

    #[test]
    fn a_stuck_tree_is_pulled_down() {
        let sizes = LevelSizes::of(600 * MIB, 8 * MIB, LEVEL0_TRIGGER);
        let mut levels = [0; LEVELS];
        assert_eq!(sizes.when_idle(11, &levels), Step::Nothing);
        assert_eq!(sizes.when_idle(12, &levels), Step::PullDown(0, 6));
        levels[6] = 500 * MIB;
        levels[5] = 50 * MIB;
        assert_eq!(sizes.when_idle(12, &levels), Step::PullDown(0, 5));
        levels[5] = 200 * MIB;
        assert_eq!(sizes.when_idle(12, &levels), Step::PullDown(5, 6));
    }
}
