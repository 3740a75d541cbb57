//! Finding and reading entries of a leaf.
//!
//! Nothing here trusts what it reads: lengths and offsets are clamped, loops are bounded, and a pointer is
//! followed only after `stable` said that it was read from a leaf that has not changed since.
//!
//! Keeps: the caller validates before it uses the answer.

use super::layout::{LeafRef, Slot, head};
use crate::x::{
    form::{Form, LARGE, varint},
    large::LargeRef,
};
use std::cmp::Ordering;

/// A longer run of equal heads is searched by halving.
const LINEAR_RUN: usize = 4;

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
