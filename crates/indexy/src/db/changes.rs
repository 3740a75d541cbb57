//! The change feed: what was committed, in the order of the log.
//!
//! Threads: a [`Changes`] is one thread's, beside writers and others of its kind. It takes the
//! guard of an operation while it reads, so that `close` waits for that, and none while it waits
//! for more.
//! Not here: how the log is read while it is written (`wal/follow.rs`).

#![forbid(unsafe_code)]

use super::{
    database::Db,
    handle::{Core, Handle},
    tree::Expires,
};
use crate::{
    error::{Error, Result},
    framework::expiry,
    wal::{Follower, Log, Lsn, RecordRef, records},
};
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

/// A batch or a load that is being applied is looked at so often.
const APPLIED_POLL: Duration = Duration::from_millis(1);

/// A place between two changes of a database. Later places are greater.
///
/// Keep it with what you made of the changes before it, and go on from there after a restart. It is
/// of one database directory; a checkpoint shares those of before it was made.
///
/// ```
/// let kept: u64 = indexy::ChangePosition::new(17).get();
/// assert_eq!(kept, 17);
/// ```
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct ChangePosition(u64);

impl ChangePosition {
    /// The place that [`ChangePosition::get`] said.
    #[must_use]
    pub const fn new(position: u64) -> Self {
        Self(position)
    }

    /// A number to keep.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ChangePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One change of one tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change<'a> {
    /// `key` has this value.
    Insert {
        /// Name of the tree.
        tree: &'a str,
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// `operand` was merged into the value of `key`, by the tree's merge operator. Only merges
    /// whose value was not known come so; the others as `Insert`.
    Merge {
        /// Name of the tree.
        tree: &'a str,
        /// The key.
        key: &'a [u8],
        /// As it was given to [`Tree::merge`](crate::Tree::merge).
        operand: &'a [u8],
    },
    /// `key` has this value, and is to expire. The feed says nothing when it does: who follows
    /// knows the moment from here.
    InsertUntil {
        /// Name of the tree.
        tree: &'a str,
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
        /// When it expires.
        expires: Expires,
    },
    /// `key` is not there.
    Remove {
        /// Name of the tree.
        tree: &'a str,
        /// The key.
        key: &'a [u8],
    },
    /// No key of `from..to` is there.
    RemoveRange {
        /// Name of the tree.
        tree: &'a str,
        /// The first key of the range.
        from: &'a [u8],
        /// The first key behind it; `None`: it goes to the end of the tree.
        to: Option<&'a [u8]>,
    },
    /// Entries of `from..to` came by [`Tree::load_sorted`](crate::Tree::load_sorted), into a range
    /// that was empty. They are not in the log: read the range.
    Load {
        /// Name of the tree.
        tree: &'a str,
        /// The first key of the range.
        from: &'a [u8],
        /// The first key behind it; `None`: it goes to the end of the tree.
        to: Option<&'a [u8]>,
    },
}

/// A tree in a set of changes.
#[derive(Debug, Clone)]
struct Named {
    id: u32,
    name: Arc<str>,
    /// Its entries may expire.
    expiring: bool,
}

/// What one write, one [`Batch`](crate::Batch) or one transaction changed. [`Changes`] has an
/// example.
#[derive(Debug, Clone)]
pub struct ChangeSet {
    /// Records of the log.
    bytes: Vec<u8>,
    /// The trees that they are of. One that was dropped is missing.
    trees: Vec<Named>,
    behind: ChangePosition,
}

impl ChangeSet {
    /// The changes, in their order: a later one of the same key counts.
    pub fn iter(&self) -> impl Iterator<Item = Change<'_>> {
        // They were read once already.
        records(&self.bytes)
            .map_while(Result::ok)
            .filter_map(|record| self.change(record))
    }

    /// The place behind these changes.
    #[must_use]
    pub fn position(&self) -> ChangePosition {
        self.behind
    }

    fn tree(&self, id: u32) -> Option<(&str, bool)> {
        let named = self.trees.iter().find(|tree| tree.id == id)?;
        Some((&named.name, named.expiring))
    }

    fn change<'a>(&'a self, record: RecordRef<'a>) -> Option<Change<'a>> {
        let (tree, expiring) = self.tree(tree_of(&record)?)?;
        Some(match record {
            RecordRef::Put { key, value, .. } if expiring => {
                let (expires, value) = expiry::split(value)?;
                match Expires::of(expires) {
                    Expires::Never => Change::Insert { tree, key, value },
                    expires => Change::InsertUntil {
                        tree,
                        key,
                        value,
                        expires,
                    },
                }
            }
            RecordRef::Put { key, value, .. } => Change::Insert { tree, key, value },
            RecordRef::Remove { key, .. } => Change::Remove { tree, key },
            RecordRef::RemoveRange { from, to, .. } => Change::RemoveRange { tree, from, to },
            RecordRef::Load { from, to, .. } => Change::Load { tree, from, to },
            RecordRef::Merge { key, operand, .. } => Change::Merge { tree, key, operand },
            RecordRef::Resolved { .. } | RecordRef::Batch { .. } => return None,
        })
    }
}

