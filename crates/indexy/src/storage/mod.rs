//! The Storage seam: files of the log and the manifest, on a real file system or simulated.
//!
//! The simulated one (`sim/`) loses, reorders and tears what was not synced and fails on
//! demand, so that recovery can be tested at every I/O; `modelled/` is as slow as a device of your
//! choice; files of `mapped/` can be looked at where they lie. A `StorageFile` has no cursor.
//!
//! Files are opened once and held: what needs a descriptor or memory that the system does not have
//! just then fails with an error that [`Error::is_transient`](crate::error::Error::is_transient)
//! knows, and may be repeated.
//!
//! Contract: bytes written are durable after `StorageFile::sync`; a file's creation, rename
//! or removal is durable after `Storage::sync_dir` of its directory. Nothing else is
//! promised: unsynced writes may reach the disk in any order, in part, or never.
//! Threads: every method may be called from any thread.

#![deny(unsafe_code)]

mod buffered;
mod direct;
mod mapped;
mod medium;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod modelled;
mod open_files;
mod ring;
#[cfg(any(test, feature = "testing"))]
#[cfg_attr(
    not(test),
    allow(dead_code, reason = "the fuzzer's targets need a part of it")
)]
pub(crate) mod sim;
mod together;

pub(crate) use buffered::Buffered;
pub(crate) use direct::Direct;
pub(crate) use mapped::Mapped;
pub(crate) use medium::Medium;
pub(crate) use open_files::{FewOpen, OpenFiles};
pub(crate) use ring::overlap;
pub(crate) use together::read_together;

use crate::error::Result;
use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A directory tree to keep files in.
pub(crate) trait Storage: Send + Sync {
    /// Creates `path` (fails if it exists) for reading and writing.
    fn create(&self, path: &Path) -> Result<Arc<dyn StorageFile>>;
    /// Opens an existing file; `write` asks for write access.
    fn open(&self, path: &Path, write: bool) -> Result<Arc<dyn StorageFile>>;
    /// Names (not paths) of the files in `dir`, sorted.
    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>>;
    fn exists(&self, path: &Path) -> Result<bool>;
    /// Creates `dir` and its parents; no error if it is there.
    fn create_dir_all(&self, dir: &Path) -> Result<()>;
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Renames an open file. It stays open, and its errors name the new path.
    fn rename_open(&self, file: &dyn StorageFile, to: &Path) -> Result<()> {
        self.rename(file.path(), to)?;
        file.set_path(to);
        Ok(())
    }
    fn remove(&self, path: &Path) -> Result<()>;
    /// Makes creations, renames and removals in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> Result<()>;
}

/// A read that is wanted with others.
pub(crate) struct ReadAt<'b> {
    pub(crate) offset: u64,
    pub(crate) to: &'b mut [u8],
    /// Bytes read: less than the length of `to` only at the end of the file.
    pub(crate) got: usize,
}

/// One file of a [`Storage`].
pub(crate) trait StorageFile: Send + Sync {
    fn len(&self) -> Result<u64>;
    /// Reads up to `buf.len()` bytes at `offset`; less only at the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize>;
    /// Reads all of `reads`, in any order; at once where the system can.
    fn read_all(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        for read in reads {
            read.got = self.read_at(read.to, read.offset)?;
        }
        Ok(())
    }
    /// The open file of the operating system, if it is one: reads of several can overlap.
    fn system_file(&self) -> Option<&File> {
        None
    }
    /// The file behind, where that is opened and closed as it is needed: it stays open while this
    /// is held.
    fn now_open(&self) -> Result<Option<Arc<dyn StorageFile>>> {
        Ok(None)
    }
    /// The file itself, if it lies on a modelled device: reads of several are asked for at once.
    #[cfg(any(test, feature = "testing"))]
    fn modelled(&self) -> Option<&modelled::ModelledFile> {
        None
    }
    /// Whether it may have [views](Self::view): false from when the system refused to map it.
    fn is_mapped(&self) -> bool {
        false
    }
    /// The bytes `[offset, offset + len)` where they lie, if the file is one that can be looked at
    /// and has them. Nobody writes there while the view is held. What is found in it counts only if
    /// [`views_hold`](Self::views_hold) says so afterwards.
    fn view(&self, _offset: u64, _len: usize) -> Result<Option<&[u8]>> {
        Ok(None)
    }
    /// Whether all views so far have shown what the file has.
    fn views_hold(&self) -> bool {
        true
    }
    /// Takes the time of a modelled device for `bytes` that were looked at in a view at `offset`.
    fn looked_at(&self, _offset: u64, _bytes: usize) {}
    /// Writes all of `buf` at `offset`.
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()>;
    /// Makes everything written durable (fdatasync).
    fn sync(&self) -> Result<()>;
    fn set_len(&self, len: u64) -> Result<()>;
    /// Asks for `[offset, offset + len)` to be allocated and readable as zeros where nothing was
    /// written; the file grows to `offset + len` if it is shorter. Best effort: does nothing where
    /// the file system cannot.
    fn allocate(&self, offset: u64, len: u64) -> Result<()>;
    fn path(&self) -> &Path;
    /// The file was renamed to `path`, for the first time. Called by [`Storage::rename_open`].
    fn set_path(&self, path: &Path);
}
