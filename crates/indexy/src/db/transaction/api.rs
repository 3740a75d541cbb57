//! `Transaction`: what a caller does in one.

#![forbid(unsafe_code)]

use super::{
    commit::{Isolation, Unchanged},
    range::{Cursor, TransactionRange},
    state::State,
    writes::WRITE_OVERHEAD_BYTES,
};
use crate::{
    db::{
        database::Db,
        handle::updating,
        tree::{Batch, Condition, Life, Tree, bounds, merge},
    },
    error::{Error, Result},
    key::{Key, Value, prefix_end},
    x::Order,
};
use std::{fmt, ops::RangeBounds, time::Duration};

/// Reads and writes of several keys and trees that happen as one.
///
/// It reads the database as it was when it began, with its own writes. Nothing is locked until
/// [`Transaction::commit`], which writes everything as one [`Batch`], or returns `Conflict` if
/// others have written meanwhile what it depends on ([`Isolation`]); then nothing was written. A
/// transaction that is dropped has written nothing. One that only reads always commits.
///
/// Others are those who write in transactions, batches, and single calls alike: every write counts.
/// [`Tree::update`] and [`Tree::compare_and_swap`] are transactions of one key by themselves. Two
/// plain writes, or two batches, have no connection: what was read between them may have changed.
///
/// What it has written takes as much memory as a batch may ([`Transaction::limit`]). What it has
/// read is remembered by key and range; where that takes too much, neighbours are joined, and a
/// commit may conflict for a key between them.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
/// use indexy::Error;
/// let stock = db.tree("stock")?;
/// stock.insert("chairs", "3")?;
/// let mut tx = db.begin()?;
/// assert_eq!(tx.get(&stock, "chairs")?.unwrap(), b"3");
/// tx.insert(&stock, "chairs", "2")?;
/// stock.insert("chairs", "0")?; // somebody else
/// assert!(matches!(tx.commit(), Err(Error::Conflict { .. })));
/// assert_eq!(stock.get("chairs")?.unwrap(), b"0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a transaction that is dropped writes nothing"]
pub struct Transaction {
    isolation: Isolation,
    state: State,
}

/// A point in a [`Transaction`] to go back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savepoint {
    number: u64,
    at: u64,
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("isolation", &self.isolation)
            .field("writes", &self.state.writes.len())
            .field("bytes", &self.state.writes.bytes())
            .finish_non_exhaustive()
    }
}

impl Db {
    /// Begins a [`Transaction`]. [`Db::transact`] also commits it, and begins it anew after a
    /// conflict. Cost: that of [`Db::snapshot`].
    ///
    /// Errors: `Closed`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// let tree = db.tree("t")?;
    /// let mut tx = db.begin()?;
    /// tx.insert(&tree, "key", "value")?;
    /// tx.commit()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin(&self) -> Result<Transaction> {
        Ok(Transaction {
            isolation: Isolation::default(),
            state: State::begin(&self.handle)?,
        })
    }
}

