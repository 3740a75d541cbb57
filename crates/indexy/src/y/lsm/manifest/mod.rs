//! The engine's manifest, read and checked by us before the engine sees it.
//!
//! `current` (25 bytes) names a version and its checksum; `v<N>` is an archive that lists the
//! tables of every level. The engine writes that checksum and never compares it, so a
//! flipped byte in `v<N>` would silently lose tables or order them wrongly. It is compared here.
//! Keeps: "never wrong data". Not here: blocks of tables, which the engine checks on each load.

#![forbid(unsafe_code)]

pub(crate) mod archive;
pub(crate) mod copy;

use crate::{
    error::{Error, Result},
    y::lsm::manifest::archive::Reader,
};
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use xxhash_rust::xxh3::xxh3_128;

pub(crate) const CURRENT: &str = "current";
pub(crate) const TABLES: &str = "tables";
const CURRENT_BYTES: usize = 25;
/// The engine's fixed number of levels.
const LEVELS: u8 = 7;
const FORMAT_VERSION: u8 = 3;

/// A table as the manifest lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableRef {
    pub id: u64,
    /// XXH3-128 of the whole file.
    pub checksum: u128,
    pub global_seqno: u64,
}

/// A version: levels of runs of tables, newest run first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub version: u64,
    pub levels: Vec<Vec<Vec<TableRef>>>,
}

impl Manifest {
    pub(crate) fn tables(&self) -> impl Iterator<Item = &TableRef> {
        self.levels.iter().flatten().flatten()
    }
}

/// Path of table `id` of the tree in `dir`.
pub(crate) fn table_path(dir: &Path, id: u64) -> PathBuf {
    dir.join(TABLES).join(id.to_string())
}

/// Path of version `id` of the tree in `dir`.
pub(crate) fn version_path(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("v{id}"))
}

/// Version number and checksum that `current` names; `None` when there is no tree in `dir`.
///
/// A directory without `current` that holds tables or a later version than the first was a
/// tree once: `Corrupt`, lest it be taken for an empty one.
pub(crate) fn read_current(dir: &Path) -> Result<Option<(u64, u128)>> {
    let path = dir.join(CURRENT);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return match left_behind(dir)? {
                false => Ok(None),
                true => Err(Error::corrupt(&path, 0, "missing, but the tree has files")),
            };
        }
        Err(e) => return Err(Error::io("read", &path, e)),
    };
    let fields = || {
        let mut rest = Reader(&bytes);
        let (version, checksum, kind) = (rest.u64()?, rest.u128()?, rest.u8()?);
        (bytes.len() == CURRENT_BYTES && kind == 0).then_some((version, checksum))
    };
    fields()
        .map(Some)
        .ok_or_else(|| Error::corrupt(&path, 0, "malformed"))
}

fn left_behind(dir: &Path) -> Result<bool> {
    let names = |dir: &Path| match fs::read_dir(dir) {
        Ok(entries) => entries
            .map(|e| e.map(|e| e.file_name()))
            .collect::<io::Result<Vec<_>>>()
            .map_err(|e| Error::io("list", dir, e)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(vec![]),
        Err(e) => Err(Error::io("list", dir, e)),
    };
    // Creating a tree writes `v0` and then `current`; a crash between leaves `v0` alone.
    let later_version = names(dir)?.iter().any(|name| {
        let number = name
            .to_str()
            .and_then(|n| n.strip_prefix('v')?.parse().ok());
        number.is_some_and(|n: u64| n > 0)
    });
    Ok(later_version || !names(&dir.join(TABLES))?.is_empty())
}

/// Reads and checks the manifest of the tree in `dir`, and the table of contents of
/// every table it lists; `None` when there is no tree.
pub(crate) fn load(dir: &Path) -> Result<Option<Manifest>> {
    let Some((version, checksum)) = read_current(dir)? else {
        return Ok(None);
    };
    let path = version_path(dir, version);
    let bytes = fs::read(&path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => Error::corrupt(
            dir.join(CURRENT),
            0,
            format!("names version {version}, which is missing"),
        ),
        _ => Error::io("read", &path, e),
    })?;
    if xxh3_128(&bytes) != checksum {
        return Err(Error::corrupt(&path, 0, "does not match its checksum"));
    }
    let section = |name: &str| {
        let sections = archive::sections(&path)?;
        let section = sections.into_iter().find(|s| s.name == name.as_bytes());
        section
            .and_then(|s| bytes.get(s.position as usize..(s.position + s.len) as usize))
            .ok_or_else(|| Error::corrupt(&path, 0, format!("no section {name}")))
    };
    match section("format_version")? {
        [FORMAT_VERSION] => {}
        other => {
            return Err(Error::FormatVersion {
                path: path.clone(),
                found: other.first().copied().unwrap_or(0).into(),
                supported: FORMAT_VERSION.into(),
            });
        }
    }
    let levels = levels(section("tables")?)
        .ok_or_else(|| Error::corrupt(&path, 0, "malformed list of tables"))?;
    let manifest = Manifest { version, levels };
    for table in manifest.tables() {
        archive::sections(&table_path(dir, table.id))?;
    }
    Ok(Some(manifest))
}

pub(crate) fn levels(bytes: &[u8]) -> Option<Vec<Vec<Vec<TableRef>>>> {
    let mut rest = Reader(bytes);
    if rest.u8()? != LEVELS {
        return None;
    }
    let mut levels = Vec::new();
    for _ in 0..LEVELS {
        let mut runs = Vec::new();
        for _ in 0..rest.u8()? {
            let mut run = Vec::new();
            for _ in 0..rest.u32()? {
                let id = rest.u64()?;
                if rest.u8()? != 0 {
                    return None;
                }
                let (checksum, global_seqno) = (rest.u128()?, rest.u64()?);
                run.push(TableRef {
                    id,
                    checksum,
                    global_seqno,
                });
            }
            runs.push(run);
        }
        levels.push(runs);
    }
    rest.0.is_empty().then_some(levels)
}
