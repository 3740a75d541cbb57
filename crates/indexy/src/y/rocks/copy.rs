//! A consistent copy of a tree, durable when done. Tables never change, so they are hard-linked
//! where the file system can.

#![forbid(unsafe_code)]

use super::{
    engine::{Engine, sync},
    fault::typed,
};
use crate::error::{Error, Result};
use rocksdb::checkpoint::Checkpoint;
use std::{fs, path::Path};

/// Copies the tree in `dir` into the absent directory `dest`. The caller keeps runs away; RocksDB
/// holds deletions off.
pub(super) fn copy(engine: &Engine, dir: &Path, dest: &Path) -> Result<()> {
    let copied = checkpoint(engine, dir, dest).and_then(|()| make_durable(dest));
    if copied.is_err() {
        // Half a copy is of no use; the first error is the one to report.
        let _ = fs::remove_dir_all(dest);
    }
    copied
}

fn checkpoint(engine: &Engine, dir: &Path, dest: &Path) -> Result<()> {
    if let Some(parent) = dest.parent() {
        fs::create_dir_all(parent).map_err(|e| Error::io("create", parent, e))?;
    }
    Checkpoint::new(&engine.db)
        .and_then(|checkpoint| checkpoint.create_checkpoint(dest))
        .map_err(|e| typed(dir, "copy", &e))
}

/// Syncs everything: the linked tables were synced when they were written, which makes this quick.
fn make_durable(dest: &Path) -> Result<()> {
    for file in fs::read_dir(dest).map_err(|e| Error::io("list", dest, e))? {
        sync(&file.map_err(|e| Error::io("list", dest, e))?.path())?;
    }
    sync(dest)?;
    dest.parent().map_or(Ok(()), sync)
}
