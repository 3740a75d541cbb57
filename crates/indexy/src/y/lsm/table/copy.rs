//! A copy of a table's file, for checkpoints.

use super::{PAGE_BYTES, file::file_name, packed::Place, read::Table, walk::LeafWalk};
use crate::{error::Result, mem::aligned::AlignedBuffer, storage::Storage, y::page::PageNo};
use std::path::Path;

/// Bytes copied by one read and write.
const COPY_BYTES: usize = 256 << 10;

impl Table {
    /// Copies the file into the folder `dest` under its own name and makes it durable, but not the
    /// folder. Every page is checked, so that one that is damaged does not look whole there; far
    /// bytes keep their seals. An error leaves no file. Cost: a read and a write of the file, a
    /// sync.
    pub(crate) fn copy_to(&self, storage: &dyn Storage, dest: &Path) -> Result<()> {
        let path = dest.join(file_name(self.meta().number));
        let copy = storage.create(&path)?;
        let written = self.copy_pages(&mut |offset, bytes| copy.write_at(bytes, offset));
        let done = written.and_then(|()| copy.sync());
        if done.is_err() {
            let _ = storage.remove(&path);
        }
        done
    }

    fn copy_pages(&self, write: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let file = self.file();
        let sealed = self.sealed_pages()?;
        let mut buffer = AlignedBuffer::new(COPY_BYTES);
        let pages_at_once = (COPY_BYTES / PAGE_BYTES) as u64;
        let mut first = 0;
        while first < file.pages {
            let count = (file.pages - first).min(pages_at_once);
            let part = buffer.get_mut(..count as usize * PAGE_BYTES);
            let part = part.unwrap_or_default();
            let offset = first * PAGE_BYTES as u64;
            file.read_raw(offset, part)?;
            for (number, page) in (first..).zip(part.chunks(PAGE_BYTES)) {
                if is_set(&sealed, number) {
                    file.check(number, page, page.len())?;
                }
            }
            write(offset, part)?;
            first += count;
        }
        Ok(())
    }
    /// A bit for each page of the file: set if it is a page, and not far bytes.
    fn sealed_pages(&self) -> Result<Vec<u64>> {
        let (file, meta) = (self.file(), self.meta());
        let mut bits = vec![0; (file.pages / 64 + 1) as usize];
        let mut walk = LeafWalk::new(file.clone(), (meta.root, meta.height), &[], None);
        while let Some(leaf) = walk.next()? {
            // A packed leaf keeps its seal, as far bytes do.
            if let Place::Page(leaf) = Place::of(leaf) {
                set(&mut bits, leaf);
            }
            walk.inner_pages().for_each(|inner| set(&mut bits, inner));
        }
        for segment in &meta.segments {
            let pages = segment.first..segment.first + u64::from(segment.pages);
            pages.for_each(|page| set(&mut bits, page));
        }
        let footer = file.pages.saturating_sub(meta.footer_pages())..file.pages;
        footer.chain([0]).for_each(|page| set(&mut bits, page));
        Ok(bits)
    }
}

fn set(bits: &mut [u64], page: PageNo) {
    if let Some(word) = bits.get_mut((page / 64) as usize) {
        *word |= 1 << (page % 64);
    }
}

fn is_set(bits: &[u64], page: PageNo) -> bool {
    let word = bits.get((page / 64) as usize);
    word.is_some_and(|word| word >> (page % 64) & 1 == 1)
}
