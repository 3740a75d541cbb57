//! The framework: joins an Index X and an Index Y into one index under one memory budget.
//!
//! Source: IndeXY section II. It does not know which X and which Y.
//! - [`tree`] is one tree, X and Y joined, and its point reads; `writes` writes single keys of it,
//!   `ranges` removes and compacts ranges, [`scan`] reads them, `snapshots` reads and keeps what it
//!   was, `spill` writes that to disk, [`mod@load`] ends sorted loads, `audit` compares X with Y.
//! - [`merge`] are writes of keys whose values are not known yet, [`operators`] what they make of
//!   them.
//! - [`misses`] is what reads bring into X, [`fetch`] reads that nobody waits for at once.
//! - [`evicted`] is what is known of keys that left X, `filter_builder` learns it from Y.
//! - [`hot`] is what was worth its memory, and brings it back after a restart; [`heat`] how often
//!   keys were read.
//! - `dead_stretches` is what scans found to be empty, `front` reads X ahead for who removes one
//!   first key after the other, `ends` has what Y has at the ends of a tree.
//! - [`expiry`] is how entries that expire are stored, `sweep` how they leave Y, [`sweep_schedule`]
//!   when.
//! - [`regions`] are the parts of a tree that are cleaned and released.
//! - [`clean`] writes dirty regions to Y, [`release`] cuts cold ones off, each with its thread.
//! - [`memory`] is the waiting room of writers, [`shared`] what all trees have in common,
//!   [`policies`] what a user may choose about cold data.
//! - `replay` is the policies without an index, for programs that replay traces (`testing`).
//! - [`host`] is what the framework asks of the database; [`worker`] starts and ends the threads.
//!
//! Imports go one way: `worker` to `clean`, `release` and `fetch`, these to `host`, `tree` and
//! `regions`, all of them to `shared` and `memory`.

mod at_once;
mod audit;
mod back_off;
pub(crate) mod clean;
mod compactor;
pub(crate) mod counters;
mod dead_stretches;
pub(crate) mod disk_writer;
mod ends;
pub(crate) mod evicted;
pub(crate) mod expiry;
pub(crate) mod fetch;
mod filter_builder;
mod front;
pub(crate) mod heat;
pub(crate) mod host;
pub(crate) mod hot;
pub(crate) mod journal;
pub(crate) mod living;
pub(crate) mod load;
mod load_pause;
pub(crate) mod memory;
pub(crate) mod merge;
mod merging;
pub(crate) mod misses;
pub(crate) mod operators;
pub(crate) mod policies;
mod radix;
mod ranges;
pub(crate) mod regions;
pub(crate) mod release;
#[cfg(any(test, feature = "testing"))]
pub mod replay;
pub(crate) mod scan;
pub(crate) mod shared;
pub(crate) mod signal;
pub(crate) mod snapshots;
pub(crate) mod spill;
mod spiller;
mod sweep;
pub(crate) mod sweep_schedule;
pub(crate) mod tree;
pub(crate) mod worker;
mod writes;

#[cfg(test)]
mod tests;
