//! The bytes of an inner node.
//!
//! | offset | what |
//! |---|---|
//! | 0 | latch |
//! | 8 | kind (8 bits), children (16), gap is mounted (1), unused (7), prefix length (16) |
//! | 16 | stamp of the gap |
//! | 24 | compressed prefix, zero padded to words |
//! | then | separators: 8, 16, 48 or 0 bytes for 4, 16, 48 or 256 children |
//! | then | child words: 4, 16, 48, or 257 |
//!
//! In the smaller kinds child `i` covers the symbols from separator `i - 1` (a byte, ascending) up
//! to the next; child 0 covers "the key ends here" and all below the first separator. Node256 has
//! one word per symbol; a child that covers several symbols is repeated.
//!
//! The *gap* is what lies beside the prefix: keys that come to this node and do not have it.
//!
//! Kind, prefix and place in the tree never change after a node was made; the rest changes under
//! the latch.

use super::super::symbol::SYMBOLS;
use crate::x::child::ChildWord;
use crate::{
    mem::{latch::Latch, words::Words},
    x::Stamp,
};
use std::{
    ptr::NonNull,
    sync::atomic::Ordering::{Acquire, Release},
};

pub(crate) const HEADER_BYTES: usize = 24;
/// What a search looks at in most nodes: header, separators and children.
const FETCH_BYTES: usize = 192;
const LATCH: usize = 0;
const META: usize = 1;
const GAP: usize = 2;
const GAP_MOUNTED: u64 = 1 << 24;

/// How many children a node can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Kind {
    Node4,
    Node16,
    Node48,
    Node256,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Node4, Self::Node16, Self::Node48, Self::Node256];

    #[inline]
    fn of(meta: u64) -> Self {
        match meta & 3 {
            0 => Self::Node4,
            1 => Self::Node16,
            2 => Self::Node48,
            _ => Self::Node256,
        }
    }

    /// Most children; for Node256, words.
    #[inline]
    pub(crate) fn capacity(self) -> usize {
        // Tables: a `match` becomes a jump in every step of a search.
        const CHILDREN: [u16; 4] = [4, 16, 48, SYMBOLS as u16];
        usize::from(CHILDREN[self as usize])
    }

    #[inline]
    pub(super) fn separator_words(self) -> usize {
        const WORDS: [u8; 4] = [1, 2, 6, 0];
        usize::from(WORDS[self as usize])
    }

    /// The smallest kind for so many children.
    #[inline]
    pub(crate) fn for_children(n: usize) -> Self {
        Self::ALL
            .into_iter()
            .find(|kind| n <= kind.capacity())
            .unwrap_or(Self::Node256)
    }
}

/// Bytes of a node.
#[inline]
pub(crate) fn node_bytes(kind: Kind, prefix_len: usize) -> usize {
    HEADER_BYTES + 8 * (prefix_len.div_ceil(8) + kind.separator_words() + kind.capacity())
}

/// An inner node, and what of its header never changes.
#[derive(Clone, Copy)]
pub(crate) struct InnerRef<'g> {
    words: Words<'g>,
    block: NonNull<u64>,
    kind: Kind,
    prefix_len: usize,
}

/// What the header says.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub kind: Kind,
    pub children: usize,
    pub prefix_len: usize,
}

impl Shape {
    #[inline]
    fn of(meta: u64) -> Self {
        Self {
            kind: Kind::of(meta),
            children: (meta >> 8 & 0xFFFF) as usize,
            prefix_len: (meta >> 32 & 0xFFFF) as usize,
        }
    }

    /// Index of the first separator word.
    #[inline]
    pub(super) fn separators(self) -> usize {
        HEADER_BYTES / 8 + self.prefix_len.div_ceil(8)
    }

    /// Index of the first child word.
    #[inline]
    pub(super) fn first_child(self) -> usize {
        self.separators() + self.kind.separator_words()
    }
}

impl<'g> InnerRef<'g> {
    /// # Safety
    /// `block` is an inner node that stays allocated for `'g`.
    #[inline(always)]
    pub(crate) unsafe fn from_block(block: NonNull<u64>) -> Self {
        // SAFETY: a node has a header; by the contract it stays allocated.
        let header = unsafe { Words::new(block, HEADER_BYTES) };
        // Kind and prefix length never change after the node was made.
        let shape = Shape::of(header.word(META));
        let bytes = node_bytes(shape.kind, shape.prefix_len);
        // SAFETY: as above; this is what was allocated.
        let words = unsafe { Words::new(block, bytes) };
        Self {
            words,
            block,
            kind: shape.kind,
            prefix_len: shape.prefix_len,
        }
    }

