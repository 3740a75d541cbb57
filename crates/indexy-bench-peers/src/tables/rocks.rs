//! RocksDB with several tables: one key space (`prefix.rs`), a `WriteBatch` per transaction.
//!
//! Opened and tuned as the contender with one table. Scans have both bounds, so that an iterator
//! touches no block of another range, and read keys and values where RocksDB has them. No prefix
//! extractor is set, so every seek is in total order and the Bloom filters are of whole keys. A
//! scan backwards is a seek to the upper bound.

use super::prefix::{TableKey, without_table};
use crate::rocks::Rocks;
use indexy_bench::contender::{Contender, Focus, Outcome, TableBatch, TableSetup, Tables};
use rocksdb::{DBRawIterator, ReadOptions, WriteBatch, WriteOptions};
use std::collections::BTreeMap;

/// An open database.
pub struct RocksTables {
    engine: Rocks,
    read: ReadOptions,
    write: WriteOptions,
}

/// Writes on their way.
pub struct RocksBatch<'a> {
    tables: &'a RocksTables,
    batch: WriteBatch,
}

impl RocksTables {
    fn bounded(&self, table: usize, from: &[u8], to: &[u8]) -> DBRawIterator<'_> {
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(&*TableKey::new(table, from));
        options.set_iterate_upper_bound(&*TableKey::new(table, to));
        self.engine.database().raw_iterator_opt(options)
    }
}

impl Tables for RocksTables {
    type Batch<'a> = RocksBatch<'a>;

    fn open(setup: &TableSetup<'_>) -> Outcome<Self> {
        let engine = Rocks::open(setup.setup)?;
        Ok(Self {
            read: ReadOptions::default(),
            write: engine.write_options(),
            engine,
        })
    }

    #[inline]
    fn get<R>(&self, table: usize, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        let key = TableKey::new(table, key);
        let found = self.engine.database().get_pinned_opt(&*key, &self.read)?;
        Ok(found.map(|value| see(&value)))
    }

    fn scan(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        mut see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        let mut entries = self.bounded(table, from, to);
        entries.seek_to_first();
        while let Some((key, value)) = entries.item() {
            if !see(without_table(key), value) {
                return Ok(());
            }
            entries.next();
        }
        Ok(entries.status()?)
    }

    fn last<R>(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>> {
        let mut entries = self.bounded(table, from, to);
        entries.seek_to_last();
        match entries.item() {
            Some((key, value)) => Ok(Some(see(without_table(key), value))),
            None => {
                entries.status()?;
                Ok(None)
            }
        }
    }

    fn batch(&self) -> RocksBatch<'_> {
        RocksBatch {
            tables: self,
            batch: WriteBatch::default(),
        }
    }

    fn focus(&self, focus: Focus) -> Outcome<()> {
        self.engine.focus(focus)
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

impl TableBatch for RocksBatch<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) {
        self.batch.put(&*TableKey::new(table, key), value);
    }

    fn remove(&mut self, table: usize, key: &[u8]) {
        self.batch.delete(&*TableKey::new(table, key));
    }

    fn commit(self) -> Outcome<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let database = self.tables.engine.database();
        Ok(database.write_opt(self.batch, &self.tables.write)?)
    }
}
