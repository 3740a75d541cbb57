//! A model of X and its surroundings, walked from every state with the worst answers to each step.

use super::*;

const LIMIT: usize = 64 << 20;
/// Amounts of the model are multiples of this.
const UNIT: usize = LIMIT / 8;
/// What a small write asks for.
const SMALL: usize = 256;
/// No chain of steps is longer.
const MOST_STEPS: usize = 4000;
/// Steps in a row that change nothing, before the releaser has to rest.
const MOST_IDLE_STEPS: usize = 64;

/// Bytes in X by what they are, and how the world answers.
#[derive(Debug, Clone, Copy)]
struct World {
    /// What others hold: caches, buffers, tables of Y.
    others: usize,
    clean: usize,
    dirty: usize,
    resident: usize,
    /// Freed, and still seen by readers.
    garbage: usize,
    /// Freed, in slabs that are not empty.
    holes: usize,
    /// Somebody waits for so much; 0: for a small write.
    claim: usize,
    /// What is known of the regions is old: a usual release finds nothing.
    stale: bool,
    answers: Answers,
}

/// The worst that can come.
#[derive(Debug, Clone, Copy)]
struct Answers {
    /// What is known is old again after each cleaning.
    cleaning_makes_stale: bool,
    /// What is released leaves holes.
    fragments: bool,
    /// Emptying slabs gives nothing back, unless nothing lives in them.
    slabs_stay: bool,
    /// Readers leave after so many looks.
    readers: u32,
    y_takes_runs: bool,
}

impl World {
    fn used(&self) -> usize {
        self.others + self.x() + self.garbage + self.holes
    }

    fn x(&self) -> usize {
        self.clean + self.dirty + self.resident
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            marks: Watermarks::of(LIMIT),
            limit: LIMIT,
            used: self.used(),
            live: self.others + self.x() + self.claim,
            wanted: self.claim,
            awaited: true,
            dirty: self.dirty > 0,
            can_clean: self.answers.y_takes_runs,
        }
    }

    /// Whether the waiting writer is admitted.
    fn fits(&self, goal: Goal) -> bool {
        let (marks, used) = (Watermarks::of(LIMIT), self.used());
        match self.claim {
            0 => {
                let live = self.others + self.x();
                used + SMALL < marks.hard || used + SMALL < marks.ceiling && live <= goal.high
            }
            claim => used + claim < marks.hard,
        }
    }

    /// It would be if X gave all that it can.
    fn could_fit(&self) -> bool {
        let stays = self.resident
            + if self.answers.y_takes_runs {
                0
            } else {
                self.dirty
            };
        // Holes that emptying does not give back stay with what lives in the slabs.
        let holes = if stays > 0 {
            self.clean + self.dirty + self.holes + self.garbage
        } else {
            0
        };
        self.others + stays + holes + self.claim.max(SMALL) < Watermarks::of(LIMIT).hard
    }

    fn leave(&mut self, freed: usize) {
        match self.answers {
            Answers { readers: 1.., .. } => self.garbage += freed,
            Answers {
                fragments: true, ..
            } if self.x() > 0 => self.holes += freed,
            _ => {}
        }
    }

    fn readers_look(&mut self) {
        self.answers.readers = self.answers.readers.saturating_sub(1);
        if self.answers.readers == 0 {
            let garbage = std::mem::take(&mut self.garbage);
            self.leave(garbage);
        }
        if self.x() == 0 {
            self.holes = 0;
        }
    }

    /// Does what `step` says, as badly as permitted; true if that changed something.
    fn act(&mut self, plan: &mut Plan, step: Step) -> bool {
        let before = (self.used(), self.dirty, self.garbage, self.answers.readers);
        match step {
            Step::Release { need, effort } => {
                let finds = effort == Effort::Exhaustive || !self.stale;
                let freed = if finds {
                    self.clean.min(need as usize)
                } else {
                    0
                };
                self.clean -= freed;
                self.leave(freed);
                self.stale &= effort == Effort::Usual;
                plan.released(freed as u64, need, effort);
                if freed > 0 {
                    return true;
                }
            }
            Step::Clean if self.answers.y_takes_runs => {
                // A run at a time.
                let run = self.dirty.min(UNIT / 4);
                self.dirty -= run;
                self.clean += run;
                self.stale |= self.answers.cleaning_makes_stale;
            }
            Step::Clean => unreachable!("Y takes no runs"),
            Step::Reclaim => self.readers_look(),
            Step::EmptySlabs { .. } => {
                self.readers_look();
                if !self.answers.slabs_stay {
                    self.holes = 0;
                }
            }
            Step::Rest { .. } => self.readers_look(),
        }
        before != (self.used(), self.dirty, self.garbage, self.answers.readers)
    }
}

