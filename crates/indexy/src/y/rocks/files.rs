//! Names in the folder of a tree that are ours or that we look at.

#![forbid(unsafe_code)]

use crate::error::{Error, Result};
use std::{fs, io, path::Path};

/// Names the manifest in use.
pub(super) const CURRENT: &str = "CURRENT";
/// Where the tables of a run are written: RocksDB does not look into folders.
pub(super) const INCOMING: &str = "incoming";

/// Removes tables of a run that a crash cut short.
pub(super) fn remove_leftovers(dir: &Path) -> Result<()> {
    let incoming = dir.join(INCOMING);
    match fs::remove_dir_all(&incoming) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", incoming, e)),
        _ => Ok(()),
    }
}
