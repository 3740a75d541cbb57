//! Fixed leaves: all keys of a page have the same length, and all values that are there.
//!
//! No slots and no lengths: behind the header come the heads (the first four key bytes behind the
//! prefix, as a number each), the prefix, the tails (what is left of the keys), the values and, if
//! some entries are deletes, a bit an entry. `docs/formats/pages.md` has it in full.
//!
//! Every access is checked, as in `node.rs`.

use super::{
    HEADER_BYTES, Header,
    heads::{HEAD_BYTES, Heads, Suffix},
    put,
};
use crate::error::Result;
use std::{cmp::Ordering, ops::Range};

/// In the header, of the values' length: there are deletes.
pub(super) const DELETES: u16 = 1 << 15;
// Behind the header the heads are aligned.
const _: () = assert!(HEAD_BYTES == 4 && HEADER_BYTES.is_multiple_of(HEAD_BYTES));

/// The lengths of keys and values that a fixed leaf would hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lengths {
    key: usize,
    /// `None`: all are deletes.
    value: Option<usize>,
    deletes: bool,
}

impl Lengths {
    /// Of one entry, which is near; `value` is `None` for a delete.
    pub(super) fn new(key: usize, value: Option<usize>) -> Self {
        Self {
            key,
            value,
            deletes: value.is_none(),
        }
    }

    /// Of these and one more; `None` if they do not go together.
    #[inline]
    pub(super) fn with(self, one: Self) -> Option<Self> {
        let both = matches!((self.value, one.value), (Some(a), Some(b)) if a != b);
        (self.key == one.key && !both).then_some(Self {
            key: self.key,
            value: self.value.or(one.value),
            deletes: self.deletes || one.deletes,
        })
    }

    /// The form of a leaf of such entries whose keys share `prefix` bytes.
    pub(super) fn shape(self, prefix: usize) -> Shape {
        Shape {
            suffix: self.key.saturating_sub(prefix),
            value: self.value.unwrap_or(0),
            deletes: self.deletes,
        }
    }
}

/// The form of a fixed leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Bytes of a key behind the prefix.
    suffix: usize,
    value: usize,
    deletes: bool,
}

impl Shape {
    fn read(header: &Header) -> Self {
        let [a, b, c, d] = header.payload.to_le_bytes();
        let value = u16::from_le_bytes([c, d]);
        Self {
            suffix: usize::from(u16::from_le_bytes([a, b])),
            value: usize::from(value & !DELETES),
            deletes: value & DELETES != 0,
        }
    }

    /// As it stands in the header.
    pub(super) fn payload(self) -> u32 {
        let flag = if self.deletes { DELETES } else { 0 };
        debug_assert!(self.value < usize::from(DELETES));
        self.suffix as u32 | u32::from(self.value as u16 | flag) << 16
    }

    /// Bytes of a key that neither prefix nor head holds.
    fn tail(self) -> usize {
        self.suffix.saturating_sub(HEAD_BYTES)
    }

    /// Bytes of `entries` entries, besides the prefix.
    pub(super) fn bytes(self, entries: usize) -> usize {
        entries * (HEAD_BYTES + self.tail() + self.value) + self.delete_bytes(entries)
    }

    fn delete_bytes(self, entries: usize) -> usize {
        if self.deletes { entries.div_ceil(8) } else { 0 }
    }
}

/// Where the parts of a fixed leaf lie.
#[derive(Clone, Copy)]
struct Parts {
    tails: usize,
    values: usize,
    deletes: usize,
    end: usize,
}

impl Parts {
    fn new(shape: Shape, entries: usize, prefix: usize) -> Self {
        let tails = HEADER_BYTES + entries * HEAD_BYTES + prefix;
        let values = tails + entries * shape.tail();
        let deletes = values + entries * shape.value;
        let end = deletes + shape.delete_bytes(entries);
        Self {
            tails,
            values,
            deletes,
            end,
        }
    }
}

