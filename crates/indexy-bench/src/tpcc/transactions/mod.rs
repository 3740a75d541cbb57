//! The five transactions (2.4 to 2.8), each in a file of its own.
//!
//! Each draws its input, takes its locks, reads, collects its writes in one batch and commits it.
//! Buffers for rows are kept from one transaction to the next.

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
            Transaction::NewOrder => self.new_order(rng)?,
            Transaction::Payment => Some(self.payment(rng)?),
            Transaction::OrderStatus => {
                self.order_status(rng)?;
                Some(0)
            }
            Transaction::Delivery => Some(self.delivery(rng)?),
            Transaction::StockLevel => {
                self.stock_level(rng)?;
                Some(0)
            }
        };
        Ok(Ended {
            transaction,
            committed: payload.is_some(),
            payload: payload.unwrap_or(0),
        })
    }

    fn begin(&self) -> Writes<T::Batch<'a>> {
        Writes {
            batch: self.tables.batch(),
            payload: 0,
        }
    }
}

/// Reads a row that must be there into `row`.
fn fetch<T: Tables>(tables: &T, table: Table, key: &[u8], row: &mut Vec<u8>) -> Done<()> {
    if fetch_if_there(tables, table, key, row)? {
        Ok(())
    } else {
        Err(Trouble::missing(table, key))
    }
}

/// Reads a row into `row`; false if there is none.
fn fetch_if_there<T: Tables>(
    tables: &T,
    table: Table,
    key: &[u8],
    row: &mut Vec<u8>,
) -> Done<bool> {
    let copy = |bytes: &[u8]| {
        row.clear();
        row.extend_from_slice(bytes);
    };
    Ok(tables.get(table as usize, key, copy)?.is_some())
}

/// What a row holds against what the driver knows.
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
