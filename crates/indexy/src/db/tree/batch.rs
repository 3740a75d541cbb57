//! `Batch`: writes to several keys and trees that happen as one.
//!
//! Here: how it is put together. How it is applied is in `commit.rs`.

#![forbid(unsafe_code)]

use super::{
    bounds,
    commit::{self, Commit, Condition},
    expiring::{Expires, Life},
    merge,
    ops::{self, Change, OP_OVERHEAD_BYTES, Op},
    reads::Tree,
};
use crate::{
    db::handle::{Handle, Stripes, TreeCore, updating},
    error::{Error, Result},
    key::{Key, Value},
};
use std::{fmt, ops::RangeBounds, sync::Arc, time::Duration};

/// Writes that are applied as one: after a crash all of them are there or none.
///
/// The last write to a key wins. A [`Snapshot`](crate::Snapshot) and a transaction see all of a
/// batch or nothing; other concurrent readers may see a part of it while it is being applied. A
/// concurrent writer of one of its keys comes wholly before or after it. Without a log
/// (`Durability::None`) there is no promise over a crash. [`Batch::limit`] says how large it may
/// get.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
/// let (orders, by_customer) = (db.tree("orders")?, db.tree("by customer")?);
/// let mut batch = db.batch();
/// batch.insert(&orders, "17", "three chairs");
/// batch.insert(&by_customer, "ann/17", "");
/// batch.commit()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a batch does nothing until it is committed"]
pub struct Batch {
    handle: Arc<Handle>,
    /// The trees that are written to, each once.
    trees: Vec<Arc<TreeCore>>,
    ops: Vec<Op>,
    bytes: usize,
    /// Some operations remove ranges.
    ranges: bool,
    /// Some operations merge.
    merges: bool,
    /// The first mistake of the caller; `commit` returns it.
    mistake: Option<Error>,
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("len", &self.ops.len())
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// Room for so many operations is made with the first one.
const FEW: usize = 16;

/// A key of a tree and what is written under it; `None`: it is removed.
type Write = (Arc<TreeCore>, Key, Option<Value>);

impl Batch {
    pub(in crate::db) fn new(handle: Arc<Handle>) -> Self {
        Self {
            handle,
            trees: Vec::new(),
            ops: Vec::new(),
            bytes: 0,
            ranges: false,
            merges: false,
            mistake: None,
        }
    }

    /// Adds a write. A broken limit, or a tree of another database, is returned by
    /// [`Batch::commit`]. Cost: copies key and value.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// let mut batch = db.batch();
    /// batch.insert(&tree, "key", "value");
    /// assert_eq!(tree.get("key")?, None);
    /// batch.commit()?;
    /// assert_eq!(tree.get("key")?.unwrap(), b"value");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert(&mut self, tree: &Tree, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.push(tree, key.as_ref(), Some((value.as_ref(), Life::Default)));
    }

