//! Bytes of a segment file: its name, its header, and the headers of the groups in it.
//!
//! Layout tables: `docs/formats/wal.md`. What ties a group to its place: the checksum of its header
//! starts from the checksum of the segment header (database id, sequence number, first LSN and a
//! random number that no other segment has) and the group's offset in the file, so that no stale or
//! foreign bytes pass for a group. No threads, no I/O; a decoder trusts no byte.

use super::lsn::Lsn;
use crate::error::{Error, Result};
use std::{
    hash::{BuildHasher, Hasher},
    path::{Path, PathBuf},
};

const SEGMENT_MAGIC: [u8; 8] = *b"IndeXYwl";
/// Version 2 has records that remove ranges, version 3 those of loads, version 4 those of merges;
/// older segments are read.
pub(super) const FORMAT_VERSION: u32 = 4;
const OLDEST_VERSION: u32 = 1;
pub(super) const SEGMENT_HEADER_BYTES: usize = 64;
/// "GRP1", little endian.
const GROUP_MAGIC: u32 = u32::from_le_bytes(*b"GRP1");
pub(super) const GROUP_HEADER_BYTES: usize = 32;
/// Groups start at multiples of this; the gap before one is zero.
pub(super) const GROUP_ALIGN: usize = 8;
/// Longest payload of a group (4 MiB): what recovery holds in memory.
pub(super) const MAX_GROUP_PAYLOAD: usize = 4 << 20;
const _: () = assert!(
    MAX_GROUP_PAYLOAD < 1 << 24,
    "the length shares a word with the kind"
);
// The tables of `docs/formats/wal.md`.
const _: () = assert!(SEGMENT_HEADER_BYTES == 64 && GROUP_HEADER_BYTES == 32);
const _: () = assert!(
    SEGMENT_HEADER_BYTES.is_multiple_of(GROUP_ALIGN)
        && GROUP_HEADER_BYTES.is_multiple_of(GROUP_ALIGN)
);

const SUFFIX: &str = ".wal";
/// A segment that is being created; never read, removed at open.
const UNFINISHED_SUFFIX: &str = ".wal-new";

/// `0000000000000001.wal`, with the sequence number in hexadecimal.
pub(super) fn segment_path(dir: &Path, sequence: u64) -> PathBuf {
    dir.join(format!("{sequence:016x}{SUFFIX}"))
}

/// Where a segment is built before it gets its name.
pub(super) fn unfinished_path(dir: &Path, sequence: u64) -> PathBuf {
    dir.join(format!("{sequence:016x}{UNFINISHED_SUFFIX}"))
}

/// What a file name in the log's directory says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Segment(u64),
    Unfinished,
    Foreign,
}

pub(super) fn classify(name: &Path) -> FileKind {
    let Some(name) = name.to_str() else {
        return FileKind::Foreign;
    };
    if let Some(sequence) = name.strip_suffix(SUFFIX).and_then(parse_sequence) {
        FileKind::Segment(sequence)
    } else if name
        .strip_suffix(UNFINISHED_SUFFIX)
        .and_then(parse_sequence)
        .is_some()
    {
        FileKind::Unfinished
    } else {
        FileKind::Foreign
    }
}

fn parse_sequence(stem: &str) -> Option<u64> {
    let plain = stem.len() == 16
        && stem
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    plain.then(|| u64::from_str_radix(stem, 16).ok())?
}

/// Bytes that a payload takes in the file, padding included.
pub(super) fn padded(payload: usize) -> usize {
    payload.next_multiple_of(GROUP_ALIGN)
}

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub database_id: u128,
    pub sequence: u64,
    /// LSN of the first byte of its first group.
    pub first_lsn: Lsn,
    /// Random; no two segments share it.
    pub nonce: u64,
}

/// A nonce that no other segment has: the standard library's hash keys come from the operating
/// system.
pub(super) fn fresh_nonce() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

/// A segment on disk.
#[derive(Debug, Clone)]
pub(super) struct SegmentInfo {
    pub sequence: u64,
    pub first_lsn: Lsn,
    /// Length of the file.
    pub bytes: u64,
}

/// What checksums of groups start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentIdentity(u32);

impl SegmentHeader {
    pub(super) fn encode(&self) -> ([u8; SEGMENT_HEADER_BYTES], SegmentIdentity) {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        bytes[0..8].copy_from_slice(&SEGMENT_MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.database_id.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.first_lsn.0.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.nonce.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        (bytes, SegmentIdentity(crc))
    }

    /// Reads a header; `path` is only for the error. Checksum before version: a version is believed
    /// only when the checksum (whose place is the same in all versions) holds.
    pub(super) fn decode(
        bytes: &[u8; SEGMENT_HEADER_BYTES],
        path: &Path,
    ) -> Result<(Self, SegmentIdentity)> {
        let crc = u32::from_le_bytes(field(bytes, 60));
        if field(bytes, 0) != SEGMENT_MAGIC {
            return Err(Error::corrupt(path, 0, "not a log segment (magic)"));
        }
        if crc != crc32c::crc32c(bytes.get(..60).unwrap_or_default()) {
            return Err(Error::corrupt(path, 0, "checksum of the segment header"));
        }
        let version = u32::from_le_bytes(field(bytes, 8));
        if !(OLDEST_VERSION..=FORMAT_VERSION).contains(&version) {
            return Err(Error::FormatVersion {
                path: path.to_path_buf(),
                found: version,
                supported: FORMAT_VERSION,
            });
        }
        let header = Self {
            database_id: u128::from_le_bytes(field(bytes, 16)),
            sequence: u64::from_le_bytes(field(bytes, 32)),
            first_lsn: Lsn(u64::from_le_bytes(field(bytes, 40))),
            nonce: u64::from_le_bytes(field(bytes, 48)),
        };
        Ok((header, SegmentIdentity(crc)))
    }
}

/// `N` bytes at `at`; zeros where `bytes` ends (then a checksum fails).
fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    if let Some(from) = bytes.get(at..at + N) {
        out.copy_from_slice(from);
    }
    out
}

