//! The contract of Index X: the part of a tree that is in memory.
//!
//! Source: IndeXY II-A to II-D.
//!
//! X partitions the whole key space into *ranges*; a range is what one leaf
//! covers, what one empty slot covers, or the gap beside a compressed prefix.
//! Each range is either *complete* (a key without an entry is absent) or
//! *mounted* (such a key may exist in Index Y). A mounted range carries a
//! [`Stamp`]: the value of the tree's removal clock when something was last
//! removed from it. Every split copies both to each part; every union takes
//! "mounted if any" and a fresh stamp.
//!
//! An entry is a value or a tombstone with the bits `dirty` (newer than what Y
//! was given) and `in_y` (Y may hold some version of the key). A clean entry has
//! `in_y` set. An entry may also be an *operand*, which is dirty and waits to be merged with what Y
//! has; see [`IndexX::put_operand`].
//!
//! Who may do what, when:
//! - Any thread may call [`IndexX::get`], [`IndexX::scan`], [`IndexX::leaves`], [`IndexX::keys`]:
//!   they take no latch, never block a writer, and never see a torn entry.
//! - Writers of one key are serialized by the caller (the key's stripe lock in
//!   `db/`); writers of different keys run in parallel, latching one leaf for
//!   well under a microsecond, or a leaf and its parent to change the structure.
//! - At most one thread per tree is inside [`IndexX::clean`], [`IndexX::redirty`] or
//!   [`IndexX::settle`] at a time (the framework's transfer lock). [`IndexX::cut`] may run at the
//!   same time as it: what a run still carries is recognized by its [`RunId`].
//! - No method does I/O, and none holds a latch while it calls back, except the
//!   `commit` of [`IndexX::put`]: that waits for nobody who may hold, or wait for, a latch of the
//!   same tree.
//!
//! Keeps: I1, I2 (clean under the latch at the moment of copying), I3 (stamps), I4 (cut
//! refuses dirty and in-flight entries), I8 (commit under the latch).
//! Not here: budget decisions, choice of regions, the log, Index Y.

mod any;
pub(crate) mod art;
mod backoff;
mod before;
mod bounds;
pub(crate) mod bptree;
mod child;
mod chunk;
#[cfg(test)]
mod conformance;
mod copied;
mod counters;
mod detached;
mod edit;
mod entry;
mod heads;
mod large;
mod leaf;
#[cfg(test)]
pub(crate) mod model;
mod pending;
mod root;
mod tree;
mod walk;

pub(crate) use any::AnyX;

use crate::key::{Key, Value};
use std::ops::ControlFlow;

/// A value of a tree's removal clock; see the module header.
pub(crate) type Stamp = u64;

/// Number of a run of dirty entries on its way to Index Y. Counted up by one
/// per run and tree, from 1; 0 means "never copied".
pub(crate) type RunId = u32;

/// What a search of X says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lookup<R> {
    /// X has the value.
    Found(R),
    /// X has a tombstone: the key is absent, whatever Y says.
    Deleted,
    /// No entry in a complete range: the key is absent.
    Absent,
    /// No entry in a mounted range: Y decides. Hand the stamp to [`IndexX::load`].
    AskY(Stamp),
    /// X has an operand: the value is what the tree's operator makes of it and of what Y has. See
    /// [`IndexX::operand`].
    Operand,
}

impl<R> Lookup<R> {
    /// The same with what `then` makes of the value.
    #[inline]
    pub(crate) fn map<T>(self, then: impl FnOnce(R) -> T) -> Lookup<T> {
        match self {
            Self::Found(value) => Lookup::Found(then(value)),
            Self::Deleted => Lookup::Deleted,
            Self::Absent => Lookup::Absent,
            Self::AskY(stamp) => Lookup::AskY(stamp),
            Self::Operand => Lookup::Operand,
        }
    }
}

/// What a key was before a write: for who holds its leaf's latch, and as long as it does.
pub(crate) trait Before {
    /// As [`IndexX::get`] would say. Hands the value to `found`, once at most.
    fn look(&self, found: &mut dyn FnMut(&[u8])) -> Lookup<()>;
}

/// What became of a value loaded from Y.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Load {
    /// It is a clean entry.
    Loaded,
    /// Nothing was done: something newer may exist. The key has an entry, or the range's stamp
    /// moved, or the range has become complete.
    Raced,
}

/// What a write did.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Put {
    /// `commit` was called and the write applied.
    Applied,
    /// A removal of a key that is certainly absent: `commit` was not called.
    Nothing,
}

