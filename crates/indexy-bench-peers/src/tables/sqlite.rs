//! SQLite with several tables: a table each, and each batch a transaction of SQLite's own.
//!
//! SQLite has one writer, and what a connection has in its page cache is worth nothing once another
//! connection has committed. So all threads share one connection, which has the whole cache, and
//! take turns: a batch is `BEGIN IMMEDIATE` to `COMMIT`, from its first read or write on, alone.
//!
//! Threads: the lock of the connection is held by a batch that has begun, and for a read outside of
//! a batch; the same thread may take it again. Who holds it waits for nothing but the file.

use crate::sqlite::{Table, connect, run, settle};
use indexy_bench::contender::{Fault, Outcome, TableBatch, TableSetup, Tables};
use parking_lot::{ReentrantMutex, ReentrantMutexGuard};
use rusqlite::Connection;
use std::cell::OnceCell;

/// An open file and its tables.
pub struct SqliteTables {
    connection: ReentrantMutex<Connection>,
    tables: Vec<Table>,
}

/// A transaction, from the first use on.
pub struct SqliteBatch<'a> {
    tables: &'a SqliteTables,
    begun: OnceCell<Outcome<Begun<'a>>>,
    /// The first write that failed.
    failed: Option<Fault>,
}

/// Rolled back when dropped, unless it was committed.
struct Begun<'a> {
    connection: ReentrantMutexGuard<'a, Connection>,
    committed: bool,
}

impl<'a> Begun<'a> {
    fn new(connection: ReentrantMutexGuard<'a, Connection>) -> Outcome<Self> {
        run(&connection, "BEGIN IMMEDIATE")?;
        Ok(Self {
            connection,
            committed: false,
        })
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if !self.committed {
            // Fails only where SQLite has rolled back by itself.
            let _ = run(&self.connection, "ROLLBACK");
        }
    }
}

impl SqliteBatch<'_> {
    fn connection(&self) -> Outcome<&Connection> {
        let begin = || Begun::new(self.tables.connection.lock());
        match self.begun.get_or_init(begin) {
            Ok(begun) => Ok(&begun.connection),
            Err(error) => Err(error.to_string().into()),
        }
    }

    fn write(&mut self, table: usize, key: &[u8], value: Option<&[u8]>) {
        let table = &self.tables.tables[table];
        let written = self
            .connection()
            .and_then(|connection| table.write(connection, key, value));
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }
}

impl Tables for SqliteTables {
    type Batch<'a> = SqliteBatch<'a>;

    fn open(setup: &TableSetup<'_>) -> Outcome<Self> {
        let connection = connect(setup.setup, 1)?;
        let tables: Vec<Table> = setup.names.iter().map(|name| Table::named(name)).collect();
        for table in &tables {
            table.create(&connection)?;
        }
        Ok(Self {
            connection: ReentrantMutex::new(connection),
            tables,
        })
    }

    fn get<R>(&self, table: usize, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        self.tables[table].get(&self.connection.lock(), key, see)
    }

    fn scan(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        self.tables[table].scan(&self.connection.lock(), from, Some(to), see)
    }

    fn last<R>(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>> {
        self.tables[table].last(&self.connection.lock(), from, to, see)
    }

    fn batch(&self) -> SqliteBatch<'_> {
        SqliteBatch {
            tables: self,
            begun: OnceCell::new(),
            failed: None,
        }
    }

    fn isolates(&self) -> bool {
        true
    }

    fn get_in<R>(
        &self,
        batch: &SqliteBatch<'_>,
        table: usize,
        key: &[u8],
        see: impl FnOnce(&[u8]) -> R,
    ) -> Outcome<Option<R>> {
        self.tables[table].get(batch.connection()?, key, see)
    }

    fn scan_in(
        &self,
        batch: &SqliteBatch<'_>,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        self.tables[table].scan(batch.connection()?, from, Some(to), see)
    }

    fn last_in<R>(
        &self,
        batch: &SqliteBatch<'_>,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>> {
        self.tables[table].last(batch.connection()?, from, to, see)
    }

    fn settle(&self) -> Outcome<()> {
        settle(&self.connection.lock())
    }

    fn close(self) -> Outcome<()> {
        self.settle()
    }
}

impl TableBatch for SqliteBatch<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) {
        self.write(table, key, Some(value));
    }

    fn remove(&mut self, table: usize, key: &[u8]) {
        self.write(table, key, None);
    }

    fn commit(self) -> Outcome<()> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let Some(begun) = self.begun.into_inner() else {
            return Ok(());
        };
        let mut begun = begun?;
        run(&begun.connection, "COMMIT")?;
        begun.committed = true;
        Ok(())
    }
}
