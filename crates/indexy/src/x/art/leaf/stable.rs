//! A leaf that does not change while it is looked at: latched, or copied and validated.
//!
//! Everything here may be trusted, and pointers to large blocks may be followed.

use super::{
    layout::{LeafRef, MAX_BLOCK_BYTES, Meta, Slot, State},
    search::EntryAt,
};
use crate::{
    key::Value,
    mem::words::Words,
    x::{
        art::pointer::{END, Symbol},
        form::Form,
        large::LargeRef,
    },
};
use std::{cmp::Ordering, ptr::NonNull, sync::atomic::AtomicU64};

/// Room for a copy of a leaf.
pub(crate) struct LeafBuffer([AtomicU64; MAX_BLOCK_BYTES / 8]);

impl LeafBuffer {
    pub(crate) fn new() -> Self {
        Self([const { AtomicU64::new(0) }; MAX_BLOCK_BYTES / 8])
    }

    /// Copies the words of `leaf`, torn or not.
    pub(super) fn fill<'x>(&'x mut self, leaf: LeafRef<'x>) -> LeafRef<'x> {
        let from = leaf.words();
        let words = from.len_bytes() / 8;
        for (i, to) in self.0[..words].iter_mut().enumerate() {
            *to.get_mut() = from.word(i);
        }
        // SAFETY: the buffer is borrowed for `'x` and has these words.
        leaf.with_words(unsafe { Words::new(NonNull::from(&self.0).cast(), words * 8) })
    }
}

/// See the module header.
#[derive(Clone, Copy)]
pub(crate) struct StableLeaf<'x> {
    leaf: LeafRef<'x>,
}

impl<'x> StableLeaf<'x> {
    /// # Safety
    /// For `'x`, `leaf` is latched by the caller, or a copy that was validated, and a guard entered before
    /// lives that long.
    pub(super) unsafe fn new(leaf: LeafRef<'x>) -> Self {
        Self { leaf }
    }

    /// A copy that stays when the latch is given up.
    pub(crate) fn copy<'y>(self, buffer: &'y mut LeafBuffer) -> StableLeaf<'y>
    where
        'x: 'y,
    {
        StableLeaf {
            leaf: buffer.fill(self.leaf),
        }
    }

    pub(crate) fn len(self) -> usize {
        self.leaf.meta().n
    }

    pub(crate) fn meta(self) -> Meta {
        self.leaf.meta()
    }

    pub(crate) fn state(self) -> State {
        self.leaf.state()
    }

    pub(crate) fn refs(self) -> u64 {
        self.leaf.refs()
    }

    pub(crate) fn size(self) -> usize {
        self.leaf.size()
    }

    pub(super) fn words(self) -> Words<'x> {
        self.leaf.words()
    }

    pub(crate) fn slot(self, i: usize) -> Slot {
        self.leaf.slot(i)
    }

    pub(crate) fn entry(self, i: usize) -> EntryAt {
        self.leaf.entry(i)
    }

    /// The slot of `suffix`, or the one where it belongs.
    pub(crate) fn find(self, suffix: &[u8]) -> Result<usize, usize> {
        self.leaf.find(suffix, || true).unwrap_or(Err(0))
    }

    /// The large block of `entry`, if it has one.
    pub(crate) fn large(self, entry: &EntryAt) -> Option<LargeRef<'x>> {
        (entry.form != Form::Inline).then(|| {
            let word = self.leaf.large_word(entry);
            // SAFETY: nothing changes (contract of `new`), so that the entry is whole.
            unsafe { LargeRef::from_raw(word) }
        })
    }

    /// Appends the suffix of `entry` from its byte `skip` on.
    pub(crate) fn push_suffix(self, entry: &EntryAt, skip: usize, out: &mut Vec<u8>) {
        let len = entry.suffix_len - skip;
        match self.large(entry) {
            Some(large) if entry.form == Form::BothOut => out.extend_from_slice(large.suffix(len)),
            _ => self.push_bytes(entry.body + skip, len, out),
        }
    }

    /// The value of `entry`; a large one is copied once.
    pub(crate) fn value(self, entry: &EntryAt, scratch: &mut Vec<u8>) -> Value {
        match self.large(entry) {
            Some(large) => Value::new(large.value()),
            None => {
                scratch.clear();
                self.push_bytes(entry.tail(), entry.value_len, scratch);
                Value::new(scratch)
            }
        }
    }

    /// Appends the value of `entry`.
    pub(crate) fn push_value(self, entry: &EntryAt, out: &mut Vec<u8>) {
        match self.large(entry) {
            Some(large) => out.extend_from_slice(large.value()),
            None => self.push_bytes(entry.tail(), entry.value_len, out),
        }
    }

    fn push_bytes(self, at: usize, len: usize, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + len, 0);
        self.words().copy_out(at, &mut out[start..]);
    }

    /// The first symbol of the suffix of entry `i`.
    pub(crate) fn symbol(self, i: usize) -> Symbol {
        let entry = self.entry(i);
        match entry.suffix_len {
            0 => END,
            _ => (entry.slot.head() >> 8) + 1,
        }
    }

    /// How many bytes the suffixes of all entries have in common; 0 without entries.
    pub(crate) fn common_prefix(self, out: &mut Vec<u8>) -> usize {
        out.clear();
        let Some(last) = self.len().checked_sub(1) else {
            return 0;
        };
        self.push_suffix(&self.entry(0), 0, out);
        let mut other = Vec::new();
        self.push_suffix(&self.entry(last), 0, &mut other);
        let common = out.iter().zip(&other).take_while(|(a, b)| a == b).count();
        out.truncate(common);
        common
    }

    /// Compares the suffixes of entries `i` and `j`.
    pub(crate) fn compare(self, i: usize, j: usize) -> Ordering {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        self.push_suffix(&self.entry(i), 0, &mut a);
        self.push_suffix(&self.entry(j), 0, &mut b);
        a.cmp(&b)
    }

    /// Bytes of the large blocks of the entries.
    pub(crate) fn large_bytes(self) -> usize {
        (0..self.len())
            .filter_map(|i| self.large(&self.entry(i)))
            .map(LargeRef::arena_bytes)
            .sum()
    }
}
