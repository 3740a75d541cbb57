//! Pages on their way to the file: built in one buffer, written together where their numbers follow
//! one another.
//!
//! Nothing that is written here can be reached by anyone until a version or a superblock names it.
//! Not durable: that is for who writes the superblock. Threads: one.

use crate::y::page::PageSource;
use crate::y::page::{HEADER_BYTES, Header, Kind, PageNo, node::Far, put};
use crate::{
    error::{Error, Result},
    mem::aligned::AlignedBuffer,
    y::paged::{file::chain, tree::PagedY},
};

/// Bytes of pages that are collected for a write.
pub(crate) const OUTPUT_BYTES: usize = 256 << 10;

pub(crate) struct Output<'y> {
    y: &'y PagedY,
    buffer: AlignedBuffer,
    /// Numbers of the pages in the buffer.
    waiting: Vec<PageNo>,
    /// Every page that was taken from the free ones.
    pub(crate) taken: Vec<PageNo>,
}

impl<'y> Output<'y> {
    pub(crate) fn new(y: &'y PagedY) -> Self {
        Self {
            y,
            buffer: AlignedBuffer::new(OUTPUT_BYTES),
            waiting: Vec::new(),
            taken: Vec::new(),
        }
    }

    /// The number of a page that is to be added.
    pub(crate) fn reserve(&mut self) -> Result<PageNo> {
        let page = self.y.space.lock().allocate();
        let page = page.ok_or_else(|| Error::OutOfSpace {
            path: self.y.pages.file.path().to_path_buf(),
        })?;
        self.taken.push(page);
        Ok(page)
    }

    /// Adds page `number`: `fill` gets zeros.
    pub(crate) fn add_at(&mut self, number: PageNo, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let size = self.y.pages.file.page_bytes;
        if (self.waiting.len() + 1) * size > self.buffer.len() {
            self.flush()?;
        }
        let at = self.waiting.len() * size;
        if let Some(page) = self.buffer.get_mut(at..at + size) {
            page.fill(0);
            fill(page);
            self.y.pages.file.seal(number, page);
            self.waiting.push(number);
        }
        Ok(())
    }

    pub(crate) fn add(&mut self, fill: impl FnOnce(&mut [u8])) -> Result<PageNo> {
        let number = self.reserve()?;
        self.add_at(number, fill)?;
        Ok(number)
    }

    /// Adds `bytes` (not empty) as a chain.
    pub(crate) fn add_chain(&mut self, bytes: &[u8]) -> Result<Far> {
        let first = self.reserve()?;
        let mut number = first;
        let mut parts = bytes
            .chunks(self.y.pages.file.page_bytes - HEADER_BYTES)
            .peekable();
        while let Some(part) = parts.next() {
            let next = match parts.peek() {
                Some(_) => self.reserve()?,
                None => 0,
            };
            let header = Header {
                link: next,
                payload: part.len() as u32,
                ..Header::of_kind(Kind::Overflow)
            };
            self.add_at(number, |page| {
                header.write(page);
                put(page, HEADER_BYTES, part);
            })?;
            number = next;
        }
        let bytes = bytes.len() as u32;
        Ok(Far { bytes, first })
    }

    /// The page that was added last, sealed.
    pub(crate) fn last(&self) -> &[u8] {
        let size = self.y.pages.file.page_bytes;
        let end = self.waiting.len() * size;
        self.buffer
            .get(end.saturating_sub(size)..end)
            .unwrap_or_default()
    }

    /// Writes what waits.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let size = self.y.pages.file.page_bytes;
        let mut start = 0;
        while let Some(first) = self.waiting.get(start).copied() {
            let following = self.waiting.iter().skip(start).zip(first..);
            let run = following.take_while(|(page, n)| **page == *n).count();
            let pages = self.buffer.get(start * size..(start + run) * size);
            self.y.pages.file.write(first, pages.unwrap_or_default())?;
            start += run;
        }
        self.waiting.clear();
        Ok(())
    }

    /// Reads a page that may still wait here.
    pub(crate) fn read(&self, number: PageNo, to: &mut [u8]) -> Result<()> {
        let size = self.y.pages.file.page_bytes;
        match self.waiting.iter().rposition(|page| *page == number) {
            Some(at) => {
                let from = self.buffer.get(at * size..(at + 1) * size);
                to.copy_from_slice(from.unwrap_or_default());
                Ok(())
            }
            None => self.y.pages.file.read(number, to),
        }
    }

    /// The bytes of a chain of which pages may still wait here.
    pub(crate) fn fetch(&self, far: Far) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        chain::walk(
            &self.y.pages.file,
            far,
            |number, to| self.read(number, to),
            |_, part| bytes.extend_from_slice(part),
        )?;
        Ok(bytes)
    }
}
