//! Ranges of keys as bytes: the bounds of what a leaf covers, and ways to name a place among keys.

#![forbid(unsafe_code)]

use crate::key::{prefix_end, successor};
use std::ops::Range;

/// `from`, unless nothing is below `to` from there on.
pub(crate) fn first(from: &[u8], to: Option<&[u8]>) -> Option<Vec<u8>> {
    to.is_none_or(|to| from < to).then(|| from.to_vec())
}

/// The keys that a range covers: `start..end`, `None` = to the end of the key space.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub start: Vec<u8>,
    pub end: Option<Vec<u8>>,
}

impl Bounds {
    /// Where to go on to reach `to`; `None` when it is reached.
    pub(crate) fn next(self, to: Option<&[u8]>) -> Option<Vec<u8>> {
        self.end.filter(|end| to.is_none_or(|to| &end[..] < to))
    }

    /// The whole range is within `from..to`.
    pub(crate) fn within(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        let ends = match (&self.end, to) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(end), Some(to)) => &end[..] <= to,
        };
        from <= &self.start[..] && ends
    }
}

/// Which of the entries of a leaf at `depth`, whose range has these bounds, are in `from..to`.
/// `find` gives the first slot that is not below a suffix.
pub(crate) fn entries_within(
    bounds: &Bounds,
    depth: usize,
    n: usize,
    from: &[u8],
    to: Option<&[u8]>,
    find: impl Fn(&[u8]) -> usize,
) -> Range<usize> {
    let first = if from > &bounds.start[..] {
        find(&from[depth..])
    } else {
        0
    };
    let end = match to {
        Some(to) if bounds.end.as_ref().is_none_or(|end| to < &end[..]) => {
            if to > &bounds.start[..] {
                find(&to[depth..])
            } else {
                0
            }
        }
        _ => n,
    };
    first.min(end)..end
}

/// A key, or something just below a key.
#[derive(Clone, Copy)]
pub(crate) struct Probe<'k> {
    pub bytes: &'k [u8],
    /// Endless bytes 0xFF follow.
    pub padded: bool,
}

impl<'k> Probe<'k> {
    pub(crate) fn at(key: &'k [u8]) -> Self {
        Self {
            bytes: key,
            padded: false,
        }
    }

    pub(crate) fn rest(&self, from: usize) -> &'k [u8] {
        self.bytes.get(from..).unwrap_or(&[])
    }

    /// Puts the first `len` bytes in `out`.
    pub(crate) fn fill(&self, len: usize, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.bytes[..len.min(self.bytes.len())]);
        out.resize(len, u8::MAX);
    }
}

/// Room for the bytes of most probes.
const ROOM: usize = 32;

/// Where a descent went that passed ranges on its way: see
/// [`Descend::try_descend_past`](crate::x::tree::Descend::try_descend_past).
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// How many ranges.
    pub ranges: usize,
    /// A probe for the range that was come to, if any was passed: the first key of it, or with
    /// endless bytes 0xFF behind these, a last one.
    pub bytes: Vec<u8>,
    pub padded: bool,
}

impl Passed {
    /// `begun`, or what was come to since.
    pub(crate) fn probe<'a>(&'a self, begun: Probe<'a>) -> Probe<'a> {
        match self.ranges {
            0 => begun,
            _ => Probe {
                bytes: &self.bytes,
                padded: self.padded,
            },
        }
    }

    /// Goes on from the first `len` bytes of its probe; of `begun`, as long as nothing was passed.
    pub(crate) fn go_on(&mut self, begun: Probe<'_>, len: usize) {
        if self.ranges == 0 {
            self.bytes.reserve(ROOM.max(len + 1));
            begun.fill(len, &mut self.bytes);
        } else {
            self.bytes.resize(len, u8::MAX);
        }
        self.ranges += 1;
    }

    /// The first key above all that the probe stands for; `None`: there is none.
    pub(crate) fn end(&self) -> Option<Vec<u8>> {
        match self.padded {
            true => prefix_end(&self.bytes),
            false => Some(successor(&self.bytes)),
        }
    }
}

/// A probe for the keys just below `to`, and the bytes that it borrows.
pub(crate) struct Below {
    bytes: Vec<u8>,
    padded: bool,
}

impl Below {
    /// `to` is not empty; `None` stands for the end of the key space.
    pub(crate) fn new(to: Option<&[u8]>) -> Self {
        let mut bytes = to.unwrap_or_default().to_vec();
        let padded = match bytes.last_mut() {
            // The key just below `k ++ 0` is `k`.
            Some(0) => {
                bytes.pop();
                false
            }
            // Just below `k ++ b` is `k ++ (b - 1)` with endless 0xFF.
            Some(byte) => {
                *byte -= 1;
                true
            }
            None => true,
        };
        Self { bytes, padded }
    }

    pub(crate) fn probe(&self) -> Probe<'_> {
        Probe {
            bytes: &self.bytes,
            padded: self.padded,
        }
    }
}
