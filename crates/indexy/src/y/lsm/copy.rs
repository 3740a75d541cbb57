//! A consistent copy of a tree's files, durable when done.
//!
//! Tables never change, so they are hard-linked (copied where the file system cannot); the
//! manifest is copied. The caller keeps writers and compaction away.

#![forbid(unsafe_code)]

use super::manifest::{self, CURRENT, TABLES};
use crate::error::{Error, Result};
use std::{
    fs::{self, File},
    path::Path,
};

/// Copies the tree in `dir` into the absent directory `dest`. Cost: a few fsyncs, or as many bytes as the tree has.
pub(super) fn copy(dir: &Path, dest: &Path) -> Result<()> {
    let Some(manifest) = manifest::load(dir)? else {
        return Err(Error::corrupt(dir.join(CURRENT), 0, "missing"));
    };
    let copied = copy_files(dir, dest, &manifest);
    if copied.is_err() {
        // Half a copy is of no use; the first error is the one to report.
        let _ = fs::remove_dir_all(dest);
    }
    copied
}

fn copy_files(dir: &Path, dest: &Path, manifest: &manifest::Manifest) -> Result<()> {
    let tables = dest.join(TABLES);
    fs::create_dir_all(&tables).map_err(|e| Error::io("create", &tables, e))?;
    for table in manifest.tables() {
        let from = manifest::table_path(dir, table.id);
        let to = manifest::table_path(dest, table.id);
        if fs::hard_link(&from, &to).is_err() {
            copy_file(&from, &to)?;
        }
    }
    sync(&tables)?;
    let version = manifest.version;
    copy_file(
        &manifest::version_path(dir, version),
        &manifest::version_path(dest, version),
    )?;
    // Last: a copy cut short by a crash does not look like a tree.
    copy_file(&dir.join(CURRENT), &dest.join(CURRENT))?;
    sync(dest)?;
    dest.parent().map_or(Ok(()), sync)
}

fn copy_file(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map_err(|e| Error::io("copy", to, e))?;
    sync(to)
}

/// Makes a file's bytes, or a directory's names, durable.
pub(super) fn sync(path: &Path) -> Result<()> {
    // The parent of a relative path of one name is the empty path.
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(|e| Error::io("sync", path, e))
}
