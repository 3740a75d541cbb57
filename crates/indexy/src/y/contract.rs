//! The contract of a disk index: Index Y of the paper.
//!
//! What an implementer has to know, threads and crashes included, is the text of `crate::index_y`, which
//! makes this contract public. Source: IndeXY II-A, II-D.

use crate::{
    error::Result,
    key::{Key, Value},
    x::Order,
};
use std::path::Path;

/// What an Index Y can do and likes. Constant for the life of a Y.
#[derive(Debug, Clone, Copy)]
pub struct Capabilities {
    /// Longest key in bytes, at most [`MAX_KEY_BYTES`](crate::limits::MAX_KEY_BYTES). The tree refuses longer ones.
    pub max_key_bytes: usize,
    /// Longest value in bytes, at most [`MAX_VALUE_BYTES`](crate::limits::MAX_VALUE_BYTES). The tree refuses longer ones.
    pub max_value_bytes: usize,
    /// Payload of a run, in bytes, below which writing gets wasteful; neighbouring regions
    /// are joined until they have it. Megabytes for an LSM; what a commit costs decides for a B+ tree.
    pub preferred_run_bytes: usize,
}

/// One element of a sorted run: a key and its value, `None` for a delete.
pub type RunEntry<'a> = (&'a [u8], Option<&'a [u8]>);

/// Where [`IndexY::write_run`] pulls a run from. Keys ascend strictly.
pub trait RunSource {
    /// Feeds every entry to `sink`; an error of `sink` ends it and is returned. The bytes are valid during the
    /// call of `sink` only. To be called once.
    fn drain(&mut self, sink: &mut dyn FnMut(RunEntry<'_>) -> Result<()>) -> Result<()>;

    /// To be called once, after the last entry and before the run becomes visible to readers
    /// or durable: the caller waits here for the log (I5). Its error ends the run, of which nothing may appear.
    fn before_publish(&mut self) -> Result<()>;
}

/// What a call of [`IndexY::maintain`] left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maintained {
    /// Nothing is due.
    Idle,
    /// Work was done; call again.
    More,
}

/// Entries of a range of Y, in the asked order.
pub type YIter<'a> = Box<dyn Iterator<Item = Result<(Key, Value)>> + Send + 'a>;

/// The on-disk index of one tree. The text of the [module](crate::index_y) says who may call what, when.
pub trait IndexY: Send + Sync {
    /// What it can do and likes.
    fn capabilities(&self) -> Capabilities;

    /// The newest value of `key`. Cost: at most about one device read with warm upper levels.
    fn get(&self, key: &[u8]) -> Result<Option<Value>>;

    /// The newest values of `keys`, in the order asked; keys may come twice.
    fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        keys.iter().map(|k| self.get(k)).collect()
    }

    /// Entries of `[from, to)`, from the end that `order` says; nothing where `to <= from`. `to` may be one byte longer
    /// than a key can be. The iterator may pin files of Y; callers drop it within one chunk. A scan that has enough takes along
    /// what the lower bound of `size_hint` promises: let it be what comes without a read, if that is known, and true.
    fn range(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<YIter<'_>>;

    /// Writes one sorted run: drains the source, calls `before_publish`, publishes. A key over the limit is `KeyTooLong`.
    ///
    /// After `Ok`, every later read sees the run, and so does every later open after a plain drop. After `Err` the caller
    /// writes it again.
    fn write_run(&self, source: &mut dyn RunSource) -> Result<()>;

    /// Makes every acknowledged run durable: afterwards it survives a crash of the machine. Called before the log is
    /// cut (I6), beside a `write_run` in flight, which does not count.
    fn make_durable(&self) -> Result<()>;

    /// One bounded step of background work (compaction, garbage).
    fn maintain(&self) -> Result<Maintained>;

    /// A `maintain` under way ends soon, and later ones do nothing: the database is being closed. What is given up
    /// was not needed. From any thread.
    fn interrupt(&self) {}

    /// True while runs should wait for [`IndexY::maintain`] (too many level-0 runs, say).
    fn congested(&self) -> bool;

    /// False while background work is under way, or put off until writers rest. For who waits for the end of it; no I/O.
    fn settled(&self) -> bool {
        true
    }

    /// True when Y holds no entry at all (tombstones do not count); may say false when unsure.
    fn is_empty(&self) -> Result<bool>;

    /// Entries, roughly; no I/O.
    fn approximate_len(&self) -> u64;

    /// Upper bound of the memory that this tree's Y holds for itself, in bytes; without what [`IndexYShared`] reports.
    /// Asked about five times a second; no I/O.
    fn memory_bytes(&self) -> usize;

    /// Bytes on disk; no I/O beyond a look at the file's size.
    fn disk_bytes(&self) -> u64;

    /// Sorted runs or levels that a point read may have to look at, 0 when it is empty; for stats.
    fn run_count(&self) -> usize;

    /// Reads everything and checks checksums and order; returns the number of entries. Readers and the writer go on.
    fn verify(&self) -> Result<u64>;

    /// Drops what older states of the tree keep on disk; false while a reader still uses one. After `true`, and
    /// without further writes, nothing of this Y removes or writes a file any more.
    fn release_files(&self) -> bool {
        true
    }

    /// Whether [`IndexY::copy_to`] may be called beside [`IndexY::write_run`]. Else a checkpoint holds up cleaning, and in the end those who
    /// write, for as long as the copy takes.
    fn copies_beside_runs(&self) -> bool {
        false
    }

    /// Copies a consistent image, of a moment during the call, into the absent directory `dest` and makes it durable. No run is in flight
    /// meanwhile, unless [`IndexY::copies_beside_runs`]; readers go on, maintenance is held off inside where that is needed.
    fn copy_to(&self, dest: &Path) -> Result<()>;
}
