//! Records of the log and of batches: their bytes, written and read.
//!
//! `kind (1) | tree, key length, value length (LEB128) | key | value`; the layout table is in
//! `docs/formats/wal.md`. A record has no checksum: the group around it has. Still a decoder trusts
//! no byte. No threads, no I/O.

use crate::{
    error::{Error, Result},
    limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES},
};

/// Most bytes that the operations of one batch may take, encoded (512 MiB).
pub(crate) const MAX_BATCH_BYTES: usize = 512 << 20;
/// Longest record, encoded.
pub(crate) const MAX_RECORD_BYTES: usize = MAX_BATCH_BYTES + MAX_RECORD_HEAD_BYTES;

const PUT: u8 = 1;
const REMOVE: u8 = 2;
const BATCH: u8 = 3;
const REMOVE_RANGE: u8 = 4;
const LOAD: u8 = 5;
const MERGE: u8 = 6;
const RESOLVED: u8 = 7;
const UNMERGED: u8 = 8;

/// The end of a range may be one byte longer than a key.
const MAX_BOUND_BYTES: usize = MAX_KEY_BYTES + 1;

/// A kind byte and three varints of 32 bits.
const MAX_RECORD_HEAD_BYTES: usize = 1 + 3 * 5;

/// One record, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordRef<'a> {
    Put {
        tree: u32,
        key: &'a [u8],
        value: &'a [u8],
    },
    Remove {
        tree: u32,
        key: &'a [u8],
    },
    /// Every key of `[from, to)` is removed; `None`: no end. Bounds may be one byte longer than a
    /// key.
    RemoveRange {
        tree: u32,
        from: &'a [u8],
        to: Option<&'a [u8]>,
    },
    /// `operand` is merged into the value of `key`, which was not known. Never in a batch.
    Merge {
        tree: u32,
        key: &'a [u8],
        operand: &'a [u8],
    },
    /// What operands so far have made of `key`; `None`: they made no difference. Never in a batch.
    Resolved {
        tree: u32,
        key: &'a [u8],
        value: Option<&'a [u8]>,
    },
    /// Index Y had no key of `[from, to)`, durably, and may have been given some since: records
    /// before this one say nothing of them any more. Never in a batch.
    Load {
        tree: u32,
        from: &'a [u8],
        to: Option<&'a [u8]>,
    },
    /// `ops` comes from [`BatchEncoder`] and is read by [`batch_ops`].
    Batch {
        ops: &'a [u8],
        count: u32,
    },
}

/// Why bytes are not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// A longer prefix might be one.
    Incomplete,
    Invalid(&'static str),
}

/// The encoded bytes before key, value or operations. Put together in a register: byte stores that
/// are read back as a block cost more than the rest of an append.
pub(super) struct Head {
    bytes: [u8; 16],
    len: usize,
}
const _: () = assert!(MAX_RECORD_HEAD_BYTES <= 16, "a head fits a u128");

#[inline]
fn head<const N: usize>(kind: u8, numbers: [u32; N]) -> Head {
    let mut word = u128::from(kind);
    let mut bits = 8;
    for mut number in numbers {
        while number >= 0x80 {
            word |= u128::from(number as u8 | 0x80) << bits;
            bits += 8;
            number >>= 7;
        }
        word |= u128::from(number as u8) << bits;
        bits += 8;
    }
    Head {
        bytes: word.to_le_bytes(),
        len: bits / 8,
    }
}

