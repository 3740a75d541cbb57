//! What the harness asks of an engine with several tables.

use crate::contender::contract::{Fault, Focus, Outcome, Setup};
use std::collections::BTreeMap;

/// How to open an engine with several tables.
#[derive(Debug, Clone, Copy)]
pub struct TableSetup<'a> {
    /// Path, budget, durability, threads and variant.
    pub setup: &'a Setup,
    /// Names of the tables; a table is called by its index here.
    pub names: &'a [&'static str],
}

/// An open engine with several tables.
pub trait Tables: Send + Sync + Sized + 'static {
    /// Writes that happen as one.
    type Batch<'a>: TableBatch
    where
        Self: 'a;

    /// Opens what is in `setup.path`, or creates it.
    fn open(setup: &TableSetup<'_>) -> Outcome<Self>;

    /// Shows the value of `key` to `see`.
    fn get<R>(&self, table: usize, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>>;

    /// Shows the entries of `[from, to)` in order, until `see` returns false.
    fn scan(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()>;

    /// Shows the last entry of `[from, to)`.
    fn last<R>(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>>;

    /// Begins a batch.
    fn batch(&self) -> Self::Batch<'_>;

    /// Whether a batch is a transaction that is isolated from others: then the driver takes no
    /// locks, reads through the batch, and repeats what met a conflict.
    fn isolates(&self) -> bool {
        false
    }

    /// Whether `fault` says that a transaction may succeed when it is repeated.
    fn is_conflict(&self, _fault: &Fault) -> bool {
        false
    }

    /// [`Tables::get`] as `batch` sees it.
    fn get_in<R>(
        &self,
        _batch: &Self::Batch<'_>,
        table: usize,
        key: &[u8],
        see: impl FnOnce(&[u8]) -> R,
    ) -> Outcome<Option<R>> {
        self.get(table, key, see)
    }

    /// [`Tables::scan`] as `batch` sees it.
    fn scan_in(
        &self,
        _batch: &Self::Batch<'_>,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        self.scan(table, from, to, see)
    }

    /// [`Tables::last`] as `batch` sees it.
    fn last_in<R>(
        &self,
        _batch: &Self::Batch<'_>,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>> {
        self.last(table, from, to, see)
    }

    /// Tells what the next phase mostly does.
    fn focus(&self, _focus: Focus) -> Outcome<()> {
        Ok(())
    }

    /// Whether the device under it takes no time, if it is a modelled one: for what is not
    /// measured.
    fn hurry(&self, _hurry: bool) {}

    /// Writes out what is buffered and waits until background work is done.
    fn settle(&self) -> Outcome<()>;

    /// Bytes that the engine itself says it holds, if it does.
    fn memory_used(&self) -> Option<u64> {
        None
    }

    /// Counters of the engine that explain its numbers, by name.
    fn counters(&self) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    /// Closes it properly.
    fn close(self) -> Outcome<()>;
}

/// Writes that happen as one. Dropped without a commit, nothing happened.
pub trait TableBatch {
    /// Puts `value` at `key` of `table`, new or not.
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]);

    /// Removes `key` of `table` if it is there.
    fn remove(&mut self, table: usize, key: &[u8]);

    /// Does it.
    fn commit(self) -> Outcome<()>;
}
