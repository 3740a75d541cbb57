//! What a leaf has for a key: a short value, or where a longer one lies.

use crate::address::Address;
use std::fmt;

/// Longest value that lies in the leaf.
pub const MAX_INLINE_BYTES: usize = 128;
/// The mark of a value out of line: its address and its number.
const FAR: u8 = u8::MAX;
const FAR_BYTES: usize = 16;

/// A value in a leaf, or the place of one. Bytes beyond its length are zero.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    mark: u8,
    bytes: [u8; MAX_INLINE_BYTES],
}

impl Stored {
    /// A short value; `None`: too long.
    pub fn inline(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= MAX_INLINE_BYTES).then(|| Self::with(bytes.len() as u8, bytes))
    }

    /// A value at `at` whose block has this number.
    pub fn far(at: Address, number: u64) -> Self {
        let mut bytes = [0; FAR_BYTES];
        bytes[..8].copy_from_slice(&at.word().to_le_bytes());
        bytes[8..].copy_from_slice(&number.to_le_bytes());
        Self::with(FAR, &bytes)
    }

    fn with(mark: u8, from: &[u8]) -> Self {
        let mut bytes = [0; MAX_INLINE_BYTES];
        bytes[..from.len()].copy_from_slice(from);
        Self { mark, bytes }
    }

    /// The value; `None`: it is out of line.
    pub fn as_inline(&self) -> Option<&[u8]> {
        (self.mark != FAR).then(|| self.as_slice())
    }

    /// Address, as it stands, and number of the block of a value out of line.
    pub fn as_far(&self) -> Option<(u64, u64)> {
        let (words, _) = self.as_slice().as_chunks::<8>();
        match words {
            [at, number] if self.mark == FAR => {
                Some((u64::from_le_bytes(*at), u64::from_le_bytes(*number)))
            }
            _ => None,
        }
    }

    pub(super) fn mark(&self) -> u8 {
        self.mark
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..bytes_of(self.mark)]
    }

    /// From what a leaf has; a mark that is none gives a wrong value.
    pub(super) fn read(mark: u8, copy: impl FnOnce(&mut [u8])) -> Self {
        let mut bytes = [0; MAX_INLINE_BYTES];
        copy(&mut bytes[..bytes_of(mark)]);
        Self { mark, bytes }
    }

    pub(super) fn push_words(&self, words: &mut Vec<u64>) {
        words.push(u64::from(self.mark));
        push_bytes(self.as_slice(), words);
    }

    pub(super) fn from_words(words: &[u64]) -> Option<Self> {
        let (mark, rest) = words.split_first()?;
        let mark = u8::try_from(*mark).ok().filter(|mark| is_mark(*mark))?;
        let is_whole = rest.len() == bytes_of(mark).div_ceil(8);
        is_whole.then(|| Self::read(mark, |bytes| copy_words(rest, bytes)))
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} \"{}\"", self.mark, self.as_slice().escape_ascii())
    }
}

/// A mark that a value can have.
pub(super) fn is_mark(mark: u8) -> bool {
    mark == FAR || usize::from(mark) <= MAX_INLINE_BYTES
}

/// Bytes behind a mark, at most [`MAX_INLINE_BYTES`].
pub(super) fn bytes_of(mark: u8) -> usize {
    match mark {
        FAR => FAR_BYTES,
        length => usize::from(length).min(MAX_INLINE_BYTES),
    }
}

/// Appends `bytes`, in words.
pub(super) fn push_bytes(bytes: &[u8], words: &mut Vec<u64>) {
    words.extend(bytes.chunks(8).map(|chunk| {
        let mut whole = [0; 8];
        whole[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(whole)
    }));
}

/// Takes bytes out of words.
pub(super) fn copy_words(words: &[u64], into: &mut [u8]) {
    for (chunk, word) in into.chunks_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
    }
}
