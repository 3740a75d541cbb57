//! A leaf that does not change while it is looked at: latched, or copied and validated.
//!
//! Everything here may be trusted, and pointers to large blocks may be followed.

use super::{
    format::{Bit, EntryAt, LeafFormat},
    handles::{LeafLatched, LeafRef, LeafSeen},
};
use crate::{
    key::Value,
    mem::words::Words,
    x::{RunId, Stamp, entry::Form, large::LargeRef},
};
use std::{cmp::Ordering, mem::MaybeUninit, ptr::NonNull, sync::atomic::AtomicU64};

/// No leaf is larger.
pub(crate) const BUFFER_BYTES: usize = 4080;

/// Room for a copy of a leaf.
pub(crate) struct LeafBuffer([MaybeUninit<AtomicU64>; BUFFER_BYTES / 8]);

impl LeafBuffer {
    pub(crate) fn new() -> Self {
        Self([const { MaybeUninit::uninit() }; BUFFER_BYTES / 8])
    }

    /// Copies the words of `leaf`, torn or not.
    fn fill<'x, F: Copy>(&'x mut self, leaf: LeafRef<'_, F>) -> LeafRef<'x, F> {
        let from = leaf.words();
        let words = from.len_bytes() / 8;
        for (i, to) in self.0[..words].iter_mut().enumerate() {
            to.write(AtomicU64::new(from.word(i)));
        }
        // SAFETY: the buffer is borrowed for `'x`, and these words of it were written.
        leaf.with_words(unsafe { Words::new(NonNull::from(&self.0).cast(), words * 8) })
    }
}

/// See the module header.
#[derive(Clone, Copy)]
pub(crate) struct StableLeaf<'x, F> {
    leaf: LeafRef<'x, F>,
}

impl<'g, F: Copy> LeafSeen<'g, F> {
    /// A validated copy of the leaf.
    pub(crate) fn copy<'x>(self, buffer: &'x mut LeafBuffer) -> Option<StableLeaf<'x, F>>
    where
        'g: 'x,
    {
        let leaf = buffer.fill(self.leaf());
        // The copy is used only when nothing changed while it was made. `'g`, and with it the
        // guard that keeps large blocks, covers `'x`.
        self.unchanged().then_some(StableLeaf { leaf })
    }
}

impl<'g, F: Copy> LeafLatched<'g, F> {
    /// The leaf as its latch holder sees it. Blocks that edits unlink stay for `'g`.
    #[inline(always)]
    pub(crate) fn stable(&self) -> StableLeaf<'g, F> {
        StableLeaf { leaf: self.leaf() }
    }
}

impl<'x, F: LeafFormat> StableLeaf<'x, F> {
    /// A copy that stays when the latch is given up.
    pub(crate) fn copy<'y>(self, buffer: &'y mut LeafBuffer) -> StableLeaf<'y, F>
    where
        'x: 'y,
    {
        StableLeaf {
            leaf: buffer.fill(self.leaf),
        }
    }

    /// The leaf, to read it as one may read any.
    #[inline(always)]
    pub(crate) fn raw(self) -> LeafRef<'x, F> {
        self.leaf
    }

    pub(crate) fn len(self) -> usize {
        F::len(self.leaf)
    }

    pub(crate) fn mount(self) -> Option<Stamp> {
        F::mount(self.leaf)
    }

    /// The last run that copied from this leaf.
    pub(crate) fn run(self) -> RunId {
        F::run(self.leaf)
    }

    /// The entries that have `bit`.
    pub(crate) fn bits(self, bit: Bit) -> u64 {
        F::bits(self.leaf, bit)
    }

    /// `DIRTY`, `IN_Y` and `TOMBSTONE` of entry `i`, and maybe others.
    #[inline]
    pub(crate) fn flags(self, i: usize) -> u32 {
        F::flags(self.leaf, i)
    }

    /// `entry`, which is number `i`, has `bit`: `Dirty` or `Tombstone`.
    #[inline]
    pub(crate) fn has(self, i: usize, entry: &F::Entry, bit: Bit) -> bool {
        F::has(self.leaf, i, entry, bit)
    }

    #[inline]
    pub(crate) fn entry(self, i: usize) -> F::Entry {
        F::entry(self.leaf, i)
    }

    /// The index of `suffix`, or the one where it belongs.
    #[inline]
    pub(crate) fn find(self, suffix: &[u8]) -> Result<usize, usize> {
        F::find(self.leaf, suffix, || true).unwrap_or(Err(0))
    }

    /// The large block of `entry`, if it has one.
    pub(crate) fn large(self, entry: &F::Entry) -> Option<LargeRef<'x>> {
        (entry.form() != Form::Inline).then(|| {
            let word = self.leaf.large_word(entry);
            // SAFETY: nothing changes: the leaf is latched, or this is a validated copy. So the
            // entry is whole.
            unsafe { LargeRef::from_raw(word) }
        })
    }

    /// Copies the suffix of `entry` to `out`, which is as long.
    pub(crate) fn copy_suffix(self, entry: &F::Entry, out: &mut [u8]) {
        match self.large(entry) {
            Some(large) if entry.form() == Form::BothOut => {
                out.copy_from_slice(large.suffix(entry.suffix_len()));
            }
            _ => F::copy_inline_suffix(self.leaf, entry, out),
        }
    }

    /// Appends the suffix of `entry`.
    pub(crate) fn push_suffix(self, entry: &F::Entry, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + entry.suffix_len(), 0);
        self.copy_suffix(entry, &mut out[start..]);
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

    /// The value of `entry`.
    pub(crate) fn value(self, entry: &F::Entry) -> Value {
        match self.large(entry) {
            Some(large) => Value::new(large.value()),
            None => Value::build(entry.value_len(), |value| {
                self.leaf.words().copy_out(entry.tail(), value);
            }),
        }
    }

    /// Appends the value of `entry`.
    pub(crate) fn push_value(self, entry: &F::Entry, out: &mut Vec<u8>) {
        match self.large(entry) {
            Some(large) => out.extend_from_slice(large.value()),
            None => self
                .leaf
                .words()
                .push_to(entry.tail(), entry.value_len(), out),
        }
    }

    /// Bytes of the large blocks of the entries.
    pub(crate) fn large_bytes(self) -> usize {
        (0..self.len())
            .filter_map(|i| self.large(&self.entry(i)))
            .map(LargeRef::arena_bytes)
            .sum()
    }
}
