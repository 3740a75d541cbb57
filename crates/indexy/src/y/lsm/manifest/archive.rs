//! The engine's container format ("SFA"): named sections, a checked table of contents, a trailer.
//!
//! The engine trusts lengths in a table of contents before it has checked it, so a damaged one can
//! make it ask for more memory than there is, which ends the process. Every archive is vetted here
//! first; nothing is allocated by a length that was not checked.
//!
//! | offset from the end | size | field | rule |
//! |---|---|---|---|
//! | 38 | 4 | magic | `SFA!` |
//! | 34 | 1 | version | 1 |
//! | 33 | 1 | checksum type | 0 (XXH3) |
//! | 32 | 16 | checksum of the table of contents | little endian |
//! | 16 | 8 | position of the table of contents | |
//! | 8 | 8 | its length | |
//!
//! The table of contents: `TOC!`, entries (u32), then each: position (u64), length (u64), name
//! length (u16), name.

#![forbid(unsafe_code)]

use crate::error::{Error, Result};
use std::{fs::File, os::unix::fs::FileExt, path::Path};
use xxhash_rust::xxh3::xxh3_128;

const TRAILER_BYTES: u64 = 38;
/// A table of contents has about ten entries of some 30 bytes.
const MAX_TOC_BYTES: u64 = 64 << 10;

/// One section of an archive, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    pub name: Vec<u8>,
    pub position: u64,
    pub len: u64,
}

/// Reads and checks the trailer and the table of contents of `path`. Cost: two small reads.
pub(crate) fn sections(path: &Path) -> Result<Vec<Section>> {
    let file = File::open(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Error::corrupt(path, 0, "the file is missing"),
        _ => Error::io("open", path, e),
    })?;
    let len = file
        .metadata()
        .map_err(|e| Error::io("stat", path, e))?
        .len();
    let read = |at: u64, n: u64| {
        let mut bytes = vec![0; n as usize];
        file.read_exact_at(&mut bytes, at)
            .map_err(|e| Error::io("read", path, e))?;
        Ok::<_, Error>(bytes)
    };
    let Some(trailer_at) = len.checked_sub(TRAILER_BYTES) else {
        return Err(Error::corrupt(path, 0, "too short for its trailer"));
    };
    let (toc_at, toc_checksum) = trailer(&read(trailer_at, TRAILER_BYTES)?)
        .ok_or_else(|| Error::corrupt(path, trailer_at, "not a trailer"))?;
    let toc_len = trailer_at
        .checked_sub(toc_at)
        .filter(|&n| n <= MAX_TOC_BYTES)
        .ok_or_else(|| Error::corrupt(path, trailer_at, "no room for the table of contents"))?;
    let toc = read(toc_at, toc_len)?;
    if xxh3_128(&toc) != toc_checksum {
        return Err(Error::corrupt(
            path,
            toc_at,
            "table of contents does not match its checksum",
        ));
    }
    let sections =
        entries(&toc).ok_or_else(|| Error::corrupt(path, toc_at, "malformed table of contents"))?;
    if sections
        .iter()
        .any(|s| s.position.checked_add(s.len).is_none_or(|end| end > toc_at))
    {
        return Err(Error::corrupt(
            path,
            toc_at,
            "a section reaches past the sections",
        ));
    }
    Ok(sections)
}

pub(crate) fn trailer(bytes: &[u8]) -> Option<(u64, u128)> {
    let mut rest = Reader(bytes);
    if rest.take(4)? != b"SFA!" || rest.u8()? != 1 || rest.u8()? != 0 {
        return None;
    }
    let checksum = rest.u128()?;
    Some((rest.u64()?, checksum))
}

pub(crate) fn entries(toc: &[u8]) -> Option<Vec<Section>> {
    let mut rest = Reader(toc);
    if rest.take(4)? != b"TOC!" {
        return None;
    }
    let count = rest.u32()?;
    let mut sections = Vec::new();
    for _ in 0..count {
        let position = rest.u64()?;
        let len = rest.u64()?;
        let name_len = rest.u16()?;
        let name = rest.take(name_len.into())?.to_vec();
        sections.push(Section {
            name,
            position,
            len,
        });
    }
    rest.0.is_empty().then_some(sections)
}

/// Takes little-endian numbers off the front of untrusted bytes; `None` when they run out.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn u128(&mut self) -> Option<u128> {
        self.array().map(u128::from_le_bytes)
    }
}