fn tree_of(record: &RecordRef<'_>) -> Option<u32> {
    match *record {
        RecordRef::Put { tree, .. }
        | RecordRef::Remove { tree, .. }
        | RecordRef::RemoveRange { tree, .. }
        | RecordRef::Merge { tree, .. }
        | RecordRef::Load { tree, .. } => Some(tree),
        // To resolve operands changes nothing.
        RecordRef::Resolved { .. } | RecordRef::Batch { .. } => None,
    }
}

/// What was committed to a database since a [`ChangePosition`], in order, from its log: to feed a
/// replica, a cache or an index of another kind.
///
/// - *Whole*: a batch and a transaction are one [`ChangeSet`] each.
/// - *In order*: of each key in the order of its writes; what began after another write had
///   returned comes after that. A serializable transaction that read what a concurrent one changed
///   may come after it: what a replica shows in between is what snapshot isolation allows.
/// - *Applied*: what is told can be read. *Durable*: nothing is told that a crash can take back.
///   With [`Durability::Buffered`](crate::Durability::Buffered) changes come after its interval.
/// - *Not in it*: that trees are made, renamed or dropped (a tree has the name of now, and what was
///   dropped since is left out), and what was written while the database was open with
///   [`Durability::None`](crate::Durability::None).
///
/// As an iterator it ends where the log does for now, and may be asked again;
/// [`Changes::wait`] waits for more. The log is kept as long as recovery needs it, and
/// [`Options::change_history_bytes`](crate::Options::change_history_bytes) beyond. Who falls behind
/// that gets `ChangesGone`: nobody who follows holds the log back. The handle keeps the directory
/// locked.
///
/// Cost: the log is read once more, in order; the first call reads from the start of a log file to
/// the position. One allocation a set. Memory, counted in the budget, without a wait for room: 64
/// KiB and the largest group of the log, or the largest record.
///
/// Errors: `ChangesGone`, `Closed`, `Corrupt`, `Io`, `Unsupported` (no set begins at the position),
/// `Reentrant`. After an error the next call tries the same
/// place again.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
/// use indexy::Change;
/// let prices = db.tree("prices")?;
/// let start = db.newest_change()?;
/// prices.insert("chair", "40")?;
/// db.sync()?;
/// let mut changes = db.changes(start)?;
/// let set = changes.next().unwrap()?;
/// let chair = Change::Insert { tree: "prices", key: b"chair", value: b"40" };
/// assert_eq!(set.iter().collect::<Vec<_>>(), [chair]);
/// assert!(changes.next().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Changes {
    follower: Follower,
    handle: Arc<Handle>,
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes")
            .field("at", &self.at())
            .finish_non_exhaustive()
    }
}

impl Db {
    /// The changes after `from`. [`Changes`] has an example. To make a copy of some trees and keep
    /// it up to date: take [`Db::newest_change`], copy the trees from a
    /// [`Snapshot`](crate::Snapshot) made after it, and apply the changes from that position on.
    /// What is committed between the two is in both, and does no harm when it is applied twice,
    /// but for [`Change::Merge`], which would count twice: have nobody merge from the one call to
    /// the other.
    ///
    /// Errors: `ChangesGone`, `Unsupported` (a database without a log, or read-only), `Closed`.
    pub fn changes(&self, from: ChangePosition) -> Result<Changes> {
        let core = self.core();
        let _open = core.operation()?;
        Ok(Changes {
            follower: log(core)?.follow(Lsn(from.0), &core.budget)?,
            handle: self.handle.clone(),
        })
    }

    /// The place behind every write that has returned. Makes them durable first, so that the place
    /// outlives a crash.
    ///
    /// Errors: those of [`Db::changes`], and of [`Db::sync`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// let before = db.newest_change()?;
    /// db.tree("t")?.insert("key", "value")?;
    /// assert!(db.newest_change()? > before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn newest_change(&self) -> Result<ChangePosition> {
        let _open = self.core().operation()?;
        let log = log(self.core())?;
        let end = log.end();
        log.wait_durable(end)?;
        Ok(ChangePosition(end.0))
    }

    /// The oldest place that [`Db::changes`] can begin at just now. Cost: a short lock.
    ///
    /// Errors: those of [`Db::changes`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// db.tree("t")?.insert("key", "value")?;
    /// db.sync()?;
    /// assert_eq!(db.changes(db.oldest_change()?)?.count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn oldest_change(&self) -> Result<ChangePosition> {
        let _open = self.core().operation()?;
        Ok(ChangePosition(log(self.core())?.oldest().0))
    }
}

fn log(core: &Core) -> Result<&Log> {
    core.shared.log.get().ok_or_else(|| Error::Unsupported {
        what: "the changes of a database without a log, or of one that is open read-only".into(),
    })
}