/// The parts of a fixed leaf, all of them inside the page.
#[derive(Clone, Copy)]
pub(super) struct Fixed<'a> {
    heads: Heads<'a>,
    pub(super) prefix: &'a [u8],
    tails: &'a [u8],
    deletes: &'a [u8],
    values: usize,
    shape: Shape,
}

impl<'a> Fixed<'a> {
    /// `None`: the page is too short for what the header says.
    #[inline]
    pub(super) fn new(page: &'a [u8], header: &Header) -> Option<Self> {
        let (entries, prefix) = (usize::from(header.count), usize::from(header.prefix));
        let shape = Shape::read(header);
        let parts = Parts::new(shape, entries, prefix);
        let body = page.get(HEADER_BYTES..parts.tails)?;
        let (heads, prefix) = body.split_at_checked(entries * HEAD_BYTES)?;
        Some(Self {
            heads: Heads(heads.as_chunks().0),
            prefix,
            tails: page.get(parts.tails..parts.values)?,
            deletes: page.get(parts.deletes..parts.end)?,
            values: parts.values,
            shape,
        })
    }

    #[inline]
    fn tail(&self, i: usize) -> Option<&'a [u8]> {
        let bytes = self.shape.tail();
        self.tails.get(i * bytes..(i + 1) * bytes)
    }

    #[inline]
    pub(super) fn suffix(&self, i: usize) -> Option<Suffix<'a>> {
        let head = self.heads.get(i)?;
        Some(Suffix::new(head, self.shape.suffix, self.tail(i)?))
    }

    /// Where value `i` is in the page; `None`: the entry is a delete. `i` is the number of an
    /// entry.
    #[inline]
    pub(super) fn value(&self, i: usize) -> Option<Range<usize>> {
        if self.shape.deletes {
            let byte = self.deletes.get(i / 8)?;
            if byte >> (i % 8) & 1 == 1 {
                return None;
            }
        }
        let at = self.values + i * self.shape.value;
        Some(at..at + self.shape.value)
    }

    /// The first entry whose key is not less than the prefix and `rest` behind it, whose head is
    /// `head`, and whether it is equal.
    #[inline]
    pub(super) fn search(&self, head: u32, rest: &[u8]) -> Result<Option<(usize, bool)>> {
        self.heads.search(head, true, |i| Ok(self.compare(i, rest)))
    }

    /// Key `i`, which has the head of `rest`, against `rest`.
    #[inline]
    fn compare(&self, i: usize, rest: &[u8]) -> Option<Ordering> {
        if self.shape.suffix.min(rest.len()) < HEAD_BYTES {
            // One is the other with zero bytes behind.
            return Some(self.shape.suffix.cmp(&rest.len()));
        }
        Some(self.tail(i)?.cmp(rest.get(HEAD_BYTES..)?))
    }
}

/// Writes the entries of a fixed leaf one after the other into a page whose body is zeros.
pub(super) struct FixedWriter<'p> {
    page: &'p mut [u8],
    shape: Shape,
    parts: Parts,
}

impl<'p> FixedWriter<'p> {
    pub(super) fn new(page: &'p mut [u8], shape: Shape, entries: usize, prefix: &[u8]) -> Self {
        let parts = Parts::new(shape, entries, prefix.len());
        put(page, HEADER_BYTES + entries * HEAD_BYTES, prefix);
        Self { page, shape, parts }
    }

    /// Writes entry `i`: its key behind the prefix, the head of that, and its value (`None`: a
    /// delete).
    #[inline]
    pub(super) fn put(&mut self, i: usize, head: u32, suffix: &[u8], value: Option<&[u8]>) {
        put(
            self.page,
            HEADER_BYTES + i * HEAD_BYTES,
            &head.to_le_bytes(),
        );
        let tail = suffix.get(HEAD_BYTES..).unwrap_or_default();
        put(self.page, self.parts.tails + i * self.shape.tail(), tail);
        match value {
            Some(value) => put(self.page, self.parts.values + i * self.shape.value, value),
            None => {
                if let Some(byte) = self.page.get_mut(self.parts.deletes + i / 8) {
                    *byte |= 1 << (i % 8);
                }
            }
        }
    }
}
