//! All entries of a part of a table in order, with large reads past the pool: what merges read.
//!
//! Leaves that follow each other in the file come with one read; each is decoded once, into
//! buffers that are reused. Memory: two buffers of the size that the caller says (the second one
//! only for a table with far bytes), a decoded leaf, a page a level, and the present entry if its
//! key or value is longer than a buffer.
//!
//! Threads: one at a time. It keeps the file open, so a table that is removed meanwhile is read to
//! its end.

use super::{PAGE_BYTES, far_window::FarWindow, file::TableFile, walk::LeafWalk};
use crate::{
    error::Result,
    mem::aligned::AlignedBuffer,
    y::page::{
        PageNo, PageSource,
        leaf_entries::LeafEntries,
        node::{EntryAt, Node, ValueAt},
    },
};

/// Least and greatest size of a read.
const MIN_READ_BYTES: usize = 32 << 10;
const MAX_READ_BYTES: usize = 256 << 10;

/// See the module header.
pub(crate) struct TableStream {
    file: TableFile,
    walk: LeafWalk,
    /// Where to begin, until the first leaf is there.
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    buffer: AlignedBuffer,
    /// Number of the first page in the buffer, and pages in it.
    first: PageNo,
    filled: usize,
    /// Pages of the buffer that were decoded; the last of them is the present leaf.
    decoded: usize,
    /// A leaf that does not follow those in the buffer.
    ahead: Option<PageNo>,
    /// Leaves that may still come: a file has no more of them than pages.
    leaves_left: u64,
    leaf: LeafEntries,
    /// The present entry and the end of the entries in the leaf that are wanted.
    at: usize,
    end: usize,
    far: FarWindow,
    far_key: Vec<u8>,
}

impl TableStream {
    pub(super) fn new(
        file: TableFile,
        root: (PageNo, u8),
        from: &[u8],
        to: Option<&[u8]>,
        read_bytes: usize,
    ) -> Result<Self> {
        let read_bytes = read_bytes.clamp(MIN_READ_BYTES, MAX_READ_BYTES) & !(PAGE_BYTES - 1);
        let mut stream = Self {
            walk: LeafWalk::new(file.clone(), root, from, to),
            from: Some(from.to_vec()),
            to: to.map(<[u8]>::to_vec),
            buffer: AlignedBuffer::new(read_bytes),
            first: 0,
            filled: 0,
            decoded: 0,
            ahead: None,
            leaves_left: file.pages,
            leaf: LeafEntries::default(),
            at: 0,
            end: 0,
            far: FarWindow::new(read_bytes),
            far_key: Vec::new(),
            file,
        };
        stream.next_leaf()?;
        stream.fetch_key()?;
        Ok(stream)
    }

    /// The key of the present entry; `None`: the stream is at its end.
    #[inline]
    pub(crate) fn key(&self) -> Option<&[u8]> {
        let entry = self.present()?;
        Some(match entry.far_key {
            None => entry.stub,
            Some(_) => &self.far_key,
        })
    }

    /// The value of the present entry, which was loaded; `None`: it is a delete, or there is no
    /// entry.
    #[inline]
    pub(crate) fn value(&self) -> Option<&[u8]> {
        match self.present()?.value {
            ValueAt::Near(value) => Some(value),
            ValueAt::Far(_) => Some(self.far.present()),
            ValueAt::Deleted => None,
        }
    }

    /// Goes to the next entry. Cost: none for most entries; else a read of leaves that follow each
    /// other, or of far bytes. After an error the stream is of no use.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<()> {
        self.at += 1;
        if self.at >= self.end {
            self.next_leaf()?;
        }
        self.fetch_key()
    }

    #[inline]
    fn present(&self) -> Option<EntryAt<'_>> {
        if self.at >= self.end {
            return None;
        }
        self.leaf
            .get(self.at, self.page(self.decoded.checked_sub(1)?))
    }

    #[inline]
    fn page(&self, i: usize) -> &[u8] {
        let at = i * PAGE_BYTES;
        self.buffer.get(at..at + PAGE_BYTES).unwrap_or_default()
    }

    /// To the first wanted entry of the next leaf that has one.
    #[cold]
    fn next_leaf(&mut self) -> Result<()> {
        loop {
            (self.at, self.end) = (0, 0);
            if self.decoded == self.filled && !self.read_leaves()? {
                return Ok(());
            }
            let number = self.first + self.decoded as u64;
            let at = self.decoded * PAGE_BYTES;
            let page = self.buffer.get(at..at + PAGE_BYTES).unwrap_or_default();
            let read = Node::of_page(page).and_then(|n| self.leaf.read(&n).map(|()| n));
            let Some(node) = read.filter(|_| self.leaf.len() > 0) else {
                return Err(self.file.senseless(number));
            };
            self.decoded += 1;
            let fetch = |far| self.file.fetch(far);
            let senseless = || self.file.senseless(number);
            let (mut at, mut end) = (0, self.leaf.len());
            if let Some(from) = self.from.take() {
                at = node.search(&from, &fetch)?.ok_or_else(senseless)?.0;
            }
            if let Some(to) = &self.to {
                end = node.search(to, &fetch)?.ok_or_else(senseless)?.0;
            }
            (self.at, self.end) = (at, end);
            if at < end {
                return Ok(());
            }
        }
    }

    /// Reads the next leaves that follow each other in the file; false: there are none.
    fn read_leaves(&mut self) -> Result<bool> {
        (self.filled, self.decoded) = (0, 0);
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
        let left = self.leaves_left.checked_sub(count as u64);
        let more = || {
            self.file
                .corrupt(first, "the table has more leaves than pages")
        };
        self.leaves_left = left.ok_or_else(more)?;
        let to = self.buffer.get_mut(..count * PAGE_BYTES);
        self.file.read_run(first, to.unwrap_or_default())?;
        (self.first, self.filled) = (first, count);
        Ok(true)
    }

    /// Reads the present key, if it is not in its leaf; lets go of a long value.
    #[inline]
    fn fetch_key(&mut self) -> Result<()> {
        self.far.forget();
        let Some(entry) = self.present() else {
            return Ok(());
        };
        if let Some(far) = entry.far_key {
            self.far.load(&self.file, far)?;
            self.far_key.clear();
            self.far_key.extend_from_slice(self.far.present());
        }
        Ok(())
    }

    /// Makes the present value ready. Cost: none if it is near, or was read with those before; else
    /// a read of the device.
    #[inline]
    pub(crate) fn load(&mut self) -> Result<()> {
        let Some(ValueAt::Far(far)) = self.present().map(|entry| entry.value) else {
            return Ok(());
        };
        self.far.load(&self.file, far)
    }
}
