//! The contract of Index Y: the part of a tree that is on disk.
//!
//! Source: IndeXY II-A, II-D; design 2.3, 3, 5.1.
//!
//! Y is any ordered map on disk that takes sorted runs. It has no log of its own: what it
//! acknowledged but had not yet made durable comes back from ours (I6).
//!
//! Who may do what, when:
//! - Any thread may call [`IndexY::get`], [`IndexY::multi_get`], [`IndexY::range`], at any time, beside one writer.
//! - One thread at a time is inside [`IndexY::write_run`] (the framework's transfer lock), and
//!   one inside [`IndexY::maintain`]; the two run beside each other.
//! - After `write_run` returned `Ok`, every later read sees the run. While it runs, a read sees
//!   all of it, none of it, or (if the implementation says so) a part of it: entries in
//!   flight are still in X, which wins (I1, I4).
//! - After `write_run` returned `Err`, any part of the run may be visible; the caller writes it again.
//!
//! Keys are 0..=65,534 bytes, the empty key included; every implementation maps what its engine
//! does not take. Damaged files give `Corrupt` with file and offset as far as the engine
//! knows them, never wrong data, never a panic (adapters contain the engine's).

#![forbid(unsafe_code)]

#[cfg(any(test, feature = "testing"))]
pub(crate) mod fuzzing;
pub(crate) mod lsm;
pub(crate) mod paged;
#[cfg(feature = "rocksdb")]
pub(crate) mod rocks;

#[cfg(test)]
pub(crate) mod conformance;
#[cfg(test)]
pub(crate) mod memory;

use crate::{
    error::Result,
    key::{Key, Value},
    x::Order,
};
use std::path::Path;

/// What an Index Y can do and likes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Capabilities {
    /// Longest key in bytes.
    pub max_key_bytes: usize,
    /// Longest value in bytes.
    pub max_value_bytes: usize,
    /// Payload of a run, in bytes, below which writing gets wasteful; neighbouring regions
    /// are joined until they have it.
    pub preferred_run_bytes: usize,
}

/// One element of a sorted run: a key and its value, `None` for a delete.
pub(crate) type RunEntry<'a> = (&'a [u8], Option<&'a [u8]>);

/// Where [`IndexY::write_run`] pulls a run from. Keys ascend strictly.
pub(crate) trait RunSource {
    /// Feeds every entry to `sink`; an error of `sink` ends it and is returned.
    fn drain(&mut self, sink: &mut dyn FnMut(RunEntry<'_>) -> Result<()>) -> Result<()>;

    /// Called once, after the last entry and before the run becomes visible to readers
    /// or durable: the caller waits here for the log (I5).
    fn before_publish(&mut self) -> Result<()>;
}

/// What a call of [`IndexY::maintain`] left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maintained {
    /// Nothing is due.
    Idle,
    /// Work was done; call again.
    More,
}

/// Entries of a range of Y, in the asked order.
pub(crate) type YIter<'a> = Box<dyn Iterator<Item = Result<(Key, Value)>> + Send + 'a>;

/// Index Y. See the module header for who may call what.
pub(crate) trait IndexY: Send + Sync {
    fn capabilities(&self) -> Capabilities;

    /// The newest value of `key`. Cost: at most about one device read with warm upper levels.
    fn get(&self, key: &[u8]) -> Result<Option<Value>>;

    /// The newest values of `keys`, in the order asked.
    fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        keys.iter().map(|k| self.get(k)).collect()
    }

    /// Entries of `[from, to)`. The iterator may pin files of Y; callers drop it within one chunk.
    fn range(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<YIter<'_>>;

    /// Writes one sorted run. See the module header for what is visible when.
    fn write_run(&self, source: &mut dyn RunSource) -> Result<()>;

    /// Makes every acknowledged run durable.
    fn make_durable(&self) -> Result<()>;

    /// One bounded step of background work (compaction, garbage).
    fn maintain(&self) -> Result<Maintained>;

    /// A `maintain` under way ends soon, and later ones do nothing: the database is being closed. What is given up
    /// was not needed. From any thread.
    fn interrupt(&self) {}

    /// True while runs should wait for [`IndexY::maintain`] (too many level-0 runs, say).
    fn congested(&self) -> bool;

    /// True when Y holds no entry at all (tombstones do not count); may say false when unsure.
    fn is_empty(&self) -> Result<bool>;

    /// Entries, roughly; no I/O.
    fn approximate_len(&self) -> u64;

    /// Upper bound of the memory that it holds, in bytes, shared caches excluded.
    fn memory_bytes(&self) -> usize;

    /// Bytes on disk.
    fn disk_bytes(&self) -> u64;

    /// Sorted runs or levels that a point read may have to look at; for stats.
    fn run_count(&self) -> usize;

    /// Reads everything and checks checksums and order; returns the number of entries.
    fn verify(&self) -> Result<u64>;

    /// Drops what older states of the tree keep on disk; false while a reader still uses one. After `true`, and
    /// without further writes, nothing of this Y removes or writes a file any more.
    fn release_files(&self) -> bool {
        true
    }

    /// Copies a consistent image into the absent directory `dest` and makes it durable. The caller
    /// holds the transfer lock; maintenance is held off inside.
    fn copy_to(&self, dest: &Path) -> Result<()>;
}
