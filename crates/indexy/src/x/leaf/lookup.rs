//! Optimistic reads of a leaf: what is read is used after the leaf was validated.

use super::{
    handles::{LeafLatched, LeafRef, LeafSeen},
    layout::{Bit, Kind},
    mask::mask,
    stable::LeafBuffer,
};
use crate::{
    key::{Key, Value},
    mem::Memory,
    x::{
        Lookup, XStats,
        entry::{Form, MAX_INLINE_VALUE},
        large::LargeRef,
    },
};

/// A walk over leaves fetches so many at once: a trip to memory for each would be most of its cost.
pub(crate) const FETCHED_AT_ONCE: usize = 8;

/// What a range holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measured {
    pub keys: usize,
    pub dirty: usize,
    /// Arena bytes.
    pub bytes: usize,
}

impl<'g> LeafSeen<'g> {
    /// Counters and bytes; `None` when the leaf changed.
    pub(crate) fn measure(self) -> Option<Measured> {
        let leaf = self.leaf();
        let mut bytes = Memory::size_of(leaf.block());
        if leaf.any_large() {
            bytes += self.copy(&mut LeafBuffer::new())?.large_bytes().0;
        }
        let measured = Measured {
            keys: leaf.len(),
            dirty: leaf.bits(Bit::Dirty).count_ones() as usize,
            bytes,
        };
        self.unchanged().then_some(measured)
    }

    /// Nothing here is live, and the range is complete; `None` when the leaf changed. Cost: its
    /// header.
    #[inline]
    pub(crate) fn is_dead(self) -> Option<bool> {
        let dead = self.leaf().has_no_live() && self.leaf().mount().is_none();
        self.unchanged().then_some(dead)
    }

    /// Looks `suffix` up; `None` when the leaf changed meanwhile. A value that stands in the leaf
    /// is copied to `copy`.
    ///
    /// A function of its own: its callers are compiled for each use of a value.
    #[inline(never)]
    pub(crate) fn get(
        self,
        suffix: &[u8],
        track: bool,
        copy: &mut ValueCopy,
    ) -> Option<Lookup<ValueRead<'g>>> {
        let leaf = self.leaf();
        let records = leaf.records();
        let Ok(i) = leaf.find_in(records.as_ref(), suffix, || self.unchanged())? else {
            return self.missing();
        };
        if leaf.has_bit(i, Bit::Tombstone) {
            let answer = if leaf.has_bit(i, Bit::InY) {
                Lookup::Deleted
            } else {
                Lookup::Operand
            };
            return self.unchanged().then_some(answer);
        }
        let entry = leaf.entry_in(records.as_ref(), i);
        let read = if entry.form == Form::Inline {
            let len = entry.value_len.min(MAX_INLINE_VALUE);
            copy.fill(leaf, entry.tail, len);
            if !self.unchanged() {
                return None;
            }
            ValueRead::Copied(len)
        } else {
            let word = leaf.large_word(&entry);
            if !self.unchanged() {
                return None;
            }
            // SAFETY: the leaf was validated after the word was read.
            ValueRead::Large(unsafe { LargeRef::from_raw(word) })
        };
        if track {
            leaf.reference(i);
        }
        Some(Lookup::Found(read))
    }

    fn missing<R>(self) -> Option<Lookup<R>> {
        let mount = self.leaf().mount();
        // I1: no entry; only a mount makes Y's word count.
        self.unchanged()
            .then(|| mount.map_or(Lookup::Absent, Lookup::AskY))
    }
}

/// Room for a value that stands in a leaf.
pub(crate) struct ValueCopy([u8; MAX_INLINE_VALUE]);

impl ValueCopy {
    #[inline]
    pub(crate) fn new() -> Self {
        Self([0; MAX_INLINE_VALUE])
    }

    /// Copies the `len` bytes at `at`, torn or not.
    #[inline]
    fn fill(&mut self, leaf: LeafRef<'_>, at: usize, len: usize) {
        // The first word at once: most values have no more.
        self.0[..8].copy_from_slice(&leaf.words().read_u64(at).to_le_bytes());
        if len > 8 {
            leaf.words().copy_out(at + 8, &mut self.0[8..len]);
        }
    }
}

/// A value that was found.
pub(crate) enum ValueRead<'g> {
    /// The copy has it, of this length.
    Copied(usize),
    Large(LargeRef<'g>),
}

impl ValueRead<'_> {
    /// The value; `copy` was given to [`LeafSeen::get`].
    #[inline]
    pub(crate) fn of<'c>(&'c self, copy: &'c ValueCopy) -> &'c [u8] {
        match self {
            Self::Copied(len) => &copy.0[..*len],
            Self::Large(large) => large.value(),
        }
    }
}

