//! Index Y on RocksDB: sorted runs are written as tables beside the tree and taken over whole
//! (ingestion).
//!
//! Source: IndeXY II-D (the paper's LSM tree is RocksDB with a small buffer, a small cache and its
//! log off); facts, figures and what RocksDB holds beyond its cache:
//! `docs/decisions/0003-rocksdb-as-index-y.md`. Memtables and RocksDB's log are never used:
//! `write_run` returns when the run is in tables and in the manifest, all synced.
//!
//! Keeps: I2 (the engine numbers runs and remembers the number), I4 (a failed run leaves what was
//! there), I5 (`before_publish` precedes the ingestion), I7 (`shared.rs` and
//! [`RocksY::memory_bytes`] count).
//!
//! Locks, in this order: `writing` (one `write_run`, `copy_to`), `engine` (shared for the moment of
//! copying an `Arc`; alone to close or reopen). Threads: RocksDB's own two, shared by all RocksDB
//! trees of the process; compaction is scheduled by it.
//! Not here: when to wait for compaction (the framework asks `congested`).

#![forbid(unsafe_code)]

mod copy;
mod engine;
mod fault;
mod files;
mod mark;
mod range;
mod settings;
mod shared;
mod write;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod tests;

pub(crate) use shared::RocksShared;

use super::{Capabilities, IndexY, Maintained, RunSource, YIter};
use crate::{
    error::{Error, Result},
    key::Value,
    limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES},
    x::Order,
};
use engine::{Engine, Mode};
use mark::Mark;
use parking_lot::{Mutex, RwLock};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// Payload of a run below which level 0 fills with small tables faster than it is worth.
const PREFERRED_RUN_BYTES: usize = 8 << 20;
/// Tables in level 0 at which compaction has fallen behind; it starts at
/// `settings::LEVEL0_TRIGGER`.
const LEVEL0_CONGESTED: u64 = 12;
/// What a compaction and a run in flight hold: filter and index of the tables being written,
/// buffers, read ahead (measured 4.4 MiB). The process has one compaction of RocksDB at a time, a
/// database one run; its opener accounts for it.
pub(crate) const WORK_BYTES: usize = 5 << 20;
/// Longest time that one step of `maintain` waits for RocksDB's compaction.
const STEP_MICROS: u64 = 20_000;

/// A RocksDB tree in a directory of its own; see the module header.
pub(crate) struct RocksY {
    dir: PathBuf,
    shared: Arc<RocksShared>,
    read_only: bool,
    /// `None`: closed by [`IndexY::release_files`], or could not be opened again after a failure.
    engine: RwLock<Option<Arc<Engine>>>,
    writing: Mutex<()>,
    /// A write failed: the engine may refuse all writes until it is opened again.
    suspect: AtomicBool,
}

impl RocksY {
    /// Opens the tree in `path`, or creates one there unless `read_only`.
    ///
    /// Read-only writes not a byte. Cost: reads the manifest and a few tables, writes a new
    /// manifest.
    /// Errors: `NoDatabase` (read-only and nothing there), `Corrupt`, `Io`, `OutOfSpace`.
    pub(crate) fn open(path: &Path, shared: &Arc<RocksShared>, read_only: bool) -> Result<Self> {
        let mode = if read_only {
            Mode::ReadOnly
        } else {
            Mode::Write
        };
        let engine = Engine::open(path, shared, mode)?;
        Ok(Self {
            dir: path.to_path_buf(),
            shared: Arc::clone(shared),
            read_only,
            engine: RwLock::new(Some(Arc::new(engine))),
            writing: Mutex::default(),
            suspect: AtomicBool::new(false),
        })
    }

    fn engine(&self) -> Result<Arc<Engine>> {
        self.engine.read().clone().ok_or(Error::Closed)
    }

