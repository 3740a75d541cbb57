//! One sorted run into the engine.

#![forbid(unsafe_code)]

use crate::{
    error::{Error, Result},
    limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES},
    y::RunSource,
    y::lsm::{
        engine_calls::{contain, contain_any},
        keys,
        read::snapshot::NEWEST,
    },
};
use lsm_tree::{AbstractTree, AnyIngestion, AnyTree};
use std::{fs::File, path::Path};

/// Files and directories that the engine has open at once, beside the tables that it writes, when
/// it changes its manifest.
const MANIFEST_DESCRIPTORS: usize = 8;

/// Streams `source` into new tables and publishes them. After `Ok` the run is visible in the
/// engine's newest version and durable.
///
/// After `Err` the engine has what it had; table files may be left (`orphans.rs`).
pub(super) fn write_run(tree: &AnyTree, dir: &Path, source: &mut dyn RunSource) -> Result<()> {
    // Begun with the first entry: an empty one would leave a file.
    let mut ingestion: Option<AnyIngestion<'_>> = None;
    let mut last: Option<Vec<u8>> = None;
    source.drain(&mut |(key, value)| {
        check(key, value, last.as_deref())?;
        let ingestion = match &mut ingestion {
            Some(ingestion) => ingestion,
            empty => empty.insert(contain(dir, "create", || tree.ingestion())?),
        };
        let stored = keys::stored(key);
        contain(dir, "write", || match value {
            Some(value) => ingestion.write(&*stored, value),
            None => ingestion.write_tombstone(&*stored),
        })?;
        let last = last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        Ok(())
    })?;
    source.before_publish()?; // I5
    let Some(ingestion) = ingestion else {
        return Ok(());
    };
    descriptors_left(dir)?;
    contain(dir, "publish", || ingestion.finish())?;
    forget_old_versions(tree, dir)
}

/// Fails, transiently, when a change of the manifest would not find the descriptors that it needs:
/// one that fails halfway ends the tree. Only likely to be right: other threads open files too.
pub(super) fn descriptors_left(dir: &Path) -> Result<()> {
    let mut opened = Vec::with_capacity(MANIFEST_DESCRIPTORS);
    for _ in 0..MANIFEST_DESCRIPTORS {
        opened.push(File::open(dir).map_err(|e| Error::io("open", dir, e))?);
    }
    Ok(())
}

/// The engine asserts what is checked here.
fn check(key: &[u8], value: Option<&[u8]>, last: Option<&[u8]>) -> Result<()> {
    if key.len() > MAX_KEY_BYTES {
        return Err(Error::KeyTooLong {
            len: key.len(),
            limit: MAX_KEY_BYTES,
        });
    }
    if let Some(value) = value
        && value.len() > MAX_VALUE_BYTES
    {
        return Err(Error::ValueTooLong {
            len: value.len(),
            limit: MAX_VALUE_BYTES,
        });
    }
    if last.is_some_and(|last| key <= last) {
        return Err(Error::Unsupported {
            what: "a run whose keys do not ascend".into(),
        });
    }
    Ok(())
}

/// Removes version files that no longer count; the engine itself does so only when it compacts.
fn forget_old_versions(tree: &AnyTree, dir: &Path) -> Result<()> {
    let tidied = contain_any(dir, || {
        tree.get_version_history_lock().maintenance(dir, NEWEST)
    })?;
    // The run is in place; a version file too many is removed by the next change or open.
    drop(tidied);
    Ok(())
}
