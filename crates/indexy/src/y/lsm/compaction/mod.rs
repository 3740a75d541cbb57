//! When to compact, how large levels are, and how a compaction is given up.

#![forbid(unsafe_code)]

pub(crate) mod cancel;
pub(crate) mod level0;
pub(crate) mod level_sizes;
