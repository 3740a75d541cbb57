//! Names of what lies in the directory of a database, and folders that come and go.

#![forbid(unsafe_code)]

use crate::{
    error::{Error, Result},
    storage::Storage,
};
use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    time::Duration,
};

pub(crate) const LOCK_FILE: &str = "LOCK";
pub(crate) const LOG_DIR: &str = "log";
pub(crate) const TREES_DIR: &str = "trees";
/// What snapshots need and memory has no room for. Nothing in it outlives the handle.
pub(crate) const IMAGES_DIR: &str = "images";
/// The hot set.
pub(crate) const HOT: &str = "HOT";
/// The next one, while it is written.
pub(crate) const HOT_NEXT: &str = "HOT.next";

/// Where the Index Y of a tree lives: its number, never its name.
pub(crate) fn tree_dir(root: &Path, id: u32) -> PathBuf {
    root.join(TREES_DIR).join(id.to_string())
}

/// Makes the folder of a tree whose Index Y comes from outside, so that it survives a loss of
/// power: a later open takes a missing folder for a tree that was lost.
pub(crate) fn keep_tree(storage: &dyn Storage, dir: &Path) -> Result<()> {
    storage.create_dir_all(dir)?;
    dir.parent().map_or(Ok(()), |trees| storage.sync_dir(trees))
}

/// Attempts to remove a folder while a compaction still puts files there: it has not noticed yet
/// that the tree is gone.
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

/// `path` from the root on: the process may change its working directory while the database is
/// open.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|e| Error::io("open", path, e))
}

/// `path` with symbolic links followed, in the part of it that exists.
pub(crate) fn real(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|part| {
        let rest = path.strip_prefix(part).ok()?;
        Some(std::fs::canonicalize(part).ok()?.join(rest))
    });
    there.unwrap_or_else(|| path.to_path_buf())
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
