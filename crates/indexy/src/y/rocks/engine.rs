//! One open instance of RocksDB, and what may be asked of it.
//!
//! Closing is dropping: it aborts a running compaction and waits for RocksDB's threads to leave the
//! tree.

#![forbid(unsafe_code)]

use super::{
    fault::typed,
    files::{self, CURRENT},
    mark,
    settings::LEVELS,
    shared::RocksShared,
};
use crate::{
    error::{Error, Result},
    key::Value,
};
use rocksdb::{ColumnFamily, DB, DEFAULT_COLUMN_FAMILY_NAME, ErrorKind, ReadOptions};
use rocksdb::{WaitForCompactOptions, properties};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
};

/// The manifest that RocksDB writes before a new tree has a `CURRENT`.
const FIRST_MANIFEST: &str = "MANIFEST-000001";
/// Memory of an open tree without tables, in bytes: measured 124 KiB (`memory_tests.rs`).
const TREE_BYTES: usize = 192 << 10;
/// Memory of a table that RocksDB does not report: its entry in the list of files, with its first
/// and last key.
const TABLE_BYTES: usize = 4 << 10;
/// Blocks between RocksDB's estimate of open tables and what they take of the allocator.
const READERS_PERCENT: usize = 150;

/// How a tree is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// For writing; created if it is not there.
    Write,
    /// Not a byte is written.
    ReadOnly,
}

/// An open RocksDB.
pub(super) struct Engine {
    pub db: DB,
    pub dir: PathBuf,
    mode: Mode,
    reading: ReadOptions,
    // Last: RocksDB uses the cache until it is closed.
    _shared: Arc<RocksShared>,
}

impl Engine {
    /// Opens the tree in `dir`.
    pub(super) fn open(dir: &Path, shared: &Arc<RocksShared>, mode: Mode) -> Result<Self> {
        let exists = exists(dir)?;
        mark::check(dir)?;
        let mut options = shared.tree();
        let column = [(DEFAULT_COLUMN_FAMILY_NAME, options.clone())];
        let db = match mode {
            Mode::ReadOnly if !exists => {
                return Err(Error::NoDatabase {
                    path: dir.to_path_buf(),
                });
            }
            Mode::ReadOnly => DB::open_cf_with_opts_for_read_only(&options, dir, column, false),
            Mode::Write => {
                files::remove_leftovers(dir)?;
                options.create_if_missing(!exists);
                DB::open_cf_with_opts(&options, dir, column)
            }
        };
        let db = db.map_err(|e| typed(dir, "open", &e))?;
        if !exists {
            // RocksDB has synced the directory itself; its name is ours to sync.
            sync_parent(dir)?;
        }
        Ok(Self {
            db,
            dir: dir.to_path_buf(),
            mode,
            reading: ReadOptions::default(),
            _shared: Arc::clone(shared),
        })
    }

