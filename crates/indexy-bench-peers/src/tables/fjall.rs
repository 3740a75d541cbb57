//! fjall with several tables: one keyspace (`prefix.rs`), a write batch per transaction.
//!
//! Opened and tuned as the contender with one table. A keyspace per table would also leave its
//! memory without a bound: fjall limits the memtable of a keyspace and not the sum of them.

use super::prefix::{TableKey, without_table};
use crate::fjall::Fjall;
use fjall::{OwnedWriteBatch, PersistMode};
use indexy_bench::contender::{Contender, Outcome, TableBatch, TableSetup, Tables};
use std::collections::BTreeMap;

/// An open database.
pub struct FjallTables {
    pub engine: Fjall,
}

/// Writes on their way.
pub struct FjallBatch<'a> {
    engine: &'a Fjall,
    batch: OwnedWriteBatch,
}

impl Tables for FjallTables {
    type Batch<'a> = FjallBatch<'a>;

    fn open(setup: &TableSetup<'_>) -> Outcome<Self> {
        Ok(Self {
            engine: Fjall::open(setup.setup)?,
        })
    }

    #[inline]
    fn get<R>(&self, table: usize, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        let key = TableKey::new(table, key);
        Ok(self.engine.keyspace.get(&*key)?.map(|value| see(&value)))
    }

    fn scan(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        mut see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        let (from, to) = (TableKey::new(table, from), TableKey::new(table, to));
        for entry in self.engine.keyspace.range(&*from..&*to) {
            let (key, value) = entry.into_inner()?;
            if !see(without_table(&key), &value) {
                break;
            }
        }
        Ok(())
    }

    fn last<R>(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>> {
        let (from, to) = (TableKey::new(table, from), TableKey::new(table, to));
        let Some(entry) = self.engine.keyspace.range(&*from..&*to).next_back() else {
            return Ok(None);
        };
        let (key, value) = entry.into_inner()?;
        Ok(Some(see(without_table(&key), &value)))
    }

    fn batch(&self) -> FjallBatch<'_> {
        FjallBatch {
            engine: &self.engine,
            batch: self.engine.database.batch(),
        }
    }

    fn settle(&self) -> Outcome<()> {
        self.engine.settle()
    }

    fn memory_used(&self) -> Option<u64> {
        self.engine.memory_used()
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        self.engine.counters()
    }

    fn close(self) -> Outcome<()> {
        self.engine.close()
    }
}

impl TableBatch for FjallBatch<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) {
        let key = TableKey::new(table, key);
        self.batch.insert(&self.engine.keyspace, &*key, value);
    }

    fn remove(&mut self, table: usize, key: &[u8]) {
        let key = TableKey::new(table, key);
        self.batch.remove(&self.engine.keyspace, &*key);
    }

    fn commit(self) -> Outcome<()> {
        let batch = if self.engine.sync {
            self.batch.durability(Some(PersistMode::SyncData))
        } else {
            self.batch
        };
        Ok(batch.commit()?)
    }
}
