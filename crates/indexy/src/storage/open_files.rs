//! Files that are read often and stay open as long as not too many others are.
//!
//! An LSM tree has a file for each table, and a process has 1,024 descriptors by default. A file
//! that is opened to be read through [`FewOpen`] is opened when it is read, and closed when it was
//! not read for longest and another one needs its place. Whoever removes such a file sees to it
//! that nobody reads it any more. All else goes to the storage behind.
//!
//! Threads: any. The lock of a shard is held to look a file up, not across I/O; a file that is
//! closed meanwhile stays open for those who read it.

#![forbid(unsafe_code)]

use super::{ReadAt, Storage, StorageFile};
use crate::error::{Error, Result};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

const SHARDS: usize = 8;

/// The files that are open, of any number of storages.
pub(crate) struct OpenFiles {
    shards: [Mutex<HashMap<u64, Open>>; SHARDS],
    /// Files that a shard keeps open at most.
    most: usize,
    files: AtomicU64,
    reads: AtomicU64,
}

struct Open {
    file: Arc<dyn StorageFile>,
    /// When it was read last, in reads.
    read: u64,
}

impl OpenFiles {
    /// Keeps about `most` files open, and one a shard at least.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            shards: Default::default(),
            most: (most / SHARDS).max(1),
            files: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        }
    }

    fn shard(&self, file: u64) -> Result<&Mutex<HashMap<u64, Open>>> {
        let shard = self.shards.get(file as usize % SHARDS);
        shard.ok_or(Error::Closed)
    }

    fn find(&self, number: u64) -> Result<Option<Arc<dyn StorageFile>>> {
        let now = self.reads.fetch_add(1, Relaxed);
        let mut shard = self.shard(number)?.lock();
        Ok(shard.get_mut(&number).map(|open| {
            open.read = now;
            Arc::clone(&open.file)
        }))
    }

    /// Keeps `file` open instead of the one that was not read for longest.
    fn keep(&self, number: u64, file: &Arc<dyn StorageFile>) -> Result<()> {
        let read = self.reads.load(Relaxed);
        let mut shard = self.shard(number)?.lock();
        let mut closed = None;
        if shard.len() >= self.most {
            let oldest = shard.iter().min_by_key(|(_, open)| open.read);
            if let Some(oldest) = oldest.map(|(number, _)| *number) {
                closed = shard.remove(&oldest);
            }
        }
        let file = Arc::clone(file);
        shard.insert(number, Open { file, read });
        drop(shard);
        drop(closed);
        Ok(())
    }

    fn forget(&self, number: u64) {
        if let Ok(shard) = self.shard(number) {
            let closed = shard.lock().remove(&number);
            drop(closed);
        }
    }

    #[cfg(test)]
    fn open_now(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }
}

/// See the module header.
pub(crate) struct FewOpen {
    files: Arc<dyn Storage>,
    open: Arc<OpenFiles>,
}

impl FewOpen {
    pub(crate) fn new(files: Arc<dyn Storage>, open: Arc<OpenFiles>) -> Self {
        Self { files, open }
    }
}

impl Storage for FewOpen {
    fn create(&self, path: &Path) -> Result<Arc<dyn StorageFile>> {
        self.files.create(path)
    }

    fn open(&self, path: &Path, write: bool) -> Result<Arc<dyn StorageFile>> {
        let file = self.files.open(path, write)?;
        if write {
            return Ok(file);
        }
        let number = self.open.files.fetch_add(1, Relaxed);
        self.open.keep(number, &file)?;
        Ok(Arc::new(SeldomOpen {
            number,
            path: path.to_path_buf(),
            files: Arc::clone(&self.files),
            open: Arc::clone(&self.open),
        }))
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

/// A file that is open when it is needed.
struct SeldomOpen {
    number: u64,
    path: PathBuf,
    files: Arc<dyn Storage>,
    open: Arc<OpenFiles>,
}

impl SeldomOpen {
    fn file(&self) -> Result<Arc<dyn StorageFile>> {
        if let Some(file) = self.open.find(self.number)? {
            return Ok(file);
        }
        let file = self.files.open(&self.path, false)?;
        self.open.keep(self.number, &file)?;
        Ok(file)
    }
}

impl Drop for SeldomOpen {
    fn drop(&mut self) {
        self.open.forget(self.number);
    }
}

impl StorageFile for SeldomOpen {
    fn len(&self) -> Result<u64> {
        self.file()?.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.file()?.read_at(buf, offset)
    }

    fn read_all(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        self.file()?.read_all(reads)
    }

    fn write_at(&self, _: &[u8], _: u64) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn sync(&self) -> Result<()> {
        self.file()?.sync()
    }

    fn set_len(&self, _: u64) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn allocate(&self, _: u64, _: u64) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn now_open(&self) -> Result<Option<Arc<dyn StorageFile>>> {
        self.file().map(Some)
    }

    fn path(&self) -> &Path {
        &self.path
    }

    /// Files of this kind are not renamed.
    fn set_path(&self, _: &Path) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Buffered, read_together};

    #[test]
    fn more_files_than_may_be_open_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let open = Arc::new(OpenFiles::new(2 * SHARDS));
        let storage = FewOpen::new(Arc::new(Buffered), Arc::clone(&open));
        let files: Vec<_> = (0..100u8)
            .map(|n| {
                let path = dir.path().join(n.to_string());
                std::fs::write(&path, [n; 10]).unwrap();
                storage.open(&path, false).unwrap()
            })
            .collect();
        for round in 0..3 {
            for (n, file) in files.iter().enumerate() {
                let mut bytes = [0; 4];
                assert_eq!(file.read_at(&mut bytes, round).unwrap(), 4);
                assert_eq!(bytes, [n as u8; 4]);
                assert!(open.open_now() <= 2 * SHARDS);
            }
        }
        let mut buffers = vec![[0u8; 3]; files.len()];
        let read = |to| ReadAt {
            offset: 2,
            to,
            got: 0,
        };
        let mut reads: Vec<_> = buffers.iter_mut().map(|b| read(&mut b[..])).collect();
        let of: Vec<&dyn StorageFile> = files.iter().map(|file| &**file).collect();
        read_together(&mut reads, &of).unwrap();
        assert!(reads.iter().all(|read| read.got == 3));
        for (n, bytes) in buffers.iter().enumerate() {
            assert_eq!(*bytes, [n as u8; 3]);
        }
        assert!(open.open_now() <= 2 * SHARDS);
        drop(of);
        drop(files);
        assert_eq!(open.open_now(), 0);
    }
}
