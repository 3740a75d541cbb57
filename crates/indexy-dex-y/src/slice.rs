//! Slices of the memory for caches: what each tree of a database has taken of it.

use parking_lot::Mutex;
use std::sync::Arc;

/// What a page of a cache takes: the node, its latch, its place in two tables.
const PAGE_BYTES: usize = 1152;
/// What a tree may take beyond its slice, as a factor.
const MOST_SLICES: usize = 3;
/// The least that works for some threads.
const MIN_PAGES: usize = 64;

pub(crate) struct Slices {
    pub(crate) share: usize,
    pub(crate) taken: usize,
}

/// One tree's part of the share; dropping it gives it back.
pub(crate) struct Slice {
    slices: Arc<Mutex<Slices>>,
    pages: usize,
}

impl Slice {
    pub(crate) fn take(slices: &Arc<Mutex<Slices>>) -> Self {
        let mut all = slices.lock();
        let left = all.share.saturating_sub(all.taken);
        let pages = (left / 10 * 9 / PAGE_BYTES).max(MIN_PAGES);
        all.taken += pages * PAGE_BYTES;
        drop(all);
        let slices = Arc::clone(slices);
        Self { slices, pages }
    }

    /// Pages for a tree with so many nodes above its leaves, and some that splits will make.
    pub(crate) fn pages_for(&mut self, inner_nodes: usize) -> usize {
        let wanted = inner_nodes + inner_nodes / 8 + MIN_PAGES;
        let pages = wanted.clamp(self.pages, self.pages * MOST_SLICES);
        self.slices.lock().taken += (pages - self.pages) * PAGE_BYTES;
        self.pages = pages;
        pages
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        self.slices.lock().taken -= self.pages * PAGE_BYTES;
    }
}
