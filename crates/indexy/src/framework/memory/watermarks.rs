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
    /// From here on writers wait and loads go uncached, except small ones while X has room in what
    /// it holds already: it holds slabs, and what was released leaves holes in them.
    pub hard: usize,
    /// From here on they wait in any case.
    pub ceiling: usize,
    /// Slabs over this are emptied. So far below where small writes wait that they go on meanwhile.
    pub slabs: usize,
}

/// Parts of the budget, in 1/256: the three marks. Above the hard one is what nobody asks admission
/// for: tables that Y opens, what a cut builds before it frees, writers that were admitted at the
/// same moment.
const LOW: usize = 212;
const HIGH: usize = 226;
const HARD: usize = 238;
/// Between the mark of slabs and the ceiling, in 1/256.
const BELOW_SLABS: usize = 4;

impl Watermarks {
    #[inline]
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody waits where nobody releases: a small write (1/4096 of the budget) waits only over the
    /// mark of slabs.
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
