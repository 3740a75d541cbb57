//! Every order of the steps of two owners, a pool and a take-over, for one key: nothing stale is
//! answered, nothing that was acknowledged is lost but by the end of its owner, and an owner that
//! was stopped and comes back destroys nothing.
//!
//! The model has the protocol of `tree/hand_over.rs` and `tree/recover.rs`, step by step. A step is
//! a verb or a look at the own cache, so an owner may be stopped between any two of them, and go on
//! at any time later. A verb of a fenced session is refused (F1 of `remote/keys.rs`), and its owner
//! ends. Without one of the rules a wrong order is found.

use std::collections::{HashSet, VecDeque};

/// Values are numbers, and grow.
const MOST_WRITES: u8 = 3;
const MOST_EPOCHS: u8 = 4;

/// The rule that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Broken {
    Nothing,
    /// T6: an operation looks at its session after it read the cache.
    AnswersAnyway,
    /// F1: writes of a fenced session are refused.
    LateWrites,
    /// Dirty pages are written before the table names another owner.
    TableFirst,
    /// T5: a range that comes back is read again.
    KeepsCopies,
    /// A take-over fences first.
    NoFence,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Doing {
    Nothing,
    /// What the cache had; what must not be older; whether the session was over already.
    Reading(u8, u8, bool),
    Writing(u8, bool),
    Stopped,
    Flushed,
    Adopting,
    /// The other one was fenced.
    TakingOver,
    /// It noticed that it was replaced.
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Owner {
    serves: bool,
    doing: Doing,
    /// The leaf in the cache.
    copy: Option<u8>,
    dirty: bool,
    fenced: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    owners: [Owner; 2],
    /// The leaf in the pool.
    pool: u8,
    /// The table: who owns the key, and since when.
    table: (usize, u8),
    written: u8,
    /// The newest value that must be found.
    floor: u8,
}

type Step = Result<State, String>;

impl State {
    fn start() -> Self {
        let owner = Owner {
            serves: false,
            doing: Doing::Nothing,
            copy: None,
            dirty: false,
            fenced: false,
        };
        let first = Owner {
            serves: true,
            ..owner
        };
        Self {
            owners: [first, owner],
            pool: 0,
            table: (0, 1),
            written: 0,
            floor: 0,
        }
    }

    /// The state with owner `i` changed.
    fn with(mut self, i: usize, change: impl FnOnce(&mut Owner)) -> Self {
        change(&mut self.owners[i]);
        self
    }

    fn ended(self, i: usize) -> Self {
        self.with(i, |owner| {
            owner.doing = Doing::Ended;
            owner.serves = false;
        })
    }

    /// Writes a dirty leaf; `None`: refused.
    fn write_back(mut self, i: usize, broken: Broken) -> Option<Self> {
        let owner = &mut self.owners[i];
        if let (Some(value), true) = (owner.copy, owner.dirty) {
            if owner.fenced && broken != Broken::LateWrites {
                return None;
            }
            owner.dirty = false;
            self.pool = value;
        }
        Some(self)
    }

    /// What owner `i` may do next.
    fn steps(self, i: usize, broken: Broken) -> Vec<Step> {
        let owner = self.owners[i];
        let (other, answers) = (1 - i, broken == Broken::AnswersAnyway);
        match owner.doing {
            Doing::Ended => Vec::new(),
            Doing::Nothing => self.begin(i, broken),
            Doing::Reading(_, _, _) if owner.fenced && !answers => vec![Ok(self.ended(i))],
            Doing::Reading(value, floor, late) => {
                let next = self.with(i, |owner| owner.doing = Doing::Nothing);
                let wrong = late || value < floor;
                let what = || format!("owner {i} answers {value}, not {floor}; replaced: {late}");
                vec![if wrong { Err(what()) } else { Ok(next) }]
            }
            Doing::Writing(_, _) if owner.fenced && !answers => vec![Ok(self.ended(i))],
            Doing::Writing(value, late) => {
                let mut next = self.with(i, |owner| owner.doing = Doing::Nothing);
                next.floor = next.floor.max(value);
                let what = || format!("owner {i} acknowledges {value} though it was replaced");
                vec![if late { Err(what()) } else { Ok(next) }]
            }
            Doing::Stopped => {
                let written = match broken {
                    Broken::TableFirst => Some(self),
                    _ => self.write_back(i, broken),
                };
                let Some(next) = written else {
                    return vec![Ok(self.ended(i))];
                };
                let keeps = broken == Broken::KeepsCopies;
                vec![Ok(next.with(i, |owner| {
                    owner.doing = Doing::Flushed;
                    owner.copy = owner.copy.filter(|_| keeps);
                    owner.dirty = false;
                }))]
            }
            Doing::Flushed if owner.fenced || self.table.0 != i => vec![Ok(self.ended(i))],
            Doing::Flushed => {
                let mut next = self.with(i, |owner| owner.doing = Doing::Nothing);
                next.table = (other, self.table.1 + 1);
                vec![Ok(next)]
            }
            Doing::Adopting if owner.fenced => vec![Ok(self.ended(i))],
            Doing::Adopting => vec![Ok(self.with(i, |owner| {
                owner.doing = Doing::Nothing;
                owner.serves = true;
            }))],
            Doing::TakingOver if owner.fenced => vec![Ok(self.ended(i))],
            Doing::TakingOver => {
                let mut next = self.with(i, |owner| owner.doing = Doing::Nothing);
                if self.table.0 == other {
                    next.table = (i, self.table.1 + 1);
                }
                vec![Ok(next)]
            }
        }
    }

    /// What an owner that does nothing may begin.
    fn begin(self, i: usize, broken: Broken) -> Vec<Step> {
        let owner = self.owners[i];
        let other = 1 - i;
        let mut next = Vec::new();
        if owner.serves {
            // A read of the pool is not fenced.
            let value = owner.copy.unwrap_or(self.pool);
            next.push(self.with(i, |owner| {
                owner.copy = Some(value);
                owner.doing = Doing::Reading(value, self.floor, owner.fenced);
            }));
            if self.written < MOST_WRITES {
                let value = self.written + 1;
                let mut writing = self.with(i, |owner| {
                    owner.copy = Some(value);
                    owner.dirty = true;
                    owner.doing = Doing::Writing(value, owner.fenced);
                });
                writing.written = value;
                next.push(writing);
            }
            // The leaf leaves the cache.
            let evicted = self.write_back(i, broken);
            next.push(match evicted {
                Some(evicted) => evicted.with(i, |owner| owner.copy = None),
                None => self.ended(i),
            });
            if self.table.1 < MOST_EPOCHS {
                next.push(self.with(i, |owner| {
                    owner.serves = false;
                    owner.doing = Doing::Stopped;
                }));
            }
        } else if self.table.0 == i {
            next.push(self.with(i, |owner| owner.doing = Doing::Adopting));
        }
        if !self.owners[other].fenced && self.table.1 < MOST_EPOCHS {
            let mut fencing = self.with(i, |owner| owner.doing = Doing::TakingOver);
            fencing.owners[other].fenced = broken != Broken::NoFence;
            if self.table.0 == other {
                // What its owner did not write back is lost with it.
                fencing.floor = self.pool;
            }
            next.push(fencing);
        }
        next.into_iter().map(Ok).collect()
    }
}

/// Looks at every state that can be reached; how many there are, or what is wrong in one.
fn explore(broken: Broken) -> Result<(usize, usize), String> {
    let start = State::start();
    let (mut seen, mut todo) = (HashSet::from([start]), VecDeque::from([start]));
    // The second owner has the key, and the first one goes on all the same.
    let mut beside = 0;
    while let Some(state) = todo.pop_front() {
        let [first, second] = &state.owners;
        beside += usize::from(second.serves && first.fenced && first.doing != Doing::Ended);
        for step in (0..2).flat_map(|i| state.steps(i, broken)) {
            let next = step.map_err(|what| format!("{what}, after {state:?}"))?;
            if seen.insert(next) {
                todo.push_back(next);
            }
        }
    }
    Ok((seen.len(), beside))
}

#[test]
fn every_order_of_steps_is_right() {
    let (states, beside) = explore(Broken::Nothing).unwrap();
    assert!(states > 1_000 && beside > 100, "{states} states, {beside}");
}

#[test]
fn each_rule_is_needed() {
    for broken in [
        Broken::AnswersAnyway,
        Broken::LateWrites,
        Broken::TableFirst,
        Broken::KeepsCopies,
        Broken::NoFence,
    ] {
        let found = explore(broken);
        assert!(found.is_err(), "{broken:?}: {found:?}");
    }
}
