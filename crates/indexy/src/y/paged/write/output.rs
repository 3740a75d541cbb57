//! Pages on their way to the file: built in one buffer, written together where their numbers follow
//! one another.
//!
//! Nothing that is written here can be reached by anyone until a version or a superblock names it.
//! Not durable: that is for who writes the superblock. Threads: one.

use crate::y::page::{self, HEADER_BYTES, PageNo, PageSource, node::Far, put};
use crate::{
    error::{Error, Result},
    mem::aligned::AlignedBuffer,
    y::paged::{file::extent, tree::PagedY},
};
use xxhash_rust::xxh3::Xxh3;

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
        let page = page.ok_or_else(|| self.no_more_pages())?;
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

    /// Adds `bytes` as an extent.
    pub(crate) fn add_extent(&mut self, bytes: &[u8]) -> Result<Far> {
        let size = self.y.pages.file.page_bytes;
        let pages = extent::pages_for(bytes.len(), size);
        let first = self.reserve_run(pages)?;
        if (self.waiting.len() + pages) * size > self.buffer.len() {
            self.flush()?;
        }
        let at = self.waiting.len() * size;
        if let Some(to) = self.buffer.get_mut(at..at + pages * size) {
            fill_extent(to, bytes);
            self.y.pages.file.seal(first, to);
            self.waiting.extend(first..first + pages as u64);
        } else {
            self.write_extent(first, bytes)?;
        }
        Ok(extent::reference(first, bytes.len()))
    }

    /// Writes the extent `far` anew, to free pages below `end`, or behind all others if `or_last`;
    /// `None`: there are none, or the file cannot grow. Cost: two reads and a write of it, piece by
    /// piece.
    pub(crate) fn move_extent(
        &mut self,
        far: Far,
        end: PageNo,
        or_last: bool,
    ) -> Result<Option<Far>> {
        let file = &self.y.pages.file;
        let Some(pages) = extent::pages(file, far) else {
            return Ok(None);
        };
        let count = pages.end - pages.start;
        let (place, is_last) = {
            let mut space = self.y.space.lock();
            match space.allocate_run_below(count, end) {
                None if or_last => (space.allocate_last(count), true),
                place => (place, false),
            }
        };
        let Some(first) = place else {
            return Ok(None);
        };
        self.taken.extend(first..first + count);
        self.flush()?;
        match self.copy_extent(far, first) {
            // The file cannot grow: it stays where it is.
            Err(Error::OutOfSpace { .. }) if is_last => {
                let kept = self.taken.len().saturating_sub(count as usize);
                let given_back = self.taken.split_off(kept);
                self.y.release(&given_back);
                Ok(None)
            }
            copied => copied.map(|()| Some(Far { first, ..far })),
        }
    }

    /// Writes the extent `far` anew, to the pages from `first` on. Nothing waits in the buffer.
    fn copy_extent(&mut self, far: Far, first: PageNo) -> Result<()> {
        let Self { y, buffer, .. } = self;
        let file = &y.pages.file;
        // The first piece says where it is. A commit between the two reads changes what a page that
        // is written then says of itself.
        let identity = file.identity(first);
        let place = |buffer: &mut AlignedBuffer, piece: &[u8]| {
            put(buffer, 0, piece);
            page::identify(buffer, identity);
        };
        let mut sum = Xxh3::new();
        let mut at = 0;
        extent::walk_far(file, far, |piece| {
            if at == 0 {
                place(buffer, piece);
                let piece = buffer.get(..piece.len()).unwrap_or_default();
                sum.update(page::summed(piece, true));
            } else {
                sum.update(page::summed(piece, false));
            }
            at += piece.len();
            Ok(())
        })?;
        let mut at = 0;
        extent::walk_far(file, far, |piece| {
            let to = first + (at / file.page_bytes) as u64;
            at += piece.len();
            if to > first {
                return file.write(to, piece);
            }
            place(buffer, piece);
            page::put_sum(buffer, sum.digest());
            file.write(to, buffer.get(..piece.len()).unwrap_or_default())
        })
    }

    /// Consecutive pages that are to be added.
    fn reserve_run(&mut self, pages: usize) -> Result<PageNo> {
        let first = self.y.space.lock().allocate_run(pages as u64);
        let first = first.ok_or_else(|| self.no_more_pages())?;
        self.taken.extend(first..first + pages as u64);
        Ok(first)
    }

    fn no_more_pages(&self) -> Error {
        let path = self.y.pages.file.path().to_path_buf();
        Error::OutOfSpace { path }
    }

    /// Writes an extent that is larger than the buffer, in which nothing waits, piece by piece.
    fn write_extent(&mut self, first: PageNo, bytes: &[u8]) -> Result<()> {
        let Self { y, buffer, .. } = self;
        let file = &y.pages.file;
        let room = buffer.len();
        let (head, rest) = bytes
            .split_at_checked(room - HEADER_BYTES)
            .unwrap_or((bytes, &[]));
        // Its last page is filled up with zeros.
        let last = (HEADER_BYTES + bytes.len()).next_multiple_of(file.page_bytes) - HEADER_BYTES;
        let zeros = vec![0; last - bytes.len()];
        let mut sum = Xxh3::new();
        fill_extent(buffer, head);
        extent::write_header(buffer, bytes.len());
        page::identify(buffer, file.identity(first));
        sum.update(page::summed(buffer, true));
        sum.update(rest);
        sum.update(&zeros);
        page::put_sum(buffer, sum.digest());
        file.write(first, buffer)?;
        let pieces = rest.chunks(room).zip(1..);
        for (piece, i) in pieces {
            let whole = piece.len().next_multiple_of(file.page_bytes);
            let Some(to) = buffer.get_mut(..whole) else {
                continue;
            };
            to.fill(0);
            put(to, 0, piece);
            file.write(first + i * (room / file.page_bytes) as u64, to)?;
        }
        Ok(())
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

    /// The bytes of a key or value that does not lie near, and may still wait here.
    pub(crate) fn fetch(&self, far: Far) -> Result<Vec<u8>> {
        let file = &self.y.pages.file;
        let waiting = extent::pages(file, far).and_then(|pages| {
            let at = self.waiting.iter().rposition(|page| *page == far.first)?;
            let from = self.buffer.get(at * file.page_bytes..)?;
            let bytes = (pages.end - pages.start) as usize * file.page_bytes;
            extent::bytes_in(from.get(..bytes)?, far)
        });
        match waiting {
            Some(bytes) => Ok(bytes.to_vec()),
            None => file.fetch(far),
        }
    }
}

/// Fills `to` with the header of an extent of `bytes`, with these and with zeros behind them.
fn fill_extent(to: &mut [u8], bytes: &[u8]) {
    to.fill(0);
    extent::write_header(to, bytes.len());
    put(to, HEADER_BYTES, bytes);
}
