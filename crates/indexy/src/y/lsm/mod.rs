//! Index Y on `lsm-tree`: sorted runs become tables of level 0, compaction is leveled.
//!
//! Source: IndeXY II-D, design 5.1; facts and figures in `docs/decisions/0002-lsm-tree-as-index-y.md`.
//! Runs go through the engine's ingestion: tables are written and synced as the run streams, then
//! one manifest change makes all of it visible and durable. Memtables are never used.
//!
//! Keeps: I2 (the newest run wins: sequence numbers continue after a reopen), I4 (a failed run leaves
//! what was there), I5 (`before_publish` precedes the manifest), I7 (`shared.rs`, `snapshot.rs` count).
//!
//! Locks, in this order: `maintaining` (one `maintain`, `copy_to`), `writing` (one `write_run`), `publishing`,
//! `snapshot`. Reads take the last one, to copy an `Arc`, and wait for nothing that does I/O.
//! Threads: none of its own.
//! Not here: when to maintain, when to stall (the framework).

#![forbid(unsafe_code)]

mod archive;
mod block_cache;
mod buffers;
mod contain;
mod copy;
mod cursor;
mod file;
#[cfg(any(test, feature = "testing"))]
pub(super) mod fuzzing;
mod keys;
mod manifest;
mod merge;
mod multi_get;
mod pace;
mod shape;
mod shared;
mod snapshot;
mod stop;
mod sweep;
mod table;
mod verify;
mod write;

#[cfg(test)]
mod measure;
#[cfg(test)]
mod tests;

pub(crate) use shared::LsmShared;

use super::{Capabilities, IndexY, Maintained, RunSource, YIter};
use crate::{
    error::{Error, Result},
    key::Value,
    limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES},
    poison::Poison,
    x::Order,
};
use contain::{contain, contain_any};
use cursor::Bounds;
use lsm_tree::{
    AbstractTree, AnyTree, CompressionType, Config, SequenceNumberCounter,
    compaction::{CompactionStrategy, Leveled, PullDown},
    config::{
        BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy,
        FilterPolicyEntry, HashRatioPolicy, PartitioningPolicy, PinningPolicy,
        RestartIntervalPolicy,
    },
};
use manifest::Manifest;
use merge::{Merge, Range};
use parking_lot::{Mutex, RwLock};
use shape::{LEVEL0_CONGESTED, Shape, Step};
use snapshot::{NEWEST, Snapshot};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};
use stop::Stop;

/// Payload of a run: with less, level 0 fills with small tables faster than it is worth; with more, a run
/// is long in flight, and is more than one table. In between it grows with the budget.
const PREFERRED_RUN_BYTES: (usize, usize) = (8 << 20, 48 << 20);
/// Size of the tables that compaction writes, in bytes of data blocks.
const TABLE_BYTES: u64 = 8 << 20;
/// Data blocks: one read of the device.
const BLOCK_BYTES: u32 = 4 << 10;
/// Entries between two keys that are stored whole in a data block.
const RESTART_ENTRIES: u8 = 16;
/// Bits a key in the filters: about one false answer in a hundred.
const FILTER_BITS: f32 = 10.0;
/// Entries that [`LsmY::is_empty`] looks at before it gives up.
const EMPTY_SEARCH_ENTRIES: usize = 1024;
/// What a compaction and a run in flight hold: filter and index of the tables being written, buffers. One of
/// each runs at a time in a database, whose opener accounts for it.
pub(crate) const WORK_BYTES: usize = 2 << 20;

/// An LSM tree in a directory of its own; see the module header.
pub(crate) struct LsmY {
    dir: PathBuf,
    shared: Arc<LsmShared>,
    /// `None`: read-only.
    tree: Option<AnyTree>,
    snapshot: RwLock<Arc<Snapshot>>,
    /// Snapshots replaced but perhaps still in use. Dropped by `maintain`, so that no reader pays for deleting files.
    retired: Mutex<Vec<Arc<Snapshot>>>,
    maintaining: Mutex<()>,
    writing: Mutex<()>,
    publishing: Mutex<()>,
    /// A failed run or compaction left files.
    litter: AtomicBool,
    /// After a failure it could not be found out whether the engine agrees with its directory: for want of descriptors, say.
    unsure: AtomicBool,
    /// Somebody else may have the directory. Set under `maintaining` and `writing`, looked at under either.
    released: AtomicBool,
    stop: Stop,
    poison: Poison,
    /// Size of the tables that compaction writes.
    table_bytes: u64,
}

