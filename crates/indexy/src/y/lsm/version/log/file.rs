//! The version log as a file: creating, opening, appending, closing.

#![forbid(unsafe_code)]

use super::{
    change::Listing,
    record::{self, Identity},
    replay::{Copies, LastRecord, replay},
    superblock::{COPIES, Loaded, START, Superblock},
};
use crate::{
    error::{Error, Result},
    storage::{Storage, StorageFile},
};
use std::{path::Path, sync::Arc};

/// A log is rewritten when it has so many times the bytes that it had when it was new,
const GROWTH: u64 = 4;
/// and at least so many.
const SMALL_BYTES: u64 = 256 << 10;

/// See the module of the folder.
pub(in crate::y::lsm::version) struct Log {
    file: Arc<dyn StorageFile>,
    /// The newest that was acknowledged, and its place.
    superblock: Superblock,
    copy: usize,
    /// No sync is known to have reached it, although all that it says is durable.
    unproven: bool,
    /// A crash, or a write that failed, may have torn the one in the other place.
    other_is_unsure: bool,
    /// The last acknowledged record, and where it ends.
    last: u64,
    end: u64,
    /// Up to this record both copies are on the device.
    both_up_to: u64,
    new_bytes: u64,
}

/// A record that is written but not synced.
#[must_use]
pub(in crate::y::lsm::version) struct Written {
    end: u64,
    superblock: Option<Superblock>,
}

impl Log {
    /// Makes the file at `path`, durable but for its name. Its only record has number `sequence`
    /// and says `version` (`Change::encode`, from nothing).
    pub(in crate::y::lsm::version) fn create(
        storage: &dyn Storage,
        path: &Path,
        owner: u64,
        sequence: u64,
        version: &[u8],
    ) -> Result<Self> {
        if storage.exists(path)? {
            storage.remove(path)?;
        }
        let log = random();
        let copies = record::encode(Identity { log, sequence }, version)?;
        let end = START + copies.len() as u64;
        let superblock = Superblock {
            log,
            owner,
            generation: 1,
            first: sequence,
            acknowledged: sequence,
            end,
        };
        let file = storage.create(path)?;
        let write = || {
            superblock.write(&*file, 0)?;
            superblock.write(&*file, 1)?;
            file.write_at(&copies, START)?;
            file.sync()
        };
        if let Err(error) = write() {
            // Best effort: what stays is removed before the next attempt.
            let _ = storage.remove(path);
            return Err(error);
        }
        Ok(Self {
            file,
            superblock,
            copy: 0,
            unproven: false,
            other_is_unsure: false,
            last: sequence,
            end,
            both_up_to: sequence,
            new_bytes: end,
        })
    }

    /// Reads the log in `file`. Changes nothing.
    pub(in crate::y::lsm::version) fn open(
        file: Arc<dyn StorageFile>,
        owner: u64,
    ) -> Result<(Self, Listing, Unsure)> {
        let mut found = replay(&*file, owner, Copies::Either)?;
        let Loaded {
            superblock,
            copy,
            other_is_whole,
        } = found.loaded;
        let unclean = found.last > superblock.acknowledged;
        let log = Self {
            file,
            superblock,
            copy,
            unproven: false,
            // It is written when a record is not yet in it, and then that record is whole.
            other_is_unsure: unclean && !other_is_whole,
            last: found.last,
            end: found.end,
            both_up_to: superblock.acknowledged,
            new_bytes: found.first_end,
        };
        let unsure = Unsure {
            last: unclean.then(|| found.last_record()),
            other_is_whole,
            tail: found.len > found.end,
        };
        Ok((log, found.listing, unsure))
    }

    /// Makes durable what [`Log::open`] found, both copies of it, and that there is nothing behind
    /// it.
    pub(in crate::y::lsm::version) fn secure(&mut self, unsure: Unsure) -> Result<()> {
        if unsure.tail {
            self.file.set_len(self.end)?;
        }
        // Written again, not only synced: a sync that failed in another process may have left it
        // in the system's memory alone, where it counts as written. One copy after the other, so
        // that a crash in between leaves one.
        if let Some(last) = &unsure.last {
            let copies = record::encode(self.identity(self.last), &last.says)?;
            let copy = copies.get(..copies.len() / 2).unwrap_or_default();
            let [lesser, better] = last.copies;
            self.file.write_at(copy, lesser)?;
            self.file.sync()?;
            self.file.write_at(copy, better)?;
        }
        let mended = match (unsure.other_is_whole, &unsure.last) {
            // The next record's sync will do, for the superblock behind that is the first to be
            // written over the other one.
            (true, None) => {
                self.unproven = true;
                false
            }
            // As the record: the present one may be in memory alone. The other one is older, and
            // right.
            (true, Some(_)) => self
                .superblock
                .write(&*self.file, self.copy)
                .map(|()| true)?,
            // Without it the log is as good as it was: a full device does not keep it closed.
            (false, _) => self.superblock.write(&*self.file, 1 - self.copy).is_ok(),
        };
        if unsure.tail || unsure.last.is_some() || mended {
            self.file.sync()?;
        }
        self.both_up_to = self.last;
        self.other_is_unsure &= !mended;
        Ok(())
    }

