//! A simulated file system in memory that forgets, reorders, tears and fails on demand.
//!
//! Each file keeps what its last sync made durable and the list of changes since; each directory
//! likewise. [`Sim::crash`] builds the disk as a power failure may leave it: every unsynced change
//! independently survives, is lost, or (a write) survives in part, in units of 512 bytes or of one
//! byte; a torn unit may hold garbage, unless it holds already what is written: what is appended
//! is written with its neighbours, which would not be safe either. [`Sim::fail_at`] makes the n-th
//! I/O fail. The same seed gives the same crash.
//!
//! A failed sync leaves its changes readable but never durable, and a later sync of the same file
//! succeeds without them: what Linux does, and why a log must not retry. What is written over them
//! later is durable after that one's sync. Renames are atomic.
//! Threads: any; one lock around everything.
//! Not here: real devices (`buffered.rs`).

#![forbid(unsafe_code)]

mod disk;
#[cfg(test)]
mod tests;

pub(crate) use disk::Fault;

use super::{Storage, StorageFile};
use crate::error::{Error, Result};
use disk::{
    Change, DirChange, Disk, FileId, FileState, Io, MAX_FILE_BYTES, Plan, Random, Verdict, apply,
    injected,
};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::SystemTime,
};

/// Without the variable, one I/O in this many is hit.
const SITES_DIVISOR: usize = 4;

/// The I/Os, of the first `ios`, that a test has fail: all of them with `INDEXY_CRASH_SITES=all`,
/// else one in [`SITES_DIVISOR`], others in each run.
pub(crate) fn sites(ios: u64) -> impl Iterator<Item = u64> {
    let all = std::env::var_os("INDEXY_CRASH_SITES").is_some_and(|sites| sites == "all");
    let (first, step) = if all {
        (1, 1)
    } else {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let offset = u64::from(now.subsec_micros()) % SITES_DIVISOR as u64;
        (1 + offset, SITES_DIVISOR)
    };
    (first..=ios).step_by(step)
}

/// See the module header. Clones share the disk.
#[derive(Debug, Default, Clone)]
pub(crate) struct Sim(Arc<Mutex<Disk>>);

impl Sim {
    /// I/Os so far. Everything counts but `exists`, `len` and `path`.
    pub(crate) fn ios(&self) -> u64 {
        self.0.lock().ios
    }

    /// The first I/O from number `at` (counted from 1, since creation) on that `fault` can hit
    /// fails; with `forever`, so does every later one. `PowerLoss` is always forever.
    pub(crate) fn fail_at(&self, at: u64, fault: Fault, forever: bool) {
        let mut disk = self.0.lock();
        disk.struck = 0;
        disk.plan = Some(Plan {
            at,
            fault,
            forever: forever || fault == Fault::PowerLoss,
        });
    }

    /// No more faults.
    pub(crate) fn heal(&self) {
        self.0.lock().plan = None;
    }

    /// How many I/Os failed by the present plan.
    pub(crate) fn faults(&self) -> u64 {
        self.0.lock().struck
    }

    /// Calls `go` with new disks, once for each of the first `ios` I/Os that its fault can hit and
    /// that [`sites`] takes. `go` has the disk fail at the given I/O or later, and does the same
    /// every time.
    pub(crate) fn hit_each(ios: u64, mut go: impl FnMut(&Self, u64)) {
        let mut next = 1;
        for at in sites(ios) {
            // From any I/O up to the one that was hit, the fault would hit the same.
            if at < next {
                continue;
            }
            let sim = Self::default();
            go(&sim, at);
            if sim.faults() == 0 {
                return;
            }
            next = sim.0.lock().hit + 1;
        }
    }

