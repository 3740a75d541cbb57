//! Reads of one version, whose tables are copied out of the engine.

#![forbid(unsafe_code)]

pub(crate) mod merge;
pub(crate) mod multi_get;
pub(crate) mod snapshot;
pub(crate) mod verify;
