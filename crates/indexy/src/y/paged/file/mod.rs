//! The page file: pages at their places, each checked when read and sealed when written.
//!
//! Bytes 0 to [`PAGES_START`] hold the two superblocks; page `n` lies at `n * page_bytes`. Threads:
//! any. Nothing is cached.

pub(crate) mod bits;
pub(crate) mod chain;
mod checked;
pub(crate) mod committed;
pub(crate) mod extent;
pub(crate) mod map;
pub(crate) mod page_set;
mod source;
pub(crate) mod space;
pub(crate) mod superblock;

use crate::y::page::{self, Identity, PageNo, PageSource};
use crate::{
    error::{Error, Result},
    storage::StorageFile,
};
use checked::CheckedPages;
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
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
    /// It is mapped, no fault has met a view, and nobody else may write to it.
    has_views: AtomicBool,
    /// What was checked where it lies.
    checked: CheckedPages,
}

impl PageFile {
    pub(crate) fn new(
        storage: Arc<dyn StorageFile>,
        page_bytes: usize,
        tree: u64,
        committed: u64,
    ) -> Self {
        Self {
            has_views: AtomicBool::new(storage.is_mapped()),
            storage,
            page_bytes,
            tree,
            birth: AtomicU64::new(committed + 1),
            checked: CheckedPages::default(),
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

    /// The `bytes` bytes from page `number` on, where they lie; `None`: they have to be read.
    fn look(&self, number: PageNo, bytes: usize) -> Result<Option<&[u8]>> {
        if !self.has_views() {
            return Ok(None);
        }
        let view = self.storage.view(self.offset(number), bytes)?;
        if view.is_none() && !self.storage.is_mapped() {
            self.end_views();
        }
        Ok(view)
    }

    /// From now on everything is read, and what is found in views does not count: somebody else may
    /// write to the file, a fault has met a view, or the system does not map it.
    pub(crate) fn end_views(&self) {
        self.has_views.store(false, SeqCst);
    }

    /// `bytes`, a view of what begins with page `number`, checked by `check` unless they were
    /// before; `None`: they were not there. Its first page is the one that remembers.
    fn check_once<'v>(
        &self,
        number: PageNo,
        bytes: &'v [u8],
        check: impl FnOnce() -> Result<()>,
    ) -> Result<Option<&'v [u8]>> {
        if !self.checked.has(number) {
            let right = check();
            if !self.views_hold() {
                return Ok(None);
            }
            right?;
            self.checked.set(number);
        }
        Ok(Some(bytes))
    }

    /// Bytes of memory that views take beside their mapping.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.checked.memory_bytes()
    }

    /// Completes a page, or an extent, that is to be written.
    pub(crate) fn seal(&self, number: PageNo, page: &mut [u8]) {
        page::seal(page, self.identity(number));
    }

    /// Writes sealed pages with consecutive numbers from `first` on.
    pub(crate) fn write(&self, first: PageNo, pages: &[u8]) -> Result<()> {
        let count = (pages.len() / self.page_bytes) as u64;
        self.checked.forget(first..first + count);
        self.storage.write_at(pages, self.offset(first))
    }

    pub(crate) fn path(&self) -> &Path {
        self.storage.path()
    }
}
