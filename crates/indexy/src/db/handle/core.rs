//! What every handle of one open database shares. How it ends is in `ending.rs`.
//!
//! Threads: a tree's status and the database's are set first, then [`Stripes::barrier`] waits for
//! the writers that looked before; so nothing is written after a `close` or `drop_tree` has gone
//! on.

#![forbid(unsafe_code)]

use super::{
    closing::Closing, dropped::DroppedTrees, lending::Division, stripes::Stripes, turn::Turn,
    updating, work::Work,
};
use crate::{
    db::{
        directory::{
            LOG_DIR, OwnedDirectory,
            manifest::{Manifest, TreeEntry},
        },
        hot_set::Keeper,
        index_y::YShared,
        options::Options,
    },
    error::{Error, Result},
    framework::{
        clean::truncate::flush_all, host::Host, memory::Holdings, shared::Shared, tree::Joined,
    },
    mem::{Freed, Memory, budget::Budget},
    storage::Storage,
    wal::Lsn,
    x::IndexX,
};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

/// Life of a tree handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Status {
    Open,
    /// Open, and its entries may expire. Calls for all other trees have one thing to look at.
    Expiring,
    Dropped,
    Closed,
}

/// One named tree.
pub(crate) struct TreeCore {
    /// What does not change while the database is open, and the name at open; see
    /// [`TreeCore::name`].
    pub entry: TreeEntry,
    pub joined: Arc<Joined>,
    /// Written only under the lock of [`Core::manifest`], after the manifest on disk has the name.
    name: RwLock<Arc<str>>,
    status: AtomicU8,
}

impl TreeCore {
    pub(crate) fn new(entry: TreeEntry, joined: Arc<Joined>) -> Self {
        let status = match joined.expiry {
            Some(_) => Status::Expiring,
            None => Status::Open,
        };
        Self {
            name: RwLock::new(Arc::from(entry.name.as_str())),
            entry,
            joined,
            status: AtomicU8::new(status as u8),
        }
    }

    /// The tree's name.
    pub(crate) fn name(&self) -> Arc<str> {
        self.name.read().clone()
    }

    /// The manifest has another name. The caller holds the lock of [`Core::manifest`].
    pub(crate) fn set_name(&self, name: &str) {
        *self.name.write() = name.into();
    }

    pub(crate) fn set_status(&self, status: Status) {
        self.status.store(status as u8, Ordering::Release);
    }

    /// Cost: one load.
    #[inline]
    pub(crate) fn live(&self) -> Result<()> {
        let status = self.status.load(Ordering::Acquire);
        if status == Status::Open as u8 {
            Ok(())
        } else {
            self.not_plain(status)
        }
    }

    /// It is live, and its entries do not expire. Cost: one load, that of [`TreeCore::live`].
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.status.load(Ordering::Acquire) == Status::Open as u8
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.status.load(Ordering::Acquire) == Status::Dropped as u8
    }

    #[cold]
    fn not_plain(&self, status: u8) -> Result<()> {
        if status == Status::Expiring as u8 {
            Ok(())
        } else if status == Status::Dropped as u8 {
            Err(Error::TreeDropped {
                name: self.name().to_string(),
            })
        } else {
            Err(Error::Closed)
        }
    }
}

/// How often a call that waits for others looks whether the database is being closed.
const CLOSING_POLL: Duration = Duration::from_millis(20);

/// The open database without its threads.
pub(crate) struct Core {
    pub path: PathBuf,
    pub options: Options,
    pub storage: Arc<dyn Storage>,
    pub budget: Arc<Budget>,
    pub shared: Arc<Shared>,
    pub stripes: Stripes,
    pub y_shared: Arc<YShared>,
    /// What the caches of `y_shared` were given.
    pub division: Mutex<Division>,
    /// What background work is counted for.
    pub work: Work,
    /// What every Index X is made of.
    pub memory: Arc<Memory>,
    /// Locked while the set of trees or the manifest changes.
    pub manifest: Mutex<Manifest>,
    pub trees: RwLock<BTreeMap<u32, Arc<TreeCore>>>,
    pub closing: Closing,
    /// Held shared by calls that touch the directory beside writers and background threads; `close`
    /// takes it alone.
    pub operations: RwLock<()>,
    /// Held by a checkpoint, and by a sorted load while its entries become a tree's
    /// (`framework/load.rs`). Comes before stripes.
    pub loads: Mutex<()>,
    pub directory: Arc<OwnedDirectory>,
    /// Bytes of the log that is there, where none is written: what recovery needs, and what is
    /// older.
    pub log_found: OnceLock<(u64, u64)>,
    /// Where the hot set is to be kept.
    pub hot: Option<Keeper>,
    /// Who may commit transactions.
    pub turn: Turn,
    pub dropped: DroppedTrees,
}

impl Core {
    /// Bytes of the log on disk: what recovery needs, and what is older.
    pub(crate) fn log_bytes(&self) -> (u64, u64) {
        let written = self.shared.log.get();
        let written = written.map(|log| (log.bytes_on_disk(), log.kept_bytes()));
        let found = || self.log_found.get().copied();
        written.or_else(found).unwrap_or_default()
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        match self.closing.has_begun() {
            false => Ok(()),
            true => Err(Error::Closed),
        }
    }

