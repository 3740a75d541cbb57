//! Files through the operating system's page cache.
//!
//! Reads and writes are positioned; `sync` is `fdatasync`, which also makes durable what is needed
//! to read the data back (the length). Threads: any. Errors carry the path and the operation.

#![forbid(unsafe_code)]

use super::{ReadAt, Storage, StorageFile, overlap};
use crate::error::{Error, Result};
use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

/// The file system of the operating system.
#[derive(Debug, Default)]
pub(crate) struct Buffered;

struct BufferedFile {
    file: File,
    opened_as: PathBuf,
    renamed: OnceLock<PathBuf>,
}

impl Storage for Buffered {
    fn create(&self, path: &Path) -> Result<Arc<dyn StorageFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        open_with(&options, "create", path)
    }

    fn open(&self, path: &Path, write: bool) -> Result<Arc<dyn StorageFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(write);
        open_with(&options, "open", path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir).map_err(|e| Error::io("list", dir, e))? {
            let entry = entry.map_err(|e| Error::io("list", dir, e))?;
            if entry
                .file_type()
                .map_err(|e| Error::io("list", dir, e))?
                .is_file()
            {
                names.push(PathBuf::from(entry.file_name()));
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        path.try_exists().map_err(|e| Error::io("look up", path, e))
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        fs::create_dir_all(dir).map_err(|e| Error::io("create directory", dir, e))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to).map_err(|e| Error::io("rename", from, e))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|e| Error::io("remove", path, e))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        // Two steps, told apart: the first may be repeated, a failed sync may not.
        let opened = File::open(dir).map_err(|e| Error::io("open directory", dir, e))?;
        opened
            .sync_all()
            .map_err(|e| Error::io("sync directory", dir, e))
    }
}

pub(super) fn open_with(
    options: &OpenOptions,
    op: &'static str,
    path: &Path,
) -> Result<Arc<dyn StorageFile>> {
    let file = options.open(path).map_err(|e| Error::io(op, path, e))?;
    Ok(Arc::new(BufferedFile {
        file,
        opened_as: path.to_path_buf(),
        renamed: OnceLock::new(),
    }))
}

impl StorageFile for BufferedFile {
    fn len(&self) -> Result<u64> {
        let meta = self
            .file
            .metadata()
            .map_err(|e| Error::io("read length of", self.path(), e))?;
        Ok(meta.len())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|r| !r.is_empty()) {
            match self.file.read_at(rest, offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io("read", self.path(), e)),
            }
        }
        Ok(done)
    }

    fn read_all(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        overlap(reads, |_| &self.file, |_, _| {});
        for read in reads.iter_mut().filter(|read| read.got < read.to.len()) {
            read.got = self.read_at(read.to, read.offset)?;
        }
        Ok(())
    }

    fn system_file(&self) -> Option<&File> {
        Some(&self.file)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.file
            .write_all_at(buf, offset)
            .map_err(|e| Error::io("write", self.path(), e))
    }

    fn sync(&self) -> Result<()> {
        self.file
            .sync_data()
            .map_err(|e| Error::io("sync", self.path(), e))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file
            .set_len(len)
            .map_err(|e| Error::io("set length of", self.path(), e))
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        use rustix::{fs, io::Errno};
        match fs::fallocate(&self.file, fs::FallocateFlags::empty(), offset, len) {
            // Not every file system can; then the file grows as it is written.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(e) => Err(Error::io("allocate", self.path(), e.into())),
        }
    }

    fn path(&self) -> &Path {
        self.renamed.get().unwrap_or(&self.opened_as)
    }

    fn set_path(&self, path: &Path) {
        // A second rename would keep the first name in errors; no caller renames twice.
        let _ = self.renamed.set(path.to_path_buf());
    }
}
