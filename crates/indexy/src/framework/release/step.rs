//! What the releaser does next, as a pure function of what it sees and of what it did so far.
//!
//! Source: IndeXY II-C (from the high watermark down to the low one). Differs: the marks hold for
//! what *lives* (`memory/live_cap.rs`), and slabs with holes are emptied.
//!
//! Keeps I7, and this: **a writer that waits for memory which X could give gets it.** What X holds
//! is clean, dirty, garbage that readers still see, or holes in slabs. While a writer waits, one of
//! these steps is next until it fits:
//! - [`Step::Release`] cuts what is clean. What is known of the regions may be stale, and then a
//!   release with the usual effort finds nothing although something is clean; so the next one is
//!   exhaustive.
//! - [`Step::Clean`] makes dirty entries clean, as long as Y takes runs.
//! - [`Step::Reclaim`] frees garbage once readers have left, [`Step::EmptySlabs`] gives back holes,
//!   and a lower cap on what lives leaves less to hold them.
//!
//! [`Step::Rest`] with `exhausted` comes only after an exhaustive release that freed nothing, with
//! nothing dirty that Y would take. The tests walk a model of X through all of its states to show
//! it. Each chain of steps without effect is bounded, so the releaser never spins.

#![forbid(unsafe_code)]

use super::cut::Effort;
use crate::framework::memory::{
    Watermarks,
    live_cap::{Goal, LiveCap},
};

/// What was freed is looked at so many times before slabs are emptied or more is released.
const RECLAIM_TRIES: u32 = 8;
/// Freeing this part of what is needed is enough for one release: the next step looks again.
const ENOUGH_DIVISOR: u64 = 2;
/// The cleaner is asked so often in a row without anything being freed by the releases after it.
const CLEAN_TRIES: u32 = 8;
/// Slabs of this part of the budget beyond what is needed are emptied at once: to find what lies in
/// them costs a walk over X.
const EMPTIED_AHEAD_DIVISOR: usize = 32;

/// What the releaser sees between two steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Snapshot {
    pub marks: Watermarks,
    /// The budget in bytes.
    pub limit: usize,
    /// Bytes taken from the budget.
    pub used: usize,
    /// The same with what lives in X instead of its slabs, and with what is wanted.
    pub live: usize,
    /// Bytes that are waited for beyond the marks.
    pub wanted: usize,
    /// Somebody waits for memory, however much.
    pub awaited: bool,
    /// There are dirty entries outside of resident trees.
    pub dirty: bool,
    /// Y takes runs.
    pub can_clean: bool,
}

impl Snapshot {
    /// Bytes, holes in slabs and retired blocks included, over what they may be: less where much is
    /// wanted at once, for which holes are of no use.
    fn slabs_over(&self) -> usize {
        let mark = match self.wanted {
            0 => self.marks.slabs,
            _ => self.marks.high.midpoint(self.marks.hard),
        };
        (self.used + self.wanted).saturating_sub(mark)
    }
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Free so many bytes of X; [`Plan::released`] hears of the result.
    Release { need: u64, effort: Effort },
    /// Have the cleaner write something, and wait for it.
    Clean,
    /// Free what readers have left, and give them a moment.
    Reclaim,
    /// Empty slabs of so many bytes.
    EmptySlabs { bytes: usize },
    /// Nothing to do until something changes. `exhausted`: what lives is over its limit, and
    /// nothing of it can be released.
    Rest { exhausted: bool },
}

/// What the releaser remembers between two steps.
#[derive(Debug, Default)]
pub(super) struct Plan {
    cap: LiveCap,
    /// How the releases went since something was freed.
    tried: Tried,
    /// Looks at what was freed since slabs were emptied or the cap was lowered.
    reclaims: u32,
    /// Of emptying slabs and lowering the cap, the first was done last.
    emptied: bool,
}

#[derive(Debug, Default, Clone, Copy)]
struct Tried {
    /// The last release freed too little.
    short: bool,
    /// It freed nothing...
    nothing: bool,
    /// ...with all effort.
    exhaustive: bool,
    /// The cleaner was asked since the last release.
    just_cleaned: bool,
    /// How often it was asked since something was freed.
    cleans: u32,
    /// Slabs were emptied because nothing could be released.
    emptied: bool,
}

impl Plan {
    /// The next step, and the limits of what may live from now on.
    pub(super) fn next(&mut self, now: &Snapshot) -> (Step, Goal) {
        let over = now.slabs_over() > 0;
        let goal = self.cap.observe(now.live, over, &now.marks, now.limit);
        if self.tried.emptied && (over || now.live > goal.high) {
            // Nothing could be released, and its holes are all the room that there is.
            return (self.rest(true), goal);
        }
        if now.live > goal.high {
            return self.release(now, goal);
        }
        self.tried = Tried::default();
        if !over {
            return (self.rest(false), goal);
        }
        // What was freed may still wait for readers, or lie in slabs that are not empty yet.
        if self.reclaims < RECLAIM_TRIES {
            self.reclaims += 1;
            return (Step::Reclaim, goal);
        }
        self.reclaims = 0;
        self.emptied = !self.emptied;
        if self.emptied {
            return (empty_slabs(now), goal);
        }
        let goal = self
            .cap
            .crowded(now.live, now.awaited, &now.marks, now.limit);
        if now.live <= goal.high {
            // Hardly anything lives: what is in the way is not X's to give.
            return (self.rest(false), goal);
        }
        self.release(now, goal)
    }

    /// What lives is over `goal`.
    fn release(&mut self, now: &Snapshot, goal: Goal) -> (Step, Goal) {
        let tried = &mut self.tried;
        let need = (now.live - goal.low) as u64;
        let release = |effort| (Step::Release { need, effort }, goal);
        if !tried.short {
            return release(Effort::Usual);
        }
        if now.dirty && now.can_clean && !tried.just_cleaned && tried.cleans < CLEAN_TRIES {
            tried.just_cleaned = true;
            tried.cleans += 1;
            tried.exhaustive = false;
            return (Step::Clean, goal);
        }
        let usual_may_do = !tried.nothing || tried.just_cleaned && tried.cleans <= 1;
        if usual_may_do {
            tried.just_cleaned = false;
            return release(Effort::Usual);
        }
        if !tried.exhaustive {
            tried.just_cleaned = false;
            return release(Effort::Exhaustive);
        }
        // All of it stays: resident trees, or what Y refuses. There are its holes.
        let goal = self.cap.nothing_to_release(&now.marks);
        if now.slabs_over() > 0 {
            tried.emptied = true;
            return (empty_slabs(now), goal);
        }
        (self.rest(true), goal)
    }

    /// A release freed `freed` of `need` bytes.
    pub(super) fn released(&mut self, freed: u64, need: u64, effort: Effort) {
        let tried = &mut self.tried;
        if freed > 0 {
            *tried = Tried {
                short: freed < need / ENOUGH_DIVISOR,
                ..Tried::default()
            };
        } else {
            tried.short = true;
            tried.nothing = true;
            tried.exhaustive |= effort == Effort::Exhaustive;
        }
    }

    fn rest(&mut self, exhausted: bool) -> Step {
        self.tried = Tried::default();
        self.reclaims = 0;
        self.emptied = false;
        Step::Rest { exhausted }
    }
}

fn empty_slabs(now: &Snapshot) -> Step {
    let ahead = now.limit / EMPTIED_AHEAD_DIVISOR;
    Step::EmptySlabs {
        bytes: now.slabs_over() + ahead,
    }
}

#[cfg(test)]
mod tests;
