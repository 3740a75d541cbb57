//! A leaf that does not change while it is looked at: latched, or copied and validated.
//!
//! Everything here may be trusted, and pointers to large blocks may be followed.

use super::{
    super::heads::HEAD_BYTES,
    layout::{Bit, Kind, LeafRef, MAX_BLOCK_BYTES, Meta},
    read::EntryAt,
};
use crate::{
    key::Value,
    mem::words::Words,
    x::{
        RunId, Stamp,
        form::{Form, TOMBSTONE},
        large::LargeRef,
    },
};
use std::{cmp::Ordering, ptr::NonNull, sync::atomic::AtomicU64};

/// Room for a copy of a leaf.
pub(in crate::x::bptree) struct LeafBuffer([AtomicU64; MAX_BLOCK_BYTES / 8]);

impl LeafBuffer {
    pub(in crate::x::bptree) fn new() -> Self {
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
pub(in crate::x::bptree) struct StableLeaf<'x> {
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
    pub(in crate::x::bptree) fn copy<'y>(self, buffer: &'y mut LeafBuffer) -> StableLeaf<'y>
    where
        'x: 'y,
    {
        StableLeaf {
            leaf: buffer.fill(self.leaf),
        }
    }

    pub(super) fn raw(self) -> LeafRef<'x> {
        self.leaf
    }

    pub(in crate::x::bptree) fn len(self) -> usize {
        self.leaf.meta().n
    }

    pub(in crate::x::bptree) fn meta(self) -> Meta {
        self.leaf.meta()
    }

    pub(in crate::x::bptree) fn kind(self) -> Kind {
        self.leaf.kind()
    }

    pub(in crate::x::bptree) fn mount(self) -> Option<Stamp> {
        self.leaf.mount()
    }

    /// The last run that copied from this leaf.
    pub(in crate::x::bptree) fn run(self) -> RunId {
        self.leaf.run()
    }

    pub(in crate::x::bptree) fn bits(self, bit: Bit) -> u64 {
        self.leaf.bits(bit)
    }

    pub(in crate::x::bptree) fn has(self, i: usize, bit: Bit) -> bool {
        self.leaf.has(i, bit)
    }

    /// The flags of entry `i` that counts are kept of.
    pub(in crate::x::bptree) fn flags(self, i: usize) -> u32 {
        let flag = |bit, flag| if self.has(i, bit) { flag } else { 0 };
        flag(Bit::Dirty, crate::x::form::DIRTY)
            | flag(Bit::InY, crate::x::form::IN_Y)
            | flag(Bit::Tombstone, TOMBSTONE)
    }

    pub(in crate::x::bptree) fn entry(self, i: usize) -> EntryAt {
        self.leaf.entry(i)
    }

    /// The head of entry `i`.
    pub(in crate::x::bptree) fn head(self, i: usize) -> u32 {
        self.leaf.heads().get(i)
    }

    /// The index of `suffix`, or the one where it belongs.
    #[inline]
    pub(in crate::x::bptree) fn find(self, suffix: &[u8]) -> Result<usize, usize> {
        self.leaf.find(suffix, || true).unwrap_or(Err(0))
    }

    /// The large block of `entry`, if it has one.
    pub(in crate::x::bptree) fn large(self, entry: &EntryAt) -> Option<LargeRef<'x>> {
        (entry.form != Form::Inline).then(|| {
            let word = self.leaf.large_word(entry);
            // SAFETY: nothing changes (contract of `new`), so that the entry is whole.
            unsafe { LargeRef::from_raw(word) }
        })
    }

    /// Appends the suffix of `entry`.
    pub(in crate::x::bptree) fn push_suffix(self, entry: &EntryAt, out: &mut Vec<u8>) {
        match self.large(entry) {
            Some(large) if entry.form == Form::BothOut => {
                out.extend_from_slice(large.suffix(entry.suffix_len));
            }
            _ => {
                let head = entry.head.to_be_bytes();
                out.extend_from_slice(&head[..entry.suffix_len.min(HEAD_BYTES)]);
                self.push_bytes(entry.rest, entry.rest_len(), out);
            }
        }
    }

    /// The value of `entry`; a large one is copied once.
    pub(in crate::x::bptree) fn value(self, entry: &EntryAt, scratch: &mut Vec<u8>) -> Value {
        match self.large(entry) {
            Some(large) => Value::new(large.value()),
            None => {
                scratch.clear();
                self.push_bytes(entry.tail, entry.value_len, scratch);
                Value::new(scratch)
            }
        }
    }

    /// Appends the value of `entry`.
    pub(in crate::x::bptree) fn push_value(self, entry: &EntryAt, out: &mut Vec<u8>) {
        match self.large(entry) {
            Some(large) => out.extend_from_slice(large.value()),
            None => self.push_bytes(entry.tail, entry.value_len, out),
        }
    }

    fn push_bytes(self, at: usize, len: usize, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + len, 0);
        self.leaf.words().copy_out(at, &mut out[start..]);
    }

    /// The suffix of entry `i`.
    pub(in crate::x::bptree) fn suffix(self, i: usize) -> Vec<u8> {
        let mut suffix = Vec::new();
        self.push_suffix(&self.entry(i), &mut suffix);
        suffix
    }

    /// Compares the suffixes of entries `i` and `j`.
    pub(super) fn compare(self, i: usize, j: usize) -> Ordering {
        self.suffix(i).cmp(&self.suffix(j))
    }

    /// Bytes of the large blocks of the entries.
    pub(in crate::x::bptree) fn large_bytes(self) -> usize {
        (0..self.len())
            .filter_map(|i| self.large(&self.entry(i)))
            .map(LargeRef::arena_bytes)
            .sum()
    }
}
