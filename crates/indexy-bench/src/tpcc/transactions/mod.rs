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
    trouble::{Done, Trouble},
};
use crate::{
    contender::{TableBatch, Tables},
    workload::Rng,
};
use rand::Rng as _;
use std::time::{SystemTime, UNIX_EPOCH};

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

/// A batch under way, and the bytes that went into it.
struct Writes<B> {
    batch: B,
    payload: u64,
}

impl<B: TableBatch> Writes<B> {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) {
        self.payload += (key.len() + value.len()) as u64;
        self.batch.put(table as usize, key, value);
    }

    fn remove(&mut self, table: Table, key: &[u8]) {
        self.payload += key.len() as u64;
        self.batch.remove(table as usize, key);
    }

    /// Commits and returns the bytes.
    fn commit(self) -> Done<u64> {
        self.batch.commit()?;
        Ok(self.payload)
    }
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
        let start = rng.clone();
        loop {
            match attempt(self, rng) {
                Err(Trouble::Engine(fault)) if self.tables.is_conflict(&fault) => {
                    self.conflicts += 1;
                    *rng = start.clone();
                    std::thread::yield_now();
                }
                done => return done,
            }
        }
    }

    /// `lock`, unless the engine isolates.
    fn locked<G>(&self, lock: impl FnOnce(&'a State) -> G) -> Option<G> {
        (!self.tables.isolates()).then(|| lock(self.state))
    }

    fn begin(&self) -> Writes<T::Batch<'a>> {
        Writes {
            batch: self.tables.batch(),
            payload: 0,
        }
    }
}

/// What a transaction reads through: the tables, as its batch sees them.
struct Reads<'a, 'b, T: Tables> {
    tables: &'a T,
    batch: &'b T::Batch<'a>,
}

impl<'a, 'b, T: Tables> Reads<'a, 'b, T> {
    fn of(tables: &'a T, writes: &'b Writes<T::Batch<'a>>) -> Self {
        let batch = &writes.batch;
        Self { tables, batch }
    }

    /// Reads a row that must be there into `row`.
    fn fetch(&self, table: Table, key: &[u8], row: &mut Vec<u8>) -> Done<()> {
        if self.fetch_if_there(table, key, row)? {
            Ok(())
        } else {
            Err(Trouble::missing(table, key))
        }
    }

    /// Reads a row into `row`; false if there is none.
    fn fetch_if_there(&self, table: Table, key: &[u8], row: &mut Vec<u8>) -> Done<bool> {
        let copy = |bytes: &[u8]| {
            row.clear();
            row.extend_from_slice(bytes);
        };
        let (tables, batch) = (self.tables, self.batch);
        Ok(tables.get_in(batch, table as usize, key, copy)?.is_some())
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Done<()> {
        let (tables, batch) = (self.tables, self.batch);
        Ok(tables.scan_in(batch, table as usize, from, to, see)?)
    }

    fn last<R>(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Done<Option<R>> {
        let (tables, batch) = (self.tables, self.batch);
        Ok(tables.last_in(batch, table as usize, from, to, see)?)
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

/// Milliseconds since 1970.
fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_millis() as u64)
}
