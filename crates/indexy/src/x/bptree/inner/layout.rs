//! The bytes of an inner node.
//!
//! | offset | what |
//! |---|---|
//! | 0 | latch |
//! | 8 | children (16 bits), room for children (16), level (16), depth (16) |
//! | 16 | heap top, dead heap bytes, block size / 16, length of the shared prefix (16 bits each) |
//! | 24 | the first 8 bytes of the shared prefix; the others are at the very end of the block |
//! | 32 | hints, heads of the separators: `heads.rs` |
//! | then | slots of the separators, 16 bits each: an offset, or a length of at most 4 |
//! | | (then the head is all of it) |
//! | then | child words |
//! | top .. size | heap: `length * 2 + whether large` (32 bits), the separator behind its head |
//! | | or a pointer to it |
//!
//! Child `i` has the keys from separator `i - 1` (inclusive) to separator `i` (exclusive).
//! Separators are the shortest keys that tell two children apart (suffix truncation), without the
//! first `depth` bytes, which all keys of the node's range have in common (prefix truncation), and
//! without what all of them share beyond that, the *shared prefix*: a range that is open to one
//! side, as the root's, has nothing in common, and heads of separators that begin alike would tell
//! nothing apart. It never changes; a separator that does not begin with it has the node rebuilt.
//! Longer ones than `MAX_INLINE_SEPARATOR` are in blocks of their own.
//!
//! Everything is read as relaxed atomic words, and may be torn until the version was validated: so
//! every offset and length is clamped to the block by `Words`.

use crate::x::heads::{HEAD_BYTES, Heads, hinted_bytes};
use crate::{
    mem::{Memory, latch::Latch, words::Words},
    x::child::ChildWord,
};
use std::{cmp::Ordering, ptr::NonNull};

/// A node does not grow beyond this, unless it has fewer than `MIN_CHILDREN_TO_SPLIT`: the node
/// size of inner nodes.
pub(crate) const INNER_BYTES: usize = 2048;
/// Most children of a node.
pub(crate) const MAX_CHILDREN: usize = 256;
/// A node with fewer children is not split.
pub(crate) const MIN_CHILDREN_TO_SPLIT: usize = 4;
/// Separators share at most so many bytes; the rest of what they have in common is left to their
/// heads.
pub(super) const MAX_SHARED: usize = 128;
/// Bytes of the shared prefix in the header.
const NEAR_SHARED: usize = 8;
/// Longer separators live out of line.
pub(super) const MAX_INLINE_SEPARATOR: usize = 64;

pub(super) const HEADER_BYTES: usize = 32;
/// What a search looks at first: header, hints and heads.
const FETCH_BYTES: usize = 512;
const SLOT_BYTES: usize = 2;
const CHILD_BYTES: usize = 8;
pub(super) const RECORD_HEADER: usize = 4;
const SIZE_UNIT: usize = 16;
/// Offsets have 16 bits.
const MAX_BLOCK_BYTES: usize = 4096;

const _: () = assert!(INNER_BYTES >= 256 && INNER_BYTES <= MAX_BLOCK_BYTES);
const _: () = assert!(
    node_bytes(
        MIN_CHILDREN_TO_SPLIT,
        MIN_CHILDREN_TO_SPLIT * MAX_INLINE_SEPARATOR + MAX_SHARED
    ) <= MAX_BLOCK_BYTES
);

const LATCH: usize = 0;
const META: usize = 1;
const HEAP: usize = 2;
const SHARED: usize = 3;

/// Counters and offsets of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    /// Children; one more than separators.
    pub n: usize,
    /// Room for so many children; never changes.
    pub cap: usize,
    /// More than that of any child; leaves have 0. Never changes.
    pub level: usize,
    /// Bytes of a key before the separators. Never changes.
    pub depth: usize,
}

/// The heap of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heap {
    pub top: usize,
    /// Bytes that belong to no separator.
    pub dead: usize,
}

/// Bytes of a node with room for `cap` children and `heap` bytes of separators.
pub(super) const fn node_bytes(cap: usize, heap: usize) -> usize {
    children_at(cap) + cap * CHILD_BYTES + heap
}

const fn slots_at(cap: usize) -> usize {
    HEADER_BYTES + hinted_bytes(cap - 1)
}

const fn children_at(cap: usize) -> usize {
    slots_at(cap) + ((cap - 1) * SLOT_BYTES).next_multiple_of(8)
}

/// Heap bytes of a shared prefix.
pub(super) const fn shared_bytes(len: usize) -> usize {
    len.saturating_sub(NEAR_SHARED)
}