/// What a group holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupKind {
    /// Whole records, or none (the mark of a clean close).
    Whole,
    /// The start of a record that goes on in the next group.
    First,
    Middle,
    Last,
}

impl GroupKind {
    fn code(self) -> u32 {
        match self {
            Self::Whole => 0,
            Self::First => 1,
            Self::Middle => 2,
            Self::Last => 3,
        }
    }

    fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::Whole,
            1 => Self::First,
            2 => Self::Middle,
            3 => Self::Last,
            _ => return None,
        })
    }
}

/// The header of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupHeader {
    pub kind: GroupKind,
    pub payload_len: usize,
    pub payload_crc: u32,
    pub first_lsn: Lsn,
    /// Everything below was durable when this was written.
    pub durable: Lsn,
}

impl GroupHeader {
    pub(super) fn for_payload(
        kind: GroupKind,
        payload: &[u8],
        first_lsn: Lsn,
        durable: Lsn,
    ) -> Self {
        debug_assert!(payload.len() <= MAX_GROUP_PAYLOAD);
        Self {
            kind,
            payload_len: payload.len(),
            payload_crc: crc32c::crc32c(payload),
            first_lsn,
            durable,
        }
    }

    /// LSN just behind the payload.
    pub(super) fn end_lsn(&self) -> Lsn {
        Lsn(self.first_lsn.0.saturating_add(self.payload_len as u64))
    }

    /// Bytes in the file: header, payload, padding.
    pub(super) fn file_bytes(&self) -> u64 {
        (GROUP_HEADER_BYTES + padded(self.payload_len)) as u64
    }

    /// The header as it stands at `offset` of the segment `identity`.
    pub(super) fn encode(
        &self,
        identity: SegmentIdentity,
        offset: u64,
    ) -> [u8; GROUP_HEADER_BYTES] {
        let mut bytes = [0; GROUP_HEADER_BYTES];
        bytes[0..4].copy_from_slice(&GROUP_MAGIC.to_le_bytes());
        let len_and_kind = self.payload_len as u32 | self.kind.code() << 24;
        bytes[8..12].copy_from_slice(&len_and_kind.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.payload_crc.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.first_lsn.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.durable.0.to_le_bytes());
        let crc = header_crc(identity, offset, &bytes);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the header that stands at `offset`; `None` when there is none that was written there.
    pub(super) fn decode(bytes: &[u8], identity: SegmentIdentity, offset: u64) -> Option<Self> {
        let bytes = bytes.get(..GROUP_HEADER_BYTES)?;
        if u32::from_le_bytes(field(bytes, 0)) != GROUP_MAGIC {
            return None;
        }
        if u32::from_le_bytes(field(bytes, 4)) != header_crc(identity, offset, bytes) {
            return None;
        }
        let len_and_kind = u32::from_le_bytes(field(bytes, 8));
        let header = Self {
            kind: GroupKind::from_code(len_and_kind >> 24)?,
            payload_len: (len_and_kind & 0xFF_FFFF) as usize,
            payload_crc: u32::from_le_bytes(field(bytes, 12)),
            first_lsn: Lsn(u64::from_le_bytes(field(bytes, 16))),
            durable: Lsn(u64::from_le_bytes(field(bytes, 24))),
        };
        let plausible = header.payload_len <= MAX_GROUP_PAYLOAD
            && header.durable <= header.first_lsn
            && header
                .first_lsn
                .0
                .checked_add(header.payload_len as u64)
                .is_some();
        plausible.then_some(header)
    }
}

fn header_crc(identity: SegmentIdentity, offset: u64, bytes: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(identity.0, &offset.to_le_bytes());
    crc32c::crc32c_append(crc, bytes.get(8..).unwrap_or_default())
}

/// A group in `bytes`, which stand at `offset` of the segment: its header and payload, if
/// both are what was written there. Never panics.
pub(super) fn decode_group(
    bytes: &[u8],
    identity: SegmentIdentity,
    offset: u64,
) -> Option<(GroupHeader, &[u8])> {
    let header = GroupHeader::decode(bytes, identity, offset)?;
    let payload = bytes.get(GROUP_HEADER_BYTES..)?.get(..header.payload_len)?;
    (crc32c::crc32c(payload) == header.payload_crc).then_some((header, payload))
}
