//! Finding and reading entries of a leaf.
//!
//! Nothing here trusts what it reads: lengths and offsets are clamped, loops are bounded, and a pointer is
//! followed only after `stable` said that it was read from a leaf that has not changed since.
//!
//! Keeps: the caller validates before it uses the answer.

use super::{
    large::LargeRef,
    layout::{LARGE, LeafRef, MAX_INLINE_SUFFIX, MAX_INLINE_VALUE, Slot, head},
};
use std::cmp::Ordering;

/// A longer run of equal heads is searched by halving.
const LINEAR_RUN: usize = 4;

/// Where suffix and value of an entry are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Both in the leaf.
    Inline,
    /// The suffix in the leaf, the value in a large block.
    ValueOut,
    /// Both in a large block.
    BothOut,
}

impl Form {
    /// The form of a new entry.
    pub(crate) fn of(suffix_len: usize, value_len: usize) -> Self {
        if suffix_len > MAX_INLINE_SUFFIX {
            Self::BothOut
        } else if value_len > MAX_INLINE_VALUE {
            Self::ValueOut
        } else {
            Self::Inline
        }
    }
}

/// Where an entry's parts are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryAt {
    pub slot: Slot,
    pub form: Form,
    /// Length of the suffix, wherever it is.
    pub suffix_len: usize,
    /// Length of the value, wherever it is.
    pub value_len: usize,
    /// Offset of what follows the two lengths.
    pub body: usize,
}

impl EntryAt {
    /// Bytes of suffix in the leaf.
    #[inline]
    pub(crate) fn inline_suffix_len(&self) -> usize {
        if self.form == Form::BothOut {
            0
        } else {
            self.suffix_len
        }
    }

    /// Offset of the value, or of the pointer to the large block.
    #[inline]
    pub(crate) fn tail(&self) -> usize {
        self.body + self.inline_suffix_len()
    }

    /// Bytes of value, or of the pointer, in the leaf.
    pub(crate) fn tail_len(&self) -> usize {
        if self.form == Form::Inline {
            self.value_len
        } else {
            8
        }
    }

    /// Heap bytes of the entry.
    pub(crate) fn size(&self) -> usize {
        self.tail() + self.tail_len() - self.slot.offset()
    }
}

/// Heap bytes that an entry takes.
pub(crate) fn entry_size(suffix_len: usize, value_len: usize, form: Form) -> usize {
    let body = match form {
        Form::Inline => suffix_len + value_len,
        Form::ValueOut => suffix_len + 8,
        Form::BothOut => 8,
    };
    varint_len(suffix_len) + varint_len(value_word(value_len, form)) + body
}

/// The second number of an entry: the length of the value; with a large block also whether the suffix is there.
fn value_word(value_len: usize, form: Form) -> usize {
    match form {
        Form::Inline => value_len,
        Form::ValueOut => value_len << 1,
        Form::BothOut => value_len << 1 | 1,
    }
}

/// What an entry starts with: its two lengths. At most 10 bytes.
pub(super) struct Lengths {
    bytes: [u8; 10],
    len: usize,
}

