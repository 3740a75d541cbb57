//! The current version, the durable one, and the lives of tables' files.
//!
//! Who does what, when:
//! - Readers take [`Versions::current`] and no lock. They pin tables, and remove nothing.
//! - A table is made known with [`Versions::adopt`] as soon as its file is complete. From then on
//!   the file goes when nobody needs it: not the durable version, not one that may become durable
//!   (a commit under way, or one whose write failed), and no `Arc` of the table.
//! - [`Versions::update`] publishes. Steps are made one after the other (`publishing`).
//! - [`Versions::commit`] makes the current version durable: syncs new tables, syncs their
//!   directory, appends one record, syncs it. Only then are files removed that only the old version
//!   listed. A log that has grown long is replaced instead: a new file, synced, renamed, and the
//!   directory synced.
//! - [`Versions::reap`] removes files; called by `commit`, and by maintenance when readers have
//!   left.
//!
//! Locks, in this order: `log` (held across the I/O of a commit), `publishing` (no I/O but what the
//! step does), `files` (held across removals). Each may be taken without those before it.
//! [`Versions::disk_bytes`] takes none: a device that hangs does not hold up who asks for figures.
//! A failed sync poisons: nobody knows what it lost. Everything else that fails in a commit leaves
//! the old version durable, and may be repeated.
//!
//! Keeps: L1, a file that a version lists which a crash may bring back is there and durable.
//! So `pinned` has the tables of a version before its record is written, and loses those of other
//! versions only after the record is acknowledged.

#![forbid(unsafe_code)]

use super::{
    contents::Version,
    facts::{Facts, TableFile},
    files::{NEW_VERSIONS, TABLES, VERSIONS, create, files, is_missing, table_path},
    log::{Change, Listing, Log},
    paid::Paid,
    translate::{build, change_of, listing_of},
};
use crate::{
    error::{Error, Result},
    poison::Poison,
    storage::Storage,
};
use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// See the module header.
pub(crate) struct Versions<T> {
    storage: Arc<dyn Storage>,
    dir: PathBuf,
    owner: u64,
    read_only: bool,
    current: ArcSwap<Version<T>>,
    publishing: Mutex<()>,
    log: Mutex<Logged<T>>,
    files: Mutex<Files<T>>,
    /// Of the file of `log`; stored under its lock.
    log_bytes: AtomicU64,
    /// Of the tables that `files` knows; changed under its lock.
    table_bytes: AtomicU64,
    next: AtomicU64,
    poison: Poison,
}

struct Logged<T> {
    file: Log,
    /// What the records of `file` say together.
    version: Arc<Version<T>>,
    /// What the last one says that reads have paid, in blocks.
    told: u64,
    /// The name of `file` may not be durable.
    nameless: bool,
    closed: bool,
}

struct Files<T> {
    /// Every table that has a file.
    known: BTreeMap<u64, Arc<T>>,
    /// Tables of versions that a crash may bring back (L1).
    pinned: BTreeSet<u64>,
    /// No file is removed any more.
    closed: bool,
}

/// What [`Versions::open`] needs.
pub(crate) struct Opening<'a, T> {
    pub(crate) storage: &'a Arc<dyn Storage>,
    pub(crate) dir: &'a Path,
    /// A number that only this tree of this database has.
    pub(crate) owner: u64,
    pub(crate) read_only: bool,
    /// See [`Version::empty`].
    pub(crate) partition_bytes: u64,
    /// Opens the file of a table.
    pub(crate) open_table: &'a mut dyn FnMut(Facts) -> Result<T>,
}

