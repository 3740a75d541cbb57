//! What the trees of one database share: the memory for their caches.
//!
//! redb has a cache per file, whose size is fixed when the file is opened. So a tree gets a slice
//! of the share: half of what is left, so that there is always some left for the next one.

use crate::{
    slice::{Slice, Slices, lock},
    tree::RedbY,
};
use indexy::{
    Result,
    index_y::{IndexY, IndexYShared},
};
use std::{
    path::Path,
    sync::{Arc, Mutex},
};

/// The memory that all trees of a database have for their caches.
#[derive(Debug)]
pub struct RedbShared(Arc<Mutex<Slices>>);

impl RedbShared {
    /// `cache_bytes` for all trees together.
    #[must_use]
    pub fn new(cache_bytes: usize) -> Self {
        Self(Arc::new(Mutex::new(Slices {
            share: cache_bytes,
            taken: 0,
        })))
    }

    /// Opens the Index Y of one tree, or creates it unless `read_only`.
    pub fn open_tree(&self, dir: &Path, read_only: bool) -> Result<RedbY> {
        RedbY::open(dir, read_only, Slice::take(&self.0))
    }
}

impl IndexYShared for RedbShared {
    fn open(&self, dir: &Path, read_only: bool) -> Result<Arc<dyn IndexY>> {
        Ok(Arc::new(self.open_tree(dir, read_only)?))
    }

    fn memory_bytes(&self) -> usize {
        lock(&self.0).taken
    }

    /// For trees opened from now on: redb cannot resize a cache. `memory_bytes` goes on saying what
    /// is held.
    fn set_memory(&self, cache_bytes: usize) {
        lock(&self.0).share = cache_bytes;
    }
}
