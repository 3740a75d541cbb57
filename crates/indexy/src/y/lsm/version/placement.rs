//! Where the tables of a tree that is not open are, and the log of a copy.
//!
//! Threads: the one that salvages, or makes the copy. Changes nothing of the tree.

#![forbid(unsafe_code)]

use super::{
    contents::Version,
    facts::{Facts, TableFile},
    files::{VERSIONS, write_log},
    log::{Log, Placed},
    translate::change_of,
};
use crate::{error::Result, storage::Storage};
use std::{collections::BTreeMap, path::Path};

/// Which tables the durable version of a tree has, and where.
pub(crate) struct Placement {
    pub(crate) tables: BTreeMap<u64, Facts>,
    pub(crate) partitions: Vec<PlacedTables>,
}

/// The numbers of the tables of a partition.
pub(crate) struct PlacedTables {
    pub(crate) from: Box<[u8]>,
    pub(crate) base: Vec<u64>,
    /// Newest first.
    pub(crate) layers: Vec<u64>,
}

/// What the version log in `dir` says, without a look at any table. Changes nothing. Errors:
/// `Corrupt`, `FormatVersion`, `Io`.
pub(crate) fn read_placement(storage: &dyn Storage, dir: &Path, owner: u64) -> Result<Placement> {
    let file = storage.open(&dir.join(VERSIONS), false)?;
    let (_, listing, _) = Log::open(file, owner)?;
    let placed = |placed: Placed| PlacedTables {
        from: placed.from,
        base: placed.base,
        layers: placed.layers,
    };
    Ok(Placement {
        tables: listing.tables,
        partitions: listing.partitions.into_iter().map(placed).collect(),
    })
}

/// Makes a version log in `dir` that lists what `version` has, durable but for the directory's own
/// name. For copies: the caller brings the tables.
pub(crate) fn write_copy<T: TableFile>(
    storage: &dyn Storage,
    dir: &Path,
    owner: u64,
    version: &Version<T>,
) -> Result<()> {
    write_log(storage, dir, owner, &change_of(version, None))
}
