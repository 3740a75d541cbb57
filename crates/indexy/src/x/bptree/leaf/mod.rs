//! Leaves: the entries of a range, in key order, in one block.
//!
//! A leaf is at one place of the tree for its whole life: its range and its depth never change. What
//! must change them builds new leaves and marks the old one obsolete. So a leaf that is not
//! obsolete is in the tree, and a reader that came to it need not look at its parent again.
//!
//! Threads: readers read optimistically (`LeafSeen`); a writer holds the latch (`LeafLatched`) for the time
//! of one edit, and the parent's latch too when it replaces the leaf.

pub(super) mod build;
mod check;
pub(super) mod edit;
pub(super) mod layout;
pub(super) mod read;
pub(super) mod stable;

pub(super) use layout::LeafRef;

use crate::{
    mem::{Memory, latch::Version},
    x::{
        Lookup, Stamp,
        form::{Form, MAX_INLINE_VALUE},
        large::LargeRef,
    },
};
use layout::{Bit, Kind};
use stable::{LeafBuffer, StableLeaf};

/// Values up to this are copied through a smaller buffer.
const SMALL_VALUE: usize = 64;

/// A leaf as it was at a version.
#[derive(Clone, Copy)]
pub(in crate::x::bptree) struct LeafSeen<'g> {
    leaf: LeafRef<'g>,
    version: Version,
}

/// A leaf whose latch the owner of this holds; given up on drop.
pub(in crate::x::bptree) struct LeafLatched<'g> {
    leaf: LeafRef<'g>,
}

/// What a range holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::x::bptree) struct Measured {
    pub keys: usize,
    pub dirty: usize,
    /// Arena bytes.
    pub bytes: usize,
}

