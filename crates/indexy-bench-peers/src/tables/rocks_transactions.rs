//! RocksDB with several tables, and each batch one of its optimistic transactions.
//!
//! Opened, tuned and laid out as `rocks.rs`. A transaction reads a snapshot, and fails at the
//! commit if somebody has written since then what it writes: snapshot isolation, under which TPC-C
//! is serializable, as are read-modify-writes of what is read. What was only read is not checked.

use super::prefix::{TableKey, without_table};
use crate::rocks::Tuned;
use indexy_bench::contender::{Fault, Focus, Outcome, TableBatch, TableSetup, Tables};
use rocksdb::{
    ColumnFamilyDescriptor, DBAccess, DBRawIteratorWithThreadMode, ErrorKind, FlushOptions,
    OptimisticTransactionDB, OptimisticTransactionOptions, ReadOptions, Transaction,
    WaitForCompactOptions,
};

/// An open database.
pub struct RocksTransactions {
    database: OptimisticTransactionDB,
    tuned: Tuned,
}

/// A transaction.
pub struct RocksTransaction<'a> {
    transaction: Transaction<'a, OptimisticTransactionDB>,
    /// The first write that failed.
    failed: Option<rocksdb::Error>,
}

impl RocksTransaction<'_> {
    /// Options of a read that sees the transaction's snapshot, and its own writes.
    fn read(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        // The snapshot is the transaction's own; what is dropped here is a reference.
        options.set_snapshot(&self.transaction.snapshot());
        options
    }

    fn written(&mut self, result: Result<(), rocksdb::Error>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }
}

fn bounded(mut options: ReadOptions, table: usize, from: &[u8], to: &[u8]) -> ReadOptions {
    options.set_iterate_lower_bound(&*TableKey::new(table, from));
    options.set_iterate_upper_bound(&*TableKey::new(table, to));
    options
}

fn show<D: DBAccess>(
    mut entries: DBRawIteratorWithThreadMode<'_, D>,
    mut see: impl FnMut(&[u8], &[u8]) -> bool,
) -> Outcome<()> {
    entries.seek_to_first();
    while let Some((key, value)) = entries.item() {
        if !see(without_table(key), value) {
            return Ok(());
        }
        entries.next();
    }
    Ok(entries.status()?)
}

fn show_last<D: DBAccess, R>(
    mut entries: DBRawIteratorWithThreadMode<'_, D>,
    see: impl FnOnce(&[u8], &[u8]) -> R,
) -> Outcome<Option<R>> {
    entries.seek_to_last();
    match entries.item() {
        Some((key, value)) => Ok(Some(see(without_table(key), value))),
        None => {
            entries.status()?;
            Ok(None)
        }
    }
}

impl Tables for RocksTransactions {
    type Batch<'a> = RocksTransaction<'a>;

    fn open(setup: &TableSetup<'_>) -> Outcome<Self> {
        let (tuned, options) = Tuned::new(setup.setup);
        let name = rocksdb::DEFAULT_COLUMN_FAMILY_NAME;
        let family = ColumnFamilyDescriptor::new(name, options.clone());
        let path = &setup.setup.path;
        let database = OptimisticTransactionDB::open_cf_descriptors(&options, path, [family])?;
        Ok(Self { database, tuned })
    }

    #[inline]
    fn get<R>(&self, table: usize, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        let found = self.database.get_pinned(&*TableKey::new(table, key))?;
        Ok(found.map(|value| see(&value)))
    }

    fn scan(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        let options = bounded(ReadOptions::default(), table, from, to);
        show(self.database.raw_iterator_opt(options), see)
    }

    fn last<R>(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>> {
        let options = bounded(ReadOptions::default(), table, from, to);
        show_last(self.database.raw_iterator_opt(options), see)
    }

    fn batch(&self) -> RocksTransaction<'_> {
        let mut options = OptimisticTransactionOptions::default();
        options.set_snapshot(true);
        let write = self.tuned.write_options();
        RocksTransaction {
            transaction: self.database.transaction_opt(&write, &options),
            failed: None,
        }
    }

    fn isolates(&self) -> bool {
        true
    }

    fn is_conflict(&self, fault: &Fault) -> bool {
        fault
            .downcast_ref::<rocksdb::Error>()
            .is_some_and(|e| matches!(e.kind(), ErrorKind::Busy | ErrorKind::TryAgain))
    }

    #[inline]
    fn get_in<R>(
        &self,
        batch: &RocksTransaction<'_>,
        table: usize,
        key: &[u8],
        see: impl FnOnce(&[u8]) -> R,
    ) -> Outcome<Option<R>> {
        let key = TableKey::new(table, key);
        let found = batch.transaction.get_pinned_opt(&*key, &batch.read())?;
        Ok(found.map(|value| see(&value)))
    }

    fn scan_in(
        &self,
        batch: &RocksTransaction<'_>,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        let options = bounded(batch.read(), table, from, to);
        show(batch.transaction.raw_iterator_opt(options), see)
    }

    fn last_in<R>(
        &self,
        batch: &RocksTransaction<'_>,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>> {
        let options = bounded(batch.read(), table, from, to);
        show_last(batch.transaction.raw_iterator_opt(options), see)
    }

    fn focus(&self, focus: Focus) -> Outcome<()> {
        let bytes = self.tuned.set_focus(focus).to_string();
        self.database
            .set_options(&[("write_buffer_size", &bytes)])?;
        if focus == Focus::Reads {
            self.database.flush()?;
        }
        Ok(())
    }

    fn settle(&self) -> Outcome<()> {
        let mut flush = FlushOptions::default();
        flush.set_wait(true);
        self.database.flush_opt(&flush)?;
        let options = WaitForCompactOptions::default();
        Ok(self.database.wait_for_compact(&options)?)
    }

    fn memory_used(&self) -> Option<u64> {
        let of = |name: &str| self.database.property_int_value(name).ok().flatten();
        let memtables = of("rocksdb.cur-size-all-mem-tables").unwrap_or(0);
        let readers = of("rocksdb.estimate-table-readers-mem").unwrap_or(0);
        Some(memtables + readers + self.tuned.cached())
    }

    fn close(self) -> Outcome<()> {
        self.database.flush()?;
        self.database.cancel_all_background_work(true);
        Ok(())
    }
}

impl TableBatch for RocksTransaction<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) {
        let result = self.transaction.put(&*TableKey::new(table, key), value);
        self.written(result);
    }

    fn remove(&mut self, table: usize, key: &[u8]) {
        let result = self.transaction.delete(&*TableKey::new(table, key));
        self.written(result);
    }

    fn commit(self) -> Outcome<()> {
        match self.failed {
            Some(error) => Err(error.into()),
            None => Ok(self.transaction.commit()?),
        }
    }
}
