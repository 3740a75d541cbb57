//! fjall with several tables, and each batch one of its optimistic transactions.
//!
//! Opened, tuned and laid out as `fjall.rs`. A transaction reads a snapshot, keeps what it read,
//! and fails at the commit if somebody has written there: serializable, so that the driver takes
//! no locks.

use super::{
    fjall::FjallTables,
    prefix::{TableKey, without_table},
};
use crate::fjall::{Fjall, KEYSPACE, cache_bytes, keyspace_options};
use fjall::{Conflict, Iter, OptimisticTxDatabase, OptimisticWriteTx, PersistMode, Readable as _};
use indexy_bench::contender::{Durability, Fault, Outcome, TableBatch, TableSetup, Tables};
use std::collections::BTreeMap;

/// An open database.
pub struct FjallTransactions {
    tables: FjallTables,
    database: OptimisticTxDatabase,
}

/// A transaction, or why none could begin.
pub struct FjallTransaction<'a> {
    engine: &'a Fjall,
    begun: fjall::Result<OptimisticWriteTx>,
}

impl FjallTransaction<'_> {
    fn begun(&self) -> Outcome<&OptimisticWriteTx> {
        self.begun.as_ref().map_err(|e| e.to_string().into())
    }

    fn range(&self, table: usize, from: &[u8], to: &[u8]) -> Outcome<Iter> {
        let (from, to) = (TableKey::new(table, from), TableKey::new(table, to));
        Ok(self.begun()?.range(&self.engine.keyspace, &*from..&*to))
    }
}

impl Tables for FjallTransactions {
    type Batch<'a> = FjallTransaction<'a>;

    fn open(setup: &TableSetup<'_>) -> Outcome<Self> {
        let setup = setup.setup;
        let database = OptimisticTxDatabase::builder(&setup.path)
            .cache_size(cache_bytes(setup))
            .manual_journal_persist(setup.durability == Durability::None)
            .open()?;
        let keyspace = database.keyspace(KEYSPACE, || keyspace_options(setup))?;
        let engine = Fjall::of(database.inner().clone(), keyspace.inner().clone(), setup);
        Ok(Self {
            tables: FjallTables { engine },
            database,
        })
    }

    #[inline]
    fn get<R>(&self, table: usize, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        self.tables.get(table, key, see)
    }

    fn scan(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        self.tables.scan(table, from, to, see)
    }

    fn last<R>(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>> {
        self.tables.last(table, from, to, see)
    }

    fn batch(&self) -> FjallTransaction<'_> {
        FjallTransaction {
            engine: &self.tables.engine,
            begun: self.database.write_tx(),
        }
    }

    fn isolates(&self) -> bool {
        true
    }

    fn is_conflict(&self, fault: &Fault) -> bool {
        fault.is::<Conflict>()
    }

    #[inline]
    fn get_in<R>(
        &self,
        batch: &FjallTransaction<'_>,
        table: usize,
        key: &[u8],
        see: impl FnOnce(&[u8]) -> R,
    ) -> Outcome<Option<R>> {
        let key = TableKey::new(table, key);
        let found = batch.begun()?.get(&self.tables.engine.keyspace, &*key)?;
        Ok(found.map(|value| see(&value)))
    }

    fn scan_in(
        &self,
        batch: &FjallTransaction<'_>,
        table: usize,
        from: &[u8],
        to: &[u8],
        mut see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        for entry in batch.range(table, from, to)? {
            let (key, value) = entry.into_inner()?;
            if !see(without_table(&key), &value) {
                break;
            }
        }
        Ok(())
    }

    fn last_in<R>(
        &self,
        batch: &FjallTransaction<'_>,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>> {
        let Some(entry) = batch.range(table, from, to)?.next_back() else {
            return Ok(None);
        };
        let (key, value) = entry.into_inner()?;
        Ok(Some(see(without_table(&key), &value)))
    }

    fn settle(&self) -> Outcome<()> {
        self.tables.settle()
    }

    fn memory_used(&self) -> Option<u64> {
        self.tables.memory_used()
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        self.tables.counters()
    }

    fn close(self) -> Outcome<()> {
        self.tables.close()
    }
}

impl TableBatch for FjallTransaction<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) {
        if let Ok(transaction) = &mut self.begun {
            let key = TableKey::new(table, key);
            transaction.insert(&self.engine.keyspace, &*key, value);
        }
    }

    fn remove(&mut self, table: usize, key: &[u8]) {
        if let Ok(transaction) = &mut self.begun {
            let key = TableKey::new(table, key);
            transaction.remove(&self.engine.keyspace, &*key);
        }
    }

    fn commit(self) -> Outcome<()> {
        let sync = self.engine.sync.then_some(PersistMode::SyncData);
        Ok(self.begun?.durability(sync).commit()??)
    }
}
