//! How a database comes by an Index Y that this crate does not know.
//!
//! Two steps, because trees of one database share memory: a [`IndexYFactory`] is registered in the options and may serve
//! several databases; each database asks it once for an [`IndexYShared`], which opens its trees.
//!
//! Keeps: I7, as far as what they report is true.
//! Not here: who asks, and how the caches are divided among the kinds (`db/index_y.rs`).

#![forbid(unsafe_code)]

use super::contract::IndexY;
use crate::error::Result;
use std::{path::Path, sync::Arc};

/// Makes Index Ys of a kind that this crate does not know; see
/// [`Options::register_index_y`](crate::Options::register_index_y).
pub trait IndexYFactory: Send + Sync {
    /// Called once a database, before its first tree of this kind is opened or made; databases without one never call it.
    ///
    /// `cache_bytes`: this kind's share of the memory for caches of Index Y, in bytes, all its trees together.
    /// It may be well under 128 KiB, and [`IndexYShared::set_memory`] changes it. No I/O.
    fn share(&self, cache_bytes: usize) -> Result<Arc<dyn IndexYShared>>;

    /// Upper bound of the memory in bytes that one run and one step of maintenance hold while they work, beside caches
    /// and beside [`IndexY::memory_bytes`]. The database counts the largest of all its kinds against the budget, up to a 32nd of
    /// that: what is beyond is held beside it.
    fn work_bytes(&self) -> usize {
        0
    }
}

/// What the trees of one kind share within one database: memory, above all.
///
/// The calls come one at a time and do not call back into the database.
pub trait IndexYShared: Send + Sync {
    /// Opens the Index Y of one tree in the directory `dir`, or creates both unless `read_only`.
    ///
    /// The directory is this tree's alone and is never open twice at a time: the database is locked. Whatever it holds,
    /// it opens as of the last `make_durable` at least; a creation that was cut short counts as absent. (A directory that went
    /// missing since is found out before: `Corrupt`.)
    /// With `read_only` not a byte below `dir` is written; an absent tree is then an error.
    ///
    /// Errors: `Corrupt`, `FormatVersion`, `Io`, `OutOfSpace`, `Unsupported`.
    fn open(&self, dir: &Path, read_only: bool) -> Result<Arc<dyn IndexY>>;

    /// Upper bound of what the shared caches hold, in bytes, whatever the trees do, until the next call of
    /// [`IndexYShared::open`] or [`IndexYShared::set_memory`]. I7: should be the share; more is charged as what it is.
    fn memory_bytes(&self) -> usize;

    /// The share becomes `cache_bytes`: another kind came into use, or the budget was changed. What was cached may be
    /// forgotten. A cache that cannot be made smaller keeps its size and says so in [`IndexYShared::memory_bytes`].
    fn set_memory(&self, cache_bytes: usize);
}
