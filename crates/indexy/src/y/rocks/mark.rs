//! How far RocksDB's manifest is known to be durable.
//!
//! RocksDB reads a manifest whose end is damaged as one whose last records were never written, and
//! opens the tree as it was before them: older data, without an error. So a file of ours names the
//! manifest and a length up to which all of its records were synced; what begins before that must
//! be there and match its checksum, or the tree is `Corrupt`.
//!
//! The mark itself is never synced: after a crash it may be an older one, or none, which only
//! checks less. It covers every run but the last one, and after a close everything.

#![forbid(unsafe_code)]

use super::files::CURRENT;
use crate::error::{Error, Result};
use std::{fs, path::Path};

const FILE: &str = "MARK";
const TEMPORARY: &str = "MARK.tmp";

/// The manifest's format: records in blocks, each with checksum (4), length (2) and type (1).
const BLOCK_BYTES: usize = 32 << 10;
const HEADER_BYTES: usize = 7;
/// Record types: none (padding), whole, first part, middle part, last part.
const TYPES: std::ops::RangeInclusive<u8> = 0..=4;
const CHECKSUM_DELTA: u32 = 0xa282_ead8;

/// A manifest's name and a length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    manifest: String,
    bytes: u64,
}

impl Mark {
    /// The manifest in use and its length now. What it covers may be called durable only after a
    /// later sync, or a close.
    pub(super) fn now(dir: &Path) -> Option<Self> {
        let manifest = current(dir)?;
        let bytes = fs::metadata(dir.join(&manifest)).ok()?.len();
        Some(Self { manifest, bytes })
    }

    /// Remembers it, unless another manifest is in use by now. A failure leaves an older mark.
    pub(super) fn store(&self, dir: &Path) {
        if current(dir).as_ref() != Some(&self.manifest) {
            return;
        }
        let body = format!("{} {}", self.manifest, self.bytes);
        let text = format!("{body} {:08x}\n", crc32c::crc32c(body.as_bytes()));
        let temporary = dir.join(TEMPORARY);
        if fs::write(&temporary, text).is_ok() {
            // Only a weaker check if this fails.
            let _ = fs::rename(&temporary, dir.join(FILE));
        }
    }

    fn load(dir: &Path) -> Option<Self> {
        let text = fs::read_to_string(dir.join(FILE)).ok()?;
        let (body, sum) = text.trim_end().rsplit_once(' ')?;
        if u32::from_str_radix(sum, 16).ok()? != crc32c::crc32c(body.as_bytes()) {
            return None;
        }
        let (manifest, bytes) = body.split_once(' ')?;
        Some(Self {
            manifest: manifest.to_owned(),
            bytes: bytes.parse().ok()?,
        })
    }
}

/// The name in `CURRENT`.
fn current(dir: &Path) -> Option<String> {
    let text = fs::read_to_string(dir.join(CURRENT)).ok()?;
    Some(text.trim_end().to_owned())
}

/// Checks the manifest in use against the mark, if there is one for it. Cost: reads the manifest (a
/// few MiB at most).
pub(super) fn check(dir: &Path) -> Result<()> {
    let Some(mark) = Mark::load(dir) else {
        return Ok(());
    };
    if current(dir).as_ref() != Some(&mark.manifest) {
        // A newer one, which RocksDB writes whole before it names it; or a damaged name, which
        // RocksDB finds out.
        return Ok(());
    }
    let path = dir.join(&mark.manifest);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::corrupt(path, 0, "the file is missing"));
        }
        Err(e) => return Err(Error::io("read", path, e)),
    };
    match first_bad_record(&bytes, mark.bytes as usize) {
        None => Ok(()),
        Some(at) => Err(Error::corrupt(path, at as u64, "a record is damaged")),
    }
}

/// Offset of the first record that begins before `upto` and is not there or does not match its
/// checksum.
fn first_bad_record(bytes: &[u8], upto: usize) -> Option<usize> {
    let mut at = 0;
    while at < upto {
        let left_in_block = BLOCK_BYTES - at % BLOCK_BYTES;
        if left_in_block < HEADER_BYTES {
            at += left_in_block;
            continue;
        }
        let record = bytes.get(at..).and_then(|b| record_bytes(b, left_in_block));
        match record {
            Some(length) => at += length,
            None => return Some(at),
        }
    }
    None
}

/// Length of the record that `bytes` begin with, in a block with `left` bytes; `None` if it is
/// damaged.
fn record_bytes(bytes: &[u8], left: usize) -> Option<usize> {
    let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
    let [a, b, c, d, low, high, kind] = *header else {
        return None;
    };
    let length = usize::from(u16::from_le_bytes([low, high]));
    let payload = rest.get(..length)?;
    let sum = crc32c::crc32c_append(crc32c::crc32c(&[kind]), payload);
    let masked = sum.rotate_right(15).wrapping_add(CHECKSUM_DELTA);
    let fits = HEADER_BYTES + length <= left;
    (fits && TYPES.contains(&kind) && masked == u32::from_le_bytes([a, b, c, d]))
        .then_some(HEADER_BYTES + length)
}