    /// Every I/O waits until the guard is dropped.
    pub(crate) fn pause(&self) -> impl Drop + '_ {
        self.0.lock()
    }

    /// The disk as a power failure now could leave it.
    pub(crate) fn crash(&self, seed: u64) -> Self {
        let disk = self.0.lock();
        let mut random = Random(seed);
        // Whole crashes lean to one side, so that "nothing survived" and "all but one" are common.
        let keep = [0, 32, 128, 224, 256][random.below(5)];
        let mut names = disk.durable_names.clone();
        for change in &disk.dir_changes {
            if random.below(256) < keep {
                change.apply(&mut names);
            }
        }
        let files = disk
            .files
            .iter()
            .map(|f| f.after_crash(&mut random, keep))
            .collect();
        Self(Arc::new(Mutex::new(Disk {
            files,
            durable_names: names.clone(),
            names,
            ..Disk::default()
        })))
    }

    /// The disk with all of it durable, as another process would see it now.
    pub(crate) fn snapshot(&self) -> Self {
        let disk = self.0.lock();
        let files = disk.files.iter().map(|f| FileState {
            durable: f.current.clone(),
            changes: Vec::new(),
            current: f.current.clone(),
        });
        Self(Arc::new(Mutex::new(Disk {
            files: files.collect(),
            durable_names: disk.names.clone(),
            names: disk.names.clone(),
            ..Disk::default()
        })))
    }

    /// Every file with its content.
    pub(crate) fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let disk = self.0.lock();
        let content = |id: &FileId| {
            disk.files
                .get(*id)
                .map_or(Vec::new(), |f| f.current.clone())
        };
        disk.names
            .iter()
            .map(|(path, id)| (path.clone(), content(id)))
            .collect()
    }

    /// Replaces the content of a file behind the back of whoever uses it, or makes the file.
    pub(crate) fn tamper(&self, path: &Path, content: Vec<u8>) {
        let mut disk = self.0.lock();
        let id = disk.files.len();
        disk.files.push(FileState {
            durable: content.clone(),
            changes: Vec::new(),
            current: content,
        });
        disk.names.insert(path.to_path_buf(), id);
        disk.durable_names.insert(path.to_path_buf(), id);
    }

    fn lookup(disk: &Disk, op: &'static str, path: &Path) -> Result<FileId> {
        let id = disk.names.get(path).copied();
        id.ok_or_else(|| Error::io(op, path, io::ErrorKind::NotFound.into()))
    }

    fn handle(&self, id: FileId, path: &Path) -> Arc<dyn StorageFile> {
        Arc::new(SimFile {
            disk: self.0.clone(),
            id,
            opened_as: path.to_path_buf(),
            renamed: OnceLock::new(),
        })
    }
}

impl Storage for Sim {
    fn create(&self, path: &Path) -> Result<Arc<dyn StorageFile>> {
        let mut disk = self.0.lock();
        disk.all_or_nothing(Io::Create, "create", path)?;
        if disk.names.contains_key(path) {
            return Err(Error::io(
                "create",
                path,
                io::ErrorKind::AlreadyExists.into(),
            ));
        }
        let id = disk.files.len();
        disk.files.push(FileState::default());
        disk.change_name(DirChange::Link(path.to_path_buf(), id));
        Ok(self.handle(id, path))
    }

