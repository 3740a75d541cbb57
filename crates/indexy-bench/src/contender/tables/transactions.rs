//! Tables as named trees of IndeXY, and each batch a serializable transaction: the driver's locks
//! are not needed.

use super::{
    contract::{TableBatch, TableSetup, Tables},
    indexy::IndexyTables,
};
use crate::contender::contract::{Fault, Outcome};
use indexy::{Error, Transaction};
use std::collections::BTreeMap;

/// An open database and its trees.
#[derive(Debug)]
pub struct IndexyTransactions(IndexyTables);

/// A transaction, or why none could begin.
pub struct TreeTransaction<'a> {
    tables: &'a IndexyTables,
    begun: indexy::Result<Transaction>,
    /// The first write that failed.
    failed: Option<Error>,
}

impl TreeTransaction<'_> {
    fn begun(&self) -> Outcome<&Transaction> {
        self.begun.as_ref().map_err(|error| error.clone().into())
    }

    fn write(&mut self, write: impl FnOnce(&mut Transaction) -> indexy::Result<()>) {
        if let Ok(transaction) = &mut self.begun
            && let Err(error) = write(transaction)
        {
            self.failed.get_or_insert(error);
        }
    }
}

impl Tables for IndexyTransactions {
    type Batch<'a> = TreeTransaction<'a>;

    fn open(open: &TableSetup<'_>) -> Outcome<Self> {
        IndexyTables::open(open).map(Self)
    }

    fn get<R>(&self, table: usize, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        self.0.get(table, key, see)
    }

    fn scan(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        self.0.scan(table, from, to, see)
    }

    fn last<R>(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>> {
        self.0.last(table, from, to, see)
    }

    fn batch(&self) -> TreeTransaction<'_> {
        TreeTransaction {
            tables: &self.0,
            begun: self.0.database().begin(),
            failed: None,
        }
    }

    fn isolates(&self) -> bool {
        true
    }

    fn is_conflict(&self, fault: &Fault) -> bool {
        fault.downcast_ref().is_some_and(Error::is_retryable)
    }

    #[inline]
    fn get_in<R>(
        &self,
        batch: &TreeTransaction<'_>,
        table: usize,
        key: &[u8],
        see: impl FnOnce(&[u8]) -> R,
    ) -> Outcome<Option<R>> {
        let value = batch.begun()?.get(self.0.tree(table), key)?;
        Ok(value.map(|value| see(&value)))
    }

    fn scan_in(
        &self,
        batch: &TreeTransaction<'_>,
        table: usize,
        from: &[u8],
        to: &[u8],
        mut see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        for entry in batch.begun()?.range(self.0.tree(table), from..to) {
            let (key, value) = entry?;
            if !see(&key, &value) {
                break;
            }
        }
        Ok(())
    }

    fn last_in<R>(
        &self,
        batch: &TreeTransaction<'_>,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>> {
        let mut range = batch.begun()?.range(self.0.tree(table), from..to);
        let last = range.next_back().transpose()?;
        Ok(last.map(|(key, value)| see(&key, &value)))
    }

    fn hurry(&self, hurry: bool) {
        self.0.hurry(hurry);
    }

    fn settle(&self) -> Outcome<()> {
        self.0.settle()
    }

    fn memory_used(&self) -> Option<u64> {
        self.0.memory_used()
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        self.0.counters()
    }

    fn close(self) -> Outcome<()> {
        self.0.close()
    }
}

impl TableBatch for TreeTransaction<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) {
        let tables = self.tables;
        self.write(|transaction| transaction.insert(tables.tree(table), key, value));
    }

    fn remove(&mut self, table: usize, key: &[u8]) {
        let tables = self.tables;
        self.write(|transaction| transaction.remove(tables.tree(table), key));
    }

    fn commit(self) -> Outcome<()> {
        match self.failed {
            Some(failed) => Err(failed.into()),
            None => Ok(self.begun?.commit()?),
        }
    }
}
