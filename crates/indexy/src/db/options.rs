//! Options of a database: a plain builder, validated once at open. Those of a tree:
//! `tree_options.rs`.

#![forbid(unsafe_code)]

use super::{
    device::{Access, DeviceProfile},
    index_y,
    kinds::{Factories, IndexXKind, IndexYKind, IndexYName},
    machine,
};
use crate::{
    error::{Error, Result},
    framework::{
        operators::{Merge, Registered},
        policies::{Admission, HotSet, Policies, Precleaning, Release},
    },
    limits::{MAX_MEMORY_BUDGET_BYTES, MIN_MEMORY_BUDGET_BYTES},
    storage::Medium,
    versions::time::Clock,
    y::IndexYFactory,
};
use serde::{Deserialize, Serialize};
use std::{
    panic::{RefUnwindSafe, UnwindSafe},
    sync::Arc,
    time::Duration,
};

/// When a write is safe from a crash.
///
/// ```
/// use indexy::{Durability, Options};
/// assert_eq!(Durability::default(), Durability::Buffered { interval_ms: 100 });
/// let options = Options::new(64 << 20).durability(Durability::Sync);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Durability {
    /// No log. After a crash each key is at least as new as the last `flush`; batches may be there
    /// in part.
    None,
    /// Logged; the log is made durable `interval_ms` milliseconds after the last time. After a
    /// crash the state is a prefix of the log, batches are whole, and at most the last interval is
    /// missing, and what up to two syncs take.
    Buffered {
        /// Milliseconds between the end of one sync and the next; at least 1.
        interval_ms: u64,
    },
    /// Every write waits until its log record is durable; concurrent writers share one fsync.
    Sync,
}

impl Default for Durability {
    fn default() -> Self {
        Self::Buffered { interval_ms: 100 }
    }
}

/// Options of a database.
///
/// ```
/// use indexy::{Durability, Options};
/// let options = Options::new(64 << 20).durability(Durability::Sync);
/// assert_eq!(options.memory_budget_bytes(), 64 << 20);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub(crate) memory_budget_bytes: usize,
    pub(crate) index_x: IndexXKind,
    pub(crate) index_y: IndexYKind,
    /// `index_y` was asked for.
    pub(crate) index_y_chosen: bool,
    pub(crate) device: Option<DeviceProfile>,
    pub(crate) access: Option<Access>,
    pub(crate) durability: Durability,
    pub(crate) create_if_missing: bool,
    pub(crate) read_only: bool,
    pub(crate) log_limit_bytes: Option<u64>,
    pub(crate) direct_reads: Option<bool>,
    pub(crate) snapshot_memory_bytes: usize,
    pub(crate) change_history_bytes: u64,
    pub(crate) policies: Policies,
    pub(crate) hot_set: HotSet,
    pub(crate) snapshot_disk_bytes: u64,
    pub(crate) factories: Factories,
    pub(crate) merge_operators: Registered,
    /// What the directory lies on.
    pub(crate) medium: Medium,
    pub(crate) clock: ChosenClock,
    /// Smallest segment of the log in bytes.
    pub(crate) min_segment_bytes: u64,
}

/// Bounds of the default of [`Options::log_limit_bytes`], which is twice the memory budget.
const DEFAULT_LOG_LIMIT_BYTES: (u64, u64) = (64 << 20, 1 << 30);

/// A smaller segment of the log is not worth a file.
const MIN_SEGMENT_BYTES: u64 = 1 << 20;

/// With a budget over this part of the memory that the process may use, the page cache is not worth
/// its cost.
const PAGE_CACHE_DIVISOR: usize = 2;

impl Default for Options {
    /// A quarter of the memory that the process may use: of its cgroup's limit (v1 or v2), else of
    /// physical memory.
    fn default() -> Self {
        Self::new((machine::memory_limit_bytes() / 4).max(MIN_MEMORY_BUDGET_BYTES))
    }
}

