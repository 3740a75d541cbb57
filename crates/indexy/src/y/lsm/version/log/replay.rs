//! Reading a version log: which records count, and what they say together.

#![forbid(unsafe_code)]

use super::{
    change::{Change, Listing},
    record::{self, Found},
    superblock::{Loaded, PAGE, START, Superblock},
};
use crate::{
    error::{Error, Result},
    storage::StorageFile,
};

/// The last record of a log.
#[derive(Default)]
pub(super) struct LastRecord {
    pub(super) says: Vec<u8>,
    /// Where the copies are: first one that is damaged, or else the second one.
    pub(super) copies: [u64; 2],
}

/// Which copies of a record must be whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Copies {
    Either,
    /// Of records up to this one, both.
    BothUpTo(u64),
}

/// What a log says, and where it ends.
pub(super) struct Replayed {
    pub(super) loaded: Loaded,
    pub(super) listing: Listing,
    /// Sequence number of the last record.
    pub(super) last: u64,
    last_at: u64,
    last_record: LastRecord,
    /// Where it ends, both copies.
    pub(super) end: u64,
    /// Where the first record ends.
    pub(super) first_end: u64,
    /// Of the file.
    pub(super) len: u64,
}

impl Replayed {
    pub(super) fn last_record(&mut self) -> LastRecord {
        std::mem::take(&mut self.last_record)
    }
}

/// Reads all of it. Errors: `Corrupt`, `FormatVersion`, `Io`.
pub(super) fn replay(file: &dyn StorageFile, owner: u64, copies: Copies) -> Result<Replayed> {
    let loaded = Superblock::load(file, owner)?;
    let superblock = loaded.superblock;
    let mut all = Replayed {
        loaded,
        listing: Listing::default(),
        last: superblock.first - 1,
        last_at: START,
        last_record: LastRecord::default(),
        end: START,
        first_end: START,
        len: file.len()?,
    };
    while let Some((at, found)) = find(file, &all)? {
        let corrupt = |what: &str| Error::corrupt(file.path(), all.end, format!("record: {what}"));
        let change = Change::decode(&found.says).map_err(corrupt)?;
        all.listing.apply(change).map_err(corrupt)?;
        all.last = found.sequence;
        let copy = record::copy_bytes(found.says.len());
        if matches!(copies, Copies::BothUpTo(last) if found.sequence <= last) {
            both_whole(file, &all, copy)?;
        }
        all.last_at = all.end;
        all.end += 2 * copy;
        if found.sequence == superblock.first {
            all.first_end = all.end;
        }
        let other = match at == all.last_at {
            true => at + copy,
            false => all.last_at,
        };
        all.last_record = LastRecord {
            says: found.says,
            copies: [other, at],
        };
        if all.last == superblock.acknowledged && all.end != superblock.end {
            let what = "record: acknowledged ones end elsewhere".to_string();
            return Err(Error::corrupt(file.path(), all.last_at, what));
        }
    }
    if all.last < superblock.acknowledged {
        let what = "record: neither copy is whole".to_string();
        return Err(Error::corrupt(file.path(), all.end, what));
    }
    Ok(all)
}

/// The record behind the last one and where it is, if one copy is whole. `Corrupt` if it is not
/// there and a later one is.
fn find(file: &dyn StorageFile, all: &Replayed) -> Result<Option<(u64, Found)>> {
    let (start, wanted) = (all.end, all.last + 1);
    let mut at = start;
    while at < all.len {
        if let Some(found) = record::read(file, all.len, at, all.loaded.superblock.log)? {
            // The second copy begins where the first one ends.
            let copy = record::copy_bytes(found.says.len());
            if found.sequence == wanted && (at == start || at == start + copy) {
                return Ok(Some((at, found)));
            }
            if found.sequence > wanted {
                let what = format!("record {wanted}: neither copy is whole, a later one is");
                return Err(Error::corrupt(file.path(), start, what));
            }
        }
        at += PAGE as u64;
    }
    Ok(None)
}

/// Checks both copies of the record behind the last one, which are `copy` long.
fn both_whole(file: &dyn StorageFile, all: &Replayed, copy: u64) -> Result<()> {
    for at in [all.end, all.end + copy] {
        let found = record::read(file, all.len, at, all.loaded.superblock.log)?;
        if found.is_none_or(|found| found.sequence != all.last) {
            let what = "record: this copy is not whole".to_string();
            return Err(Error::corrupt(file.path(), at, what));
        }
    }
    Ok(())
}
