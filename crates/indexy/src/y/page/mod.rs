//! Pages: what all kinds have in common, and the checked view that every reader of a page goes
//! through.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | xxh3 of the rest of the page |
//! | 8 | 8 | number of the page: its place in the file in pages |
//! | 16 | 8 | number of the tree, random |
//! | 24 | 8 | birth: the generation that the page was written for |
//! | 32 | 1 | kind |
//! | 33 | 1 | level: 0 for leaves |
//! | 34 | 2 | count of entries |
//! | 36 | 2 | length of the prefix that all keys of the page share |
//! | 38 | 2 | zero |
//! | 40 | 8 | link: the next page of a chain, 0 at its end |
//! | 48 | 4 | length of the payload, for kinds that are not nodes; lengths of a fixed leaf |
//! | 52 | 4 | zero |
//!
//! All numbers are little-endian. Checksum, number, tree and birth are checked by [`check`] on
//! every read from the device: a damaged page, one of another place, of another tree and one newer
//! than the tree are found. Nothing here trusts what lies behind the header: every access is
//! checked, whatever the checksum says. `node.rs` reads nodes, `build.rs` and `leaf_builder.rs`
//! make them; their forms are in `slotted.rs` and `fixed.rs`.

pub(crate) mod build;
mod entry;
pub(crate) mod filling;
mod fixed;
mod heads;
pub(crate) mod leaf_builder;
pub(crate) mod leaf_entries;
pub(crate) mod node;
mod old_slots;
mod slotted;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use source::PageSource;

use crate::error::{Error, Result};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// Number of a page. 0 is none: the superblocks lie there.
pub(crate) type PageNo = u64;

/// Page numbers are below this, so that a reference has room for a hint.
pub(crate) const PAGE_LIMIT: PageNo = 1 << 40;
pub(crate) const HEADER_BYTES: usize = 56;

const CHECKSUM: usize = 0;
const NUMBER: usize = 8;
const TREE: usize = 16;
const BIRTH: usize = 24;
const KIND: usize = 32;
const LEVEL: usize = 33;
const COUNT: usize = 34;
const PREFIX: usize = 36;
const LINK: usize = 40;
const PAYLOAD: usize = 48;
// The table above: the payload's length, and four bytes of zero, end the header.
const _: () = assert!(PAYLOAD + 8 == HEADER_BYTES && HEADER_BYTES == 56);

/// Highest level of a node; a tree of more cannot be, with seven children a node at least.
pub(crate) const MAX_LEVEL: u8 = 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Leaves and inner pages in the form that they had before kinds 8 and 9.
    OldLeaf = 1,
    OldInner = 2,
    Overflow = 3,
    /// A part of the map of used pages.
    Map = 4,
    /// The list of the map's parts.
    MapList = 5,
    /// A leaf whose keys, and values, have equal lengths.
    FixedLeaf = 6,
    /// Any other leaf.
    Leaf = 8,
    Inner = 9,
    /// The first page of a table of the run store.
    TableHead = 16,
    /// A part of a table's filter.
    Filter = 17,
    /// What is known of a table.
    Footer = 18,
    /// The first page of an extent; the others have no header.
    Extent = 7,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::OldLeaf,
            2 => Self::OldInner,
            3 => Self::Overflow,
            4 => Self::Map,
            5 => Self::MapList,
            6 => Self::FixedLeaf,
            7 => Self::Extent,
            8 => Self::Leaf,
            9 => Self::Inner,
            16 => Self::TableHead,
            17 => Self::Filter,
            18 => Self::Footer,
            _ => return None,
        })
    }

    #[inline]
    pub(crate) fn is_inner(self) -> bool {
        matches!(self, Self::Inner | Self::OldInner)
    }
}

/// What makes a page belong where it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    pub(crate) number: PageNo,
    pub(crate) tree: u64,
    /// When written: its birth. When read: the newest birth that can be.
    pub(crate) birth: u64,
}

/// The fields that the kinds use; what a kind has no use for is zero.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) level: u8,
    pub(crate) count: u16,
    pub(crate) prefix: u16,
    pub(crate) link: PageNo,
    pub(crate) payload: u32,
}

impl Header {
    pub(crate) fn of_kind(kind: Kind) -> Self {
        Self {
            kind,
            level: 0,
            count: 0,
            prefix: 0,
            link: 0,
            payload: 0,
        }
    }

