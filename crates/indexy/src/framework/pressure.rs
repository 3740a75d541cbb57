//! How much may live in X: less than the marks say where holes in slabs cannot be given back.
//!
//! X takes whole slabs, and what is cut leaves holes in them, which the next entries fill, as far as those are of their sizes: a slab
//! goes back only when all of it is free, and the blocks of a region lie in many slabs. So bytes taken (used) hardly fall when
//! bytes in use (live) do, and going on until they do would empty X. Instead the marks hold for what lives, and slabs over their mark
//! are emptied by moving what lies in them. Only where too few come back, what lives goes below a *cap*, so that the next ones to
//! be emptied are emptier. While slabs are below their mark what lives has been seen to fit, and the cap rises with it.
//!
//! Pure; used by the releaser. Keeps I7 with the hard mark and the ceiling (`watermark.rs`), where writers wait.

#![forbid(unsafe_code)]

use super::watermark::Watermarks;

/// The cap falls below what lives by this part of the budget each time.
const STEP_DOWN_PART: usize = 64;
/// While slabs are below their mark it is at least this part of the budget above what lives.
const ROOM_PART: usize = 128;
/// It does not fall below this part of the budget.
const LEAST_PART: usize = 4;

/// See the module header.
#[derive(Debug, Default)]
pub(super) struct Pressure {
    /// What may live, in bytes; `None`: as much as the marks say.
    cap: Option<usize>,
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
    /// Looks at `live` bytes under `limit`; `over`: slabs are over their mark.
    pub(super) fn observe(
        &mut self,
        live: usize,
        over: bool,
        marks: &Watermarks,
        limit: usize,
    ) -> Goal {
        if !over {
            let seen_to_fit = live + limit / ROOM_PART;
            self.cap = self.cap.map(|cap| cap.max(seen_to_fit));
        }
        self.goal(marks)
    }

    /// Emptying did not bring slabs below their mark, with `live` bytes in use.
    pub(super) fn crowded(&mut self, live: usize, marks: &Watermarks, limit: usize) -> Goal {
        let lower = live.saturating_sub(limit / STEP_DOWN_PART);
        let cap = self.cap.map_or(lower, |cap| cap.min(lower));
        self.cap = Some(cap.max(limit / LEAST_PART));
        self.goal(marks)
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
    fn what_lives_may_reach_the_marks_as_long_as_slabs_come_back() {
        let (mut pressure, marks) = (Pressure::default(), Watermarks::of(LIMIT));
        for over in [false, true] {
            let goal = pressure.observe(marks.high, over, &marks, LIMIT);
            assert_eq!((goal.high, goal.low), (marks.high, marks.low));
        }
    }

    #[test]
    fn the_cap_falls_below_what_lives_when_they_do_not_and_stays_there() {
        let (mut pressure, marks) = (Pressure::default(), Watermarks::of(LIMIT));
        let live = 200 << 10;
        let first = pressure.crowded(live, &marks, LIMIT);
        assert_eq!(first.high, live - LIMIT / 64);
        assert_eq!(first.high - first.low, marks.high - marks.low);
        assert_eq!(pressure.observe(live, true, &marks, LIMIT), first);
        let second = pressure.crowded(first.low, &marks, LIMIT);
        assert_eq!(second.high, first.low - LIMIT / 64);
        // What lives more than the cap does not raise it.
        assert_eq!(pressure.crowded(live, &marks, LIMIT), second);
        assert_eq!(pressure.crowded(0, &marks, LIMIT).high, LIMIT / 4);
    }

    #[test]
    fn what_lives_in_slabs_below_their_mark_fits() {
        let (mut pressure, marks) = (Pressure::default(), Watermarks::of(LIMIT));
        let _ = pressure.crowded(100 << 10, &marks, LIMIT);
        let goal = pressure.observe(120 << 10, false, &marks, LIMIT);
        assert_eq!(goal.high, (120 << 10) + LIMIT / 128);
        // Seen once is enough, until slabs are crowded again.
        assert_eq!(pressure.observe(90 << 10, false, &marks, LIMIT), goal);
        assert_eq!(pressure.observe(121 << 10, true, &marks, LIMIT), goal);
        let goal = pressure.crowded(121 << 10, &marks, LIMIT);
        assert_eq!(goal.high, (121 << 10) - LIMIT / 64);
        // And never more than the marks say.
        let goal = pressure.observe(marks.hard, false, &marks, LIMIT);
        assert_eq!(goal.high, marks.high);
    }

    #[test]
    fn what_cannot_be_released_is_under_no_cap() {
        let (mut pressure, marks) = (Pressure::default(), Watermarks::of(LIMIT));
        let live = 150 << 10;
        assert!(pressure.crowded(live, &marks, LIMIT).high < live);
        assert_eq!(pressure.nothing_to_release(&marks).high, marks.high);
        let goal = pressure.observe(live, true, &marks, LIMIT);
        assert_eq!(goal.high, marks.high);
    }
}
