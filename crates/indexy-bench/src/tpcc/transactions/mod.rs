//! The five transactions (2.4 to 2.8), each in a file of its own.
//!
//! Each draws its input, takes its locks, reads, collects its writes in one batch and commits it.
//! Where the engine isolates, there are no locks, and what met a conflict begins again with the
//! same input. Buffers for rows are kept from one transaction to the next.

mod customers;
mod delivery;
mod new_order;
mod order_status;
mod payment;
mod stock_level;

use super::{
    config::{Config, Transaction},
    random::{Constants, Draw},
    schema::Table,
    state::State,
};
use crate::{
    application::{
        Done, Trouble,
        access::{Reads, Writes, now, repeated},
    },
    contender::Tables,
    workload::Rng,
};
use rand::Rng as _;

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Which it was.
    pub transaction: Transaction,
    /// False if it was rolled back: a New-Order of an item that does not exist.
    pub committed: bool,
    /// Bytes of keys and values written.
    pub payload: u64,
}

/// Runs transactions for one thread.
#[derive(Debug)]
pub struct Transactions<'a, T: Tables> {
    tables: &'a T,
    state: &'a State,
    draw: Draw,
    /// Sums of the shares of the mix, with the transaction that ends there.
    deck: [(Transaction, u32); 5],
    buffers: Buffers,
    /// How often a transaction began again.
    conflicts: u64,
}

/// Rows under way: one that is read, one that is written, and a list.
#[derive(Debug, Default)]
struct Buffers {
    read: Vec<u8>,
    other: Vec<u8>,
    written: Vec<u8>,
    list: Vec<u8>,
    numbers: Vec<u32>,
}

impl<'a, T: Tables> Transactions<'a, T> {
    /// For one thread; `seed` is that of the load.
    pub fn new(tables: &'a T, state: &'a State, config: &Config, seed: u64) -> Self {
        let mut sum = 0;
        let deck = config.mix.shares().map(|(transaction, share)| {
            sum += share;
            (transaction, sum)
        });
        Self {
            tables,
            state,
            draw: Draw {
                constants: Constants::new(seed),
                scale: config.scale,
            },
            deck,
            buffers: Buffers::default(),
            conflicts: 0,
        }
    }

    /// Runs the next transaction of the mix.
    pub fn next(&mut self, rng: &mut Rng) -> Done<Ended> {
        let (last, all) = self.deck[self.deck.len() - 1];
        let drawn = rng.random_range(0..all);
        let found = self.deck.iter().find(|(_, end)| drawn < *end);
        self.run(found.map_or(last, |(transaction, _)| *transaction), rng)
    }

    /// Runs one transaction of that kind.
    pub fn run(&mut self, transaction: Transaction, rng: &mut Rng) -> Done<Ended> {
        let payload = match transaction {
            Transaction::NewOrder => self.repeated(rng, Self::new_order)?,
            Transaction::Payment => Some(self.repeated(rng, Self::payment)?),
            Transaction::OrderStatus => {
                self.repeated(rng, Self::order_status)?;
                Some(0)
            }
            Transaction::Delivery => Some(self.delivery(rng)?),
            Transaction::StockLevel => {
                self.repeated(rng, Self::stock_level)?;
                Some(0)
            }
        };
        Ok(Ended {
            transaction,
            committed: payload.is_some(),
            payload: payload.unwrap_or(0),
        })
    }

    /// How often a transaction began again because of a conflict.
    pub fn conflicts(&self) -> u64 {
        self.conflicts
    }

    /// Calls `attempt` with the same draws until it meets no conflict.
    fn repeated<R>(
        &mut self,
        rng: &mut Rng,
        mut attempt: impl FnMut(&mut Self, &mut Rng) -> Done<R>,
    ) -> Done<R> {
        let (tables, mut met) = (self.tables, 0);
        let done = repeated(tables, &mut met, rng, |rng| attempt(self, rng));
        self.conflicts += met;
        done
    }

    /// `lock`, unless the engine isolates.
    fn locked<G>(&self, lock: impl FnOnce(&'a State) -> G) -> Option<G> {
        (!self.tables.isolates()).then(|| lock(self.state))
    }

    fn begin(&self) -> Writes<T::Batch<'a>> {
        Writes::new(self.tables.batch())
    }
}

/// [`expect`] of what the driver knows, if it does.
fn expect_known<V: PartialEq + std::fmt::Display>(
    table: Table,
    what: &str,
    found: V,
    known: Option<V>,
) -> Done<()> {
    known.map_or(Ok(()), |known| expect(table, what, found, known))
}

/// What a row holds against what was written last.
pub(super) fn expect<V: PartialEq + std::fmt::Display>(
    table: Table,
    what: &str,
    found: V,
    known: V,
) -> Done<()> {
    if found == known {
        return Ok(());
    }
    let table = table.name();
    Err(Trouble::Wrong(format!(
        "{table}: {what} is {found}, and {known} was committed last"
    )))
}