impl Options {
    /// Defaults with a memory budget in bytes, for all trees, caches and buffers together.
    /// At least [`MIN_MEMORY_BUDGET_BYTES`], at most [`MAX_MEMORY_BUDGET_BYTES`], which
    /// [`Db::open`](crate::Db::open) checks.
    ///
    /// ```
    /// use indexy::Options;
    /// let options = Options::new(256 << 20); // 256 MiB
    /// ```
    #[must_use]
    pub fn new(memory_budget_bytes: usize) -> Self {
        Self {
            memory_budget_bytes,
            index_x: IndexXKind::default(),
            index_y: IndexYKind::default(),
            index_y_chosen: false,
            device: None,
            access: None,
            durability: Durability::default(),
            create_if_missing: true,
            read_only: false,
            log_limit_bytes: None,
            direct_reads: None,
            snapshot_memory_bytes: 0,
            change_history_bytes: 0,
            policies: Policies::default(),
            hot_set: HotSet::default(),
            snapshot_disk_bytes: u64::MAX,
            factories: Factories::default(),
            merge_operators: Registered::default(),
            medium: Medium::default(),
            clock: ChosenClock::default(),
            min_segment_bytes: MIN_SEGMENT_BYTES,
        }
    }

    /// Memory index of trees created without a choice of their own. Default: [`IndexXKind::Art`].
    ///
    /// ```
    /// use indexy::{IndexXKind, Options};
    /// let options = Options::new(256 << 20).index_x(IndexXKind::BPlus);
    /// ```
    #[must_use]
    pub fn index_x(mut self, kind: IndexXKind) -> Self {
        self.index_x = kind;
        self
    }

    /// Disk index of trees created without a choice of their own. Default: [`IndexYKind::Lsm`].
    ///
    /// ```
    /// use indexy::{IndexYKind, Options};
    /// let options = Options::new(256 << 20).index_y(IndexYKind::BPlus { page_bytes: 4096 });
    /// ```
    #[must_use]
    pub fn index_y(mut self, kind: IndexYKind) -> Self {
        self.index_y = kind;
        self.index_y_chosen = true;
        self
    }

    /// Sets what is best on a kind of device: the disk index of new trees, with its size of pages
    /// ([`DeviceProfile::page_bytes`]), what reads bring into memory
    /// ([`DeviceProfile::admission`]), how paged trees are read ([`DeviceProfile::access`]), and
    /// whether tables are read past the page cache ([`DeviceProfile::direct_reads`]). Default:
    /// none.
    ///
    /// Whatever is set explicitly wins, in any order: [`Options::index_y`],
    /// [`TreeOptions::index_y`], [`TreeOptions::admission`], [`Options::access`],
    /// [`Options::direct_reads`]. Resident trees, and trees without an Index X, keep
    /// [`Admission::Always`]. Trees that exist keep their disk index. Nothing is stored: a program
    /// without the option opens the database as ever.
    ///
    /// [`DeviceProfile::Auto`] writes and reads a file of 1 MiB below the directory at each open,
    /// for up to some 200 ms, and removes it. With [`Options::read_only`] that is an
    /// `InvalidOption`. A page cache that cannot be read past looks like memory.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use indexy::{Admission, Db, DeviceProfile, IndexYKind, Options};
    /// let options = Options::new(4 << 20).device(DeviceProfile::Hdd);
    /// let tree = Db::open(dir.path(), options)?.tree("t")?;
    /// assert_eq!(tree.pair().1, IndexYKind::BPlus { page_bytes: 16_384 });
    /// assert_eq!(tree.admission(), Admission::Top { percent: 5 });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [`TreeOptions::admission`]: crate::TreeOptions::admission
    /// [`TreeOptions::index_y`]: crate::TreeOptions::index_y
    #[must_use]
    pub fn device(mut self, profile: DeviceProfile) -> Self {
        self.device = Some(profile);
        self
    }