impl LsmY {
    /// Opens the tree in `path`, or creates one there unless `read_only`.
    ///
    /// Read-only writes not a byte: not even what a crash left is removed. Cost: a few reads a table.
    /// Errors: `NoDatabase` (read-only and nothing there), `Corrupt`, `Io`, `FormatVersion`.
    pub(crate) fn open(path: &Path, shared: &Arc<LsmShared>, read_only: bool) -> Result<Self> {
        let manifest = manifest::load(path)?;
        let stop = Stop::default();
        let (tree, snapshot) = match (&manifest, read_only) {
            (Some(manifest), true) => (None, Snapshot::recover(path, manifest, shared)?),
            (None, true) => {
                return Err(Error::NoDatabase {
                    path: path.to_path_buf(),
                });
            }
            (_, false) => {
                let tree = open_engine(path, shared, manifest.as_ref(), &stop)?;
                let snapshot = Snapshot::of_tree(&tree, path, shared, None)?;
                (Some(tree), snapshot)
            }
        };
        if !read_only {
            sweep::stale_temporaries(path)?;
        }
        snapshot.account_filters(None);
        Ok(Self {
            dir: path.to_path_buf(),
            shared: Arc::clone(shared),
            tree,
            snapshot: RwLock::new(Arc::new(snapshot)),
            retired: Mutex::default(),
            maintaining: Mutex::default(),
            writing: Mutex::default(),
            publishing: Mutex::default(),
            litter: AtomicBool::new(false),
            unsure: AtomicBool::new(false),
            released: AtomicBool::new(false),
            stop,
            poison: Poison::default(),
            table_bytes: TABLE_BYTES,
        })
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.read())
    }

    /// The engine, if it may be written with. The caller holds `maintaining` or `writing`.
    fn writable(&self) -> Result<&AnyTree> {
        self.poison.check()?;
        let tree = self.tree.as_ref().ok_or(Error::ReadOnly)?;
        if self.released.load(Relaxed) {
            return Err(Error::Closed);
        }
        if self.unsure.load(Relaxed) {
            self.compare_with_disk(tree)?;
        }
        Ok(tree)
    }

    /// Makes the engine's newest version the one that is read.
    fn publish(&self, tree: &AnyTree) -> Result<()> {
        // So that an older version never replaces a newer one. Not under `snapshot`: the engine's lock
        // that this waits for is held across fsyncs.
        let _one_publisher = self.publishing.lock();
        let before = self.snapshot();
        let next = Snapshot::of_tree(tree, &self.dir, &self.shared, Some(&before))?;
        let next = Arc::new(next);
        next.account_filters(Some(&before));
        drop(before);
        let old = std::mem::replace(&mut *self.snapshot.write(), next);
        self.retired.lock().push(old);
        Ok(())
    }

    /// One step of the engine. The caller holds `maintaining`.
    fn compact(&self, tree: &AnyTree, strategy: Arc<dyn CompactionStrategy>) -> Result<()> {
        // Every read pins its own snapshot, so no older version of a key is of use to anyone.
        let step = write::descriptors_left(&self.dir)
            .and_then(|()| contain(&self.dir, "compact", || tree.compact(strategy, NEWEST)));
        if let Err(e) = step {
            self.after_failure(tree);
            if let Some(_no_run) = self.writing.try_lock() {
                self.clean_up(tree);
            }
            return if self.stop.is_set() { Ok(()) } else { Err(e) };
        }
        self.publish(tree)?;
        self.reap();
        Ok(())
    }

    /// [`LsmY::sweep`], unless the tree must not be touched. What fails is tried again later.
    fn clean_up(&self, tree: &AnyTree) {
        if self.poison.check().is_ok() && !self.unsure.load(Relaxed) {
            let _ = self.sweep(tree);
        }
    }

    /// Drops replaced snapshots that nobody reads any more (this deletes their tables' files).
    fn reap(&self) {
        let unused: Vec<_> = {
            let mut retired = self.retired.lock();
            retired
                .extract_if(.., |old| Arc::strong_count(old) == 1)
                .collect()
        };
        drop(unused);
    }
}

