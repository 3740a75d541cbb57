//! The superblock of the version log, in two places.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | magic |
//! | 8 | 4 | format version |
//! | 12 | 4 | zero |
//! | 16 | 8 | number of the log, random |
//! | 24 | 8 | owner: what database and tree the log was made for |
//! | 32 | 8 | generation: one more with every superblock |
//! | 40 | 8 | sequence number of the first record |
//! | 48 | 8 | of the last record that was acknowledged |
//! | 56 | 8 | where that record ends |
//! | 64 | 8 | xxh3 of the bytes before |
//!
//! The rest of the 4 KiB is zeros.

#![forbid(unsafe_code)]

use crate::{
    error::{Error, Result},
    mem::aligned::AlignedBuffer,
    storage::StorageFile,
    y::page::{put, u32_at, u64_at},
};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"indexyVL";
const VERSION: u32 = 1;
const SUM_AT: usize = 64;
pub(super) const PAGE: usize = 4096;
/// Where the copies lie: never in one write of a device.
pub(super) const COPIES: [u64; 2] = [0, 8 << 10];
/// Where records begin.
pub(super) const START: u64 = 16 << 10;
// The table above: six words behind 16 bytes, then the checksum; and room for both copies.
const _: () = assert!(16 + 6 * 8 == SUM_AT && SUM_AT + 8 <= PAGE);
const _: () = assert!(COPIES[0] + PAGE as u64 <= COPIES[1] && COPIES[1] + PAGE as u64 <= START);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Superblock {
    pub(super) log: u64,
    pub(super) owner: u64,
    pub(super) generation: u64,
    pub(super) first: u64,
    pub(super) acknowledged: u64,
    pub(super) end: u64,
}

/// The superblock that counts.
pub(super) struct Loaded {
    pub(super) superblock: Superblock,
    /// The place that it is in.
    pub(super) copy: usize,
    /// Whether there is one in the other place.
    pub(super) other_is_whole: bool,
}

impl Superblock {
    pub(super) fn encode(&self) -> AlignedBuffer {
        let mut bytes = AlignedBuffer::new(PAGE);
        put(&mut bytes, 0, MAGIC);
        put(&mut bytes, 8, &VERSION.to_le_bytes());
        let words = [
            self.log,
            self.owner,
            self.generation,
            self.first,
            self.acknowledged,
            self.end,
        ];
        for (i, word) in words.iter().enumerate() {
            put(&mut bytes, 16 + i * 8, &word.to_le_bytes());
        }
        let sum = xxh3_64(bytes.get(..SUM_AT).unwrap_or_default());
        put(&mut bytes, SUM_AT, &sum.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8], path: &Path, offset: u64) -> Result<Self> {
        let corrupt = |what: &str| Error::corrupt(path, offset, format!("superblock: {what}"));
        let cut = || corrupt("cut off");
        let head = bytes.get(..SUM_AT).ok_or_else(cut)?;
        if !head.starts_with(MAGIC) {
            return Err(corrupt("this is no version log"));
        }
        if u64_at(bytes, SUM_AT) != Some(xxh3_64(head)) {
            return Err(corrupt("the checksum does not match"));
        }
        let version = u32_at(head, 8).ok_or_else(cut)?;
        if version != VERSION {
            return Err(Error::FormatVersion {
                path: path.to_path_buf(),
                found: version,
                supported: VERSION,
            });
        }
        let word = |i: usize| u64_at(head, 16 + i * 8).ok_or_else(cut);
        let found = Self {
            log: word(0)?,
            owner: word(1)?,
            generation: word(2)?,
            first: word(3)?,
            acknowledged: word(4)?,
            end: word(5)?,
        };
        let most = u64::MAX / 2;
        let plausible = found.first >= 1
            && found.first <= found.acknowledged
            && found.acknowledged < most
            && found.generation < most
            && found.end > START
            && found.end < most
            && found.end.is_multiple_of(PAGE as u64);
        plausible
            .then_some(found)
            .ok_or_else(|| corrupt("it contradicts itself"))
    }

    /// Writes it to place `copy`.
    pub(super) fn write(&self, file: &dyn StorageFile, copy: usize) -> Result<()> {
        let offset = COPIES.get(copy).copied().unwrap_or_default();
        file.write_at(&self.encode(), offset)
    }

    /// What is in the places.
    pub(super) fn copies(file: &dyn StorageFile) -> Result<[Result<Self>; 2]> {
        let mut found: [Result<Self>; 2] = [Err(Error::Closed), Err(Error::Closed)];
        for (slot, offset) in found.iter_mut().zip(COPIES) {
            let mut bytes = AlignedBuffer::new(PAGE);
            let got = file.read_at(&mut bytes, offset)?;
            let bytes = bytes.get(..got).unwrap_or_default();
            *slot = Self::decode(bytes, file.path(), offset);
        }
        Ok(found)
    }

    /// The newest whole superblock.
    pub(super) fn load(file: &dyn StorageFile, owner: u64) -> Result<Loaded> {
        let copies = Self::copies(file)?;
        let other_is_whole = copies.iter().all(Result::is_ok);
        let (found, copy) = match copies {
            // Whoever wrote it knows more than this build: what this one does not know of is not
            // cut off, and no file is removed.
            [Err(newer @ Error::FormatVersion { .. }), _]
            | [_, Err(newer @ Error::FormatVersion { .. })] => return Err(newer),
            [Ok(one), Ok(other)] if one.log != other.log => {
                let what = "superblock: the copies are of two logs".to_string();
                return Err(Error::corrupt(file.path(), COPIES[1], what));
            }
            [Ok(one), Ok(other)] if one.generation >= other.generation => (one, 0),
            [_, Ok(other)] => (other, 1),
            [Ok(one), Err(_)] => (one, 0),
            [Err(error), Err(_)] => return Err(error),
        };
        if found.owner != owner {
            let what = "superblock: the versions of another tree or database".to_string();
            let offset = COPIES.get(copy).copied().unwrap_or_default();
            return Err(Error::corrupt(file.path(), offset, what));
        }
        Ok(Loaded {
            superblock: found,
            copy,
            other_is_whole,
        })
    }
}
