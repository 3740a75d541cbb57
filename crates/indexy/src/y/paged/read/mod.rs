//! Reads of one version: a key, many keys at once, a range.
//!
//! Threads: any. No lock of the tree is taken; the pool says what is in memory.

pub(crate) mod cursor;
mod locate;
mod multi_get;