impl Lengths {
    pub(super) fn new(suffix_len: usize, value_len: usize, form: Form) -> Self {
        let mut lengths = Self {
            bytes: [0; 10],
            len: 0,
        };
        put_varint(suffix_len, &mut lengths.bytes, &mut lengths.len);
        put_varint(
            value_word(value_len, form),
            &mut lengths.bytes,
            &mut lengths.len,
        );
        lengths
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

fn varint_len(n: usize) -> usize {
    ((n | 1).ilog2() / 7 + 1) as usize
}

/// Reads a varint from the low bytes of `word`; returns it and its length (at most 5).
#[inline]
fn varint(word: u64) -> (usize, usize) {
    if word & 0x80 == 0 {
        return ((word & 0x7F) as usize, 1);
    }
    let (mut n, mut len) = (0u64, 0);
    while len < 5 {
        let byte = word >> (8 * len);
        n |= (byte & 0x7F) << (7 * len);
        len += 1;
        if byte & 0x80 == 0 {
            break;
        }
    }
    (n as usize, len)
}

/// Appends the varint of `n` to `out` at `*at`.
fn put_varint(mut n: usize, out: &mut [u8], at: &mut usize) {
    while n >= 0x80 {
        out[*at] = n as u8 | 0x80;
        *at += 1;
        n >>= 7;
    }
    out[*at] = n as u8;
    *at += 1;
}

impl<'g> LeafRef<'g> {
    /// The entry of slot `i`.
    #[inline]
    pub(crate) fn entry(self, i: usize) -> EntryAt {
        let slot = self.slot(i);
        let offset = slot.offset();
        let word = self.words().read_u64(offset);
        let (suffix_len, a) = varint(word);
        let (number, b) = varint(word >> (8 * a));
        let (form, value_len) = if !slot.is(LARGE) {
            (Form::Inline, number)
        } else if number & 1 == 0 {
            (Form::ValueOut, number >> 1)
        } else {
            (Form::BothOut, number >> 1)
        };
        EntryAt {
            slot,
            form,
            suffix_len,
            value_len,
            body: offset + a + b,
        }
    }

    /// The word that points to the large block of `entry`; to be followed after validation only.
    #[inline]
    pub(super) fn large_word(self, entry: &EntryAt) -> u64 {
        self.words().read_u64(entry.tail())
    }

    /// The slot of `suffix`, or the one where it belongs. `stable` is asked before a pointer is followed and
    /// says whether the leaf is still as it was when the search began; `None` when it is not.
    #[inline]
    pub(super) fn find(
        self,
        suffix: &[u8],
        stable: impl Fn() -> bool,
    ) -> Option<Result<usize, usize>> {
        let n = self.meta().n;
        let wanted = head(suffix);
        let first = self.first_head_at_least(n, wanted);
        let mut end = first;
        while end < n && self.slot(end).head() == wanted {
            if end - first == LINEAR_RUN {
                return self.find_among_equal_heads(end, n, wanted, suffix, stable);
            }
            match self.compare(end, suffix, &stable)? {
                Ordering::Equal => return Some(Ok(end)),
                Ordering::Greater => return Some(Err(end)),
                Ordering::Less => end += 1,
            }
        }
        Some(Err(end))
    }

    /// The number of slots with a head below `wanted`.
    #[inline]
    fn first_head_at_least(self, n: usize, wanted: u16) -> usize {
        let (mut base, mut len) = (0, n);
        while len > 1 {
            let half = len / 2;
            let below = self.slot(base + half - 1).head() < wanted;
            base += if below { half } else { 0 };
            len -= half;
        }
        base + usize::from(n > 0 && self.slot(base).head() < wanted)
    }

    /// Goes on with `find` in `lo..n`: all before `lo` are less.
    #[cold]
    fn find_among_equal_heads(
        self,
        mut lo: usize,
        n: usize,
        wanted: u16,
        suffix: &[u8],
        stable: impl Fn() -> bool,
    ) -> Option<Result<usize, usize>> {
        let mut hi = n;
        while lo < hi {
            let mid = (lo + hi) / 2;
            let order = match self.slot(mid).head().cmp(&wanted) {
                Ordering::Equal => self.compare(mid, suffix, &stable)?,
                other => other,
            };
            match order {
                Ordering::Equal => return Some(Ok(mid)),
                Ordering::Greater => hi = mid,
                Ordering::Less => lo = mid + 1,
            }
        }
        Some(Err(lo))
    }

    /// Compares the suffix of entry `i` with `suffix`.
    #[inline]
    fn compare(self, i: usize, suffix: &[u8], stable: impl Fn() -> bool) -> Option<Ordering> {
        let entry = self.entry(i);
        if entry.form != Form::BothOut {
            let words = self.words();
            if entry.suffix_len == suffix.len() && words.eq(entry.body, suffix) {
                return Some(Ordering::Equal);
            }
            return Some(words.cmp(entry.body, entry.suffix_len, suffix));
        }
        let word = self.large_word(&entry);
        if !stable() {
            return None;
        }
        // SAFETY: the leaf did not change since the entry and the word were read.
        let large = unsafe { LargeRef::from_raw(word) };
        Some(large.suffix(entry.suffix_len).cmp(suffix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip() {
        for n in [
            0,
            1,
            127,
            128,
            300,
            16_383,
            16_384,
            65_534,
            (1 << 28) - 1,
            1 << 28,
        ] {
            let mut bytes = [0u8; 8];
            let mut at = 0;
            put_varint(n, &mut bytes, &mut at);
            assert_eq!(at, varint_len(n));
            assert_eq!(varint(u64::from_le_bytes(bytes)), (n, at));
        }
    }
}