impl<'g> LeafRef<'g> {
    /// The key that is `path` and the suffix of entry `i`, and its value; a tombstone has none, and
    /// an operand is none.
    /// `None` when `stable` says that the leaf changed. Where it changed and `stable` was not
    /// asked, the answer is arbitrary, but not longer than the leaf: the caller asks afterwards.
    pub(crate) fn key_and_value(
        self,
        path: &[u8],
        i: usize,
        stable: impl Fn() -> bool,
    ) -> Option<(Key, Option<Value>)> {
        let entry = self.entry(i);
        let large: Option<LargeRef<'g>> = if entry.form == Form::Inline {
            if entry.suffix_len + entry.value_len > self.size() {
                return None;
            }
            None
        } else {
            let word = self.large_word(&entry);
            if !stable() {
                return None;
            }
            // SAFETY: the leaf did not change since the entry and the word were read.
            Some(unsafe { LargeRef::from_raw(word) })
        };
        let key = Key::build(path.len() + entry.suffix_len, |key| {
            let (start, suffix) = key.split_at_mut(path.len());
            start.copy_from_slice(path);
            match large {
                Some(large) if entry.form == Form::BothOut => {
                    suffix.copy_from_slice(large.suffix(entry.suffix_len));
                }
                _ => self.copy_inline_suffix(&entry, suffix),
            }
        });
        if self.has_bit(i, Bit::Tombstone) {
            return Some((key, None));
        }
        let value = match large {
            Some(large) => Value::new(large.value()),
            None => Value::build(entry.value_len, |value| {
                self.words().copy_out(entry.tail, value);
            }),
        };
        Some((key, Some(value)))
    }

    /// Has the processor fetch these entries, with the first lines of their large blocks: all at
    /// once, because each would cost a trip to memory.
    pub(crate) fn prefetch(self, entries: impl Iterator<Item = usize> + Clone) {
        if self.kind() != Kind::Slotted {
            return self.prefetch_entries();
        }
        entries.clone().for_each(|i| {
            let at = self.slot(i).offset();
            self.words().prefetch(at..at + 1);
        });
        for i in entries.filter(|&i| self.slot(i).is_large()) {
            LargeRef::prefetch(self.large_word(&self.entry(i)));
        }
    }
}

impl LeafLatched<'_> {
    /// Takes the leaf out of use with all that belongs to it; nothing leads here any more. Adds
    /// what it held to `gone`.
    pub(crate) fn retire_all(self, memory: &Memory, gone: &mut XStats) {
        let stable = self.stable();
        gone.mounts += usize::from(stable.mount().is_some());
        gone.keys += stable.len();
        gone.bytes += self.arena_bytes().unsigned_abs();
        gone.dirty += stable.bits(Bit::Dirty).count_ones() as usize;
        gone.tombstones += stable.bits(Bit::Tombstone).count_ones() as usize;
        gone.operands += stable.operands().count_ones() as usize;
        if self.leaf().any_large() {
            self.leaf().prefetch(0..stable.len());
            let operands = stable.operands();
            for i in 0..stable.len() {
                let Some(large) = stable.large(&stable.entry(i)) else {
                    continue;
                };
                let bytes = large.arena_bytes();
                gone.bytes += bytes;
                gone.large_bytes += bytes;
                gone.large_operand_bytes += if operands >> i & 1 == 1 { bytes } else { 0 };
                large.retire(memory);
            }
        }
        self.retire(memory);
    }
}

impl LeafRef<'_> {
    /// The entries that are operands.
    #[inline]
    pub(crate) fn operands(self) -> u64 {
        self.bits(Bit::Tombstone) & !self.bits(Bit::InY)
    }

    /// Every entry is a tombstone, or an operand.
    #[inline]
    pub(crate) fn has_no_live(self) -> bool {
        mask(0..self.len()) & !self.bits(Bit::Tombstone) == 0
    }

    /// Nothing here is live, and the range is complete. A leaf that changes is not: whoever comes
    /// to it looks again.
    pub(crate) fn is_dead(self) -> bool {
        self.see().and_then(LeafSeen::is_dead).unwrap_or(false)
    }

    /// Frees a leaf of a tree that is being dropped, with its large blocks.
    ///
    /// # Safety
    /// The caller owns the tree alone and does not look at the leaf again.
    pub(crate) unsafe fn free(self, memory: &Memory) {
        for i in 0..self.len() {
            let entry = self.entry(i);
            if entry.form != Form::Inline {
                // SAFETY: nobody changes or reads the leaf; the block is the entry's.
                unsafe { LargeRef::from_raw(self.large_word(&entry)).free(memory) };
            }
        }
        // SAFETY: the caller's promise.
        unsafe { memory.free(self.block()) };
    }
}
