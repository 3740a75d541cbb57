//! Heads: the first four key bytes behind a page's prefix, as a number each, in one array.
//!
//! Both forms of leaves, and inner pages, have them, so that a search touches few lines of the
//! cache and looks at few keys. What a head holds of a key is not stored again.

use super::put;
use crate::error::Result;
use std::cmp::Ordering;

pub(super) const HEAD_BYTES: usize = 4;

/// The heads of all keys of a page.
#[derive(Clone, Copy)]
pub(super) struct Heads<'a>(pub(super) &'a [[u8; HEAD_BYTES]]);

/// What a key has behind the prefix: in its head, if that is all there is of it, and behind that.
#[derive(Clone, Copy)]
pub(super) struct Suffix<'a> {
    head: [u8; HEAD_BYTES],
    /// Bytes of the head that belong to the key.
    head_bytes: u8,
    pub(super) tail: &'a [u8],
}

impl<'a> Suffix<'a> {
    /// One that lies in one piece.
    #[inline]
    pub(super) fn of_bytes(tail: &'a [u8]) -> Self {
        Self {
            head: [0; HEAD_BYTES],
            head_bytes: 0,
            tail,
        }
    }

    /// One of `bytes` bytes in all, the first of which are in `head`.
    #[inline]
    pub(super) fn new(head: u32, bytes: usize, tail: &'a [u8]) -> Self {
        Self {
            head: head.to_be_bytes(),
            head_bytes: bytes.min(HEAD_BYTES) as u8,
            tail,
        }
    }

    #[inline]
    pub(super) fn head(&self) -> &[u8] {
        self.head
            .get(..usize::from(self.head_bytes))
            .unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.head_bytes) + self.tail.len()
    }

    /// This against `rest`.
    #[inline]
    pub(super) fn compare(&self, rest: &[u8]) -> Ordering {
        let (first, behind) = rest.split_at(rest.len().min(usize::from(self.head_bytes)));
        self.head().cmp(first).then_with(|| self.tail.cmp(behind))
    }
}

impl Heads<'_> {
    #[inline]
    pub(super) fn get(self, i: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.0.get(i)?))
    }

    /// The first key that is not less than the one whose head is `head`, and whether it is equal;
    /// `None` inside if the page makes no sense. `compare` compares key i with it, for keys of that
    /// head; for any key if not `decide`, when a head says nothing.
    #[inline]
    pub(super) fn search(
        self,
        head: u32,
        decide: bool,
        mut compare: impl FnMut(usize) -> Result<Option<Ordering>>,
    ) -> Result<Option<(usize, bool)>> {
        let (mut low, mut high) = (0, self.0.len());
        if decide {
            low = self.below(0, |found| found < head);
            if self.get(low) != Some(head) {
                return Ok(Some((low, false)));
            }
            high = low + 1;
            if self.get(high) == Some(head) {
                high = self.below(high, |found| found <= head);
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            match compare(middle)? {
                Some(Ordering::Less) => low = middle + 1,
                Some(Ordering::Equal) => return Ok(Some((middle, true))),
                Some(Ordering::Greater) => high = middle,
                None => return Ok(None),
            }
        }
        Ok(Some((low, false)))
    }

    /// The first key from `from` on whose head is not `below`.
    #[inline]
    fn below(self, from: usize, below: impl Fn(u32) -> bool) -> usize {
        let heads = self.0.get(from..).unwrap_or_default();
        from + heads.partition_point(|head| below(u32::from_le_bytes(*head)))
    }
}

/// The first four bytes of what follows the prefix, as a number that orders as they do.
#[inline]
pub(crate) fn head_of(rest: &[u8]) -> u32 {
    if let Some(head) = rest.first_chunk() {
        return u32::from_be_bytes(*head);
    }
    let mut head = [0; HEAD_BYTES];
    put(&mut head, 0, rest);
    u32::from_be_bytes(head)
}