    /// The engine, in a state to be written: opened again if an earlier failure made it refuse
    /// writes.
    fn writable(&self) -> Result<Arc<Engine>> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        if self.suspect.load(Relaxed) {
            self.revive()?;
        }
        self.engine()
    }

    /// Opens the engine anew if it is stuck in an error. Waits for no reader: while one is inside,
    /// the next call tries again.
    fn revive(&self) -> Result<()> {
        let mut slot = self.engine.write();
        if let Some(engine) = slot.as_ref() {
            if engine.is_well() {
                self.suspect.store(false, Relaxed);
                return Ok(());
            }
            if Arc::strong_count(engine) > 1 {
                return Ok(());
            }
        }
        // RocksDB's own lock allows one instance at a time.
        *slot = None;
        match Engine::open(&self.dir, &self.shared, Mode::Write) {
            Ok(engine) => {
                *slot = Some(Arc::new(engine));
                self.suspect.store(false, Relaxed);
                Ok(())
            }
            Err(error) => {
                // Reads go on.
                let reader = Engine::open(&self.dir, &self.shared, Mode::ReadOnly);
                *slot = reader.ok().map(Arc::new);
                Err(error)
            }
        }
    }

    /// Closes RocksDB, and remembers how long its manifest is now that nobody writes it.
    fn close(&self, slot: &mut Option<Arc<Engine>>) {
        let Some(engine) = slot.take() else { return };
        let sound = engine.stop_soundly() && !self.suspect.load(Relaxed);
        let Some(last) = Arc::into_inner(engine) else {
            return;
        };
        drop(last);
        if sound && let Some(mark) = Mark::now(&self.dir) {
            mark.store(&self.dir);
        }
    }

    /// Notes a failure of the engine; the next write looks what became of it.
    fn suspecting<T>(&self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.suspect.store(true, Relaxed);
        }
        result
    }

    fn figure(&self, of: impl FnOnce(&Engine) -> u64) -> u64 {
        self.engine.read().as_deref().map_or(0, of)
    }
}

impl Drop for RocksY {
    fn drop(&mut self) {
        let mut slot = self.engine.get_mut().take();
        self.close(&mut slot);
    }
}

impl IndexY for RocksY {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_key_bytes: MAX_KEY_BYTES,
            max_value_bytes: MAX_VALUE_BYTES,
            preferred_run_bytes: PREFERRED_RUN_BYTES,
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.engine()?.get(key)
    }

    fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        self.engine()?.multi_get(keys)
    }

    fn range(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<YIter<'_>> {
        if to.is_some_and(|to| to <= from) {
            return Ok(Box::new(std::iter::empty()));
        }
        let iter = range::Entries::new(self.engine()?, from, to, order);
        Ok(Box::new(iter))
    }

    fn write_run(&self, source: &mut dyn RunSource) -> Result<()> {
        let _one_writer = self.writing.lock();
        // The files are made without the engine, which may be reopened meanwhile.
        drop(self.writable()?);
        let run = write::RunFiles::write(&self.dir, &self.shared, source)?;
        source.before_publish()?; // I5
        if run.is_empty() {
            return Ok(());
        }
        let engine = self.writable()?;
        let before = Mark::now(&self.dir);
        self.suspecting(run.publish(&engine))?;
        // The run's own sync covered what was there before it.
        if let Some(mark) = before {
            mark.store(&self.dir);
        }
        Ok(())
    }

    fn make_durable(&self) -> Result<()> {
        // `write_run` returns with tables and manifest synced.
        Ok(())
    }

    fn maintain(&self) -> Result<Maintained> {
        let engine = self.writable()?;
        match self.suspecting(engine.wait_for_compaction(STEP_MICROS))? {
            true => Ok(Maintained::Idle),
            false => Ok(Maintained::More),
        }
    }

    fn congested(&self) -> bool {
        self.figure(|engine| engine.tables_at(0)) >= LEVEL0_CONGESTED
    }

    fn is_empty(&self) -> Result<bool> {
        range::is_empty(&*self.engine()?)
    }

    fn approximate_len(&self) -> u64 {
        self.figure(Engine::approximate_len)
    }

    fn memory_bytes(&self) -> usize {
        self.figure(|engine| engine.memory_bytes() as u64) as usize
    }

    fn disk_bytes(&self) -> u64 {
        self.figure(Engine::disk_bytes)
    }

    fn run_count(&self) -> usize {
        self.figure(Engine::run_count) as usize
    }

    fn verify(&self) -> Result<u64> {
        range::verify(self.engine()?)
    }

    /// Closes RocksDB, which lets go of its lock too; false while a read holds it.
    fn release_files(&self) -> bool {
        let mut slot = self.engine.write();
        match slot.as_ref() {
            Some(engine) if Arc::strong_count(engine) > 1 => {
                engine.stop_compaction();
                false
            }
            _ => {
                self.close(&mut slot);
                true
            }
        }
    }

    fn copy_to(&self, dest: &Path) -> Result<()> {
        let _no_run = self.writing.lock();
        copy::copy(&*self.engine()?, &self.dir, dest)
    }
}