/// Direction of a scan.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Order {
    /// From the least key to the greatest.
    Ascending,
    /// From the greatest key to the least.
    Descending,
}

/// What a leaf that has something looks like; see [`IndexX::leaves`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeafInfo<'a> {
    /// First key of the range that it covers (inclusive), not of its entries.
    pub start: &'a [u8],
    /// Entries, tombstones included.
    pub keys: usize,
    /// Dirty ones among them.
    pub dirty: usize,
    /// Bytes in the arena, out-of-line values included.
    pub bytes: usize,
}

/// A live entry without its value; see [`IndexX::keys`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeySeen<'a> {
    pub key: &'a [u8],
    pub value_bytes: usize,
    /// Read since the last cut that spared it, as far as references are tracked.
    pub referenced: bool,
}

/// What a cut did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Exact arena bytes freed (net of what was built for the entries kept).
    pub freed_bytes: usize,
    /// Entries dropped.
    pub dropped: usize,
    /// Entries kept because they are dirty or on their way to Y.
    pub unclean: usize,
    /// Entries kept because they were referenced since the last cut (`spare_referenced`).
    pub spared: usize,
}

impl Cut {
    /// So many bytes more, or fewer where a copy took a larger block.
    fn free(&mut self, bytes: isize) {
        self.freed_bytes = self.freed_bytes.saturating_add_signed(bytes);
    }
}

/// Counters of a whole X; approximate while writers run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct XStats {
    /// Entries, tombstones included.
    pub keys: usize,
    /// Operands among them.
    pub tombstones: usize,
    pub operands: usize,
    pub dirty: usize,
    /// Arena bytes of nodes, leaves and out-of-line values.
    pub bytes: usize,
    /// Of these, those of the blocks in which long values and keys stand.
    pub large_bytes: usize,
    /// Of these, those of operands.
    pub large_operand_bytes: usize,
    /// Mounted ranges.
    pub mounts: usize,
}

impl XStats {
    /// What operands take, about: each as much of the leaves as any entry, and exactly what stands
    /// beside the leaves.
    pub(crate) fn operand_bytes(&self) -> usize {
        let in_leaves = self.bytes.saturating_sub(self.large_bytes);
        in_leaves / self.keys.max(1) * self.operands + self.large_operand_bytes
    }
}

/// How much one [`IndexX::scan`] call may return. It always returns at least an entry, or passes a
/// range.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScanLimits {
    /// Stop after the entry that brings key and value bytes to this: a leaf may name many large
    /// values.
    pub bytes: usize,
    /// Stop after so many live entries, or [`MAX_TOMBSTONES`] more of all. Of a mounted leaf a few
    /// times as many are taken.
    pub entries: usize,
    /// Stop after this many leaves and empty ranges.
    pub leaves: usize,
    /// The same once one of them was mounted: Y has to be asked anyway.
    pub leaves_if_mounted: usize,
}

/// Tombstones in a chunk, about: a queue whose front is on disk has many.
pub(crate) const MAX_TOMBSTONES: usize = 1024;

/// One entry of a [`Chunk`].
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) struct ChunkEntry {
    pub key: Key,
    /// `None` is a tombstone, which hides what Y has, or an operand. Only mounted ranges show
    /// theirs.
    pub value: Option<Value>,
    /// The key has an operand, and thus a value that X alone does not know.
    pub operand: bool,
    /// Newer than what Y was given.
    pub dirty: bool,
}

/// A stretch of X as one scan call saw it. Each leaf in it was read atomically.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// In the order of the scan.
    pub entries: Vec<ChunkEntry>,
    /// Mounted sub-ranges `[start, end)` of what was covered, `None` = no upper end,
    /// neighbours joined, in the order of the scan. Clipped to the requested range.
    pub mounted: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Where to go on: ascending, the next call's `from`; descending, the next call's `to`.
    /// `None` when the requested range is covered completely.
    pub resume: Option<Vec<u8>>,
    /// Leaves and empty ranges that were passed before the first entry.
    pub passed: usize,
}

/// An operand in X.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub key: Key,
    pub operand: Value,
    /// The stamp of the range, which is mounted: see [`IndexX::resolve`].
    pub stamp: Stamp,
}

/// Takes the entries of [`IndexX::clean`]: a key and its value, `None` for a tombstone; and whether
/// Y may hold some version of the key already.
pub(crate) type CleanSink<'a> = dyn FnMut(&[u8], Option<&[u8]>, bool) -> ControlFlow<StopWalk> + 'a;

/// Error type of callbacks that end a walk early; never leaves this crate.
pub(crate) type StopWalk = ();

