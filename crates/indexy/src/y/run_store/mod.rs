//! The run store: an Index Y of immutable sorted tables.
//!
//! - `version/`: which table has what part of the key space, and the log that makes it durable.
//! - `compact/`: what to merge, and the merge.

#![forbid(unsafe_code)]
#![allow(
    dead_code,
    unused_imports,
    reason = "no tree is built of these rooms yet"
)]

pub(crate) mod compact;
pub(crate) mod version;
