//! A version of the tree: a root and what hangs on it, which never changes.
//!
//! A reader takes the newest version and reads from it; a run makes the next one beside it. The
//! pages that only an old version has are reused when nobody holds it any more (`space.rs`).

use crate::y::{page::PageNo, pool::search::Root};

#[derive(Debug, Default)]
pub(crate) struct Version {
    pub(crate) root: Root,
    pub(crate) entries: u64,
}

impl Version {
    pub(crate) fn new(root: PageNo, height: u8, entries: u64) -> Self {
        Self {
            root: Root::new(root, height),
            entries,
        }
    }
}