/// Heap bytes of a separator.
pub(crate) fn record_bytes(len: usize) -> usize {
    if len <= HEAD_BYTES {
        0
    } else if len <= MAX_INLINE_SEPARATOR {
        RECORD_HEADER + len - HEAD_BYTES
    } else {
        RECORD_HEADER + 8
    }
}

/// An inner node.
#[derive(Clone, Copy)]
pub(crate) struct InnerRef<'g> {
    words: Words<'g>,
    block: NonNull<u64>,
}

impl<'g> InnerRef<'g> {
    /// # Safety
    /// `block` is an inner node that stays allocated for `'g`.
    #[inline]
    pub(crate) unsafe fn from_block(block: NonNull<u64>) -> Self {
        // SAFETY: a node has a header; by the contract it stays allocated.
        let header = unsafe { Words::new(block, HEADER_BYTES) };
        // The size bits never change after the node was made.
        let size = (header.word(HEAP) as usize >> 32 & 0xFFFF) * SIZE_UNIT;
        // SAFETY: as above; `size` is what was allocated.
        let words = unsafe { Words::new(block, size) };
        Self { words, block }
    }

    /// Writes the header of a new node, whose block is zeroed, and whose separators all begin with
    /// `shared`.
    pub(super) fn format(block: NonNull<u64>, words: Words<'g>, meta: Meta, shared: &[u8]) -> Self {
        let bytes = words.len_bytes();
        let top = bytes - shared_bytes(shared.len());
        debug_assert!(bytes <= MAX_BLOCK_BYTES && node_bytes(meta.cap, 0) <= top);
        debug_assert!(shared.len() <= MAX_SHARED);
        let size = (bytes / SIZE_UNIT) as u64;
        words.set_word(HEAP, size << 32 | (shared.len() as u64) << 48);
        let (near, far) = shared.split_at(shared.len().min(NEAR_SHARED));
        words.write(SHARED * 8, near);
        words.write(top, far);
        let node = Self { words, block };
        node.set_heap(Heap { top, dead: 0 });
        node.set_meta(meta);
        node
    }

    /// The same bytes in a new block; nobody holds its latch.
    pub(super) fn copy(self, memory: &Memory) -> Self {
        let block = memory.allocate(self.size());
        // SAFETY: the block is new and zeroed; once published it is retired, not freed.
        let words = unsafe { Words::new(block.ptr, self.size()) };
        let (from, len) = (META * 8, self.size() - META * 8);
        words.copy_from(&self.words, from, from, len);
        let block = block.ptr;
        Self { words, block }
    }

    pub(crate) fn block(self) -> NonNull<u64> {
        self.block
    }

    pub(crate) fn word(self) -> ChildWord {
        ChildWord::inner(self.block, FETCH_BYTES)
    }

    pub(crate) fn size(self) -> usize {
        self.words.len_bytes()
    }

