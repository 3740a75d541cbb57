//! `checkpoint`: a copy that opens as a database of its own.
//!
//! Source: design 3. Order: hold the log; copy every Y; then the log up to an LSN that is durable afterwards; then the
//! manifest, which makes the directory a database. What Y has was logged before (I5), what is not in a copied Y is in the
//! copied log (I6: truncation pauses), so replay makes both one state: that of the last LSN copied.

#![forbid(unsafe_code)]

use super::{
    core::Core,
    directory::{LOCK_FILE, LOG_DIR, TREES_DIR, tree_dir},
    manifest::Manifest,
};
use crate::error::{Error, Result};
use std::path::Path;

pub(super) fn checkpoint(core: &Core, dest: &Path) -> Result<()> {
    prepare(dest)?;
    // Held to the end: no tree comes or goes, and the start of the log stays.
    let manifest = core.manifest.lock();
    let mut copy: Manifest = manifest.clone();
    let log = core.shared.log.get();
    let _hold = log.map(|log| log.hold());
    if log.is_none() && !core.options.read_only {
        // Without a log the moment is that of a flush.
        for tree in core.all_joined() {
            tree.flush()?;
        }
    }
    let trees = dest.join(TREES_DIR);
    std::fs::create_dir(&trees).map_err(|e| Error::io("create", &trees, e))?;
    for tree in core.all_trees() {
        tree.joined.copy_y_to(&tree_dir(dest, tree.entry.id))?;
    }
    let log_dir = dest.join(LOG_DIR);
    core.storage.create_dir_all(&log_dir)?;
    if let Some(log) = log {
        let upto = log.end();
        log.wait_durable(upto)?;
        log.copy_to(&log_dir, upto)?;
        copy.log_durable = upto.0;
    } else if core.options.read_only {
        copy_files(&core.log_dir(), &log_dir)?;
    }
    core.storage.sync_dir(&trees)?;
    core.storage.sync_dir(&log_dir)?;
    let lock = dest.join(LOCK_FILE);
    std::fs::File::create(&lock).map_err(|e| Error::io("create", &lock, e))?;
    copy.write(&*core.storage, dest)?;
    match dest.parent().filter(|p| !p.as_os_str().is_empty()) {
        Some(parent) => core.storage.sync_dir(parent),
        None => Ok(()),
    }
}

/// The destination is absent or an empty directory.
fn prepare(dest: &Path) -> Result<()> {
    match std::fs::read_dir(dest) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(Error::DestinationNotEmpty {
                path: dest.to_path_buf(),
            }),
        },
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            std::fs::create_dir_all(dest).map_err(|e| Error::io("create", dest, e))
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotADirectory => {
            Err(Error::DestinationNotEmpty {
                path: dest.to_path_buf(),
            })
        }
        Err(e) => Err(Error::io("open", dest, e)),
    }
}

/// Copies the files of a directory that nobody writes.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    for entry in std::fs::read_dir(from).map_err(|e| Error::io("list", from, e))? {
        let entry = entry.map_err(|e| Error::io("list", from, e))?;
        let dest = to.join(entry.file_name());
        std::fs::copy(entry.path(), &dest).map_err(|e| Error::io("copy", entry.path(), e))?;
        std::fs::File::open(&dest)
            .and_then(|f| f.sync_all())
            .map_err(|e| Error::io("sync", &dest, e))?;
    }
    Ok(())
}
