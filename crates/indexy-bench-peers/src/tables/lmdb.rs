//! LMDB with several tables: a named database each, a write transaction per batch.
//!
//! The environment is the one of the contender with one table. A read opens a transaction of its
//! own: with its reader slot kept in the thread that takes a copy of the roots and no lock, and a
//! longer one would not see what was committed since. Values are seen in the map.

use super::writes::Writes;
use crate::lmdb::environment;
use heed::{Database, Env, WithTls, types::Bytes};
use indexy_bench::contender::{Outcome, TableBatch, TableSetup, Tables};
use std::ops::Bound;

/// An open environment and its databases.
pub struct LmdbTables {
    env: Env<WithTls>,
    tables: Vec<Database<Bytes, Bytes>>,
}

/// Writes on their way.
pub struct LmdbBatch<'a> {
    tables: &'a LmdbTables,
    writes: Writes,
}

impl Tables for LmdbTables {
    type Batch<'a> = LmdbBatch<'a>;

    fn open(setup: &TableSetup<'_>) -> Outcome<Self> {
        let env = environment(setup.setup, setup.names.len() as u32)?;
        let mut transaction = env.write_txn()?;
        let tables = setup
            .names
            .iter()
            .map(|name| env.create_database(&mut transaction, Some(name)))
            .collect::<Result<_, _>>()?;
        transaction.commit()?;
        Ok(Self { env, tables })
    }

    #[inline]
    fn get<R>(&self, table: usize, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        let transaction = self.env.read_txn()?;
        Ok(self.tables[table].get(&transaction, key)?.map(see))
    }

    fn scan(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        mut see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        let transaction = self.env.read_txn()?;
        let bounds = (Bound::Included(from), Bound::Excluded(to));
        for entry in self.tables[table].range(&transaction, &bounds)? {
            let (key, value) = entry?;
            if !see(key, value) {
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
        let transaction = self.env.read_txn()?;
        let bounds = (Bound::Included(from), Bound::Excluded(to));
        let last = self.tables[table].rev_range(&transaction, &bounds)?.next();
        Ok(last.transpose()?.map(|(key, value)| see(key, value)))
    }

    fn batch(&self) -> LmdbBatch<'_> {
        LmdbBatch {
            tables: self,
            writes: Writes::default(),
        }
    }

    fn settle(&self) -> Outcome<()> {
        Ok(self.env.force_sync()?)
    }

    fn close(self) -> Outcome<()> {
        self.settle()?;
        self.env.prepare_for_closing().wait();
        Ok(())
    }
}

impl TableBatch for LmdbBatch<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) {
        self.writes.push(table, key, Some(value));
    }

    fn remove(&mut self, table: usize, key: &[u8]) {
        self.writes.push(table, key, None);
    }

    fn commit(mut self) -> Outcome<()> {
        if self.writes.is_empty() {
            return Ok(());
        }
        let mut transaction = self.tables.env.write_txn()?;
        for (table, writes) in self.writes.by_table() {
            let table = &self.tables.tables[table];
            for write in writes {
                match write.value {
                    Some(value) => table.put(&mut transaction, write.key, value)?,
                    None => {
                        table.delete(&mut transaction, write.key)?;
                    }
                }
            }
        }
        Ok(transaction.commit()?)
    }
}
