//! The state of an open LSM tree: the engine, the version that is read, and what becomes of
//! failures.
//!
//! Failed runs and compactions leave files. They are removed once nobody can be using them: no run
//! and no compaction in progress, and no old snapshot read.
//!
//! A failure after the manifest was replaced (the last fsync, say) leaves the engine behind its own
//! directory: it would write the next version over the file that `current` names. The tree is
//! poisoned then. For want of descriptors that cannot be found out; it is asked again by the next
//! call that writes.

#![forbid(unsafe_code)]

use super::{
    cache::shared::LsmShared,
    compaction::{cancel::Cancel, level_sizes::LevelSizes},
    engine_calls::{contain, contain_any},
    manifest::{self, Manifest, TABLES, copy},
    orphans,
    read::snapshot::{NEWEST, Snapshot},
    write,
};
use crate::{
    error::{Error, Result},
    poison::Poison,
};
use lsm_tree::{
    AbstractTree, AnyTree, CompressionType, Config, SequenceNumberCounter,
    compaction::{CompactionStrategy, Leveled},
    config::{
        BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy,
        FilterPolicyEntry, HashRatioPolicy, PartitioningPolicy, PinningPolicy,
        RestartIntervalPolicy,
    },
};
use parking_lot::{Mutex, RwLock};
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// Size of the tables that compaction writes, in bytes of data blocks.
pub(crate) const TABLE_BYTES: u64 = 8 << 20;
/// Data blocks: one read of the device.
const BLOCK_BYTES: u32 = 4 << 10;
/// Entries between two keys that are stored whole in a data block.
const RESTART_ENTRIES: u8 = 16;
/// Bits a key in the filters: about one false answer in a hundred.
const FILTER_BITS: f32 = 10.0;

/// An LSM tree in a directory of its own; see the header of the folder.
pub(crate) struct LsmY {
    pub(crate) dir: PathBuf,
    pub(crate) shared: Arc<LsmShared>,
    /// `None`: read-only.
    pub(crate) tree: Option<AnyTree>,
    pub(crate) snapshot: RwLock<Arc<Snapshot>>,
    /// Snapshots replaced but perhaps still in use. Dropped by `maintain`, so that no reader pays
    /// for deleting files.
    pub(crate) retired: Mutex<Vec<Arc<Snapshot>>>,
    pub(crate) maintaining: Mutex<()>,
    pub(crate) writing: Mutex<()>,
    pub(crate) publishing: Mutex<()>,
    /// A failed run or compaction left files.
    pub(crate) litter: AtomicBool,
    /// After a failure it could not be found out whether the engine agrees with its directory: for
    /// want of descriptors, say.
    pub(crate) unsure: AtomicBool,
    /// Somebody else may have the directory. Set under `maintaining` and `writing`, looked at under
    /// either.
    pub(crate) released: AtomicBool,
    pub(crate) cancel: Cancel,
    pub(crate) poison: Poison,
    /// Size of the tables that compaction writes.
    pub(crate) table_bytes: u64,
}

