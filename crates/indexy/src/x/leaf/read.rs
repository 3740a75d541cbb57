//! Finding and reading entries of a leaf.
//!
//! Nothing here trusts what it reads: lengths and offsets are clamped, loops are bounded, and a
//! pointer is followed only after `stable` said that the leaf has not changed since it was read.
//!
//! Keeps: the caller validates before it uses the answer.

use super::{
    handles::LeafRef,
    layout::{BITS, Bit, KIND, Kind, Records, STATE},
};
use crate::x::{
    RunId, Stamp,
    entry::{DIRTY, Form, IN_Y, TOMBSTONE, varint},
    heads::{HEAD_BYTES, HEADS_AND_HINTS, Wanted},
    large::LargeRef,
};
use std::{cmp::Ordering, ops::Range, sync::atomic::Ordering::Relaxed};

/// Where an entry's parts are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryAt {
    pub form: Form,
    /// Length of the suffix, wherever it is.
    pub suffix_len: usize,
    /// Length of the value, wherever it is.
    pub value_len: usize,
    pub head: u32,
    /// Offset of the entry in the heap; of a fixed one that of its value.
    pub start: usize,
    /// Offset of what the suffix has behind its head, if that is in the leaf.
    pub rest: usize,
    /// Offset of the value, or of the pointer to the large block.
    pub tail: usize,
}

impl EntryAt {
    /// Bytes behind the head that are in the leaf.
    #[inline]
    pub(super) fn rest_len(&self) -> usize {
        match self.form {
            Form::BothOut => 0,
            _ => self.suffix_len.saturating_sub(HEAD_BYTES),
        }
    }

    /// Bytes of value, or of the pointer, in the leaf.
    #[inline]
    pub(super) fn tail_len(&self) -> usize {
        match self.form {
            Form::Inline => self.value_len,
            _ => 8,
        }
    }

    /// Heap bytes of an entry of a slotted leaf.
    #[inline]
    pub(super) fn size(&self) -> usize {
        self.tail + self.tail_len() - self.start
    }
}

impl<'g> LeafRef<'g> {
    #[inline]
    pub(crate) fn len(self) -> usize {
        self.meta().n
    }

    #[inline]
    pub(crate) fn mount(self) -> Option<Stamp> {
        let word = self.header(STATE);
        (word & 1 != 0).then_some(word >> 11)
    }

    pub(crate) fn run(self) -> RunId {
        self.header(KIND) as RunId
    }

    #[inline]
    pub(crate) fn bits(self, bit: Bit) -> u64 {
        self.header(BITS + bit as usize)
    }

    #[inline]
    pub(crate) fn any_large(self) -> bool {
        self.kind() == Kind::Slotted && (0..self.len()).any(|i| self.slot(i).is_large())
    }

    #[inline]
    pub(crate) fn reference(self, i: usize) {
        let bit = 1u64 << (i & 63);
        if self.bits(Bit::Referenced) & bit == 0 {
            let word = self.words().atomic(BITS + Bit::Referenced as usize);
            word.fetch_or(bit, Relaxed);
        }
    }

    #[inline]
    pub(crate) fn entry(self, i: usize) -> EntryAt {
        self.entry_in(self.records().as_ref(), i)
    }

    /// Entry `i` of a leaf with these [records](LeafRef::records), which never change.
    #[inline]
    pub(super) fn entry_in(self, records: Option<&Records>, i: usize) -> EntryAt {
        let head = self.heads().get(i);
        let Some(records) = records else {
            return self.slotted_entry(i, head);
        };
        let rest = records.at(self.place(records, i));
        let tail = rest + records.rest;
        let value_len = if self.has_bit(i, Bit::Tombstone) && self.has_bit(i, Bit::InY) {
            0
        } else {
            records.size - records.rest
        };
        EntryAt {
            form: Form::Inline,
            suffix_len: records.suffix_len,
            value_len,
            head,
            start: tail,
            rest,
            tail,
        }
    }

    #[inline]
    pub(crate) fn flags(self, i: usize) -> u32 {
        let flag = |bit, flag| if self.has_bit(i, bit) { flag } else { 0 };
        flag(Bit::Dirty, DIRTY) | flag(Bit::InY, IN_Y) | flag(Bit::Tombstone, TOMBSTONE)
    }

