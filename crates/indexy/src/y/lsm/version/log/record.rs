//! A record of the version log: a header, what it says, and zeros up to the end of a page.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | xxh3 of the rest, without the zeros |
//! | 8 | 8 | magic |
//! | 16 | 8 | number of the log |
//! | 24 | 8 | sequence number |
//! | 32 | 4 | length of what it says |
//! | 36 | 4 | zero |
//! | 40 | | what it says |

#![forbid(unsafe_code)]

use super::superblock::PAGE;
use crate::{
    error::{Error, Result},
    mem::aligned::AlignedBuffer,
    storage::StorageFile,
    y::page::{put, u32_at, u64_at},
};
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"indexyVR";
const HEADER: usize = 40;
// The table above: four bytes of zero end the header.
const _: () = assert!(MAGIC.len() == 8 && HEADER == 36 + 4);
/// Most bytes that a record says.
const MAX_BYTES: usize = 1 << 30;

/// What makes a record the one that belongs to a place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identity {
    pub(super) log: u64,
    pub(super) sequence: u64,
}

/// Length of a copy of a record that says `bytes`.
pub(super) fn copy_bytes(bytes: usize) -> u64 {
    (HEADER + bytes).next_multiple_of(PAGE) as u64
}

/// Both copies of a record.
pub(super) fn encode(identity: Identity, says: &[u8]) -> Result<AlignedBuffer> {
    if says.len() > MAX_BYTES {
        let what = format!("a version of {} bytes", says.len());
        return Err(Error::Unsupported { what });
    }
    let copy = copy_bytes(says.len()) as usize;
    let mut bytes = AlignedBuffer::new(2 * copy);
    put(&mut bytes, 8, MAGIC);
    put(&mut bytes, 16, &identity.log.to_le_bytes());
    put(&mut bytes, 24, &identity.sequence.to_le_bytes());
    put(&mut bytes, 32, &(says.len() as u32).to_le_bytes());
    put(&mut bytes, HEADER, says);
    let sum = xxh3_64(bytes.get(8..HEADER + says.len()).unwrap_or_default());
    put(&mut bytes, 0, &sum.to_le_bytes());
    bytes.copy_within(..copy, copy);
    Ok(bytes)
}

/// A whole copy of a record.
pub(super) struct Found {
    pub(super) sequence: u64,
    pub(super) says: Vec<u8>,
}

/// The record of log `log` at `offset` of a file of `len` bytes, if there is a whole one.
pub(super) fn read(
    file: &dyn StorageFile,
    len: u64,
    offset: u64,
    log: u64,
) -> Result<Option<Found>> {
    let mut first = AlignedBuffer::new(PAGE);
    let got = file.read_at(&mut first, offset)?;
    let first = first.get(..got).unwrap_or_default();
    let Some((sequence, says)) = header(first, log) else {
        return Ok(None);
    };
    let end = HEADER + says;
    if says > MAX_BYTES || len.saturating_sub(offset) < end as u64 {
        return Ok(None);
    }
    // No more memory than the file has bytes.
    let mut all;
    let bytes = if end <= PAGE {
        first
    } else {
        all = AlignedBuffer::new(end);
        let got = file.read_at(&mut all, offset)?;
        all.get(..got).unwrap_or_default()
    };
    let whole = bytes.get(8..end).map(xxh3_64) == u64_at(bytes, 0);
    let says = bytes.get(HEADER..end).filter(|_| whole);
    Ok(says.map(|says| Found {
        sequence,
        says: says.to_vec(),
    }))
}

/// Sequence number and length of what is said.
fn header(page: &[u8], log: u64) -> Option<(u64, usize)> {
    let right = page.get(8..16)? == MAGIC && u64_at(page, 16)? == log && u32_at(page, 36)? == 0;
    let found = (u64_at(page, 24)?, u32_at(page, 32)? as usize);
    right.then_some(found)
}