impl Head {
    #[inline]
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl<'a> RecordRef<'a> {
    /// Bytes that it takes in the log.
    #[inline]
    #[cfg(test)]
    pub(crate) fn encoded_len(&self) -> usize {
        let (head, a, b) = self.parts();
        head.len + a.len() + b.len()
    }

    /// Whether it keeps the limits of `limits.rs`. Only then do its lengths fit their fields.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        let (key, value): (&[u8], &[u8]) = match self {
            Self::Put { key, value, .. } => (key, value),
            Self::Merge { key, operand, .. } => (key, operand),
            Self::Resolved { key, value, .. } => (key, value.unwrap_or_default()),
            Self::Remove { key, .. } => (key, &[]),
            Self::RemoveRange { from, to, .. } | Self::Load { from, to, .. } => {
                let len = from.len().max(to.map_or(0, <[u8]>::len));
                if len > MAX_BOUND_BYTES {
                    return Err(Error::KeyTooLong {
                        len,
                        limit: MAX_BOUND_BYTES,
                    });
                }
                (&[], &[])
            }
            Self::Batch { ops, .. } if ops.len() > MAX_BATCH_BYTES => {
                return Err(Error::BatchTooLarge {
                    bytes: ops.len(),
                    limit: MAX_BATCH_BYTES,
                });
            }
            Self::Batch { .. } => (&[], &[]),
        };
        if key.len() > MAX_KEY_BYTES {
            return Err(Error::KeyTooLong {
                len: key.len(),
                limit: MAX_KEY_BYTES,
            });
        }
        if value.len() > MAX_VALUE_BYTES {
            return Err(Error::ValueTooLong {
                len: value.len(),
                limit: MAX_VALUE_BYTES,
            });
        }
        Ok(())
    }

    /// Its encoding, in three parts, of a record that was checked.
    #[inline]
    pub(super) fn parts(&self) -> (Head, &'a [u8], &'a [u8]) {
        match *self {
            Self::Put { tree, key, value } => of_entry(PUT, tree, key, value),
            Self::Merge { tree, key, operand } => of_entry(MERGE, tree, key, operand),
            Self::Resolved { tree, key, value } => match value {
                Some(value) => of_entry(RESOLVED, tree, key, value),
                None => (head(UNMERGED, [tree, key.len() as u32]), key, &[]),
            },
            Self::Remove { tree, key } => (head(REMOVE, [tree, key.len() as u32]), key, &[]),
            Self::RemoveRange { tree, from, to } => of_range(REMOVE_RANGE, tree, from, to),
            Self::Load { tree, from, to } => of_range(LOAD, tree, from, to),
            Self::Batch { ops, count } => (head(BATCH, [count, ops.len() as u32]), ops, &[]),
        }
    }
}

#[inline]
fn of_entry<'a>(kind: u8, tree: u32, key: &'a [u8], value: &'a [u8]) -> (Head, &'a [u8], &'a [u8]) {
    let head = head(kind, [tree, key.len() as u32, value.len() as u32]);
    (head, key, value)
}

#[inline]
fn of_range<'a>(
    kind: u8,
    tree: u32,
    from: &'a [u8],
    to: Option<&'a [u8]>,
) -> (Head, &'a [u8], &'a [u8]) {
    // 0: no end.
    let end = to.map_or(0, |to| to.len() as u32 + 1);
    let head = head(kind, [tree, from.len() as u32, end]);
    (head, from, to.unwrap_or_default())
}

/// Reads the record at the start of `bytes`; returns it with its length. Never panics.
pub(crate) fn decode_record(bytes: &[u8]) -> Result<(RecordRef<'_>, usize), Malformed> {
    let mut rest = bytes;
    let kind = take_byte(&mut rest)?;
    let record = match kind {
        PUT | MERGE | RESOLVED => {
            let tree = take_varint(&mut rest)?;
            let key_len = take_len(&mut rest, MAX_KEY_BYTES, "key length over the limit")?;
            let value_len = take_len(&mut rest, MAX_VALUE_BYTES, "value length over the limit")?;
            let key = take_bytes(&mut rest, key_len)?;
            let value = take_bytes(&mut rest, value_len)?;
            match kind {
                PUT => RecordRef::Put { tree, key, value },
                MERGE => RecordRef::Merge {
                    tree,
                    key,
                    operand: value,
                },
                _ => RecordRef::Resolved {
                    tree,
                    key,
                    value: Some(value),
                },
            }
        }
        REMOVE | UNMERGED => {
            let tree = take_varint(&mut rest)?;
            let key_len = take_len(&mut rest, MAX_KEY_BYTES, "key length over the limit")?;
            let key = take_bytes(&mut rest, key_len)?;
            match kind {
                REMOVE => RecordRef::Remove { tree, key },
                _ => RecordRef::Resolved {
                    tree,
                    key,
                    value: None,
                },
            }
        }
        REMOVE_RANGE | LOAD => {
            let tree = take_varint(&mut rest)?;
            let what = "end of a range over the limit";
            let from_len = take_len(&mut rest, MAX_BOUND_BYTES, what)?;
            let end = take_len(&mut rest, MAX_BOUND_BYTES + 1, what)?;
            let from = take_bytes(&mut rest, from_len)?;
            let to = match end.checked_sub(1) {
                Some(len) => Some(take_bytes(&mut rest, len)?),
                None => None,
            };
            match kind {
                LOAD => RecordRef::Load { tree, from, to },
                _ => RecordRef::RemoveRange { tree, from, to },
            }
        }
        BATCH => {
            let count = take_varint(&mut rest)?;
            let len = take_len(&mut rest, MAX_BATCH_BYTES, "batch length over the limit")?;
            RecordRef::Batch {
                ops: take_bytes(&mut rest, len)?,
                count,
            }
        }
        _ => return Err(Malformed::Invalid("unknown kind of record")),
    };
    Ok((record, bytes.len() - rest.len()))
}

