//! A consistent copy of the page file: the pages of the durable version at their places, holes
//! between them.

use super::{
    file::{bits::Bits, extent},
    tree::{PAGES, PagedY},
};
use crate::{error::Result, mem::aligned::AlignedBuffer, storage::StorageFile, y::page::PageNo};
use std::path::Path;

/// Pages copied by one read and write, at most, in bytes.
const COPY_BYTES: usize = 256 << 10;

impl PagedY {
    /// Makes the present version durable and copies it into the absent directory `dest`. Runs and
    /// commits go on beside it, once it has begun; no page is reused until it ends, so that the
    /// file grows by what they write. Cost: a commit, a read and a write of all pages in use, two
    /// syncs.
    pub(crate) fn copy_durable(&self, dest: &Path) -> Result<()> {
        let storage = &*self.storage;
        storage.create_dir_all(dest)?;
        let file = storage.create(&dest.join(PAGES))?;
        let (superblock, pages, _version) = {
            // Neither a run nor a commit, so that the present version is the durable one. Holding
            // it keeps its pages from being reused; nothing keeps those of the map, which are few.
            let _no_run = self.writing.lock();
            if !self.read_only {
                self.commit()?;
            }
            let committed = self.committed.lock();
            let mut map = Bits::default();
            for page in committed.map.pages() {
                map.set(page, true);
            }
            self.copy_pages(&map, &*file)?;
            let pages = self.space.lock().committed().clone();
            (committed.superblock, pages, self.version.load_full())
        };
        self.copy_pages(&pages, &*file)?;
        for copy in 0..2 {
            superblock.write(&*file, copy)?;
        }
        file.sync()?;
        storage.sync_dir(dest)?;
        dest.parent()
            .map_or(Ok(()), |parent| storage.sync_dir(parent))
    }

    fn copy_pages(&self, pages: &Bits, to: &dyn StorageFile) -> Result<()> {
        let file = &self.pages.file;
        let size = file.page_bytes;
        let mut buffer = AlignedBuffer::new(COPY_BYTES);
        let mut numbers = pages.pages().peekable();
        while let Some(first) = numbers.next() {
            let mut bytes = 0;
            let mut number = first;
            let extent = loop {
                if let Some(page) = buffer.get_mut(bytes..bytes + size) {
                    let got = file.storage.read_at(page, file.offset(number))?;
                    if let Some(length) = extent::begins(page) {
                        break Some(length);
                    }
                    // Checked: what is damaged here must not look whole there.
                    file.check(number, page, got)?;
                    bytes += size;
                }
                let room = bytes + size <= COPY_BYTES;
                match numbers.next_if(|next| room && *next == number + 1) {
                    Some(next) => number = next,
                    None => break None,
                }
            };
            let whole = buffer.get(..bytes).unwrap_or_default();
            if !whole.is_empty() {
                to.write_at(whole, file.offset(first))?;
            }
            if let Some(length) = extent {
                self.copy_extent(number, length, to)?;
                let end = number + extent::pages_for(length, size) as u64;
                while numbers.next_if(|next| *next < end).is_some() {}
            }
        }
        Ok(())
    }

    fn copy_extent(&self, first: PageNo, length: usize, to: &dyn StorageFile) -> Result<()> {
        let file = &self.pages.file;
        let mut at = file.offset(first);
        extent::walk(file, first, length, |piece| {
            to.write_at(piece, at)?;
            at += piece.len() as u64;
            Ok(())
        })
    }
}
