//! Giving back the free space at the end of the file.
//!
//! What lies there belongs to no version and no superblock, so that it can go at any moment at
//! which nobody allocates: under the locks of writers and of commits, and with no sorted load under
//! way. A load takes pages and writes them without either lock; it counts itself and then waits for
//! the lock of writers, so that it is seen here or begins when the file has its new length. A
//! superblock may say that the file ends farther behind: what it names is there all the same.
//!
//! The pages of the map may be the last that are in the way. They are written anew with the next
//! commit, in front. Not here: moving pages of the tree. A run rewrites them in front of it when
//! most of the file is free, and compaction whenever it is asked for (`compact.rs`).
//! Threads: the maintainer.

use crate::{
    error::{Error, Result},
    y::paged::tree::PagedY,
};
use std::sync::atomic::Ordering::Relaxed;

impl PagedY {
    /// Shortens the file if enough of its end is free, unless somebody writes or loads. Where there
    /// is no room for that (a file system that copies on write) a later call does it. Cost: a
    /// change of the file's length.
    pub(crate) fn shrink(&self) -> Result<()> {
        let Some(_no_run) = self.writing.try_lock() else {
            return Ok(());
        };
        if self.loads.load(Relaxed) > 0 {
            return Ok(());
        }
        let Some(committed) = self.committed.try_lock() else {
            return Ok(());
        };
        if self.writable().is_err() {
            return Ok(());
        }
        let end = {
            let mut space = self.space.lock();
            let wanted = space.wanted_end();
            let in_the_way = |wanted| committed.map.pages().iter().any(|page| *page >= wanted);
            if wanted.is_some_and(in_the_way) {
                space.changed = true;
            }
            space.cut()
        };
        let Some(end) = end else { return Ok(()) };
        let file = &self.pages.file;
        match file.storage.set_len(file.offset(end)) {
            Err(Error::OutOfSpace { .. }) => {
                self.space.lock().set_uncut();
                Ok(())
            }
            cut => cut,
        }
    }
}