impl<T: TableFile> Versions<T> {
    /// Opens what is in `dir`, or creates it there unless `read_only`. Files of tables that the
    /// durable version does not list are removed, unless `read_only`.
    ///
    /// Errors: `NoDatabase` (read-only and nothing there), `Corrupt`, `FormatVersion`, `Io`, those
    /// of `open_table`.
    pub(crate) fn open(with: Opening<'_, T>) -> Result<Self> {
        let Opening {
            storage,
            dir,
            owner,
            ..
        } = with;
        let path = dir.join(VERSIONS);
        if !storage.exists(&path)? {
            if with.read_only {
                return Err(Error::NoDatabase {
                    path: dir.to_path_buf(),
                });
            }
            create(&**storage, dir, owner)?;
        } else if !with.read_only {
            // A process may have died before the log's name was durable: to the log of before
            // belong files that go below, and what is added to this one would be lost.
            storage.sync_dir(dir)?;
        }
        let file = storage.open(&path, !with.read_only)?;
        let (mut log, listing, unsure) = Log::open(file, owner)?;
        let files = files(&**storage, dir)?;
        if files.is_none() && !with.read_only {
            storage.create_dir_all(&dir.join(TABLES))?;
            storage.sync_dir(dir)?;
        }
        let files = files.unwrap_or_default();
        let tables = open_tables(dir, &files, &listing, with.open_table)?;
        // Whoever knows a newer format has written tables with higher numbers.
        if let Some((_, newest)) = tables.last_key_value() {
            newest.check_format()?;
        }
        if !with.read_only {
            log.secure(unsure)?;
            let new = dir.join(NEW_VERSIONS);
            if storage.exists(&new)? {
                storage.remove(&new)?;
            }
        }
        let version = build(&listing, &tables, with.partition_bytes)
            .map_err(|what| Error::corrupt(&path, 0, format!("version log: {what}")))?;
        let next = files.iter().chain(tables.keys()).max().copied();
        if !with.read_only {
            let orphans = files.iter().filter(|number| !tables.contains_key(number));
            for orphan in orphans {
                // One that stays is tried again at the next open.
                let _ = storage.remove(&table_path(dir, *orphan));
            }
        }
        let version = Arc::new(version);
        Ok(Self {
            storage: Arc::clone(storage),
            dir: dir.to_path_buf(),
            owner,
            read_only: with.read_only,
            current: ArcSwap::new(Arc::clone(&version)),
            publishing: Mutex::default(),
            log_bytes: AtomicU64::new(log.bytes()),
            table_bytes: AtomicU64::new(tables.values().map(|t| t.facts().bytes()).sum()),
            log: Mutex::new(Logged {
                file: log,
                version,
                told: listing.paid.blocks(),
                nameless: false,
                closed: false,
            }),
            files: Mutex::new(Files {
                pinned: tables.keys().copied().collect(),
                known: tables,
                closed: false,
            }),
            next: AtomicU64::new(next.unwrap_or(0) + 1),
            poison: Poison::default(),
        })
    }

    /// The version that readers use now.
    pub(crate) fn current(&self) -> Guard<Arc<Version<T>>> {
        self.current.load()
    }

    /// A number for a new table, which no file has.
    pub(crate) fn new_number(&self) -> u64 {
        self.next.fetch_add(1, Relaxed)
    }

    /// Takes over the file of `table`, which is complete and not yet in a version.
    pub(crate) fn adopt(&self, table: Arc<T>) {
        let (number, bytes) = (table.facts().number, table.facts().bytes());
        let mut files = self.files.lock();
        let before = files.known.insert(number, table);
        debug_assert!(before.is_none(), "table {number} has two files");
        self.table_bytes.fetch_add(bytes, Relaxed);
    }

    /// Publishes what `step` makes of the current version; false if it makes nothing of it.
    /// Tables that are new in it were adopted before.
    pub(crate) fn update(&self, step: impl FnOnce(&Version<T>) -> Option<Version<T>>) -> bool {
        let _one = self.publishing.lock();
        let next = step(&self.current.load());
        let published = next.is_some();
        if let Some(next) = next {
            self.current.store(Arc::new(next));
        }
        published
    }

    /// Makes the current version durable, and removes files that are not needed any more.
    ///
    /// Cost: a sync for each new table, one of their directory, one of the log; nothing if nothing
    /// has changed. Errors: `ReadOnly` and `Closed` (if there is something to make durable),
    /// `OutOfSpace` and other failures before the last sync (nothing has changed; call it again),
    /// `Poisoned`.
    pub(crate) fn commit(&self) -> Result<()> {
        let mut log = self.log.lock();
        self.commit_locked(&mut log)?;
        drop(log);
        // What stays is removed by a later call.
        let _ = self.reap();
        Ok(())
    }

    fn commit_locked(&self, log: &mut Logged<T>) -> Result<()> {
        let current = self.current.load_full();
        if Arc::ptr_eq(&current, &log.version) && !log.nameless {
            return Ok(());
        }
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        if log.closed {
            return Err(Error::Closed);
        }
        self.poison.check()?;
        if log.nameless {
            self.sync_dir(&self.dir)?;
            log.nameless = false;
        }
        if !Arc::ptr_eq(&current, &log.version) {
            self.make_durable(log, &current)?;
        }
        let listed = current.tables().into_keys().collect();
        self.files.lock().pinned = listed;
        Ok(())
    }

