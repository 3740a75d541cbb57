//! `Batch`: writes to several keys and trees that happen as one.
//!
//! Keeps I8: holds the stripes of all its keys, taken in ascending order, from before its LSN until
//! everything is applied; one log record, so that recovery has all of it or nothing. I6 is kept by
//! `framework/journal.rs`.

#![forbid(unsafe_code)]

use super::{bounds, reads::Tree};
use crate::{
    db::{
        handle::{Core, Handle, Stripes, TreeCore, updating},
        options::Durability,
    },
    error::{Error, Result},
    framework::disk_writer::Runs,
    key::{Key, Value},
    wal::{BatchEncoder, MAX_BATCH_BYTES, RecordRef},
};
use parking_lot::MutexGuard;
use std::{
    collections::HashMap,
    fmt,
    ops::RangeBounds,
    sync::Arc,
    time::{Duration, Instant},
};

/// Writes that are applied as one: after a crash all of them are there or none.
///
/// The last write to a key wins. A *concurrent reader* may see a part of a batch while it is being
/// applied (snapshots come with transactions); a concurrent writer of one of its keys comes wholly
/// before or after it. Without a log (`Durability::None`) there is no promise over a crash.
/// [`Batch::limit`] says how large it may get.
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
    /// The first mistake of the caller; `commit` returns it.
    mistake: Option<Error>,
}

struct Op {
    /// Index in the batch's trees.
    tree: usize,
    /// Of tree and key, see `stripes.rs`.
    hash: u64,
    change: Change,
}

enum Change {
    Put(Key, Value),
    Remove(Key),
    /// From the first, up to the second; `None`: to the end.
    RemoveRange(Key, Option<Key>),
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("len", &self.ops.len())
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// Bytes counted per operation beside key and value.
const OP_OVERHEAD_BYTES: usize = 64;
/// Room for so many operations is made with the first one.
const FEW: usize = 16;

impl Batch {
    pub(in crate::db) fn new(handle: Arc<Handle>) -> Self {
        Self {
            handle,
            trees: Vec::new(),
            ops: Vec::new(),
            bytes: 0,
            ranges: false,
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
        self.push(tree, key.as_ref(), Some(value.as_ref()));
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

    /// Adds the removal of every key of a range: of those that are there when the batch is
    /// committed, operations of this batch before it included.
    ///
    /// A batch with such a removal comes wholly before or after every other write, and is durable
    /// when `commit` returns. Over a disk index that cannot remove ranges (RocksDB, and one of your
    /// own unless it says so) `commit` returns `Unsupported`. Cost: copies both ends.
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

    /// Size in bytes, as [`Batch::limit`] counts it: keys, values, and 64 bytes per operation.
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
        batch_limit(&self.handle.core)
    }

    fn push(&mut self, tree: &Tree, key: &[u8], value: Option<&[u8]>) {
        let len = value.map_or(0, <[u8]>::len);
        let at = &tree.at;
        if let Err(mistake) = at.check_key(key).and_then(|()| at.check_value(len)) {
            self.mistake.get_or_insert(mistake);
            return;
        }
        let hash = Stripes::hash(at.tree.entry.id, key);
        let key_copy = Key::new(key);
        let change = match value {
            Some(value) => Change::Put(key_copy, Value::new(value)),
            None => Change::Remove(key_copy),
        };
        self.add(tree, key.len() + len, hash, change);
    }

    /// Adds an operation with keys and value of `bytes`; false if it is a mistake.
    fn add(&mut self, tree: &Tree, bytes: usize, hash: u64, change: Change) -> bool {
        if !Arc::ptr_eq(&tree.at.handle, &self.handle) {
            self.mistake.get_or_insert(Error::ForeignTree);
            return false;
        }
        self.bytes += OP_OVERHEAD_BYTES + bytes;
        let tree = self.number_of(&tree.at.tree);
        if self.ops.is_empty() {
            self.ops.reserve(FEW);
        }
        self.ops.push(Op { tree, hash, change });
        true
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
    /// durability asks for; may wait for memory.
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
        if let Some(mistake) = &self.mistake {
            return Err(mistake.clone());
        }
        let core = &self.handle.core;
        core.check_writable()?;
        updating::check(&**core)?;
        let (bytes, limit) = (self.bytes, batch_limit(core));
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
        if hashes.windows(2).any(|pair| pair[0] == pair[1]) {
            self.ops = last_write_wins(std::mem::take(&mut self.ops));
        }
        let (trees, ops) = (&self.trees, &self.ops);
        let log = core.shared.log.get();
        let mut encoder = BatchEncoder::default();
        if log.is_some() {
            for op in ops {
                encoder.push(record(trees, op))?;
            }
        }
        let record = encoder.bytes() + OP_OVERHEAD_BYTES;
        let copied = log.map_or(0, |log| log.extra_bytes(record));
        let end = {
            let _stripes = self.lock_stripes(&hashes);
            trees.iter().try_for_each(|tree| tree.live())?;
            // After the stripes (see `writes.rs`). The log's room is kept until the record is
            // appended.
            let room = &core.shared.room;
            let _admitted = room
                .admit(bytes + room.copy_bytes(copied))
                .map_err(|error| too_large(core, bytes, error))?;
            if self.ranges {
                // A full device is met now, as long as nothing is written.
                core.shared.log.wait_durable()?;
            }
            // Before the log's room: whoever has that waits for no run.
            let mut runs = self.lock_runs();
            let _room = log.map(|log| log.admit(record)).transpose()?;
            // It may have waited long.
            trees.iter().try_for_each(|tree| tree.live())?;
            let commit = || self.apply_all(&mut runs);
            let (end, applied) = core.shared.log.commit_batch(encoder.record(), commit)?;
            applied?;
            end
        };
        if let (Some(log), Some(end), Durability::Sync) = (log, end, core.options.durability) {
            log.wait_durable(end)?;
        }
        Ok(())
    }

    /// The stripes of all keys; where ranges are removed, all there are.
    fn lock_stripes(&self, hashes: &[u64]) -> Vec<MutexGuard<'_, ()>> {
        let stripes = &self.handle.core.stripes;
        if !self.ranges {
            return stripes.lock_all(hashes);
        }
        // A run in flight may take long: as little of it as can be is waited for with all stripes.
        drop(self.lock_runs());
        stripes.lock_every()
    }

