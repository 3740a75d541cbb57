//! The state of an open paged tree, and who holds which lock of it.
//!
//! Locks, in this order: `maintaining`, `writing`, `committed`, `space`; see the header of the
//! folder.
//! Not here: opening (`open.rs`), reads (`read/`), writes (`write/`), the contract (`index.rs`).

use super::{
    file::{PageFile, committed::Committed, space::Space},
    pass::Pass,
    turns::Turns,
    version::Version,
};
use crate::y::pool::search::CachedPages;
use crate::{
    error::{Error, Result},
    poison::Poison,
    storage::Storage,
};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

/// The file of the pages.
pub(crate) const PAGES: &str = "pages";

/// A paged B+ tree in a directory of its own; see the header of the folder.
pub(crate) struct PagedY {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) pages: CachedPages<PageFile>,
    pub(crate) read_only: bool,
    pub(crate) version: ArcSwap<Version>,
    pub(crate) space: Mutex<Space>,
    /// For reads by locator, from the first one on. Made under `space`.
    pub(crate) turns: OnceLock<Turns>,
    pub(crate) committed: Mutex<Committed>,
    pub(crate) writing: Mutex<()>,
    /// Held by a step of maintenance; with it, how far compaction is.
    pub(crate) maintaining: Mutex<Pass>,
    pub(crate) poison: Poison,
    /// Compaction is to end, and not to begin again.
    pub(crate) interrupted: AtomicBool,
    /// Sorted loads under way.
    pub(crate) loads: AtomicUsize,
    /// What they hold in memory beside what every load does, and what a removal of ranges holds.
    pub(crate) load_bytes: AtomicUsize,
    /// Somebody else may have the file: it is not written any more. Set under `writing` and
    /// `committed`, looked at under either.
    pub(crate) released: AtomicBool,
}

impl PagedY {
    /// Refuses writes that must not happen. The caller holds `writing` or `committed`.
    pub(crate) fn writable(&self) -> Result<()> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        if self.released.load(Relaxed) {
            return Err(Error::Closed);
        }
        self.poison.check()
    }
}
