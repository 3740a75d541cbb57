//! Files that are looked at where they lie: mapped into memory, read by the byte.
//!
//! Source: *Larger-than-Memory Data Management on Modern Storage Hardware* (Ma et al.), section
//! 4.4. For devices that are memory: DAX, or a file system in memory. Elsewhere it works too, and
//! what is looked at takes page cache.
//!
//! A view is a slice of the mapping. Its user makes sure that nobody writes there while it is held:
//! a tree keeps the pages of a version for as long as somebody reads from it. A fault of the
//! device, or a file that somebody else cut short, puts zeros in the place of a page (`faults.rs`).
//! So what was found in views counts only if [`StorageFile::views_hold`] says so afterwards. From
//! then on the file gives no views, and the plain read says what is wrong.
//!
//! Reads and writes are those of the storage behind, through the page cache that the mapping shows.
//! Threads: any. Nothing is locked.

#![deny(unsafe_code)]

mod faults;
mod segments;

use super::{ReadAt, Storage, StorageFile};
use crate::error::Result;
use segments::Segments;
use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// See the module header.
pub(crate) struct Mapped {
    files: Arc<dyn Storage>,
}

impl Mapped {
    /// `files` with views, of those that are files of the operating system. From now on the process
    /// survives a fault of a mapping.
    pub(crate) fn new(files: Arc<dyn Storage>) -> Self {
        faults::catch();
        Self { files }
    }
}

impl Storage for Mapped {
    fn create(&self, path: &Path) -> Result<Arc<dyn StorageFile>> {
        self.files.create(path).map(MappedFile::of)
    }

    fn open(&self, path: &Path, write: bool) -> Result<Arc<dyn StorageFile>> {
        self.files.open(path, write).map(MappedFile::of)
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        self.files.list(dir)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.files.exists(path)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.files.create_dir_all(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.files.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.files.sync_dir(dir)
    }
}

struct MappedFile {
    file: Arc<dyn StorageFile>,
    segments: Segments,
    /// The file has so many bytes at least, unless somebody else cuts it.
    known: AtomicU64,
}

impl MappedFile {
    fn of(file: Arc<dyn StorageFile>) -> Arc<dyn StorageFile> {
        Arc::new(Self {
            file,
            segments: Segments::default(),
            known: AtomicU64::new(0),
        })
    }

    /// Whether the file has `[0, end)`.
    fn has(&self, end: u64) -> Result<bool> {
        if end <= self.known.load(Relaxed) {
            return Ok(true);
        }
        let len = self.file.len()?;
        self.known.fetch_max(len, Relaxed);
        Ok(end <= len)
    }
}

impl StorageFile for MappedFile {
    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.file.read_at(buf, offset)
    }

    fn read_all(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        self.file.read_all(reads)
    }

    fn system_file(&self) -> Option<&File> {
        self.file.system_file()
    }

    fn now_open(&self) -> Result<Option<Arc<dyn StorageFile>>> {
        self.file.now_open()
    }

    fn is_mapped(&self) -> bool {
        self.file.system_file().is_some() && self.segments.can_map()
    }

    fn view(&self, offset: u64, len: usize) -> Result<Option<&[u8]>> {
        let Some(file) = self.file.system_file() else {
            return Ok(None);
        };
        let end = offset.checked_add(len as u64);
        match end {
            Some(end) if self.views_hold() && self.has(end)? => {
                Ok(self.segments.bytes(file, offset, len))
            }
            _ => Ok(None),
        }
    }

    fn views_hold(&self) -> bool {
        self.segments.hold()
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.file.write_at(buf, offset)
    }

    fn sync(&self) -> Result<()> {
        self.file.sync()
    }

    /// Whoever cuts the file makes sure that nobody looks at what goes.
    fn set_len(&self, len: u64) -> Result<()> {
        self.known.fetch_min(len, Relaxed);
        let cut = self.file.set_len(len);
        // Who has asked for the length before it changed may have noted it meanwhile.
        self.known.fetch_min(len, Relaxed);
        cut
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.file.allocate(offset, len)
    }

    fn path(&self) -> &Path {
        self.file.path()
    }

    fn set_path(&self, path: &Path) {
        self.file.set_path(path);
    }
}

/// Faults are tested in `tests/suite/access.rs`: here the scheduler of other tests has a handler of
/// `SIGBUS`, too.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Buffered;

    fn file_of(bytes: &[u8]) -> (tempfile::TempDir, Arc<dyn StorageFile>) {
        let dir = tempfile::tempdir().unwrap();
        let storage = Mapped::new(Arc::new(Buffered));
        let file = storage.create(&dir.path().join("file")).unwrap();
        file.write_at(bytes, 0).unwrap();
        (dir, file)
    }

    #[test]
    fn a_view_shows_what_was_written_and_nothing_behind_the_end() {
        let (_dir, file) = file_of(&[7; 10_000]);
        assert_eq!(file.view(9_000, 1_000).unwrap(), Some(&[7; 1_000][..]));
        assert_eq!(file.view(9_000, 1_001).unwrap(), None);
        assert_eq!(file.view(u64::MAX, 2).unwrap(), None);
        file.write_at(&[9; 100], 20_000).unwrap();
        assert_eq!(file.view(20_000, 100).unwrap(), Some(&[9; 100][..]));
        file.set_len(4_096).unwrap();
        assert_eq!(file.view(9_000, 1_000).unwrap(), None);
        assert_eq!(file.view(0, 4_096).unwrap(), Some(&[7; 4_096][..]));
        assert!(file.views_hold());
    }
}
