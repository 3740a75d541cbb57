//! The disk index of sorted runs: immutable tables, partitions of the key space, merges.
//!
//! Design: `docs/decisions/0019-a-run-store-of-our-own.md`; bytes: `docs/formats/tables.md`,
//! `docs/formats/versions.md`.
//!
//! - `table/`: one immutable file of sorted entries. `version/`: which table has what part of the
//!   key space, and the log that makes it durable. `compact/`: what to merge, and the merge.
//! - `tree.rs`: the state. `damaged.rs`: what merges leave alone. `filters.rs`: bits a key, and
//!   which filters are asked. `read/`, `write.rs`, `removal.rs`, `load.rs`, `maintain.rs`,
//!   `copy.rs`, `verify.rs`, `salvage.rs`: what is done with it. `index.rs`: the contract.
//! - `scratch.rs`: tables of no tree, for what need not outlive the process.
//!
//! What a reader sees: one version from beginning to end, so all of a run or nothing.
//!
//! Keeps: I2 (the newest run is on top), I4 (a failed run or merge leaves what was there), I5
//! (`before_publish` precedes publication; what syncs is an open, `make_durable`, merges and
//! compaction, loads, copies, `release_files` and the drop), I7 (pages are in the shared pool,
//! `memory_bytes` counts the rest).
//! Locks, in this order: `maintaining`, `writing`, then those of `version/versions.rs`. Reads take
//! none.
//! Threads: none of its own. Iterators borrow the tree, so its drop comes last.
//! Not here: when to write, when to maintain, when to make durable (the framework).

#![forbid(unsafe_code)]

mod clock;
mod compact;
mod copy;
mod damaged;
mod factory;
mod filters;
#[cfg(any(test, feature = "testing"))]
pub(super) mod fuzzing;
mod index;
mod load;
mod maintain;
mod read;
mod removal;
mod salvage;
mod scratch;
mod stored;
mod table;
mod tree;
mod verify;
mod version;
mod write;

#[cfg(test)]
mod tests;

pub use factory::LsmFactory;
pub(crate) use salvage::salvage;
pub(crate) use scratch::{
    Scratch, ScratchRun, ScratchWriter, WRITER_BYTES as SCRATCH_WRITER_BYTES,
};
pub(crate) use tree::{LsmY, OLD_FORMAT, PAGE_BYTES};
pub(crate) use version::VERSIONS;

/// What a run and a merge of one database hold while they work: read and write buffers, the hashes
/// of a filter, separators.
pub(crate) const WORK_BYTES: usize = 3 << 20;