impl Changes {
    /// The place behind the last set that was given.
    #[must_use]
    pub fn at(&self) -> ChangePosition {
        ChangePosition(self.follower.position().0)
    }

    /// Waits until there is more, for `timeout` at most; returns whether there is. What is there
    /// may be of dropped trees alone, and then the iterator has nothing.
    ///
    /// `Db::close` ends it with `Closed`. Errors: `Closed`, `Poisoned` (within a second; what is
    /// durable can still be read).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # use std::time::Duration;
    /// let tree = db.tree("t")?;
    /// let mut changes = db.changes(db.newest_change()?)?;
    /// assert!(!changes.wait(Duration::from_millis(1))?);
    /// let writer = std::thread::spawn(move || tree.insert("key", "value"));
    /// while changes.next().is_none() {
    ///     changes.wait(Duration::from_secs(10))?;
    /// }
    /// # writer.join().unwrap()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait(&self, timeout: Duration) -> Result<bool> {
        let core = &self.handle.core;
        core.directory.check_process()?;
        core.check_open()?;
        let (log, at) = (log(core)?, self.follower.position());
        let end = Instant::now().checked_add(timeout);
        loop {
            let now = Instant::now();
            let left = end.map_or(timeout, |end| end.saturating_duration_since(now));
            if !log.wait_beyond(at, left)? {
                return Ok(false);
            }
            if core.shared.log.floor() > at {
                return Ok(true);
            }
            // It is durable, and is being applied by somebody who waits for nobody.
            std::thread::sleep(APPLIED_POLL);
            if end.is_some_and(|end| Instant::now() >= end) {
                return Ok(false);
            }
        }
    }

    /// The next set, even if nothing in it is of a tree that is there.
    fn read(&mut self) -> Result<Option<ChangeSet>> {
        let core = &self.handle.core;
        let _open = core.operation()?;
        // What is logged and not applied yet is told when it can be read.
        let applied = core.shared.log.floor();
        let before = self.follower.position();
        let Some(record) = self.follower.next(log(core)?, applied)? else {
            return Ok(None);
        };
        let bytes = match records(record).next() {
            Some(Ok(RecordRef::Batch { ops, .. })) => ops.to_vec(),
            _ => record.to_vec(),
        };
        let named = names(core, &bytes);
        if named.is_err() {
            // What cannot be told is not passed over.
            self.follower.go_back(before);
        }
        Ok(Some(ChangeSet {
            trees: named?,
            bytes,
            behind: self.at(),
        }))
    }
}

impl Iterator for Changes {
    type Item = Result<ChangeSet>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.read().transpose()? {
                Ok(set) if set.trees.is_empty() => {}
                set => return Some(set),
            }
        }
    }
}

/// The trees that `bytes`, records of the log, are of.
fn names(core: &Core, bytes: &[u8]) -> Result<Vec<Named>> {
    let trees = core.trees.read();
    let mut names: Vec<Named> = Vec::new();
    let corrupt = |what: &str| Error::corrupt(core.log_dir(), 0, what);
    for record in records(bytes) {
        let record = record.map_err(|_| corrupt("operations of a batch that make no sense"))?;
        let Some(id) = tree_of(&record) else {
            continue;
        };
        // Most sets are of one tree, or of a few.
        if names.iter().all(|known| known.id != id)
            && let Some(tree) = trees.get(&id).filter(|tree| !tree.is_dropped())
        {
            names.push(Named {
                id,
                name: tree.name(),
                expiring: tree.joined.expiry.is_some(),
            });
        }
        let expiring = names.iter().any(|known| known.id == id && known.expiring);
        if let RecordRef::Put { value, .. } = record
            && expiring
            && expiry::split(value).is_none()
        {
            return Err(corrupt("a value without its expiry"));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use crate::{
        Db, Options, Ttl,
        db::tree_options::TreeOptions,
        error::{Error, Result},
    };

    /// What makes no sense is an error each time, and nothing behind it is told.
    #[test]
    fn a_set_that_is_damaged_is_not_passed_over() -> Result<()> {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path(), Options::new(4 << 20))?;
        let start = db.newest_change()?;
        let options = TreeOptions::new().ttl(Ttl::PerEntry);
        let tree = db.tree_with("t", options)?;
        tree.insert("a", "whole")?;
        tree.insert_stored(b"b", b"short")?;
        tree.insert("c", "whole")?;
        db.sync()?;
        let mut changes = db.changes(start)?;
        assert_eq!(changes.next().unwrap()?.iter().count(), 1);
        let at = changes.at();
        for _ in 0..3 {
            let damaged = changes.next().unwrap();
            assert!(matches!(damaged, Err(Error::Corrupt { .. })), "{damaged:?}");
            assert_eq!(changes.at(), at);
        }
        // Where it can be told, all of it is.
        db.drop_tree("t")?;
        assert!(changes.next().is_none());
        assert!(changes.at() > at);
        Ok(())
    }
}
