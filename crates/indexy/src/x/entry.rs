//! How an entry is written: its flags, where its parts are, and the lengths that it starts with.
//!
//! Not here: the blocks that entries stand in (node files), the block of a large one (`large.rs`).

#![forbid(unsafe_code)]

use super::large::LargeRef;

/// Longer values live out of line.
pub(crate) const MAX_INLINE_VALUE: usize = 128;
/// Longer suffixes live out of line, with their value.
pub(crate) const MAX_INLINE_SUFFIX: usize = 256;

/// Newer than what Y was given.
pub(crate) const DIRTY: u32 = 1;
/// Y may hold some version of the key.
pub(crate) const IN_Y: u32 = 2;
/// The key was removed; without [`IN_Y`], an operand is here instead of a value.
pub(crate) const TOMBSTONE: u32 = 4;

/// The entry is an operand: the key's value is what the tree's operator makes of it and of what Y
/// has. It is dirty until it is resolved.
#[inline]
pub(crate) const fn is_operand(flags: u32) -> bool {
    flags & (TOMBSTONE | IN_Y) == TOMBSTONE
}

/// The entry says that the key was removed, and has no value.
#[inline]
pub(crate) const fn is_removal(flags: u32) -> bool {
    flags & (TOMBSTONE | IN_Y) == TOMBSTONE | IN_Y
}

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
    #[inline]
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

/// Heap bytes that an entry takes.
#[inline]
pub(crate) fn entry_size(suffix_len: usize, value_len: usize, form: Form) -> usize {
    let body = match form {
        Form::Inline => suffix_len + value_len,
        Form::ValueOut => suffix_len + 8,
        Form::BothOut => 8,
    };
    varint_len(suffix_len) + varint_len(value_word(value_len, form)) + body
}

/// The second number of an entry: the length of the value; with a large block also whether the
/// suffix is there.
#[inline]
fn value_word(value_len: usize, form: Form) -> usize {
    match form {
        Form::Inline => value_len,
        Form::ValueOut => value_len << 1,
        Form::BothOut => value_len << 1 | 1,
    }
}

/// What an entry starts with: its two lengths. At most 10 bytes.
pub(crate) struct Lengths {
    bytes: [u8; 10],
    len: usize,
}

impl Lengths {
    pub(crate) fn new(suffix_len: usize, value_len: usize, form: Form) -> Self {
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

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[inline]
fn varint_len(n: usize) -> usize {
    ((n | 1).ilog2() / 7 + 1) as usize
}

/// Reads a varint from the low bytes of `word`; returns it and its length (at most 5).
#[inline]
pub(crate) fn varint(word: u64) -> (usize, usize) {
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

/// An entry to be written.
#[derive(Clone, Copy)]
pub(crate) struct NewEntry<'a> {
    pub suffix: &'a [u8],
    /// Empty for a tombstone.
    pub value: &'a [u8],
    /// The block that holds the value, and the suffix if that is long.
    pub large: Option<LargeRef<'a>>,
    /// `DIRTY`, `IN_Y`, `TOMBSTONE`.
    pub flags: u32,
}

impl NewEntry<'_> {
    #[inline]
    pub(crate) fn form(&self) -> Form {
        match self.large {
            None => Form::Inline,
            Some(large) if large.suffix_len() > 0 => Form::BothOut,
            Some(_) => Form::ValueOut,
        }
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
