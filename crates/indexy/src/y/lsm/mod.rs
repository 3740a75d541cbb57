//! The disk index on the crate `lsm-tree`: sorted runs become tables of level 0, compaction is
//! leveled.
//!
//! Source: IndeXY II-D. Facts and figures: `docs/decisions/0002-lsm-tree-as-index-y.md`. A run goes
//! through the engine's ingestion: tables are written and synced as the run streams, then one
//! change of the manifest makes all of it visible and durable. Memtables are never used.
//!
//! Keeps: I2 (the newest run wins: sequence numbers continue after a reopen), I4 (a failed run
//! leaves what was there), I5 (`before_publish` precedes the manifest), I7 (`cache/`,
//! `read/snapshot.rs` count).
//! Locks, in this order: `maintaining` (one `maintain`; the beginning of a copy), `writing` (one
//! `write_run`), `publishing`, `snapshot`. Reads take the last one, to copy an `Arc`, and wait for
//! nothing that does I/O.
//! Threads: none of its own, nor of the engine.
//! Not here: when to maintain, when to stall (the framework).

#![forbid(unsafe_code)]

mod cache;
mod compaction;
mod engine_calls;
#[cfg(any(test, feature = "testing"))]
pub(super) mod fuzzing;
mod index;
mod keys;
mod manifest;
mod orphans;
mod read;
mod table;
mod tree;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use cache::shared::LsmShared;
pub(crate) use tree::LsmY;

/// What a compaction and a run in flight hold: filter and index of the tables being written,
/// buffers. One of each runs at a time in a database, whose opener accounts for it.
pub(crate) const WORK_BYTES: usize = 2 << 20;