impl Transaction {
    /// Chooses the isolation; the default is [`Isolation::Serializable`]. What counts is the choice
    /// at the time of the commit.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// let mut tx = db.begin()?;
    /// tx.isolation(indexy::Isolation::Snapshot);
    /// tx.get(&tree, "read")?;
    /// tx.insert(&tree, "written", "")?;
    /// tree.insert("read", "changed")?;
    /// tx.commit()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn isolation(&mut self, isolation: Isolation) {
        self.isolation = isolation;
    }

    // --- reads ----------------------------------------------------------------------

    /// The value of `key`. Cost and errors: those of [`Snapshot::get`](crate::Snapshot::get).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// let mut tx = db.begin()?;
    /// tx.insert(&tree, "key", "mine")?;
    /// assert_eq!(tx.get(&tree, "key")?.unwrap(), b"mine");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.state.read(tree, key.as_ref(), Some(&self.state.reads))
    }

    /// As [`Transaction::get`]; also with [`Isolation::Snapshot`] the commit conflicts if the key
    /// was written by others, whether this transaction writes it or not. A transaction that writes
    /// nothing at all commits without a look.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// let mut tx = db.begin()?;
    /// tx.isolation(indexy::Isolation::Snapshot);
    /// tx.get_for_update(&tree, "read")?;
    /// tx.insert(&tree, "written", "")?;
    /// tree.insert("read", "changed")?;
    /// assert!(tx.commit().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_for_update(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let (state, key) = (&self.state, key.as_ref());
        let value = state.read(tree, key, Some(&state.locked))?;
        // Its own write may be taken back.
        state.locked.borrow_mut().add_key(tree.core(), key);
        Ok(value)
    }

    /// As [`Transaction::get`], for a value that the transaction does not depend on: others may
    /// change it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// let mut tx = db.begin()?;
    /// tx.get_untracked(&tree, "hint")?;
    /// tx.insert(&tree, "written", "")?;
    /// tree.insert("hint", "changed")?;
    /// tx.commit()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_untracked(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.state.read(tree, key.as_ref(), None)
    }

    /// The values of `keys`, in the order asked.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// let mut tx = db.begin()?;
    /// tx.insert(&tree, "b", "2")?;
    /// assert_eq!(tx.multi_get(&tree, ["a", "b"])?, [None, Some("2".into())]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        tree: &Tree,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Value>>> {
        let keys: Vec<K> = keys.into_iter().collect();
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        self.state.multi_get(tree, &keys)
    }

    /// Whether `key` is there.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// assert!(!db.begin()?.contains_key(&tree, "key")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_key(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(tree, key)?.is_some())
    }

    /// The entries of a range of keys, in order, from both ends.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("a", "1")?;
    /// let mut tx = db.begin()?;
    /// tx.insert(&tree, "b", "2")?;
    /// tx.remove(&tree, "a")?;
    /// let left: Vec<_> = tx.range(&tree, "a"..).collect::<Result<_, _>>()?;
    /// assert_eq!(left, [("b".into(), "2".into())]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn range<K: AsRef<[u8]>>(
        &self,
        tree: &Tree,
        range: impl RangeBounds<K>,
    ) -> TransactionRange<'_> {
        TransactionRange::new(&self.state, self.cursor(tree, range))
    }

    /// The entries whose keys begin with `prefix`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// let mut tx = db.begin()?;
    /// tx.insert(&tree, "de/bonn", "")?;
    /// assert_eq!(tx.prefix(&tree, "de/").count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prefix(&self, tree: &Tree, prefix: impl AsRef<[u8]>) -> TransactionRange<'_> {
        let from = prefix.as_ref().to_vec();
        let to = prefix_end(&from);
        TransactionRange::new(&self.state, Cursor::new(&self.state, tree, (from, to)))
    }

    /// All entries.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// assert_eq!(db.begin()?.iter(&tree).count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn iter(&self, tree: &Tree) -> TransactionRange<'_> {
        TransactionRange::new(
            &self.state,
            Cursor::new(&self.state, tree, (Vec::new(), None)),
        )
    }

    /// A scan between whose steps the transaction may be written; see [`Cursor`]. It keeps the
    /// snapshot of the transaction open, also after that has ended, until it is dropped.
    pub fn cursor<K: AsRef<[u8]>>(&self, tree: &Tree, range: impl RangeBounds<K>) -> Cursor {
        Cursor::new(&self.state, tree, bounds::of(range))
    }

    // --- writes ---------------------------------------------------------------------

    /// Writes `value` under `key` when the transaction commits. Cost: copies both.
    ///
    /// Errors: `KeyTooLong`, `ValueTooLong`, `ForeignTree`, `TreeDropped`, `Closed`;
    /// `BatchTooLarge` over [`Transaction::limit`]. The transaction is as it was then.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// let mut tx = db.begin()?;
    /// tx.insert(&tree, "key", "value")?;
    /// drop(tx);
    /// assert_eq!(tree.get("key")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert(
        &mut self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.write(tree, key.as_ref(), Some((value.as_ref(), Life::Default)))
    }

    /// Writes an entry that is absent after `ttl`, counted from this call; see
    /// [`Tree::insert_with_ttl`]. Errors: those of [`Transaction::insert`], `ZeroTtl`, `NoExpiry`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// use indexy::{TreeOptions, Ttl};
    /// use std::time::Duration;
    /// let leases = db.tree_with("leases", TreeOptions::new().ttl(Ttl::PerEntry))?;
    /// let taken = db.transact(|tx| {
    ///     let free = tx.get(&leases, "printer")?.is_none();
    ///     if free {
    ///         tx.insert_with_ttl(&leases, "printer", "ann", Duration::from_secs(30))?;
    ///     }
    ///     Ok(free)
    /// })?;
    /// assert!(taken);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_with_ttl(
        &mut self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.write(tree, key.as_ref(), Some((value.as_ref(), Life::For(ttl))))
    }

    /// Removes `key` when the transaction commits; see [`Transaction::insert`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("key", "value")?;
    /// let mut tx = db.begin()?;
    /// tx.remove(&tree, "key")?;
    /// assert_eq!(tx.get(&tree, "key")?, None);
    /// tx.commit()?;
    /// assert_eq!(tree.get("key")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove(&mut self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<()> {
        self.write(tree, key.as_ref(), None)
    }

    /// Merges `operand` into the value of `key` when the transaction commits; see [`Tree::merge`].
    ///
    /// It is a read of the key and a write: another transaction that merges into the same key
    /// meanwhile is a conflict, with [`Isolation::Snapshot`] too, and where the value stays as it
    /// is. Where that is not wanted, merge outside of the transaction. Cost: that of
    /// [`Transaction::get`].
    ///
    /// Errors: those of [`Transaction::get`] and [`Transaction::insert`]; `MergeOperatorMissing`,
    /// `MergeRefused`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// use indexy::{MergeOperator, TreeOptions};
    /// let counters = TreeOptions::new().merge_operator(MergeOperator::AddU64);
    /// let stock = db.tree_with("stock", counters)?;
    /// let mut tx = db.begin()?;
    /// tx.merge(&stock, "chairs", 3u64.to_be_bytes())?;
    /// assert_eq!(tx.get(&stock, "chairs")?.unwrap(), 3u64.to_be_bytes());
    /// tx.commit()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn merge(
        &mut self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        self.state.check(tree)?;
        tree.check_write(key, operand.len())?;
        let waiting = merge::waiting(tree.core(), key, operand)?;
        let base = self.get(tree, key)?;
        let joined = &tree.core().joined;
        match merge::made(joined.merge_into(key, base.as_deref(), &waiting)?)? {
            Some(value) => self.write(tree, key, Some((&value, Life::Default))),
            None => {
                // Nobody sees a write here that others could conflict with.
                let mut locked = self.state.locked.borrow_mut();
                locked.add_key(tree.core(), key);
                Ok(())
            }
        }
    }

    /// Adds the operations of `batch`. Errors: those of [`Batch::commit`] that it knows already;
    /// `Unsupported` if it removes ranges or merges. The transaction is as it was then.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// let mut batch = db.batch();
    /// batch.insert(&tree, "key", "value");
    /// let mut tx = db.begin()?;
    /// tx.append(batch)?;
    /// assert!(tx.contains_key(&tree, "key")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn append(&mut self, batch: Batch) -> Result<()> {
        if !batch.is_of(&self.state.pinned.handle) {
            return Err(Error::ForeignTree);
        }
        self.state.check_size(batch.bytes())?;
        for (tree, key, value) in batch.into_writes()? {
            self.state.writes.put(&tree, key, value);
        }
        Ok(())
    }

    /// A point to go back to. Cost: from the first one on, each write remembers what it replaced,
    /// which counts for [`Transaction::limit`], too.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// let mut tx = db.begin()?;
    /// tx.insert(&tree, "a", "1")?;
    /// let savepoint = tx.savepoint();
    /// tx.insert(&tree, "a", "2")?;
    /// tx.rollback_to(savepoint)?;
    /// assert_eq!(tx.get(&tree, "a")?.unwrap(), b"1");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn savepoint(&mut self) -> Savepoint {
        Savepoint {
            number: self.state.number,
            at: self.state.writes.savepoint(),
        }
    }

    /// Takes back what was written since `savepoint`. What was read since still counts.
    ///
    /// Errors: `Unsupported` for a savepoint of another transaction, or one that was taken after a
    /// point to which the transaction went back.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        let state = &mut self.state;
        if savepoint.number != state.number || !state.writes.rollback_to(savepoint.at) {
            return Err(Error::Unsupported {
                what: "a savepoint that is not, or no longer, of this transaction".into(),
            });
        }
        Ok(())
    }

    /// Number of keys that the commit will write.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// assert_eq!(db.begin()?.len(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.writes.len()
    }

    /// Whether nothing was written.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// assert!(db.begin()?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes written so far, as [`Batch::bytes`] counts.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// let mut tx = db.begin()?;
    /// tx.insert(&tree, "key", "value")?;
    /// assert_eq!(tx.bytes(), 3 + 5 + 64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.state.writes.bytes()
    }

    /// The largest [`Transaction::bytes`] at present; that of [`Batch::limit`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// assert_eq!(db.begin()?.limit(), db.batch().limit());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn limit(&self) -> usize {
        self.state.limit()
    }

    // --- its end --------------------------------------------------------------------

    /// Writes everything as one, if what the transaction depends on was not written meanwhile.
    /// Durable as [`Durability`](crate::Durability) says.
    ///
    /// Cost: that of [`Batch::commit`], and a search in memory for each key that it has read in
    /// trees that were written since it began.
    ///
    /// Errors: `Conflict` and `SnapshotTooOld`, after which the transaction may be begun anew
    /// ([`Error::is_retryable`]); those of [`Batch::commit`], and `TreeDropped` also if it depends
    /// on what it has read of that tree. Nothing was written then, with the exceptions that
    /// [`Rejected::error`](crate::Rejected::error) names.
    pub fn commit(self) -> Result<()> {
        self.commit_by(|batch, condition| batch.commit_if(Some(condition)))
    }

    /// As [`Transaction::commit`]; `commit` commits the batch under its condition.
    pub(super) fn commit_by(
        self,
        commit: impl FnOnce(&mut Batch, &dyn Condition) -> Result<()>,
    ) -> Result<()> {
        let state = &self.state;
        if self.is_empty() {
            return state.pinned.handle.core.check_open();
        }
        let mut batch = Batch::new(state.pinned.handle.clone());
        for (tree, writes) in &state.writes.trees {
            for (key, value) in writes {
                batch.push_write(tree, key.clone(), value.clone());
            }
        }
        let condition = Unchanged {
            isolation: self.isolation,
            pinned: &state.pinned,
            reads: &state.reads.borrow(),
            locked: &state.locked.borrow(),
            writes: &state.writes,
        };
        let core = &state.pinned.handle.core;
        // Before it waits: whoever has the turn may wait for the stripe of this thread's `update`.
        updating::check(&**core)?;
        let _turn = core.turn.share();
        commit(&mut batch, &condition)
    }

    /// Ends the transaction without a write, as dropping it does.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// db.begin()?.rollback();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rollback(self) {}

    fn write(&mut self, tree: &Tree, key: &[u8], value: Option<(&[u8], Life)>) -> Result<()> {
        let state = &mut self.state;
        state.check(tree)?;
        tree.check_write(key, value.map_or(0, |(value, _)| value.len()))?;
        let stored = value.map(|(value, life)| tree.stored(value, life));
        let stored = stored.transpose()?;
        let len = stored.as_ref().map_or(0, |stored| stored.len());
        state.check_size(WRITE_OVERHEAD_BYTES + key.len() + len)?;
        state.writes.put(tree.core(), Key::new(key), stored);
        Ok(())
    }

    pub(super) fn met_retryable(&self) -> bool {
        self.state.met_retryable.get()
    }
}

impl Cursor {
    /// The next entry. It is that of the transaction as it is now: a key that was written behind
    /// the cursor is not seen, one before it is. After an error the cursor is at its end.
    ///
    /// Errors: those of [`Snapshot::get`](crate::Snapshot::get); `Unsupported` for another
    /// transaction than the one that made it.
    pub fn next(&mut self, tx: &Transaction) -> Result<Option<(Key, Value)>> {
        self.step(&tx.state, Order::Ascending)
    }

    /// The next entry from the other end.
    pub fn next_back(&mut self, tx: &Transaction) -> Result<Option<(Key, Value)>> {
        self.step(&tx.state, Order::Descending)
    }
}