/// Runs `next` until the writer is in; `Err` says where nothing moves although something could.
fn walk(
    start: World,
    mut next: impl FnMut(&mut Plan, &Snapshot) -> (Step, Goal),
) -> Result<(), String> {
    let (mut world, mut plan) = (start, Plan::default());
    let (mut idle, mut rests) = (0, 0);
    for _ in 0..MOST_STEPS {
        let (step, goal) = next(&mut plan, &world.snapshot());
        if world.fits(goal) {
            return Ok(());
        }
        if let Step::Rest { exhausted } = step {
            // Woken again by the writer, which looks every few milliseconds.
            rests += 1;
            let nothing_left =
                world.clean == 0 && (world.dirty == 0 || !world.answers.y_takes_runs);
            if exhausted && !nothing_left {
                return Err(format!("exhausted at {world:?}, from {start:?}"));
            }
            if rests > 20 {
                return match world.could_fit() {
                    true => Err(format!("nothing moves at {world:?}, from {start:?}")),
                    false => Ok(()),
                };
            }
            idle = 0;
        }
        idle = if world.act(&mut plan, step) {
            0
        } else {
            idle + 1
        };
        if idle > MOST_IDLE_STEPS {
            return Err(format!("spins at {world:?}, from {start:?}"));
        }
    }
    Err(format!("no end, from {start:?}"))
}

/// Calls `each` with every state of the model in which somebody waits.
fn every_world(mut each: impl FnMut(World)) {
    let amounts = |most: usize| (0..=most).map(|n| n * UNIT);
    for flags in 0..64u32 {
        let flag = |bit: u32| flags >> bit & 1 == 1;
        let answers = Answers {
            cleaning_makes_stale: flag(0),
            fragments: flag(1),
            slabs_stay: flag(2),
            readers: if flag(3) { 20 } else { 0 },
            y_takes_runs: flag(4),
        };
        for others in [UNIT / 2, 2 * UNIT, 3 * UNIT] {
            for (clean, dirty) in amounts(7).flat_map(|c| amounts(7).map(move |d| (c, d))) {
                for (garbage, holes) in amounts(2).flat_map(|g| amounts(3).map(move |h| (g, h))) {
                    for (resident, claim) in [0, UNIT].into_iter().flat_map(|r| {
                        [0, UNIT / 8, UNIT, 2 * UNIT, 4 * UNIT + 99].map(move |c| (r, c))
                    }) {
                        let world = World {
                            others,
                            clean,
                            dirty,
                            resident,
                            garbage: if answers.readers > 0 { garbage } else { 0 },
                            holes,
                            claim,
                            stale: flag(5),
                            answers,
                        };
                        if world.used() <= LIMIT {
                            each(world);
                        }
                    }
                }
            }
        }
    }
}

/// "Somebody waits and nothing moves" is unreachable.
#[test]
fn i7_a_writer_that_waits_gets_what_x_can_give() {
    let mut worlds = 0;
    every_world(|world| {
        worlds += 1;
        walk(world, Plan::next).unwrap_or_else(|why| panic!("{why}"));
    });
    assert!(worlds > 50_000, "{worlds}");
}

/// The walk finds a plan that trusts what is known of the regions.
#[test]
fn the_walk_finds_a_release_that_trusts_old_numbers() {
    let trusting = |plan: &mut Plan, now: &Snapshot| match plan.next(now) {
        (Step::Release { need, .. }, goal) => {
            let effort = Effort::Usual;
            (Step::Release { need, effort }, goal)
        }
        other => other,
    };
    let mut stuck = 0;
    every_world(|world| stuck += u32::from(walk(world, trusting).is_err()));
    assert!(stuck > 0);
}

/// Nothing to do below the marks; at the high one a release down to the low one.
#[test]
fn releases_go_from_the_high_mark_to_the_low_one() {
    let marks = Watermarks::of(LIMIT);
    let calm = Snapshot {
        marks,
        limit: LIMIT,
        used: marks.high,
        live: marks.high,
        wanted: 0,
        awaited: false,
        dirty: true,
        can_clean: true,
    };
    let mut plan = Plan::default();
    assert_eq!(plan.next(&calm).0, Step::Rest { exhausted: false });
    let live = marks.high + 1;
    let full = Snapshot { live, ..calm };
    let need = (live - marks.low) as u64;
    let release = |effort| Step::Release { need, effort };
    assert_eq!(plan.next(&full).0, release(Effort::Usual));
    // Too little was clean: the cleaner first.
    plan.released(need / 4, need, Effort::Usual);
    assert_eq!(plan.next(&full).0, Step::Clean);
    assert_eq!(plan.next(&full).0, release(Effort::Usual));
    plan.released(need, need, Effort::Usual);
    assert_eq!(plan.next(&calm).0, Step::Rest { exhausted: false });
}

/// A Y that refuses is not asked for more; what is left of X's clean entries is found.
#[test]
fn a_y_that_refuses_is_not_waited_for() {
    let marks = Watermarks::of(LIMIT);
    let full = Snapshot {
        marks,
        limit: LIMIT,
        used: marks.high + 1,
        live: marks.high + 1,
        wanted: 0,
        awaited: true,
        dirty: true,
        can_clean: false,
    };
    let mut plan = Plan::default();
    let need = (full.live - marks.low) as u64;
    for effort in [Effort::Usual, Effort::Exhaustive] {
        assert_eq!(plan.next(&full).0, Step::Release { need, effort });
        plan.released(0, need, effort);
    }
    assert_eq!(plan.next(&full).0, Step::Rest { exhausted: true });
}
