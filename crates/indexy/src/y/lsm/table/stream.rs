//! All entries of a part of a table in order, with large reads past the pool: what merges read.
//!
//! Leaves that follow each other in the file come with one read; each is decoded once, into
//! buffers that are reused. Memory: two buffers of the size that the caller says (the second one
//! only for a table with far bytes), a decoded leaf, a page a level, and the present entry if its
//! key or value is longer than a buffer.
//!
//! Threads: one at a time. It keeps the file open, so a table that is removed meanwhile is read to
//! its end.

use super::{far_window::FarWindow, file::TableFile, leaves::Leaves, walk::LeafWalk};
use crate::{
    error::Result,
    y::page::{
        PageNo, PageSource,
        leaf_entries::LeafEntries,
        node::{EntryAt, Node, ValueAt},
    },
};

/// See the module header.
pub(crate) struct TableStream {
    file: TableFile,
    leaves: Leaves,
    /// Where to begin, until the first leaf is there.
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
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
        let walk = LeafWalk::new(file.clone(), root, from, to);
        let leaves = Leaves::new(file.clone(), walk, read_bytes);
        let mut stream = Self {
            from: Some(from.to_vec()),
            to: to.map(<[u8]>::to_vec),
            leaf: LeafEntries::default(),
            at: 0,
            end: 0,
            far: FarWindow::new(leaves.read_bytes()),
            far_key: Vec::new(),
            leaves,
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
        self.leaf.get(self.at, self.leaves.page())
    }

    /// To the first wanted entry of the next leaf that has one.
    #[cold]
    fn next_leaf(&mut self) -> Result<()> {
        loop {
            (self.at, self.end) = (0, 0);
            let Some(number) = self.leaves.next()? else {
                return Ok(());
            };
            let senseless = || self.file.senseless(number);
            let node = Node::of_page(self.leaves.page()).ok_or_else(senseless)?;
            self.leaf.read(&node).ok_or_else(senseless)?;
            if self.leaf.len() == 0 {
                return Err(senseless());
            }
            let fetch = |far| self.file.fetch(far);
            let mut at = 0;
            let mut end = self.leaf.len();
            if let Some(from) = self.from.take() {
                at = node.search(&from, &fetch)?.ok_or_else(senseless)?.0;
            }
            if let Some(to) = &self.to {
                end = node.search(to, &fetch)?.ok_or_else(senseless)?.0;
            }
            if at < end {
                (self.at, self.end) = (at, end);
                return Ok(());
            }
        }
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
