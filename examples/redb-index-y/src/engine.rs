//! One open redb file: table, transactions, checksums.
//!
//! Runs are committed without waiting for the device; `save` makes the last commit durable. redb
//! then records its free space too ("quick repair"), so that a killed process's file opens at once,
//! read-only as well.

use crate::{
    error::{contain, contain_panics},
    overlay::Overlay,
};
use indexy::{Error, Key, Result, Value};
use redb::{
    Builder, Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTableMetadata,
    TableDefinition, WriteTransaction,
};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

const FILE: &str = "data.redb";
/// A creation that was cut short leaves this one.
const NEW_FILE: &str = "data.redb.new";

pub(crate) const ENTRIES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("entries");

/// The table as of one run.
pub(crate) type Snapshot = ReadOnlyTable<&'static [u8], &'static [u8]>;

/// A value is stored behind the crc32c of its key and itself.
const CHECKSUM_BYTES: usize = 4;

pub(crate) struct Engine {
    pub path: PathBuf,
    database: Database,
    read_only: bool,
    /// Runs published since the file was opened...
    published: AtomicU64,
    /// ...and how many of them are durable. Locked while one makes them so.
    durable: Mutex<u64>,
    /// Entries as of the last run.
    pub len: AtomicU64,
}

impl Engine {
    /// Opens the file in `dir`, or creates both unless `read_only`.
    pub(crate) fn open(dir: &Path, read_only: bool, cache_bytes: usize) -> Result<Self> {
        let path = dir.join(FILE);
        if !read_only && !exists(&path)? {
            create(dir)?;
        }
        let mut builder = Builder::new();
        builder.set_cache_size(cache_bytes);
        let database = if read_only {
            let overlay = contain(&path, "open", || Overlay::open(&path))?;
            contain(&path, "open", || builder.create_with_backend(overlay))?
        } else {
            contain(&path, "open", || builder.open(&path))?
        };
        let engine = Self {
            path,
            database,
            read_only,
            published: AtomicU64::new(0),
            durable: Mutex::new(0),
            len: AtomicU64::new(0),
        };
        engine.count()?;
        Ok(engine)
    }

    /// The table as of the last run.
    pub(crate) fn entries(&self) -> Result<Snapshot> {
        let transaction = contain(&self.path, "read", || self.database.begin_read())?;
        contain(&self.path, "read", || transaction.open_table(ENTRIES))
    }

    /// The value of `key` in `entries`.
    pub(crate) fn get(&self, entries: &Snapshot, key: &[u8]) -> Result<Option<Value>> {
        let found = contain(&self.path, "read", || entries.get_owned(key))?;
        contain_panics(&self.path, "read", || {
            let value = found.map(|stored| self.unseal(key, stored.value()));
            value.transpose()
        })
    }

    /// A transaction; one at a time, the next one waits here. Dropped without `publish`, it never
    /// was.
    pub(crate) fn begin_write(&self) -> Result<WriteTransaction> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        contain(&self.path, "write", || self.database.begin_write())
    }

    /// Readers see what `transaction` wrote from now on; a crash may still take it.
    pub(crate) fn publish(&self, mut transaction: WriteTransaction) -> Result<()> {
        contain(&self.path, "write", || {
            transaction
                .set_durability(Durability::None)
                .map_err(redb::Error::from)?;
            transaction.commit().map_err(redb::Error::from)
        })?;
        self.published.fetch_add(1, SeqCst);
        self.count()
    }

    /// Makes every published run durable. Cost: a few fsyncs if there is one that is not.
    pub(crate) fn save(&self) -> Result<()> {
        let mut durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        let published = self.published.load(SeqCst);
        if *durable == published {
            return Ok(());
        }
        // Waits for a run in flight. A durable commit takes all earlier ones with it.
        let mut transaction = self.begin_write()?;
        contain(&self.path, "sync", || {
            transaction.set_quick_repair(true);
            transaction.commit()
        })?;
        *durable = published;
        Ok(())
    }

    fn count(&self) -> Result<()> {
        let entries = self.entries()?;
        let len = contain(&self.path, "read", || entries.len())?;
        self.len.store(len, SeqCst);
        Ok(())
    }

    /// What is stored for a value.
    pub(crate) fn seal(key: &[u8], value: &[u8]) -> Vec<u8> {
        let mut stored = Vec::with_capacity(CHECKSUM_BYTES + value.len());
        stored.extend_from_slice(&checksum(key, value).to_le_bytes());
        stored.extend_from_slice(value);
        stored
    }

    /// The value in what was stored. Bytes of the file are not trusted.
    pub(crate) fn unseal(&self, key: &[u8], stored: &[u8]) -> Result<Value> {
        match stored.split_first_chunk::<CHECKSUM_BYTES>() {
            Some((sum, value)) if *sum == checksum(key, value).to_le_bytes() => {
                Ok(Value::new(value))
            }
            _ => {
                let what = format!("checksum of the value of {:?}", Key::new(key));
                Err(Error::corrupt(&self.path, 0, what))
            }
        }
    }
}