    /// Makes `current` what the log says.
    fn make_durable(&self, log: &mut Logged<T>, current: &Arc<Version<T>>) -> Result<()> {
        let (old, tables) = (log.version.tables(), current.tables());
        let new = tables
            .iter()
            .filter(|(number, _)| !old.contains_key(number));
        let new: Vec<&Arc<T>> = new.map(|(_, table)| *table).collect();
        for table in &new {
            table.sync().map_err(|error| self.failed(&error))?;
        }
        if !new.is_empty() {
            self.sync_dir(&self.dir.join(TABLES))?;
        }
        // L1: from here on a crash may bring back either version.
        self.files.lock().pinned.extend(tables.keys());
        self.record(log, current, &Paid::default())
    }

    /// Writes and acknowledges a record of `current`, whose tables are durable, and of what reads
    /// have paid there.
    fn record(&self, log: &mut Logged<T>, current: &Arc<Version<T>>, paid: &Paid) -> Result<()> {
        if log.file.is_long() && self.rewrite(log, current, paid)? {
            return Ok(());
        }
        let change = Change {
            paid: paid.clone(),
            ..change_of(current, Some(&log.version))
        };
        let written = log.file.write(&change.encode())?;
        let synced = log.file.sync(written);
        synced.map_err(|error| self.poison.set(&error))?;
        self.log_bytes.store(log.file.bytes(), Relaxed);
        log.version = Arc::clone(current);
        log.told = paid.blocks();
        Ok(())
    }

    /// Writes a new log that says the same, and puts it in the place of the old one. False: it
    /// could not be written, and the old one is still there.
    fn rewrite(&self, log: &mut Logged<T>, current: &Arc<Version<T>>, paid: &Paid) -> Result<bool> {
        let (new, path) = (self.dir.join(NEW_VERSIONS), self.dir.join(VERSIONS));
        let change = Change {
            paid: paid.clone(),
            ..change_of(current, None)
        };
        let says = change.encode();
        let sequence = log.file.last() + 1;
        let created = Log::create(&*self.storage, &new, self.owner, sequence, &says);
        let file = match created {
            Ok(file) => file,
            Err(error) if is_sync(&error) => return Err(self.poison.set(&error)),
            Err(_) => return Ok(false),
        };
        if self.storage.rename_open(file.file(), &path).is_err() {
            let _ = self.storage.remove(&new);
            return Ok(false);
        }
        // The old file has no name any more, whatever happens to the directory.
        *log = Logged {
            file,
            version: Arc::clone(current),
            told: paid.blocks(),
            nameless: true,
            closed: false,
        };
        self.log_bytes.store(log.file.bytes(), Relaxed);
        self.sync_dir(&self.dir)?;
        log.nameless = false;
        Ok(true)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let synced = self.storage.sync_dir(dir);
        synced.map_err(|error| self.failed(&error))
    }

    /// What a sync that failed means.
    fn failed(&self, error: &Error) -> Error {
        // It was not begun: there was no descriptor to open the file with.
        match error.is_transient() {
            true => error.clone(),
            false => self.poison.set(error),
        }
    }

    /// Removes the files of tables that nobody needs. Errors: `Io`; what is left is removed by a
    /// later call.
    pub(crate) fn reap(&self) -> Result<()> {
        let mut files = self.files.lock();
        if files.closed || self.read_only {
            return Ok(());
        }
        // A table with one owner is in no version: `known` is the owner, and nobody else can get
        // at it, for who adopts holds an `Arc` until it is published.
        let unused = |(number, table): (&u64, &Arc<T>)| {
            let unused = Arc::strong_count(table) == 1 && !files.pinned.contains(number);
            unused.then_some(*number)
        };
        let unused: Vec<u64> = files.known.iter().filter_map(unused).collect();
        let mut first = Ok(());
        for number in unused {
            match self.storage.remove(&table_path(&self.dir, number)) {
                Err(error) if !is_missing(&error) => first = first.and(Err(error)),
                _ => {
                    let gone = files.known.remove(&number);
                    let bytes = gone.map_or(0, |table| table.facts().bytes());
                    self.table_bytes.fetch_sub(bytes, Relaxed);
                }
            }
        }
        first
    }

