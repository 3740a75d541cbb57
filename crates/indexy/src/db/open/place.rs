//! The place of a database: whether there is one, or one may be made, and what must not be there.
//!
//! Nothing is made over files that are somebody else's, or that are what is left of a damaged
//! database.

#![forbid(unsafe_code)]

use crate::{
    db::{
        directory::{
            self, DirectoryLock, LOCK_FILE, LOG_DIR, TREES_DIR,
            manifest::{MANIFEST_NEXT, Manifest, TreeEntry},
        },
        handle::Core,
        kinds::IndexYKind,
        options::Options,
    },
    error::{Error, Result},
    storage::Storage,
    y::{
        lsm::{OLD_FORMAT, VERSIONS},
        paged::PAGES,
    },
};
use std::path::Path;

/// Locks the directory; creates it where that is asked for.
pub(super) fn lock(storage: &dyn Storage, path: &Path, options: &Options) -> Result<DirectoryLock> {
    refuse_file(path)?;
    // A manifest that is not ours makes no database: not even a lock is put beside it.
    if !storage.exists(&path.join(LOCK_FILE))? && Manifest::read(storage, path)?.is_none() {
        if !creates(options) {
            return Err(missing(path));
        }
        refuse_foreign_files(path)?;
        directory::create_lasting(storage, path)?;
    }
    DirectoryLock::take(path, options.read_only)
}

fn creates(options: &Options) -> bool {
    options.create_if_missing && !options.read_only
}

fn missing(path: &Path) -> Error {
    Error::NoDatabase {
        path: path.to_path_buf(),
    }
}

/// Reads the manifest of the directory, which is locked; creates it where that is asked for.
pub(super) fn manifest(storage: &dyn Storage, path: &Path, options: &Options) -> Result<Manifest> {
    if let Some(manifest) = Manifest::read(storage, path)? {
        if !options.read_only {
            if manifest == Manifest::new(manifest.database_id) {
                // No tree was ever made, so nothing was ever logged.
                storage.create_dir_all(&path.join(LOG_DIR))?;
            }
            // A process may have died before this manifest's name was durable. What goes because
            // of what it says, and what is acknowledged, must not meet the one of before again.
            storage.sync_dir(path)?;
        }
        return Ok(manifest);
    }
    refuse_lost_manifest(path)?;
    if !creates(options) {
        return Err(missing(path));
    }
    // A lock is in the directory of many a program.
    refuse_foreign_files(path)?;
    storage.create_dir_all(&path.join(LOG_DIR))?;
    storage.create_dir_all(&path.join(TREES_DIR))?;
    // Also for a directory that was there: a crash may have come before its name was lasting. And
    // before there is a manifest: who finds one need not look above.
    if let Some(parent) = path.parent() {
        storage.sync_dir(parent)?;
    }
    // Without these folders a manifest is that of a database that was damaged.
    storage.sync_dir(path)?;
    let manifest = Manifest::new(random_id());
    manifest.write(storage, path)?;
    Ok(manifest)
}

/// `NotADirectory` where `path`, or something above it, is a file.
fn refuse_file(path: &Path) -> Result<()> {
    let is_file = match std::fs::metadata(path) {
        Ok(meta) => !meta.is_dir(),
        Err(e) => e.kind() == std::io::ErrorKind::NotADirectory,
    };
    match is_file {
        true => Err(Error::NotADirectory {
            path: path.to_path_buf(),
        }),
        false => Ok(()),
    }
}

/// A new database is not made among other files. What a loss of power left of a database that was
/// being made does not count as such: its names reach the disk in any order.
fn refuse_foreign_files(path: &Path) -> Result<()> {
    let entries = match std::fs::read_dir(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|e| Error::io("open", path, e))?,
    };
    for entry in entries {
        let entry = entry.map_err(|e| Error::io("open", path, e))?;
        let is_empty = || std::fs::read_dir(entry.path()).is_ok_and(|mut e| e.next().is_none());
        let ours = match entry.file_name().to_str() {
            Some(LOG_DIR | TREES_DIR) => is_empty(),
            Some(name) => name == MANIFEST_NEXT || name == LOCK_FILE,
            None => false,
        };
        if !ours {
            return Err(Error::DestinationNotEmpty {
                path: path.to_path_buf(),
            });
        }
    }
    Ok(())
}

/// A directory with a log or trees and no manifest was a database: it is not made anew over them.
fn refuse_lost_manifest(path: &Path) -> Result<()> {
    for dir in [path.join(LOG_DIR), path.join(TREES_DIR)] {
        let first = match std::fs::read_dir(&dir) {
            Ok(mut entries) => entries.next(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            Err(e) => return Err(Error::io("open", dir, e)),
        };
        if first.is_some() {
            let manifest = Manifest::path(path);
            return Err(Error::corrupt(manifest, 0, "the manifest is missing"));
        }
    }
    Ok(())
}

/// A tree was whole before the manifest named it. If the file that it begins with is gone, it was
/// lost, and is not made anew. (An Index Y from outside may keep an empty directory, but it has
/// one.)
pub(super) fn refuse_lost_tree(core: &Core, entry: &TreeEntry) -> Result<()> {
    let dir = directory::tree_dir(&core.path, entry.id);
    let lost = match std::fs::read_dir(&dir) {
        Ok(mut entries) => match entry.index_y {
            IndexYKind::Custom(_) => false,
            IndexYKind::RocksDb => entries.next().is_none(),
            IndexYKind::Lsm => {
                is_missing(&dir.join(VERSIONS))? && is_missing(&dir.join(OLD_FORMAT))?
            }
            IndexYKind::BPlus { .. } => is_missing(&dir.join(PAGES))?,
        },
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => true,
        Err(e) => return Err(Error::io("open", dir, e)),
    };
    match lost {
        true => Err(Error::corrupt(dir, 0, "the files of the tree are missing")),
        false => Ok(()),
    }
}

fn is_missing(path: &Path) -> Result<bool> {
    let exists = path.try_exists().map_err(|e| Error::io("open", path, e))?;
    Ok(!exists)
}

/// An id that no other database has: the process's hasher keys are random, time and pid tell them
/// apart.
fn random_id() -> u128 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let half = || {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        hasher.write_u128(std::time::UNIX_EPOCH.elapsed().map_or(0, |d| d.as_nanos()));
        u128::from(hasher.finish())
    };
    (half() << 64) | half()
}
