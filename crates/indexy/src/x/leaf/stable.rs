//! A leaf that does not change while it is looked at: latched, or copied and validated.
//!
//! Everything here may be trusted, and pointers to large blocks may be followed.

use super::{
    handles::{LeafLatched, LeafRef, LeafSeen},
    layout::{Bit, MAX_BLOCK_BYTES},
    read::EntryAt,
};
use crate::{
    mem::words::Words,
    x::{
        RunId, Stamp,
        entry::{Form, MAX_INLINE_VALUE},
        heads::HEAD_BYTES,
        large::LargeRef,
    },
};
use std::{cmp::Ordering, mem::MaybeUninit, ptr::NonNull, sync::atomic::AtomicU64};

/// Room for a copy of a leaf.
pub(crate) struct LeafBuffer([MaybeUninit<AtomicU64>; MAX_BLOCK_BYTES / 8]);

impl LeafBuffer {
    pub(crate) fn new() -> Self {
        Self([const { MaybeUninit::uninit() }; MAX_BLOCK_BYTES / 8])
    }

    /// Copies the words of `leaf`, torn or not.
    fn fill<'x>(&'x mut self, leaf: LeafRef<'_>) -> LeafRef<'x> {
        let from = leaf.words();
        let words = from.len_bytes() / 8;
        for (to, word) in self.0[..words].iter_mut().zip(from.all()) {
            to.write(AtomicU64::new(word));
        }
        // SAFETY: the buffer is borrowed for `'x`, and these words of it were written.
        leaf.with_words(unsafe { Words::new(NonNull::from(&self.0).cast(), words * 8) })
    }
}

/// See the module header.
#[derive(Clone, Copy)]
pub(crate) struct StableLeaf<'x> {
    leaf: LeafRef<'x>,
}

impl<'g> LeafSeen<'g> {
    /// A validated copy of the leaf.
    pub(crate) fn copy<'x>(self, buffer: &'x mut LeafBuffer) -> Option<StableLeaf<'x>>
    where
        'g: 'x,
    {
        let leaf = buffer.fill(self.leaf());
        // The copy is used only when nothing changed while it was made. `'g`, and with it the
        // guard that keeps large blocks, covers `'x`.
        self.unchanged().then_some(StableLeaf { leaf })
    }
}

impl<'g> LeafLatched<'g> {
    /// The leaf as its latch holder sees it. Blocks that edits unlink stay for `'g`.
    #[inline(always)]
    pub(crate) fn stable(&self) -> StableLeaf<'g> {
        StableLeaf { leaf: self.leaf() }
    }
}