    fn column(&self) -> Result<&ColumnFamily> {
        // It was opened with this one.
        let column = self.db.cf_handle(DEFAULT_COLUMN_FAMILY_NAME);
        column.ok_or(Error::Closed)
    }

    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        let found = self.db.get_pinned_opt(key, &self.reading);
        let found = found.map_err(|e| typed(&self.dir, "read", &e))?;
        Ok(found.map(|value| Value::new(&value)))
    }

    pub(super) fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        let column = self.column()?;
        let keys = keys.iter().copied();
        self.db
            .batched_multi_get_cf_opt(column, keys, false, &self.reading)
            .into_iter()
            .map(|found| match found {
                Ok(value) => Ok(value.map(|value| Value::new(&value))),
                Err(e) => Err(typed(&self.dir, "read", &e)),
            })
            .collect()
    }

    /// True when no compaction is due or running; false when the time was over before.
    pub(super) fn wait_for_compaction(&self, micros: u64) -> Result<bool> {
        let mut wait = WaitForCompactOptions::default();
        wait.set_timeout(micros);
        match self.db.wait_for_compact(&wait) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == ErrorKind::TimedOut => Ok(false),
            Err(e) => Err(typed(&self.dir, "compact", &e)),
        }
    }

    /// Whether RocksDB takes writes: after some failures it refuses them until it is opened again.
    pub(super) fn is_well(&self) -> bool {
        self.mode == Mode::Write && self.wait_for_compaction(1).is_ok()
    }

    /// Compaction ends soon and does not begin again.
    pub(super) fn stop_compaction(&self) {
        self.db.cancel_all_background_work(false);
    }

    /// Ends compaction and waits for that; true if this is a tree for writing in which no
    /// compaction has failed.
    pub(super) fn stop_soundly(&self) -> bool {
        self.db.cancel_all_background_work(true);
        self.mode == Mode::Write && self.number(properties::BACKGROUND_ERRORS) == 0
    }

    fn number(&self, property: &properties::PropName) -> u64 {
        // A property that RocksDB does not have would be found by the tests.
        let number = self.db.property_int_value(property);
        number.ok().flatten().unwrap_or(0)
    }

    /// Tables in a level.
    pub(super) fn tables_at(&self, level: usize) -> u64 {
        let text = self
            .db
            .property_value(properties::num_files_at_level(level));
        text.ok()
            .flatten()
            .and_then(|n| n.parse().ok())
            .unwrap_or(0)
    }

    fn levels() -> impl Iterator<Item = usize> {
        1..LEVELS as usize
    }

    /// Tables of level 0, and levels below that are not empty.
    pub(super) fn run_count(&self) -> u64 {
        let below = Self::levels().filter(|&level| self.tables_at(level) > 0);
        self.tables_at(0) + below.count() as u64
    }

    pub(super) fn approximate_len(&self) -> u64 {
        self.number(properties::ESTIMATE_NUM_KEYS)
    }

    pub(super) fn disk_bytes(&self) -> u64 {
        self.number(properties::TOTAL_SST_FILES_SIZE)
    }

    /// Upper bound in bytes of what this tree holds beside the cache.
    pub(super) fn memory_bytes(&self) -> usize {
        let tables: u64 =
            self.tables_at(0) + Self::levels().map(|l| self.tables_at(l)).sum::<u64>();
        let readers = self.number(properties::ESTIMATE_TABLE_READERS_MEM) as usize;
        let memtables = self.number(properties::SIZE_ALL_MEM_TABLES) as usize;
        TREE_BYTES + memtables + tables as usize * TABLE_BYTES + readers / 100 * READERS_PERCENT
    }
}

/// Whether a tree is in `dir`. What is left of one, without the file that names its manifest, is
/// `Corrupt`: RocksDB would take the directory for an empty one.
fn exists(dir: &Path) -> Result<bool> {
    let current = dir.join(CURRENT);
    let found = current.try_exists();
    if found.map_err(|e| Error::io("open", &current, e))? {
        return Ok(true);
    }
    let files = match fs::read_dir(dir) {
        Ok(files) => files,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(Error::io("list", dir, e)),
    };
    for file in files {
        let name = file.map_err(|e| Error::io("list", dir, e))?.file_name();
        let name = name.to_string_lossy();
        // The first manifest alone: a creation that was cut short.
        if name.ends_with(".sst") || name.starts_with("MANIFEST-") && name != FIRST_MANIFEST {
            return Err(Error::corrupt(current, 0, "the file is missing"));
        }
    }
    Ok(false)
}

/// Makes the name of `dir` durable.
fn sync_parent(dir: &Path) -> Result<()> {
    match dir.parent() {
        Some(parent) => sync(parent),
        None => Ok(()),
    }
}

/// Makes a file's bytes, or a directory's names, durable.
pub(super) fn sync(path: &Path) -> Result<()> {
    // The parent of a relative path of one name is the empty path.
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(|e| Error::io("sync", path, e))
}
