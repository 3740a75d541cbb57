//! The directory of an open database, and who may still touch it.
//!
//! The rule: whatever may write below the directory holds an `Arc` of [`OwnedDirectory`] and lets
//! go of it last. There are two such holders, and nothing else gets at the files:
//! - [`OwnedStorage`], through which the log, the manifest and the LSM trees go;
//! - [`GuardedY`](super::guarded_y::GuardedY), around every Index Y.
//!
//! So no order in which a program drops its handles unlocks the directory too early: the last
//! holder does. `close` alone unlocks it sooner, after every Index Y has promised to touch no file
//! any more ([`IndexY::release_files`](crate::y::IndexY::release_files)).
//!
//! A directory may be renamed or replaced while it is open. So whatever creates, replaces or
//! removes a file by its name looks first whether `LOCK` is still the file that was locked
//! ([`OwnedDirectory::check`]); if not, the handle is poisoned and nothing is touched.
//!
//! A forked child has a copy of everything but the threads. Nothing in it is its own: `check`
//! fails, and drops leave files, lock and threads alone.
//!
//! Threads: any; no lock is held across I/O.

#![forbid(unsafe_code)]

use super::{
    lock::{DirectoryLock, Identity, in_place},
    names::LOCK_FILE,
};
use crate::{
    error::{Error, Result},
    events,
    poison::Poison,
    storage::{Storage, StorageFile},
};
use parking_lot::Mutex;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// See the module header.
pub(crate) struct OwnedDirectory {
    path: PathBuf,
    lock_path: PathBuf,
    identity: Identity,
    /// The process that opened the database.
    process: u32,
    poison: Arc<Poison>,
    /// `None` once the directory was given up by `close`. It is locked as long as anybody has this.
    lock: Mutex<Option<Arc<DirectoryLock>>>,
    released: AtomicBool,
    /// How many [`Hold`]s there are.
    holds: AtomicUsize,
    /// Seen to be another's; stays set.
    lost: AtomicBool,
}

impl OwnedDirectory {
    /// Takes over `path`, which is locked by `lock`. What `check` finds out goes to `poison`.
    pub(crate) fn new(path: &Path, lock: Arc<DirectoryLock>, poison: Arc<Poison>) -> Self {
        Self {
            path: path.to_path_buf(),
            lock_path: path.join(LOCK_FILE),
            identity: lock.identity(),
            process: std::process::id(),
            poison,
            lock: Mutex::new(Some(lock)),
            released: AtomicBool::new(false),
            holds: AtomicUsize::new(0),
            lost: AtomicBool::new(false),
        }
    }

    /// Whether files below the directory may be created, replaced or removed. Cost: a look at the
    /// file system.
    ///
    /// Errors: `DirectoryMoved` (and the handle is poisoned), `Closed`, `Unsupported` in a forked
    /// child, `Io`.
    pub(crate) fn check(&self) -> Result<()> {
        self.check_process()?;
        if self.released.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        if !self.lost.load(Ordering::Acquire) && in_place(&self.lock_path, self.identity)? {
            return Ok(());
        }
        let error = Error::DirectoryMoved {
            path: self.path.clone(),
        };
        if !self.lost.swap(true, Ordering::AcqRel) {
            events::directory_lost(&self.path);
            self.poison.set(&error);
        }
        Err(error)
    }

    /// `Unsupported` in a child that was forked after the database was opened.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.is_forked() {
            let what = "a database that another process opened (the caller is a forked child)";
            return Err(Error::Unsupported { what: what.into() });
        }
        Ok(())
    }

    /// A hold on the directory, for something that touches files until it has been dropped.
    pub(super) fn hold(self: &Arc<Self>) -> Hold {
        self.holds.fetch_add(1, Ordering::Relaxed);
        Hold {
            directory: Arc::clone(self),
        }
    }

    /// How many holds there are; what is being dropped still counts.
    pub(crate) fn holds(&self) -> usize {
        // Pairs with the release in the drop of a hold.
        self.holds.load(Ordering::Acquire)
    }

    pub(crate) fn is_forked(&self) -> bool {
        std::process::id() != self.process
    }

    /// Lets go of the lock. Whatever may write below the directory has promised that it will not.
    pub(crate) fn release(&self) {
        self.released.store(true, Ordering::Release);
        *self.lock.lock() = None;
    }

    /// Whether what was opened in `dir` may be dropped as usual, which may write or remove files
    /// there: not those of another owner.
    pub(super) fn may_drop(&self, dir: &Path) -> bool {
        if self.is_forked() {
            return false;
        }
        let theirs = match self.released.load(Ordering::Acquire) {
            true => self.lost.load(Ordering::Acquire),
            false => matches!(self.check(), Err(Error::DirectoryMoved { .. })),
        };
        // Where there is no such folder, nothing can be taken from it.
        !theirs || !dir.exists()
    }
}

/// See [`OwnedDirectory::hold`].
pub(super) struct Hold {
    pub(super) directory: Arc<OwnedDirectory>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.directory.holds.fetch_sub(1, Ordering::Release);
    }
}

/// Storage below an owned directory: names are changed only while it is owned.
pub(crate) struct OwnedStorage<D = Arc<OwnedDirectory>> {
    storage: Arc<dyn Storage>,
    directory: D,
}

impl<D> OwnedStorage<D> {
    pub(crate) fn new(storage: Arc<dyn Storage>, directory: D) -> Self {
        Self { storage, directory }
    }
}

/// Something that knows whether the directory is still the one that was locked.
pub(crate) trait Owner: Send + Sync {
    fn check(&self) -> Result<()>;
}

/// Holds the directory.
impl Owner for Arc<OwnedDirectory> {
    fn check(&self) -> Result<()> {
        OwnedDirectory::check(self)
    }
}

/// Does not: an Index Y of a directory that was moved is never dropped, and what it has must not
/// keep the lock.
impl Owner for Weak<OwnedDirectory> {
    fn check(&self) -> Result<()> {
        self.upgrade().ok_or(Error::Closed)?.check()
    }
}

impl<D: Owner> Storage for OwnedStorage<D> {
    fn create(&self, path: &Path) -> Result<Arc<dyn StorageFile>> {
        self.directory.check()?;
        self.storage.create(path)
    }

    fn open(&self, path: &Path, write: bool) -> Result<Arc<dyn StorageFile>> {
        if write {
            self.directory.check()?;
        }
        self.storage.open(path, write)
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        self.storage.list(dir)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.storage.exists(path)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.directory.check()?;
        self.storage.create_dir_all(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.directory.check()?;
        self.storage.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.directory.check()?;
        self.storage.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.storage.sync_dir(dir)
    }
}