    /// Ends all writing of files, if nothing needs one that would be removed later: makes the
    /// current version durable, and says in the log what reads have paid and that all of it was
    /// acknowledged.
    ///
    /// False: a reader, a merge or a run still has a table that only it needs; ask again. After
    /// true, and after an error, nothing is written or removed any more, and `commit` is `Closed`
    /// if there is something to do. The caller sees to it that no new table is begun.
    pub(crate) fn release(&self) -> Result<bool> {
        let mut log = self.log.lock();
        if log.closed || self.read_only {
            return Ok(true);
        }
        let released = self.try_release(&mut log);
        if !matches!(released, Ok(false)) {
            // Also after a failure: the files may be another owner's as soon as this is told.
            log.closed = true;
            self.files.lock().closed = true;
        }
        released
    }

    fn try_release(&self, log: &mut Logged<T>) -> Result<bool> {
        self.commit_locked(log)?;
        self.reap()?;
        let files = self.files.lock();
        let mut known = files.known.keys();
        if known.any(|number| !files.pinned.contains(number)) {
            return Ok(false);
        }
        drop(files);
        self.end_log(log)?;
        Ok(true)
    }

    /// The last that is written to the log, which says the current version.
    fn end_log(&self, log: &mut Logged<T>) -> Result<()> {
        self.poison.check()?;
        let paid = Paid::of(&log.version);
        if paid.is_worth_telling(log.told) {
            let version = Arc::clone(&log.version);
            // On a full device reads pay once more.
            let told = self.record(log, &version, &paid);
            told.or_else(|error| self.poison.check().map_err(|_| error))?;
        }
        let closed = log.file.close();
        closed.map_err(|error| self.failed_close(error))
    }

    /// As [`Versions::release`], but whoever still holds a table loses its file's removal: it is
    /// an orphan of the next open. For a drop, when no reader is left.
    pub(crate) fn close(&self) -> Result<()> {
        let mut log = self.log.lock();
        if log.closed || self.read_only {
            return Ok(());
        }
        self.commit_locked(&mut log)?;
        let reaped = self.reap();
        self.end_log(&mut log)?;
        log.closed = true;
        self.files.lock().closed = true;
        reaped
    }

    fn failed_close(&self, error: Error) -> Error {
        if is_sync(&error) {
            return self.poison.set(&error);
        }
        error
    }

    /// Whether writing has ended for good.
    pub(crate) fn writable(&self) -> Result<()> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        self.poison.check()
    }

    /// Bytes of the tables' files and of the log: of what is acknowledged, and not removed. No I/O,
    /// and no wait for that of others.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.log_bytes.load(Relaxed) + self.table_bytes.load(Relaxed)
    }

    /// The same, counted.
    #[cfg(test)]
    pub(super) fn counted_bytes(&self) -> u64 {
        let (log, files) = (self.log.lock(), self.files.lock());
        log.file.bytes() + files.known.values().map(|t| t.facts().bytes()).sum::<u64>()
    }

    /// Reads the log again and checks that it says what it should. Errors: `Corrupt`, `Io`.
    pub(crate) fn verify(&self) -> Result<()> {
        let log = self.log.lock();
        let Some(listing) = log.file.verify()? else {
            return Ok(());
        };
        if listing != listing_of(&log.version, listing.paid.clone()) {
            let what = "version log: it says something else than what was committed".to_string();
            return Err(Error::corrupt(log.file.file().path(), 0, what));
        }
        Ok(())
    }
}

fn is_sync(error: &Error) -> bool {
    matches!(error, Error::Io { op, .. } if op.starts_with("sync"))
}

fn open_tables<T>(
    dir: &Path,
    files: &BTreeSet<u64>,
    listing: &Listing,
    open: &mut dyn FnMut(Facts) -> Result<T>,
) -> Result<BTreeMap<u64, Arc<T>>> {
    let mut tables = BTreeMap::new();
    for (number, facts) in &listing.tables {
        if !files.contains(number) {
            let what = "the version log lists this table, and it is missing".to_string();
            return Err(Error::corrupt(table_path(dir, *number), 0, what));
        }
        tables.insert(*number, Arc::new(open(facts.clone())?));
    }
    Ok(tables)
}
