//! How a database comes by a disk index that this crate does not know.
//!
//! Two steps, because trees of one database share memory. An [`IndexYFactory`] is registered in the
//! options and may serve several databases. Each database asks it once for an [`IndexYShared`],
//! which opens the trees.
//!
//! Keeps: I7, as far as what they report is true.
//! Not here: who asks, and what share of the caches each kind gets (`db/`).

#![forbid(unsafe_code)]

use super::contract::IndexY;
use crate::error::Result;
use std::{path::Path, sync::Arc};

/// Makes disk indexes of a kind that this crate does not know; see
/// [`Options::register_index_y`](crate::Options::register_index_y).
pub trait IndexYFactory: Send + Sync {
    /// Called once a database, before its first tree of this kind is opened or made. A database
    /// without such a tree never calls it.
    ///
    /// `cache_bytes`: this kind's share of the memory for caches of disk indexes, in bytes, all its
    /// trees together. It may be well under 128 KiB, and [`IndexYShared::set_memory`] changes it.
    /// No I/O.
    fn share(&self, cache_bytes: usize) -> Result<Arc<dyn IndexYShared>>;

    /// Upper bound of the memory in bytes that one run and one step of maintenance hold while they
    /// work, beside caches and beside [`IndexY::memory_bytes`].
    ///
    /// The database counts the largest of all its kinds against the budget, up to a 32nd of the
    /// budget. What exceeds that is held beside the budget.
    fn work_bytes(&self) -> usize {
        0
    }
}

/// What the trees of one kind share within one database: memory, above all.
///
/// The calls come one at a time and do not call back into the database.
pub trait IndexYShared: Send + Sync {
    /// Opens the disk index of one tree in the directory `dir`, or creates both unless `read_only`.
    ///
    /// The directory is this tree's alone and is never open twice at a time, because the database
    /// is locked. Whatever the directory holds, it opens as of the last `make_durable` at least. A
    /// creation that was cut short counts as absent. (The database itself finds a directory that
    /// went missing: `Corrupt`.) With `read_only` not a byte below `dir` is written, and an absent
    /// tree is an error.
    ///
    /// Errors: `Corrupt`, `FormatVersion`, `Io`, `OutOfSpace`, `Unsupported`.
    fn open(&self, dir: &Path, read_only: bool) -> Result<Arc<dyn IndexY>>;

    /// Upper bound of what the shared caches hold, in bytes, whatever the trees do, until the next
    /// call of [`IndexYShared::open`] or [`IndexYShared::set_memory`]. It should be the share; if
    /// it is more, that is charged.
    fn memory_bytes(&self) -> usize;

    /// Changes the share to `cache_bytes`: another kind came into use, or the budget was changed.
    /// What was cached may be forgotten. A cache that cannot shrink keeps its size and says so in
    /// [`IndexYShared::memory_bytes`].
    fn set_memory(&self, cache_bytes: usize);
}