impl<'g> LeafRef<'g> {
    /// Waits for a writer; `None` when the leaf is obsolete.
    #[inline]
    pub(in crate::x::bptree) fn see(self) -> Option<LeafSeen<'g>> {
        let version = self.latch_word().read()?;
        Some(LeafSeen {
            leaf: self,
            version,
        })
    }

    /// Waits for the latch; `None` when the leaf is obsolete.
    pub(in crate::x::bptree) fn latch(self) -> Option<LeafLatched<'g>> {
        self.latch_word().lock().then(|| LeafLatched { leaf: self })
    }

    /// Frees a leaf of a tree that is being dropped, with its large blocks.
    ///
    /// # Safety
    /// The caller owns the tree alone and does not look at the leaf again.
    pub(in crate::x::bptree) unsafe fn free(self, memory: &Memory) {
        for i in 0..self.meta().n {
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

impl<'g> LeafSeen<'g> {
    pub(in crate::x::bptree) fn leaf(&self) -> LeafRef<'g> {
        self.leaf
    }

    /// The leaf is still as it was seen.
    #[inline]
    pub(in crate::x::bptree) fn unchanged(&self) -> bool {
        self.leaf.latch_word().validate(self.version)
    }

    /// Latches the leaf, if it is still as it was seen. Does not wait.
    #[inline]
    pub(in crate::x::bptree) fn try_latch(self) -> Option<LeafLatched<'g>> {
        self.leaf
            .latch_word()
            .try_upgrade(self.version)
            .then(|| LeafLatched { leaf: self.leaf })
    }

    /// Has the processor fetch what a search does not need at once and a write does: the entries, too, one of which is
    /// looked at if the key is here, and all of them if there is no room for it.
    #[inline]
    pub(in crate::x::bptree) fn prefetch_to_write(&self) {
        let leaf = self.leaf;
        leaf.words().prefetch(leaf.arrays()..leaf.size());
    }

    /// A validated copy of the leaf.
    pub(in crate::x::bptree) fn copy<'x>(self, buffer: &'x mut LeafBuffer) -> Option<StableLeaf<'x>>
    where
        'g: 'x,
    {
        let copy = buffer.fill(self.leaf);
        // SAFETY: the copy is used only when nothing changed while it was made; `'g` covers `'x`.
        self.unchanged().then(|| unsafe { StableLeaf::new(copy) })
    }

    /// Counts and bytes; `None` when the leaf changed.
    pub(in crate::x::bptree) fn measure(self) -> Option<Measured> {
        let leaf = self.leaf;
        let n = leaf.meta().n;
        let slotted = leaf.kind() == Kind::Slotted;
        let mut bytes = Memory::size_of(leaf.block());
        if slotted && (0..n).any(|i| leaf.slot(i).is_large()) {
            bytes += self.copy(&mut LeafBuffer::new())?.large_bytes();
        }
        let measured = Measured {
            keys: n,
            dirty: leaf.bits(Bit::Dirty).count_ones() as usize,
            bytes,
        };
        self.unchanged().then_some(measured)
    }

    /// Looks `suffix` up. `Err` gives `found` back: the leaf changed meanwhile.
    #[inline]
    pub(in crate::x::bptree) fn get<R, F: FnOnce(&[u8]) -> R>(
        self,
        suffix: &[u8],
        track: bool,
        found: F,
    ) -> Result<Lookup<R>, F> {
        let leaf = self.leaf;
        let i = match leaf.find(suffix, || self.unchanged()) {
            Some(Ok(i)) => i,
            Some(Err(_)) => return self.missing().ok_or(found),
            None => return Err(found),
        };
        let entry = leaf.entry(i);
        let tombstone = leaf.has(i, Bit::Tombstone);
        if tombstone {
            return if self.unchanged() {
                Ok(Lookup::Deleted)
            } else {
                Err(found)
            };
        }
        if entry.form == Form::Inline {
            let done = if entry.value_len <= SMALL_VALUE {
                self.copy_value::<SMALL_VALUE, _, _>(entry.tail, entry.value_len, found)
            } else {
                let len = entry.value_len.min(MAX_INLINE_VALUE);
                self.copy_value::<MAX_INLINE_VALUE, _, _>(entry.tail, len, found)
            };
            if track && done.is_ok() {
                leaf.reference(i);
            }
            return done.map(Lookup::Found);
        }
        let word = leaf.large_word(&entry);
        if !self.unchanged() {
            return Err(found);
        }
        if track {
            leaf.reference(i);
        }
        // SAFETY: the leaf was validated after the word was read.
        let large: LargeRef<'g> = unsafe { LargeRef::from_raw(word) };
        Ok(Lookup::Found(found(large.value())))
    }

    fn missing<R>(self) -> Option<Lookup<R>> {
        let mount = self.leaf.mount();
        self.unchanged()
            .then(|| mount.map_or(Lookup::Absent, Lookup::AskY))
    }

    #[inline]
    fn copy_value<const N: usize, R, F: FnOnce(&[u8]) -> R>(
        self,
        at: usize,
        len: usize,
        found: F,
    ) -> Result<R, F> {
        let mut buffer = [0u8; N];
        let value = &mut buffer[..len];
        self.leaf.words().copy_out(at, value);
        if self.unchanged() {
            Ok(found(value))
        } else {
            Err(found)
        }
    }
}

impl<'g> LeafLatched<'g> {
    pub(in crate::x::bptree) fn leaf(&self) -> LeafRef<'g> {
        self.leaf
    }

    /// The leaf as its latch holder sees it.
    #[inline]
    pub(in crate::x::bptree) fn stable(&self) -> StableLeaf<'g> {
        // SAFETY: latched; blocks that edits unlink stay for `'g`.
        unsafe { StableLeaf::new(self.leaf) }
    }

    pub(in crate::x::bptree) fn mount(&self) -> Option<Stamp> {
        self.leaf.mount()
    }

    /// Bytes of the leaf in the arena, without what is out of line.
    pub(in crate::x::bptree) fn arena_bytes(&self) -> isize {
        Memory::size_of(self.leaf.block()) as isize
    }

    /// Takes the leaf out of use. Its entries' large blocks are the caller's.
    pub(in crate::x::bptree) fn retire(self, memory: &Memory) {
        let leaf = self.leaf;
        std::mem::forget(self);
        leaf.latch_word().unlock_obsolete();
        // SAFETY: the caller replaced the word that led here, under the parent's latch; nobody finds it again.
        unsafe { memory.retire(leaf.block()) };
    }
}

impl Drop for LeafLatched<'_> {
    fn drop(&mut self) {
        self.leaf.latch_word().unlock();
    }
}
