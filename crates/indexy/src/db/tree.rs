//! `Tree`: a named, ordered, concurrent map.
//!
//! Every write: limits, the key's stripe, `live` under the stripe, admission to memory and then to the log (both may wait),
//! apply (the log record is made under the leaf's latch, I8), let go, and with `Sync` wait for the log.
//!
//! Admission comes after the stripe, so that nobody waits for a stripe while room is reserved for him: `update`, which
//! knows only under the stripe what it needs, could otherwise wait for room that is kept for who waits for it. What
//! frees memory and what writes the log take no stripe.

#![forbid(unsafe_code)]

use super::{
    core::{Core, Handle, TreeCore},
    options::{Durability, IndexXKind, IndexYKind},
    range::Range,
};
use crate::{
    error::{Error, Result},
    framework::{joined::Joined, shared::Admitted},
    key::{Key, Value, prefix_end, successor},
    limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES},
    wal::{Admission, Lsn},
    x::IndexX,
};
use std::{
    fmt,
    ops::{Bound, RangeBounds},
    sync::Arc,
};

/// A named tree of a [`Db`](crate::Db): an ordered map from byte strings to byte strings.
///
/// Keys have 0..=65,534 bytes in bytewise order; values 0..=256 MiB. A handle is a reference: clones share
/// everything and may be used from any thread. Single-key operations are linearizable; see
/// [`Batch`](crate::Batch) and [`Range`] for several keys.
///
/// Errors that every operation may return: `KeyTooLong` and `ValueTooLong` (nothing was written), `TreeDropped`, `Closed`,
/// `Corrupt` and `Io` (reading Index Y); and every write: `ReadOnly`, `Poisoned`, `OutOfSpace` (the device is full; make
/// room and go on), `ResidentTreesTooLarge`, `BudgetTooSmall`, `MemoryStalled`. A write that fails after it was logged (`Sync` and the log's
/// device fails) may or may not be there after the next open.
#[derive(Clone)]
pub struct Tree {
    handle: Arc<Handle>,
    tree: Arc<TreeCore>,
    /// The tree's name when this handle was made.
    name: Arc<str>,
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Bytes of X that a new entry may take beside key and value: its share of a leaf and of a node.
const ENTRY_OVERHEAD_BYTES: usize = 64;
/// Bytes of a log record beside key and value.
const RECORD_OVERHEAD_BYTES: usize = 32;
/// Keys removed between two looks at the rest of a range.
const REMOVE_RANGE_KEYS: usize = 1024;

impl Tree {
    pub(super) fn new(handle: Arc<Handle>, tree: Arc<TreeCore>) -> Self {
        let name = tree.name();
        Self { handle, tree, name }
    }

    fn core(&self) -> &Core {
        &self.handle.core
    }

    pub(super) fn joined(&self) -> &Arc<Joined> {
        &self.tree.joined
    }

    pub(super) fn parts(&self) -> (&Arc<Handle>, &Arc<TreeCore>) {
        (&self.handle, &self.tree)
    }

    /// The name under which this handle was opened; [`Db::rename_tree`](crate::Db::rename_tree) leaves
    /// it as it is.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The pair of indexes that the tree is made of.
    #[must_use]
    pub fn pair(&self) -> (IndexXKind, IndexYKind) {
        (self.tree.entry.index_x, self.tree.entry.index_y)
    }

    /// Whether the tree is never released from memory; see [`TreeOptions::resident`](crate::TreeOptions::resident).
    #[must_use]
    pub fn is_resident(&self) -> bool {
        self.tree.entry.resident
    }

    // --- reads ------------------------------------------------------------------

    /// The newest value of `key`.
    ///
    /// Cost: no I/O when X has the key or knows that it is absent; else one look-up in Index Y (about one device
    /// read), after which X has the key. Source: IndeXY II-D; keeps I1, I3.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.get_with(key, Value::new)
    }