impl<'x> StableLeaf<'x> {
    /// A copy that stays when the latch is given up.
    pub(crate) fn copy<'y>(self, buffer: &'y mut LeafBuffer) -> StableLeaf<'y>
    where
        'x: 'y,
    {
        StableLeaf {
            leaf: buffer.fill(self.leaf),
        }
    }

    /// The leaf, to read it as one may read any.
    #[inline(always)]
    pub(crate) fn raw(self) -> LeafRef<'x> {
        self.leaf
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        self.leaf.len()
    }

    #[inline]
    pub(crate) fn mount(self) -> Option<Stamp> {
        self.leaf.mount()
    }

    /// The last run that copied from this leaf.
    pub(crate) fn run(self) -> RunId {
        self.leaf.run()
    }

    /// The entries that have `bit`.
    #[inline]
    pub(crate) fn bits(self, bit: Bit) -> u64 {
        self.leaf.bits(bit)
    }

    /// The entries that are operands.
    pub(crate) fn operands(self) -> u64 {
        self.leaf.operands()
    }

    /// `DIRTY`, `IN_Y` and `TOMBSTONE` of entry `i`.
    #[inline]
    pub(crate) fn flags(self, i: usize) -> u32 {
        self.leaf.flags(i)
    }

    /// Entry `i` has `bit`.
    #[inline]
    pub(crate) fn has(self, i: usize, bit: Bit) -> bool {
        self.leaf.has_bit(i, bit)
    }

    #[inline]
    pub(crate) fn entry(self, i: usize) -> EntryAt {
        self.leaf.entry(i)
    }

    /// The index of `suffix`, or the one where it belongs.
    #[inline]
    pub(crate) fn find(self, suffix: &[u8]) -> Result<usize, usize> {
        self.leaf.find(suffix, || true).unwrap_or(Err(0))
    }

    /// The large block of `entry`, if it has one.
    #[inline]
    pub(crate) fn large(self, entry: &EntryAt) -> Option<LargeRef<'x>> {
        (entry.form != Form::Inline).then(|| {
            let word = self.leaf.large_word(entry);
            // SAFETY: nothing changes: the leaf is latched, or this is a validated copy. So the
            // entry is whole.
            unsafe { LargeRef::from_raw(word) }
        })
    }

    /// The value of entry `i`, handed to `read`; `None`: it is a tombstone, or an operand.
    #[inline]
    pub(crate) fn value<R>(self, i: usize, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        if self.has(i, Bit::Tombstone) {
            return None;
        }
        let entry = self.entry(i);
        let Some(large) = self.large(&entry) else {
            let mut value = [0; MAX_INLINE_VALUE];
            let value = &mut value[..entry.value_len];
            self.leaf.words().copy_out(entry.tail, value);
            return Some(read(value));
        };
        Some(read(large.value()))
    }

    /// Copies the suffix of `entry` to `out`, which is as long.
    pub(crate) fn copy_suffix(self, entry: &EntryAt, out: &mut [u8]) {
        match self.large(entry) {
            Some(large) if entry.form == Form::BothOut => {
                out.copy_from_slice(large.suffix(entry.suffix_len));
            }
            _ => self.leaf.copy_inline_suffix(entry, out),
        }
    }

    /// Appends the suffix of `entry`.
    pub(crate) fn push_suffix(self, entry: &EntryAt, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + entry.suffix_len, 0);
        self.copy_suffix(entry, &mut out[start..]);
    }

    /// Byte `at` of the suffix of `entry`, which is longer.
    pub(crate) fn suffix_byte(self, entry: &EntryAt, at: usize) -> u8 {
        if at < HEAD_BYTES {
            return entry.head.to_be_bytes()[at];
        }
        match self.large(entry) {
            Some(large) if entry.form == Form::BothOut => large.suffix(entry.suffix_len)[at],
            _ => self.leaf.words().read_u8(entry.rest + at - HEAD_BYTES),
        }
    }

    /// The suffix of entry `i`.
    pub(crate) fn suffix(self, i: usize) -> Vec<u8> {
        let mut suffix = Vec::new();
        self.push_suffix(&self.entry(i), &mut suffix);
        suffix
    }

    /// Compares the suffixes of entries `i` and `j`.
    pub(crate) fn compare(self, i: usize, j: usize) -> Ordering {
        self.suffix(i).cmp(&self.suffix(j))
    }

    /// Appends the value of `entry`.
    pub(crate) fn push_value(self, entry: &EntryAt, out: &mut Vec<u8>) {
        match self.large(entry) {
            Some(large) => out.extend_from_slice(large.value()),
            None => self.leaf.words().push_to(entry.tail, entry.value_len, out),
        }
    }

    /// Bytes of the large blocks of the entries, and of the operands among them.
    pub(crate) fn large_bytes(self) -> (usize, usize) {
        let operands = self.operands();
        let large = (0..self.len()).filter_map(|i| Some((i, self.large(&self.entry(i))?)));
        large.fold((0, 0), |(all, of_operands), (i, large)| {
            let bytes = large.arena_bytes();
            let operand = operands >> i & 1 == 1;
            (all + bytes, of_operands + if operand { bytes } else { 0 })
        })
    }
}
