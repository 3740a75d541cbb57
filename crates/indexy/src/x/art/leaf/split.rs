//! Building a leaf out of entries of another: growing, splitting, joining, cutting.
//!
//! The source is latched (or a validated copy); the new leaf is latched and not yet published.

use super::{
    LeafLatched,
    layout::{
        HEADER_BYTES, LeafRef, MAX_BLOCK_BYTES, MAX_ENTRIES, Meta, SLOT_BYTES, SLOTS_PER_WORD,
        Slot, State, head,
    },
    search::EntryAt,
    stable::StableLeaf,
};
use crate::{
    mem::{Guard, Memory, words::Words},
    x::{
        RunId, Stamp,
        art::pointer::Symbol,
        form::{Form, Lengths, MAX_INLINE_SUFFIX, entry_size},
    },
};

use std::ops::Range;

/// Bytes of a leaf of `entries` entries with `heap` heap bytes.
pub(crate) fn leaf_bytes(entries: usize, heap: usize) -> usize {
    HEADER_BYTES + entries * SLOT_BYTES + heap
}

/// Heap bytes of `entry` without the first `strip` bytes of its suffix.
pub(crate) fn stripped_size(entry: &EntryAt, strip: usize) -> usize {
    entry_size(entry.suffix_len - strip, entry.value_len, entry.form)
}

/// Heap bytes of `entry` with `more` bytes before its suffix; `None` when it cannot have them in a leaf.
pub(crate) fn extended_size(entry: &EntryAt, more: usize) -> Option<usize> {
    let suffix_len = entry.suffix_len + more;
    (entry.form != Form::BothOut && suffix_len <= MAX_INLINE_SUFFIX)
        .then(|| entry_size(suffix_len, entry.value_len, entry.form))
}

/// Where a leaf splits in two: entries below `at` have symbols below `symbol`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SplitAt {
    pub at: usize,
    pub symbol: Symbol,
}

impl<'x> StableLeaf<'x> {
    /// The boundary between first symbols (after `skip` bytes, which all suffixes have in common) that is
    /// nearest the middle; `None` when all are the same.
    pub(crate) fn split_point(self, skip: usize) -> Option<SplitAt> {
        let n = self.len();
        let mut best: Option<SplitAt> = None;
        let mut before = None;
        for i in 0..n {
            let symbol = self.symbol_at(i, skip);
            if before.is_some_and(|b| b != symbol) {
                let nearer = best.is_none_or(|b| i.abs_diff(n / 2) < b.at.abs_diff(n / 2));
                if nearer {
                    best = Some(SplitAt { at: i, symbol });
                }
            }
            before = Some(symbol);
        }
        best
    }

    /// The symbol of entry `i` after `skip` bytes of its suffix.
    fn symbol_at(self, i: usize, skip: usize) -> Symbol {
        if skip == 0 {
            return self.symbol(i);
        }
        let entry = self.entry(i);
        if entry.suffix_len == skip {
            return crate::x::art::pointer::END;
        }
        Symbol::from(self.suffix_byte(&entry, skip)) + 1
    }

    fn suffix_byte(self, entry: &EntryAt, at: usize) -> u8 {
        match self.large(entry) {
            Some(large) if entry.form == Form::BothOut => large.suffix(entry.suffix_len - at)[0],
            _ => {
                let mut byte = [0];
                self.words().copy_out(entry.body + at, &mut byte);
                byte[0]
            }
        }
    }

    /// Heap bytes of all entries, with `more` bytes before each suffix; `None` when that cannot be.
    pub(crate) fn extended_bytes(self, more: usize) -> Option<usize> {
        (0..self.len())
            .map(|i| extended_size(&self.entry(i), more))
            .sum()
    }

    /// Heap bytes of the entries in `range`, stripped.
    pub(crate) fn heap_bytes(self, range: Range<usize>, strip: usize) -> usize {
        range.map(|i| stripped_size(&self.entry(i), strip)).sum()
    }
}

/// What entries that are appended change in the header of a leaf: written once for all of them.
struct Pushed {
    meta: Meta,
    refs: u64,
    flags: u32,
}

impl Pushed {
    fn onto(leaf: &LeafLatched<'_>) -> Self {
        Self {
            meta: leaf.leaf.meta(),
            refs: leaf.leaf.refs(),
            flags: 0,
        }
    }

    /// The heap part of the next entry, up to where the last one starts, is written; adds its slot.
    fn slot(&mut self, leaf: &LeafLatched<'_>, slot: Slot, referenced: u64) {
        debug_assert!(self.meta.n < MAX_ENTRIES);
        leaf.leaf.set_slot(self.meta.n, slot);
        self.refs |= referenced << self.meta.n;
        self.flags |= slot.flags();
        self.meta.n += 1;
        self.meta.top = slot.offset();
    }

    fn finish(self, leaf: &LeafLatched<'_>) {
        leaf.leaf.set_refs(self.refs);
        leaf.leaf.set_meta(self.meta);
        leaf.note_flags(self.flags);
    }
}

