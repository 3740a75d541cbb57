//! A device that is as slow as another one: any storage, with the times of a [`DeviceModel`].
//!
//! Source: *Larger-than-Memory Data Management on Modern Storage Hardware* (Ma et al.), section 2.
//! The bytes are those of the storage behind, tmpfs best of all; what it takes itself is hidden
//! while it is faster than the model. Reads that are wanted together, of one file or of several,
//! are asked for at one moment, so that they overlap as far as the device has channels
//! (`queue.rs`). Threads sleep as long as the device works (`pace.rs`).
//!
//! As with direct I/O, each read and each write reaches the device, and the call returns when the
//! device has done it: there is no page cache before it. Names cost nothing; making a directory
//! durable costs a sync.
//!
//! Not here: faults and losses of power (`sim/`). Compiled for tests and with the feature
//! `testing`. Threads: any; the lock of the queue is held for some dozen instructions.

#![forbid(unsafe_code)]

mod by_hand;
mod model;
mod pace;
mod queue;
#[cfg(test)]
mod tests;

pub use model::DeviceModel;

use super::{ReadAt, Storage, StorageFile};
use crate::error::Result;
use model::Operation;
use parking_lot::Mutex;
use queue::{Asked, Queue};
use std::{
    panic::{RefUnwindSafe, UnwindSafe},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// A modelled device. Clones are the same device: what several databases do on it waits for one
/// another.
///
/// Only what goes through the files of this crate is slow: the log, the LSM tree, the paged tree,
/// spilled images, the hot set. RocksDB and a disk index of your own have files that nobody slows
/// down; copies and salvage do not wait either.
///
/// ```
/// use indexy::{Db, DeviceModel, IndexYKind, ModelledDevice, Options};
/// # fn main() -> indexy::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let device = ModelledDevice::new(DeviceModel::XPOINT, 1);
/// let options = Options::new(4 << 20)
///     .index_y(IndexYKind::BPlus { page_bytes: 4096 })
///     .modelled_device(device.clone());
/// let db = Db::open(dir.path(), options)?;
/// db.tree("t")?.insert("key", "value")?;
/// db.flush()?;
/// assert!(device.figures().writes > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ModelledDevice(Arc<Device>);

#[derive(Debug)]
struct Device {
    model: DeviceModel,
    queue: Mutex<Queue>,
    files: AtomicU64,
    reads: AtomicU64,
    writes: AtomicU64,
    syncs: AtomicU64,
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    busy: AtomicU64,
    /// It takes no time.
    hurried: AtomicBool,
}

/// What a modelled device has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceFigures {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Syncs, those of directories too.
    pub syncs: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time that its channels have worked, summed up.
    pub busy: Duration,
}

/// The same device, not one that is like it.
impl PartialEq for ModelledDevice {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ModelledDevice {}

// No panic leaves the queue half changed: what books a time calls nothing that may panic.
impl UnwindSafe for ModelledDevice {}
impl RefUnwindSafe for ModelledDevice {}

impl ModelledDevice {
    /// A device that does nothing yet. `seed` says how the lengths of writes vary: the n-th write
    /// takes the same on each device of the same model and seed.
    ///
    /// ```
    /// use indexy::{DeviceModel, ModelledDevice};
    /// let device = ModelledDevice::new(DeviceModel::SMR, 7);
    /// ```
    #[must_use]
    pub fn new(model: DeviceModel, seed: u64) -> Self {
        Self(Arc::new(Device {
            model,
            queue: Mutex::new(Queue::new(model, seed)),
            files: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            busy: AtomicU64::new(0),
            hurried: AtomicBool::new(false),
        }))
    }

    /// What it costs.
    ///
    /// ```
    /// use indexy::{DeviceModel, ModelledDevice};
    /// assert_eq!(ModelledDevice::new(DeviceModel::SSD, 0).model(), DeviceModel::SSD);
    /// ```
    #[must_use]
    pub fn model(&self) -> DeviceModel {
        self.0.model
    }

    /// What it has done so far. Cost: some loads.
    ///
    /// ```
    /// use indexy::{DeviceModel, ModelledDevice};
    /// assert_eq!(ModelledDevice::new(DeviceModel::SSD, 0).figures().reads, 0);
    /// ```
    #[must_use]
    pub fn figures(&self) -> DeviceFigures {
        let of = |counter: &AtomicU64| counter.load(Relaxed);
        let device = &*self.0;
        DeviceFigures {
            reads: of(&device.reads),
            writes: of(&device.writes),
            syncs: of(&device.syncs),
            read_bytes: of(&device.read_bytes),
            written_bytes: of(&device.written_bytes),
            busy: Duration::from_nanos(of(&device.busy)),
        }
    }

    /// `storage`, as slow as this device.
    pub(crate) fn before(&self, storage: Arc<dyn Storage>) -> Modelled {
        let device = self.clone();
        Modelled { storage, device }
    }

