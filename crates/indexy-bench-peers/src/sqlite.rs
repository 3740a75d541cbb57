//! SQLite, through rusqlite: a B+ tree in C behind SQL, with its log of pages (WAL).
//!
//! Tuning: tables are `WITHOUT ROWID`, so that an entry is one search; statements are prepared
//! once; seven eighths of the budget are page caches, of which each connection has its own. A
//! session has a connection. Writes are batched as `batch.rs` says. Without durability nothing is
//! synced.

use crate::batch::{Pending, SharedFocus};
use indexy_bench::contender::{
    About, Contender, Durability, End, Focus, KeyShape, Outcome, PageCache, Session, Setup, Storage,
};
use indexy_bench::registry::Registry;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _};
use std::time::Duration;

const FILE: &str = "data.sqlite";
/// How long a writer waits for another one.
const PATIENCE: Duration = Duration::from_secs(60);
/// Statements that a connection keeps prepared: a handful for each of a dozen tables.
const STATEMENTS: usize = 128;

pub fn register(registry: &mut Registry) {
    registry.add::<Sqlite>(About {
        name: "sqlite",
        summary: "SQLite: B+ tree behind SQL, WAL, 7/8 cache, loads in sorted batches of 4096",
        storage: Storage::Disk,
        page_cache: PageCache::Used,
        keys: KeyShape::Bytes,
        max_threads: usize::MAX,
        scans: true,
        reopens: true,
        pages: false,
        durabilities: &[Durability::None, Durability::Sync],
        variant: "",
    });
}

/// A connection to the file of `setup`, one of so many.
pub fn connect(setup: &Setup, connections: usize) -> Outcome<Connection> {
    let connection = Connection::open(setup.path.join(FILE))?;
    let cache_kib = setup.budget / 8 * 7 / connections.max(1) as u64 / 1024;
    let synchronous = match setup.durability {
        Durability::Sync => "FULL",
        Durability::None | Durability::Buffered => "OFF",
    };
    connection.busy_timeout(PATIENCE)?;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous};
         PRAGMA cache_size = -{cache_kib}; PRAGMA temp_store = MEMORY;"
    ))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// A table of one connection, by the name that it has in SQL.
#[derive(Debug, Clone)]
pub struct Table {
    create: String,
    get: String,
    put: String,
    remove: String,
    from: String,
    range: String,
    last: String,
    first_key: String,
    last_key: String,
}

impl Table {
    pub fn named(name: &str) -> Self {
        Self {
            create: format!(
                "CREATE TABLE IF NOT EXISTS \"{name}\" (k BLOB NOT NULL PRIMARY KEY, v BLOB NOT \
                 NULL) WITHOUT ROWID"
            ),
            get: format!("SELECT v FROM \"{name}\" WHERE k = ?1"),
            put: format!("REPLACE INTO \"{name}\" VALUES (?1, ?2)"),
            remove: format!("DELETE FROM \"{name}\" WHERE k = ?1"),
            from: format!("SELECT k, v FROM \"{name}\" WHERE k >= ?1 ORDER BY k"),
            range: format!("SELECT k, v FROM \"{name}\" WHERE k >= ?1 AND k < ?2 ORDER BY k"),
            last: format!(
                "SELECT k, v FROM \"{name}\" WHERE k >= ?1 AND k < ?2 ORDER BY k DESC LIMIT 1"
            ),
            first_key: format!("SELECT k FROM \"{name}\" ORDER BY k LIMIT 1"),
            last_key: format!("SELECT k FROM \"{name}\" ORDER BY k DESC LIMIT 1"),
        }
    }

    pub fn create(&self, on: &Connection) -> Outcome<()> {
        Ok(on.execute_batch(&self.create)?)
    }

    #[inline]
    pub fn get<R>(
        &self,
        on: &Connection,
        key: &[u8],
        see: impl FnOnce(&[u8]) -> R,
    ) -> Outcome<Option<R>> {
        let mut statement = on.prepare_cached(&self.get)?;
        let mut rows = statement.query([key])?;
        Ok(match rows.next()? {
            Some(row) => Some(see(row.get_ref(0)?.as_blob()?)),
            None => None,
        })
    }

    /// Writes `value`, or removes the key if there is none.
    pub fn write(&self, on: &Connection, key: &[u8], value: Option<&[u8]>) -> Outcome<()> {
        match value {
            Some(value) => on.prepare_cached(&self.put)?.execute([key, value])?,
            None => on.prepare_cached(&self.remove)?.execute([key])?,
        };
        Ok(())
    }

    /// The entries of `[from, to)` in order, until `see` returns false.
    pub fn scan(
        &self,
        on: &Connection,
        from: &[u8],
        to: Option<&[u8]>,
        see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        match to {
            Some(to) => show(on.prepare_cached(&self.range)?, [from, to], see),
            None => show(on.prepare_cached(&self.from)?, [from], see),
        }
    }

