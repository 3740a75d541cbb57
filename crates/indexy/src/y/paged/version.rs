//! A version of the tree: a root and what hangs on it, which never changes.
//!
//! A reader takes the newest version and reads from it; a run makes the next one beside it. The
//! pages that only an old version has are reused when nobody holds it any more (`space.rs`).

use super::page::PageNo;
use std::sync::atomic::AtomicU32;

#[derive(Debug, Default)]
pub(crate) struct Version {
    /// 0: the tree is empty.
    pub(crate) root: PageNo,
    /// Levels; 0: the tree is empty.
    pub(crate) height: u8,
    pub(crate) entries: u64,
    /// Where the root's frame may be.
    pub(crate) hint: AtomicU32,
}

impl Version {
    pub(crate) fn new(root: PageNo, height: u8, entries: u64) -> Self {
        Self {
            root,
            height,
            entries,
            hint: AtomicU32::new(0),
        }
    }
}
