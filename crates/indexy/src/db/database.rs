//! `Db`: the handle of an open database.

#![forbid(unsafe_code)]

use super::{
    device::DeviceProfile,
    handle::{Core, Handle, Pinned},
    open,
    options::{self, Options},
    reports::{self, Stats, VerifyReport},
    tree::Batch,
};
use crate::error::{Error, Result};
use std::{fmt, path::Path, sync::Arc};

/// An open database: named trees under one memory budget and one log.
///
/// A handle is a reference: clones share everything and may be used from any thread. Dropping the
/// last one, and the last of all that was made from it ([`Tree`](crate::Tree),
/// [`Range`](crate::Range), [`Batch`], [`Snapshot`](crate::Snapshot),
/// [`Transaction`](crate::Transaction), [`Changes`](crate::Changes), [`Ticket`](crate::Ticket)),
/// stops the background threads and loses nothing that the [`Durability`](crate::Durability)
/// promised;
/// [`Db::close`] also writes everything to the disk index, so that the next open is quick. The
/// directory stays locked until the last of all these handles is gone, or `close` returned.
///
/// After a failed fsync or write of its own files, by whichever call or thread, the database is
/// *poisoned*: the call that met it gets the error itself, or `Poisoned` with it where the log
/// failed; reads go on, writes fail with the first cause. A full device (`OutOfSpace`) or a lack of
/// file descriptors does not poison, but for a call that has logged already what it cannot take
/// back: the write of a value over an eighth of the budget, and a removal of ranges, which waits
/// for 10 s. A directory that is renamed while it is open does (`DirectoryMoved`).
///
/// A forked child process must not use the handles that it inherits. It may drop them.
///
/// ```
/// use indexy::{Db, Options};
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path();
/// let db = Db::open(path, Options::new(64 << 20))?;
/// let tree = db.tree("orders")?;
/// tree.insert("17", "three chairs")?;
/// db.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Db {
    pub(crate) handle: Arc<Handle>,
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db")
            .field("path", &self.core().path)
            .finish_non_exhaustive()
    }
}

