//! redb: a copy-on-write B+ tree in Rust.
//!
//! Tuning: the cache is seven eighths of the budget (pages of the transaction under way are
//! counted in it, its allocator state is not); writes are batched as `batch.rs` says.

use crate::batch::{Pending, SharedFocus};
use indexy_bench::contender::{
    About, Contender, Durability, End, Focus, KeyShape, Outcome, PageCache, Session, Setup, Storage,
};
use indexy_bench::registry::Registry;
use redb::{Database, ReadOnlyTable, ReadableDatabase, TableDefinition, WriteTransaction};

const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("data");

pub fn register(registry: &mut Registry) {
    registry.add::<Redb>(About {
        name: "redb",
        summary: "copy-on-write B+ tree in Rust: 7/8 cache, loads in sorted batches of 4096",
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

/// Opens the file of `setup`, or creates it.
pub fn open_file(setup: &Setup) -> Outcome<Database> {
    Ok(Database::builder()
        .set_cache_size((setup.budget / 8 * 7) as usize)
        .create(setup.path.join("data.redb"))?)
}

/// What a write transaction is told.
pub fn durability(durability: Durability) -> redb::Durability {
    match durability {
        Durability::Sync => redb::Durability::Immediate,
        Durability::None | Durability::Buffered => redb::Durability::None,
    }
}

pub struct Redb {
    database: Database,
    durability: Durability,
    focus: SharedFocus,
}

type Table = ReadOnlyTable<&'static [u8], &'static [u8]>;

pub struct RedbSession<'a> {
    engine: &'a Redb,
    pending: Pending,
    /// Kept open while the phase only reads.
    table: Option<Table>,
    /// Kept open for a batch of pops, and how many were made.
    popping: Option<(WriteTransaction, usize)>,
}

impl Redb {
    fn write(
        &self,
        kind: Durability,
        fill: impl FnOnce(&mut redb::Table<'_, &'static [u8], &'static [u8]>) -> Outcome<()>,
    ) -> Outcome<()> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(durability(kind))?;
        fill(&mut transaction.open_table(TABLE)?)?;
        transaction.commit()?;
        Ok(())
    }

    fn table(&self) -> Outcome<Table> {
        Ok(self.database.begin_read()?.open_table(TABLE)?)
    }
}

impl Contender for Redb {
    type Session<'a> = RedbSession<'a>;

    fn open(setup: &Setup) -> Outcome<Self> {
        let engine = Self {
            database: open_file(setup)?,
            durability: setup.durability,
            focus: SharedFocus::default(),
        };
        engine.focus.set(setup.focus);
        engine.write(Durability::Sync, |_| Ok(()))?;
        Ok(engine)
    }

    fn session(&self) -> Outcome<RedbSession<'_>> {
        Ok(RedbSession {
            engine: self,
            pending: Pending::default(),
            table: None,
            popping: None,
        })
    }

    fn focus(&self, focus: Focus) -> Outcome<()> {
        self.focus.set(focus);
        Ok(())
    }

    fn settle(&self) -> Outcome<()> {
        self.write(Durability::Sync, |_| Ok(()))
    }

    fn close(self) -> Outcome<()> {
        self.settle()
    }
}

impl RedbSession<'_> {
    fn commit(&mut self) -> Outcome<()> {
        if let Some((transaction, _)) = self.popping.take() {
            transaction.commit()?;
        }
        let pending = &mut self.pending;
        if pending.is_empty() {
            return Ok(());
        }
        self.engine.write(self.engine.durability, |table| {
            for (key, value) in pending.sorted() {
                table.insert(key, value)?;
            }
            Ok(())
        })?;
        self.pending.clear();
        Ok(())
    }

    /// Calls `read` on a table of the newest state.
    fn with_table<R>(&mut self, read: impl FnOnce(&Table) -> Outcome<R>) -> Outcome<R> {
        if !self.engine.focus.reads_only() {
            self.commit()?;
            return read(&self.engine.table()?);
        }
        let table = match self.table.take() {
            Some(table) => table,
            None => self.engine.table()?,
        };
        read(self.table.insert(table))
    }
}

impl Session for RedbSession<'_> {
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.pending.push(key, value);
        if self.pending.len() >= self.engine.focus.batch(self.engine.durability) {
            self.commit()?;
        }
        Ok(())
    }

    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        self.with_table(|table| Ok(table.get(key)?.map(|value| see(value.value()))))
    }

    fn remove(&mut self, key: &[u8]) -> Outcome<()> {
        self.commit()?;
        self.engine.write(self.engine.durability, |table| {
            table.remove(key)?;
            Ok(())
        })
    }

    fn pop(&mut self, end: End, see: impl FnOnce(&[u8])) -> Outcome<bool> {
        if self.popping.is_none() {
            self.commit()?;
            let mut transaction = self.engine.database.begin_write()?;
            transaction.set_durability(durability(self.engine.durability))?;
            self.popping = Some((transaction, 0));
        }
        let Some((transaction, popped)) = &mut self.popping else {
            return Ok(false);
        };
        let mut table = transaction.open_table(TABLE)?;
        let entry = match end {
            End::First => table.pop_first()?,
            End::Last => table.pop_last()?,
        };
        let there = entry.map(|(key, _)| see(key.value())).is_some();
        drop(table);
        *popped += 1;
        if *popped >= self.engine.focus.batch(self.engine.durability) {
            self.commit()?;
        }
        Ok(there)
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<usize> {
        self.with_table(|table| {
            let mut seen = 0;
            for entry in table.range(from..)?.take(count) {
                let (key, value) = entry?;
                see(key.value(), value.value());
                seen += 1;
            }
            Ok(seen)
        })
    }

    fn finish(&mut self) -> Outcome<()> {
        self.commit()
    }
}
