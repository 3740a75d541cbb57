//! One immutable state of a tree: its runs of tables, newest first. All reads go through it.
//!
//! The engine's own `get` takes a lock that its writers hold across several fsyncs (design 5.1), so
//! it is not used: the tables of a version are copied out once per change, and a read takes
//! only an `Arc` of that copy. A table's file lives as long as the last snapshot that lists it.
//!
//! Every table may hold several versions of a key; the newest (highest sequence number) counts.
//! Threads: any.

#![forbid(unsafe_code)]

use super::{
    contain::{contain, contain_any},
    keys,
    manifest::{self, Manifest},
    shared::LsmShared,
};
use crate::{error::Result, key::Value};
use lsm_tree::{
    AbstractTree, AnyTree, Checksum, SeqNo, Table, table::filter::standard_bloom::Builder,
};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// Reads see everything.
pub(super) const NEWEST: SeqNo = SeqNo::MAX;

/// Bytes that the engine holds for an open table beside its top-level indexes.
const TABLE_BYTES: usize = 4 << 10;

/// Disjoint tables in key order.
pub(super) type Run = Vec<Table>;

/// See the module header.
pub(super) struct Snapshot {
    /// Newest first: the runs of level 0, then one run a level.
    pub(super) runs: Vec<Run>,
    pub(super) level0_runs: usize,
    pub(super) version: u64,
    pub(super) disk_bytes: u64,
    pub(super) entries: u64,
    pub(super) tombstones: u64,
    pub(super) memory_bytes: usize,
}

impl Snapshot {
    /// What `tree` holds now.
    pub(super) fn of_tree(tree: &AnyTree, dir: &Path) -> Result<Self> {
        contain_any(dir, || {
            let version = tree.current_version();
            let levels = version
                .iter_levels()
                .map(|level| level.iter().map(|run| run.to_vec()).collect())
                .collect();
            Self::new(version.id(), levels)
        })
    }

    /// Opens what `manifest` lists, without the rest of the engine: nothing is written.
    pub(super) fn recover(dir: &Path, manifest: &Manifest, shared: &LsmShared) -> Result<Self> {
        // The engine numbers the trees that it opens from 0; the shared cache is keyed by that number.
        static NEXT_TREE: AtomicU64 = AtomicU64::new(1 << 63);
        let tree = NEXT_TREE.fetch_add(1, Relaxed);
        let open = |table: &manifest::TableRef| {
            let path = manifest::table_path(dir, table.id);
            contain(&path.clone(), "open", || {
                Table::recover(
                    path,
                    Checksum::from_raw(table.checksum),
                    table.global_seqno,
                    tree,
                    Arc::clone(&shared.cache),
                    Some(Arc::clone(&shared.descriptors)),
                    false,
                    false,
                )
            })
        };
        let levels = manifest
            .levels
            .iter()
            .map(|runs| {
                let open_run = |run: &Vec<_>| run.iter().map(open).collect();
                runs.iter().map(open_run).collect()
            })
            .collect::<Result<Vec<_>>>()?;
        contain_any(dir, || Self::new(manifest.version, levels))
    }

    fn new(version: u64, levels: Vec<Vec<Run>>) -> Self {
        let level0_runs = levels.first().map_or(0, Vec::len);
        let runs: Vec<Run> = levels.into_iter().flatten().collect();
        let tables = || runs.iter().flatten();
        Self {
            level0_runs,
            version,
            disk_bytes: tables().map(file_bytes).sum(),
            entries: tables().map(|t| t.metadata.item_count).sum(),
            tombstones: tables().map(|t| t.metadata.tombstone_count).sum(),
            memory_bytes: tables().map(pinned_bytes).sum(),
            runs,
        }
    }

    /// Newest value of the stored key `key`.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        let hash = Builder::get_hash(key);
        for run in &self.runs {
            let at = run.partition_point(|t| &**t.metadata.key_range.max() < key);
            let Some(table) = run.get(at) else { continue };
            if &**table.metadata.key_range.min() > key {
                continue;
            }
            if let Some(entry) = contain(&table.path, "read", || table.get(key, NEWEST, hash))? {
                // A copy: the engine's value would keep its whole block in memory.
                return Ok((!entry.is_tombstone()).then(|| Value::new(&entry.value)));
            }
        }
        Ok(None)
    }

    /// Newest value of the caller's key `key`.
    pub(super) fn get_original(&self, key: &[u8]) -> Result<Option<Value>> {
        self.get(&keys::stored(key))
    }
}

/// Size of a table's file: its sections end with the meta block; table of contents and trailer follow.
fn file_bytes(table: &Table) -> u64 {
    const CONTENTS_AND_TRAILER: u64 = 320;
    let meta = table.regions.metadata;
    *meta.offset() + u64::from(meta.size()) + CONTENTS_AND_TRAILER
}

/// What an open table holds in memory, at most: its top-level indexes and key range.
fn pinned_bytes(table: &Table) -> usize {
    let regions = &table.regions;
    let filter_index = regions.filter_tli.map_or(0, |handle| handle.size());
    TABLE_BYTES
        + regions.tli.size() as usize
        + filter_index as usize
        + regions.metadata.size() as usize
}