    #[inline]
    pub(crate) fn find(
        self,
        suffix: &[u8],
        stable: impl Fn() -> bool,
    ) -> Option<Result<usize, usize>> {
        self.find_in(self.records().as_ref(), suffix, stable)
    }

    /// As `find`, of a leaf with these [records](LeafRef::records), which never change.
    #[inline]
    pub(super) fn find_in(
        self,
        records: Option<&Records>,
        suffix: &[u8],
        stable: impl Fn() -> bool,
    ) -> Option<Result<usize, usize>> {
        let n = self.meta().n;
        let wanted = Wanted::new(suffix);
        if !HEADS_AND_HINTS {
            return self.find_within(records, 0..n, &wanted, stable);
        }
        let first = self.heads().count_below(n, wanted.head);
        if first >= n || self.heads().get(first) != wanted.head {
            return Some(Err(first));
        }
        match self.compare(records, first, &wanted, &stable)? {
            Ordering::Equal => Some(Ok(first)),
            Ordering::Greater => Some(Err(first)),
            // Others may have the same head.
            Ordering::Less => {
                let end = self.heads().end_of_equal(first, n, wanted.head);
                self.find_within(records, first + 1..end, &wanted, stable)
            }
        }
    }

    pub(crate) fn copy_inline_suffix(self, entry: &EntryAt, out: &mut [u8]) {
        let (head, rest) = out.split_at_mut(out.len().min(HEAD_BYTES));
        head.copy_from_slice(&entry.head.to_be_bytes()[..head.len()]);
        self.words().copy_out(entry.rest, rest);
    }
}

impl LeafRef<'_> {
    /// False: no entry here has a large block. Cost: a load.
    #[inline]
    pub(crate) fn may_have_large(self) -> bool {
        self.kind() == Kind::Slotted
    }

    /// The word that points to the large block of `entry`; to be followed after validation only.
    #[inline]
    pub(crate) fn large_word(self, entry: &EntryAt) -> u64 {
        self.words().read_u64(entry.tail)
    }

    #[inline]
    fn slotted_entry(self, i: usize, head: u32) -> EntryAt {
        let slot = self.slot(i);
        let start = slot.offset();
        let word = self.words().read_u64(start);
        let (suffix_len, a) = varint(word);
        let (number, b) = varint(word >> (8 * a));
        let (form, value_len) = if !slot.is_large() {
            (Form::Inline, number)
        } else if number & 1 == 0 {
            (Form::ValueOut, number >> 1)
        } else {
            (Form::BothOut, number >> 1)
        };
        let rest = start + a + b;
        let mut entry = EntryAt {
            form,
            suffix_len,
            value_len,
            head,
            start,
            rest,
            tail: rest,
        };
        entry.tail += entry.rest_len();
        entry
    }

    /// Goes on with `find`: all entries before `within` are less, all behind it greater.
    fn find_within(
        self,
        records: Option<&Records>,
        within: Range<usize>,
        wanted: &Wanted<'_>,
        stable: impl Fn() -> bool,
    ) -> Option<Result<usize, usize>> {
        let Range {
            start: mut lo,
            end: mut hi,
        } = within;
        while lo < hi {
            let mid = (lo + hi) / 2;
            let order = match self.heads().get(mid).cmp(&wanted.head) {
                Ordering::Equal => self.compare(records, mid, wanted, &stable)?,
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

    /// Compares the suffix of entry `i` with what is wanted, which has the same head.
    #[inline(always)]
    fn compare(
        self,
        records: Option<&Records>,
        i: usize,
        wanted: &Wanted<'_>,
        stable: impl Fn() -> bool,
    ) -> Option<Ordering> {
        if let Some(records) = records {
            let at = records.at(self.place(records, i));
            return Some(wanted.order_of(self.words(), records.suffix_len, at));
        }
        let entry = self.slotted_entry(i, self.heads().get(i));
        if entry.form != Form::BothOut {
            return Some(wanted.order_of(self.words(), entry.suffix_len, entry.rest));
        }
        let word = self.large_word(&entry);
        if !stable() {
            return None;
        }
        // SAFETY: the leaf did not change since the entry and the word were read.
        let large = unsafe { LargeRef::from_raw(word) };
        Some(large.suffix(entry.suffix_len).cmp(wanted.suffix))
    }
}