    /// Writes header and prefix of a new node; it has no children yet.
    pub(super) fn format(
        block: NonNull<u64>,
        words: Words<'g>,
        kind: Kind,
        prefix: &[u8],
        gap: Option<Stamp>,
    ) -> Self {
        let node = Self {
            words,
            block,
            kind,
            prefix_len: prefix.len(),
        };
        words.set_word(META, kind as u64 | (prefix.len() as u64) << 32);
        node.set_gap(gap);
        words.write(HEADER_BYTES, prefix);
        node
    }

    pub(crate) fn block(self) -> NonNull<u64> {
        self.block
    }

    #[inline]
    pub(crate) fn word(self) -> ChildWord {
        ChildWord::inner(self.block, FETCH_BYTES)
    }

    #[inline]
    pub(crate) fn words(self) -> Words<'g> {
        self.words
    }

    #[inline]
    pub(super) fn latch_word(self) -> &'g Latch {
        Latch::of(self.words.atomic(LATCH))
    }

    #[inline(always)]
    fn meta(self) -> u64 {
        // SAFETY: the block is a node (`from_block`), or the header was written to it (`format`).
        unsafe { self.words.word_inside(META) }
    }

    /// What the header says now.
    #[inline]
    pub(crate) fn shape(self) -> Shape {
        Shape {
            kind: self.kind,
            children: Shape::of(self.meta()).children,
            prefix_len: self.prefix_len,
        }
    }

    /// Bytes of prefix.
    #[inline]
    pub(crate) fn prefix_len(self) -> usize {
        self.prefix_len
    }

    pub(super) fn set_children(self, n: usize) {
        let meta = self.meta() & !(0xFFFF << 8);
        self.words.set_word(META, meta | (n as u64) << 8);
    }

    /// The mount of the gap; `None` when it is complete, or when there is no prefix.
    #[inline]
    pub(crate) fn gap(self) -> Option<Stamp> {
        let mounted = self.meta() & GAP_MOUNTED != 0;
        mounted.then(|| self.words.word(GAP))
    }

    pub(super) fn set_gap(self, gap: Option<Stamp>) {
        let meta = self.meta();
        let mounted = gap.is_some() && Shape::of(meta).prefix_len > 0;
        self.words.set_word(GAP, gap.unwrap_or(0));
        let meta = if mounted {
            meta | GAP_MOUNTED
        } else {
            meta & !GAP_MOUNTED
        };
        self.words.set_word(META, meta);
    }

    /// Word `i` of the block; arbitrary behind its end.
    #[inline]
    pub(super) fn cell(self, i: usize) -> u64 {
        self.words.word(i)
    }

    /// The `N` words from word `i` on; zeros when they are not all there.
    #[inline]
    pub(super) fn cells<const N: usize>(self, i: usize) -> [u64; N] {
        self.words.array(i).unwrap_or([0; N])
    }

    pub(super) fn set_cell(self, i: usize, word: u64) {
        self.words.set_word(i, word);
    }

    /// Child word `i`, one that is there. Acquire: pairs with the release store in `set_child`.
    #[inline]
    pub(super) fn child_at(self, shape: Shape, i: usize) -> ChildWord {
        let cell = self.words.atomic(shape.first_child() + i);
        ChildWord::from_raw(cell.load(Acquire))
    }

    /// Publishes child word `i`.
    pub(super) fn set_child(self, shape: Shape, i: usize, word: ChildWord) {
        let cell = self.words.atomic(shape.first_child() + i);
        cell.store(word.raw(), Release);
    }

    /// Publishes `new` at the `indices` up to the first that does not have `old`.
    pub(super) fn replace_while(
        self,
        shape: Shape,
        old: ChildWord,
        new: ChildWord,
        indices: impl Iterator<Item = usize>,
    ) {
        let (first, old, new) = (shape.first_child(), old.raw(), new.raw());
        for i in indices {
            let cell = self.words.atomic(first + i);
            if cell.load(Acquire) != old {
                return;
            }
            cell.store(new, Release);
        }
    }

    /// Separator `i`: the first byte that child `i + 1` covers.
    #[inline]
    pub(super) fn separator(self, shape: Shape, i: usize) -> u8 {
        (self.cell(shape.separators() + i / 8) >> (8 * (i % 8))) as u8
    }
}
