//! The superblock: what a tree starts from, in two copies.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | magic |
//! | 8 | 4 | format version |
//! | 12 | 4 | page size in bytes |
//! | 16 | 8 | number of the tree, random |
//! | 24 | 8 | generation, from 1 |
//! | 32 | 8 | root page, 0: the tree is empty |
//! | 40 | 8 | height |
//! | 48 | 8 | entries |
//! | 56 | 8 | pages up to which the map says which are used |
//! | 64 | 8 | first page of the list of the map's parts, 0: none |
//! | 72 | 8 | owner: what database and tree the file was made for |
//! | 80 | 8 | xxh3 of the bytes before |
//!
//! The rest of the 4 KiB is zeros. A generation is written to the first copy, synced, and then to
//! the second, which the sync before the next generation makes durable. So a crash finds one of
//! them whole, and a damaged one is replaced by the other without going back in time. What an open
//! finds may be in the system's memory alone: `open.rs` writes it again.

use crate::y::page::{MAX_LEVEL, PAGE_LIMIT, PageNo, put, u32_at, u64_at};
use crate::{
    error::{Error, Result},
    mem::aligned::AlignedBuffer,
    storage::StorageFile,
};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"indexyBP";
/// What a commit writes. Version 1 had neither fixed leaves nor extents, version 2 neither leaves
/// of kind 8 nor inner pages of kind 9: a file of one of these is read and goes on as it is until
/// the first commit, before which no such page can be in it.
pub(crate) const VERSION: u32 = 3;
const VERSIONS: std::ops::RangeInclusive<u32> = 1..=VERSION;
const BYTES: usize = 4096;
const SUM_AT: usize = 80;
/// No tree comes to more generations, or entries.
const MOST: u64 = 1 << 48;
/// Where the copies lie: never in one write of a device.
pub(crate) const COPIES: [u64; 2] = [0, 8 << 10];
// The table above: eight words behind 16 bytes, then the checksum; and room for both copies.
const _: () = assert!(16 + 8 * 8 == SUM_AT && SUM_AT + 8 <= BYTES);
const _: () = assert!(COPIES[0] + BYTES as u64 <= COPIES[1]);
const _: () = assert!(COPIES[1] + BYTES as u64 <= super::PAGES_START);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Superblock {
    /// Of the format.
    pub(crate) version: u32,
    pub(crate) page_bytes: u32,
    pub(crate) tree: u64,
    pub(crate) generation: u64,
    pub(crate) root: PageNo,
    pub(crate) height: u8,
    pub(crate) entries: u64,
    pub(crate) end: PageNo,
    pub(crate) map: PageNo,
    /// See [`PagedY::open`](crate::y::paged::PagedY::open).
    pub(crate) owner: u64,
}

impl Superblock {
    pub(crate) fn encode(&self) -> AlignedBuffer {
        let mut bytes = AlignedBuffer::new(BYTES);
        put(&mut bytes, 0, MAGIC);
        put(&mut bytes, 8, &self.version.to_le_bytes());
        put(&mut bytes, 12, &self.page_bytes.to_le_bytes());
        let words = [
            self.tree,
            self.generation,
            self.root,
            u64::from(self.height),
            self.entries,
            self.end,
            self.map,
            self.owner,
        ];
        for (i, word) in words.iter().enumerate() {
            put(&mut bytes, 16 + i * 8, &word.to_le_bytes());
        }
        let sum = xxh3_64(bytes.get(..SUM_AT).unwrap_or_default());
        put(&mut bytes, SUM_AT, &sum.to_le_bytes());
        bytes
    }

