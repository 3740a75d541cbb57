//! TPC-C as the harness runs it.

use super::{
    check::{check_district, check_warehouse},
    config::{Config, Transaction},
    load::Loader,
    scale::DISTRICTS,
    schema::{Table, names},
    state::State,
    transactions::Transactions,
};
use crate::{
    application::{self, Application, Client, Done, Trouble, access::now},
    contender::{Placement, Tables},
    workload::Rng,
};

/// Transactions of the first thread between two looks at a district, where the engine isolates.
const LIVE_CHECK: u64 = 4096;

/// A database of TPC-C, as its driver knows it.
#[derive(Debug)]
pub struct Tpcc {
    config: Config,
    seed: u64,
    state: State,
    loader: Loader,
}

impl Tpcc {
    /// One that is not loaded yet; `seed` decides its population but for the time in its rows.
    pub fn new(config: Config, seed: u64) -> Self {
        Self {
            state: State::fresh(config.scale),
            loader: Loader::new(config.scale, seed, now()),
            config,
            seed,
        }
    }

    /// The warehouse and the district of part `part` of the check.
    fn place(part: usize) -> (u16, u8) {
        let districts = usize::from(DISTRICTS);
        ((part / districts) as u16 + 1, (part % districts) as u8 + 1)
    }
}

impl Application for Tpcc {
    type Kind = Transaction;

    fn names(&self) -> Vec<&'static str> {
        names().to_vec()
    }

    fn placement(&self) -> Placement<'_> {
        Placement {
            subject: Table::OrderLine as usize,
            others: &self.config.others,
        }
    }

    fn units(&self) -> usize {
        self.loader.units()
    }

    fn load<T: Tables>(&self, tables: &T, unit: usize) -> Done<(u64, u64)> {
        self.loader.load(tables, unit)
    }

    fn client<'a, T: Tables>(
        &'a self,
        tables: &'a T,
        thread: u64,
    ) -> impl Client<Kind = Transaction> + 'a {
        Terminal {
            transactions: Transactions::new(tables, &self.state, &self.config, self.seed),
            looks: (thread == 0 && tables.isolates()).then_some((self, tables)),
            turns: 0,
        }
    }

    fn parts(&self) -> usize {
        usize::from(self.config.scale.warehouses) * usize::from(DISTRICTS)
    }

    fn check<T: Tables>(&self, tables: &T, part: usize) -> Done<u64> {
        let (w, d) = Self::place(part);
        if d == 1 {
            check_warehouse(tables, &self.state, w)?;
        }
        check_district(tables, &self.state, w, d)
    }
}

/// What one thread runs.
struct Terminal<'a, T: Tables> {
    transactions: Transactions<'a, T>,
    /// Looks at a district every now and then, beside transactions.
    looks: Option<(&'a Tpcc, &'a T)>,
    turns: u64,
}

impl<T: Tables> Client for Terminal<'_, T> {
    type Kind = Transaction;

    fn next(&mut self, rng: &mut Rng) -> Done<application::Ended<Transaction>> {
        self.turns += 1;
        if let Some((tpcc, tables)) = self.looks
            && self.turns.is_multiple_of(LIVE_CHECK)
        {
            check_live(tpcc, tables, self.turns / LIVE_CHECK)?;
        }
        let ended = self.transactions.next(rng)?;
        Ok(application::Ended {
            kind: ended.transaction,
            succeeded: ended.committed,
            payload: ended.payload,
        })
    }

    fn finish(self) -> Vec<(String, f64)> {
        let conflicts = self.transactions.conflicts() as f64;
        vec![("conflicts".to_owned(), conflicts)]
    }
}

/// Holds the conditions against one district and its warehouse, beside transactions.
fn check_live<T: Tables>(tpcc: &Tpcc, tables: &T, turn: u64) -> Done<()> {
    let (w, d) = Tpcc::place(turn as usize % tpcc.parts());
    let state = &tpcc.state;
    let checked =
        check_warehouse(tables, state, w).and_then(|()| check_district(tables, state, w, d));
    match checked {
        // It was given up, and is looked at again another time.
        Err(Trouble::Engine(fault)) if tables.is_conflict(&fault) => Ok(()),
        checked => checked.map(drop),
    }
}