    /// How trees of [`IndexYKind::BPlus`] are read. Default: [`Access::Block`].
    ///
    /// [`Access::Byte`] is for devices that are memory: files on DAX, or on a file system in
    /// memory. A get that misses memory looks at some hundred bytes where they lie instead of
    /// reading 4 KiB, and takes no frame of the pool and no lock. Inner pages are read into the
    /// pool as ever; a scan looks at whole leaves.
    ///
    /// - A page is checked against its checksum when it is first looked at since it was written or
    ///   the database was opened, and not again: what goes bad after that is not noticed before the
    ///   next open or [`Db::verify`](crate::Db::verify).
    /// - What was looked at counts as resident memory of the process, but belongs to the device:
    ///   the budget does not count it. On another device it is page cache. The system's page tables
    ///   take 8 bytes for each 4 KiB that were looked at, which nobody counts; the database takes
    ///   a bit for each page, which it does.
    /// - A fault of the device under a mapping is an error of the call, as with blocks: the first
    ///   database with this access installs a handler of `SIGBUS`, for the life of the process,
    ///   which passes on what it does not know. A program that installs its own one later must do
    ///   so, too. No handler helps a thread that blocks `SIGBUS`, or a process for which the system
    ///   maps no page more.
    /// - A file system on which mapped files do not show at once what was written (some network
    ///   mounts) must not be used with it.
    ///
    /// Other disk indexes have no access by the byte: with this option, a database with a tree of
    /// theirs, or for which they are the choice for new trees, does not open (`InvalidOption`).
    /// Nothing is stored.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use indexy::{Access, Db, IndexYKind, Options};
    /// let options = Options::new(4 << 20)
    ///     .index_y(IndexYKind::BPlus { page_bytes: 4096 })
    ///     .access(Access::Byte);
    /// let tree = Db::open(dir.path(), options)?.tree("t")?;
    /// tree.insert("key", "value")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = Some(access);
        self
    }

    /// Makes the kind [`IndexYKind::custom`]`(name)` known, so that databases with trees of that
    /// kind open and new trees can have it. Registered anew, a name means the new factory. Costs
    /// nothing while no tree has the kind, but for its [`work_bytes`](IndexYFactory::work_bytes).
    /// The module [`index_y`](crate::index_y) has an example.
    ///
    /// `name`: as [`IndexYName::new`] takes it; the database remembers it. Errors: `InvalidOption`.
    pub fn register_index_y(mut self, name: &str, factory: Arc<dyn IndexYFactory>) -> Result<Self> {
        self.factories.register(IndexYName::new(name)?, factory);
        Ok(self)
    }

    /// Makes a merge operator of your own known, so that trees with
    /// [`MergeOperator::Own`] of its name can be merged into, and so that databases open in which
    /// merges of such trees wait. [`Merge`] has an example. Registered anew, a name means the new
    /// operator: it must do the same.
    ///
    /// Errors: `InvalidOption` for a name that has not 1..=255 bytes.
    ///
    /// [`MergeOperator::Own`]: crate::MergeOperator::Own
    pub fn register_merge(mut self, operator: Arc<dyn Merge>) -> Result<Self> {
        self.merge_operators.add(operator)?;
        Ok(self)
    }

    /// When a write is safe from a crash. Default: [`Durability::default`].
    ///
    /// ```
    /// use indexy::{Durability, Options};
    /// let options = Options::new(256 << 20).durability(Durability::Buffered { interval_ms: 10 });
    /// ```
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Whether an absent database is created. Default: true.
    ///
    /// ```
    /// use indexy::{Db, Error, Options};
    /// let options = Options::new(4 << 20).create_if_missing(false);
    /// assert!(matches!(Db::open("/absent", options), Err(Error::NoDatabase { .. })));
    /// ```
    #[must_use]
    pub fn create_if_missing(mut self, create: bool) -> Self {
        self.create_if_missing = create;
        self
    }

    /// Opens without writing a byte to the directory; every write fails with `ReadOnly`. Several
    /// processes may have a database open so, and none may write it meanwhile. Default: false.
    ///
    /// Nothing can be written away, so what the log holds has to fit in the budget, and a range
    /// that was removed since the last flush takes a tombstone for each key that the disk index has
    /// of it. After a kill the log may have about [`Options::log_limit_bytes`], by default twice
    /// the budget and 64 MiB at least; what does not fit is `BudgetTooSmall`. Then give more
    /// memory, or open the database once for writing and close it.
    ///
    /// ```
    /// # use indexy::{Db, Options};
    /// # let dir = tempfile::tempdir()?;
    /// Db::open(dir.path(), Options::new(4 << 20))?.tree("t")?.insert("key", "value")?;
    /// let db = Db::open(dir.path(), Options::new(4 << 20).read_only(true))?;
    /// let tree = db.tree("t")?;
    /// assert!(tree.contains_key("key")? && tree.remove("key").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Log size in bytes above which old entries are written to the disk index, so that the log can
    /// be cut. Smaller: less to replay at open; larger: keys that are overwritten often go to disk
    /// less often. Default: twice the memory budget, between 64 MiB and 1 GiB.
    ///
    /// ```
    /// use indexy::Options;
    /// let options = Options::new(256 << 20).log_limit_bytes(128 << 20);
    /// ```
    #[must_use]
    pub fn log_limit_bytes(mut self, bytes: u64) -> Self {
        self.log_limit_bytes = Some(bytes);
        self
    }

    /// Whether single keys are read from tables of [`IndexYKind::Lsm`] past the page cache of the
    /// operating system. Default: where the process may use less than twice the budget (its
    /// cgroup's limit, v1 or v2, or physical memory, when the database is opened).
    ///
    /// With spare memory the page cache is a second cache, which no budget counts and which the
    /// system takes back at will. Without, it answers next to nothing and has to evict for every
    /// read: past it a cold get was measured at three quarters of the time, its 99th percentile at
    /// half. Long scans read ahead through the page cache either way. [`IndexYKind::BPlus`] reads
    /// past it always, RocksDB through it. Where a file system refuses direct I/O, reads go through
    /// the page cache.
    ///
    /// ```
    /// use indexy::Options;
    /// let options = Options::new(256 << 20).direct_reads(true);
    /// ```
    #[must_use]
    pub fn direct_reads(mut self, direct: bool) -> Self {
        self.direct_reads = Some(direct);
        self
    }

    /// What writers keep for open snapshots takes so many bytes of the memory budget: keys and old
    /// values. From half of it on they go to disk in the background; at it, writers wait for that.
    /// They go earlier where a writer waits for memory, and a large batch may take it past this, up
    /// to half of the budget. At most half of the budget; 0, the default: a quarter.
    ///
    /// ```
    /// use indexy::Options;
    /// let options = Options::new(256 << 20).snapshot_memory_bytes(128 << 20);
    /// ```
    #[must_use]
    pub fn snapshot_memory_bytes(mut self, bytes: usize) -> Self {
        self.snapshot_memory_bytes = bytes;
        self
    }

    /// Of the log's part that is not needed for recovery any more, at least the newest so many
    /// bytes stay on disk, for [`Db::changes`](crate::Db::changes); at most one file of the log
    /// more. Default: 0.
    ///
    /// ```
    /// use indexy::Options;
    /// let options = Options::new(256 << 20).change_history_bytes(4 << 30);
    /// ```
    #[must_use]
    pub fn change_history_bytes(mut self, bytes: u64) -> Self {
        self.change_history_bytes = bytes;
        self
    }

    /// Which part of memory is released first. Default: [`Release::AccessDensity`].
    ///
    /// ```
    /// use indexy::{Options, Release};
    /// let options = Options::new(256 << 20).release(Release::Clock);
    /// ```
    #[must_use]
    pub fn release(mut self, policy: Release) -> Self {
        self.policies.release = policy;
        self
    }

    /// Whether a release spares entries that were read since the last one over their region, as
    /// long as the others suffice. Default: true.
    ///
    /// ```
    /// use indexy::Options;
    /// let options = Options::new(256 << 20).second_chance(false);
    /// ```
    #[must_use]
    pub fn second_chance(mut self, spare: bool) -> Self {
        self.policies.second_chance = spare;
        self
    }

    /// What is written to the disk index ahead of need. Default: [`Precleaning::CheckBack`].
    ///
    /// ```
    /// use indexy::{Options, Precleaning};
    /// let options = Options::new(256 << 20).precleaning(Precleaning::Off);
    /// ```
    #[must_use]
    pub fn precleaning(mut self, precleaning: Precleaning) -> Self {
        self.policies.precleaning = precleaning;
        self
    }

    /// Whether the next open brings the keys back into memory that are worth it at the end of this
    /// one. Default: [`HotSet::Off`]: a program that opens a database for a few reads would read
    /// more than it needs.
    ///
    /// With [`HotSet::Keep`], a thread looks the saved keys up after each open, the hottest first,
    /// many at once, until memory is as full as a release leaves it (about five sixths of the
    /// budget). Reads, writes and drops of trees go on meanwhile and come first: no writer waits
    /// for it, and nothing is released for it. [`Stats::warming`](crate::Stats::warming) says
    /// whether it is still at it. A read-only database is warmed, and saves nothing.
    ///
    /// Cost: a save walks over the memory index, and writes and syncs some 5 to 20 bytes a key;
    /// `close` and the drop of the last handle wait for it. While warming has not ended, nothing is
    /// saved, so that a short life leaves the file of a longer one. A file that is damaged, of
    /// another version or another database is ignored, and a save that fails (a full device)
    /// changes nothing: both are events (feature `tracing`), never errors. Keys that are gone are
    /// passed over; those of dropped trees are not looked up. Checkpoints have no hot set.
    ///
    /// ```
    /// use indexy::{Db, HotSet, Options};
    /// use std::time::Duration;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path();
    /// let every = Duration::from_secs(600);
    /// let options = Options::new(64 << 20).hot_set(HotSet::Keep { every });
    /// let db = Db::open(path, options.clone())?;
    /// db.tree("t")?.insert("key", "value")?;
    /// db.close()?;
    /// let db = Db::open(path, options)?;
    /// while db.stats().warming {
    ///     std::thread::yield_now();
    /// }
    /// assert_eq!(db.stats().warmed_keys, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn hot_set(mut self, hot_set: HotSet) -> Self {
        self.hot_set = hot_set;
        self
    }

    /// What is kept for open snapshots takes so many bytes on disk at most, in temporary files
    /// below the directory of the database. Beyond it the oldest [`Snapshot`](crate::Snapshot) or
    /// transaction is given up. 0: nothing goes to disk, and the oldest one is given up beyond
    /// [`Options::snapshot_memory_bytes`]. Default: no limit. One snapshot needs what was
    /// overwritten since it began once, and for some time a few times; it cannot need more than
    /// the trees held and a few bytes for each new key. A full device gives the oldest one up, too.
    ///
    /// ```
    /// use indexy::Options;
    /// let options = Options::new(256 << 20).snapshot_disk_bytes(10 << 30);
    /// ```
    #[must_use]
    pub fn snapshot_disk_bytes(mut self, bytes: u64) -> Self {
        self.snapshot_disk_bytes = bytes;
        self
    }

    /// The database behaves as on `device`, whatever it lies on, as long as that is faster. Wants
    /// the cargo feature `testing`. [`ModelledDevice`](crate::ModelledDevice) says what is slow.
    ///
    /// `Unsupported` at open with [`IndexYKind::RocksDb`], whose files are its own.
    ///
    /// ```
    /// use indexy::{DeviceModel, ModelledDevice, Options};
    /// let disk = ModelledDevice::new(DeviceModel::HDD, 1);
    /// let options = Options::new(64 << 20).modelled_device(disk);
    /// ```
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn modelled_device(mut self, device: crate::ModelledDevice) -> Self {
        self.medium.modelled = Some(device);
        self
    }

    /// Tells the time to trees whose entries expire ([`TreeOptions::ttl`]). Default: the clock of
    /// the operating system.
    ///
    /// An open database takes the largest time that the clock has said so far for the time of now:
    /// a clock that goes back stands still. The next open begins with what the clock says then.
    /// What has expired and was not dropped yet appears again if that is earlier.
    ///
    /// ```
    /// use indexy::{Clock, Db, Options, TreeOptions, Ttl};
    /// use std::sync::{Arc, Mutex};
    /// use std::time::{Duration, SystemTime};
    /// #[derive(Debug)]
    /// struct ByHand(Mutex<SystemTime>);
    /// impl Clock for ByHand {
    ///     fn now(&self) -> SystemTime {
    ///         *self.0.lock().unwrap()
    ///     }
    /// }
    /// # let dir = tempfile::tempdir()?;
    /// let clock = Arc::new(ByHand(Mutex::new(SystemTime::now())));
    /// let db = Db::open(dir.path(), Options::new(4 << 20).clock(clock.clone()))?;
    /// let minute = Duration::from_secs(60);
    /// let cache = db.tree_with("cache", TreeOptions::new().ttl(Ttl::Default(minute)))?;
    /// cache.insert("key", "value")?;
    /// *clock.0.lock().unwrap() += minute;
    /// assert_eq!(cache.get("key")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [`TreeOptions::ttl`]: crate::TreeOptions::ttl
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = ChosenClock(Some(clock));
        self
    }

    /// For tests that fill some segments of the log.
    #[cfg(test)]
    pub(crate) fn min_segment_bytes(mut self, bytes: u64) -> Self {
        self.min_segment_bytes = bytes;
        self
    }

    /// The memory budget in bytes.
    ///
    /// ```
    /// assert_eq!(indexy::Options::new(4 << 20).memory_budget_bytes(), 4 << 20);
    /// ```
    #[must_use]
    pub fn memory_budget_bytes(&self) -> usize {
        self.memory_budget_bytes
    }

    pub(crate) fn log_limit(&self) -> u64 {
        let (min, max) = DEFAULT_LOG_LIMIT_BYTES;
        self.log_limit_bytes.unwrap_or(
            (self.memory_budget_bytes as u64)
                .saturating_mul(2)
                .clamp(min, max),
        )
    }

    /// Whether tables are read past the page cache, decided now.
    pub(crate) fn reads_directly(&self) -> bool {
        self.direct_reads.unwrap_or_else(|| {
            machine::memory_limit_bytes() / PAGE_CACHE_DIVISOR < self.memory_budget_bytes
        })
    }

    /// With what `profile`, which is not [`DeviceProfile::Auto`], sets and nobody else has.
    pub(crate) fn on_device(self, profile: DeviceProfile) -> Self {
        let page_bytes = profile.page_bytes();
        Self {
            device: Some(profile),
            index_y: match self.index_y_chosen {
                true => self.index_y,
                false => IndexYKind::BPlus { page_bytes },
            },
            direct_reads: self.direct_reads.or(profile.direct_reads()),
            ..self
        }
    }

    /// How paged trees are read. The profile is a named one by now.
    pub(crate) fn chosen_access(&self) -> Access {
        let preset = || self.device.map(DeviceProfile::access);
        self.access.or_else(preset).unwrap_or_default()
    }

    /// What trees admit that do not say.
    pub(crate) fn admission(&self, x: IndexXKind, resident: bool) -> Admission {
        match self.device {
            Some(profile) if !x.is_buffer_only() && !resident => profile.admission(),
            _ => Admission::default(),
        }
    }

    pub(crate) fn validate(&self) -> Result<()> {
        check_budget(self.memory_budget_bytes)?;
        if self.device == Some(DeviceProfile::Auto) && self.read_only {
            return Err(Error::InvalidOption {
                option: "device",
                reason: "to measure it, a file has to be written: a read-only database cannot"
                    .into(),
            });
        }
        if let Durability::Buffered { interval_ms: 0 } = self.durability {
            let reason = "an interval of 0 ms is what Durability::Sync is for".into();
            return Err(Error::InvalidOption {
                option: "durability",
                reason,
            });
        }
        if self.hot_set
            == (HotSet::Keep {
                every: Duration::ZERO,
            })
        {
            return Err(Error::InvalidOption {
                option: "hot_set",
                reason: "to save it all the time leaves no time for anything else".into(),
            });
        }
        if self.snapshot_memory_bytes > self.memory_budget_bytes / 2 {
            return Err(Error::InvalidOption {
                option: "snapshot_memory_bytes",
                reason: "it is more than half of the memory budget".into(),
            });
        }
        let index_y = match self.device {
            Some(profile) => self.clone().on_device(profile).index_y,
            None => self.index_y,
        };
        self.check_pair(self.index_x, index_y)
    }

    /// What this build and the registered factories can open.
    pub(crate) fn check_pair(&self, x: IndexXKind, y: IndexYKind) -> Result<()> {
        match x {
            IndexXKind::Radix | IndexXKind::RadixLeaves
                if matches!(y, IndexYKind::Lsm | IndexYKind::RocksDb) =>
            {
                return Err(Error::Unsupported {
                    what: format!(
                        "index_x {x} over index_y {y}, which does not know where its keys are: \
                         index_y bplus does"
                    ),
                });
            }
            IndexXKind::Art
            | IndexXKind::BPlus
            | IndexXKind::None
            | IndexXKind::Radix
            | IndexXKind::RadixLeaves => {}
        }
        if y == IndexYKind::RocksDb && self.medium != Medium::default() {
            return Err(Error::Unsupported {
                what: "RocksDB on a modelled device: its files are its own".into(),
            });
        }
        // A preset asks for what there is.
        if self.access == Some(Access::Byte) && !matches!(y, IndexYKind::BPlus { .. }) {
            return Err(Error::InvalidOption {
                option: "access",
                reason: format!(
                    "index_y {y} cannot be read by the byte: IndexYKind::BPlus can, and \
                     Access::Block is for all"
                ),
            });
        }
        index_y::supported(y, &self.factories)
    }
}

