//! A simulated file system in memory that forgets, reorders, tears and fails on demand.
//!
//! Each file keeps what its last sync made durable and the list of changes since; each directory
//! likewise. [`Sim::crash`] builds the disk as a power failure may leave it: every unsynced change
//! independently survives, is lost, or (a write) survives in part, in units of 512 bytes or of one byte; a
//! torn unit may hold garbage. [`Sim::fail_at`] makes the n-th I/O fail. The same seed gives the same crash.
//!
//! A failed sync leaves its changes readable but never durable, and a later sync of the same file succeeds
//! without them: what Linux does, and why a log must not retry.
//! Renames are atomic. Threads: any; one lock around everything.
//! Not here: real devices (`buffered.rs`).

#![forbid(unsafe_code)]

use super::{Storage, StorageFile};
use crate::error::{Error, Result};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

const SECTOR: usize = 512;
/// What a device of this file system holds at most, so that a wrong offset does not eat the machine.
const MAX_FILE_BYTES: u64 = 1 << 32;

/// How an I/O fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// With EIO, without effect; a sync fails as described in the module header.
    Eio,
    /// With ENOSPC, without effect; hits only what needs space: writes, allocations, creations.
    Full,
    /// A write stores a part, then fails with EIO. Other I/Os fail as with `Eio`.
    ShortWrite,
    /// A write stores a part, then fails with ENOSPC. Other I/Os as with `Full`.
    ShortFull,
    /// Hits only syncs, of files and of directories.
    FailedSync,
    /// With EMFILE, without effect; hits only what opens something: files, and directories to list or sync them.
    NoDescriptors,
    /// The power is gone: this and every later I/O fails without effect.
    PowerLoss,
}

/// A fault and when it strikes.
#[derive(Debug, Clone, Copy)]
struct Plan {
    at: u64,
    fault: Fault,
    forever: bool,
}

type FileId = usize;

#[derive(Debug, Clone)]
enum Change {
    Write {
        offset: u64,
        bytes: Vec<u8>,
    },
    SetLen(u64),
    /// Grows the file with zeros if it is shorter.
    Grow(u64),
}

#[derive(Debug, Default, Clone)]
struct FileState {
    durable: Vec<u8>,
    /// Since the last sync; `bool`: a sync of it failed, so no later one makes it durable.
    changes: Vec<(Change, bool)>,
    current: Vec<u8>,
}

#[derive(Debug, Clone)]
enum DirChange {
    Link(PathBuf, FileId),
    Rename(PathBuf, PathBuf),
    Unlink(PathBuf),
}

impl DirChange {
    fn dir(&self) -> Option<&Path> {
        match self {
            Self::Link(path, _) | Self::Rename(path, _) | Self::Unlink(path) => path.parent(),
        }
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, FileId>) {
        match self {
            Self::Link(path, id) => {
                names.insert(path.clone(), *id);
            }
            Self::Rename(from, to) => {
                if let Some(id) = names.remove(from) {
                    names.insert(to.clone(), id);
                }
            }
            Self::Unlink(path) => {
                names.remove(path);
            }
        }
    }
}

#[derive(Debug, Default)]
struct Disk {
    files: Vec<FileState>,
    durable_names: BTreeMap<PathBuf, FileId>,
    names: BTreeMap<PathBuf, FileId>,
    dir_changes: Vec<DirChange>,
    ios: u64,
    plan: Option<Plan>,
    /// Faults that struck.
    struck: u64,
}

