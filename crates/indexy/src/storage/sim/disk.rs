//! The bytes and names of a simulated disk, what of them is durable, and what a crash leaves.

use crate::error::{Error, Result};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

const SECTOR: usize = 512;
/// What a device of this file system holds at most, so that a wrong offset does not eat the
/// machine.
pub(super) const MAX_FILE_BYTES: u64 = 1 << 32;

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
    /// With EMFILE, without effect; hits only what opens something: files, and directories to list
    /// or sync them.
    NoDescriptors,
    /// The power is gone: this and every later I/O fails without effect.
    PowerLoss,
}

/// A fault and when it strikes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) at: u64,
    pub(super) fault: Fault,
    pub(super) forever: bool,
}

pub(super) type FileId = usize;

#[derive(Debug, Clone)]
pub(super) enum Change {
    Write {
        offset: u64,
        bytes: Vec<u8>,
    },
    SetLen(u64),
    /// Grows the file with zeros if it is shorter.
    Grow(u64),
}

impl Change {
    /// What may still reach the disk of a change that a failed sync lost, now that `newer` is
    /// durable.
    pub(super) fn under(self, newer: &Self) -> Vec<Self> {
        let (from, to) = match newer {
            Self::Write { offset, bytes } => (*offset, offset + bytes.len() as u64),
            Self::SetLen(len) => (*len, u64::MAX),
            Self::Grow(len) => (*len, *len),
        };
        match self {
            Self::Write { offset, bytes } => {
                let place = |at: u64| (at.max(offset) - offset).min(bytes.len() as u64) as usize;
                let (before, behind) = (&bytes[..place(from)], &bytes[place(to)..]);
                [(offset, before), (offset.max(to), behind)]
                    .into_iter()
                    .filter(|(_, left)| !left.is_empty())
                    .map(|(offset, left)| Self::Write {
                        offset,
                        bytes: left.to_vec(),
                    })
                    .collect()
            }
            Self::SetLen(len) if to > len => Vec::new(),
            Self::Grow(_) if matches!(newer, Self::SetLen(_)) => Vec::new(),
            left => vec![left],
        }
    }
}

#[derive(Debug, Default, Clone)]
pub(super) struct FileState {
    pub(super) durable: Vec<u8>,
    /// Since the last sync; `bool`: a sync of it failed, so no later one makes it durable.
    pub(super) changes: Vec<(Change, bool)>,
    pub(super) current: Vec<u8>,
}

#[derive(Debug, Clone)]
pub(super) enum DirChange {
    Link(PathBuf, FileId),
    /// The file is the one that was renamed, whatever else has had the old name.
    Rename(PathBuf, PathBuf, FileId),
    Unlink(PathBuf),
}

impl DirChange {
    pub(super) fn dir(&self) -> Option<&Path> {
        match self {
            Self::Link(path, _) | Self::Rename(path, ..) | Self::Unlink(path) => path.parent(),
        }
    }

    pub(super) fn apply(&self, names: &mut BTreeMap<PathBuf, FileId>) {
        match self {
            Self::Link(path, id) => {
                names.insert(path.clone(), *id);
            }
            Self::Rename(from, to, id) => {
                if names.get(from) == Some(id) {
                    names.remove(from);
                }
                names.insert(to.clone(), *id);
            }
            Self::Unlink(path) => {
                names.remove(path);
            }
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Disk {
    pub(super) files: Vec<FileState>,
    pub(super) durable_names: BTreeMap<PathBuf, FileId>,
    pub(super) names: BTreeMap<PathBuf, FileId>,
    pub(super) dir_changes: Vec<DirChange>,
    pub(super) ios: u64,
    pub(super) plan: Option<Plan>,
    /// Faults that struck.
    pub(super) struck: u64,
    /// The I/O that the first of them hit.
    pub(super) hit: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Io {
    Read,
    Write,
    Sync,
    Name,
    Create,
    /// Of a file that exists, or of a directory.
    Open,
}

/// What the plan says about one I/O.
pub(super) enum Verdict {
    Go,
    /// Store this share of the write (in 256ths), then fail.
    Part(u8, io::ErrorKind),
    Fail(io::ErrorKind),
    NoDescriptor,
}

impl Disk {
    pub(super) fn verdict(&mut self, io: Io) -> Verdict {
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
            if self.struck == 0 {
                self.hit = self.ios;
            }
            self.struck += 1;
        }
        verdict
    }

    /// For I/Os that happen or do not.
    pub(super) fn all_or_nothing(&mut self, io: Io, op: &'static str, path: &Path) -> Result<()> {
        match self.verdict(io) {
            Verdict::Go => Ok(()),
            Verdict::Part(_, kind) | Verdict::Fail(kind) => {
                Err(Error::io(op, path, injected(kind)))
            }
            Verdict::NoDescriptor => Err(Error::io(op, path, no_descriptor())),
        }
    }

    pub(super) fn change_name(&mut self, change: DirChange) {
        change.apply(&mut self.names);
        self.dir_changes.push(change);
    }

    pub(super) fn change_file(&mut self, id: FileId, change: Change) {
        if let Some(file) = self.files.get_mut(id) {
            apply(&mut file.current, &change);
            file.changes.push((change, false));
        }
    }
}

pub(super) fn no_descriptor() -> io::Error {
    rustix::io::Errno::MFILE.into()
}

pub(super) fn injected(kind: io::ErrorKind) -> io::Error {
    io::Error::new(kind, "injected fault")
}

pub(super) fn apply(bytes: &mut Vec<u8>, change: &Change) {
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

impl FileState {
    pub(super) fn after_crash(&self, random: &mut Random, keep: usize) -> Self {
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
        let there = bytes.get(offset as usize + at..offset as usize + end);
        let changed = there != Some(&new[at..end]);
        if survives {
            apply(
                bytes,
                &Change::Write {
                    offset: offset + at as u64,
                    bytes: new[at..end].to_vec(),
                },
            );
        } else if random.below(16) == 0 && changed {
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
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}
