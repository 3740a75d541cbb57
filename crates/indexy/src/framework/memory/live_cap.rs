//! How much may live in X: less than the marks say where holes in slabs cannot be given back.
//!
//! X takes whole slabs. What is cut leaves holes in them, which the next entries of the same sizes
//! fill. A slab goes back only when all of it is free, and the blocks of a region lie in many
//! slabs. So bytes used hardly fall when bytes live do, and a release that went on until they did
//! would empty X. Instead the marks hold for what lives, and slabs over their mark are emptied by
//! moving what lies in them. Only where too few come back, what lives goes below a *cap*, so that
//! the next slabs to be emptied hold less. While slabs are below their mark, what lives has been
//! seen to fit, and the cap rises with it.
//!
//! Pure; a part of the releaser's plan. Keeps I7 with the hard mark and the ceiling
//! (`watermarks.rs`), where writers wait.

#![forbid(unsafe_code)]

use super::watermarks::Watermarks;

/// The cap falls below what lives by this part of the budget each time.
const STEP_DOWN_DIVISOR: usize = 64;
/// While slabs are below their mark it is at least this part of the budget above what lives.
const ROOM_DIVISOR: usize = 128;
/// It does not fall below this part of the budget, unless somebody waits for more.
const LEAST_DIVISOR: usize = 4;

/// See the module header.
#[derive(Debug, Default)]
pub(crate) struct LiveCap {
    /// What may live, in bytes; `None`: as much as the marks say.
    cap: Option<usize>,
}

/// Marks for what lives, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Goal {
    /// Release starts here...
    pub(crate) high: usize,
    /// ...and ends here.
    pub(crate) low: usize,
}

impl LiveCap {
    /// Looks at `live` bytes under `limit`; `over`: slabs are over their mark.
    pub(crate) fn observe(
        &mut self,
        live: usize,
        over: bool,
        marks: &Watermarks,
        limit: usize,
    ) -> Goal {
        if !over {
            let seen_to_fit = live + limit / ROOM_DIVISOR;
            self.cap = self.cap.map(|cap| cap.max(seen_to_fit));
        }
        self.goal(marks)
    }

    /// Emptying did not bring slabs below their mark, with `live` bytes in use. `awaited`: somebody
    /// waits, so that all of X may have to go.
    pub(crate) fn crowded(
        &mut self,
        live: usize,
        awaited: bool,
        marks: &Watermarks,
        limit: usize,
    ) -> Goal {
        let lower = live.saturating_sub(limit / STEP_DOWN_DIVISOR);
        let cap = self.cap.map_or(lower, |cap| cap.min(lower));
        let least = if awaited { 0 } else { limit / LEAST_DIVISOR };
        self.cap = Some(cap.max(least));
        self.goal(marks)
    }

    /// A release found nothing: what lives stays, whatever the cap says, and holes in it are all
    /// the room that there is. Keeping writers out of them would keep them out for ever.
    pub(crate) fn nothing_to_release(&mut self, marks: &Watermarks) -> Goal {
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
        let (mut live_cap, marks) = (LiveCap::default(), Watermarks::of(LIMIT));
        for over in [false, true] {
            let goal = live_cap.observe(marks.high, over, &marks, LIMIT);
            assert_eq!((goal.high, goal.low), (marks.high, marks.low));
        }
    }

    #[test]
    fn the_cap_falls_below_what_lives_when_they_do_not_and_stays_there() {
        let (mut live_cap, marks) = (LiveCap::default(), Watermarks::of(LIMIT));
        let live = 200 << 10;
        let first = live_cap.crowded(live, false, &marks, LIMIT);
        assert_eq!(first.high, live - LIMIT / 64);
        assert_eq!(first.high - first.low, marks.high - marks.low);
        assert_eq!(live_cap.observe(live, true, &marks, LIMIT), first);
        let second = live_cap.crowded(first.low, false, &marks, LIMIT);
        assert_eq!(second.high, first.low - LIMIT / 64);
        // What lives more than the cap does not raise it.
        assert_eq!(live_cap.crowded(live, false, &marks, LIMIT), second);
        assert_eq!(live_cap.crowded(0, false, &marks, LIMIT).high, LIMIT / 4);
    }

    #[test]
    fn what_lives_in_slabs_below_their_mark_fits() {
        let (mut live_cap, marks) = (LiveCap::default(), Watermarks::of(LIMIT));
        let _ = live_cap.crowded(100 << 10, false, &marks, LIMIT);
        let goal = live_cap.observe(120 << 10, false, &marks, LIMIT);
        assert_eq!(goal.high, (120 << 10) + LIMIT / 128);
        // Seen once is enough, until slabs are crowded again.
        assert_eq!(live_cap.observe(90 << 10, false, &marks, LIMIT), goal);
        assert_eq!(live_cap.observe(121 << 10, true, &marks, LIMIT), goal);
        let goal = live_cap.crowded(121 << 10, false, &marks, LIMIT);
        assert_eq!(goal.high, (121 << 10) - LIMIT / 64);
        // And never more than the marks say.
        let goal = live_cap.observe(marks.hard, false, &marks, LIMIT);
        assert_eq!(goal.high, marks.high);
    }

    #[test]
    fn what_cannot_be_released_is_under_no_cap() {
        let (mut live_cap, marks) = (LiveCap::default(), Watermarks::of(LIMIT));
        let live = 150 << 10;
        assert!(live_cap.crowded(live, false, &marks, LIMIT).high < live);
        assert_eq!(live_cap.nothing_to_release(&marks).high, marks.high);
        let goal = live_cap.observe(live, true, &marks, LIMIT);
        assert_eq!(goal.high, marks.high);
    }
}