fn leveled(shape: &Shape) -> Leveled {
    Leveled::default()
        .with_l0_threshold(shape.trigger)
        .with_table_target_size(shape.table_bytes)
        .with_level_ratio_policy(shape.ratios.iter().map(|&r| r as f32).collect())
}

fn open_engine(
    path: &Path,
    shared: &Arc<LsmShared>,
    manifest: Option<&Manifest>,
    stop: &Stop,
) -> Result<AnyTree> {
    let seqno = SequenceNumberCounter::default();
    let visible = SequenceNumberCounter::default();
    let config = Config::new(path, seqno.clone(), visible.clone())
        .use_cache(Arc::clone(&shared.engine_cache))
        .use_descriptor_table(Some(Arc::clone(&shared.engine_descriptors)))
        // I7: nothing of a table is pinned but its top-level indexes; the rest goes through the cache.
        .index_block_partitioning_policy(PartitioningPolicy::all(true))
        .filter_block_partitioning_policy(PartitioningPolicy::all(true))
        .index_block_pinning_policy(PinningPolicy::all(false))
        .filter_block_pinning_policy(PinningPolicy::all(false))
        .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(
            BloomConstructionPolicy::BitsPerKey(FILTER_BITS),
        )))
        // Said, because the default compresses as soon as any crate of the program switches that on in the engine.
        .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
        .index_block_compression_policy(CompressionPolicy::all(CompressionType::None))
        .data_block_size_policy(BlockSizePolicy::all(BLOCK_BYTES))
        .data_block_restart_interval_policy(RestartIntervalPolicy::all(RESTART_ENTRIES))
        .data_block_hash_ratio_policy(HashRatioPolicy::all(0.0))
        .with_compaction_filter_factory(Some(Arc::new(stop.clone())));
    let tree = contain(path, "open", || config.open()).map_err(|e| {
        // The engine does not say which table it is; opening them one by one does.
        let culprit = manifest.and_then(|m| Snapshot::recover(path, m, shared).err());
        culprit.unwrap_or(e)
    })?;
    // I2: the engine starts counting at zero again, and a newer run would lose to an older one.
    let next = contain_any(path, || tree.get_highest_persisted_seqno())?.map_or(0, |n| n + 1);
    seqno.set(next);
    visible.set(next);
    if manifest.is_none() {
        path.parent().map_or(Ok(()), copy::sync)?;
    }
    Ok(tree)
}

/// Files are removed when the last holder of a table goes: the engine, a snapshot, or an iterator. Iterators borrow this, the engine
/// has no threads, and snapshots are held by nothing else: so all of that has happened when this drop returns.
impl Drop for LsmY {
    fn drop(&mut self) {
        self.snapshot().discount_filters();
    }
}