    /// Keeps the database from being closed while the guard lives. Errors: `Closed`. Who is called
    /// by a thread that `close` joins, as a waker is, is told so, and waits for `close` no longer
    /// than a moment.
    pub(crate) fn operation(&self) -> Result<RwLockReadGuard<'_, ()>> {
        updating::check(self)?;
        self.directory.check_process()?;
        loop {
            let guard = self.operations.try_read_for(CLOSING_POLL);
            self.check_open()?;
            if let Some(guard) = guard {
                return Ok(guard);
            }
        }
    }

    /// For writes: open, not read-only, not poisoned.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        if self.options.read_only {
            return Err(Error::ReadOnly);
        }
        self.shared.poison.check()
    }

    pub(crate) fn all_trees(&self) -> Vec<Arc<TreeCore>> {
        self.trees.read().values().cloned().collect()
    }

    pub(crate) fn all_joined(&self) -> Vec<Arc<Joined>> {
        self.trees
            .read()
            .values()
            .map(|t| t.joined.clone())
            .collect()
    }

    /// The same, and what they keep for themselves beside: all that a release chooses from.
    fn all_with_caches(&self) -> Vec<Arc<Joined>> {
        let mut all = self.all_joined();
        let caches = |tree: &Arc<Joined>| Some(tree.radix.as_ref()?.cache.clone());
        let caches: Vec<_> = all.iter().filter_map(caches).collect();
        all.extend(caches);
        all
    }

    pub(crate) fn log_dir(&self) -> PathBuf {
        self.path.join(LOG_DIR)
    }

    /// Writes everything dirty to Y, makes it durable and cuts the log.
    pub(crate) fn flush(&self) -> Result<()> {
        flush_all(self, &self.shared)
    }

    /// I6: the manifest names the new start of the log before the log is cut there.
    fn record_log_start(&self, start: Lsn) -> Result<()> {
        let durable = self.shared.log.get().map_or(Lsn(0), |log| log.durable());
        let mut manifest = self.manifest.lock();
        if start.0 <= manifest.log_start {
            return Ok(());
        }
        let mut next = manifest.clone();
        next.log_start = start.0;
        next.log_durable = next.log_durable.max(durable.0).max(start.0);
        self.replace_manifest(&mut manifest, next)
    }

    /// Replaces the manifest, on disk and then in memory. A failure that may have left the disk
    /// with the new one poisons: going on with the old one, writes could be acknowledged that the
    /// next open does not look for.
    pub(crate) fn replace_manifest(&self, manifest: &mut Manifest, next: Manifest) -> Result<()> {
        let (storage, path) = (&*self.storage, &self.path);
        let written = next
            .write_beside(storage, path)
            .map_err(|error| self.shared.guarded::<()>(Err(error)).unwrap_err())?;
        let Err(error) = Manifest::put_in_force(storage, path, &written) else {
            *manifest = next;
            return Ok(());
        };
        let retry = matches!(error, Error::OutOfSpace { .. })
            && matches!(Manifest::read(storage, path), Ok(Some(found)) if manifest.says_as(&found));
        if !retry {
            self.shared.poison.set(&error);
        }
        Err(error)
    }
}

impl Holdings for Core {
    fn x_bytes(&self) -> usize {
        let of = |tree: &Arc<Joined>| tree.x.stats().bytes + tree.versions.arena_bytes();
        self.all_with_caches().iter().map(of).sum()
    }

    fn resident_bytes(&self) -> usize {
        let trees = self.trees.read();
        let resident = trees.values().filter(|tree| tree.joined.resident);
        resident.map(|tree| tree.joined.x.stats().bytes).sum()
    }

    fn y_bytes(&self) -> usize {
        let of = |tree: &Arc<Joined>| tree.y.memory_bytes() + tree.versions.file_memory_bytes();
        self.all_joined().iter().map(of).sum()
    }

    fn when_freed(&self) -> Freed {
        self.memory.when_freed()
    }

    fn spill_images(&self) {
        let (shared, versions) = (&self.shared, &self.shared.versions);
        if versions.disk().is_some() && versions.bytes().0 > 0 {
            shared.spill_request.ask();
            shared.wake_spiller.notify();
        }
    }

    fn give_up_images(&self) {
        let versions = &self.shared.versions;
        if versions.disk().is_none() && versions.bytes().0 > 0 {
            versions.give_up_oldest();
        }
    }
}

impl Host for Core {
    fn trees(&self) -> Vec<Arc<Joined>> {
        self.all_with_caches()
    }

    fn persist_log_start(&self, start: Lsn) -> Result<()> {
        self.record_log_start(start)
    }

    fn log_limit_bytes(&self) -> u64 {
        self.options.log_limit()
    }

    fn collect_garbage(&self) {
        self.memory.collect();
    }

    fn empty_slabs(&self, bytes: usize) {
        self.memory.empty_slabs(bytes, || {
            for tree in self.all_with_caches() {
                tree.x.relocate();
                tree.versions.relocate();
            }
        });
    }

    fn empty_dropped(&self) {
        if self.dropped.empty(&self.stripes) {
            self.memory.collect();
        }
    }

    fn divide_memory(&self) {
        Self::divide_memory(self);
    }
}
