//! The page file: pages at their places, each checked when read and sealed when written.
//!
//! Bytes 0 to [`PAGES_START`] hold the two superblocks; page `n` lies at `n * page_bytes`. Threads:
//! any. Nothing is cached.

pub(crate) mod chain;
pub(crate) mod committed;
pub(crate) mod extent;
pub(crate) mod map;
mod source;
pub(crate) mod space;
pub(crate) mod superblock;

use crate::y::page::{self, Identity, PageNo};
use crate::{
    error::{Error, Result},
    storage::StorageFile,
};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// What lies before is not pages. A multiple of every page size.
pub(crate) const PAGES_START: u64 = 16 << 10;

pub(crate) struct PageFile {
    pub(crate) storage: Arc<dyn StorageFile>,
    pub(crate) page_bytes: usize,
    /// Random number of the tree, in every page.
    pub(crate) tree: u64,
    /// Generation that is being written: no page can be newer.
    birth: AtomicU64,
}

impl PageFile {
    pub(crate) fn new(
        storage: Arc<dyn StorageFile>,
        page_bytes: usize,
        tree: u64,
        committed: u64,
    ) -> Self {
        Self {
            storage,
            page_bytes,
            tree,
            birth: AtomicU64::new(committed + 1),
        }
    }

    /// The first page behind the superblocks.
    pub(crate) fn first_page(&self) -> PageNo {
        PAGES_START / self.page_bytes as u64
    }

    /// Generation `committed` is durable; what is written from now on is of the next.
    pub(crate) fn set_committed(&self, committed: u64) {
        self.birth.store(committed + 1, Relaxed);
    }

    /// Who page `number` is, if it is written at this moment. A commit beside it makes the next
    /// answer another one: what is written in several pieces asks once.
    pub(crate) fn identity(&self, number: PageNo) -> Identity {
        Identity {
            number,
            tree: self.tree,
            birth: self.birth.load(Relaxed),
        }
    }

    pub(crate) fn offset(&self, number: PageNo) -> u64 {
        number * self.page_bytes as u64
    }

    /// Whether `page`, of which `got` bytes were read, is page `number`.
    pub(crate) fn check(&self, number: PageNo, page: &[u8], got: usize) -> Result<()> {
        let offset = self.offset(number);
        if got < self.page_bytes {
            let what = format!("page {number}: the file ends");
            return Err(Error::corrupt(self.path(), offset, what));
        }
        page::check(page, self.identity(number), self.path(), offset)
    }

    /// Whether `head` is the header of what begins with page `number`, and `sum` its checksum.
    fn check_sum(&self, number: PageNo, head: &[u8], sum: u64) -> Result<()> {
        let offset = self.offset(number);
        page::check_sum(head, sum, self.identity(number), self.path(), offset)
    }

    /// Completes a page, or an extent, that is to be written.
    pub(crate) fn seal(&self, number: PageNo, page: &mut [u8]) {
        page::seal(page, self.identity(number));
    }

    /// Writes sealed pages with consecutive numbers from `first` on.
    pub(crate) fn write(&self, first: PageNo, pages: &[u8]) -> Result<()> {
        self.storage.write_at(pages, self.offset(first))
    }

    pub(crate) fn path(&self) -> &Path {
        self.storage.path()
    }
}
