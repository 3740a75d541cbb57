//! LMDB, through heed: a memory-mapped copy-on-write B+ tree in C.
//!
//! Tuning: its cache is the page cache, which the memory cgroup limits; read-ahead is off, as
//! random reads of a file larger than memory want; without durability the map is written directly
//! and flushed by the kernel. Writes are batched as `batch.rs` says.

use crate::batch::{Pending, SharedFocus};
use heed::{Database, Env, EnvFlags, EnvOpenOptions, RoTxn, RwTxn, WithTls, types::Bytes};
use indexy_bench::contender::{
    About, Contender, Durability, End, Focus, KeyShape, Outcome, PageCache, Session, Setup, Storage,
};
use indexy_bench::registry::Registry;
use std::ops::Bound;

/// Address space for the map; the file grows only as needed.
const MAP_BYTES: usize = 1 << 40;
const SPARE_READERS: u32 = 16;

pub fn register(registry: &mut Registry) {
    registry.add::<Lmdb>(About {
        name: "lmdb",
        summary: "LMDB: memory-mapped B+ tree, no read-ahead, loads in sorted batches of 4096",
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

/// Opens the environment of `setup`, with room for that many named databases.
pub fn environment(setup: &Setup, databases: u32) -> Outcome<Env<WithTls>> {
    let mut options = EnvOpenOptions::new();
    options
        .map_size(MAP_BYTES)
        .max_dbs(databases)
        .max_readers(setup.threads as u32 + SPARE_READERS);
    let mut flags = EnvFlags::NO_READ_AHEAD;
    if setup.durability != Durability::Sync {
        flags |=
            EnvFlags::NO_SYNC | EnvFlags::NO_META_SYNC | EnvFlags::WRITE_MAP | EnvFlags::MAP_ASYNC;
    }
    // SAFETY: giving up syncs can only lose what a crash may lose here, and nothing but LMDB
    // writes through the map.
    unsafe { options.flags(flags) };
    // SAFETY: the directory belongs to this process alone, so no one changes the file under the
    // map.
    Ok(unsafe { options.open(&setup.path)? })
}

pub struct Lmdb {
    env: Env<WithTls>,
    database: Database<Bytes, Bytes>,
    durability: Durability,
    focus: SharedFocus,
}

pub struct LmdbSession<'a> {
    engine: &'a Lmdb,
    pending: Pending,
    /// Kept open while the phase only reads.
    reading: Option<RoTxn<'a, WithTls>>,
    /// Kept open for a batch of pops, and how many were made.
    popping: Option<(RwTxn<'a>, usize)>,
}

impl Contender for Lmdb {
    type Session<'a> = LmdbSession<'a>;

    fn open(setup: &Setup) -> Outcome<Self> {
        let env = environment(setup, 0)?;
        let mut transaction = env.write_txn()?;
        let database = env.create_database(&mut transaction, None)?;
        transaction.commit()?;
        let focus = SharedFocus::default();
        focus.set(setup.focus);
        Ok(Self {
            env,
            database,
            durability: setup.durability,
            focus,
        })
    }

    fn session(&self) -> Outcome<LmdbSession<'_>> {
        Ok(LmdbSession {
            engine: self,
            pending: Pending::default(),
            reading: None,
            popping: None,
        })
    }

    fn focus(&self, focus: Focus) -> Outcome<()> {
        self.focus.set(focus);
        Ok(())
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

impl LmdbSession<'_> {
    fn commit(&mut self) -> Outcome<()> {
        if let Some((transaction, _)) = self.popping.take() {
            transaction.commit()?;
        }
        if self.pending.is_empty() {
            return Ok(());
        }
        self.reading = None;
        let mut transaction = self.engine.env.write_txn()?;
        for (key, value) in self.pending.sorted() {
            self.engine.database.put(&mut transaction, key, value)?;
        }
        transaction.commit()?;
        self.pending.clear();
        Ok(())
    }

    /// Calls `read` in a transaction that sees the newest state.
    #[inline]
    fn reading<R>(
        &mut self,
        read: impl FnOnce(&Database<Bytes, Bytes>, &RoTxn<'_>) -> Outcome<R>,
    ) -> Outcome<R> {
        let engine = self.engine;
        if !engine.focus.reads_only() {
            self.commit()?;
            let transaction = engine.env.read_txn()?;
            return read(&engine.database, &transaction);
        }
        let transaction = match self.reading.take() {
            Some(transaction) => transaction,
            None => engine.env.read_txn()?,
        };
        read(&engine.database, self.reading.insert(transaction))
    }
}

impl Session for LmdbSession<'_> {
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.pending.push(key, value);
        if self.pending.len() >= self.engine.focus.batch(self.engine.durability) {
            self.commit()?;
        }
        Ok(())
    }

    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        self.reading(|database, transaction| Ok(database.get(transaction, key)?.map(see)))
    }

    fn remove(&mut self, key: &[u8]) -> Outcome<()> {
        self.commit()?;
        self.reading = None;
        let mut transaction = self.engine.env.write_txn()?;
        self.engine.database.delete(&mut transaction, key)?;
        transaction.commit()?;
        Ok(())
    }

    fn pop(&mut self, end: End, see: impl FnOnce(&[u8])) -> Outcome<bool> {
        let engine = self.engine;
        if self.popping.is_none() {
            self.commit()?;
            self.reading = None;
            self.popping = Some((engine.env.write_txn()?, 0));
        }
        let Some((transaction, popped)) = &mut self.popping else {
            return Ok(false);
        };
        let entry = match end {
            End::First => engine.database.first(transaction)?,
            End::Last => engine.database.last(transaction)?,
        };
        let Some(key) = entry.map(|(key, _)| key.to_vec()) else {
            return Ok(false);
        };
        see(&key);
        engine.database.delete(transaction, &key)?;
        *popped += 1;
        if *popped >= engine.focus.batch(engine.durability) {
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
        self.reading(|database, transaction| {
            let mut seen = 0;
            let from_on = (Bound::Included(from), Bound::Unbounded);
            for entry in database.range(transaction, &from_on)?.take(count) {
                let (key, value) = entry?;
                see(key, value);
                seen += 1;
            }
            Ok(seen)
        })
    }

    fn finish(&mut self) -> Outcome<()> {
        self.commit()
    }
}