impl LsmY {
    /// Opens the tree in `path`, or creates one there unless `read_only`.
    ///
    /// Read-only writes not a byte: not even what a crash left is removed. Cost: a few reads a
    /// table.
    /// Errors: `NoDatabase` (read-only and nothing there), `Corrupt`, `Io`, `FormatVersion`.
    pub(crate) fn open(path: &Path, shared: &Arc<LsmShared>, read_only: bool) -> Result<Self> {
        let manifest = manifest::load(path)?;
        let cancel = Cancel::default();
        let (tree, snapshot) = match (&manifest, read_only) {
            (Some(manifest), true) => (None, Snapshot::recover(path, manifest, shared)?),
            (None, true) => {
                return Err(Error::NoDatabase {
                    path: path.to_path_buf(),
                });
            }
            (_, false) => {
                let tree = open_engine(path, shared, manifest.as_ref(), &cancel)?;
                let snapshot = Snapshot::of_tree(&tree, path, shared, None)?;
                (Some(tree), snapshot)
            }
        };
        if !read_only {
            orphans::stale_temporaries(path)?;
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
            cancel,
            poison: Poison::default(),
            table_bytes: TABLE_BYTES,
        })
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.read())
    }

    /// The engine, if it may be written with. The caller holds `maintaining` or `writing`.
    pub(crate) fn writable(&self) -> Result<&AnyTree> {
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
    pub(crate) fn publish(&self, tree: &AnyTree) -> Result<()> {
        // So that an older version never replaces a newer one. Not under `snapshot`: the engine's
        // lock that this waits for is held across fsyncs.
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
    pub(crate) fn compact(
        &self,
        tree: &AnyTree,
        strategy: Arc<dyn CompactionStrategy>,
    ) -> Result<()> {
        // Every read pins its own snapshot, so no older version of a key is of use to anyone.
        let step = write::descriptors_left(&self.dir)
            .and_then(|()| contain(&self.dir, "compact", || tree.compact(strategy, NEWEST)));
        if let Err(e) = step {
            self.after_failure(tree);
            if let Some(_no_run) = self.writing.try_lock() {
                self.clean_up(tree);
            }
            return if self.cancel.is_set() { Ok(()) } else { Err(e) };
        }
        self.publish(tree)?;
        self.reap();
        Ok(())
    }

    /// [`LsmY::remove_orphans`], unless the tree must not be touched. What fails is tried again
    /// later.
    pub(crate) fn clean_up(&self, tree: &AnyTree) {
        if self.poison.check().is_ok() && !self.unsure.load(Relaxed) {
            let _ = self.remove_orphans(tree);
        }
    }

    /// Drops replaced snapshots that nobody reads any more (this deletes their tables' files).
    pub(crate) fn reap(&self) {
        let unused: Vec<_> = {
            let mut retired = self.retired.lock();
            retired
                .extract_if(.., |old| Arc::strong_count(old) == 1)
                .collect()
        };
        drop(unused);
    }

    /// After a failed run or compaction: decides whether the tree may be written again, if that can
    /// be found out now.
    pub(crate) fn after_failure(&self, tree: &AnyTree) {
        self.litter.store(true, Relaxed);
        self.unsure.store(true, Relaxed);
        // What it says is said again by the next call that writes.
        let _ = self.compare_with_disk(tree);
    }

    /// Poisons the tree if the engine is behind its own directory. A transient error leaves the
    /// question open.
    pub(crate) fn compare_with_disk(&self, tree: &AnyTree) -> Result<()> {
        // Under the engine's lock, so that no other change is halfway between disk and memory.
        let on_disk = contain_any(&self.dir, || {
            let _no_change = tree.get_version_history_lock();
            manifest::read_current(&self.dir)
        })
        .and_then(|current| current);
        // The engine may hold more than what was published (it failed after its manifest change).
        let compared = on_disk.and_then(|current| self.publish(tree).map(|()| current));
        match compared {
            Ok(Some((version, _))) if version <= self.snapshot().version => {
                self.unsure.store(false, Relaxed);
                Ok(())
            }
            Err(cause) if cause.is_transient() => Err(cause),
            Err(cause) => Err(self.poison.set(&cause)),
            Ok(_) => Err(self
                .poison
                .set(&"the tree's manifest on disk is not the one in memory; open again")),
        }
    }

    /// Removes files that belong to nothing, if no one may be using such files. The caller holds
    /// `maintaining` and `writing`.
    pub(crate) fn remove_orphans(&self, tree: &AnyTree) -> Result<()> {
        self.publish(tree)?;
        self.reap();
        if !self.retired.lock().is_empty() {
            return Ok(());
        }
        let snapshot = self.snapshot();
        let live: HashSet<String> = snapshot
            .tables()
            .map(|table| table.id().to_string())
            .collect();
        let version = format!("v{}", snapshot.version);
        orphans::remove_all(&self.dir.join(TABLES), |name| {
            name.parse::<u64>().is_ok() && !live.contains(name)
        })?;
        orphans::remove_all(&self.dir, |name| {
            let number = name.strip_prefix('v');
            number.is_some_and(|n| n.parse::<u64>().is_ok()) && name != version
        })?;
        self.litter.store(false, Relaxed);
        Ok(())
    }
}

pub(crate) fn leveled(sizes: &LevelSizes) -> Leveled {
    Leveled::default()
        .with_l0_threshold(sizes.trigger)
        .with_table_target_size(sizes.table_bytes)
        .with_level_ratio_policy(sizes.ratios.iter().map(|&r| r as f32).collect())
}

fn open_engine(
    path: &Path,
    shared: &Arc<LsmShared>,
    manifest: Option<&Manifest>,
    cancel: &Cancel,
) -> Result<AnyTree> {
    let seqno = SequenceNumberCounter::default();
    let visible = SequenceNumberCounter::default();
    let config = Config::new(path, seqno.clone(), visible.clone())
        .use_cache(Arc::clone(&shared.engine_cache))
        .use_descriptor_table(Some(Arc::clone(&shared.engine_descriptors)))
        // I7: nothing of a table is pinned but its top-level indexes; the rest goes through the
        // cache.
        .index_block_partitioning_policy(PartitioningPolicy::all(true))
        .filter_block_partitioning_policy(PartitioningPolicy::all(true))
        .index_block_pinning_policy(PinningPolicy::all(false))
        .filter_block_pinning_policy(PinningPolicy::all(false))
        .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(
            BloomConstructionPolicy::BitsPerKey(FILTER_BITS),
        )))
        // Said, because the default compresses as soon as any crate of the program switches that on
        // in the engine.
        .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
        .index_block_compression_policy(CompressionPolicy::all(CompressionType::None))
        .data_block_size_policy(BlockSizePolicy::all(BLOCK_BYTES))
        .data_block_restart_interval_policy(RestartIntervalPolicy::all(RESTART_ENTRIES))
        .data_block_hash_ratio_policy(HashRatioPolicy::all(0.0))
        .with_compaction_filter_factory(Some(Arc::new(cancel.clone())));
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
