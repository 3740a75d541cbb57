//! The leaves of a table in order, with reads as large as their places allow, past the pool.

use super::{
    PAGE_BYTES,
    file::TableFile,
    packed::{Packed, Place},
    walk::LeafWalk,
};
use crate::{
    error::Result,
    mem::aligned::AlignedBuffer,
    y::page::{PageNo, PageSource},
};

/// Least and greatest size of a read.
const MIN_READ_BYTES: usize = 32 << 10;
const MAX_READ_BYTES: usize = 256 << 10;
/// What lies between packed leaves, long values above all, is read with them if it is no more.
const GAP_BYTES: u64 = 8 << 10;

/// See the module header. Memory: the buffer, a page, the numbers of the leaves in the buffer, and
/// a page a level.
pub(super) struct Leaves {
    file: TableFile,
    walk: LeafWalk,
    buffer: AlignedBuffer,
    /// What of the file is in the buffer.
    start: u64,
    filled: usize,
    /// The leaves in the buffer.
    batch: Vec<PageNo>,
    /// Leaves of the batch that were given; the last of them is the present one.
    given: usize,
    /// The present leaf, if it was packed.
    unpacked: Option<AlignedBuffer>,
    /// A leaf that does not follow those in the buffer.
    ahead: Option<PageNo>,
    /// Leaves that may still come: a file has no more of them than there is room for.
    left: u64,
}

impl Leaves {
    /// The leaves that `walk` finds, read with `read_bytes` at a time: 32 to 256 KiB.
    pub(super) fn new(file: TableFile, walk: LeafWalk, read_bytes: usize) -> Self {
        let read_bytes = read_bytes.clamp(MIN_READ_BYTES, MAX_READ_BYTES) & !(PAGE_BYTES - 1);
        Self {
            walk,
            buffer: AlignedBuffer::new(read_bytes),
            start: 0,
            filled: 0,
            batch: Vec::new(),
            given: 0,
            unpacked: None,
            ahead: None,
            left: file.most_leaves(),
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
        if let Some(page) = &self.unpacked {
            return page;
        }
        let at = self.given.saturating_sub(1) * PAGE_BYTES;
        self.buffer.get(at..at + PAGE_BYTES).unwrap_or_default()
    }

    /// Goes to the next leaf and returns its number. Cost: none, or a read of it and of those that
    /// follow it in the file; unpacking it.
    pub(super) fn next(&mut self) -> Result<Option<PageNo>> {
        if self.given == self.batch.len() && !self.read()? {
            return Ok(None);
        }
        let number = self.batch.get(self.given).copied();
        self.given += 1;
        match number.map(Place::of) {
            Some(Place::Packed(packed)) => self.unpack(packed)?,
            _ => self.unpacked = None,
        }
        Ok(number)
    }

    fn unpack(&mut self, packed: Packed) -> Result<()> {
        let new = || AlignedBuffer::new(PAGE_BYTES);
        let to = self.unpacked.get_or_insert_with(new);
        let at = (packed.pages().0 - self.start) as usize;
        let window = self.buffer.get(at..self.filled).unwrap_or_default();
        self.file.unpack(packed, window, window.len(), to)
    }

    /// Reads the next leaves that follow each other; false: there are none.
    fn read(&mut self) -> Result<bool> {
        (self.filled, self.given) = (0, 0);
        self.batch.clear();
        let next = match self.ahead.take() {
            None => self.walk.next()?,
            ahead => ahead,
        };
        let Some(first) = next else {
            return Ok(false);
        };
        self.batch.push(first);
        match Place::of(first) {
            Place::Page(_) => self.read_run(first)?,
            Place::Packed(packed) => self.read_packed(packed)?,
        }
        let left = self.left.checked_sub(self.batch.len() as u64);
        let more = || {
            self.file
                .corrupt(first, "the table has more leaves than there is room for")
        };
        self.left = left.ok_or_else(more)?;
        Ok(true)
    }

    /// Reads `first` and the pages behind it that are leaves.
    fn read_run(&mut self, first: PageNo) -> Result<()> {
        let room = self.buffer.len() / PAGE_BYTES;
        while self.batch.len() < room {
            match self.walk.next()? {
                Some(next) if next == first + self.batch.len() as u64 => self.batch.push(next),
                other => {
                    self.ahead = other;
                    break;
                }
            }
        }
        let bytes = self.batch.len() * PAGE_BYTES;
        let to = self.buffer.get_mut(..bytes).unwrap_or_default();
        self.file.read_run(first, to)?;
        (self.start, self.filled) = (first * PAGE_BYTES as u64, bytes);
        Ok(())
    }

    /// Reads `first` and the packed leaves behind it.
    fn read_packed(&mut self, first: Packed) -> Result<()> {
        self.file.check_place(first)?;
        let (start, bytes) = first.pages();
        let mut last = first;
        let mut end = start + bytes as u64;
        while let Some(next) = self.walk.next()? {
            if let Place::Packed(packed) = Place::of(next) {
                let (from, bytes) = packed.pages();
                let behind = packed.offset >= last.offset + last.bytes as u64;
                let until = from.saturating_add(bytes as u64);
                // Only what lies behind ends behind `start`.
                let room = self.buffer.len() as u64;
                if behind && from <= end + GAP_BYTES && until - start <= room {
                    self.file.check_place(packed)?;
                    (last, end) = (packed, until);
                    self.batch.push(next);
                    continue;
                }
            }
            self.ahead = Some(next);
            break;
        }
        let bytes = (end - start) as usize;
        let to = self.buffer.get_mut(..bytes).unwrap_or_default();
        self.file.read_raw(start, to)?;
        (self.start, self.filled) = (start, bytes);
        Ok(())
    }
}
