//! The run store: a disk index that keeps each sorted run as immutable tables, and merges them.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    allow(dead_code, unused_imports, reason = "joined by the tree")
)]

#[cfg(any(test, feature = "testing"))]
pub(crate) mod fuzzing;
pub(crate) mod table;