    /// Hands the newest value of `key` to `read` without building a [`Value`]. Cost as [`Tree::get`].
    ///
    /// `read` runs outside of all locks, once at most. It should be short, and must not write to this database: while it runs, none
    /// of the memory that is released from X becomes free, so that a write of its own may wait for memory in vain (`MemoryStalled`).
    #[inline]
    pub fn get_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let key = key.as_ref();
        self.tree.live()?;
        self.check_key(key)?;
        self.alive(self.joined().get(key, read))
    }

    /// The newest values of `keys`, in the order asked. The reads of Index Y overlap, so that cold keys cost about half of one
    /// [`Tree::get`] each. Each key is read at some moment of the call, not all at the same.
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Value>>> {
        self.tree.live()?;
        let keys: Vec<K> = keys.into_iter().collect();
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        keys.iter().try_for_each(|k| self.check_key(k))?;
        self.alive(self.joined().multi_get(&keys))
    }

    /// Whether `key` is there. Cost as [`Tree::get`].
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get_with(key, |_| ())?.is_some())
    }

    /// The entries of a range of keys, in order, from both ends. See [`Range`] for what a scan sees and costs.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Range {
        let from = match range.start_bound() {
            Bound::Included(k) => k.as_ref().to_vec(),
            Bound::Excluded(k) => successor(k.as_ref()),
            Bound::Unbounded => vec![],
        };
        let to = match range.end_bound() {
            Bound::Included(k) => Some(successor(k.as_ref())),
            Bound::Excluded(k) => Some(k.as_ref().to_vec()),
            Bound::Unbounded => None,
        };
        Range::new(self.clone(), from, to)
    }

    /// The entries whose keys start with `prefix`, in order.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range {
        let prefix = prefix.as_ref();
        Range::new(self.clone(), prefix.to_vec(), prefix_end(prefix))
    }

    /// All entries in order.
    pub fn iter(&self) -> Range {
        Range::new(self.clone(), vec![], None)
    }

    /// The entry with the smallest key.
    pub fn first(&self) -> Result<Option<(Key, Value)>> {
        self.iter().next().transpose()
    }

    /// The entry with the largest key.
    pub fn last(&self) -> Result<Option<(Key, Value)>> {
        self.iter().next_back().transpose()
    }

    /// Counts the entries. Cost: a scan of the whole tree.
    pub fn len(&self) -> Result<u64> {
        self.iter().try_fold(0, |n, entry| entry.map(|_| n + 1))
    }

    /// Whether there is no entry. Cost: that of [`Tree::first`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.first()?.is_none())
    }

    /// About how many entries there are: an estimate without I/O, the larger one of what is in memory and what is on disk. It is too
    /// small, by half at most, where much is in only one of the two, counts overwritten and removed entries that Y still holds,
    /// and takes each removal that Y still holds for one entry less, so that it is too small also where keys are removed again and again.
    #[must_use]
    pub fn approximate_len(&self) -> u64 {
        let x = self.joined().x.stats();
        let y = self.joined().y.approximate_len();
        (x.keys.saturating_sub(x.tombstones) as u64).max(y)
    }

    // --- writes -----------------------------------------------------------------

    /// Writes `value` under `key`.
    ///
    /// Cost: no I/O but what the durability asks for; may wait for memory to become free. A value over an eighth of the
    /// memory budget is written to Index Y at once, and is durable when the call returns.
    ///
    /// Errors: `KeyTooLong`, `ValueTooLong`, `ReadOnly`, `Closed`, `TreeDropped`: nothing was written. `OutOfSpace` or `Poisoned` while
    /// the log is made durable: the write is seen, and the next open may find it or not. Where Index Y has no room for a value over an
    /// eighth of the budget, the old value stays and nothing is logged; if the device fills up or fails later in
    /// the call, the next open may find the new one.
    /// Source: IndeXY II-B; keeps I4, I7, I8.
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.write(key, Some(value.len()), |joined| {
            Ok(((), joined.put(key, Some(value))?))
        })
    }

    /// Removes `key`, whether it is there or not. Cost as [`Tree::insert`].
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        self.write(key, Some(0), |joined| Ok(((), joined.put(key, None)?)))
    }

    /// Removes `key` and returns the value that it had. Cost: [`Tree::get`] and [`Tree::remove`], atomically.
    pub fn take(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let key = key.as_ref();
        self.write(key, Some(0), |joined| {
            let old = joined.get(key, Value::new)?;
            let end = if old.is_some() {
                joined.put(key, None)?
            } else {
                None
            };
            Ok((old, end))
        })
    }

    /// Removes every key of a range. Not atomic: keys go one by one, each as by [`Tree::remove`]; a key that is
    /// written meanwhile may stay. Cost: a scan of the range and a write per key in it.
    pub fn remove_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        let mut scan = self.range(range);
        loop {
            let keys: Vec<Key> = scan
                .by_ref()
                .take(REMOVE_RANGE_KEYS)
                .map(|entry| entry.map(|(key, _)| key))
                .collect::<Result<_>>()?;
            if keys.is_empty() {
                return Ok(());
            }
            keys.iter().try_for_each(|key| self.remove(key))?;
        }
    }

    /// Writes `new` if the key's value is `old`; `None` means absent, on either side. Returns whether it did. Atomic.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("locks")?;
    /// // A bare `None` has no type: say which.
    /// const ABSENT: Option<&[u8]> = None;
    /// assert!(tree.compare_and_swap("lock", ABSENT, Some("mine"))?);
    /// assert!(!tree.compare_and_swap("lock", ABSENT, Some("yours"))?);
    /// assert!(tree.compare_and_swap("lock", Some("mine"), ABSENT)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compare_and_swap<O: AsRef<[u8]>, N: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        old: Option<O>,
        new: Option<N>,
    ) -> Result<bool> {
        let key = key.as_ref();
        let old = old.as_ref().map(AsRef::as_ref);
        let new = new.as_ref().map(AsRef::as_ref);
        let bytes = new.map_or(0, <[u8]>::len);
        self.write(key, Some(bytes), |joined| {
            let same = match (joined.get(key, |v| old == Some(v))?, old) {
                (Some(same), _) => same,
                (None, old) => old.is_none(),
            };
            let end = if same { joined.put(key, new)? } else { None };
            Ok((same, end))
        })
    }

    /// Replaces the value of `key` by what `change` makes of it; `None` means absent, on either side. Returns the new
    /// value. Atomic: `change` runs once, with the key's stripe locked, so it must not use this database itself.
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        change: impl FnOnce(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Value>> {
        let key = key.as_ref();
        self.write(key, None, |joined| {
            let old = joined.get(key, Value::new)?;
            let new = change(old.as_deref());
            let bytes = new.as_ref().map_or(0, Vec::len);
            check_value(bytes, self)?;
            // How much it is was not known before. Once for all of it: who has been promised room and asks for more waits for himself.
            let _admitted = self.admit(key.len() + bytes)?;
            let end = joined.put(key, new.as_deref())?;
            Ok((new.map(Value::from), end))
        })
    }

    /// What a read of Y fails with when the tree was dropped or closed meanwhile: that.
    pub(super) fn alive<R>(&self, read: Result<R>) -> Result<R> {
        read.or_else(|error| self.tree.live().and(Err(error)))
    }

    /// `KeyTooLong` beyond what the API or this tree's Index Y takes.
    #[inline]
    pub(super) fn check_key(&self, key: &[u8]) -> Result<()> {
        let limit = MAX_KEY_BYTES.min(self.joined().limits.max_key_bytes);
        if key.len() > limit {
            return Err(Error::KeyTooLong {
                len: key.len(),
                limit,
            });
        }
        Ok(())
    }

    /// The frame of every single-key write; see the module header. Without a length of the value, `apply` asks for room itself.
    fn write<R>(
        &self,
        key: &[u8],
        value_len: Option<usize>,
        apply: impl FnOnce(&Joined) -> Result<(R, Option<Lsn>)>,
    ) -> Result<R> {
        let core = self.core();
        self.tree.live()?;
        self.check_key(key)?;
        check_value(value_len.unwrap_or_default(), self)?;
        if core.options.read_only {
            return Err(Error::ReadOnly);
        }
        core.shared.poison.check()?;
        let log = core.shared.log.get();
        let (result, end) = {
            let _stripe = core.stripes.lock(self.tree.entry.id, key);
            self.tree.live()?;
            let _admitted = value_len
                .map(|len| self.admit_value(key, len))
                .transpose()?;
            self.alive(apply(self.joined()))?
        };
        if let (Some(log), Some(end), Durability::Sync) = (log, end, core.options.durability) {
            log.wait_durable(end)?;
        }
        Ok(result)
    }

    /// As [`Tree::admit`], for `key` with a value of `len` bytes. Where resident trees fill the budget, what makes none of them larger
    /// goes on, or they could not be made smaller: a removal of what X has, above all.
    fn admit_value(&self, key: &[u8], len: usize) -> Result<Permits<'_>> {
        match self.admit(key.len() + len) {
            Err(Error::ResidentTreesTooLarge { .. })
                if len == 0 && self.joined().has_in_x(key) && self.has_room_for_copy(key) =>
            {
                let record = key.len() + RECORD_OVERHEAD_BYTES;
                let log = self.core().shared.log.get();
                Ok((None, log.map(|log| log.admit(record)).transpose()?))
            }
            admitted => admitted,
        }
    }

    /// I7: a long key is copied, and where readers hold up what it was copied from nothing comes back for a while.
    fn has_room_for_copy(&self, key: &[u8]) -> bool {
        let budget = &self.core().budget;
        budget.used() + key.len() + ENTRY_OVERHEAD_BYTES < budget.limit()
    }

    /// Waits until a write of `bytes`, key and value, has room in X and in the log; both are kept for it while
    /// the answer lives.
    fn admit(&self, bytes: usize) -> Result<Permits<'_>> {
        let core = self.core();
        let log = core.shared.log.get();
        let record = bytes + RECORD_OVERHEAD_BYTES;
        let copied = log.map_or(0, |log| log.extra_bytes(record));
        let memory = admitted(bytes, core) + core.shared.copy_bytes(copied);
        let admitted = core.shared.admit(memory)?;
        let log = log.map(|log| log.admit(record)).transpose()?;
        Ok((Some(admitted), log))
    }
}

/// Room in memory and in the log, kept while these live.
type Permits<'a> = (Option<Admitted<'a>>, Option<Admission<'a>>);

/// Bytes of X to ask admission for: a value that X does not hold takes none.
fn admitted(bytes: usize, core: &Core) -> usize {
    if bytes > core.budget.limit() / 8 {
        0
    } else {
        bytes + ENTRY_OVERHEAD_BYTES
    }
}

pub(super) fn check_value(len: usize, tree: &Tree) -> Result<()> {
    let limit = MAX_VALUE_BYTES.min(tree.joined().limits.max_value_bytes);
    if len > limit {
        return Err(Error::ValueTooLong { len, limit });
    }
    Ok(())
}
