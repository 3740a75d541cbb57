//! A call, and the standings.

use super::{
    check,
    schema::{self, AREAS, FIRST_AREA, Table, Vote},
    state::{COUNTS, MOST_CONTESTANTS, Voter},
};
use crate::{
    application::{
        Client, Done, Ended, TableId, Trouble,
        access::{Reads, Writes, now, repeated},
        random::chance,
        rows::Whole,
    },
    contender::Tables,
    workload::{Chooser, Rng},
};
use rand::Rng as _;

/// A kind of transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Transaction {
    /// Counts a call.
    Vote,
    /// Sums the votes of each contestant.
    Standings,
}

impl Transaction {
    /// All of them, by their numbers.
    pub const ALL: [Self; 2] = [Self::Vote, Self::Standings];

    /// As reports spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vote => "vote",
            Self::Standings => "standings",
        }
    }
}

/// Of 100 calls, those for a contestant that there is not.
const INVALID_PERCENT: u32 = 1;
/// A contestant that there is not.
const NOBODY: u8 = MOST_CONTESTANTS + 1;
/// One of so many transactions asks for the standings.
const STANDINGS_ONE_IN: u32 = 1000;
/// Transactions of a thread between two looks at a telephone number.
const LOOK_EVERY: u64 = 4096;

type Board = [u64; MOST_CONTESTANTS as usize];

/// Runs transactions for one thread.
pub(super) struct Transactions<'a, T: Tables> {
    tables: &'a T,
    voter: &'a Voter,
    phones: Chooser,
    row: Vec<u8>,
    written: Vec<u8>,
    /// The standings when they were last looked at.
    board: Board,
    /// Votes that were accepted, by [`Voter::place`].
    accepted: Vec<u64>,
    turns: u64,
    conflicts: u64,
    standings: u64,
    invalid: u64,
    over_limit: u64,
}

/// What became of a call.
enum Call {
    Accepted {
        contestant: u8,
        state: u8,
        payload: u64,
    },
    Invalid,
    OverLimit,
}

impl<'a, T: Tables> Transactions<'a, T> {
    pub(super) fn new(tables: &'a T, voter: &'a Voter) -> Self {
        Self {
            tables,
            voter,
            phones: voter.config.phones().chooser(),
            row: Vec::new(),
            written: Vec::new(),
            board: Board::default(),
            accepted: vec![0; COUNTS],
            turns: 0,
            conflicts: 0,
            standings: 0,
            invalid: 0,
            over_limit: 0,
        }
    }

    /// A telephone number.
    fn phone(&self, rng: &mut Rng) -> u64 {
        let drawn = self.phones.next(rng);
        let an_area = u64::from(self.voter.config.phones_an_area);
        // As many as areas have numbers, so below AREAS.
        let area = FIRST_AREA + (drawn / an_area).min(u64::from(AREAS) - 1) as u16;
        schema::phone(area, drawn % an_area)
    }

    /// Whom a call from `area` is for.
    fn contestant(&self, area: u16, rng: &mut Rng) -> u8 {
        let config = &self.voter.config;
        if chance(rng, INVALID_PERCENT) {
            return NOBODY;
        }
        if rng.random() {
            return config.favourite(area);
        }
        rng.random_range(1..=config.contestants)
    }

    fn vote(&mut self, rng: &mut Rng) -> Done<Call> {
        let phone = self.phone(rng);
        let area = schema::area(phone);
        let contestant = self.contestant(area, rng);
        let (tables, voter) = (self.tables, self.voter);
        let locks = !tables.isolates();
        let _phone = locks.then(|| voter.lock_phone(phone));
        let mut writes = Writes::new(tables.batch());
        let row = &mut self.row;

        let reads = Reads::of(tables, &writes);
        let there = reads.fetch_if_there(Table::Contestants, &[contestant], row)?;
        let phone_key = phone.to_be_bytes();
        let votes = match reads.fetch_if_there(Table::VotesByPhone, &phone_key, row)? {
            true => schema::byte(row).ok_or_else(|| Trouble::garbled(Table::VotesByPhone))?,
            false => 0,
        };
        reads.fetch(Table::AreaCodes, &area.to_be_bytes(), row)?;
        let state = schema::byte(row).ok_or_else(|| Trouble::garbled(Table::AreaCodes))?;
        if !there {
            return Ok(Call::Invalid);
        }
        if votes >= voter.config.votes_a_phone {
            return Ok(Call::OverLimit);
        }
        let _count = locks.then(|| voter.lock_count(contestant, state));
        let count_key = [contestant, state];
        let reads = Reads::of(tables, &writes);
        let count = match reads.fetch_if_there(Table::VotesByContestant, &count_key, row)? {
            true => schema::count(row).ok_or_else(|| Trouble::garbled(Table::VotesByContestant))?,
            false => 0,
        };
        let vote = Vote {
            contestant,
            state,
            at: now(),
            row: Whole::default(),
        };
        let n = votes + 1;
        let vote = vote.write(&mut self.written);
        writes.put(Table::Votes, &schema::vote(phone, n), vote);
        writes.put(Table::VotesByPhone, &phone_key, &[n]);
        let count = (count + 1).to_le_bytes();
        writes.put(Table::VotesByContestant, &count_key, &count);
        Ok(Call::Accepted {
            contestant,
            state,
            payload: writes.commit()?,
        })
    }

