//! Changing a latched leaf in place.
//!
//! Keeps: bytes in the heap that no entry owns are counted as dead, so that room is known exactly. An edit
//! fails only where it says so, before it changed anything.
//! Threads: the holder of the latch; readers that look on meanwhile find the version changed.

use super::{
    LeafLatched,
    layout::{HEADER_BYTES, MAX_BLOCK_BYTES, MAX_ENTRIES, Meta, SLOT_BYTES, Slot, head},
    stable::LeafBuffer,
};
use crate::x::{
    RunId, Stamp,
    form::{DIRTY, Form, LARGE, Lengths, NewEntry, TOMBSTONE},
};

impl<'g> LeafLatched<'g> {
    /// There is room for one more entry of `size` heap bytes.
    pub(crate) fn has_room(&self, size: usize) -> bool {
        let meta = self.leaf.meta();
        meta.n < MAX_ENTRIES && meta.gap() >= SLOT_BYTES + size
    }

    /// There is room to write `size` heap bytes in place of entry `i`.
    pub(crate) fn has_room_instead(&self, i: usize, size: usize) -> bool {
        size <= self.leaf.entry(i).size() || self.leaf.meta().gap() >= size
    }

    /// Writes `entry` into a new slot `i`. The caller checked `has_room`.
    pub(crate) fn insert(&self, i: usize, entry: &NewEntry<'_>) {
        let leaf = self.leaf;
        let mut meta = leaf.meta();
        meta.top -= entry.size();
        self.write_body(meta.top, entry);
        self.open_slot(i, meta);
        leaf.set_slot(i, Slot::new(head(entry.suffix), meta.top, entry.flags()));
        meta.n += 1;
        leaf.set_meta(meta);
        self.note_flags(entry.flags);
        if entry.flags & DIRTY == 0 {
            // It comes from Y because it was read.
            leaf.reference(i);
        }
    }

    /// Moves the slots from `i` on, and their reference bits, up by one.
    pub(super) fn open_slot(&self, i: usize, meta: Meta) {
        let at = HEADER_BYTES + i * SLOT_BYTES;
        self.leaf
            .words()
            .copy_within(at, at + SLOT_BYTES, (meta.n - i) * SLOT_BYTES);
        let refs = self.leaf.refs();
        let below = (1u64 << i) - 1;
        self.leaf.set_refs(refs & below | (refs & !below) << 1);
    }

    /// Writes `entry`, of the same suffix, over entry `i`. The caller checked `has_room_instead`.
    pub(crate) fn replace(&self, i: usize, entry: &NewEntry<'_>) {
        let leaf = self.leaf;
        let old = leaf.entry(i);
        let (before, after) = (old.size(), entry.size());
        let mut meta = leaf.meta();
        let offset = if after <= before {
            meta.dead += before - after;
            old.slot.offset()
        } else {
            meta.dead += before;
            meta.top -= after;
            meta.top
        };
        self.write_body(offset, entry);
        leaf.set_slot(i, Slot::new(old.slot.head(), offset, entry.flags()));
        leaf.set_meta(meta);
        self.note_flags(entry.flags);
    }

    fn write_body(&self, at: usize, entry: &NewEntry<'_>) {
        let form = entry.form();
        let lengths = Lengths::new(entry.suffix.len(), entry.value.len(), form);
        let mut body = self.leaf.words().stream(at);
        body.write(lengths.as_slice());
        if form != Form::BothOut {
            body.write(entry.suffix);
        }
        match entry.large {
            Some(large) => body.write(&large.raw().to_le_bytes()),
            None => body.write(entry.value),
        }
        body.finish();
    }

    /// Drops entry `i`.
    pub(crate) fn remove(&self, i: usize) {
        let leaf = self.leaf;
        let mut meta = leaf.meta();
        let entry = leaf.entry(i);
        if entry.slot.offset() == meta.top {
            meta.top += entry.size();
        } else {
            meta.dead += entry.size();
        }
        let at = HEADER_BYTES + i * SLOT_BYTES;
        let after = (meta.n - i - 1) * SLOT_BYTES;
        leaf.words().copy_within(at + SLOT_BYTES, at, after);
        let refs = leaf.refs();
        let below = (1u64 << i) - 1;
        leaf.set_refs(refs & below | (refs >> 1) & !below);
        meta.n -= 1;
        if meta.n == 0 {
            (meta.top, meta.dead) = (leaf.size(), 0);
        }
        leaf.set_meta(meta);
    }

    /// Replaces the flags of entry `i` except where its value is.
    pub(crate) fn set_flags(&self, i: usize, flags: u32) {
        let slot = self.leaf.slot(i);
        let flags = flags & !LARGE | slot.flags() & LARGE;
        self.leaf.set_slot(i, slot.with_flags(flags));
        self.note_flags(flags);
    }

    /// The leaf's summary bits cover an entry with these flags.
    pub(super) fn note_flags(&self, flags: u32) {
        let state = self.leaf.state();
        let mut now = state;
        now.dirty |= flags & DIRTY != 0;
        now.tombstones |= flags & TOMBSTONE != 0;
        if now != state {
            self.leaf.set_state(now);
        }
    }

    /// Sets the summary bits to what the entries say.
    pub(crate) fn recount_flags(&self) {
        let leaf = self.leaf;
        let all = (0..leaf.meta().n).fold(0, |all, i| all | leaf.slot(i).flags());
        let mut state = leaf.state();
        state.dirty = all & DIRTY != 0;
        state.tombstones = all & TOMBSTONE != 0;
        leaf.set_state(state);
    }

    pub(crate) fn set_mount(&self, mount: Option<Stamp>) {
        let state = self.leaf.state();
        self.leaf.set_state(super::layout::State { mount, ..state });
    }

    pub(crate) fn set_run(&self, run: RunId) {
        let meta = self.leaf.meta();
        self.leaf.set_meta(Meta { run, ..meta });
    }

    /// Forgets the reference bits among `mask`.
    pub(crate) fn clear_references(&self, mask: u64) {
        self.leaf.set_refs(self.leaf.refs() & !mask);
    }

    /// Moves the entries together, so that no heap byte is dead.
    pub(crate) fn compact(&self) {
        let leaf = self.leaf;
        let mut buffer = LeafBuffer::new();
        let old = self.stable().copy(&mut buffer);
        let mut meta = leaf.meta();
        (meta.top, meta.dead) = (leaf.size(), 0);
        for i in 0..meta.n {
            let entry = old.entry(i);
            meta.top -= entry.size();
            leaf.words()
                .copy_from(&old.words(), entry.slot.offset(), meta.top, entry.size());
            leaf.set_slot(i, entry.slot.with_offset(meta.top));
        }
        debug_assert!(meta.top <= MAX_BLOCK_BYTES);
        leaf.set_meta(meta);
    }
}
