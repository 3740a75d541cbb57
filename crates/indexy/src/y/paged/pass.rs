//! How far the compaction of a tree is (`write/compact.rs`).

use crate::y::page::PageNo;

/// See the module header.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    /// Passes over the leaves that were begun, this one included; 0: none is under way.
    pub(crate) number: u32,
    /// Where this one goes on.
    pub(crate) next: Vec<u8>,
    /// Pages of extents that this one came by.
    pub(crate) extents: u64,
    /// Those that the last one came by.
    pub(crate) known_extents: u64,
    /// The root that the last one left, and the free pages: where both are the same, nothing has
    /// changed.
    pub(crate) left: (PageNo, u64),
}
