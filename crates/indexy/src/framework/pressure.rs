//! How much may live in X: less than the marks say while slabs have holes.
//!
//! X takes whole slabs, and what is cut leaves holes in them, which the next entries fill: a slab goes back only when
//! all of it is free, and the blocks of a region lie in many slabs. So bytes taken (used) hardly fall when bytes in use (live) do,
//! and going on until they do would empty X. Instead the marks hold for what lives, under a *cap* that is found out: where used goes on
//! growing past its mark, the holes do not do for what comes in, and the cap goes below what lives now; while used is below its
//! mark, the cap rises again, and to what lives at once: that much has been seen to fit.
//!
//! Pure; used by the releaser. Keeps I7 with the hard mark and the ceiling (`watermark.rs`), where writers wait.

#![forbid(unsafe_code)]

use super::watermark::Watermarks;

/// The cap falls below what lives by this part of the budget, for each...
const STEP_DOWN_PART: usize = 64;
/// ...so much that used grows.
const GROWTH_PART: usize = 256;
/// It rises by this part with each release, or by half of what used is below its mark.
const STEP_UP_PART: usize = 128;
/// It does not fall below this part of the budget.
const LEAST_PART: usize = 4;

/// See the module header.
#[derive(Debug, Default)]
pub(super) struct Pressure {
    /// What may live, in bytes; `None`: as much as the marks say.
    cap: Option<usize>,
    /// Bytes used when the cap was lowered last.
    grown_to: usize,
}

/// Marks for what lives, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Goal {
    /// Release starts here...
    pub(super) high: usize,
    /// ...and ends here.
    pub(super) low: usize,
}

impl Pressure {
    /// Looks at `used` and `live` bytes under `limit`.
    pub(super) fn observe(
        &mut self,
        used: usize,
        live: usize,
        marks: &Watermarks,
        limit: usize,
    ) -> Goal {
        let mark = marks.high.midpoint(marks.hard);
        if used >= mark && used >= self.grown_to + limit / GROWTH_PART {
            self.grown_to = used;
            let lower = live.saturating_sub(limit / STEP_DOWN_PART);
            let cap = self.cap.map_or(lower, |cap| cap.min(lower));
            self.cap = Some(cap.max(limit / LEAST_PART));
        } else if used < mark {
            self.grown_to = 0;
            self.cap = self.cap.map(|cap| cap.max(live));
        }
        self.goal(marks)
    }

    /// A release was done, with `used` bytes in use before.
    pub(super) fn released(&mut self, used: usize, marks: &Watermarks, limit: usize) {
        if used < marks.high {
            self.grown_to = 0;
            let rise = (limit / STEP_UP_PART).max((marks.high - used) / 2);
            let raised = self.cap.map(|cap| cap + rise);
            self.cap = raised.filter(|&cap| cap < marks.high);
        }
    }

    /// A release found nothing: what lives stays, whatever the cap says, and holes in it are all the room that there is.
    /// Keeping writers out of them would keep them out for ever.
    pub(super) fn nothing_to_release(&mut self, marks: &Watermarks) -> Goal {
        self.cap = None;
        self.goal(marks)
    }

    fn goal(&self, marks: &Watermarks) -> Goal {
        let high = self.cap.map_or(marks.high, |cap| cap.min(marks.high));
        Goal {
            high,
            low: high.saturating_sub(marks.high - marks.low),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 256 << 10;

    #[test]
    fn what_lives_may_reach_the_marks_as_long_as_slabs_are_full() {
        let (mut pressure, marks) = (Pressure::default(), Watermarks::of(LIMIT));
        let goal = pressure.observe(marks.high, marks.high, &marks, LIMIT);
        assert_eq!((goal.high, goal.low), (marks.high, marks.low));
    }

    #[test]
    fn the_cap_falls_while_used_grows_and_only_then() {
        let (mut pressure, marks) = (Pressure::default(), Watermarks::of(LIMIT));
        let (mark, live) = (marks.high.midpoint(marks.hard), 200 << 10);
        let first = pressure.observe(mark, live, &marks, LIMIT);
        assert_eq!(first.high, live - LIMIT / 64);
        assert_eq!(first.high - first.low, marks.high - marks.low);
        assert_eq!(
            pressure.observe(mark, live, &marks, LIMIT),
            first,
            "no growth"
        );
        let second = pressure.observe(mark + LIMIT / 256, first.low, &marks, LIMIT);
        assert_eq!(second.high, first.low - LIMIT / 64);
        let never_less = (0..1000).fold(second, |_, i| {
            pressure.observe(mark + (i + 2) * LIMIT / 256, 0, &marks, LIMIT)
        });
        assert_eq!(never_less.high, LIMIT / 4);
    }

    #[test]
    fn what_lives_below_the_mark_is_not_released() {
        let (mut pressure, marks) = (Pressure::default(), Watermarks::of(LIMIT));
        let goal = pressure.observe(marks.hard, 100 << 10, &marks, LIMIT);
        assert!(goal.high < 100 << 10);
        let mark = marks.high.midpoint(marks.hard);
        let goal = pressure.observe(mark - 1, 120 << 10, &marks, LIMIT);
        assert_eq!(goal.high, 120 << 10);
        // Seen to fit, so it is the cap from now on.
        pressure.grown_to = mark;
        let goal = pressure.observe(mark, 121 << 10, &marks, LIMIT);
        assert_eq!(goal.high, 120 << 10);
        // Growth counts anew.
        let goal = pressure.observe(marks.hard, 121 << 10, &marks, LIMIT);
        assert_eq!(goal.high, (121 << 10) - LIMIT / 64);
    }

    #[test]
    fn what_cannot_be_released_is_under_no_cap() {
        let (mut pressure, marks) = (Pressure::default(), Watermarks::of(LIMIT));
        let live = 150 << 10;
        let goal = pressure.observe(marks.hard, live, &marks, LIMIT);
        assert!(goal.high < live);
        assert_eq!(pressure.nothing_to_release(&marks).high, marks.high);
        let goal = pressure.observe(marks.hard, live, &marks, LIMIT);
        assert_eq!(goal.high, marks.high, "used did not grow");
    }

    #[test]
    fn the_cap_rises_when_slabs_came_back() {
        let (mut pressure, marks) = (Pressure::default(), Watermarks::of(LIMIT));
        let low = pressure.observe(marks.hard, 100 << 10, &marks, LIMIT);
        pressure.released(marks.high, &marks, LIMIT);
        assert_eq!(
            pressure.observe(marks.low, 0, &marks, LIMIT),
            low,
            "not yet"
        );
        for _ in 0..200 {
            pressure.released(marks.low, &marks, LIMIT);
        }
        assert_eq!(
            pressure.observe(marks.low, 0, &marks, LIMIT).high,
            marks.high
        );
    }
}
