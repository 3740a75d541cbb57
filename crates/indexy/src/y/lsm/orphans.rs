//! Files that belong to nothing: what runs and compactions left that did not come to be.
//!
//! The engine removes them only when it opens a tree. Who may remove them when is in `tree.rs`.

#![forbid(unsafe_code)]

use crate::error::{Error, Result};
use std::{fs, io, path::Path};

/// Removes what a crash left of the atomic replacement of `current`; the engine does not.
pub(crate) fn stale_temporaries(dir: &Path) -> Result<()> {
    remove_all(dir, |name| name.starts_with(".tmp"))
}

pub(crate) fn remove_all(dir: &Path, unwanted: impl Fn(&str) -> bool) -> Result<()> {
    for entry in fs::read_dir(dir).map_err(|e| Error::io("list", dir, e))? {
        let entry = entry.map_err(|e| Error::io("list", dir, e))?;
        if !entry.file_name().to_str().is_some_and(&unwanted) {
            continue;
        }
        match fs::remove_file(entry.path()) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove", entry.path(), e));
            }
            _ => {}
        }
    }
    Ok(())
}
