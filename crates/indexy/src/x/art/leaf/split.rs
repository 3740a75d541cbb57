//! Building a leaf out of entries of another: growing, splitting, joining, cutting.
//!
//! The source is latched (or a validated copy); the new leaf is latched and not yet published.

use super::{
    layout::{
        HEADER_BYTES, LeafLatched, LeafRef, MAX_BLOCK_BYTES, MAX_ENTRIES, Meta, SLOT_BYTES,
        SLOTS_PER_WORD, Slot, StableLeaf, State, head,
    },
    read::EntryAt,
};
use crate::{
    mem::{Guard, Memory, words::Words},
    x::{
        RunId, Stamp,
        art::symbol::{END, Symbol},
        entry::{Form, Lengths, MAX_INLINE_SUFFIX, entry_size},
        leaf::EntryAt as _,
    },
};

/// Bytes of a leaf of `entries` entries with `heap` heap bytes.
pub(crate) fn leaf_bytes(entries: usize, heap: usize) -> usize {
    HEADER_BYTES + entries * SLOT_BYTES + heap
}

/// Heap bytes of `entry` without the first `strip` bytes of its suffix.
pub(crate) fn stripped_size(entry: &EntryAt, strip: usize) -> usize {
    entry_size(entry.suffix_len - strip, entry.value_len, entry.form)
}

/// Heap bytes of `entry` with `more` bytes before its suffix; `None` when it cannot have them in a
/// leaf.
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