impl Drop for Engine {
    /// A plain drop keeps acknowledged runs. If that fails, the log still has them.
    fn drop(&mut self) {
        if !self.read_only {
            let _ = self.save();
        }
    }
}

fn checksum(key: &[u8], value: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(key), value)
}

/// A file with an empty table appears in `dir` whole or not at all.
fn create(dir: &Path) -> Result<()> {
    let (new, path) = (dir.join(NEW_FILE), dir.join(FILE));
    fs::create_dir_all(dir).map_err(|e| Error::io("create", dir, e))?;
    if exists(&new)? {
        fs::remove_file(&new).map_err(|e| Error::io("remove", &new, e))?;
    }
    fill(&new, 0, |_| Ok(()))?;
    fs::rename(&new, &path).map_err(|e| Error::io("rename", &new, e))?;
    sync_dir(dir)
}

/// Makes `path`, with what `entries` inserts, and durable.
pub(crate) fn fill(
    path: &Path,
    cache_bytes: usize,
    entries: impl FnOnce(&mut redb::Table<'_, &[u8], &[u8]>) -> Result<()>,
) -> Result<()> {
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes);
    let database = contain(path, "create", || builder.create(path))?;
    let mut transaction = contain(path, "write", || database.begin_write())?;
    entries(&mut contain(path, "write", || {
        transaction.open_table(ENTRIES)
    })?)?;
    contain(path, "sync", || {
        transaction.set_quick_repair(true);
        transaction.commit()
    })
}

/// Copies the state of `from` into the absent directory `dest`.
pub(crate) fn copy(from: &Engine, dest: &Path) -> Result<()> {
    let source = from.entries()?;
    fs::create_dir_all(dest).map_err(|e| Error::io("create", dest, e))?;
    let path = dest.join(FILE);
    fill(&path, COPY_CACHE_BYTES, |table| {
        let mut all = contain(&from.path, "read", || source.range_owned::<&[u8]>(..))?;
        while let Some(entry) = contain(&from.path, "read", || all.next().transpose())? {
            let (key, stored) = entry;
            let value = contain_panics(&from.path, "read", || {
                from.unseal(key.value(), stored.value())
            })?;
            contain(&path, "write", || {
                let stored = Engine::seal(key.value(), &value);
                table.insert(key.value(), &*stored).map(drop)
            })?;
        }
        Ok(())
    })?;
    sync_dir(dest)?;
    dest.parent().map_or(Ok(()), sync_dir)
}

/// A copy is written once.
const COPY_CACHE_BYTES: usize = 256 << 10;

fn exists(path: &Path) -> Result<bool> {
    path.try_exists()
        .map_err(|e| Error::io("look for", path, e))
}

fn sync_dir(dir: &Path) -> Result<()> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(|e| Error::io("sync", dir, e))
}