impl Db {
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.handle.core
    }

    /// Opens the database in the directory `path`, or creates it.
    ///
    /// Replays what the log has beyond the last flush, within the memory budget. With
    /// [`Options::read_only`] that has to fit in it. Cost: under a second after a clean close; else
    /// the replay.
    ///
    /// Errors: `BudgetTooSmall`, `InvalidOption`, `Unsupported`, `NoDatabase`, `NotADirectory`,
    /// `DestinationNotEmpty` (a new database in a directory with other files), `Locked`,
    /// `FormatVersion`, `Corrupt`, `Io`, `OutOfSpace`, `MergeOperatorMissing` (the log has merges
    /// of an operator that is not registered), and `MemoryStalled` or `ResidentTreesTooLarge` where
    /// the log's records find no room. After a crash an open for writing needs space, too: the end
    /// of the log, among other things, is written again, at the same place. Where a file system
    /// that copies on write is full, that is `OutOfSpace`, and may be repeated.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use indexy::{Db, Durability, Options};
    /// let options = Options::new(64 << 20).durability(Durability::Sync);
    /// let db = Db::open(dir.path(), options.clone())?;
    /// // One owner at a time.
    /// assert!(Db::open(dir.path(), options).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        Ok(Self {
            handle: Arc::new(open::open(path.as_ref(), options)?),
        })
    }

    /// As [`Db::open`], with log and manifest on `storage`.
    #[cfg(test)]
    pub(crate) fn open_on(
        storage: Arc<dyn crate::storage::Storage>,
        path: &Path,
        options: Options,
    ) -> Result<Self> {
        Ok(Self {
            handle: Arc::new(open::open_on(storage, path, options)?),
        })
    }

    /// The profile of [`Options::device`]; where that was to be measured, what was found. No I/O.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use indexy::{Db, DeviceProfile, Options};
    /// let db = Db::open(dir.path(), Options::new(4 << 20).device(DeviceProfile::Auto))?;
    /// assert!(db.device().is_some_and(|found| found != DeviceProfile::Auto));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn device(&self) -> Option<DeviceProfile> {
        self.core().options.device
    }

    /// An empty batch for this database. See [`Batch`] for an example.
    pub fn batch(&self) -> Batch {
        Batch::new(self.handle.clone())
    }

    /// Waits until everything written so far is durable in the log. Without a log
    /// ([`Durability::None`](crate::Durability::None)) it does nothing; see [`Db::flush`].
    ///
    /// Cost: at most a write and an fsync, shared with others that wait. Errors: `ReadOnly`,
    /// `Poisoned`, `OutOfSpace`, `Closed`, `Io` for want of a descriptor: it can be called again.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// db.tree("t")?.insert("key", "value")?;
    /// // From here on it survives a loss of power.
    /// db.sync()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sync(&self) -> Result<()> {
        self.core().check_writable()?;
        self.core().shared.log.wait_durable()
    }

    /// Writes everything to the disk index, makes it durable there and cuts the log. Writers go on
    /// meanwhile; what they write after the call began may or may not be included.
    ///
    /// Cost: writes every entry that is not on disk yet.
    /// Errors: `ReadOnly`, `Poisoned`, `OutOfSpace`, `Closed`, `Reentrant`, `Io`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// let tree = db.tree("t")?;
    /// tree.insert("key", "value")?;
    /// db.flush()?;
    /// assert_eq!(db.stats().x_dirty_keys, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flush(&self) -> Result<()> {
        let _open = self.core().operation()?;
        self.core().check_writable()?;
        self.core().flush()
    }

    /// Copies the database, as of one moment during the call (without a log each tree as of one of
    /// its own), into the directory `dest`, which must
    /// be absent or empty; it opens as a database of its own. Writers and readers go on.
    ///
    /// Cost: the immutable files of the disk index are hard-linked where the file system allows it,
    /// the log is copied. While it lasts, pages that a paged tree would reuse are kept, so that it
    /// grows by what is written.
    ///
    /// Errors: `DestinationNotEmpty` (also among the database's own trees or log), `Locked`
    /// (something else is being made there), `Corrupt` (the log is damaged), `Io`, `OutOfSpace`,
    /// `Poisoned`, `Reentrant`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # use indexy::{Db, Options};
    /// db.tree("t")?.insert("key", "value")?;
    /// let backup = dir.path().join("backup");
    /// db.checkpoint(&backup)?;
    /// let copy = Db::open(&backup, Options::new(4 << 20))?;
    /// assert_eq!(copy.tree("t")?.get("key")?.unwrap(), b"value");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn checkpoint(&self, dest: impl AsRef<Path>) -> Result<()> {
        let _open = self.core().operation()?;
        super::checkpoint::checkpoint(self.core(), dest.as_ref())
    }

    /// Walks everything: structure and order of every memory index, checksums and order of every
    /// disk index, and whether both agree. A report lists what does not hold; an `Err` means that
    /// the walk could not go on.
    ///
    /// Cost: reads all of the disk index twice, and a third time with a filter of evicted keys.
    /// Readers and writers go on, as beside a
    /// [`Snapshot`](crate::Snapshot).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// let report = db.verify()?;
    /// assert!(report.is_ok(), "{report:?}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn verify(&self) -> Result<VerifyReport> {
        let _open = self.core().operation()?;
        let pinned = Pinned::begin(&self.handle)?;
        reports::verify(self.core(), &pinned)
    }

    /// Figures about this database. Cost: sums of counters, no I/O.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// db.tree("t")?.insert("key", "value")?;
    /// let stats = db.stats();
    /// assert_eq!(stats.x_keys, 1);
    /// assert!(stats.memory_used_bytes <= stats.memory_budget_bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::collect(self.core())
    }

    /// Changes the memory budget in bytes, up or down; a smaller one is reached by release in the
    /// background. The cache of the disk index is resized, and pages that do not fit any more are
    /// forgotten (RocksDB and disk indexes of your own may forget more); new entries lie in slabs
    /// of the size for the new budget, and those of the old one are emptied as memory is needed.
    /// The log's buffers keep the size that they got at open. What is kept for snapshots goes to
    /// disk; without a disk for it
    /// ([`Options::snapshot_disk_bytes`](crate::Options::snapshot_disk_bytes) of 0), the oldest
    /// snapshots are given up until it takes no more than it may.
    ///
    /// Errors: `BudgetTooSmall` (below the minimum, or below twice what caches and buffers need),
    /// `InvalidOption` (above the maximum), `Closed`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// db.set_memory_budget(16 << 20)?;
    /// assert_eq!(db.stats().memory_budget_bytes, 16 << 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_memory_budget(&self, bytes: usize) -> Result<()> {
        self.core().check_open()?;
        options::check_budget(bytes)?;
        // Buffers of the log keep the size that they got at open; X needs room beside them.
        let budget = &self.core().budget;
        let counts = &self.core().shared.miss_counts;
        let minimum_bytes = 2 * self.core().lasting_bytes(bytes);
        if bytes < minimum_bytes {
            return Err(Error::BudgetTooSmall {
                budget_bytes: bytes,
                minimum_bytes,
            });
        }
        budget.set_limit(bytes);
        self.core().follow_budget();
        for tree in self.core().all_joined() {
            tree.misses.follow_budget(counts);
        }
        self.core().divide_memory();
        self.core().shared.room.wake_releaser.notify();
        self.core().shared.wake_builder.notify();
        self.core().shared.room.announce_freed();
        Ok(())
    }

    /// Flushes and ends the database: every clone and every tree returns `Closed` from now on. When
    /// this returns the directory is free, and the memory given back but for a rest, although
    /// handles live on. Waits for flushes, checkpoints and verifications in progress. The second
    /// call waits for the first and does nothing.
    ///
    /// A call that is being waited for does not wait itself: with the feature `async`, a waker may
    /// be called by the thread that closes the database, or by one that it joins. A second call
    /// there returns `Closed` at once, while the first goes on.
    ///
    /// A read in progress is waited for two seconds; if it takes longer the directory stays locked
    /// until the last handle is dropped.
    ///
    /// Errors: those of [`Db::flush`]; the handle is closed all the same, and the log keeps what
    /// was not flushed, as far as the durability had promised it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # use indexy::{Db, Options};
    /// let tree = db.tree("t")?;
    /// tree.insert("key", "value")?;
    /// db.close()?;
    /// assert!(tree.get("key").is_err());
    /// let again = Db::open(dir.path(), Options::new(4 << 20))?;
    /// assert_eq!(again.tree("t")?.get("key")?.unwrap(), b"value");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(&self) -> Result<()> {
        self.handle.close()
    }
}
