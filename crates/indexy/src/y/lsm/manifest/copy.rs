//! A consistent copy of a tree's files, durable when done.
//!
//! Tables never change, so they are hard-linked (copied where the file system cannot); the
//! manifest is copied.

#![forbid(unsafe_code)]

use crate::{
    error::{Error, Result},
    y::lsm::manifest::{self, CURRENT, Manifest, TABLES},
};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

/// What makes the tree in a directory: the manifest's files as they were, and which tables it
/// names.
pub(crate) struct Image {
    dir: PathBuf,
    manifest: Manifest,
    version: Vec<u8>,
    current: Vec<u8>,
}

impl Image {
    /// The present one. The caller keeps writers and compaction away meanwhile, and the tables from
    /// being removed until it is written.
    pub(crate) fn of(dir: &Path) -> Result<Self> {
        let Some(manifest) = manifest::load(dir)? else {
            return Err(Error::corrupt(dir.join(CURRENT), 0, "missing"));
        };
        Ok(Self {
            version: read(&manifest::version_path(dir, manifest.version))?,
            current: read(&dir.join(CURRENT))?,
            dir: dir.to_path_buf(),
            manifest,
        })
    }

    /// Writes it into the absent directory `dest`. Cost: a few fsyncs, or as many bytes as the tree
    /// has.
    pub(crate) fn write(&self, dest: &Path) -> Result<()> {
        let written = self.write_files(dest);
        if written.is_err() {
            // Half a copy is of no use; the first error is the one to report.
            let _ = fs::remove_dir_all(dest);
        }
        written
    }

    fn write_files(&self, dest: &Path) -> Result<()> {
        let tables = dest.join(TABLES);
        fs::create_dir_all(&tables).map_err(|e| Error::io("create", &tables, e))?;
        for table in self.manifest.tables() {
            let from = manifest::table_path(&self.dir, table.id);
            let to = manifest::table_path(dest, table.id);
            if fs::hard_link(&from, &to).is_err() {
                copy_file(&from, &to)?;
            }
        }
        sync(&tables)?;
        let version = manifest::version_path(dest, self.manifest.version);
        write_file(&version, &self.version)?;
        // Last: a copy cut short by a crash does not look like a tree.
        write_file(&dest.join(CURRENT), &self.current)?;
        sync(dest)?;
        dest.parent().map_or(Ok(()), sync)
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|e| Error::io("read", path, e))
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(|e| Error::io("write", path, e))?;
    sync(path)
}

fn copy_file(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map_err(|e| Error::io("copy", to, e))?;
    sync(to)
}

/// Makes a file's bytes, or a directory's names, durable.
pub(crate) fn sync(path: &Path) -> Result<()> {
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
