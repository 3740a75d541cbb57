//! Ranges of keys that were absent: what a sorted load leaves in place of an image of each key.
//!
//! A span holds for snapshots before its `until`, as an image does. It is left with all stripes and
//! the gate held, and no image that was left before has a larger `until`; one that is left later
//! has a larger one. So where an image and a span both speak of a key, the smaller `until` is
//! right, and of equal ones the image.

#![forbid(unsafe_code)]

use super::clock::Epoch;

/// See the module header.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) from: Box<[u8]>,
    /// The first key behind it.
    pub(super) to: Box<[u8]>,
    pub(super) until: Epoch,
}

/// The spans of a tree, in the order in which they were left.
#[derive(Debug, Clone, Default)]
pub(super) struct Spans(Vec<Span>);

impl Spans {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn push(&mut self, span: Span) {
        self.0.push(span);
    }

    /// Drops those that no snapshot from `oldest` on needs.
    pub(super) fn collect(&mut self, oldest: Epoch) {
        self.0.retain(|span| span.until > oldest);
    }

    /// The largest `until` of those that have `key`; 0: none has it.
    #[inline]
    pub(super) fn newest_of(&self, key: &[u8]) -> Epoch {
        let of = self.0.iter().filter(|span| span.has(key));
        of.map(|span| span.until).max().unwrap_or(0)
    }

    /// Those that `epoch` needs.
    pub(super) fn seen_by(&self, epoch: Epoch) -> Self {
        let seen = self.0.iter().filter(|span| span.until > epoch);
        Self(seen.cloned().collect())
    }

    /// The smallest `until` over `epoch` of those that have `key`.
    #[inline]
    pub(super) fn at(&self, key: &[u8], epoch: Epoch) -> Option<Epoch> {
        let of = self.0.iter().filter(|span| span.has(key));
        of.map(|span| span.until).filter(|u| *u > epoch).min()
    }

    /// The first key that one of them which is newer than `epoch` shares with `[from, to)`.
    pub(super) fn written_in<'k>(
        &'k self,
        from: &'k [u8],
        to: Option<&[u8]>,
        epoch: Epoch,
    ) -> Option<&'k [u8]> {
        let mut newer = self.0.iter().filter(|span| span.until > epoch);
        newer.find_map(|span| {
            let first = from.max(&span.from);
            let last = to.map_or(&*span.to, |to| to.min(&span.to));
            (first < last).then_some(first)
        })
    }
}

impl Span {
    fn has(&self, key: &[u8]) -> bool {
        *self.from <= *key && *key < *self.to
    }
}
