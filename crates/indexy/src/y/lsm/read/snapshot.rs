//! One immutable state of a tree: its runs of tables, newest first. All reads go through it.
//!
//! The engine's own `get` takes a lock that its writers hold across several fsyncs, so
//! it is not used: the tables of a version are copied out once per change, and a read takes
//! only an `Arc` of that copy. A table's file lives as long as the last snapshot that lists it.
//! Threads: any.

#![forbid(unsafe_code)]

use crate::{
    error::Result,
    key::Value,
    y::lsm::{
        cache::shared::LsmShared,
        compaction::{
            level_sizes::LEVELS,
            level0::{Level0, Schedule},
        },
        engine_calls::{contain, contain_any, contain_decoding},
        manifest::{self, Manifest},
        table::{FilterUse, Place, TableReader},
    },
};
use lsm_tree::{
    AbstractTree, AnyTree, Checksum, SeqNo, Slice, Table, table::filter::standard_bloom::Builder,
};
use std::{
    collections::HashMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// Reads see everything; compaction keeps nothing older.
pub(crate) const NEWEST: SeqNo = SeqNo::MAX;

/// Disjoint tables in key order.
pub(crate) struct Run {
    pub(crate) tables: Vec<Arc<TableReader>>,
    /// Filters of this run and of all newer ones, in bytes.
    filter_bytes: usize,
}

/// See the module header.
pub(crate) struct Snapshot {
    /// Newest first: the runs of level 0, then one run a level.
    pub(crate) runs: Vec<Run>,
    pub(crate) level0: Level0,
    pub(crate) version: u64,
    pub(crate) disk_bytes: u64,
    /// Data blocks in the tables of each level.
    pub(crate) level_bytes: [u64; LEVELS],
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    filter_bytes: usize,
    /// Of the tree: outlives this state.
    pub(crate) schedule: Arc<Schedule>,
    shared: Arc<LsmShared>,
}

impl Snapshot {
    /// What `tree` holds now. Tables that `before` has are taken over from it.
    pub(crate) fn of_tree(
        tree: &AnyTree,
        dir: &Path,
        shared: &Arc<LsmShared>,
        before: Option<&Self>,
    ) -> Result<Self> {
        let (version, levels) = contain_any(dir, || {
            let version = tree.current_version();
            let levels = version
                .iter_levels()
                .map(|level| level.iter().map(|run| run.to_vec()).collect())
                .collect();
            (version.id(), levels)
        })?;
        let schedule = before.map_or_else(Arc::default, |snapshot| Arc::clone(&snapshot.schedule));
        let known: HashMap<u64, &Arc<TableReader>> = before
            .iter()
            .flat_map(|snapshot| snapshot.tables())
            .map(|table| (table.id(), table))
            .collect();
        Self::new(version, levels, &known, shared, &schedule)
    }

    /// Opens what `manifest` lists, without the rest of the engine: nothing is written.
    pub(crate) fn recover(
        dir: &Path,
        manifest: &Manifest,
        shared: &Arc<LsmShared>,
    ) -> Result<Self> {
        // The engine numbers the trees that it opens from 0.
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
                    Arc::clone(&shared.engine_cache),
                    Some(Arc::clone(&shared.engine_descriptors)),
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
        let schedule = Arc::default();
        Self::new(manifest.version, levels, &HashMap::new(), shared, &schedule)
    }

    fn new(
        version: u64,
        levels: Vec<Vec<Vec<Table>>>,
        known: &HashMap<u64, &Arc<TableReader>>,
        shared: &Arc<LsmShared>,
        schedule: &Arc<Schedule>,
    ) -> Result<Self> {
        let open = |table: Table| {
            if let Some(&reader) = known.get(&table.id()) {
                return Ok(Arc::clone(reader));
            }
            let path = Arc::clone(&table.path);
            contain_decoding(&path, || TableReader::open(table, shared)).map(Arc::new)
        };
        let level0 = level0(&levels);
        let mut runs = Vec::new();
        let mut filter_bytes = 0;
        let mut level_bytes = [0; LEVELS];
        let numbered = levels.into_iter().enumerate();
        for (level, run) in numbered.flat_map(|(n, runs)| runs.into_iter().map(move |r| (n, r))) {
            if let Some(bytes) = level_bytes.get_mut(level) {
                *bytes += run.iter().map(|t| t.metadata.file_size).sum::<u64>();
            }
            let tables = run.into_iter().map(open).collect::<Result<Vec<_>>>()?;
            filter_bytes += tables.iter().map(|t| t.filter_bytes()).sum::<usize>();
            runs.push(Run {
                tables,
                filter_bytes,
            });
        }
        let tables = || runs.iter().flat_map(|run| &run.tables);
        let metadata = || tables().map(|t| &t.engine().metadata);
        Ok(Self {
            level0,
            version,
            level_bytes,
            disk_bytes: tables().map(|t| t.file_bytes()).sum(),
            entries: metadata().map(|m| m.item_count).sum(),
            tombstones: metadata().map(|m| m.tombstone_count).sum(),
            filter_bytes,
            schedule: Arc::clone(schedule),
            shared: Arc::clone(shared),
            runs,
        })
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<TableReader>> {
        self.runs.iter().flat_map(|run| &run.tables)
    }

    /// From now on this one's filters count, and not those of `before`.
    pub(crate) fn account_filters(&self, before: Option<&Self>) {
        let before = before.map_or(0, |snapshot| snapshot.filter_bytes);
        self.shared.account_filters(before, self.filter_bytes);
    }

    /// This one's filters do not count any more.
    pub(crate) fn discount_filters(&self) {
        self.shared.account_filters(self.filter_bytes, 0);
    }

    /// Newest value of the stored key `key`.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        let mut search = Search::new(key);
        while let Some((table, place)) = self.next_place(&mut search, key)? {
            if let Some(value) = look_up(table, place, None, key)? {
                return Ok(value);
            }
        }
        Ok(None)
    }

    /// The next block that may hold `key`, newest first.
    pub(crate) fn next_place(
        &self,
        search: &mut Search,
        key: &[u8],
    ) -> Result<Option<(&Arc<TableReader>, Place)>> {
        if std::mem::take(&mut search.in_level0) {
            self.schedule.waste(1);
        }
        while let Some(run) = self.runs.get(search.run) {
            search.in_level0 = search.run < self.level0.runs;
            search.run += 1;
            let at = run.tables.partition_point(|t| t.max() < key);
            let Some(table) = run.tables.get(at).filter(|t| t.min() <= key) else {
                continue;
            };
            let filter = match self.shared.filters_fit(run.filter_bytes, self.filter_bytes) {
                true => FilterUse::Always,
                false => FilterUse::IfCached,
            };
            let place = contain_decoding(table.path(), || {
                if table.may_hold(key, search.hash, filter)? {
                    table.place(key)
                } else {
                    Ok(None)
                }
            })?;
            if let Some(place) = place {
                return Ok(Some((table, place)));
            }
        }
        Ok(None)
    }
}

fn level0(levels: &[Vec<Vec<Table>>]) -> Level0 {
    let (first, below) = levels.split_at(levels.len().min(1));
    let runs = first.iter().flatten().count();
    let tables = || first.iter().flatten().flatten();
    let below = below.iter().flatten().flatten();
    Level0 {
        runs,
        tables: tables().count(),
        bytes: tables().map(|t| t.metadata.file_size).sum(),
        entries: tables().map(|t| t.metadata.item_count).sum(),
        below: below.map(|t| t.metadata.file_size).sum(),
    }
}

/// How far the search for a key has come.
pub(crate) struct Search {
    run: usize,
    /// It was sent to a block of level 0.
    in_level0: bool,
    hash: u64,
}

impl Search {
    pub(crate) fn new(key: &[u8]) -> Self {
        Self {
            run: 0,
            in_level0: false,
            hash: Builder::get_hash(key),
        }
    }
}

/// What the block at `place` (`loaded`, if it is) says about `key`: nothing, that it is deleted
/// (`Some(None)`), or its value.
pub(crate) fn look_up(
    table: &TableReader,
    place: Place,
    loaded: Option<&Slice>,
    key: &[u8],
) -> Result<Option<Option<Value>>> {
    let entry = contain_decoding(table.path(), || table.find(place, loaded, key))?;
    // A copy: the engine's value would keep its whole block in memory.
    Ok(entry.map(|entry| (!entry.is_tombstone()).then(|| Value::new(&entry.value))))
}
