//! `checkpoint`: a copy that opens as a database of its own.
//!
//! Order: hold the log; copy every Y; copy the log up to an LSN that is durable by then; write the
//! manifest, which makes the directory a database. What a copied Y has was logged before (I5). What
//! it does not have is in the copied log, because truncation pauses (I6). So replay brings both to
//! one state: that of the last LSN copied.
//!
//! A sorted load is in the log by a record alone, and in Y: it ends before the copy begins, or it
//! waits.
//!
//! Not through a snapshot: a snapshot is read entry by entry, and writers keep what they overwrite
//! meanwhile. Here files are linked or copied as they are, and the log alone says what the moment
//! is. What is held: truncation of the log; the lock of sorted loads; the run lock of a tree whose
//! Y cannot copy beside runs, for that copy.
//!
//! Threads: writers, cleaning and new trees go on meanwhile. Only the last look at the manifest
//! holds its lock.

#![forbid(unsafe_code)]

use super::{
    directory::{
        self, IMAGES_DIR, LOG_DIR, TREES_DIR, claim, manifest::Manifest, real, remove_unfinished,
        tree_dir,
    },
    handle::{Core, TreeCore},
};
use crate::{
    error::{Error, Result},
    wal::Lsn,
};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Looks for trees that were made while others were copied, before the making of trees is held up.
const PASSES: u32 = 4;

pub(super) fn checkpoint(core: &Core, dest: &Path) -> Result<()> {
    let dest = &*directory::absolute(dest)?;
    let (root, real) = (real(&core.path), real(dest));
    let ours = [TREES_DIR, LOG_DIR, IMAGES_DIR].map(|name| root.join(name));
    if ours.iter().any(|dir| real.starts_with(dir)) {
        // What is there and unknown is removed when the database is opened next.
        return Err(Error::DestinationNotEmpty {
            path: dest.to_path_buf(),
        });
    }
    let claim = claim(dest)?;
    let copied = copy(core, dest);
    if copied.is_err() {
        // Half a copy is of no use; the first error is the one to report.
        remove_unfinished(dest, claim.made);
    }
    copied
}

fn copy(core: &Core, dest: &Path) -> Result<()> {
    // A load is wholly in what is copied, in Y and in the log, or in neither.
    let _no_load = core.loads.lock();
    let log = core.shared.log.get();
    let _hold = log.map(|log| log.hold());
    // I6: read with the log held, and before any Y is copied: what lies below is in every copied Y.
    let log_start = core.manifest.lock().log_start;
    if log.is_none() && !core.options.read_only {
        // Without a log the moment is that of a flush.
        for tree in core.all_joined() {
            tree.flush()?;
        }
    }
    create_dir(&dest.join(TREES_DIR))?;
    create_dir(&dest.join(LOG_DIR))?;
    let (manifest, upto) = copy_trees(core, dest)?;
    let mut manifest = Manifest {
        log_start,
        ..manifest
    };
    let log_dir = dest.join(LOG_DIR);
    if let (Some(log), Some(upto)) = (log, upto) {
        log.wait_durable(upto)?;
        log.copy_to(&log_dir, upto)?;
        manifest.log_durable = upto.0;
    } else if core.options.read_only {
        copy_files(&core.log_dir(), &log_dir)?;
    } else {
        // There is nothing to replay: no log is copied, and none is missing.
        manifest.log_durable = 0;
    }
    core.storage.sync_dir(&dest.join(TREES_DIR))?;
    core.storage.sync_dir(&log_dir)?;
    manifest.write(&*core.storage, dest)?;
    core.storage.sync_dir(dest)?;
    dest.parent()
        .map_or(Ok(()), |parent| core.storage.sync_dir(parent))
}

/// Copies the Y of every tree. Returns the manifest that names exactly these, and the end of the
/// log at a moment when it was the manifest.
fn copy_trees(core: &Core, dest: &Path) -> Result<(Manifest, Option<Lsn>)> {
    let mut copied: BTreeMap<u32, PathBuf> = BTreeMap::new();
    for _ in 0..PASSES {
        copy_missing(&core.all_trees(), dest, &mut copied)?;
    }
    // From here to the end that is read, no tree comes or goes.
    let manifest = core.manifest.lock();
    let named: Vec<_> = core
        .all_trees()
        .into_iter()
        .filter(|tree| manifest.trees.iter().any(|t| t.id == tree.entry.id))
        .collect();
    copy_missing(&named, dest, &mut copied)?;
    for tree in &named {
        // An Index Y from outside may have had nothing to put there; where it is missing later, a
        // tree was lost.
        let dir = tree_dir(dest, tree.entry.id);
        core.storage.create_dir_all(&dir)?;
    }
    let upto = core.shared.log.get().map(|log| log.end());
    for (id, dir) in copied {
        // Dropped meanwhile.
        if named.iter().all(|tree| tree.entry.id != id) {
            directory::remove_tree(&dir)?;
        }
    }
    Ok((manifest.clone(), upto))
}

fn copy_missing(
    trees: &[Arc<TreeCore>],
    dest: &Path,
    copied: &mut BTreeMap<u32, PathBuf>,
) -> Result<()> {
    for tree in trees {
        let id = tree.entry.id;
        if copied.contains_key(&id) {
            continue;
        }
        let dir = tree_dir(dest, id);
        match tree.joined.writer.copy_to(&dir) {
            Err(error) if tree.live().is_ok() => return Err(error),
            _ => copied.insert(id, dir),
        };
    }
    Ok(())
}

fn create_dir(path: &Path) -> Result<()> {
    std::fs::create_dir(path).map_err(|e| Error::io("create", path, e))
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