fn take_byte(rest: &mut &[u8]) -> Result<u8, Malformed> {
    let (&first, tail) = rest.split_first().ok_or(Malformed::Incomplete)?;
    *rest = tail;
    Ok(first)
}

fn take_bytes<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], Malformed> {
    let (taken, tail) = rest.split_at_checked(len).ok_or(Malformed::Incomplete)?;
    *rest = tail;
    Ok(taken)
}

fn take_varint(rest: &mut &[u8]) -> Result<u32, Malformed> {
    let mut value = 0u32;
    for shift in [0, 7, 14, 21, 28] {
        let byte = take_byte(rest)?;
        let bits = u32::from(byte & 0x7F);
        if shift == 28 && bits > 0xF {
            return Err(Malformed::Invalid("number over 32 bits"));
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Malformed::Invalid("number over 5 bytes"))
}

fn take_len(rest: &mut &[u8], limit: usize, what: &'static str) -> Result<usize, Malformed> {
    let len = take_varint(rest)? as usize;
    if len > limit {
        Err(Malformed::Invalid(what))
    } else {
        Ok(len)
    }
}

/// Collects the operations of a batch in the form that [`RecordRef::Batch`] carries.
#[derive(Debug, Default)]
pub(crate) struct BatchEncoder {
    ops: Vec<u8>,
    count: u32,
}

impl BatchEncoder {
    /// Adds a put or a removal, of a key or a range. Errors: a limit is broken (then nothing was
    /// added), `Unsupported` for any other record.
    pub(crate) fn push(&mut self, op: RecordRef<'_>) -> Result<()> {
        if outside_batches(&op).is_some() {
            return Err(Error::Unsupported {
                what: "a batch, a load or a merge inside a batch".into(),
            });
        }
        op.check()?;
        let (head, a, b) = op.parts();
        let bytes = self.ops.len() + head.len + a.len() + b.len();
        if bytes > MAX_BATCH_BYTES || self.count == u32::MAX {
            return Err(Error::BatchTooLarge {
                bytes,
                limit: MAX_BATCH_BYTES,
            });
        }
        for part in [head.as_slice(), a, b] {
            self.ops.extend_from_slice(part);
        }
        self.count += 1;
        Ok(())
    }

    /// The record to append.
    pub(crate) fn record(&self) -> RecordRef<'_> {
        RecordRef::Batch {
            ops: &self.ops,
            count: self.count,
        }
    }

    /// Encoded bytes so far.
    pub(crate) fn bytes(&self) -> usize {
        self.ops.len()
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> u32 {
        self.count
    }
}

/// The records in `bytes`, in order; ends after the first malformed one.
pub(crate) fn records(bytes: &[u8]) -> impl Iterator<Item = Result<RecordRef<'_>, Malformed>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let step = decode_record(rest);
        rest = match step {
            Ok((_, len)) => rest.get(len..).unwrap_or_default(),
            Err(_) => &[],
        };
        Some(step.map(|(record, _)| record))
    })
}

/// What is wrong with a batch that has `op` in it.
fn outside_batches(op: &RecordRef<'_>) -> Option<&'static str> {
    match op {
        RecordRef::Batch { .. } => Some("a batch inside a batch"),
        RecordRef::Load { .. } => Some("a load inside a batch"),
        RecordRef::Merge { .. } | RecordRef::Resolved { .. } => Some("a merge inside a batch"),
        RecordRef::Put { .. } | RecordRef::Remove { .. } | RecordRef::RemoveRange { .. } => None,
    }
}

/// The operations of a batch, in order; what follows a malformed one means nothing.
pub(crate) fn batch_ops(ops: &[u8]) -> impl Iterator<Item = Result<RecordRef<'_>, Malformed>> {
    records(ops).map(|op| match outside_batches(&op?) {
        Some(what) => Err(Malformed::Invalid(what)),
        None => op,
    })
}
