//! The state of an open run store, and who holds which lock of it.
//!
//! Locks, in this order: `maintaining` (one step of maintenance), `writing` (one run); then those
//! of [`Versions`]. Reads take none: they load the current version. Not here: reads (`read/`), runs
//! (`write.rs`), merges (`maintain.rs`), the contract (`index.rs`).

use super::{
    clock::Clock,
    stored::Stored,
    table::{Codec, FilterUse, TableMeta, TableOptions},
    version::{Opening, TABLES, Version, Versions},
};
use crate::{
    error::{Error, Result},
    storage::Storage,
    y::pool::{PageCache, Pool},
};
use parking_lot::Mutex;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

/// Bytes of a page of tables.
pub(crate) const PAGE_BYTES: usize = 4096;
/// What a tree of the crate `lsm-tree` has in its directory: format 1.
const OLD_FORMAT: &str = "current";
/// The format of the trees of this folder.
const FORMAT: u32 = 2;
/// Part of the pool that filters may fill before they are read from the device for their own sake.
const FILTER_DIVISOR: usize = 2;

/// Sizes, which tests make small.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// What the base of a partition should have.
    pub(crate) partition_bytes: u64,
    /// A run's table ends here, and the next one begins.
    pub(crate) table_bytes: u64,
    /// What a merge reads of a table at a time.
    pub(crate) read_bytes: usize,
    /// Without a run for so long, writers are thought to rest.
    pub(crate) quiet: Duration,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            partition_bytes: 32 << 20,
            table_bytes: 64 << 20,
            read_bytes: 256 << 10,
            quiet: Duration::from_secs(5),
        }
    }
}

/// A run store in a directory of its own; see the header of the folder.
pub(crate) struct LsmY {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) dir: PathBuf,
    pub(super) pool: Arc<Pool>,
    pub(super) owner: u64,
    pub(super) sizes: Sizes,
    /// How tables are written from now on. Held for a moment.
    pub(super) codec: Mutex<Codec>,
    pub(super) versions: Versions<Stored>,
    pub(super) maintaining: Mutex<()>,
    pub(super) writing: Mutex<()>,
    /// Loads under way.
    pub(super) loads: AtomicUsize,
    /// Maintenance is to end soon, and not to begin again.
    pub(super) interrupted: AtomicBool,
    /// Somebody else may have the directory. Set under `maintaining` and `writing`.
    pub(super) released: AtomicBool,
    pub(super) clock: Clock,
    /// Of the tables of the current version.
    pub(super) memory_bytes: AtomicUsize,
    /// Filters of all layers, and of all bases, in bytes.
    layer_filters: AtomicUsize,
    base_filters: AtomicUsize,
}

impl LsmY {
    /// Opens the tree in `dir`, or creates one there unless `read_only`.
    ///
    /// `owner` is any number that the database and the tree in it have alone: the files of another
    /// one are `Corrupt`. Read-only writes not a byte. Cost: the version log is read; of each table
    /// the length of its file is asked for. Errors: `NoDatabase` (read-only and nothing there),
    /// `Corrupt`, `Io`, `FormatVersion` (also for a tree of the crate `lsm-tree`: dump it with the
    /// version that wrote it, and load it).
    pub(crate) fn open(
        storage: &Arc<dyn Storage>,
        dir: &Path,
        cache: &PageCache,
        owner: u64,
        read_only: bool,
    ) -> Result<Self> {
        Self::open_with(storage, dir, cache, owner, read_only, Sizes::default())
    }

    pub(super) fn open_with(
        storage: &Arc<dyn Storage>,
        dir: &Path,
        cache: &PageCache,
        owner: u64,
        read_only: bool,
        sizes: Sizes,
    ) -> Result<Self> {
        let old = dir.join(OLD_FORMAT);
        if storage.exists(&old)? {
            return Err(Error::FormatVersion {
                path: old,
                found: 1,
                supported: FORMAT,
            });
        }
        let pool = cache.pool(PAGE_BYTES);
        let tables = dir.join(TABLES);
        let versions = Versions::open(Opening {
            storage,
            dir,
            owner,
            read_only,
            partition_bytes: sizes.partition_bytes,
            open_table: &mut |facts| Stored::open(&**storage, &tables, facts, &pool),
        })?;
        let y = Self {
            storage: Arc::clone(storage),
            dir: dir.to_path_buf(),
            pool,
            owner,
            sizes,
            codec: Mutex::new(Codec::Stored),
            versions,
            maintaining: Mutex::default(),
            writing: Mutex::default(),
            loads: AtomicUsize::new(0),
            interrupted: AtomicBool::new(false),
            released: AtomicBool::new(false),
            clock: Clock::new(sizes.quiet),
            memory_bytes: AtomicUsize::new(0),
            layer_filters: AtomicUsize::new(0),
            base_filters: AtomicUsize::new(0),
        };
        y.take_stock();
        Ok(y)
    }

    /// Refuses writes that must not happen. The caller holds `maintaining` or `writing`.
    pub(super) fn writable(&self) -> Result<()> {
        if self.released.load(Relaxed) {
            return Err(Error::Closed);
        }
        self.versions.writable()
    }

    /// Opens a table that was just written.
    pub(super) fn open_table(&self, dir: &Path, meta: &TableMeta) -> Result<Stored> {
        Stored::of_meta(&*self.storage, dir, meta.clone(), &self.pool)
    }

    pub(super) fn tables_dir(&self) -> PathBuf {
        self.dir.join(TABLES)
    }

    pub(super) fn table_options(&self) -> TableOptions {
        TableOptions {
            codec: *self.codec.lock(),
            ..TableOptions::default()
        }
    }

    /// The version that is read now.
    pub(super) fn version(&self) -> Arc<Version<Stored>> {
        Arc::clone(&self.versions.current())
    }

    /// Publishes what `step` makes of the current version; false if it makes nothing of it.
    pub(super) fn change(
        &self,
        step: impl FnOnce(&Version<Stored>) -> Option<Version<Stored>>,
    ) -> bool {
        let changed = self.versions.update(step);
        if changed {
            self.take_stock();
        }
        changed
    }

    /// Counts what the current version's tables take.
    fn take_stock(&self) {
        let version = self.versions.current();
        // Computed now, because it may read pages.
        let mut memory = version.totals().memory_bytes;
        let mut base = 0;
        let mut all = 0;
        for table in version.tables().into_values() {
            memory += table.memory_bytes();
            all += table.table().filter_bytes();
        }
        for partition in version.partitions() {
            let tables = partition.base.iter();
            base += tables
                .map(|table| table.table().filter_bytes())
                .sum::<usize>();
        }
        // A table that reaches over several bases is counted in each: no more than all there are.
        let base = base.min(all);
        self.memory_bytes.store(memory, Relaxed);
        self.base_filters.store(base, Relaxed);
        self.layer_filters.store(all - base, Relaxed);
    }

    /// How the filters of layers and of bases are asked.
    ///
    /// Layers come first: they are small, and asked for nearly every key in vain. Filters that do
    /// not fit would be read from the device for each key, and a page of a filter costs as much as
    /// the leaf that it may save.
    pub(super) fn filter_uses(&self) -> (FilterUse, FilterUse) {
        let room = self.pool.bytes() / FILTER_DIVISOR;
        let (layers, base) = (
            self.layer_filters.load(Relaxed),
            self.base_filters.load(Relaxed),
        );
        let fits = |bytes: usize| match bytes <= room {
            true => FilterUse::Always,
            false => FilterUse::IfCached,
        };
        (fits(layers), fits(layers + base))
    }
}