/// See the module header. Clones share the disk.
#[derive(Debug, Default, Clone)]
pub(crate) struct Sim(Arc<Mutex<Disk>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Io {
    Read,
    Write,
    Sync,
    Name,
    Create,
    /// Of a file that exists, or of a directory.
    Open,
}

/// What the plan says about one I/O.
enum Verdict {
    Go,
    /// Store this share of the write (in 256ths), then fail.
    Part(u8, io::ErrorKind),
    Fail(io::ErrorKind),
    NoDescriptor,
}

impl Disk {
    fn verdict(&mut self, io: Io) -> Verdict {
        self.ios += 1;
        let Some(plan) = self.plan else {
            return Verdict::Go;
        };
        if self.ios < plan.at || (self.struck > 0 && !plan.forever) {
            return Verdict::Go;
        }
        let needs_space = matches!(io, Io::Write | Io::Name | Io::Create);
        let verdict = match (plan.fault, io) {
            (Fault::Full | Fault::ShortFull, _) if !needs_space => Verdict::Go,
            (Fault::FailedSync, io) if io != Io::Sync => Verdict::Go,
            (Fault::NoDescriptors, Io::Open | Io::Create) => Verdict::NoDescriptor,
            (Fault::NoDescriptors, _) => Verdict::Go,
            (Fault::ShortWrite, Io::Write) => {
                Verdict::Part((self.ios * 37) as u8, io::ErrorKind::Other)
            }
            (Fault::ShortFull, Io::Write) => {
                Verdict::Part((self.ios * 37) as u8, io::ErrorKind::StorageFull)
            }
            (Fault::Full | Fault::ShortFull, _) => Verdict::Fail(io::ErrorKind::StorageFull),
            _ => Verdict::Fail(io::ErrorKind::Other),
        };
        if !matches!(verdict, Verdict::Go) {
            self.struck += 1;
        }
        verdict
    }

    /// For I/Os that happen or do not.
    fn all_or_nothing(&mut self, io: Io, op: &'static str, path: &Path) -> Result<()> {
        match self.verdict(io) {
            Verdict::Go => Ok(()),
            Verdict::Part(_, kind) | Verdict::Fail(kind) => {
                Err(Error::io(op, path, injected(kind)))
            }
            Verdict::NoDescriptor => Err(Error::io(op, path, no_descriptor())),
        }
    }

    fn change_name(&mut self, change: DirChange) {
        change.apply(&mut self.names);
        self.dir_changes.push(change);
    }

    fn change_file(&mut self, id: FileId, change: Change) {
        if let Some(file) = self.files.get_mut(id) {
            apply(&mut file.current, &change);
            file.changes.push((change, false));
        }
    }
}

fn no_descriptor() -> io::Error {
    rustix::io::Errno::MFILE.into()
}

fn injected(kind: io::ErrorKind) -> io::Error {
    io::Error::new(kind, "injected fault")
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { offset, bytes: new } => {
            let (start, end) = (*offset as usize, *offset as usize + new.len());
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[start..end].copy_from_slice(new);
        }
        Change::SetLen(len) => bytes.resize(*len as usize, 0),
        Change::Grow(len) => {
            if bytes.len() < *len as usize {
                bytes.resize(*len as usize, 0);
            }
        }
    }
}

impl Sim {
    /// I/Os so far. Everything counts but `exists`, `len` and `path`.
    pub(crate) fn ios(&self) -> u64 {
        self.0.lock().ios
    }

    /// The first I/O from number `at` (counted from 1, since creation) on that `fault` can hit fails; with `forever`, so does every
    /// later one. `PowerLoss` is always forever.
    pub(crate) fn fail_at(&self, at: u64, fault: Fault, forever: bool) {
        let mut disk = self.0.lock();
        disk.struck = 0;
        disk.plan = Some(Plan {
            at,
            fault,
            forever: forever || fault == Fault::PowerLoss,
        });
    }

    /// No more faults.
    pub(crate) fn heal(&self) {
        self.0.lock().plan = None;
    }

    /// How many I/Os failed by the present plan.
    pub(crate) fn faults(&self) -> u64 {
        self.0.lock().struck
    }

