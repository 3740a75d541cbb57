//! `Stats`: figures about a database.

#![forbid(unsafe_code)]

use crate::{
    db::handle::Core,
    framework::{counters::read, tree::Joined},
    mem::budget::Holder,
    x::IndexX,
};
use serde::{Deserialize, Serialize};

/// Figures about an open database, all trees together. Counters count since open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stats {
    /// The memory budget in bytes.
    pub memory_budget_bytes: u64,
    /// What is taken of it, in use or reserved: the memory index by the slab; buffers, caches and
    /// filters of the disk index by a documented upper bound.
    pub memory_used_bytes: u64,
    /// The part of `memory_used_bytes` that holds data: entries of the memory index, tables and
    /// filters of the disk index, images of snapshots in memory, open scans.
    #[serde(default)]
    pub memory_in_use_bytes: u64,
    /// The rest of `memory_used_bytes`: set aside for the caches of the disk index (full or not),
    /// for the buffers of the log and of runs, and free space in the slabs of the memory index.
    #[serde(default)]
    pub memory_reserved_bytes: u64,
    /// Live bytes of all memory indexes: nodes, leaves, out-of-line values.
    pub x_bytes: u64,
    /// Entries in all memory indexes, tombstones included.
    pub x_keys: u64,
    /// Entries of the memory indexes that the disk indexes do not have yet.
    pub x_dirty_keys: u64,
    /// Bytes of all disk indexes on disk.
    pub y_bytes_on_disk: u64,
    /// Those of them that hold nothing of use, as far as the disk indexes know: what was
    /// overwritten or removed is known when it is merged. The rest is live.
    #[serde(default)]
    pub y_dead_bytes: u64,
    /// Sorted runs or levels that a read of a disk index may have to look at, over all trees.
    pub y_runs: u64,
    /// Trees whose disk index has background work under way, or put off until writers rest (an LSM
    /// tree merges its layers then, 5 s after the last run). 0: the disk is left alone until
    /// somebody writes, as far as the disk indexes tell: LSM trees do, paged ones have no such
    /// work, RocksDB does not tell.
    pub y_unsettled: u64,
    /// Damaged places on disk that merges have met since the open, and leave alone. More than 0:
    /// look at `Db::verify`.
    #[serde(default)]
    pub y_damaged: u64,
    /// Reads answered by an entry in memory.
    pub hits: u64,
    /// Reads that asked the disk index.
    pub misses: u64,
    /// Look-ups in the disk index.
    pub y_reads: u64,
    /// Of those, reads by a locator of the radix cache ([`IndexXKind::Radix`](crate::IndexXKind)).
    #[serde(default)]
    pub located: u64,
    /// Locators that said nothing any more when a read went by them.
    #[serde(default)]
    pub stale_locators: u64,
    /// Reads of absent keys that the memory index answered alone.
    pub absent_without_io: u64,
    /// Reads of absent keys that a filter of evicted keys answered; see
    /// [`Evicted`](crate::Evicted). They are neither hits nor misses.
    #[serde(default)]
    pub denied_by_filter: u64,
    /// Bytes of these filters.
    #[serde(default)]
    pub filter_bytes: u64,
    /// Trees whose filter does not know all keys on disk, or has grown too many: it is being built,
    /// or does not fit.
    #[serde(default)]
    pub filters_building: u64,
    /// Bytes that the memory index has lent to the filters of LSM trees, because absent keys are
    /// asked for more than what it would hold instead; a part of `memory_reserved_bytes`.
    #[serde(default)]
    pub lent_to_filters_bytes: u64,
    /// Values read from disk that did not go into the memory index: no room, too large, something
    /// newer was there, or the tree has no memory index.
    pub uncached_reads: u64,
    /// Values read from disk that the tree's [`Admission`](crate::Admission) kept out of the memory
    /// index.
    #[serde(default)]
    pub not_admitted: u64,
    /// Entries written to the disk index.
    pub cleaned_keys: u64,
    /// Key and value bytes written to the disk index.
    pub cleaned_bytes: u64,
    /// Sorted runs written to the disk index.
    pub cleaned_runs: u64,
    /// Of `cleaned_keys`, those that were written ahead of need because they were quiet.
    #[serde(default)]
    pub cleaned_by_check_back: u64,
    /// Of `cleaned_keys`, those that were the oldest when memory was short.
    #[serde(default)]
    pub cleaned_by_age: u64,
    /// Of `cleaned_keys`, those that kept the log from being cut.
    #[serde(default)]
    pub cleaned_for_log: u64,
    /// Releases that freed something, those by hand included.
    #[serde(default)]
    pub releases: u64,
    /// What releases chose, by its level in the tree of regions: single regions, up to 16
    /// neighbours as a whole, up to 256, and more. All but [`crate::Release::AccessDensity`] choose
    /// single regions. Chosen is more than cut: a release ends once it has freed enough.
    #[serde(default)]
    pub released_by_level: [u64; 4],
    /// Entries that releases spared because they had been read.
    #[serde(default)]
    pub spared_keys: u64,
    /// Ranges of the memory index that releases cut out.
    pub released_regions: u64,
    /// Bytes of the memory index freed by releases.
    pub released_bytes: u64,
    /// Entries dropped from memory by releases.
    pub released_keys: u64,
    /// Ranges of the memory indexes that ask the disk index for what they do not have.
    pub mount_points: u64,
    /// Writes that waited for memory.
    pub stalls: u64,
    /// Time that they waited, in microseconds, summed over threads.
    pub stall_micros: u64,
    /// Writes applied.
    pub writes: u64,
    /// Bytes of the log on disk, as far as recovery needs it.
    pub log_bytes: u64,
    /// Bytes of older log that stays for [`Db::changes`](crate::Db::changes).
    #[serde(default)]
    pub change_history_bytes: u64,
    /// Bytes in memory of what writers keep for open snapshots.
    #[serde(default)]
    pub snapshot_memory_bytes: u64,
    /// The same on disk.
    #[serde(default)]
    pub snapshot_disk_bytes: u64,
    /// Keys of the hot set that were brought into memory after the open; see
    /// [`Options::hot_set`](crate::Options::hot_set). They are no reads: neither hits nor misses.
    #[serde(default)]
    pub warmed_keys: u64,
    /// Whether that is still under way.
    #[serde(default)]
    pub warming: bool,
    /// Keys in the hot set as it was saved last, since the open.
    #[serde(default)]
    pub hot_set_keys: u64,
    /// Named trees.
    pub trees: u64,
}