    /// The last entry of `[from, to)`.
    pub fn last<R>(
        &self,
        on: &Connection,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>> {
        let mut statement = on.prepare_cached(&self.last)?;
        let mut rows = statement.query([from, to])?;
        Ok(match rows.next()? {
            Some(row) => Some(see(row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?)),
            None => None,
        })
    }

    fn end(&self, on: &Connection, end: End) -> Outcome<Option<Vec<u8>>> {
        let sql = match end {
            End::First => &self.first_key,
            End::Last => &self.last_key,
        };
        let mut statement = on.prepare_cached(sql)?;
        Ok(statement.query_row([], |row| row.get(0)).optional()?)
    }
}

fn show(
    mut statement: CachedStatement<'_>,
    parameters: impl rusqlite::Params,
    mut see: impl FnMut(&[u8], &[u8]) -> bool,
) -> Outcome<()> {
    let mut rows = statement.query(parameters)?;
    while let Some(row) = rows.next()? {
        if !see(row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?) {
            break;
        }
    }
    Ok(())
}

/// Runs one of the statements that begin and end a transaction.
pub fn run(on: &Connection, sql: &str) -> Outcome<()> {
    on.prepare_cached(sql)?.execute([])?;
    Ok(())
}

/// Moves what is in the log of pages into the file.
pub fn settle(on: &Connection) -> Outcome<()> {
    on.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

pub struct Sqlite {
    setup: Setup,
    table: Table,
    focus: SharedFocus,
}

pub struct SqliteSession<'a> {
    engine: &'a Sqlite,
    connection: Connection,
    pending: Pending,
    /// A transaction is open for reads, as long as the phase only reads.
    reading: bool,
    /// A transaction is open for a batch of pops; how many were made.
    popped: usize,
}

impl Sqlite {
    fn connect(&self) -> Outcome<Connection> {
        connect(&self.setup, self.setup.threads)
    }
}

impl Contender for Sqlite {
    type Session<'a> = SqliteSession<'a>;

    fn open(setup: &Setup) -> Outcome<Self> {
        let engine = Self {
            setup: setup.clone(),
            table: Table::named("data"),
            focus: SharedFocus::default(),
        };
        engine.focus.set(setup.focus);
        engine.table.create(&engine.connect()?)?;
        Ok(engine)
    }

    fn session(&self) -> Outcome<SqliteSession<'_>> {
        Ok(SqliteSession {
            engine: self,
            connection: self.connect()?,
            pending: Pending::default(),
            reading: false,
            popped: 0,
        })
    }

    fn focus(&self, focus: Focus) -> Outcome<()> {
        self.focus.set(focus);
        Ok(())
    }

    fn settle(&self) -> Outcome<()> {
        settle(&self.connect()?)
    }

    fn close(self) -> Outcome<()> {
        self.settle()
    }
}

impl SqliteSession<'_> {
    /// Ends what is open and writes what is pending.
    fn commit(&mut self) -> Outcome<()> {
        if self.popped > 0 || self.reading {
            run(&self.connection, "COMMIT")?;
            (self.popped, self.reading) = (0, false);
        }
        if self.pending.is_empty() {
            return Ok(());
        }
        run(&self.connection, "BEGIN IMMEDIATE")?;
        for (key, value) in self.pending.sorted() {
            self.engine
                .table
                .write(&self.connection, key, Some(value))?;
        }
        run(&self.connection, "COMMIT")?;
        self.pending.clear();
        Ok(())
    }

    fn before_read(&mut self) -> Outcome<()> {
        if !self.engine.focus.reads_only() {
            return self.commit();
        }
        if !self.reading {
            self.commit()?;
            run(&self.connection, "BEGIN")?;
            self.reading = true;
        }
        Ok(())
    }
}

impl Session for SqliteSession<'_> {
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.pending.push(key, value);
        if self.pending.len() >= self.engine.focus.batch(self.engine.setup.durability) {
            self.commit()?;
        }
        Ok(())
    }

    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        self.before_read()?;
        self.engine.table.get(&self.connection, key, see)
    }

    fn remove(&mut self, key: &[u8]) -> Outcome<()> {
        self.commit()?;
        self.engine.table.write(&self.connection, key, None)
    }

    fn pop(&mut self, end: End, see: impl FnOnce(&[u8])) -> Outcome<bool> {
        if self.popped == 0 {
            self.commit()?;
            run(&self.connection, "BEGIN IMMEDIATE")?;
        }
        self.popped += 1;
        let table = &self.engine.table;
        let Some(key) = table.end(&self.connection, end)? else {
            return Ok(false);
        };
        see(&key);
        table.write(&self.connection, &key, None)?;
        if self.popped >= self.engine.focus.batch(self.engine.setup.durability) {
            self.commit()?;
        }
        Ok(true)
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<usize> {
        self.before_read()?;
        let mut seen = 0;
        if count == 0 {
            return Ok(seen);
        }
        self.engine
            .table
            .scan(&self.connection, from, None, |key, value| {
                see(key, value);
                seen += 1;
                seen < count
            })?;
        Ok(seen)
    }

    fn finish(&mut self) -> Outcome<()> {
        self.commit()
    }
}