    /// Every I/O waits until the guard is dropped.
    pub(crate) fn pause(&self) -> impl Drop + '_ {
        self.0.lock()
    }

    /// The disk as a power failure now could leave it.
    pub(crate) fn crash(&self, seed: u64) -> Self {
        let disk = self.0.lock();
        let mut random = Random(seed);
        // Whole crashes lean to one side, so that "nothing survived" and "all but one" are common.
        let keep = [0, 32, 128, 224, 256][random.below(5)];
        let mut names = disk.durable_names.clone();
        for change in &disk.dir_changes {
            if random.below(256) < keep {
                change.apply(&mut names);
            }
        }
        let files = disk
            .files
            .iter()
            .map(|f| f.after_crash(&mut random, keep))
            .collect();
        Self(Arc::new(Mutex::new(Disk {
            files,
            durable_names: names.clone(),
            names,
            ..Disk::default()
        })))
    }

    /// The disk with all of it durable, as another process would see it now.
    pub(crate) fn snapshot(&self) -> Self {
        let disk = self.0.lock();
        let files = disk.files.iter().map(|f| FileState {
            durable: f.current.clone(),
            changes: Vec::new(),
            current: f.current.clone(),
        });
        Self(Arc::new(Mutex::new(Disk {
            files: files.collect(),
            durable_names: disk.names.clone(),
            names: disk.names.clone(),
            ..Disk::default()
        })))
    }

    /// Every file with its content.
    pub(crate) fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let disk = self.0.lock();
        let content = |id: &FileId| {
            disk.files
                .get(*id)
                .map_or(Vec::new(), |f| f.current.clone())
        };
        disk.names
            .iter()
            .map(|(path, id)| (path.clone(), content(id)))
            .collect()
    }

    /// Replaces the content of a file behind the back of whoever uses it, or makes the file.
    pub(crate) fn tamper(&self, path: &Path, content: Vec<u8>) {
        let mut disk = self.0.lock();
        let id = disk.files.len();
        disk.files.push(FileState {
            durable: content.clone(),
            changes: Vec::new(),
            current: content,
        });
        disk.names.insert(path.to_path_buf(), id);
        disk.durable_names.insert(path.to_path_buf(), id);
    }

    fn lookup(disk: &Disk, op: &'static str, path: &Path) -> Result<FileId> {
        let id = disk.names.get(path).copied();
        id.ok_or_else(|| Error::io(op, path, io::ErrorKind::NotFound.into()))
    }

    fn handle(&self, id: FileId, path: &Path) -> Arc<dyn StorageFile> {
        Arc::new(SimFile {
            disk: self.0.clone(),
            id,
            opened_as: path.to_path_buf(),
            renamed: OnceLock::new(),
        })
    }
}

impl FileState {
    fn after_crash(&self, random: &mut Random, keep: usize) -> Self {
        let mut bytes = self.durable.clone();
        for (change, _) in &self.changes {
            let survives = random.below(256) < keep;
            match change {
                Change::Write { offset, bytes: new } if survives && random.below(3) == 0 => {
                    tear(&mut bytes, *offset, new, random);
                }
                change if survives => apply(&mut bytes, change),
                // The length may be durable although the bytes are not.
                Change::Write { offset, bytes: new } if random.below(4) == 0 => {
                    apply(&mut bytes, &Change::Grow(offset + new.len() as u64));
                }
                _ => {}
            }
        }
        Self {
            durable: bytes.clone(),
            changes: Vec::new(),
            current: bytes,
        }
    }
}

/// Applies some units of a write, and garbage for some others.
fn tear(bytes: &mut Vec<u8>, offset: u64, new: &[u8], random: &mut Random) {
    let unit = if random.below(2) == 0 { SECTOR } else { 1 };
    // In order up to a point, or each unit by itself.
    let prefix = (random.below(2) == 0).then(|| random.below(new.len() + 1));
    let mut at = 0;
    while at < new.len() {
        // Units are those of the device, not of the write.
        let end = ((offset as usize + at) / unit + 1) * unit - offset as usize;
        let end = end.min(new.len());
        let survives = prefix.map_or_else(|| random.below(2) == 0, |p| end <= p);
        if survives {
            apply(
                bytes,
                &Change::Write {
                    offset: offset + at as u64,
                    bytes: new[at..end].to_vec(),
                },
            );
        } else if random.below(16) == 0 {
            let garbage = (at..end).map(|_| random.next() as u8).collect();
            apply(
                bytes,
                &Change::Write {
                    offset: offset + at as u64,
                    bytes: garbage,
                },
            );
        }
        at = end;
    }
}

/// SplitMix64: small, seeded, good enough to scatter crashes.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