    fn identity(&self, sequence: u64) -> Identity {
        Identity {
            log: self.superblock.log,
            sequence,
        }
    }

    /// Writes the next record. It is not acknowledged before [`Log::sync`]; after an error it may
    /// be there or not, and the next write takes its place.
    pub(in crate::y::lsm::version) fn write(&mut self, change: &[u8]) -> Result<Written> {
        let copies = record::encode(self.identity(self.last + 1), change)?;
        let superblock = (self.superblock.acknowledged < self.last).then(|| self.next_superblock());
        self.other_is_unsure |= superblock.is_some();
        let write = || {
            if self.unproven {
                self.superblock.write(&*self.file, self.copy)?;
            }
            if let Some(superblock) = &superblock {
                superblock.write(&*self.file, 1 - self.copy)?;
            }
            self.file.write_at(&copies, self.end)
        };
        if let Err(error) = write() {
            // Gives the space back, if it can.
            let _ = self.file.set_len(self.end);
            return Err(error);
        }
        let end = self.end + copies.len() as u64;
        Ok(Written { end, superblock })
    }

    /// Acknowledges what was written. A failed one must not be repeated.
    pub(in crate::y::lsm::version) fn sync(&mut self, written: Written) -> Result<()> {
        self.file.sync()?;
        self.unproven = false;
        self.last += 1;
        self.end = written.end;
        self.both_up_to = self.last;
        self.acknowledged(written.superblock);
        Ok(())
    }

    /// Says durably that every record was acknowledged. Cost: a sync, or nothing if it says so.
    pub(in crate::y::lsm::version) fn close(&mut self) -> Result<()> {
        if self.superblock.acknowledged == self.last {
            return Ok(());
        }
        let superblock = self.next_superblock();
        self.other_is_unsure = true;
        superblock.write(&*self.file, 1 - self.copy)?;
        self.file.sync()?;
        self.acknowledged(Some(superblock));
        Ok(())
    }

    fn next_superblock(&self) -> Superblock {
        Superblock {
            generation: self.superblock.generation + 1,
            acknowledged: self.last,
            end: self.end,
            ..self.superblock
        }
    }

    fn acknowledged(&mut self, superblock: Option<Superblock>) {
        if let Some(superblock) = superblock {
            self.superblock = superblock;
            self.copy = 1 - self.copy;
            // What was the present one until now.
            self.other_is_unsure = false;
        }
    }

    /// Whether it is time to begin a new file.
    pub(in crate::y::lsm::version) fn is_long(&self) -> bool {
        self.end > SMALL_BYTES.max(GROWTH * self.new_bytes)
    }

    pub(in crate::y::lsm::version) fn file(&self) -> &dyn StorageFile {
        &*self.file
    }

    pub(in crate::y::lsm::version) fn last(&self) -> u64 {
        self.last
    }

    pub(in crate::y::lsm::version) fn bytes(&self) -> u64 {
        self.end
    }

    /// Reads the file again; what it says, unless a write that failed may have changed that.
    /// `Corrupt` also if one copy of something is damaged, unless a crash may have left it so.
    pub(in crate::y::lsm::version) fn verify(&self) -> Result<Option<Listing>> {
        let corrupt = |offset: u64, what: &str| {
            Error::corrupt(self.file.path(), offset, format!("version log: {what}"))
        };
        let mut copies = Superblock::copies(&*self.file)?;
        copies.rotate_left(self.copy);
        let [mine, other] = copies;
        if mine? != self.superblock {
            let offset = COPIES.get(self.copy).copied().unwrap_or_default();
            return Err(corrupt(
                offset,
                "another superblock than the one that was written",
            ));
        }
        if !self.other_is_unsure {
            other?;
        }
        let copies = Copies::BothUpTo(self.both_up_to);
        let found = replay(&*self.file, self.superblock.owner, copies)?;
        if found.last < self.last {
            return Err(corrupt(found.end, "neither copy of a record is whole"));
        }
        Ok((found.last == self.last).then_some(found.listing))
    }
}

/// What an open does not know to be durable.
pub(in crate::y::lsm::version) struct Unsure {
    last: Option<LastRecord>,
    /// Both places have a whole superblock.
    other_is_whole: bool,
    /// There are bytes behind it.
    tail: bool,
}

/// A number that no other log has.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}