impl StableLeaf<'_> {
    /// The boundary between first symbols (after `skip` bytes, which all suffixes have in common)
    /// that is nearest the middle; `None` when all are the same.
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
        let entry = self.entry(i);
        if entry.suffix_len == skip {
            return END;
        }
        if skip == 0 {
            return (entry.slot.head() >> 8) + 1;
        }
        Symbol::from(self.suffix_byte(&entry, skip)) + 1
    }

    fn suffix_byte(self, entry: &EntryAt, at: usize) -> u8 {
        match self.large(entry) {
            Some(large) if entry.form == Form::BothOut => large.suffix(entry.suffix_len - at)[0],
            _ => {
                let mut byte = [0];
                self.raw().words().copy_out(entry.body + at, &mut byte);
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

    /// Heap bytes of `entries`, stripped.
    pub(crate) fn heap_bytes(self, entries: impl Iterator<Item = usize>, strip: usize) -> usize {
        entries.map(|i| stripped_size(&self.entry(i), strip)).sum()
    }

    /// Heap bytes in use.
    pub(crate) fn live_bytes(self) -> usize {
        let meta = self.raw().meta();
        self.raw().size() - meta.top - meta.dead
    }

    /// How many bytes the suffixes of all entries have in common; 0 without entries.
    pub(crate) fn common_prefix(self, out: &mut Vec<u8>) -> usize {
        out.clear();
        let Some(last) = self.len().checked_sub(1) else {
            return 0;
        };
        self.push_suffix(&self.entry(0), out);
        let other = self.suffix(last);
        let common = out.iter().zip(&other).take_while(|(a, b)| a == b).count();
        out.truncate(common);
        common
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
            meta: leaf.leaf().meta(),
            refs: leaf.leaf().refs(),
            flags: 0,
        }
    }

    /// The heap part of the next entry, up to where the last one starts, is written; adds its slot.
    fn slot(&mut self, leaf: &LeafLatched<'_>, slot: Slot, referenced: u64) {
        debug_assert!(self.meta.n < MAX_ENTRIES);
        leaf.leaf().set_slot(self.meta.n, slot);
        self.refs |= referenced << self.meta.n;
        self.flags |= slot.flags();
        self.meta.n += 1;
        self.meta.top = slot.offset();
    }

    fn finish(self, leaf: &LeafLatched<'_>) {
        leaf.leaf().set_refs(self.refs);
        leaf.leaf().set_meta(self.meta);
        leaf.note_flags(self.flags);
    }
}

impl<'g> LeafLatched<'g> {
    /// A new, empty, latched leaf of at least `bytes` bytes. `guard` stands for the time that it
    /// may be used.
    pub(crate) fn create(
        memory: &Memory,
        _guard: &'g Guard<'_>,
        bytes: usize,
        mount: Option<Stamp>,
        run: RunId,
    ) -> Self {
        let block = memory.allocate_unzeroed(bytes.min(MAX_BLOCK_BYTES));
        let bytes = block.bytes.min(MAX_BLOCK_BYTES);
        // SAFETY: the block is new; `format` writes its header, and nothing else is read before it
        // was written, but by who may read garbage. Once published it is retired, not freed, so
        // that it stays for as long as a guard does.
        let leaf = unsafe { LeafRef::new(block.ptr, Words::new(block.ptr, bytes)) };
        leaf.format(mount, run);
        leaf.latch_new()
    }

    /// Takes over all entries of `from` into this empty leaf. The caller made room.
    ///
    /// Into a larger leaf, with nothing dead between them, they go as two blocks: the heap as it
    /// is, the slots with all offsets moved by the same distance.
    pub(crate) fn copy_all(&self, from: StableLeaf<'_>) {
        let (leaf, from_leaf) = (self.leaf(), from.raw());
        let (old, mut meta) = (from_leaf.meta(), leaf.meta());
        let (size, old_size) = (leaf.size(), from_leaf.size());
        if old.dead > 0 || size < old_size {
            return self.push_from(from, 0..old.n, 0);
        }
        let further = size - old_size;
        let (words, old_words) = (leaf.words(), from_leaf.words());
        let more = Slot::further(further);
        for word in 0..old.n.div_ceil(SLOTS_PER_WORD) {
            let at = HEADER_BYTES / 8 + word;
            words.set_word(at, old_words.word(at).wrapping_add(more));
        }
        // After the slots: the last word of these may reach into the heap.
        meta.top = old.top + further;
        words.copy_from(&old_words, old.top, meta.top, old_size - old.top);
        meta.n = old.n;
        leaf.set_refs(from_leaf.refs());
        leaf.set_meta(meta);
        leaf.set_state(State {
            mount: leaf.state().mount,
            ..from_leaf.state()
        });
    }

    /// Appends the `entries` of `from`, which sort after all that are here, without the first
    /// `strip` bytes of their suffixes. The caller made room.
    pub(crate) fn push_from(
        &self,
        from: StableLeaf<'_>,
        entries: impl Iterator<Item = usize>,
        strip: usize,
    ) {
        let (words, old) = (self.leaf().words(), from.raw().words());
        let refs = from.raw().refs();
        let mut pushed = Pushed::onto(self);
        for i in entries {
            let entry = from.entry(i);
            let at = pushed.meta.top - stripped_size(&entry, strip);
            let slot = if strip == 0 {
                words.copy_from(&old, entry.slot.offset(), at, entry.size());
                entry.slot.with_offset(at)
            } else {
                let start = self.write_stripped(from, &entry, entry.suffix_len - strip, at);
                Slot::new(start, at, entry.slot.flags())
            };
            pushed.slot(self, slot, refs >> i & 1);
        }
        pushed.finish(self);
    }

    /// Appends all entries of `from`, which sort after all that are here, with `front` before their
    /// suffixes. The caller made room, and saw that it can be (`extended_bytes`).
    pub(crate) fn push_extended(&self, from: StableLeaf<'_>, front: &[u8]) {
        let (words, old) = (self.leaf().words(), from.raw().words());
        let refs = from.raw().refs();
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
            pushed.slot(self, slot, refs >> i & 1);
        }
        pushed.finish(self);
    }

    /// Writes the last `suffix_len` bytes of the suffix of `entry` and its tail at `at`; returns
    /// its head.
    fn write_stripped(
        &self,
        from: StableLeaf<'_>,
        entry: &EntryAt,
        suffix_len: usize,
        at: usize,
    ) -> u16 {
        let (words, old) = (self.leaf().words(), from.raw().words());
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
                words.copy_from(&old, entry.body + strip, body, suffix_len);
                tail += suffix_len;
                words.copy_out(body, start);
            }
        }
        words.copy_from(&old, entry.tail(), tail, entry.tail_len());
        head(start)
    }
}