pub(crate) fn check_budget(bytes: usize) -> Result<()> {
    if bytes < MIN_MEMORY_BUDGET_BYTES {
        return Err(Error::BudgetTooSmall {
            budget_bytes: bytes,
            minimum_bytes: MIN_MEMORY_BUDGET_BYTES,
        });
    }
    if bytes > MAX_MEMORY_BUDGET_BYTES {
        return Err(Error::InvalidOption {
            option: "memory_budget_bytes",
            reason: format!("it is {bytes}: {MAX_MEMORY_BUDGET_BYTES} at most"),
        });
    }
    Ok(())
}

/// A clock of the user's.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChosenClock(Option<Arc<dyn Clock>>);

/// So that `Options` may cross `catch_unwind`. What a clock says after it panicked is up to it.
impl UnwindSafe for ChosenClock {}
impl RefUnwindSafe for ChosenClock {}

impl ChosenClock {
    pub(crate) fn get(&self) -> Option<Arc<dyn Clock>> {
        self.0.clone()
    }
}

impl PartialEq for ChosenClock {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for ChosenClock {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_direct_where_memory_is_short_or_when_told() {
        let memory = crate::db::machine::memory_limit_bytes();
        let (much, little) = (Options::new(memory / 4), Options::new(memory / 4 * 3));
        assert!(!much.reads_directly() && little.reads_directly());
        assert!(much.direct_reads(true).reads_directly());
        assert!(!little.direct_reads(false).reads_directly());
    }

    #[test]
    fn a_preset_sets_access_and_direct_reads_where_nobody_else_has() {
        use DeviceProfile::{Nvram, Ssd};
        // Without a preset, tables are read through the page cache.
        let options = Options::new(crate::db::machine::memory_limit_bytes() / 4);
        let on = |options: &Options, profile| {
            let options = options.clone().on_device(profile);
            (options.chosen_access(), options.reads_directly())
        };
        assert_eq!(options.chosen_access(), Access::Block);
        assert_eq!(on(&options, Ssd), (Access::Block, false));
        assert_eq!(on(&options, Nvram), (Access::Byte, true));
        let by_block = options.clone().access(Access::Block).direct_reads(false);
        assert_eq!(on(&by_block, Nvram), (Access::Block, false));
        let by_byte = options.access(Access::Byte).direct_reads(true);
        assert_eq!(on(&by_byte, Ssd), (Access::Byte, true));
    }
}
