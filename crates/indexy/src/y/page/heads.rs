//! Heads: the first four key bytes behind a page's prefix, as a number each, in one array.
//!
//! Both forms of leaves, and inner pages, have them, so that a search touches few lines of the
//! cache and looks at few keys. What a head holds of a key is not stored again.

pub(crate) use crate::key::{HEAD_BYTES, head};

use crate::error::Result;
use std::cmp::Ordering;

/// Heads of a line of the cache, compared at once.
const GROUP: usize = 64 / HEAD_BYTES;
/// Of so many heads one in each line is looked at, so that the lines come from memory together: a
/// search by halves waits for one after the other.
const FETCHED: usize = 32 * GROUP;

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
        let below = |head: &[u8; HEAD_BYTES]| below(u32::from_le_bytes(*head));
        let mut heads = self.0.get(from..).unwrap_or_default();
        let mut first = from;
        while heads.len() > FETCHED {
            let (left, right) = heads.split_at(heads.len() / 2);
            match right.first().is_some_and(&below) {
                true => (first, heads) = (first + left.len(), right),
                false => heads = left,
            }
        }
        let (groups, rest) = heads.as_chunks::<GROUP>();
        let whole = groups
            .iter()
            .filter(|group| below(&group[GROUP - 1]))
            .count();
        let in_next = match groups.get(whole) {
            Some(next) => next.iter().filter(|head| below(head)).count(),
            None => rest.iter().filter(|head| below(head)).count(),
        };
        first + whole * GROUP + in_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of any number of heads, with long runs of equal ones, from anywhere on; and no number is
    /// made up where a damaged page has them in no order.
    #[test]
    fn the_search_agrees_with_one_by_halves() {
        for n in (0..70).chain([511, 512, 513, 700, 1024, 1500, 2049]) {
            for (step, run) in [(3, 1), (1 << 20, 1), (5, 40), (1, 2000)] {
                let sorted: Vec<u32> = (0..n).map(|i| 7 + i / run * step).collect();
                check(&sorted, [0, n / 3, n / 2, n].map(|i| 7 + i / run * step));
            }
            let scattered = (0..n).map(|i| i.wrapping_mul(0x9e37_79b9).to_le_bytes());
            let scattered: Vec<_> = scattered.collect();
            let found = Heads(&scattered).below(0, |head| head < 1 << 31);
            assert!(found <= scattered.len());
        }
    }

    fn check(sorted: &[u32], probes: [u32; 4]) {
        let bytes: Vec<_> = sorted.iter().map(|head| head.to_le_bytes()).collect();
        let heads = Heads(&bytes);
        let near = probes.map(|probe| [probe - 1, probe, probe + 1, u32::MAX]);
        for from in (0..=sorted.len()).step_by(37) {
            for probe in near.into_iter().flatten() {
                let halves = sorted[from..].partition_point(|head| *head < probe);
                assert_eq!(heads.below(from, |head| head < probe), from + halves);
            }
        }
    }
}
