//! Where a table's bytes go: pages and far bytes, one behind the other, to the end of the file.
//!
//! Far bytes are gathered in a buffer at the end of the file. When pages are to be written, the far
//! bytes before them are written first, up to the next page bound. So a file has no holes, and
//! every write begins on a page bound, has whole pages and comes from an aligned buffer.

use super::super::{
    PAGE_BYTES,
    far::{self, SEAL_BYTES},
    file::{self, file_name},
    packed::{Packed, UNIT},
};
use crate::{
    error::{Error, Result},
    mem::aligned::AlignedBuffer,
    storage::{Storage, StorageFile},
    y::{
        page::{self, PAGE_LIMIT, PageNo, node::Far},
        pool::TABLE_PAGES,
    },
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Far bytes that are gathered for a write.
const FAR_BUFFER_BYTES: usize = 256 << 10;
/// No longer file can be opened.
const MOST_BYTES: u64 = TABLE_PAGES * PAGE_BYTES as u64;
// The bit above is free in the place of far bytes.
const _: () = assert!(MOST_BYTES < PAGE_LIMIT / 2);

/// A file that is being written. Dropping it removes the file, unless it was [`kept`](Self::keep).
pub(super) struct Output {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    file: Arc<dyn StorageFile>,
    id: u64,
    /// The page behind all that was written.
    end: PageNo,
    /// Taken when far bytes are first met.
    far: Option<AlignedBuffer>,
    /// Far bytes in the buffer; they begin at `end`.
    far_used: usize,
    kept: bool,
}

impl Output {
    /// Makes the file of table `number`, whose first page is left free.
    pub(super) fn create(
        storage: &Arc<dyn Storage>,
        dir: &Path,
        number: u64,
        id: u64,
    ) -> Result<Self> {
        let path = dir.join(file_name(number));
        let file = storage.create(&path)?;
        let mut output = Self {
            storage: Arc::clone(storage),
            path,
            file,
            id,
            end: 1,
            far: None,
            far_used: 0,
            kept: false,
        };
        // Opened, it is as the storage opens files: past the system's cache, where it can.
        output.file = storage.open(&output.path, true)?;
        Ok(output)
    }

    /// Bytes that the file has with what is in the buffer.
    pub(super) fn bytes(&self) -> u64 {
        self.end * PAGE_BYTES as u64 + self.far_used as u64
    }

    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        self.far.as_ref().map_or(0, |buffer| buffer.len())
    }

    /// The page that is written next, if no far bytes come before.
    pub(super) fn end(&self) -> PageNo {
        self.end
    }

    /// Errors: `Unsupported`, if with `bytes` more the file is too long.
    fn check_room(&self, bytes: usize) -> Result<()> {
        if self.bytes() + bytes as u64 <= MOST_BYTES {
            return Ok(());
        }
        let what = "a table of more than 64 GiB".into();
        Err(Error::Unsupported { what })
    }

    /// As if `pages` had been written.
    #[cfg(test)]
    pub(super) fn skip(&mut self, pages: u64) {
        self.end += pages;
    }

    /// Puts `bytes` where they are not in a node.
    pub(super) fn put_far(&mut self, bytes: &[u8]) -> Result<Far> {
        self.check_room(SEAL_BYTES + bytes.len())?;
        let first = self.bytes();
        let len = u32::try_from(bytes.len()).map_err(|_| Error::Unsupported {
            what: "a value of more than 4 GiB".into(),
        })?;
        let seal = far::seal(self.id, first, bytes).to_le_bytes();
        for mut rest in [&seal[..], bytes] {
            while !rest.is_empty() {
                rest = self.gather(rest)?;
            }
        }
        Ok(Far { bytes: len, first })
    }

    /// Puts a packed leaf, all but its seal, which is over the first `sealed` bytes of it. Returns
    /// the reference to it.
    pub(super) fn put_packed(&mut self, form: &[u8], sealed: usize) -> Result<PageNo> {
        let gap = self.bytes().next_multiple_of(UNIT as u64) - self.bytes();
        let offset = self.bytes() + gap;
        let bytes = SEAL_BYTES + form.len();
        self.check_room(gap as usize + bytes)?;
        let reference = Packed { offset, bytes }.reference();
        let reference = reference.ok_or_else(|| Error::Unsupported {
            what: "a packed leaf beyond the first 64 GiB".into(),
        })?;
        let seal = far::seal(self.id, offset, form.get(..sealed).unwrap_or(form)).to_le_bytes();
        let zeros = [0; UNIT];
        for mut rest in [zeros.get(..gap as usize).unwrap_or_default(), &seal, form] {
            while !rest.is_empty() {
                rest = self.gather(rest)?;
            }
        }
        Ok(reference)
    }

    /// Takes what there is room for; returns the rest.
    fn gather<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8]> {
        let new = || AlignedBuffer::new(FAR_BUFFER_BYTES);
        let buffer = self.far.get_or_insert_with(new);
        let room = buffer.get_mut(self.far_used..).unwrap_or_default();
        let (now, rest) = bytes.split_at(bytes.len().min(room.len()));
        page::put(room, 0, now);
        self.far_used += now.len();
        if self.far_used == FAR_BUFFER_BYTES {
            self.write_far()?;
        }
        Ok(rest)
    }

    /// Writes the far bytes in the buffer, filled up with zeros to a page bound.
    fn write_far(&mut self) -> Result<()> {
        let Some(buffer) = self.far.as_mut().filter(|_| self.far_used > 0) else {
            return Ok(());
        };
        let whole = self.far_used.next_multiple_of(PAGE_BYTES);
        if let Some(rest) = buffer.get_mut(self.far_used..whole) {
            rest.fill(0);
        }
        let pages = buffer.get(..whole).unwrap_or_default();
        self.file.write_at(pages, self.end * PAGE_BYTES as u64)?;
        self.end += (whole / PAGE_BYTES) as u64;
        self.far_used = 0;
        Ok(())
    }

    /// Seals `pages` and writes them behind all that was put before; returns the number of the
    /// first.
    pub(super) fn put_pages(&mut self, pages: &mut [u8]) -> Result<PageNo> {
        self.write_far()?;
        self.check_room(pages.len())?;
        let first = self.end;
        for (number, page) in (first..).zip(pages.chunks_mut(PAGE_BYTES)) {
            page::seal(page, file::identity(self.id, number));
        }
        self.file.write_at(pages, first * PAGE_BYTES as u64)?;
        self.end += (pages.len() / PAGE_BYTES) as u64;
        Ok(first)
    }

    /// Makes sure that pages come next: [`end`](Self::end) is the number of the first.
    pub(super) fn end_far(&mut self) -> Result<()> {
        self.write_far()
    }

    /// Writes the first page, without which the file is no table.
    pub(super) fn put_head(&self, number: u64) -> Result<()> {
        let mut head = AlignedBuffer::new(PAGE_BYTES);
        file::write_head(&mut head, number);
        page::seal(&mut head, file::identity(self.id, 0));
        self.file.write_at(&head, 0)
    }

    /// The file stays.
    pub(super) fn keep(mut self) -> Arc<dyn StorageFile> {
        self.kept = true;
        Arc::clone(&self.file)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.kept {
            // What cannot be removed is an orphan, which the next open removes.
            let _ = self.storage.remove(&self.path);
        }
    }
}
