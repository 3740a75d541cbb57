//! The state of an open run store, and who holds which lock of it.
//!
//! Locks, in this order: `maintaining` (one step of maintenance), `writing` (one run); then those
//! of [`Versions`]. Reads take none: they load the current version. Not here: reads (`read/`), runs
//! (`write.rs`), merges (`maintain.rs`), the contract (`index.rs`).

use super::{
    clock::Clock,
    compact::Known,
    damaged::Damaged,
    filters::{self, AbsentShare, Bits, Entries, ROOM_DIVISOR},
    stored::Stored,
    table::{Codec, FilterUse, TableMeta, TableOptions},
    version::{Opening, TABLES, TableFile, Version, Versions, sum},
};
use crate::{
    error::{Error, Result},
    storage::Storage,
    y::pool::{PageCache, Pool, loan::FilterLoan},
};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::BTreeSet,
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
pub(crate) const OLD_FORMAT: &str = "current";
/// The format of the trees of this folder.
const FORMAT: u32 = 2;

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
    /// Held by a step of maintenance; with it, what the last one looked at.
    pub(super) maintaining: Mutex<Known<Stored>>,
    pub(super) writing: Mutex<()>,
    /// Loads under way.
    pub(super) loads: AtomicUsize,
    /// Maintenance is to end soon, and not to begin again.
    pub(super) interrupted: AtomicBool,
    /// Somebody else may have the directory. Set under `maintaining` and `writing`.
    pub(super) released: AtomicBool,
    pub(super) clock: Clock,
    pub(super) damaged: Damaged,
    /// Of the tables of the current version.
    pub(super) memory_bytes: AtomicUsize,
    /// Of the tables of loads under way.
    pub(super) load_bytes: AtomicUsize,
    /// What reads look for in bases.
    pub(super) absent: AbsentShare,
    /// What filters have beside their part of the pool.
    pub(super) loan: Arc<FilterLoan>,
    /// Held by who places filters, briefly, and after all others.
    placing: Mutex<()>,
    /// The bytes that they were placed in.
    placed_in: AtomicUsize,
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
        let (pool, loan) = (cache.pool(PAGE_BYTES), cache.loan());
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
            damaged: Damaged::default(),
            memory_bytes: AtomicUsize::new(0),
            load_bytes: AtomicUsize::new(0),
            absent: AbsentShare::new(Arc::clone(&loan)),
            loan,
            placing: Mutex::default(),
            placed_in: AtomicUsize::new(0),
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

    pub(super) fn table_options(&self, filter_bits: usize) -> TableOptions {
        TableOptions {
            codec: *self.codec.lock(),
            filter_bits,
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

    /// Counts what the current version's tables take, and says whose filters have a place.
    fn take_stock(&self) {
        let version = self.version();
        // Computed now, because it may read pages.
        let totals = version.totals().memory_bytes;
        let tables = version.tables();
        let open: usize = tables.values().map(|table| table.memory_bytes()).sum();
        let alone = self.placing.lock();
        // Whoever has published another one meanwhile counts that.
        if Arc::ptr_eq(&version, &self.versions.current()) {
            self.memory_bytes.store(totals + open, Relaxed);
        }
        drop(version);
        self.place_filters(&alone);
    }

    /// Says whose filters have a place.
    fn place_filters(&self, _alone: &MutexGuard<'_, ()>) {
        let (usual, lent) = (self.usual_filter_room(), self.loan.lent());
        let version = self.versions.current();
        let (mut left, mut all) = (usual + lent, 0);
        let layers = version.partitions().iter().flat_map(|p| &p.layers);
        let layers: BTreeSet<u64> = layers.map(|table| table.facts().number).collect();
        let tables = version.tables();
        for of_layers in [true, false] {
            // The newest first: their bits were chosen for what there is.
            for (number, table) in tables.iter().rev() {
                if layers.contains(number) == of_layers {
                    all += table.table().filter_bytes();
                    left = table.place_filter(left);
                }
            }
        }
        self.loan.need(all, usual);
        self.placed_in.store(usual + lent, Relaxed);
    }

    /// Bytes of the pool that filters may fill, beside what is lent to them.
    #[inline]
    fn usual_filter_room(&self) -> usize {
        self.pool.usual_bytes() / ROOM_DIVISOR
    }

    /// The room of filters has changed since they were placed. One reader places them anew; others
    /// go on with what there is.
    #[cold]
    fn place_anew(&self) {
        if let Some(alone) = self.placing.try_lock() {
            self.place_filters(&alone);
        }
    }

    /// Bits a key of the filters of what is written now: those that deny the most when filters have
    /// all that they may borrow.
    pub(super) fn filter_bits(&self) -> Bits {
        let version = self.versions.current();
        let mut entries = Entries::default();
        for partition in version.partitions() {
            let weights = partition.weights();
            entries.layers += sum(&weights.layers).entries;
            entries.bases += sum(&weights.base).entries;
        }
        entries.depth = version.totals().layers;
        filters::bits(entries, self.usual_filter_room() + self.loan.offered())
    }

    /// How filters are asked.
    pub(super) fn filter_uses(&self) -> FilterUses {
        let room = self.usual_filter_room() + self.loan.lent();
        if room != self.placed_in.load(Relaxed) {
            self.place_anew();
        }
        FilterUses {
            of_bases: self.absent.is_worth_filters(),
        }
    }
}

/// See [`LsmY::filter_uses`].
#[derive(Debug, Clone, Copy)]
pub(super) struct FilterUses {
    of_bases: bool,
}

impl FilterUses {
    /// How that of `table` is asked, which is in a base or over one.
    pub(super) fn of(self, table: &Stored, in_base: bool) -> FilterUse {
        match in_base && !self.of_bases {
            true => FilterUse::Never,
            false => FilterUse::First(table.segments_that_fit()),
        }
    }
}
