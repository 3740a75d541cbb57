//! A leaf as an address, as it was at a version, and as its latch holder has it.
//!
//! Threads: the latch is the first word of a leaf.

use crate::mem::{
    Memory,
    latch::{Latch, Version},
    words::Words,
};
use std::ptr::NonNull;

/// The word of the latch.
const LATCH: usize = 0;

/// A leaf, or a copy of one.
#[derive(Clone, Copy)]
pub(crate) struct LeafRef<'g> {
    words: Words<'g>,
    block: NonNull<u64>,
}

/// A leaf as it was at a version.
#[derive(Clone, Copy)]
pub(crate) struct LeafSeen<'g> {
    leaf: LeafRef<'g>,
    version: Version,
}

/// A leaf whose latch the owner of this holds; unlatched on drop.
pub(crate) struct LeafLatched<'g> {
    leaf: LeafRef<'g>,
}

impl<'g> LeafRef<'g> {
    /// # Safety
    /// `block` is a leaf, or becomes one before anybody else knows it, and stays
    /// allocated for `'g`. `words` are all of its words.
    #[inline(always)]
    pub(crate) unsafe fn new(block: NonNull<u64>, words: Words<'g>) -> Self {
        Self { words, block }
    }

    /// The words of a copy in place of these.
    #[inline]
    pub(super) fn with_words<'x>(self, words: Words<'x>) -> LeafRef<'x> {
        LeafRef {
            words,
            block: self.block,
        }
    }

    #[inline]
    pub(crate) fn block(self) -> NonNull<u64> {
        self.block
    }

    /// Bytes of the block.
    #[inline]
    pub(crate) fn size(self) -> usize {
        self.words.len_bytes()
    }

    #[inline(always)]
    pub(crate) fn words(self) -> Words<'g> {
        self.words
    }

    #[inline]
    fn latch_word(self) -> &'g Latch {
        Latch::of(self.words.atomic(LATCH))
    }

    /// Waits for a writer; `None` when the leaf is obsolete.
    #[inline(always)]
    pub(crate) fn see(self) -> Option<LeafSeen<'g>> {
        let version = self.latch_word().read()?;
        Some(LeafSeen {
            leaf: self,
            version,
        })
    }

    /// Waits for the latch; `None` when the leaf is obsolete.
    pub(crate) fn latch(self) -> Option<LeafLatched<'g>> {
        self.latch_word().lock().then(|| LeafLatched { leaf: self })
    }

    /// Latches a leaf that nobody else knows.
    pub(crate) fn latch_new(self) -> LeafLatched<'g> {
        let Some(latched) = self.latch() else {
            unreachable!("a new leaf is not obsolete");
        };
        latched
    }
}

impl<'g> LeafSeen<'g> {
    #[inline(always)]
    pub(crate) fn leaf(&self) -> LeafRef<'g> {
        self.leaf
    }

    /// The leaf is still as it was seen.
    #[inline]
    pub(crate) fn unchanged(&self) -> bool {
        self.leaf.latch_word().validate(self.version)
    }

    /// Latches the leaf, if it is still as it was seen. Does not wait.
    #[inline]
    pub(crate) fn try_latch(self) -> Option<LeafLatched<'g>> {
        self.leaf
            .latch_word()
            .try_upgrade(self.version)
            .then(|| LeafLatched { leaf: self.leaf })
    }
}

impl<'g> LeafLatched<'g> {
    #[inline(always)]
    pub(crate) fn leaf(&self) -> LeafRef<'g> {
        self.leaf
    }

    /// Bytes of the leaf in the arena, without what is out of line.
    #[inline]
    pub(crate) fn arena_bytes(&self) -> isize {
        Memory::size_of(self.leaf.block) as isize
    }

    /// Takes the leaf out of use. Its entries' large blocks are the caller's.
    pub(crate) fn retire(self, memory: &Memory) {
        let block = self.leaf.block;
        self.leaf.latch_word().unlock_obsolete();
        std::mem::forget(self);
        // SAFETY: the caller replaced the word that led here, under the parent's latch; nobody
        // finds it again.
        unsafe { memory.retire(block) };
    }
}

impl Drop for LeafLatched<'_> {
    #[inline]
    fn drop(&mut self) {
        Latch::of(self.leaf.words.atomic(LATCH)).unlock();
    }
}
