//! Memory that all LSM trees of a database share.

#![forbid(unsafe_code)]

pub(crate) mod block_cache;
pub(crate) mod buffers;
pub(crate) mod shared;
