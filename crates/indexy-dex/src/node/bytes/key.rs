//! A key of a limited length. Bytes beyond its length are zero.

use std::fmt;

/// A key of 0 to `N` bytes, in bytewise order. `N`: 16, 32, 64 or 128.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bytes<const N: usize> {
    length: u8,
    bytes: [u8; N],
}

impl<const N: usize> Bytes<N> {
    pub(super) const EMPTY: Self = Self {
        length: 0,
        bytes: [0; N],
    };
    pub(super) const GREATEST: Self = Self {
        length: Self::LIMIT,
        bytes: [u8::MAX; N],
    };
    /// `N` as a byte.
    pub(super) const LIMIT: u8 = {
        assert!(matches!(N, 16 | 32 | 64 | 128));
        N as u8
    };

    /// `None`: too long.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= N).then(|| Self::cut(bytes))
    }

    /// The first `N` of `bytes`.
    pub fn cut(bytes: &[u8]) -> Self {
        let length = bytes.len().min(N);
        let mut key = Self {
            length: length as u8,
            bytes: [0; N],
        };
        key.bytes[..length].copy_from_slice(&bytes[..length]);
        key
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Bytes that both start with.
    pub(super) fn common(&self, other: &Self) -> usize {
        let pairs = self.as_slice().iter().zip(other.as_slice());
        pairs.take_while(|(one, other)| one == other).count()
    }

    /// The shortest key above `self` and up to `next`, which is above it too.
    pub(super) fn separator(&self, next: &Self) -> Self {
        Self::cut(&next.as_slice()[..(self.common(next) + 1).min(next.as_slice().len())])
    }

    /// Appends bytes, as far as there is room.
    pub(super) fn extended(mut self, more: &[u8]) -> Self {
        let start = usize::from(self.length);
        let bytes = more.len().min(N - start);
        self.bytes[start..start + bytes].copy_from_slice(&more[..bytes]);
        self.length += bytes as u8;
        self
    }

    pub(super) fn first_word(&self) -> u64 {
        let first = self.bytes.first_chunk::<8>();
        first.map_or(0, |bytes| u64::from_be_bytes(*bytes))
    }

    pub(super) fn successor(self) -> Option<Self> {
        let mut next = self;
        if self.length < Self::LIMIT {
            next.length += 1;
            return Some(next);
        }
        let at = self.bytes.iter().rposition(|byte| *byte < u8::MAX)?;
        next.bytes[at] += 1;
        next.bytes[at + 1..].fill(0);
        next.length = at as u8 + 1;
        Some(next)
    }

    pub(super) fn predecessor(self) -> Option<Self> {
        let last = usize::from(self.length).checked_sub(1)?;
        let mut before = self;
        if self.bytes[last] == 0 {
            before.length -= 1;
            return Some(before);
        }
        before.bytes[last] -= 1;
        before.bytes[last + 1..].fill(u8::MAX);
        before.length = Self::LIMIT;
        Some(before)
    }
}

impl<const N: usize> Ord for Bytes<N> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl<const N: usize> PartialOrd for Bytes<N> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<const N: usize> fmt::Debug for Bytes<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.as_slice().escape_ascii())
    }
}