impl<'g> LeafLatched<'g> {
    /// A new, empty, latched leaf of at least `bytes` bytes. `guard` stands for the time that it may be used.
    pub(crate) fn create(
        memory: &Memory,
        _guard: &'g Guard<'_>,
        bytes: usize,
        mount: Option<Stamp>,
        run: RunId,
    ) -> Self {
        let block = memory.allocate_unzeroed(bytes.min(MAX_BLOCK_BYTES));
        let bytes = block.bytes.min(MAX_BLOCK_BYTES);
        // SAFETY: the block is new; `format` writes its header, and nothing else is read before it was written, but by
        // who may read garbage. Once published it is retired, not freed, so that it stays for
        // as long as a guard does.
        let words = unsafe { Words::new(block.ptr, bytes) };
        let leaf = LeafRef::format(block.ptr, words, mount, run);
        leaf.latch_word().lock();
        Self { leaf }
    }

    /// Takes over all entries of `from` into this empty leaf. The caller made room.
    ///
    /// Into a larger leaf, with nothing dead between them, they go as two blocks: the heap as it is, the slots with all
    /// offsets moved by the same distance.
    pub(crate) fn copy_all(&self, from: StableLeaf<'_>) {
        let (old, mut meta) = (from.meta(), self.leaf.meta());
        let (size, old_size) = (self.leaf.size(), from.size());
        if old.dead > 0 || size < old_size {
            return self.push_from(from, 0..old.n, 0);
        }
        let further = size - old_size;
        let (words, old_words) = (self.leaf.words(), from.words());
        let more = Slot::further(further);
        for word in 0..old.n.div_ceil(SLOTS_PER_WORD) {
            let at = HEADER_BYTES / 8 + word;
            words.set_word(at, old_words.word(at).wrapping_add(more));
        }
        // After the slots: the last word of these may reach into the heap.
        meta.top = old.top + further;
        words.copy_from(&old_words, old.top, meta.top, old_size - old.top);
        meta.n = old.n;
        self.leaf.set_refs(from.refs());
        self.leaf.set_meta(meta);
        self.leaf.set_state(State {
            mount: self.leaf.state().mount,
            ..from.state()
        });
    }

    /// Appends the `entries` of `from`, which sort after all that are here, without the first `strip` bytes of their
    /// suffixes. The caller made room.
    pub(crate) fn push_from(&self, from: StableLeaf<'_>, entries: Range<usize>, strip: usize) {
        let mut pushed = Pushed::onto(self);
        for i in entries {
            let entry = from.entry(i);
            let at = pushed.meta.top - stripped_size(&entry, strip);
            let slot = if strip == 0 {
                let words = self.leaf.words();
                words.copy_from(&from.words(), entry.slot.offset(), at, entry.size());
                entry.slot.with_offset(at)
            } else {
                let start = self.write_stripped(from, &entry, entry.suffix_len - strip, at);
                Slot::new(start, at, entry.slot.flags())
            };
            pushed.slot(self, slot, from.refs() >> i & 1);
        }
        pushed.finish(self);
    }

    /// Appends all entries of `from`, which sort after all that are here, with `front` before their suffixes. The caller
    /// made room, and saw that it can be (`extended_bytes`).
    pub(crate) fn push_extended(&self, from: StableLeaf<'_>, front: &[u8]) {
        let (words, old) = (self.leaf.words(), from.words());
        let mut pushed = Pushed::onto(self);
        for i in 0..from.len() {
            let entry = from.entry(i);
            let Some(size) = extended_size(&entry, front.len()) else {
                unreachable!("an entry with its suffix out of line was to be extended");
            };
            let at = pushed.meta.top - size;
            let suffix_len = front.len() + entry.suffix_len;
            let lengths = Lengths::new(suffix_len, entry.value_len, entry.form);
            words.write(at, lengths.as_slice());
            let body = at + lengths.as_slice().len();
            words.write(body, front);
            words.copy_from(&old, entry.body, body + front.len(), entry.suffix_len);
            words.copy_from(&old, entry.tail(), body + suffix_len, entry.tail_len());
            let mut start = [0u8; 2];
            let start = &mut start[..suffix_len.min(2)];
            words.copy_out(body, start);
            let slot = Slot::new(head(start), at, entry.slot.flags());
            pushed.slot(self, slot, from.refs() >> i & 1);
        }
        pushed.finish(self);
    }

    /// Writes the last `suffix_len` bytes of the suffix of `entry` and its tail at `at`; returns its head.
    fn write_stripped(
        &self,
        from: StableLeaf<'_>,
        entry: &EntryAt,
        suffix_len: usize,
        at: usize,
    ) -> u16 {
        let words = self.leaf.words();
        let strip = entry.suffix_len - suffix_len;
        let lengths = Lengths::new(suffix_len, entry.value_len, entry.form);
        words.write(at, lengths.as_slice());
        let body = at + lengths.as_slice().len();
        let mut tail = body;
        let mut start = [0u8; 2];
        let start = &mut start[..suffix_len.min(2)];
        match from.large(entry) {
            Some(large) if entry.form == Form::BothOut => {
                start.copy_from_slice(&large.suffix(suffix_len)[..start.len()]);
            }
            _ => {
                words.copy_from(&from.words(), entry.body + strip, body, suffix_len);
                tail += suffix_len;
                words.copy_out(body, start);
            }
        }
        words.copy_from(&from.words(), entry.tail(), tail, entry.tail_len());
        head(start)
    }
}