impl IndexY for LsmY {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_key_bytes: MAX_KEY_BYTES,
            max_value_bytes: MAX_VALUE_BYTES,
            // Of the budget a twelfth is cache.
            preferred_run_bytes: (self.shared.memory_bytes() / 4 * 3)
                .clamp(PREFERRED_RUN_BYTES.0, PREFERRED_RUN_BYTES.1),
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.snapshot().get(&keys::stored(key))
    }

    fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        multi_get::multi_get(&self.snapshot(), keys)
    }

    fn range(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<YIter<'_>> {
        Ok(Box::new(Range::new(self.snapshot(), from, to, order)))
    }

    fn write_run(&self, source: &mut dyn RunSource) -> Result<()> {
        let _one_writer = self.writing.lock();
        let tree = self.writable()?;
        let written = write::write_run(tree, &self.dir, source);
        match written {
            Ok(()) => {
                self.publish(tree)?;
                self.snapshot().pace.wrote();
                Ok(())
            }
            Err(e) => {
                self.after_failure(tree);
                // Against the order of the locks, so only tried; else `maintain` does it.
                if let Some(_no_maintenance) = self.maintaining.try_lock() {
                    self.clean_up(tree);
                }
                Err(e)
            }
        }
    }

    fn make_durable(&self) -> Result<()> {
        // `write_run` returns after the tables, the manifest and their directories are synced.
        self.poison.check()
    }

    fn maintain(&self) -> Result<Maintained> {
        let _one_maintainer = self.maintaining.lock();
        self.reap();
        let tree = self.writable()?;
        if self.litter.load(Relaxed)
            && let Some(_no_run) = self.writing.try_lock()
        {
            self.clean_up(tree);
        }
        if self.stop.is_set() {
            return Ok(Maintained::Idle);
        }
        // Not held any longer: files of a step that fails are removed only when nobody has an old snapshot.
        let before = self.snapshot();
        let (version, pace) = (before.version, Arc::clone(&before.pace));
        let (mode, trigger) = pace.plan(before.level0, self.table_bytes);
        let total = before.level_bytes.iter().sum();
        drop(before);
        let shape = Shape::of(total, self.table_bytes, trigger);
        self.compact(tree, Arc::new(leveled(&shape)))?;
        let now = self.snapshot();
        let idle = now.version == version;
        let step = idle.then(|| shape.when_idle(now.level0.runs, &now.level_bytes));
        drop(now);
        if let Some(Step::PullDown(from, to)) = step {
            self.compact(tree, Arc::new(PullDown(from, to)))?;
        }
        let changed = self.snapshot().version != version;
        pace.done(mode, changed);
        if changed {
            Ok(Maintained::More)
        } else {
            Ok(Maintained::Idle)
        }
    }

    fn congested(&self) -> bool {
        self.snapshot().level0.runs >= LEVEL0_CONGESTED
    }

    fn interrupt(&self) {
        self.stop.set();
    }

    fn is_empty(&self) -> Result<bool> {
        let everything = Bounds::everything();
        let mut merge = Merge::new(self.snapshot(), everything, Order::Ascending);
        for _ in 0..EMPTY_SEARCH_ENTRIES {
            match merge.next_entry()? {
                None => return Ok(true),
                Some(entry) if !entry.is_tombstone() => return Ok(false),
                Some(_) => {}
            }
        }
        Ok(false)
    }

    fn approximate_len(&self) -> u64 {
        let snapshot = self.snapshot();
        // A tombstone mostly stands over one older entry.
        snapshot.entries.saturating_sub(2 * snapshot.tombstones)
    }

    fn memory_bytes(&self) -> usize {
        // Snapshots share most of their tables: each one counts once.
        let (current, retired) = (self.snapshot(), self.retired.lock());
        let snapshots = retired.iter().chain([&current]);
        let mut tables: Vec<_> = snapshots
            .flat_map(|s| &s.runs)
            .flat_map(|run| &run.tables)
            .collect();
        tables.sort_unstable_by_key(|table| Arc::as_ptr(table));
        tables.dedup_by_key(|table| Arc::as_ptr(table));
        tables.iter().map(|table| table.memory_bytes()).sum()
    }

    fn disk_bytes(&self) -> u64 {
        self.snapshot().disk_bytes
    }

    fn run_count(&self) -> usize {
        self.snapshot().runs.len()
    }

    fn verify(&self) -> Result<u64> {
        verify::verify(&self.snapshot())
    }

    fn release_files(&self) -> bool {
        let Some(_no_maintenance) = self.maintaining.try_lock() else {
            return false;
        };
        let Some(_no_run) = self.writing.try_lock() else {
            return false;
        };
        self.reap();
        let released = self.retired.lock().is_empty();
        self.released.fetch_or(released, Relaxed);
        released
    }

    fn settled(&self) -> bool {
        self.tree.is_none() || self.snapshot().pace.settled()
    }

    fn copies_beside_runs(&self) -> bool {
        true
    }

    fn copy_to(&self, dest: &Path) -> Result<()> {
        let (image, _snapshot) = {
            let _no_maintenance = self.maintaining.lock();
            let _no_run = self.writing.lock();
            // Holding the snapshot keeps the tables.
            (copy::Image::of(&self.dir)?, self.snapshot())
        };
        image.write(dest)
    }
}
