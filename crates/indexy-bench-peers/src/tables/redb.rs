//! redb with several tables: a table each, a write transaction per batch.
//!
//! Cache and durability are those of the contender with one table. Opening a table in a read
//! transaction is a search in the tree of tables, so all readers share the tables opened since the
//! last commit: a read under the driver's locks needs what was committed before. A commit counts up
//! when it is done.

use super::writes::Writes;
use crate::redb::{durability, open_file};
use indexy_bench::contender::{Durability, Outcome, TableBatch, TableSetup, Tables};
use redb::{Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, TableDefinition};
use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    atomic::{AtomicU64, Ordering},
};

type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;
type Table = ReadOnlyTable<&'static [u8], &'static [u8]>;

/// An open file and its tables.
pub struct RedbTables {
    database: Database,
    durability: Durability,
    definitions: Vec<Definition>,
    /// Commits so far. Release in `write`, Acquire in `snapshot`.
    commits: AtomicU64,
    newest: Mutex<Option<Arc<Snapshot>>>,
}

/// A state of all tables, shared by those who read it.
struct Snapshot {
    /// It has at least so many commits.
    commits: u64,
    transaction: ReadTransaction,
    /// Each opened when it is first read.
    tables: Box<[OnceLock<Table>]>,
}

/// Writes on their way.
pub struct RedbBatch<'a> {
    tables: &'a RedbTables,
    writes: Writes,
}

impl RedbTables {
    fn write(&self, kind: Durability, writes: &mut Writes) -> Outcome<()> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(durability(kind))?;
        for (table, writes) in writes.by_table() {
            let mut table = transaction.open_table(self.definitions[table])?;
            for write in writes {
                match write.value {
                    Some(value) => table.insert(write.key, value)?,
                    None => table.remove(write.key)?,
                };
            }
        }
        transaction.commit()?;
        self.commits.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// A state with all commits that happened before the call.
    fn snapshot(&self) -> Outcome<Arc<Snapshot>> {
        let commits = self.commits.load(Ordering::Acquire);
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(snapshot) = newest.as_ref().filter(|s| s.commits >= commits) {
            return Ok(Arc::clone(snapshot));
        }
        // Pages that only the old one reads are free from here on.
        *newest = None;
        let tables = self.definitions.iter().map(|_| OnceLock::new());
        let snapshot = Arc::new(Snapshot {
            commits,
            transaction: self.database.begin_read()?,
            tables: tables.collect(),
        });
        *newest = Some(Arc::clone(&snapshot));
        Ok(snapshot)
    }

    fn with_table<R>(&self, table: usize, read: impl FnOnce(&Table) -> Outcome<R>) -> Outcome<R> {
        let snapshot = self.snapshot()?;
        let opened = &snapshot.tables[table];
        if let Some(table) = opened.get() {
            return read(table);
        }
        let new = snapshot.transaction.open_table(self.definitions[table])?;
        read(opened.get_or_init(|| new))
    }
}

impl Tables for RedbTables {
    type Batch<'a> = RedbBatch<'a>;

    fn open(setup: &TableSetup<'_>) -> Outcome<Self> {
        let definitions: Vec<Definition> = setup.names.iter().map(|n| Definition::new(n)).collect();
        let database = open_file(setup.setup)?;
        let transaction = database.begin_write()?;
        for definition in &definitions {
            transaction.open_table(*definition)?;
        }
        transaction.commit()?;
        Ok(Self {
            database,
            durability: setup.setup.durability,
            definitions,
            commits: AtomicU64::new(0),
            newest: Mutex::new(None),
        })
    }

    #[inline]
    fn get<R>(&self, table: usize, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        self.with_table(table, |table| {
            Ok(table.get(key)?.map(|value| see(value.value())))
        })
    }

    fn scan(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        mut see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        self.with_table(table, |table| {
            for entry in table.range(from..to)? {
                let (key, value) = entry?;
                if !see(key.value(), value.value()) {
                    break;
                }
            }
            Ok(())
        })
    }

    fn last<R>(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>> {
        self.with_table(table, |table| {
            let last = table.range(from..to)?.next_back().transpose()?;
            Ok(last.map(|(key, value)| see(key.value(), value.value())))
        })
    }

    fn batch(&self) -> RedbBatch<'_> {
        RedbBatch {
            tables: self,
            writes: Writes::default(),
        }
    }

    fn settle(&self) -> Outcome<()> {
        self.write(Durability::Sync, &mut Writes::default())
    }

    fn close(self) -> Outcome<()> {
        self.settle()
    }
}

impl TableBatch for RedbBatch<'_> {
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
        self.tables.write(self.tables.durability, &mut self.writes)
    }
}