    /// The run locks of the trees of which ranges are removed, by their indexes in the batch. Taken
    /// in the order of the trees' numbers: two batches cannot deadlock, though the stripes see to
    /// that already.
    fn lock_runs(&self) -> RunLocks<'_> {
        let mut locks: RunLocks<'_> = self.trees.iter().map(|_| None).collect();
        if self.ranges {
            let mut order: Vec<usize> = (0..self.trees.len()).collect();
            order.sort_unstable_by_key(|&i| self.trees[i].entry.id);
            let removes = |i: usize| {
                let of = |op: &Op| op.tree == i && matches!(op.change, Change::RemoveRange(..));
                self.ops.iter().any(of)
            };
            for i in order.into_iter().filter(|&i| removes(i)) {
                locks[i] = Some(self.trees[i].joined.writer.lock());
            }
        }
        locks
    }

    /// Waits until the record is durable. It cannot be taken back: a full device is waited for.
    fn wait_durable(&self) -> Result<()> {
        let log = &self.handle.core.shared.log;
        let deadline = Instant::now() + FULL_DEVICE;
        loop {
            match log.wait_durable() {
                Err(Error::OutOfSpace { .. }) if Instant::now() < deadline => {
                    std::thread::sleep(FULL_DEVICE_PAUSE);
                }
                waited => return waited,
            }
        }
    }

