//! The removal of ranges in two steps: the pages of the next version are written, and then readers
//! are shown it, which cannot fail. So a full device and a damaged page are met before anybody
//! relies on the removal.
//!
//! I7: what says which pages go, a bit for each page of the file at most, is in `load_bytes` of the
//! tree.
//!
//! Threads: one, which keeps the lock of writers all the time: nothing else is published.

use super::run::Run;
use crate::{
    error::Result,
    y::{
        contract::{KeyRange, RangeRemoval},
        page::PageNo,
        paged::{file::page_set::PageSet, tree::PagedY, version::Version},
    },
};
use parking_lot::MutexGuard;
use std::sync::{Arc, atomic::Ordering::Relaxed};

/// See the module header. Dropped, it gives its pages back.
pub(crate) struct Removal<'y> {
    y: &'y PagedY,
    base: Arc<Version>,
    /// `None`: nothing is in the ranges.
    next: Option<Version>,
    taken: Vec<PageNo>,
    removed: PageSet,
    /// What `load_bytes` of the tree has of it.
    counted: usize,
    _one_writer: MutexGuard<'y, ()>,
}

impl<'y> Removal<'y> {
    pub(crate) fn begin(y: &'y PagedY, ranges: &[KeyRange<'_>]) -> Result<Self> {
        let one_writer = y.writing.lock();
        y.writable()?;
        let base = y.version.load_full();
        let mut run = Run::new(y, &base);
        let mut ranges = ranges.iter();
        let written = ranges
            .try_for_each(|(from, to)| run.remove_range(from, *to))
            .and_then(|()| run.finish());
        let (taken, removed) = run.into_pages();
        let mut removal = Self {
            y,
            base,
            next: None,
            taken,
            counted: removed.bytes(),
            removed,
            _one_writer: one_writer,
        };
        y.load_bytes.fetch_add(removal.counted, Relaxed);
        removal.next = written?;
        Ok(removal)
    }
}

impl RangeRemoval for Removal<'_> {
    fn publish(mut self: Box<Self>) -> Result<()> {
        if let Some(next) = self.next.take() {
            let taken = std::mem::take(&mut self.taken).into_iter();
            let removed = std::mem::take(&mut self.removed);
            let base = std::mem::take(&mut self.base);
            self.y.publish(base, next, taken, &removed);
        }
        Ok(())
    }
}

impl Drop for Removal<'_> {
    fn drop(&mut self) {
        self.y.load_bytes.fetch_sub(self.counted, Relaxed);
        self.y.release(&self.taken);
    }
}
