//! `Snapshot`: all trees of a database as they were at one moment.

#![forbid(unsafe_code)]

use super::{
    database::Db,
    handle::Pinned,
    tree::{Range, Tree, View},
};
use crate::{
    error::{Error, Result},
    key::{Key, Value},
};
use std::{fmt, ops::RangeBounds, sync::Arc};

/// All trees of a database as they were when it was made.
///
/// It sees every write that had returned by then, and of every [`Batch`](crate::Batch) and every
/// transaction all or nothing. Clones are the same snapshot; it ends when the last one is dropped.
/// It may be read from any thread and stay open as long as you like. It keeps the directory locked.
///
/// Entries carry no versions. While a snapshot is open, a writer keeps what it overwrites, once for
/// each snapshot that needs it: in memory, of which it takes a part of the budget at most
/// ([`Options::snapshot_memory_bytes`](crate::Options::snapshot_memory_bytes)), and beyond that on
/// disk ([`Options::snapshot_disk_bytes`](crate::Options::snapshot_disk_bytes)). Where the disk is
/// full, fails, or that limit is passed, the oldest snapshot is given up, and all of its reads
/// return `SnapshotTooOld`: readers pay, writers go on.
///
/// Cost: to make and to drop one, two short locks; a [`Batch`](crate::Batch) that is being applied
/// is waited for. A read costs what it costs without a snapshot, and where the tree was written
/// since, a search in memory more for a key that was not; where much was, a look at some files. The
/// first overwrite of a key with a snapshot open costs about two and a half times as much.
///
/// Errors of every read: those of [`Tree::get`], `SnapshotTooOld`, and `ForeignTree` for a tree of
/// another database.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
/// let tree = db.tree("prices")?;
/// tree.insert("chair", "40")?;
/// let before = db.snapshot()?;
/// tree.insert("chair", "45")?;
/// tree.insert("table", "90")?;
/// assert_eq!(before.get(&tree, "chair")?.unwrap(), b"40");
/// assert_eq!(before.range(&tree, "a"..).count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Snapshot {
    pinned: Arc<Pinned>,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("epoch", &self.pinned.epoch())
            .finish_non_exhaustive()
    }
}

impl Db {
    /// Makes a [`Snapshot`] of all trees. Cost: two short locks.
    ///
    /// Errors: `Closed`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// let tree = db.tree("t")?;
    /// let empty = db.snapshot()?;
    /// tree.insert("key", "value")?;
    /// assert_eq!(empty.get(&tree, "key")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(&self) -> Result<Snapshot> {
        Ok(Snapshot {
            pinned: Pinned::begin(&self.handle)?,
        })
    }
}

impl Snapshot {
    /// The value of `key`; see [`Tree::get`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("key", "old")?;
    /// let snapshot = db.snapshot()?;
    /// tree.remove("key")?;
    /// assert_eq!(snapshot.get(&tree, "key")?.unwrap(), b"old");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.check(tree)?;
        tree.value_at(&self.pinned, key.as_ref())
    }

    /// The values of `keys`, in the order asked; see [`Tree::multi_get`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("b", "2")?;
    /// let snapshot = db.snapshot()?;
    /// tree.insert("a", "1")?;
    /// assert_eq!(snapshot.multi_get(&tree, ["a", "b"])?, [None, Some("2".into())]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        tree: &Tree,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Value>>> {
        self.check(tree)?;
        let keys: Vec<K> = keys.into_iter().collect();
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        let found = tree.multi_get_at(&self.pinned, &keys)?.into_iter();
        Ok(found.map(|found| found.map(|(_, value)| value)).collect())
    }

    /// Whether `key` is there.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// let snapshot = db.snapshot()?;
    /// tree.insert("key", "")?;
    /// assert!(!snapshot.contains_key(&tree, "key")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_key(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(tree, key)?.is_some())
    }

    /// The entries of a range of keys, in order, from both ends. Unlike [`Tree::range`] it sees one
    /// moment: exactly the entries that were there. It keeps the snapshot open.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// for key in ["a", "b", "c"] {
    ///     tree.insert(key, "")?;
    /// }
    /// let snapshot = db.snapshot()?;
    /// tree.clear()?;
    /// assert_eq!(snapshot.range(&tree, "b"..).count(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn range<K: AsRef<[u8]>>(&self, tree: &Tree, range: impl RangeBounds<K>) -> Range {
        self.see(tree, tree.range(range))
    }

    /// The entries whose keys begin with `prefix`; see [`Snapshot::range`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("de/bonn", "")?;
    /// let snapshot = db.snapshot()?;
    /// tree.insert("de/berlin", "")?;
    /// assert_eq!(snapshot.prefix(&tree, "de/").count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prefix(&self, tree: &Tree, prefix: impl AsRef<[u8]>) -> Range {
        self.see(tree, tree.prefix(prefix))
    }

    /// All entries; see [`Snapshot::range`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("key", "value")?;
    /// let snapshot = db.snapshot()?;
    /// tree.clear()?;
    /// for entry in snapshot.iter(&tree) {
    ///     assert_eq!(entry?.1, b"value");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn iter(&self, tree: &Tree) -> Range {
        self.see(tree, tree.iter())
    }

    /// The entry with the smallest key.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("b", "")?;
    /// let snapshot = db.snapshot()?;
    /// tree.insert("a", "")?;
    /// assert_eq!(snapshot.first(&tree)?.unwrap().0, b"b");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn first(&self, tree: &Tree) -> Result<Option<(Key, Value)>> {
        self.iter(tree).next().transpose()
    }

    /// The entry with the largest key.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("b", "")?;
    /// let snapshot = db.snapshot()?;
    /// tree.remove("b")?;
    /// assert_eq!(snapshot.last(&tree)?.unwrap().0, b"b");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn last(&self, tree: &Tree) -> Result<Option<(Key, Value)>> {
        self.iter(tree).next_back().transpose()
    }

    /// Counts the entries. Cost: a scan.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// let snapshot = db.snapshot()?;
    /// tree.insert("key", "")?;
    /// assert_eq!(snapshot.len(&tree)?, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn len(&self, tree: &Tree) -> Result<u64> {
        self.iter(tree)
            .try_fold(0, |counted, entry| entry.map(|_| counted + 1))
    }

    /// Whether there is no entry.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// assert!(db.snapshot()?.is_empty(&tree)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_empty(&self, tree: &Tree) -> Result<bool> {
        Ok(self.first(tree)?.is_none())
    }

    #[inline]
    fn check(&self, tree: &Tree) -> Result<()> {
        match tree.is_of(&self.pinned.handle) {
            true => Ok(()),
            false => Err(Error::ForeignTree),
        }
    }

    fn see(&self, tree: &Tree, range: Range) -> Range {
        match self.check(tree) {
            Ok(()) => range.seen_by(View::At(self.pinned.clone())),
            Err(error) => range.failed(error),
        }
    }
}
