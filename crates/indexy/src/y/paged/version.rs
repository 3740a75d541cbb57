//! A version of the tree: a root and what hangs on it, which never changes.
//!
//! A reader takes the newest version and reads from it; a run makes the next one beside it. The pages that only an old
//! version has are reused when nobody holds it any more (`space.rs`).

use super::page::PageNo;
use std::sync::atomic::AtomicU32;

#[derive(Debug, Default)]
pub(super) struct Version {
    /// 0: the tree is empty.
    pub(super) root: PageNo,
    /// Levels; 0: the tree is empty.
    pub(super) height: u8,
    pub(super) entries: u64,
    /// Where the root's frame may be.
    pub(super) hint: AtomicU32,
}

impl Version {
    pub(super) fn new(root: PageNo, height: u8, entries: u64) -> Self {
        Self {
            root,
            height,
            entries,
            hint: AtomicU32::new(0),
        }
    }
}