    #[inline]
    pub(super) fn words(self) -> Words<'g> {
        self.words
    }

    #[inline]
    pub(super) fn latch_word(self) -> &'g Latch {
        Latch::of(self.words.atomic(LATCH))
    }

    #[inline]
    pub(crate) fn meta(self) -> Meta {
        let word = self.words.word(META);
        Meta {
            n: (word as usize & 0xFFFF).clamp(1, MAX_CHILDREN),
            cap: (word as usize >> 16 & 0xFFFF).clamp(2, MAX_CHILDREN),
            level: word as usize >> 32 & 0xFFFF,
            depth: word as usize >> 48,
        }
    }

    pub(super) fn set_meta(self, meta: Meta) {
        debug_assert!((1..=meta.cap).contains(&meta.n) && (2..=MAX_CHILDREN).contains(&meta.cap));
        let word = meta.n as u64
            | (meta.cap as u64) << 16
            | (meta.level as u64) << 32
            | (meta.depth as u64) << 48;
        self.words.set_word(META, word);
    }

    /// Bytes of a key before the separators.
    #[inline]
    pub(crate) fn depth(self) -> usize {
        self.words.word(META) as usize >> 48
    }

    /// Bytes that all separators share, and do not have in their records.
    #[inline]
    pub(super) fn shared_len(self) -> usize {
        self.words.word(HEAP) as usize >> 48
    }

    /// How the shared prefix, which is not empty, compares with the beginning of `suffix`. Greater:
    /// so are all separators; less: so are they; equal: `suffix` begins with it.
    #[inline(never)]
    pub(super) fn compare_shared(self, suffix: &[u8]) -> Ordering {
        let len = self.shared_len();
        let (near, there) = (len.min(NEAR_SHARED), suffix.len().min(NEAR_SHARED).min(len));
        let order = self.words.cmp(SHARED * 8, near, &suffix[..there]);
        if order.is_ne() || len <= NEAR_SHARED {
            return order;
        }
        let far = shared_bytes(len);
        let there = suffix.len().min(len);
        let at = self.size().saturating_sub(far);
        self.words.cmp(at, far, &suffix[NEAR_SHARED..there])
    }

    /// Appends the shared prefix.
    pub(super) fn append_shared(self, out: &mut Vec<u8>) {
        let len = self.shared_len().min(MAX_SHARED);
        let (start, far) = (out.len(), shared_bytes(len));
        out.resize(start + len, 0);
        let (front, back) = out[start..].split_at_mut(len - far);
        self.words.copy_out(SHARED * 8, front);
        self.words.copy_out(self.size().saturating_sub(far), back);
    }

    pub(crate) fn level(self) -> usize {
        self.meta().level
    }

    pub(super) fn heap(self) -> Heap {
        let word = self.words.word(HEAP) as usize;
        Heap {
            top: word & 0xFFFF,
            dead: word >> 16 & 0xFFFF,
        }
    }

    pub(super) fn set_heap(self, heap: Heap) {
        let size = self.words.word(HEAP) >> 32 << 32;
        let word = size | heap.top as u64 | (heap.dead as u64) << 16;
        self.words.set_word(HEAP, word);
    }

    /// Bytes between the child words and the heap.
    pub(super) fn gap(self) -> usize {
        let arrays = node_bytes(self.meta().cap, 0);
        self.heap().top.saturating_sub(arrays)
    }

    /// Bytes that are in use: what a node with as many children as there are would take.
    pub(super) fn used_bytes(self) -> usize {
        let heap = self.heap();
        let dead = heap.top.saturating_add(heap.dead);
        node_bytes(self.meta().n.max(2), self.size().saturating_sub(dead))
    }

    #[inline]
    pub(super) fn heads(self) -> Heads<'g> {
        self.heads_of(self.meta())
    }

    /// As `heads`, for a caller that has read the node's counts.
    #[inline]
    pub(super) fn heads_of(self, meta: Meta) -> Heads<'g> {
        Heads::hinted(self.words, HEADER_BYTES, meta.cap - 1)
    }

    fn slot_at(self, i: usize) -> usize {
        slots_at(self.meta().cap) + i * SLOT_BYTES
    }

    /// Slot of separator `i`.
    #[inline]
    pub(super) fn slot(self, i: usize) -> usize {
        let at = self.slot_at(i);
        (self.words.aligned_u32(at & !3) >> (at % 4 * 8)) as usize & 0xFFFF
    }

    pub(super) fn set_slot(self, i: usize, slot: usize) {
        self.words
            .write(self.slot_at(i), &(slot as u16).to_le_bytes());
    }

    /// Puts a slot at `i`; the `behind` ones from there on move up.
    pub(super) fn insert_slot(self, i: usize, behind: usize, slot: usize) {
        let (at, behind) = (self.slot_at(i), behind * SLOT_BYTES);
        self.words.insert(at, behind, slot as u64, SLOT_BYTES);
    }

    /// Moves the slots from `from` on, `count` of them, to `to`.
    pub(super) fn shift_slots(self, from: usize, to: usize, count: usize) {
        let (from, to) = (self.slot_at(from), self.slot_at(to));
        self.words.copy_within(from, to, count * SLOT_BYTES);
    }

    /// Child word `i`; garbage when there are not so many.
    #[inline]
    pub(super) fn child_word(self, i: usize) -> ChildWord {
        self.child_word_of(self.meta(), i)
    }

    /// As `child_word`, for a caller that has read the node's counts.
    #[inline]
    pub(super) fn child_word_of(self, meta: Meta, i: usize) -> ChildWord {
        ChildWord::from_raw(self.words.word(children_at(meta.cap) / 8 + i))
    }

    pub(super) fn set_child_word(self, i: usize, word: ChildWord) {
        let at = children_at(self.meta().cap) / 8 + i;
        self.words.set_word(at, word.raw());
    }

    /// Moves the child words from `from` on, `count` of them, to `to`.
    pub(super) fn shift_children(self, from: usize, to: usize, count: usize) {
        let at = |i: usize| children_at(self.meta().cap) + i * CHILD_BYTES;
        self.words
            .copy_within(at(from), at(to), count * CHILD_BYTES);
    }
}