    fn open(&self, path: &Path, _write: bool) -> Result<Arc<dyn StorageFile>> {
        let mut disk = self.0.lock();
        disk.all_or_nothing(Io::Open, "open", path)?;
        let id = Self::lookup(&disk, "open", path)?;
        Ok(self.handle(id, path))
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        let mut disk = self.0.lock();
        disk.all_or_nothing(Io::Open, "list", dir)?;
        let inside = disk.names.keys().filter(|p| p.parent() == Some(dir));
        Ok(inside
            .filter_map(|p| p.file_name())
            .map(PathBuf::from)
            .collect())
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Ok(self.0.lock().names.contains_key(path))
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        // Directories are implied by their files.
        self.0
            .lock()
            .all_or_nothing(Io::Name, "create directory", dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut disk = self.0.lock();
        disk.all_or_nothing(Io::Name, "rename", from)?;
        let id = Self::lookup(&disk, "rename", from)?;
        disk.change_name(DirChange::Rename(from.to_path_buf(), to.to_path_buf(), id));
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let mut disk = self.0.lock();
        disk.all_or_nothing(Io::Read, "remove", path)?;
        Self::lookup(&disk, "remove", path)?;
        disk.change_name(DirChange::Unlink(path.to_path_buf()));
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let mut disk = self.0.lock();
        disk.all_or_nothing(Io::Open, "open directory", dir)?;
        disk.all_or_nothing(Io::Sync, "sync directory", dir)?;
        let (done, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut disk.dir_changes)
            .into_iter()
            .partition(|c| c.dir() == Some(dir));
        for change in done {
            change.apply(&mut disk.durable_names);
        }
        disk.dir_changes = rest;
        Ok(())
    }
}

struct SimFile {
    disk: Arc<Mutex<Disk>>,
    id: FileId,
    opened_as: PathBuf,
    renamed: OnceLock<PathBuf>,
}

impl SimFile {
    fn change(&self, op: &'static str, change: Change) -> Result<()> {
        let mut disk = self.disk.lock();
        disk.all_or_nothing(Io::Write, op, self.path())?;
        disk.change_file(self.id, change);
        Ok(())
    }
}

impl StorageFile for SimFile {
    fn len(&self) -> Result<u64> {
        Ok(self
            .disk
            .lock()
            .files
            .get(self.id)
            .map_or(0, |f| f.current.len() as u64))
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let mut disk = self.disk.lock();
        disk.all_or_nothing(Io::Read, "read", self.path())?;
        let current = disk.files.get(self.id).map_or(&[][..], |f| &f.current);
        let from = current.get(offset as usize..).unwrap_or_default();
        let n = from.len().min(buf.len());
        buf[..n].copy_from_slice(&from[..n]);
        Ok(n)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        let mut disk = self.disk.lock();
        if offset + buf.len() as u64 > MAX_FILE_BYTES {
            return Err(Error::io(
                "write",
                self.path(),
                io::ErrorKind::FileTooLarge.into(),
            ));
        }
        let (stored, failed) = match disk.verdict(Io::Write) {
            Verdict::Go => (buf.len(), None),
            Verdict::Part(share, kind) => (buf.len() * share as usize / 256, Some(kind)),
            Verdict::Fail(kind) => (0, Some(kind)),
            Verdict::NoDescriptor => (0, Some(io::ErrorKind::Other)),
        };
        if stored > 0 {
            disk.change_file(
                self.id,
                Change::Write {
                    offset,
                    bytes: buf[..stored].to_vec(),
                },
            );
        }
        failed.map_or(Ok(()), |kind| {
            Err(Error::io("write", self.path(), injected(kind)))
        })
    }

    fn sync(&self) -> Result<()> {
        let mut disk = self.disk.lock();
        let power_loss = disk.plan.is_some_and(|p| p.fault == Fault::PowerLoss);
        let done = disk.all_or_nothing(Io::Sync, "sync", self.path());
        let Some(file) = disk.files.get_mut(self.id) else {
            return done;
        };
        if done.is_err() && !power_loss {
            for (_, lost) in &mut file.changes {
                *lost = true;
            }
        } else if done.is_ok() {
            for (change, lost) in std::mem::take(&mut file.changes) {
                if lost {
                    file.changes.push((change, true));
                } else {
                    apply(&mut file.durable, &change);
                    let lost = std::mem::take(&mut file.changes).into_iter();
                    let left = lost.flat_map(|(lost, _)| lost.under(&change));
                    file.changes = left.map(|lost| (lost, true)).collect();
                }
            }
        }
        done
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.change("set length of", Change::SetLen(len.min(MAX_FILE_BYTES)))
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.change("allocate", Change::Grow((offset + len).min(MAX_FILE_BYTES)))
    }

    fn path(&self) -> &Path {
        self.renamed.get().unwrap_or(&self.opened_as)
    }

    fn set_path(&self, path: &Path) {
        let _ = self.renamed.set(path.to_path_buf());
    }
}
