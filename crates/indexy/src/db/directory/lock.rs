//! The lock of a database's directory, against other processes and against this one.
//!
//! The kernel lets go of it when the process dies. It belongs to the open file, of which a child
//! process has a copy until it runs its own program; closing ours would not end the lock before
//! that. So the lock is ended explicitly, by the process that took it.
//!
//! Threads: any. A process-wide list of what this process has locked lets [`Error::Locked`] say who
//! holds a directory; it is changed together with the locks, under one mutex, and never held long.

#![forbid(unsafe_code)]

use super::names::LOCK_FILE;
use crate::error::{Error, Result};
use parking_lot::{Mutex, MutexGuard};
use std::{
    fs::{File, Metadata, OpenOptions, TryLockError},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

/// Device and inode: what a file is, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
        }
    }
}

/// A lock that this process holds. The process is noted because a child starts with a copy of the
/// list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    identity: Identity,
    process: u32,
}

static HELD: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// In a child that was forked while another thread had it, the list stays locked.
const LIST_LIMIT: Duration = Duration::from_secs(1);

fn held() -> Option<MutexGuard<'static, Vec<Entry>>> {
    HELD.try_lock_for(LIST_LIMIT)
}

/// Attempts to lock a file that is replaced meanwhile.
const TRIES: u32 = 16;

/// Holds a directory while it lives.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    file: File,
    path: PathBuf,
    entry: Entry,
}

impl DirectoryLock {
    /// Locks `dir`: alone for writing, shared for reading, where nothing is created.
    ///
    /// Errors: `Locked`, `Io`.
    pub(crate) fn take(dir: &Path, read_only: bool) -> Result<Self> {
        let path = dir.join(LOCK_FILE);
        for _ in 0..TRIES {
            let lock = Self::take_file(&path, read_only)?;
            // Whoever removed the file that was locked may have let a third one lock the next.
            if lock.is_in_place()? {
                return Ok(lock);
            }
        }
        Err(Error::Locked {
            path,
            this_process: false,
        })
    }

    fn take_file(path: &Path, read_only: bool) -> Result<Self> {
        let file = match read_only {
            true => File::open(path),
            false => OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(path),
        };
        let file = file.map_err(|e| Error::io("open", path, e))?;
        let meta = file.metadata().map_err(|e| Error::io("open", path, e))?;
        let entry = Entry {
            identity: Identity::of(&meta),
            process: std::process::id(),
        };
        let mut held = held();
        let locked = match read_only {
            true => file.try_lock_shared(),
            false => file.try_lock(),
        };
        match locked {
            Ok(()) => {
                if let Some(held) = &mut held {
                    held.push(entry);
                }
                Ok(Self {
                    file,
                    path: path.to_path_buf(),
                    entry,
                })
            }
            Err(TryLockError::WouldBlock) => Err(Error::Locked {
                path: path.to_path_buf(),
                this_process: held.is_some_and(|held| held.contains(&entry)),
            }),
            Err(TryLockError::Error(e)) => Err(Error::io("lock", path, e)),
        }
    }

    /// Whether the locked file is still the one that its path names. Cost: a look at the file
    /// system.
    ///
    /// Errors: `Io`, where that cannot be found out.
    pub(crate) fn is_in_place(&self) -> Result<bool> {
        in_place(&self.path, self.entry.identity)
    }

    pub(crate) fn identity(&self) -> Identity {
        self.entry.identity
    }
}

/// Whether `path` names the file `identity`.
pub(super) fn in_place(path: &Path, identity: Identity) -> Result<bool> {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    match std::fs::metadata(path) {
        Ok(meta) => Ok(Identity::of(&meta) == identity),
        Err(e) if matches!(e.kind(), NotFound | NotADirectory) => Ok(false),
        Err(e) => Err(Error::io("look up", path, e)),
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // A forked child has the parent's lock, which is not its own to end.
        if self.entry.process != std::process::id() {
            return;
        }
        let mut held = held();
        // If this fails, closing the file does it.
        let _ = self.file.unlock();
        if let Some(held) = &mut held
            && let Some(at) = held.iter().position(|entry| *entry == self.entry)
        {
            held.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a process that is just being started has of the lock.
    #[test]
    fn the_lock_ends_although_the_open_file_has_a_copy() {
        let dir = tempfile::tempdir().unwrap();
        for read_only in [false, true] {
            let lock = DirectoryLock::take(dir.path(), read_only).unwrap();
            let copy = lock.file.try_clone().unwrap();
            assert!(matches!(
                DirectoryLock::take(dir.path(), false),
                Err(Error::Locked {
                    this_process: true,
                    ..
                })
            ));
            drop(lock);
            drop(DirectoryLock::take(dir.path(), false).unwrap());
            drop(copy);
        }
    }

    #[test]
    fn the_list_of_locks_is_empty_of_what_was_let_go() {
        let dir = tempfile::tempdir().unwrap();
        drop(DirectoryLock::take(dir.path(), false).unwrap());
        let readers = [(); 2].map(|()| DirectoryLock::take(dir.path(), true).unwrap());
        let entry = readers[0].entry;
        let count = || HELD.lock().iter().filter(|e| **e == entry).count();
        assert_eq!(count(), 2);
        drop(readers);
        assert_eq!(count(), 0);
    }

    #[test]
    fn a_lock_file_that_was_replaced_is_no_longer_in_place() {
        let dir = tempfile::tempdir().unwrap();
        let lock = DirectoryLock::take(dir.path(), false).unwrap();
        assert!(lock.is_in_place().unwrap());
        std::fs::remove_file(&lock.path).unwrap();
        assert!(!lock.is_in_place().unwrap());
        let next = DirectoryLock::take(dir.path(), false).unwrap();
        assert!(!lock.is_in_place().unwrap() && next.is_in_place().unwrap());
    }
}
