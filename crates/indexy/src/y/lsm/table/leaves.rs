//! The leaves of a table in order, with reads as large as their places allow, past the pool.

use super::{PAGE_BYTES, file::TableFile, walk::LeafWalk};
use crate::{
    error::Result,
    mem::aligned::AlignedBuffer,
    y::page::{PageNo, PageSource},
};

/// Least and greatest size of a read.
const MIN_READ_BYTES: usize = 32 << 10;
const MAX_READ_BYTES: usize = 256 << 10;

/// See the module header. Memory: the buffer, and a page a level.
pub(super) struct Leaves {
    file: TableFile,
    walk: LeafWalk,
    buffer: AlignedBuffer,
    /// Number of the first page in the buffer, and pages in it.
    first: PageNo,
    filled: usize,
    /// Pages of the buffer that were given; the last of them is the present leaf.
    given: usize,
    /// A leaf that does not follow those in the buffer.
    ahead: Option<PageNo>,
    /// Leaves that may still come: a file has no more of them than pages.
    left: u64,
}

impl Leaves {
    /// The leaves that `walk` finds, read with `read_bytes` at a time: 32 to 256 KiB.
    pub(super) fn new(file: TableFile, walk: LeafWalk, read_bytes: usize) -> Self {
        let read_bytes = read_bytes.clamp(MIN_READ_BYTES, MAX_READ_BYTES) & !(PAGE_BYTES - 1);
        Self {
            walk,
            buffer: AlignedBuffer::new(read_bytes),
            first: 0,
            filled: 0,
            given: 0,
            ahead: None,
            left: file.pages,
            file,
        }
    }

    /// Bytes that are read at once.
    pub(super) fn read_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// The present leaf; nothing before the first one.
    #[inline]
    pub(super) fn page(&self) -> &[u8] {
        let at = self.given.saturating_sub(1) * PAGE_BYTES;
        self.buffer.get(at..at + PAGE_BYTES).unwrap_or_default()
    }

    /// Goes to the next leaf and returns its number. Cost: none, or a read of it and of those that
    /// follow it in the file.
    pub(super) fn next(&mut self) -> Result<Option<PageNo>> {
        if self.given == self.filled && !self.read()? {
            return Ok(None);
        }
        self.given += 1;
        Ok(Some(self.first + self.given as u64 - 1))
    }

    /// Reads the next leaves that follow each other; false: there are none.
    fn read(&mut self) -> Result<bool> {
        (self.filled, self.given) = (0, 0);
        let next = match self.ahead.take() {
            None => self.walk.next()?,
            ahead => ahead,
        };
        let Some(first) = next else {
            return Ok(false);
        };
        let room = self.buffer.len() / PAGE_BYTES;
        let mut count = 1;
        while count < room {
            match self.walk.next()? {
                Some(next) if next == first + count as u64 => count += 1,
                other => {
                    self.ahead = other;
                    break;
                }
            }
        }
        let left = self.left.checked_sub(count as u64);
        let more = || {
            self.file
                .corrupt(first, "the table has more leaves than pages")
        };
        self.left = left.ok_or_else(more)?;
        let to = self.buffer.get_mut(..count * PAGE_BYTES);
        self.file.read_run(first, to.unwrap_or_default())?;
        (self.first, self.filled) = (first, count);
        Ok(true)
    }
}
