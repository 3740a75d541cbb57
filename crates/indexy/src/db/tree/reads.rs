//! `Tree`: a named, ordered, concurrent map. Here: what it is, and its reads.

#![forbid(unsafe_code)]

use super::{
    bounds,
    range::Range,
    reference::{TreeRef, View},
};
use crate::{
    db::{
        handle::{Handle, Pinned, TreeCore},
        kinds::{IndexXKind, IndexYKind},
    },
    error::Result,
    framework::{
        policies::{Admission, Evicted},
        scan::{MergeLimits, Merged},
    },
    key::{Key, Value, prefix_end},
    versions::time::Millis,
    x::{IndexX, Order},
    y::Compression,
};
use std::{fmt, ops::RangeBounds, sync::Arc};

/// Entries that one step of a search for the first one that lives passes at most, and their bytes.
const MOST_EXPIRED: usize = 1024;
const EXPIRED_BYTES: usize = 64 << 10;

/// A chunk with one entry. It is the caller's at once, so that no budget counts it.
const ONE_ENTRY: MergeLimits = MergeLimits {
    bytes: 2 << 10,
    entries: 1,
    at_hand: 1,
};

/// For who has met entries that have expired and none that lives: there may be many.
fn more_entries(limits: MergeLimits) -> MergeLimits {
    let entries = (limits.entries * 8).min(MOST_EXPIRED);
    MergeLimits {
        bytes: EXPIRED_BYTES,
        entries,
        at_hand: entries,
    }
}

/// A named tree of a [`Db`](crate::Db): an ordered map from byte strings to byte strings.
///
/// Keys have 0..=65,534 bytes in bytewise order; values 0..=256 MiB. A handle is a reference:
/// clones share everything and may be used from any thread. Single-key operations are linearizable;
/// see [`Batch`](crate::Batch) and [`Range`] for several keys.
///
/// # Errors
///
/// Every operation may return `KeyTooLong` and `ValueTooLong` (nothing was written), `TreeDropped`,
/// `Closed`, `Corrupt` and `Io` (reading the disk index). Every write may return `ReadOnly`,
/// `Poisoned`, `OutOfSpace` (the device is full; make room and go on), `ResidentTreesTooLarge`,
/// `BudgetTooSmall`, `MemoryStalled`, and `Reentrant` inside an [`update`](Tree::update). A write
/// that fails after it was logged (with [`Sync`](crate::Durability::Sync), when the log's device
/// fails) may or may not be there after the next open.
///
/// What each operation costs is in [`indexy::cost`](crate::cost).
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
/// let tree = db.tree("cities")?;
/// tree.insert("de/berlin", "3,700,000")?;
/// tree.insert("de/bonn", "330,000")?;
/// assert_eq!(tree.prefix("de/").count(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Tree {
    pub(super) at: TreeRef,
    /// The tree's name when this handle was made.
    name: Arc<str>,
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

impl Tree {
    pub(in crate::db) fn new(handle: Arc<Handle>, tree: Arc<TreeCore>) -> Self {
        let name = tree.name();
        Self {
            at: TreeRef { handle, tree },
            name,
        }
    }

