//! Reads and writes of one transaction.

use super::{
    table::TableId,
    trouble::{Done, Trouble},
};
use crate::{
    contender::{TableBatch, Tables},
    workload::Rng,
};
use std::time::{SystemTime, UNIX_EPOCH};

/// A batch under way, and the bytes that went into it.
pub(crate) struct Writes<B> {
    batch: B,
    rows: u64,
    payload: u64,
}

impl<B: TableBatch> Writes<B> {
    pub(crate) fn new(batch: B) -> Self {
        Self {
            batch,
            rows: 0,
            payload: 0,
        }
    }

    pub(crate) fn put(&mut self, table: impl TableId, key: &[u8], value: &[u8]) {
        self.rows += 1;
        self.payload += (key.len() + value.len()) as u64;
        self.batch.put(table.index(), key, value);
    }

    pub(crate) fn remove(&mut self, table: impl TableId, key: &[u8]) {
        self.payload += key.len() as u64;
        self.batch.remove(table.index(), key);
    }

    /// Commits and returns the bytes.
    pub(crate) fn commit(self) -> Done<u64> {
        Ok(self.commit_rows()?.1)
    }

    /// Commits and returns the rows that were put, and the bytes.
    pub(crate) fn commit_rows(self) -> Done<(u64, u64)> {
        self.batch.commit()?;
        Ok((self.rows, self.payload))
    }
}

/// What a transaction reads through: the tables, as its batch sees them.
pub(crate) struct Reads<'a, 'b, T: Tables> {
    tables: &'a T,
    batch: &'b T::Batch<'a>,
}

impl<'a, 'b, T: Tables> Reads<'a, 'b, T> {
    pub(crate) fn of(tables: &'a T, writes: &'b Writes<T::Batch<'a>>) -> Self {
        let batch = &writes.batch;
        Self { tables, batch }
    }

    /// Reads a row that must be there into `row`.
    pub(crate) fn fetch(&self, table: impl TableId, key: &[u8], row: &mut Vec<u8>) -> Done<()> {
        if self.fetch_if_there(table, key, row)? {
            Ok(())
        } else {
            Err(Trouble::missing(table, key))
        }
    }

    /// Reads a row into `row`; false if there is none.
    pub(crate) fn fetch_if_there(
        &self,
        table: impl TableId,
        key: &[u8],
        row: &mut Vec<u8>,
    ) -> Done<bool> {
        let copy = |bytes: &[u8]| {
            row.clear();
            row.extend_from_slice(bytes);
        };
        let (tables, batch) = (self.tables, self.batch);
        Ok(tables.get_in(batch, table.index(), key, copy)?.is_some())
    }

    pub(crate) fn scan(
        &self,
        table: impl TableId,
        from: &[u8],
        to: &[u8],
        see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Done<()> {
        let (tables, batch) = (self.tables, self.batch);
        Ok(tables.scan_in(batch, table.index(), from, to, see)?)
    }

    pub(crate) fn last<R>(
        &self,
        table: impl TableId,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Done<Option<R>> {
        let (tables, batch) = (self.tables, self.batch);
        Ok(tables.last_in(batch, table.index(), from, to, see)?)
    }
}

/// Calls `attempt` with the same draws until it meets no conflict; adds the conflicts to `met`.
pub(crate) fn repeated<T: Tables, R>(
    tables: &T,
    met: &mut u64,
    rng: &mut Rng,
    mut attempt: impl FnMut(&mut Rng) -> Done<R>,
) -> Done<R> {
    let start = rng.clone();
    loop {
        match attempt(rng) {
            Err(Trouble::Engine(fault)) if tables.is_conflict(&fault) => {
                *met += 1;
                *rng = start.clone();
                std::thread::yield_now();
            }
            done => return done,
        }
    }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| d.as_millis() as u64)
}
