//! Files past the operating system's page cache, where the file system does that.
//!
//! For a file that has a cache of its own: a second copy of its pages in the system would be memory
//! that no budget counts. Buffers, offsets and lengths must be multiples of 4096
//! (`mem/aligned.rs`). A file system that refuses direct I/O gets buffered I/O. Files are created,
//! copied and listed as buffered ones are.
//! Threads: any.

#![forbid(unsafe_code)]

use super::{Buffered, Storage, StorageFile, buffered};
use crate::{error::Result, mem::aligned::AlignedBuffer};
use rustix::fs::OFlags;
use std::{
    fs::OpenOptions,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// What a trial read takes.
const TRIAL_BYTES: usize = 4096;

/// The file system of the operating system, without its page cache.
#[derive(Debug, Default)]
pub(crate) struct Direct;

impl Storage for Direct {
    fn create(&self, path: &Path) -> Result<Arc<dyn StorageFile>> {
        Buffered.create(path)
    }

    fn open(&self, path: &Path, write: bool) -> Result<Arc<dyn StorageFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(write);
        // The flag is a bit of a C int.
        options.custom_flags(OFlags::DIRECT.bits().cast_signed());
        let direct = buffered::open_with(&options, "open", path).and_then(|file| {
            // Some refuse only when it comes to reading.
            let mut trial = AlignedBuffer::new(TRIAL_BYTES);
            file.read_at(&mut trial, 0).map(|_| file)
        });
        match direct {
            // Says nothing about the file system, which may do direct I/O.
            Err(e) if e.is_transient() => Err(e),
            // Whatever is wrong with the file itself is wrong again, and told, without the flag.
            Err(_) => Buffered.open(path, write),
            opened => opened,
        }
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        Buffered.list(dir)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Buffered.exists(path)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        Buffered.create_dir_all(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        Buffered.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        Buffered.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        Buffered.sync_dir(dir)
    }
}
