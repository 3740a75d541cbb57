//! Changing a latched node in place.
//!
//! Keeps: heap bytes that no separator owns are counted as dead.
//! Threads: the holder of the latch.

use super::{
    InnerLatched,
    layout::{HEADER_BYTES, InnerRef, MAX_INLINE_SEPARATOR, Meta, RECORD_HEADER, record_bytes},
    read::SeparatorAt,
};
use crate::{
    mem::Memory,
    x::{
        child::ChildWord,
        heads::{HEAD_BYTES, head, rest},
        large::{LargeRef, OwnedLarge},
    },
};

/// A separator to be written, with its block if it is too long for a node. The block is freed on
/// drop.
pub(super) struct NewSeparator<'a> {
    suffix: &'a [u8],
    large: Option<OwnedLarge<'a>>,
}

impl<'a> NewSeparator<'a> {
    /// `suffix`: a separator without the prefix of the node that it is for, and without what all of
    /// its separators share.
    pub(super) fn new(memory: &'a Memory, suffix: &'a [u8]) -> Self {
        let long = suffix.len() > MAX_INLINE_SEPARATOR;
        let large = long.then(|| OwnedLarge::create(memory, suffix, &[]));
        Self { suffix, large }
    }
}

impl<'g> InnerRef<'g> {
    /// Appends the separator that is at `at`, and in `large` if it has a block of its own.
    pub(super) fn append_separator(
        self,
        at: &SeparatorAt,
        large: Option<LargeRef<'_>>,
        out: &mut Vec<u8>,
    ) {
        if let Some(large) = large {
            out.extend_from_slice(large.suffix(at.len));
            return;
        }
        let len = at.len.min(MAX_INLINE_SEPARATOR);
        out.extend_from_slice(&at.head.to_be_bytes()[..len.min(HEAD_BYTES)]);
        let start = out.len();
        out.resize(start + len.saturating_sub(HEAD_BYTES), 0);
        self.words().copy_out(at.rest, &mut out[start..]);
    }

    /// Writes the record of a separator; returns its slot, and the bytes of a large block that the
    /// node has now.
    pub(super) fn write_separator(self, new: NewSeparator<'_>) -> (usize, usize) {
        let len = new.suffix.len();
        if len <= HEAD_BYTES {
            return (len, 0);
        }
        let mut heap = self.heap();
        heap.top -= record_bytes(len);
        debug_assert!(heap.top >= HEADER_BYTES);
        let words = self.words();
        let record = (len as u32) << 1 | u32::from(new.large.is_some());
        words.write(heap.top, &record.to_le_bytes());
        let body = heap.top + RECORD_HEADER;
        let large = match new.large {
            Some(large) => {
                words.write(body, &large.get().raw().to_le_bytes());
                large.publish()
            }
            None => {
                words.write(body, rest(new.suffix));
                0
            }
        };
        self.set_heap(heap);
        (heap.top, large)
    }
}

impl InnerLatched<'_> {
    /// There is room for one more child, behind the separator `suffix`, which is without the node's
    /// prefix.
    pub(crate) fn has_room(&self, suffix: &[u8]) -> bool {
        let (meta, node) = (self.meta(), self.node());
        let shared = node.shared_len();
        let begins_so = shared == 0 || node.compare_shared(suffix).is_eq();
        begins_so && meta.n < meta.cap && node.gap() >= record_bytes(suffix.len() - shared)
    }

    pub(crate) fn set_child(&self, i: usize, word: ChildWord) {
        self.node().set_child_word(i, word);
    }

    /// Puts child `i + 1` in, behind the separator `suffix`, which is without the node's prefix.
    /// The caller checked `has_room`. Returns the bytes that the node has more.
    pub(crate) fn insert(
        &self,
        memory: &Memory,
        i: usize,
        suffix: &[u8],
        word: ChildWord,
    ) -> isize {
        let node = self.node();
        let meta = node.meta();
        let separator = NewSeparator::new(memory, &suffix[node.shared_len()..]);
        let behind = meta.n - 1 - i;
        node.shift_children(i + 1, i + 2, behind);
        node.heads().insert(i, meta.n - 1, head(separator.suffix));
        let (slot, large) = node.write_separator(separator);
        node.insert_slot(i, behind, slot);
        node.set_child_word(i + 1, word);
        node.set_meta(Meta {
            n: meta.n + 1,
            ..meta
        });
        large as isize
    }

    /// Moves the blocks of large separators that are in the way: each gets a copy, and the record
    /// the pointer to it. Readers see what `x/large.rs` says. Returns by how many bytes they became
    /// more.
    pub(crate) fn move_large(&self, memory: &Memory) -> isize {
        let node = self.node();
        let mut bytes = 0;
        for i in 0..self.meta().n - 1 {
            let Some(old) = self.large(i) else { continue };
            if old.is_in_the_way() {
                let new = old.moved(memory);
                let pointer = new.get().raw().to_le_bytes();
                node.words().write(node.separator_at(i).rest, &pointer);
                bytes += new.publish() as isize - old.arena_bytes() as isize;
                old.retire(memory);
            }
        }
        bytes
    }

    /// Takes separator `i` and child `i + 1` out. Returns the bytes that the node has less.
    pub(crate) fn remove(&self, memory: &Memory, i: usize) -> isize {
        let node = self.node();
        let meta = node.meta();
        let large = self.large(i);
        let mut heap = node.heap();
        heap.dead += record_bytes(node.separator_at(i).len);
        node.set_heap(heap);
        let behind = meta.n - 2 - i;
        node.shift_slots(i + 1, i, behind);
        node.shift_children(i + 2, i + 1, behind);
        node.heads().remove(i, meta.n - 1);
        node.set_meta(Meta {
            n: meta.n - 1,
            ..meta
        });
        let bytes = large.map_or(0, LargeRef::arena_bytes);
        if let Some(large) = large {
            large.retire(memory);
        }
        bytes as isize
    }
}