/// Index X. See the module header for who may call what.
///
/// Keys have at most [`MAX_KEY_BYTES`](crate::limits::MAX_KEY_BYTES) bytes; range ends may be one
/// longer. `[from, to)` with `to == None` reaches to the end of the key space.
pub(crate) trait IndexX: Send + Sync {
    /// Searches `key`; `found` gets a stable copy of the value, after validation.
    ///
    /// Cost: no latch, no allocation, no write to shared memory except at most one
    /// reference bit on the first hit of an entry since the last cut (and only once
    /// [`IndexX::track_references`] was switched on).
    fn get<R>(&self, key: &[u8], found: impl FnOnce(&[u8]) -> R) -> Lookup<R>;

    /// Writes `value` (`None`: a removal) as a dirty entry.
    ///
    /// `commit` is called exactly once, with the leaf's latch held and room made, so
    /// that nothing can fail after it (I8: it takes the LSN); if it fails, the
    /// entry is as it was. A removal of an entry that is not `in_y` in a complete range
    /// drops the entry after `commit`; of a key that has no entry in a complete range,
    /// or is a tombstone already, it does nothing and does not call `commit`. Any other
    /// removal leaves a dirty tombstone. An existing entry keeps its `in_y`; a new one
    /// in a mounted range gets `in_y` set, in a complete range clear.
    fn put<E>(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<Put, E> {
        self.put_over(key, value, |_| commit())
    }

    /// As [`IndexX::put`], where `commit` may look at what the key was.
    fn put_over<E>(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        commit: impl FnOnce(&dyn Before) -> Result<(), E>,
    ) -> Result<Put, E>;

    /// Installs a value read from Y as a clean entry, if `stamp` (from [`Lookup::AskY`], taken
    /// before Y was read) is still the stamp of the range, the range is still mounted
    /// and the key has no entry (I3). The entry does not count as referenced until it is read
    /// again.
    fn load(&self, key: &[u8], value: &[u8], stamp: Stamp) -> Load;

    /// Writes `operand` as the operand of `key`, where that has no entry and its range is mounted
    /// (`over` is `None`), or has the operand `over`. Else does nothing and returns false. `commit`
    /// as in [`IndexX::put`]. The caller holds the stripe.
    ///
    /// An operand is a dirty entry that Y is not given: [`IndexX::clean`] passes it, no cut takes
    /// it, and a range that has one stays mounted. A write of the key replaces it.
    fn put_operand<E>(
        &self,
        key: &[u8],
        operand: &[u8],
        over: Option<&[u8]>,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<bool, E>;

    /// The operand of `key`, if it has one, and the stamp of its range.
    fn operand(&self, key: &[u8]) -> Option<(Value, Stamp)>;

    /// Writes `value` as a dirty entry in place of the operand of `key`, if that is still `operand`
    /// and its range has still `stamp`; `None`: drops the entry, which made no difference to what Y
    /// has. Returns whether it did. `commit` as in [`IndexX::put`].
    ///
    /// I3: with the same stamp what Y has of the key was the same all the while. A value would have
    /// changed that; but one that gave way to an operand was cut, or removed, which changes the
    /// stamp. So dropping an operand changes none: neighbours that were read with it are resolved
    /// by that reading, and a load of what Y said is right. The caller need not hold the stripe.
    fn resolve<E>(
        &self,
        key: &[u8],
        operand: &[u8],
        stamp: Stamp,
        value: Option<&[u8]>,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<bool, E>;

    /// Appends the operands of `[from, to)` to `out`, in ascending order, until they are `enough`.
    /// Returns where to go on. A writer that took an LSN before the call and writes to a leaf is
    /// waited for. Cost: a load for each leaf without operands.
    fn operands(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        enough: usize,
        out: &mut Vec<Waiting>,
    ) -> Option<Vec<u8>>;

    /// Drops the entry of `key` and makes its range mounted with a fresh stamp: Y decides
    /// from now on. For values that X does not hold. The caller holds the key's stripe
    /// and the transfer lock, unless nothing in X is ever dirty.
    fn evict(&self, key: &[u8]);

    /// Collects entries of `[from, to)` in `order`; clears and fills `out`.
    fn scan(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        order: Order,
        limits: ScanLimits,
        out: &mut Chunk,
    );

    /// Counts the live entries of `[from, to)`, up to where the first mounted range begins: there
    /// Y has to be asked. Returns that place, too; `None`: all are counted. Cost: a header a leaf.
    fn count(&self, from: &[u8], to: Option<&[u8]>) -> (usize, Option<Vec<u8>>);

    /// Copies the dirty entries of `[from, to)` in ascending key order to `sink` (`None`: a
    /// tombstone), leaf by leaf: under the leaf's latch copy, `dirty := 0`, `in_y := 1`,
    /// `leaf.run := run` (I2); then, latch free, `sink`. Leaves without dirty entries cost one
    /// load. When `sink` breaks, the rest of that leaf was copied but not taken:
    /// call [`IndexX::redirty`].
    fn clean(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        run: RunId,
        sink: &mut CleanSink<'_>,
    ) -> ControlFlow<StopWalk>;

    /// Y failed `run`: marks every entry of the leaves in `[from, to)` that the run copied from
    /// (`leaf.run == run`) dirty again. Clean entries that it did not carry may be among
    /// them; writing those once more is harmless.
    fn redirty(&self, from: &[u8], to: Option<&[u8]>, run: RunId);

    /// Y has acknowledged every run up to `acked`: drops the clean tombstones of the leaves in
    /// `[from, to)`, with a fresh stamp for their ranges (I3).
    fn settle(&self, from: &[u8], to: Option<&[u8]>, acked: RunId);

    /// Drops the clean entries of `[from, to)` whose leaf's run is acknowledged (`leaf.run <=
    /// acked`); their ranges become mounted with a fresh stamp. Entries that are dirty or in flight
    /// stay, and so do, with `spare_referenced`, those referenced since the last cut (their bit is
    /// cleared). Small remains are joined, so that many small leaves do not stay behind. Stops
    /// early once `enough_bytes` are freed. Latches for microseconds at a time.
    fn cut(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        acked: RunId,
        spare_referenced: bool,
        enough_bytes: usize,
    ) -> Cut;

    /// Y holds nothing in `[from, to)` and no run is in flight: makes every range that lies
    /// wholly inside complete.
    fn clear_mounts(&self, from: &[u8], to: Option<&[u8]>);

    /// Drops every entry, whatever it is, and makes all ranges complete, at one moment. Nobody else
    /// writes, no run is in flight, and Y holds nothing. Readers and cuts go on: who is inside what
    /// was there has the tree as it was before. A load that is late finds a complete range (I3).
    /// Cost: a latch. What was there takes memory until it is taken apart, and does not count any
    /// more: what is garbage lives no longer.
    fn clear(&self);

    /// Takes apart what [`clear`](Self::clear) left, until `enough_bytes` are freed or nothing is
    /// left. Returns the bytes freed. Any thread, at any time; waits for another one that does so.
    /// Cost: a visit of each leaf and of each value that is out of line.
    fn take_apart(&self, enough_bytes: usize) -> usize;

    /// Y may have keys of `[from, to)` that were never here: every range that touches it becomes
    /// mounted, with a fresh stamp. What is above them keeps its entries.
    fn mount(&self, from: &[u8], to: Option<&[u8]>);

    /// Keys of `[from, to)` were removed from Y: every mounted range that touches it gets a fresh
    /// stamp, so that nothing read from Y before is loaded (I3). Cost: a walk over the range, but
    /// nothing where no range was ever mounted.
    fn restamp(&self, from: &[u8], to: Option<&[u8]>);

    /// Visits the leaves that touch `[from, to)` in ascending order.
    fn leaves(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        visit: &mut dyn FnMut(LeafInfo<'_>) -> ControlFlow<StopWalk>,
    ) -> ControlFlow<StopWalk>;

    /// Visits the live entries of `[from, to)` whose keys have at most `longest` bytes, in
    /// ascending order, each leaf as it was at one moment. Values are not read, reference bits stay
    /// as they are. Cost: a copy of each leaf, and of its keys.
    fn keys(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        longest: usize,
        visit: &mut dyn FnMut(KeySeen<'_>) -> ControlFlow<StopWalk>,
    ) -> ControlFlow<StopWalk>;

    /// Moves what lies in slabs that are to run empty
    /// ([`Memory::empty_slabs`](crate::mem::Memory::empty_slabs)) elsewhere, as far as it can: what
    /// stays keeps its slab from going back. Cost: a walk over all leaves.
    fn relocate(&self) {}

    /// Switches the recording of reference bits; off at first.
    fn track_references(&self, on: bool);

    /// Counters; cost: sums of sharded counters, no walk.
    fn stats(&self) -> XStats;

    /// Checks structure, order, counts and flags; `Err` says what is wrong. Runs beside
    /// readers and writers (then the counts are not compared).
    fn verify(&self, quiescent: bool) -> Result<(), String>;
}
