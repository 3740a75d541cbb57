//! The budget's marks: when release starts, where it stops, where writers wait.
//!
//! Source: IndeXY II-A. All in bytes of the whole database, everything included (I7). Pure.

#![forbid(unsafe_code)]

use crate::mem::budget::ceiling;

/// Marks derived from a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Watermarks {
    /// Release stops here; monitoring starts here.
    pub low: usize,
    /// Release starts here.
    pub high: usize,
    /// From here on writers wait and loads go uncached, except small ones while X has room in what it holds already: it
    /// holds slabs, and what was released leaves holes in them.
    pub hard: usize,
    /// From here on they wait in any case.
    pub ceiling: usize,
    /// Slabs over this are emptied. So far below where small writes wait that they go on meanwhile.
    pub slabs: usize,
}

/// Parts of the budget, in 1/256: the three marks. Above the hard one is what nobody asks admission for: tables that Y
/// opens, what a cut builds before it frees, writers that were admitted at the same moment.
const LOW: usize = 212;
const HIGH: usize = 226;
const HARD: usize = 238;
/// Between the mark of slabs and the ceiling, in 1/256.
const BELOW_SLABS: usize = 4;

impl Watermarks {
    pub(crate) fn of(budget: usize) -> Self {
        let part = |n: usize| (budget / 256).saturating_mul(n);
        let ceiling = ceiling(budget);
        Self {
            low: part(LOW),
            high: part(HIGH),
            hard: part(HARD),
            ceiling,
            slabs: ceiling - part(BELOW_SLABS),
        }
    }
}

/// A region holds about 1/128 of the budget, and at least this many bytes.
const MIN_REGION_BYTES: usize = 16 << 10;

/// Bytes of X that one region should hold.
pub(crate) fn region_bytes(budget: usize) -> usize {
    (budget / 128).max(MIN_REGION_BYTES)
}

/// A region this many times larger than planned calls for a new choice of regions.
const OVERSIZE: usize = 4;

/// Bytes of X above which a region is too large: what is appended all goes to one.
pub(crate) fn oversize_bytes(budget: usize) -> usize {
    OVERSIZE.saturating_mul(region_bytes(budget))
}

/// Payload bytes of one run: as many as Y likes, at most a quarter of the budget, so that what is in
/// flight never holds up the release of the rest.
pub(crate) fn run_bytes(budget: usize, preferred: usize) -> usize {
    preferred.min(budget / 4).max(MIN_REGION_BYTES)
}

/// The same where X is a mere write buffer: about half of what that holds, so that the other half takes writes meanwhile.
pub(crate) fn buffer_run_bytes(budget: usize, preferred: usize) -> usize {
    preferred.min(budget / 16).max(MIN_REGION_BYTES)
}

/// A check-back pass is due when this part of the budget was written in new keys since the last one...
const TIMER_PART: u64 = 16;
/// ...at as many bytes a key as X has on average, and at least so many...
const LEAST_ENTRY_BYTES: u64 = 32;
/// ...and not before so many keys.
const MIN_TIMER_KEYS: u64 = 64;

/// Keys whose insertion makes a check-back pass due, where X has `keys` keys in `bytes` bytes.
pub(crate) fn timer_keys(budget: usize, keys: u64, bytes: u64) -> u64 {
    let entry = bytes.checked_div(keys).unwrap_or(0).max(LEAST_ENTRY_BYTES);
    (budget as u64 / TIMER_PART / entry).max(MIN_TIMER_KEYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pre-cleaning keeps ahead whatever the size of values: a pass comes with each sixteenth of the budget.
    #[test]
    fn the_timer_counts_bytes_in_keys() {
        let budget = 128 << 20;
        for entry in [32, 300, 4000, 100_000] {
            let keys = timer_keys(budget, 1000, 1000 * entry);
            assert!(keys * entry <= 8 << 20 && keys * entry > 7 << 20, "{entry}");
        }
        assert_eq!(timer_keys(budget, 0, 0), timer_keys(budget, 1000, 8000));
        assert_eq!(timer_keys(2 << 20, 1, 1 << 20), MIN_TIMER_KEYS);
    }

    /// Nobody waits where nobody releases: a small write (1/4096 of the budget) waits only over the mark of slabs.
    #[test]
    fn marks_are_in_order_in_every_budget() {
        for budget in (0..400).map(|n| (1.05f64.powi(n) * f64::from(2 << 20)) as usize) {
            let marks = Watermarks::of(budget);
            let Watermarks {
                low,
                high,
                hard,
                ceiling,
                slabs,
            } = marks;
            assert!(
                low < high && high < hard && hard <= ceiling && ceiling < budget,
                "{marks:?}"
            );
            assert!(slabs > high && slabs + budget / 4096 < ceiling, "{marks:?}");
        }
    }
}
