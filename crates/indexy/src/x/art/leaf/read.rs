//! Finding and reading entries of a packed leaf.
//!
//! Nothing here trusts what it reads: lengths and offsets are clamped, loops are bounded, and a
//! pointer is followed only after `stable` said that the leaf has not changed since it was read.
//!
//! Keeps: the caller validates before it uses the answer.

use super::layout::{LeafRef, Packed, Slot, head};
use crate::x::{
    RunId, Stamp,
    entry::{DIRTY, Form, IN_Y, LARGE, TOMBSTONE, varint},
    large::LargeRef,
    leaf::{self, Bit, LeafFormat},
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
        leaf::EntryAt::tail(self) + self.tail_len() - self.slot.offset()
    }
}

impl leaf::EntryAt for EntryAt {
    #[inline(always)]
    fn form(&self) -> Form {
        self.form
    }

    #[inline(always)]
    fn suffix_len(&self) -> usize {
        self.suffix_len
    }

    #[inline(always)]
    fn value_len(&self) -> usize {
        self.value_len
    }

    #[inline(always)]
    fn tail(&self) -> usize {
        match self.form {
            Form::BothOut => self.body,
            _ => self.body + self.suffix_len,
        }
    }
}

/// The flag of an entry that says the same as `bit`.
fn flag(bit: Bit) -> u32 {
    match bit {
        Bit::Dirty => DIRTY,
        Bit::InY => IN_Y,
        Bit::Tombstone => TOMBSTONE,
        Bit::Referenced => 0,
    }
}

impl LeafFormat for Packed {
    type Entry = EntryAt;

    #[inline]
    fn len(leaf: LeafRef<'_>) -> usize {
        leaf.meta().n
    }

    #[inline]
    fn mount(leaf: LeafRef<'_>) -> Option<Stamp> {
        leaf.state().mount
    }

    fn run(leaf: LeafRef<'_>) -> RunId {
        leaf.meta().run
    }

    fn bits(leaf: LeafRef<'_>, bit: Bit) -> u64 {
        if bit == Bit::Referenced {
            return leaf.refs();
        }
        let flag = flag(bit);
        (0..leaf.meta().n).fold(0, |bits, i| bits | u64::from(leaf.slot(i).is(flag)) << i)
    }

    #[inline]
    fn may_have(leaf: LeafRef<'_>, bit: Bit) -> bool {
        match bit {
            Bit::Dirty => leaf.state().dirty,
            Bit::Tombstone => leaf.state().tombstones,
            Bit::InY | Bit::Referenced => true,
        }
    }

    fn any_large(leaf: LeafRef<'_>) -> bool {
        let all = (0..leaf.meta().n).fold(0, |all, i| all | leaf.slot(i).flags());
        all & LARGE != 0
    }

    #[inline]
    fn reference(leaf: LeafRef<'_>, i: usize) {
        leaf.set_referenced(i);
    }

    #[inline]
    fn entry(leaf: LeafRef<'_>, i: usize) -> EntryAt {
        let slot = leaf.slot(i);
        let offset = slot.offset();
        let word = leaf.words().read_u64(offset);
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

    #[inline]
    fn flags(leaf: LeafRef<'_>, i: usize) -> u32 {
        leaf.slot(i).flags()
    }

    #[inline]
    fn has(_leaf: LeafRef<'_>, _i: usize, entry: &EntryAt, bit: Bit) -> bool {
        entry.slot.is(flag(bit))
    }

    #[inline]
    fn find(
        leaf: LeafRef<'_>,
        suffix: &[u8],
        stable: impl Fn() -> bool,
    ) -> Option<Result<usize, usize>> {
        let n = leaf.meta().n;
        let wanted = head(suffix);
        let first = leaf.first_head_at_least(n, wanted);
        let mut end = first;
        while end < n && leaf.slot(end).head() == wanted {
            if end - first == LINEAR_RUN {
                return leaf.find_among_equal_heads(end, n, wanted, suffix, stable);
            }
            match leaf.compare(end, suffix, &stable)? {
                Ordering::Equal => return Some(Ok(end)),
                Ordering::Greater => return Some(Err(end)),
                Ordering::Less => end += 1,
            }
        }
        Some(Err(end))
    }

    fn copy_inline_suffix(leaf: LeafRef<'_>, entry: &EntryAt, out: &mut [u8]) {
        leaf.words().copy_out(entry.body, out);
    }
}

impl LeafRef<'_> {
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