    /// Reads a superblock that lies at `offset` of `path`.
    pub(crate) fn decode(bytes: &[u8], path: &Path, offset: u64) -> Result<Self> {
        let corrupt = |what: &str| Error::corrupt(path, offset, format!("superblock: {what}"));
        let cut = || corrupt("cut off");
        let head = bytes.get(..SUM_AT).ok_or_else(cut)?;
        if !head.starts_with(MAGIC) {
            return Err(corrupt("this is no page file"));
        }
        if u64_at(bytes, SUM_AT) != Some(xxh3_64(head)) {
            return Err(corrupt("the checksum does not match"));
        }
        let version = u32_at(head, 8).ok_or_else(cut)?;
        if !VERSIONS.contains(&version) {
            return Err(Error::FormatVersion {
                path: path.to_path_buf(),
                found: version,
                supported: VERSION,
            });
        }
        let word = |i: usize| u64_at(head, 16 + i * 8).ok_or_else(cut);
        let height = u8::try_from(word(3)?).map_err(|_| corrupt("height"))?;
        let found = Self {
            version,
            page_bytes: u32_at(head, 12).ok_or_else(cut)?,
            tree: word(0)?,
            generation: word(1)?,
            root: word(2)?,
            height,
            entries: word(4)?,
            end: word(5)?,
            map: word(6)?,
            owner: word(7)?,
        };
        found.plausible().map_err(corrupt)?;
        Ok(found)
    }

    /// `Corrupt` unless the file at `path` is that of `owner`.
    pub(crate) fn check_owner(&self, owner: u64, path: &Path) -> Result<()> {
        match self.owner == owner {
            true => Ok(()),
            false => {
                let what = "superblock: the pages of another tree or database";
                Err(Error::corrupt(path, 0, what))
            }
        }
    }

    fn plausible(&self) -> std::result::Result<(), &'static str> {
        let used = |page: PageNo| page < self.end;
        if self.end > PAGE_LIMIT || !used(self.root) || !used(self.map) {
            return Err("pages beyond the end");
        }
        if self.height > MAX_LEVEL + 1 || (self.height == 0) != (self.root == 0) {
            return Err("root and height do not fit together");
        }
        if self.generation > MOST || self.entries > MOST {
            return Err("generation or entries");
        }
        Ok(())
    }

    /// Writes copy `copy`.
    pub(crate) fn write(&self, file: &dyn StorageFile, copy: usize) -> Result<()> {
        let offset = COPIES.get(copy).copied().unwrap_or_default();
        file.write_at(&self.encode(), offset)
    }

    /// What each copy says. Errors (of the call): `Io`.
    pub(crate) fn copies(file: &dyn StorageFile) -> Result<[Result<Self>; 2]> {
        let mut found: [Result<Self>; 2] = [Err(Error::Closed), Err(Error::Closed)];
        for (slot, offset) in found.iter_mut().zip(COPIES) {
            let mut bytes = AlignedBuffer::new(BYTES);
            let got = file.read_at(&mut bytes, offset)?;
            let bytes = bytes.get(..got).unwrap_or_default();
            *slot = Self::decode(bytes, file.path(), offset);
        }
        Ok(found)
    }

    /// The newest whole superblock of the file, and the number of a copy that is not that one.
    pub(crate) fn load(file: &dyn StorageFile) -> Result<(Self, Option<usize>)> {
        match Self::copies(file)? {
            // Whoever wrote it knows more than this build: it is not overwritten.
            [Err(newer @ Error::FormatVersion { .. }), _]
            | [_, Err(newer @ Error::FormatVersion { .. })] => Err(newer),
            [Ok(first), Ok(second)] if first.tree != second.tree => Err(Error::corrupt(
                file.path(),
                COPIES[1],
                "superblock: the copies are of two trees",
            )),
            [Ok(first), Ok(second)] if first == second => Ok((first, None)),
            [Ok(first), Ok(second)] if first.generation >= second.generation => {
                Ok((first, Some(1)))
            }
            [_, Ok(second)] => Ok((second, Some(0))),
            [Ok(first), Err(_)] => Ok((first, Some(1))),
            [Err(first), Err(_)] => Err(first),
        }
    }
}