    /// The name under which this handle was opened; [`Db::rename_tree`](crate::Db::rename_tree)
    /// leaves it as it is.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// assert_eq!(db.tree("orders")?.name(), "orders");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The pair of indexes that the tree is made of: in memory, and on disk.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// use indexy::{IndexXKind, IndexYKind};
    /// assert_eq!(db.tree("t")?.pair(), (IndexXKind::Art, IndexYKind::Lsm));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn pair(&self) -> (IndexXKind, IndexYKind) {
        (self.at.tree.entry.index_x, self.at.tree.entry.index_y)
    }

    /// Whether the tree is never released from memory; see
    /// [`TreeOptions::resident`](crate::TreeOptions::resident).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// let options = indexy::TreeOptions::new().resident(true);
    /// assert!(db.tree_with("sessions", options)?.is_resident());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_resident(&self) -> bool {
        self.at.tree.entry.resident
    }

    /// How what is written from now on is stored; see
    /// [`TreeOptions::compression`](crate::TreeOptions::compression).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// use indexy::{Compression, TreeOptions};
    /// let options = TreeOptions::new().compression(Compression::Lz4);
    /// assert_eq!(db.tree_with("archive", options)?.compression(), Compression::Lz4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn compression(&self) -> Compression {
        let entry = &self.at.tree.entry;
        let manifest = self.at.core().manifest.lock();
        let named = manifest.trees.iter().find(|tree| tree.id == entry.id);
        named.unwrap_or(entry).compression
    }

    /// Which values read from disk go into memory; see
    /// [`TreeOptions::admission`](crate::TreeOptions::admission).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// use indexy::{Admission, TreeOptions};
    /// assert_eq!(db.tree("t")?.admission(), Admission::Always);
    /// let options = TreeOptions::new().admission(Admission::Never);
    /// assert_eq!(db.tree_with("t", options)?.admission(), Admission::Never);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn admission(&self) -> Admission {
        self.at.joined().misses.admission()
    }

    /// What is kept in memory about keys that left it; see
    /// [`TreeOptions::evicted`](crate::TreeOptions::evicted).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// use indexy::Evicted;
    /// assert_eq!(db.tree("t")?.evicted(), Evicted::Ranges);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn evicted(&self) -> Evicted {
        self.at.joined().writer.evicted().chosen()
    }

    /// The newest value of `key`.
    ///
    /// Cost: no I/O when the memory index has the key or knows that it is absent; else one look-up
    /// in the disk index (about one device read), after which the memory index has the key, if the
    /// tree's [`Admission`] says so. A value of more than 20 bytes is copied into one allocation;
    /// [`Tree::get_with`] does without.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("key", "value")?;
    /// assert_eq!(tree.get("key")?.unwrap(), b"value");
    /// assert_eq!(tree.get("absent")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    // IndeXY II-D; I1, I3.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.get_with(key, Value::new)
    }

    /// Hands the newest value of `key` to `read` without building a [`Value`]. Cost as
    /// [`Tree::get`].
    ///
    /// `read` runs outside of all locks, once at most. It should be short and must not write to
    /// this database: while it runs, none of the memory that is released becomes free, so a write
    /// of its own may wait for memory in vain (`MemoryStalled`).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("key", "value")?;
    /// assert_eq!(tree.get_with("key", <[u8]>::len)?, Some(5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn get_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let key = key.as_ref();
        if !self.at.tree.is_plain() {
            return self.get_expiring(key, |_, value| read(value));
        }
        self.at.check_key(key)?;
        self.at.alive(self.at.joined().get(key, read))
    }

    /// The newest values of `keys`, in the order asked. Each key is read at some moment of the
    /// call, not all at the same.
    ///
    /// Cost: the reads of the disk index overlap, so that cold keys cost about half of one
    /// [`Tree::get`] each.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("b", "2")?;
    /// let values = tree.multi_get(["a", "b"])?;
    /// assert_eq!(values, [None, Some("2".into())]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Value>>> {
        self.at.live()?;
        let keys: Vec<K> = keys.into_iter().collect();
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        keys.iter().try_for_each(|k| self.at.check_key(k))?;
        let joined = self.at.joined();
        if self.at.expiry().is_none() {
            return self.at.alive(joined.multi_get(&keys));
        }
        let stored = self.at.alive(joined.multi_get_living(&keys))?;
        stored.into_iter().map(|v| self.at.value_in(v)).collect()
    }

    /// The value of `key` as `pinned` sees it.
    #[inline]
    pub(in crate::db) fn value_at(&self, pinned: &Pinned, key: &[u8]) -> Result<Option<Value>> {
        if self.at.tree.is_plain() {
            return self.at.get_at(pinned, key);
        }
        Ok(self.get_at(pinned, key)?.map(|(_, value)| value))
    }

    /// The value of `key` as `pinned` sees it, and when it expires.
    pub(in crate::db) fn get_at(
        &self,
        pinned: &Pinned,
        key: &[u8],
    ) -> Result<Option<(Millis, Value)>> {
        self.at
            .opened_value_at(self.at.get_at(pinned, key)?, pinned)
    }

    /// The values of `keys` as `pinned` sees them, and when they expire.
    pub(in crate::db) fn multi_get_at(
        &self,
        pinned: &Pinned,
        keys: &[&[u8]],
    ) -> Result<Vec<Option<(Millis, Value)>>> {
        self.at.live()?;
        keys.iter().try_for_each(|k| self.at.check_key(k))?;
        let read = self.at.joined().multi_get_at(keys, pinned.epoch());
        let stored = pinned.checked(self.at.alive(read))?.into_iter();
        stored.map(|v| self.at.opened_value_at(v, pinned)).collect()
    }

    /// The range `(from, to)`.
    pub(in crate::db) fn range_of(&self, (from, to): bounds::KeyRange) -> Range {
        Range::new(self.at.clone(), from, to)
    }

    pub(in crate::db) fn core(&self) -> &Arc<TreeCore> {
        &self.at.tree
    }

    /// Whether a value of `len` bytes may be written under `key`.
    pub(in crate::db) fn check_write(&self, key: &[u8], len: usize) -> Result<()> {
        self.at.live()?;
        self.at.check_key(key)?;
        self.at.check_value(len)
    }

    /// It is a tree of the database of `handle`.
    #[inline]
    pub(in crate::db) fn is_of(&self, handle: &Arc<Handle>) -> bool {
        Arc::ptr_eq(&self.at.handle, handle)
    }

    /// Whether `key` is there. Cost as [`Tree::get`], without the copy.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("key", "")?;
    /// assert!(tree.contains_key("key")? && !tree.contains_key("absent")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get_with(key, |_| ())?.is_some())
    }

    /// The entries of a range of keys, in order, from both ends. [`Range`] says what a scan sees
    /// and costs.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// for key in ["a", "b", "c", "d"] {
    ///     tree.insert(key, "")?;
    /// }
    /// let mut range = tree.range("b"..);
    /// assert_eq!(range.next().unwrap()?.0, b"b");
    /// assert_eq!(range.next_back().unwrap()?.0, b"d");
    /// assert_eq!(tree.range("b"..="c").count(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Range {
        let (from, to) = bounds::of(range);
        Range::new(self.at.clone(), from, to)
    }

    /// The entries whose keys start with `prefix`, in order. Cost: as [`Tree::range`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// for key in ["user/1", "user/2", "users"] {
    ///     tree.insert(key, "")?;
    /// }
    /// assert_eq!(tree.prefix("user/").count(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range {
        let prefix = prefix.as_ref();
        Range::new(self.at.clone(), prefix.to_vec(), prefix_end(prefix))
    }

    /// All entries in order. Cost: as [`Tree::range`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("key", "value")?;
    /// for entry in tree.iter() {
    ///     let (key, value) = entry?;
    ///     println!("{key:?} is {value:?}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn iter(&self) -> Range {
        Range::new(self.at.clone(), vec![], None)
    }

    /// The entry with the smallest key. Cost: the first step of a scan.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// assert!(tree.first()?.is_none());
    /// tree.insert("key", "value")?;
    /// assert_eq!(tree.first()?.unwrap().1, b"value");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn first(&self) -> Result<Option<(Key, Value)>> {
        self.end(Order::Ascending)
    }

    /// The entry with the largest key. Cost: the first step of a scan.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("1", "first")?;
    /// tree.insert("2", "second")?;
    /// assert_eq!(tree.last()?.unwrap().0, b"2");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn last(&self) -> Result<Option<(Key, Value)>> {
        self.end(Order::Descending)
    }

    /// The first entry in `order`.
    pub(super) fn end(&self, order: Order) -> Result<Option<(Key, Value)>> {
        let (mut from, mut to) = (Vec::new(), None);
        let mut limits = ONE_ENTRY;
        loop {
            self.at.live()?;
            let (end, soonest) = (to.as_deref(), &mut None);
            let chunk = self
                .at
                .chunk(&View::Newest, &from, end, order, limits, soonest);
            let Merged {
                entries, resume, ..
            } = chunk?;
            if let Some(first) = entries.into_iter().next() {
                return Ok(Some(first));
            }
            match (resume, order) {
                (None, _) => return Ok(None),
                (Some(at), Order::Ascending) => from = at,
                (Some(at), Order::Descending) => to = Some(at),
            }
            if self.at.expiry().is_some() {
                limits = more_entries(limits);
            }
        }
    }

    /// Counts the entries. Cost: a look at each leaf of the memory index, and a scan over those
    /// parts that are not completely in memory; a scan where entries expire.
    /// [`Tree::approximate_len`] does no I/O.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("key", "value")?;
    /// assert_eq!(tree.len()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn len(&self) -> Result<u64> {
        if self.at.expiry().is_some() {
            return self.iter().try_fold(0, |n, entry| entry.map(|_| n + 1));
        }
        let counted = self.at.joined().count(|| self.at.live());
        self.at.alive(counted)
    }

    /// Whether there is no entry. Cost: that of [`Tree::first`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// assert!(db.tree("new")?.is_empty()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.first()?.is_none())
    }

    /// About how many entries there are: an estimate without I/O, the larger of what is in memory
    /// and what is on disk.
    ///
    /// It is too small, by half at most, where much is in only one of the two. It counts
    /// overwritten, removed and expired entries that the indexes still hold, and takes each removal
    /// that the disk index still holds for one entry less, so that it is too small where keys are
    /// removed again and again.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("key", "value")?;
    /// assert_eq!(tree.approximate_len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn approximate_len(&self) -> u64 {
        let x = self.at.joined().x.stats();
        let y = self.at.joined().y.approximate_len();
        (x.keys.saturating_sub(x.tombstones) as u64).max(y)
    }
}