    /// Adds a write of an entry that is absent after `ttl`, counted from this call; see
    /// [`Tree::insert_with_ttl`], whose errors [`Batch::commit`] returns.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// use indexy::{TreeOptions, Ttl};
    /// use std::time::Duration;
    /// let sessions = db.tree_with("sessions", TreeOptions::new().ttl(Ttl::PerEntry))?;
    /// let mut login = db.batch();
    /// login.insert_with_ttl(&sessions, "token", "ann", Duration::from_secs(3600));
    /// login.insert(&db.tree("last login")?, "ann", "today");
    /// login.commit()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_with_ttl(
        &mut self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) {
        self.push(tree, key.as_ref(), Some((value.as_ref(), Life::For(ttl))));
    }

    /// Adds a write of an entry that comes with its moment; see [`Tree::insert_until`], whose
    /// errors [`Batch::commit`] returns.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// use indexy::{Expires, TreeOptions, Ttl};
    /// let copy = db.tree_with("copy", TreeOptions::new().ttl(Ttl::PerEntry))?;
    /// let mut batch = db.batch();
    /// batch.insert_until(&copy, "key", "value", Expires::Never);
    /// batch.commit()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_until(
        &mut self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expires: Expires,
    ) {
        let life = Life::Until(expires);
        self.push(tree, key.as_ref(), Some((value.as_ref(), life)));
    }

    /// Adds a removal; see [`Batch::insert`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("old name", "1")?;
    /// let mut rename = db.batch();
    /// rename.remove(&tree, "old name");
    /// rename.insert(&tree, "new name", "1");
    /// rename.commit()?;
    /// assert_eq!(tree.len()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove(&mut self, tree: &Tree, key: impl AsRef<[u8]>) {
        self.push(tree, key.as_ref(), None);
    }

    /// Adds a merge of `operand` into the value of `key`, as operations of this batch before it
    /// leave that; see [`Tree::merge`].
    ///
    /// `commit` reads the keys that are not in memory, with overlapping reads, and writes values: a
    /// batch leaves no operands. It returns `MergeRefused` where a value does not suit, and then
    /// nothing of the batch was written. Cost: copies key and operand.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// use indexy::{MergeOperator, TreeOptions};
    /// let counters = TreeOptions::new().merge_operator(MergeOperator::AddI64);
    /// let balances = db.tree_with("balances", counters)?;
    /// let mut transfer = db.batch();
    /// transfer.merge(&balances, "ann", (-5i64).to_be_bytes());
    /// transfer.merge(&balances, "bob", 5i64.to_be_bytes());
    /// transfer.commit()?;
    /// assert_eq!(balances.get("ann")?.unwrap(), (-5i64).to_be_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn merge(&mut self, tree: &Tree, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        let at = &tree.at;
        let checked = at
            .check_key(key)
            .and_then(|()| at.check_value(operand.len()));
        let waiting = match checked.and_then(|()| merge::waiting(&at.tree, key, operand)) {
            Ok(waiting) => waiting,
            Err(mistake) => {
                self.mistake.get_or_insert(mistake);
                return;
            }
        };
        let hash = Stripes::hash(at.tree.entry.id, key);
        let bytes = key.len() + waiting.len();
        let change = Change::Merge(Key::new(key), waiting);
        self.merges |= self.add(tree, bytes, hash, change);
    }

    /// Adds the removal of every key of a range: of those that are there when the batch is
    /// committed, operations of this batch before it included.
    ///
    /// A batch with such a removal comes wholly before or after every other write, and with a log
    /// it is durable when `commit` returns. Over a disk index that cannot remove ranges (RocksDB,
    /// and one of your own unless it says so) `commit` returns `Unsupported`. Cost: copies both
    /// ends.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("report")?;
    /// tree.insert("2025/old", "")?;
    /// let mut replace = db.batch();
    /// replace.remove_range(&tree, "2025/".."20250");
    /// replace.insert(&tree, "2025/new", "");
    /// replace.commit()?;
    /// assert_eq!(tree.len()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_range<K: AsRef<[u8]>>(&mut self, tree: &Tree, range: impl RangeBounds<K>) {
        let (from, to) = bounds::of(range);
        if Arc::ptr_eq(&tree.at.handle, &self.handle) && !tree.at.joined().y.removes_ranges() {
            let what = "to remove a range from this index_y in a batch".into();
            self.mistake.get_or_insert(Error::Unsupported { what });
            return;
        }
        let bytes = from.len() + to.as_ref().map_or(0, Vec::len);
        let change = Change::RemoveRange(Key::new(&from), to.map(|to| Key::new(&to)));
        self.ranges |= self.add(tree, bytes, 0, change);
    }

    /// Number of operations.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// assert_eq!(db.batch().len(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether there is no operation.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// assert!(db.batch().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Size in bytes, as [`Batch::limit`] counts it: keys, values, and 64 bytes per operation; 8
    /// more for a value that may expire.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// let mut batch = db.batch();
    /// batch.insert(&tree, "key", "value");
    /// assert_eq!(batch.bytes(), 3 + 5 + 64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The largest [`Batch::bytes`] that this database takes at present; it follows the memory
    /// budget.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// let mut batch = db.batch();
    /// for i in 0..10_000u32 {
    ///     let value = [7; 100];
    ///     if batch.bytes() + 4 + value.len() + 64 > batch.limit() {
    ///         std::mem::replace(&mut batch, db.batch()).commit()?;
    ///     }
    ///     batch.insert(&tree, i.to_be_bytes(), value);
    /// }
    /// batch.commit()?;
    /// assert_eq!(tree.len()?, 10_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn limit(&self) -> usize {
        commit::batch_limit(&self.handle.core)
    }

    pub(in crate::db) fn is_of(&self, handle: &Arc<Handle>) -> bool {
        Arc::ptr_eq(&self.handle, handle)
    }

    /// The writes; an error if it has a mistake, or removes ranges.
    pub(in crate::db) fn into_writes(self) -> Result<Vec<Write>> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        let trees = self.trees;
        let write = |op: Op| match op.change {
            Change::Put(key, value) => Ok((trees[op.tree].clone(), key, Some(value))),
            Change::Remove(key) => Ok((trees[op.tree].clone(), key, None)),
            Change::RemoveRange(..) => Err(Error::Unsupported {
                what: "to remove a range in a transaction".into(),
            }),
            Change::Merge(..) => Err(Error::Unsupported {
                what: "to append a batch that merges: Transaction::merge does".into(),
            }),
        };
        self.ops.into_iter().map(write).collect()
    }

    /// Adds a write that was checked already.
    pub(in crate::db) fn push_write(
        &mut self,
        tree: &Arc<TreeCore>,
        key: Key,
        value: Option<Value>,
    ) {
        let hash = Stripes::hash(tree.entry.id, &key);
        let bytes = key.len() + value.as_ref().map_or(0, |value| value.len());
        let change = match value {
            Some(value) => Change::Put(key, value),
            None => Change::Remove(key),
        };
        self.add_op(tree, bytes, hash, change);
    }

    fn push(&mut self, tree: &Tree, key: &[u8], value: Option<(&[u8], Life)>) {
        let len = value.map_or(0, |(value, _)| value.len());
        let at = &tree.at;
        let checked = at.check_key(key).and_then(|()| at.check_value(len));
        let stored = checked.and_then(|()| {
            let stored = value.map(|(value, life)| at.stored(value, life));
            stored.transpose()
        });
        let stored = match stored {
            Ok(stored) => stored,
            Err(mistake) => {
                self.mistake.get_or_insert(mistake);
                return;
            }
        };
        let hash = Stripes::hash(at.tree.entry.id, key);
        let bytes = key.len() + stored.as_ref().map_or(0, |stored| stored.len());
        let key_copy = Key::new(key);
        let change = match stored {
            Some(stored) => Change::Put(key_copy, stored),
            None => Change::Remove(key_copy),
        };
        self.add(tree, bytes, hash, change);
    }

    /// Adds an operation with keys and value of `bytes`; false if it is a mistake.
    fn add(&mut self, tree: &Tree, bytes: usize, hash: u64, change: Change) -> bool {
        if !Arc::ptr_eq(&tree.at.handle, &self.handle) {
            self.mistake.get_or_insert(Error::ForeignTree);
            return false;
        }
        self.add_op(&tree.at.tree, bytes, hash, change);
        true
    }

    fn add_op(&mut self, tree: &Arc<TreeCore>, bytes: usize, hash: u64, change: Change) {
        self.bytes += OP_OVERHEAD_BYTES + bytes;
        let tree = self.number_of(tree);
        if self.ops.is_empty() {
            self.ops.reserve(FEW);
        }
        self.ops.push(Op { tree, hash, change });
    }

    /// The index of `tree` among those of the batch, which are few. (A handle per operation would
    /// make all threads count on one cache line.)
    fn number_of(&mut self, tree: &Arc<TreeCore>) -> usize {
        // The last one first: writes to one tree often come together.
        let known = self
            .trees
            .iter()
            .rposition(|known| Arc::ptr_eq(known, tree));
        known.unwrap_or_else(|| {
            self.trees.push(tree.clone());
            self.trees.len() - 1
        })
    }

    /// Applies everything, as one. Cost: the locks of all keys, one log record; no I/O but what the
    /// durability asks for; may wait for memory. A batch that merges reads the keys that are not in
    /// memory. One that removes a range costs what [`Tree::remove_range`] does, and with a log is
    /// durable when this returns.
    ///
    /// Errors: those of [`Tree::insert`], `BatchTooLarge`, `ForeignTree`. On an error before the
    /// log record nothing happened. [`Batch::try_commit`] gives the batch back.
    pub fn commit(mut self) -> Result<()> {
        self.apply()
    }

    /// As [`Batch::commit`]; an error gives the batch back, to be committed again later.
    ///
    /// ```
    /// # use indexy::{Db, Options, error::ErrorKind};
    /// # let dir = tempfile::tempdir()?;
    /// # let db = Db::open(dir.path(), Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// let mut batch = db.batch();
    /// batch.insert(&tree, "key", "value");
    /// while let Err(rejected) = batch.try_commit() {
    ///     if rejected.error().kind() != ErrorKind::Retry {
    ///         return Err(rejected.into());
    ///     }
    ///     batch = rejected.into_batch();
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_commit(mut self) -> Result<(), Rejected> {
        match self.apply() {
            Ok(()) => Ok(()),
            Err(error) => Err(Rejected(Box::new((error, self)))),
        }
    }

    fn apply(&mut self) -> Result<()> {
        self.commit_if(None)
    }

    /// Commits if `condition` holds at that moment.
    pub(in crate::db) fn commit_if(&mut self, condition: Option<&dyn Condition>) -> Result<()> {
        if let Some(mistake) = &self.mistake {
            return Err(mistake.clone());
        }
        let core = &self.handle.core;
        core.check_writable()?;
        updating::check(&**core)?;
        let (bytes, limit) = (self.bytes, commit::batch_limit(core));
        if bytes > limit {
            return Err(Error::BatchTooLarge { bytes, limit });
        }
        if self.ops.is_empty() {
            return Ok(());
        }
        let hashes = match self.ranges {
            true => Vec::new(),
            false => core.stripes.in_order(self.ops.iter().map(|op| op.hash)),
        };
        // Merges into one key are not a matter of the last one.
        if !self.merges && hashes.windows(2).any(|pair| pair[0] == pair[1]) {
            self.ops = ops::last_write_wins(std::mem::take(&mut self.ops));
        }
        let commit = Commit {
            core,
            trees: &self.trees,
            ops: &self.ops,
            bytes,
            ranges: self.ranges,
            merges: self.merges,
            condition,
        };
        commit.run(&hashes)
    }
}

/// A batch that [`Batch::try_commit`] could not commit, and why. `?` turns it into its [`Error`].
#[derive(Debug)]
pub struct Rejected(Box<(Error, Batch)>);

impl Rejected {
    /// Why. After `OutOfSpace`, `Poisoned` or `Io` with [`Sync`](crate::Durability::Sync), and
    /// after `Poisoned` where the batch removes a range, it may have been applied and not be
    /// durable: applied again, its merges count twice. After any other error nothing happened.
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.0.0
    }

    /// The batch, as it was. A mistake that [`Batch::insert`] or [`Batch::remove`] met stays with
    /// it: such a batch is never committed.
    pub fn into_batch(self) -> Batch {
        self.0.1
    }

    /// Both of them.
    pub fn into_parts(self) -> (Error, Batch) {
        *self.0
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error().fmt(f)
    }
}

impl std::error::Error for Rejected {}

impl From<Rejected> for Error {
    fn from(rejected: Rejected) -> Self {
        rejected.0.0
    }
}