impl Storage for Sim {
    fn create(&self, path: &Path) -> Result<Arc<dyn StorageFile>> {
        let mut disk = self.0.lock();
        disk.all_or_nothing(Io::Create, "create", path)?;
        if disk.names.contains_key(path) {
            return Err(Error::io(
                "create",
                path,
                io::ErrorKind::AlreadyExists.into(),
            ));
        }
        let id = disk.files.len();
        disk.files.push(FileState::default());
        disk.change_name(DirChange::Link(path.to_path_buf(), id));
        Ok(self.handle(id, path))
    }

    fn open(&self, path: &Path, _write: bool) -> Result<Arc<dyn StorageFile>> {
        let mut disk = self.0.lock();
        disk.all_or_nothing(Io::Open, "open", path)?;
        let id = Self::lookup(&disk, "open", path)?;
        Ok(self.handle(id, path))
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        let mut disk = self.0.lock();
        disk.all_or_nothing(Io::Open, "list", dir)?;
        let inside = disk.names.keys().filter(|p| p.parent() == Some(dir));
        Ok(inside
            .filter_map(|p| p.file_name())
            .map(PathBuf::from)
            .collect())
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Ok(self.0.lock().names.contains_key(path))
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        // Directories are implied by their files.
        self.0
            .lock()
            .all_or_nothing(Io::Name, "create directory", dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut disk = self.0.lock();
        disk.all_or_nothing(Io::Name, "rename", from)?;
        Self::lookup(&disk, "rename", from)?;
        disk.change_name(DirChange::Rename(from.to_path_buf(), to.to_path_buf()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let mut disk = self.0.lock();
        disk.all_or_nothing(Io::Read, "remove", path)?;
        Self::lookup(&disk, "remove", path)?;
        disk.change_name(DirChange::Unlink(path.to_path_buf()));
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let mut disk = self.0.lock();
        disk.all_or_nothing(Io::Open, "open directory", dir)?;
        disk.all_or_nothing(Io::Sync, "sync directory", dir)?;
        let (done, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut disk.dir_changes)
            .into_iter()
            .partition(|c| c.dir() == Some(dir));
        for change in done {
            change.apply(&mut disk.durable_names);
        }
        disk.dir_changes = rest;
        Ok(())
    }
}

struct SimFile {
    disk: Arc<Mutex<Disk>>,
    id: FileId,
    opened_as: PathBuf,
    renamed: OnceLock<PathBuf>,
}

impl SimFile {
    fn change(&self, op: &'static str, change: Change) -> Result<()> {
        let mut disk = self.disk.lock();
        disk.all_or_nothing(Io::Write, op, self.path())?;
        disk.change_file(self.id, change);
        Ok(())
    }
}

impl StorageFile for SimFile {
    fn len(&self) -> Result<u64> {
        Ok(self
            .disk
            .lock()
            .files
            .get(self.id)
            .map_or(0, |f| f.current.len() as u64))
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let mut disk = self.disk.lock();
        disk.all_or_nothing(Io::Read, "read", self.path())?;
        let current = disk.files.get(self.id).map_or(&[][..], |f| &f.current);
        let from = current.get(offset as usize..).unwrap_or_default();
        let n = from.len().min(buf.len());
        buf[..n].copy_from_slice(&from[..n]);
        Ok(n)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        let mut disk = self.disk.lock();
        if offset + buf.len() as u64 > MAX_FILE_BYTES {
            return Err(Error::io(
                "write",
                self.path(),
                io::ErrorKind::FileTooLarge.into(),
            ));
        }
        let (stored, failed) = match disk.verdict(Io::Write) {
            Verdict::Go => (buf.len(), None),
            Verdict::Part(share, kind) => (buf.len() * share as usize / 256, Some(kind)),
            Verdict::Fail(kind) => (0, Some(kind)),
            Verdict::NoDescriptor => (0, Some(io::ErrorKind::Other)),
        };
        if stored > 0 {
            disk.change_file(
                self.id,
                Change::Write {
                    offset,
                    bytes: buf[..stored].to_vec(),
                },
            );
        }
        failed.map_or(Ok(()), |kind| {
            Err(Error::io("write", self.path(), injected(kind)))
        })
    }

    fn sync(&self) -> Result<()> {
        let mut disk = self.disk.lock();
        let power_loss = disk.plan.is_some_and(|p| p.fault == Fault::PowerLoss);
        let done = disk.all_or_nothing(Io::Sync, "sync", self.path());
        let Some(file) = disk.files.get_mut(self.id) else {
            return done;
        };
        if done.is_err() && !power_loss {
            for (_, lost) in &mut file.changes {
                *lost = true;
            }
        } else if done.is_ok() {
            for (change, lost) in std::mem::take(&mut file.changes) {
                if lost {
                    file.changes.push((change, true));
                } else {
                    apply(&mut file.durable, &change);
                }
            }
        }
        done
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.change("set length of", Change::SetLen(len.min(MAX_FILE_BYTES)))
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.change("allocate", Change::Grow((offset + len).min(MAX_FILE_BYTES)))
    }

    fn path(&self) -> &Path {
        self.renamed.get().unwrap_or(&self.opened_as)
    }

    fn set_path(&self, path: &Path) {
        let _ = self.renamed.set(path.to_path_buf());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(sim: &Sim, name: &str) -> Arc<dyn StorageFile> {
        let path = Path::new("/d").join(name);
        sim.create(&path).unwrap()
    }

    #[test]
    fn synced_survives_and_unsynced_may_not() {
        let (mut kept, mut lost, mut torn, mut nameless) = (0, 0, 0, 0);
        for seed in 0..400 {
            let sim = Sim::default();
            let a = file(&sim, "a");
            sim.sync_dir(Path::new("/d")).unwrap();
            a.write_at(&[1; 2000], 0).unwrap();
            a.sync().unwrap();
            a.write_at(&[2; 2000], 2000).unwrap();
            file(&sim, "b").sync().unwrap();
            let after = sim.crash(seed).contents();
            let bytes = &after[Path::new("/d/a")];
            assert_eq!(bytes[..2000], [1; 2000]);
            match &bytes[2000..] {
                rest if rest == [2; 2000] => kept += 1,
                [] => lost += 1,
                _ => torn += 1,
            }
            nameless += usize::from(!after.contains_key(Path::new("/d/b")));
        }
        assert!(
            kept > 20 && lost > 20 && torn > 20 && nameless > 20,
            "{kept} {lost} {torn} {nameless}"
        );
    }

    #[test]
    fn a_rename_is_atomic() {
        for seed in 0..200 {
            let sim = Sim::default();
            file(&sim, "new").sync().unwrap();
            sim.sync_dir(Path::new("/d")).unwrap();
            sim.rename(Path::new("/d/new"), Path::new("/d/name"))
                .unwrap();
            assert_eq!(sim.crash(seed).contents().len(), 1);
        }
    }

    #[test]
    fn after_a_failed_sync_the_next_one_lies() {
        let sim = Sim::default();
        let a = file(&sim, "a");
        sim.sync_dir(Path::new("/d")).unwrap();
        a.write_at(b"lost", 0).unwrap();
        sim.fail_at(0, Fault::FailedSync, false);
        a.sync().unwrap_err();
        a.sync().unwrap();
        assert!((0..100).any(|seed| sim.crash(seed).contents()[Path::new("/d/a")].is_empty()));
    }

    #[test]
    fn faults_strike_when_told() {
        let sim = Sim::default();
        let a = file(&sim, "a");
        sim.fail_at(sim.ios() + 2, Fault::ShortFull, false);
        a.write_at(&[1; 1000], 0).unwrap();
        let error = a.write_at(&[2; 1000], 1000).unwrap_err();
        assert!(matches!(error, Error::OutOfSpace { .. }));
        assert!((1000..2000).contains(&a.len().unwrap()));
        a.write_at(&[2; 1000], 1000).unwrap();
        assert_eq!(sim.faults(), 1);
        sim.fail_at(0, Fault::PowerLoss, false);
        a.write_at(&[2; 1000], 1000).unwrap_err();
        a.sync().unwrap_err();
    }
}
