//! A read-modify-write, and a read.

use super::state::{Counters, PARTS, Table, count, write};
use crate::{
    application::{
        Client, Done, Ended, Trouble,
        access::{Reads, Writes, repeated},
        random::chance,
    },
    contender::Tables,
    workload::{Chooser, Rng},
};

/// A kind of transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Transaction {
    /// Raises the counts of some rows.
    Update,
    /// Reads a row.
    Read,
}

impl Transaction {
    /// All of them, by their numbers.
    pub const ALL: [Self; 2] = [Self::Update, Self::Read];

    /// As reports spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Update => "counters_update",
            Self::Read => "counters_read",
        }
    }
}

/// Runs transactions for one thread.
pub(super) struct Transactions<'a, T: Tables> {
    tables: &'a T,
    counters: &'a Counters,
    draws: Chooser,
    keys: Vec<u64>,
    row: Vec<u8>,
    written: Vec<u8>,
    /// By how much it has raised the counts, by part.
    raised: [u64; PARTS],
    updates: u64,
    reads: u64,
    conflicts: u64,
}

impl<'a, T: Tables> Transactions<'a, T> {
    pub(super) fn new(tables: &'a T, counters: &'a Counters) -> Self {
        Self {
            tables,
            counters,
            draws: counters.config.draws().chooser(),
            keys: Vec::new(),
            row: Vec::new(),
            written: Vec::new(),
            raised: [0; PARTS],
            updates: 0,
            reads: 0,
            conflicts: 0,
        }
    }

    /// Draws the rows of an update, all different.
    fn draw(&mut self, rng: &mut Rng) {
        self.keys.clear();
        while self.keys.len() < usize::from(self.counters.config.at_once) {
            let key = self.draws.next(rng);
            if !self.keys.contains(&key) {
                self.keys.push(key);
            }
        }
    }

    /// Raises the counts of the rows that were drawn; returns the bytes written.
    fn update(&mut self) -> Done<u64> {
        let locks = !self.tables.isolates();
        let _stripes = locks.then(|| self.counters.lock(&self.keys));
        let mut writes = Writes::new(self.tables.batch());
        for key in &self.keys {
            let key = key.to_be_bytes();
            Reads::of(self.tables, &writes).fetch(Table, &key, &mut self.row)?;
            let count = count(&self.row).ok_or_else(|| Trouble::garbled(Table))?;
            write(
                &mut self.written,
                count + 1,
                self.counters.config.value_bytes,
            );
            writes.put(Table, &key, &self.written);
        }
        writes.commit()
    }

    fn read(&mut self, key: u64) -> Done<()> {
        let writes = Writes::new(self.tables.batch());
        let reads = Reads::of(self.tables, &writes);
        reads.fetch(Table, &key.to_be_bytes(), &mut self.row)?;
        count(&self.row).map_or_else(|| Err(Trouble::garbled(Table)), |_| Ok(()))
    }
}

impl<T: Tables> Client for Transactions<'_, T> {
    type Kind = Transaction;

    fn next(&mut self, rng: &mut Rng) -> Done<Ended<Transaction>> {
        let (tables, mut met) = (self.tables, 0);
        let (kind, payload) = if chance(rng, self.counters.config.reads.into()) {
            let key = self.draws.next(rng);
            repeated(tables, &mut met, rng, |_| self.read(key))?;
            self.reads += 1;
            (Transaction::Read, 0)
        } else {
            self.draw(rng);
            let payload = repeated(tables, &mut met, rng, |_| self.update())?;
            for key in &self.keys {
                self.raised[self.counters.part(*key)] += 1;
            }
            self.updates += 1;
            (Transaction::Update, payload)
        };
        self.conflicts += met;
        Ok(Ended {
            kind,
            succeeded: true,
            payload,
        })
    }

    fn finish(self) -> Vec<(String, f64)> {
        self.counters.raise(&self.raised);
        [
            ("counters_update_succeeded", self.updates),
            ("counters_read_succeeded", self.reads),
            ("conflicts", self.conflicts),
        ]
        .map(|(name, count)| (name.to_owned(), count as f64))
        .into()
    }
}
