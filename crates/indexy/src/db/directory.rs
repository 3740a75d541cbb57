//! The directory of a database: names of its files, the lock against a second process, and
//! what the machine lets the process use.

#![forbid(unsafe_code)]

use crate::{
    error::{Error, Result},
    storage::Storage,
};
use std::{
    fs::{File, OpenOptions, TryLockError},
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

pub(crate) const LOCK_FILE: &str = "LOCK";
pub(crate) const LOG_DIR: &str = "log";
pub(crate) const TREES_DIR: &str = "trees";

/// Where the Index Y of a tree lives: its number, never its name.
pub(crate) fn tree_dir(root: &Path, id: u32) -> PathBuf {
    root.join(TREES_DIR).join(id.to_string())
}

/// The directory of a tree whose Index Y comes from outside is there, also after a loss of power: that it is missing tells
/// later that it was lost.
pub(crate) fn keep_tree(storage: &dyn Storage, dir: &Path) -> Result<()> {
    storage.create_dir_all(dir)?;
    dir.parent().map_or(Ok(()), |trees| storage.sync_dir(trees))
}

/// A compaction of the tree may be putting files there, until it notices that the tree is gone.
const REMOVE_TRIES: u32 = 200;
const REMOVE_PAUSE: Duration = Duration::from_millis(5);

/// Removes the folder of a tree that was dropped. What cannot be removed now goes at the next open.
pub(crate) fn remove_tree(dir: &Path) -> Result<()> {
    for _ in 0..REMOVE_TRIES {
        match std::fs::remove_dir_all(dir) {
            Err(e) if e.kind() == ErrorKind::DirectoryNotEmpty => std::thread::sleep(REMOVE_PAUSE),
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::io("remove", dir, e)),
            _ => return Ok(()),
        }
    }
    Ok(())
}

/// Holds the directory against other processes while it lives. The kernel lets go when the process dies.
///
/// The lock belongs to the open file, of which a process has one more copy each time that it starts another one, until
/// that one runs its program. Closing ours would not end the lock before that; so it is ended in so many words.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    file: File,
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // What fails here is made up for by closing the file.
        let _ = self.file.unlock();
    }
}

impl DirectoryLock {
    /// Locks `dir`: alone for writing, shared for reading, where nothing is created.
    pub(crate) fn take(dir: &Path, read_only: bool) -> Result<Self> {
        let path = dir.join(LOCK_FILE);
        let file = if read_only {
            File::open(&path)
        } else {
            OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)
        };
        let file = file.map_err(|e| Error::io("open", &path, e))?;
        let locked = if read_only {
            file.try_lock_shared()
        } else {
            file.try_lock()
        };
        match locked {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => Err(Error::Locked { path }),
            Err(TryLockError::Error(e)) => Err(Error::io("lock", &path, e)),
        }
    }
}

/// `path` from the root on: the process may go to another working directory while the database is open.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|e| Error::io("open", path, e))
}

/// Makes `dir` and what is missing above it, so that all these names survive a loss of power.
pub(crate) fn create_lasting(storage: &dyn Storage, dir: &Path) -> Result<()> {
    let mut missing = Vec::new();
    let mut at = Some(dir);
    while let Some(dir) = at
        && !storage.exists(dir)?
    {
        missing.push(dir);
        at = dir.parent();
    }
    storage.create_dir_all(dir)?;
    for parent in missing.iter().rev().filter_map(|dir| dir.parent()) {
        storage.sync_dir(parent)?;
    }
    Ok(())
}

/// Of a budget of `bytes` what the machine has: nothing is made larger than that, whatever the budget says. Cost: a load, unless the
/// budget is larger than that.
pub(crate) fn usable(bytes: usize) -> usize {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    if bytes <= SEEN.load(Relaxed) {
        return bytes;
    }
    let machine = memory_limit_bytes();
    SEEN.store(machine, Relaxed);
    bytes.min(machine)
}

/// Memory that this process may use, in bytes: the smallest of its cgroup limits (v1, v2) and physical memory.
pub(crate) fn memory_limit_bytes() -> usize {
    let physical = rustix::param::page_size() as u64 * physical_pages();
    cgroup_limits()
        .into_iter()
        .fold(physical, u64::min)
        .try_into()
        .unwrap_or(usize::MAX)
}

fn physical_pages() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|l| l.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .and_then(|n| n.trim().parse::<u64>().ok());
    // Without /proc: a gibibyte, which every machine of today has.
    kib.unwrap_or(1 << 20) * 1024 / rustix::param::page_size() as u64
}

/// Limits of the memory cgroups that the process is in, and of their parents.
fn cgroup_limits() -> Vec<u64> {
    let mut limits = Vec::new();
    for line in std::fs::read_to_string("/proc/self/cgroup")
        .unwrap_or_default()
        .lines()
    {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let (mount, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            c if c.split(',').any(|c| c == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let mut group = Some(Path::new(path));
        while let Some(at) = group {
            let relative = at.strip_prefix("/").unwrap_or(at);
            let text = std::fs::read_to_string(Path::new(mount).join(relative).join(file));
            limits.extend(text.ok().and_then(|t| t.trim().parse::<u64>().ok()));
            group = at.parent();
        }
    }
    limits
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
                Err(Error::Locked { .. })
            ));
            drop(lock);
            drop(DirectoryLock::take(dir.path(), false).unwrap());
            drop(copy);
        }
    }
}