    /// When it is done with what it is asked for at `begin`.
    fn book(&self, begin: u64, asked: Asked) -> u64 {
        let device = &*self.0;
        let bytes = asked.bytes as u64;
        match asked.operation {
            Operation::Read => {
                device.reads.fetch_add(1, Relaxed);
                device.read_bytes.fetch_add(bytes, Relaxed);
            }
            Operation::Write => {
                device.writes.fetch_add(1, Relaxed);
                device.written_bytes.fetch_add(bytes, Relaxed);
            }
            Operation::Sync => {
                device.syncs.fetch_add(1, Relaxed);
            }
        }
        if device.hurried.load(Relaxed) {
            return begin;
        }
        let (done, worked) = device.queue.lock().book(begin, asked);
        device.busy.fetch_add(worked, Relaxed);
        done
    }

    fn begin_sync(&self) -> Waiting {
        let begin = pace::begin();
        let asked = Asked {
            operation: Operation::Sync,
            file: 0,
            offset: 0,
            bytes: 0,
        };
        Waiting(self.book(begin, asked))
    }
}

/// The caller's operation is under way. Dropped, it waits until the device is done: the work on the
/// storage behind goes on meanwhile.
#[must_use]
pub(super) struct Waiting(u64);

impl Drop for Waiting {
    fn drop(&mut self) {
        pace::end(self.0);
    }
}

impl Waiting {
    /// Asks for all of `reads` at once, each of the file that has its place in `files`.
    pub(super) fn for_reads(reads: &[ReadAt<'_>], files: &[&dyn StorageFile]) -> Option<Self> {
        let mut done = None;
        let mut begin = None;
        for (read, file) in reads.iter().zip(files) {
            if let Some(file) = file.modelled() {
                let begin = *begin.get_or_insert_with(pace::begin);
                let at = file.book(begin, Operation::Read, read.offset, read.to.len());
                done = done.max(Some(at));
            }
        }
        done.map(Self)
    }
}

/// See the module header.
pub(crate) struct Modelled {
    storage: Arc<dyn Storage>,
    device: ModelledDevice,
}

impl Modelled {
    fn file(&self, file: Arc<dyn StorageFile>) -> Arc<dyn StorageFile> {
        Arc::new(ModelledFile {
            file,
            number: self.device.0.files.fetch_add(1, Relaxed),
            device: self.device.clone(),
        })
    }
}

impl Storage for Modelled {
    fn create(&self, path: &Path) -> Result<Arc<dyn StorageFile>> {
        self.storage.create(path).map(|file| self.file(file))
    }

    fn open(&self, path: &Path, write: bool) -> Result<Arc<dyn StorageFile>> {
        self.storage.open(path, write).map(|file| self.file(file))
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        self.storage.list(dir)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.storage.exists(path)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.storage.create_dir_all(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.storage.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.storage.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let _waiting = self.device.begin_sync();
        self.storage.sync_dir(dir)
    }
}

/// A file on a modelled device.
pub(crate) struct ModelledFile {
    file: Arc<dyn StorageFile>,
    number: u64,
    device: ModelledDevice,
}

impl ModelledFile {
    fn book(&self, begin: u64, operation: Operation, offset: u64, bytes: usize) -> u64 {
        let asked = Asked {
            operation,
            file: self.number,
            offset,
            bytes,
        };
        self.device.book(begin, asked)
    }
}

impl StorageFile for ModelledFile {
    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let _waiting = Waiting(self.book(pace::begin(), Operation::Read, offset, buf.len()));
        self.file.read_at(buf, offset)
    }

    fn read_all(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        let files = vec![self as &dyn StorageFile; reads.len()];
        let _waiting = Waiting::for_reads(reads, &files);
        self.file.read_all(reads)
    }

    fn modelled(&self) -> Option<&ModelledFile> {
        Some(self)
    }

    /// The file behind, which is as fast as it is: whoever reads it has asked the device.
    fn now_open(&self) -> Result<Option<Arc<dyn StorageFile>>> {
        let behind = self.file.now_open()?;
        Ok(Some(behind.unwrap_or_else(|| Arc::clone(&self.file))))
    }

    fn is_mapped(&self) -> bool {
        self.file.is_mapped()
    }

    fn view(&self, offset: u64, len: usize) -> Result<Option<&[u8]>> {
        self.file.view(offset, len)
    }

    fn views_hold(&self) -> bool {
        self.file.views_hold()
    }

    fn looked_at(&self, offset: u64, bytes: usize) {
        drop(Waiting(self.book(
            pace::begin(),
            Operation::Read,
            offset,
            bytes,
        )));
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        let _waiting = Waiting(self.book(pace::begin(), Operation::Write, offset, buf.len()));
        self.file.write_at(buf, offset)
    }

    fn sync(&self) -> Result<()> {
        let _waiting = self.device.begin_sync();
        self.file.sync()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len)
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