    fn standings(&mut self) -> Done<()> {
        let writes = Writes::new(self.tables.batch());
        let table = Table::VotesByContestant;
        let (mut board, mut garbled) = (Board::default(), false);
        // From contestant 1 on: not every engine takes an empty key.
        Reads::of(self.tables, &writes).scan(table, &[1], &[u8::MAX], |key, row| {
            let contestant = key.first().map_or(0, |c| usize::from(*c));
            let place = contestant.checked_sub(1).and_then(|at| board.get_mut(at));
            match (place, schema::count(row)) {
                (Some(place), Some(count)) => *place += count,
                _ => garbled = true,
            }
            !garbled
        })?;
        if garbled {
            return Err(Trouble::garbled(table));
        }
        for (at, (now, before)) in board.iter().zip(self.board).enumerate() {
            if *now < before {
                return Err(Trouble::Wrong(format!(
                    "{}: contestant {} has {now} votes, and had {before} before",
                    table.name(),
                    at + 1
                )));
            }
        }
        self.board = board;
        Ok(())
    }

    /// Holds a telephone number's votes against their count, beside transactions.
    fn look(&self, rng: &mut Rng) -> Done<()> {
        let phone = self.phone(rng);
        let locks = !self.tables.isolates();
        let _phone = locks.then(|| self.voter.lock_phone(phone));
        match check::phone(self.voter, self.tables, phone) {
            // It was given up, and another one is looked at another time.
            Err(Trouble::Engine(fault)) if self.tables.is_conflict(&fault) => Ok(()),
            looked => looked.map(drop),
        }
    }

    /// Counts what became of a call; returns whether it was accepted, and the bytes written.
    fn note(&mut self, call: &Call) -> (bool, u64) {
        match *call {
            Call::Accepted {
                contestant,
                state,
                payload,
            } => {
                self.accepted[Voter::place(contestant, state)] += 1;
                return (true, payload);
            }
            Call::Invalid => self.invalid += 1,
            Call::OverLimit => self.over_limit += 1,
        }
        (false, 0)
    }
}

impl<T: Tables> Client for Transactions<'_, T> {
    type Kind = Transaction;

    fn next(&mut self, rng: &mut Rng) -> Done<Ended<Transaction>> {
        self.turns += 1;
        if self.turns.is_multiple_of(LOOK_EVERY) {
            self.look(rng)?;
        }
        let (tables, mut met) = (self.tables, 0);
        let (kind, ended) = if rng.random_range(0..STANDINGS_ONE_IN) == 0 {
            let ended = repeated(tables, &mut met, rng, |_| self.standings());
            self.standings += 1;
            (Transaction::Standings, ended.map(|()| (true, 0)))
        } else {
            let call = repeated(tables, &mut met, rng, |rng| self.vote(rng));
            (Transaction::Vote, call.map(|call| self.note(&call)))
        };
        self.conflicts += met;
        let (succeeded, payload) = ended?;
        Ok(Ended {
            kind,
            succeeded,
            payload,
        })
    }

    fn finish(self) -> Vec<(String, f64)> {
        self.voter.accept(&self.accepted);
        [
            ("vote_succeeded", self.accepted.iter().sum()),
            ("standings_succeeded", self.standings),
            ("conflicts", self.conflicts),
            ("invalid_contestants", self.invalid),
            ("over_limit", self.over_limit),
        ]
        .map(|(name, count)| (name.to_owned(), count as f64))
        .into()
    }
}
