//! The write-ahead log: one per database, shared by all trees.
//!
//! Source: design 5. Keeps: I5, I6, I8 (its part: an LSN order that is the order of `append`).
//! Not here: who may truncate (`framework/checkpoint.rs`), what a record means (`db/`).

#![forbid(unsafe_code)]

/// A position in the log: a byte offset in its logical stream, never reused.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lsn(pub u64);
