//! What lies in the directory of a tree: the version log, and the folder of the tables.
//!
//! Threads: the one that opens the tree, or makes a copy of one.

#![forbid(unsafe_code)]

use super::{
    facts::MOST_TABLES,
    log::{Change, Hunk, Log, Placed},
};
use crate::{
    error::{Error, Result},
    storage::Storage,
};
use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

/// The version log.
pub(crate) const VERSIONS: &str = "versions";
/// The version log while it is being written anew.
pub(super) const NEW_VERSIONS: &str = "versions.new";
/// The folder of the tables.
pub(crate) const TABLES: &str = "tables";

/// The file of table `number` of the tree in `dir`.
pub(crate) fn table_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(TABLES).join(number.to_string())
}

/// Makes an empty tree; a crash leaves it whole or not there.
pub(super) fn create(storage: &dyn Storage, dir: &Path, owner: u64) -> Result<()> {
    storage.create_dir_all(&dir.join(TABLES))?;
    if files(storage, dir)?.is_some_and(|files| !files.is_empty()) {
        // The log is durable before the first table is written.
        let what = "the version log of these tables is missing".to_string();
        return Err(Error::corrupt(dir.join(VERSIONS), 0, what));
    }
    let empty = Change {
        tables: Vec::new(),
        hunks: vec![Hunk {
            at: 0,
            removed: 0,
            inserted: vec![Placed::default()],
        }],
        ..Change::default()
    };
    write_log(storage, dir, owner, &empty)?;
    // The directory's own name must last too.
    dir.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .map_or(Ok(()), |parent| storage.sync_dir(parent))
}

pub(super) fn write_log(
    storage: &dyn Storage,
    dir: &Path,
    owner: u64,
    version: &Change,
) -> Result<()> {
    let new = dir.join(NEW_VERSIONS);
    Log::create(storage, &new, owner, 1, &version.encode())?;
    storage.rename(&new, &dir.join(VERSIONS))?;
    storage.sync_dir(dir)
}

/// Numbers of the tables that have a file. `None`: the folder is missing, as in a copy of a tree
/// without tables.
pub(super) fn files(storage: &dyn Storage, dir: &Path) -> Result<Option<BTreeSet<u64>>> {
    let names = match storage.list(&dir.join(TABLES)) {
        Err(error) if is_missing(&error) => return Ok(None),
        listed => listed?,
    };
    let number = |name: &PathBuf| {
        let number: u64 = name.to_str()?.parse().ok()?;
        // Another spelling of a number is nobody's file, and so is a number that leaves no others.
        let ours = number < MOST_TABLES / 2 && name.as_os_str() == &*number.to_string();
        ours.then_some(number)
    };
    Ok(Some(names.iter().filter_map(number).collect()))
}

pub(super) fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
}