    /// Reads the header; `None` if it cannot be one.
    #[inline]
    pub(crate) fn read(page: &[u8]) -> Option<Self> {
        let kind = Kind::of(u8_at(page, KIND)?)?;
        let header = Self {
            kind,
            level: u8_at(page, LEVEL)?,
            count: u16_at(page, COUNT)?,
            prefix: u16_at(page, PREFIX)?,
            link: u64_at(page, LINK)?,
            payload: u32_at(page, PAYLOAD)?,
        };
        let level_fits = match kind.is_inner() {
            true => (1..=MAX_LEVEL).contains(&header.level),
            false => header.level == 0,
        };
        (level_fits && header.link < PAGE_LIMIT).then_some(header)
    }

    /// Writes the header, all but what [`seal`] writes.
    pub(crate) fn write(&self, page: &mut [u8]) {
        put(page, KIND, &[self.kind as u8, self.level]);
        put(page, COUNT, &self.count.to_le_bytes());
        put(page, PREFIX, &self.prefix.to_le_bytes());
        put(page, PREFIX + 2, &[0; 2]);
        put(page, LINK, &self.link.to_le_bytes());
        put(page, PAYLOAD, &self.payload.to_le_bytes());
        put(page, PAYLOAD + 4, &[0; 4]);
    }
}

/// Makes the page complete: who it is, and the checksum.
pub(crate) fn seal(page: &mut [u8], identity: Identity) {
    identify(page, identity);
    put_sum(page, xxh3_64(summed(page, true)));
}

/// Says who the page is.
pub(crate) fn identify(page: &mut [u8], identity: Identity) {
    put(page, NUMBER, &identity.number.to_le_bytes());
    put(page, TREE, &identity.tree.to_le_bytes());
    put(page, BIRTH, &identity.birth.to_le_bytes());
}

pub(crate) fn put_sum(page: &mut [u8], sum: u64) {
    put(page, CHECKSUM, &sum.to_le_bytes());
}

/// The number of the tree that `page` says it is of.
pub(crate) fn tree_of(page: &[u8]) -> Option<u64> {
    u64_at(page, TREE)
}

/// The bytes of `page` that a checksum is over; `first`: it begins with a header.
pub(crate) fn summed(page: &[u8], first: bool) -> &[u8] {
    let from = if first { NUMBER } else { 0 };
    page.get(from..).unwrap_or_default()
}

/// Whether `page`, just read from `path` at byte `offset`, is the page that it should be, whole.
pub(crate) fn check(page: &[u8], identity: Identity, path: &Path, offset: u64) -> Result<()> {
    check_sum(page, xxh3_64(summed(page, true)), identity, path, offset)
}

/// The same of what begins with the header `head` and has the checksum `sum`.
pub(crate) fn check_sum(
    head: &[u8],
    sum: u64,
    identity: Identity,
    path: &Path,
    offset: u64,
) -> Result<()> {
    let wrong = match verdict(head, sum, identity) {
        Ok(()) => return Ok(()),
        Err(wrong) => wrong,
    };
    let what = format!("page {}: {wrong}", identity.number);
    Err(Error::corrupt(path, offset, what))
}

fn verdict(page: &[u8], sum: u64, identity: Identity) -> std::result::Result<(), String> {
    let cut = || "too short".to_string();
    if u64_at(page, CHECKSUM).ok_or_else(cut)? != sum {
        return Err("the checksum does not match".into());
    }
    let number = u64_at(page, NUMBER).ok_or_else(cut)?;
    if number != identity.number {
        return Err(format!("page {number} lies here"));
    }
    if u64_at(page, TREE).ok_or_else(cut)? != identity.tree {
        return Err("it is of another tree".into());
    }
    let birth = u64_at(page, BIRTH).ok_or_else(cut)?;
    if birth > identity.birth {
        return Err(format!(
            "written for generation {birth}, the tree is at {}",
            identity.birth
        ));
    }
    Header::read(page)
        .map(|_| ())
        .ok_or_else(|| "the header makes no sense".into())
}

#[inline]
pub(crate) fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let part = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(part.try_into().ok()?))
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let part = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(part.try_into().ok()?))
}

#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(part.try_into().ok()?))
}

/// Writes `part` at `at`; the caller has made sure that it fits.
pub(crate) fn put(bytes: &mut [u8], at: usize, part: &[u8]) {
    if let Some(to) = bytes.get_mut(at..at + part.len()) {
        to.copy_from_slice(part);
    } else {
        debug_assert!(false, "{} bytes at {at} do not fit", part.len());
    }
}