    /// Applies what the log has, in order. An error comes after the record was logged: it poisons.
    fn apply_all(&self, runs: &mut RunLocks<'_>) -> Result<()> {
        let shared = &self.handle.core.shared;
        let poison = |error: Error| {
            let error = shared.poison.set(&error);
            shared.room.announce_freed();
            error
        };
        if self.ranges {
            // I5: Y shows the removal when it is applied.
            self.wait_durable().map_err(poison)?;
        }
        for op in &self.ops {
            let tree = &self.trees[op.tree].joined;
            match &op.change {
                Change::Put(key, value) => tree.apply(key, Some(value)),
                Change::Remove(key) => tree.apply(key, None),
                Change::RemoveRange(from, to) => {
                    if let Some(runs) = &mut runs[op.tree] {
                        let removed = tree.remove_range(runs, from, to.as_deref());
                        removed.map_err(poison)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// How long a batch that removes ranges waits for a device that became full under it, with all
/// stripes, before it gives the handle up.
const FULL_DEVICE: Duration = Duration::from_secs(10);
const FULL_DEVICE_PAUSE: Duration = Duration::from_millis(50);

/// For each tree of a batch, its run lock if it is needed.
type RunLocks<'a> = Vec<Option<MutexGuard<'a, Runs>>>;

/// A batch takes this part of the budget at most.
const BATCH_DIVISOR: usize = 4;
/// So much of what could be had at once is left to slabs that X keeps in reserve.
const RESERVE_DIVISOR: usize = 16;

/// The largest batch that `core` takes now, as [`Batch::bytes`] counts: a part of the budget, and
/// what the disk index leaves of it.
fn batch_limit(core: &Core) -> usize {
    let most = core.shared.room.most_at_once();
    let most = most.saturating_sub(most / RESERVE_DIVISOR + OP_OVERHEAD_BYTES);
    // The log copies a large batch as a whole.
    let most = match core.shared.log.get() {
        Some(_) => most / 2,
        None => most,
    };
    let part = core.budget.limit() / BATCH_DIVISOR;
    part.min(MAX_BATCH_BYTES).min(most)
}

/// What admission said of a batch of `bytes`: where it does not fit the budget, a smaller one does.
fn too_large(core: &Core, bytes: usize, error: Error) -> Error {
    let limit = batch_limit(core);
    match error {
        Error::BudgetTooSmall { .. } if limit < bytes => Error::BatchTooLarge { bytes, limit },
        error => error,
    }
}

/// A batch that [`Batch::try_commit`] could not commit, and why. `?` turns it into its [`Error`].
#[derive(Debug)]
pub struct Rejected(Box<(Error, Batch)>);

impl Rejected {
    /// Why. After `OutOfSpace` or `Poisoned` with [`Durability::Sync`], and after `Poisoned` where
    /// the batch removes a range, it may have been applied and not be durable; after any other
    /// error nothing happened.
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

/// Keeps the last operation on each key, in the order of the first. For batches that remove no
/// ranges.
#[cold]
fn last_write_wins(ops: Vec<Op>) -> Vec<Op> {
    let mut at: HashMap<(usize, Key), usize> = HashMap::with_capacity(ops.len());
    let mut kept: Vec<Op> = Vec::with_capacity(ops.len());
    for op in ops {
        let (Change::Put(key, _) | Change::Remove(key) | Change::RemoveRange(key, _)) = &op.change;
        match at.entry((op.tree, key.clone())) {
            std::collections::hash_map::Entry::Occupied(slot) => kept[*slot.get()] = op,
            std::collections::hash_map::Entry::Vacant(slot) => {
                slot.insert(kept.len());
                kept.push(op);
            }
        }
    }
    kept
}

fn record<'a>(trees: &[Arc<TreeCore>], op: &'a Op) -> RecordRef<'a> {
    let tree = trees[op.tree].entry.id;
    match &op.change {
        Change::Put(key, value) => RecordRef::Put { tree, key, value },
        Change::Remove(key) => RecordRef::Remove { tree, key },
        Change::RemoveRange(from, to) => RecordRef::RemoveRange {
            tree,
            from,
            to: to.as_deref(),
        },
    }
}