impl Stats {
    /// Reads that the memory index answered alone, as a part of all reads; 1 when there was none.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// let tree = db.tree("t")?;
    /// tree.insert("key", "value")?;
    /// tree.get("key")?;
    /// assert_eq!(db.stats().hit_ratio(), 1.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        let answered = self.hits + self.absent_without_io;
        let all = answered + self.misses;
        if all == 0 {
            1.0
        } else {
            answered as f64 / all as f64
        }
    }

    pub(crate) fn collect(core: &Core) -> Self {
        let shared = &core.shared;
        let counters = &shared.counters;
        let (in_memory, on_disk) = shared.versions.bytes();
        let (log_bytes, change_history_bytes) = core.log_bytes();
        let mut stats = Self {
            snapshot_memory_bytes: (in_memory + shared.versions.span_bytes()) as u64,
            snapshot_disk_bytes: on_disk,
            memory_budget_bytes: core.budget.limit() as u64,
            // What is only promised to writers is not taken yet.
            memory_used_bytes: core.budget.taken() as u64,
            hits: counters.hits(),
            misses: read(&counters.misses),
            y_reads: read(&counters.y_reads),
            located: read(&counters.located),
            stale_locators: read(&counters.stale_locators),
            absent_without_io: counters.absent_without_io(),
            denied_by_filter: counters.denials(),
            filter_bytes: shared.filters.bytes() as u64,
            lent_to_filters_bytes: shared.room.lent_to_y() as u64,
            uncached_reads: read(&counters.loads_refused),
            not_admitted: read(&counters.not_admitted),
            cleaned_keys: read(&counters.cleaned_keys),
            cleaned_bytes: read(&counters.cleaned_bytes),
            cleaned_runs: read(&counters.runs),
            cleaned_by_check_back: read(&counters.cleaned_by_check_back),
            cleaned_by_age: read(&counters.cleaned_by_age),
            cleaned_for_log: read(&counters.cleaned_for_log),
            releases: read(&counters.releases),
            released_by_level: counters.released_by_level.each_ref().map(read),
            spared_keys: read(&counters.spared_keys),
            released_regions: read(&counters.released_regions),
            released_bytes: read(&counters.released_bytes),
            released_keys: read(&counters.released_keys),
            stalls: read(&counters.stalls),
            stall_micros: read(&counters.stall_micros),
            writes: counters.writes(),
            log_bytes,
            change_history_bytes,
            ..Self::default()
        };
        if let Some(hot) = &core.hot {
            stats.warmed_keys = hot.warmed_keys();
            stats.warming = hot.is_warming();
            stats.hot_set_keys = hot.saved_keys();
        }
        for tree in core.all_joined() {
            stats.add(&tree);
        }
        let held = |holder| core.budget.held(holder) as u64;
        let data = stats.x_bytes
            + in_memory as u64
            + held(Holder::IndexYTrees)
            + held(Holder::Filters)
            + held(Holder::Scans)
            + held(Holder::Ends)
            + held(Holder::Fetches);
        stats.memory_in_use_bytes = data.min(stats.memory_used_bytes);
        stats.memory_reserved_bytes = stats.memory_used_bytes - stats.memory_in_use_bytes;
        stats
    }

    /// Adds what one tree holds.
    fn add(&mut self, tree: &Joined) {
        let x = tree.x.stats();
        self.x_bytes += x.bytes as u64;
        let cache = tree.radix.as_ref().map(|radix| radix.cache.x.stats().bytes);
        self.x_bytes += cache.unwrap_or_default() as u64;
        self.x_keys += x.keys as u64;
        self.x_dirty_keys += x.dirty as u64;
        self.mount_points += x.mounts as u64;
        self.y_bytes_on_disk += tree.y.disk_bytes();
        self.y_dead_bytes += tree.y.dead_bytes();
        self.y_runs += tree.y.run_count() as u64;
        self.y_damaged += tree.y.damaged();
        self.filters_building += u64::from(tree.writer.evicted().is_incomplete());
        self.y_unsettled += u64::from(!tree.y.settled());
        self.trees += 1;
    }
}
