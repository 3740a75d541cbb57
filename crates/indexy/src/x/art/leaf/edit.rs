//! Changing a latched leaf in place.
//!
//! Keeps: bytes in the heap that no entry owns are counted as dead, so that room is known exactly.
//! An edit fails only where it says so, before it changed anything.
//! Threads: the holder of the latch; readers that look on meanwhile find the version changed.

use super::layout::{
    HEADER_BYTES, LeafLatched, LeafRef, MAX_BLOCK_BYTES, MAX_ENTRIES, Meta, Packed, SLOT_BYTES,
    Slot, State, head,
};
use crate::x::{
    RunId, Stamp,
    entry::{DIRTY, Form, IN_Y, Lengths, NewEntry, TOMBSTONE},
    leaf::{LeafBuffer, LeafEdits, ones},
};

impl LeafEdits for Packed {
    #[inline]
    fn has_room(latched: &LeafLatched<'_>, entry: &NewEntry<'_>) -> bool {
        let meta = latched.leaf().meta();
        meta.n < MAX_ENTRIES && meta.gap() >= SLOT_BYTES + entry.size()
    }

    #[inline]
    fn has_room_instead(latched: &LeafLatched<'_>, i: usize, entry: &NewEntry<'_>) -> bool {
        let leaf = latched.leaf();
        let size = entry.size();
        size <= leaf.entry(i).size() || leaf.meta().gap() >= size
    }

    fn insert(latched: &LeafLatched<'_>, i: usize, entry: &NewEntry<'_>) {
        let leaf = latched.leaf();
        let mut meta = leaf.meta();
        meta.top -= entry.size();
        write_body(leaf, meta.top, entry);
        open_slot(leaf, i, meta);
        leaf.set_slot(i, Slot::new(head(entry.suffix), meta.top, entry.flags()));
        meta.n += 1;
        leaf.set_meta(meta);
        latched.note_flags(entry.flags);
        if entry.flags & DIRTY == 0 {
            // It comes from Y because it was read.
            leaf.set_referenced(i);
        }
    }

    fn replace(latched: &LeafLatched<'_>, i: usize, entry: &NewEntry<'_>) {
        let leaf = latched.leaf();
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
        write_body(leaf, offset, entry);
        leaf.set_slot(i, Slot::new(old.slot.head(), offset, entry.flags()));
        leaf.set_meta(meta);
        latched.note_flags(entry.flags);
    }

    fn remove(latched: &LeafLatched<'_>, i: usize) {
        let leaf = latched.leaf();
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

    fn recount(latched: &LeafLatched<'_>) {
        let leaf = latched.leaf();
        let all = (0..leaf.meta().n).fold(0, |all, i| all | leaf.slot(i).flags());
        let mut state = leaf.state();
        state.dirty = all & DIRTY != 0;
        state.tombstones = all & TOMBSTONE != 0;
        leaf.set_state(state);
    }

    fn set_mount(latched: &LeafLatched<'_>, mount: Option<Stamp>) {
        let leaf = latched.leaf();
        leaf.set_state(State {
            mount,
            ..leaf.state()
        });
    }

    fn mark_copied(latched: &LeafLatched<'_>, mask: u64, run: RunId) {
        let leaf = latched.leaf();
        for i in ones(mask) {
            let slot = leaf.slot(i);
            leaf.set_slot(i, slot.with_flags(slot.flags() & !DIRTY | IN_Y));
        }
        leaf.set_meta(Meta { run, ..leaf.meta() });
        Self::recount(latched);
    }

    fn mark_dirty(latched: &LeafLatched<'_>, mask: u64) {
        let leaf = latched.leaf();
        for i in ones(mask) {
            let slot = leaf.slot(i);
            leaf.set_slot(i, slot.with_flags(slot.flags() | DIRTY));
        }
        if mask != 0 {
            latched.note_flags(DIRTY);
        }
    }

    fn clear_references(latched: &LeafLatched<'_>, mask: u64) {
        let leaf = latched.leaf();
        leaf.set_refs(leaf.refs() & !mask);
    }
}

/// Moves the slots from `i` on, and their reference bits, up by one.
fn open_slot(leaf: LeafRef<'_>, i: usize, meta: Meta) {
    let at = HEADER_BYTES + i * SLOT_BYTES;
    leaf.words()
        .copy_within(at, at + SLOT_BYTES, (meta.n - i) * SLOT_BYTES);
    let refs = leaf.refs();
    let below = (1u64 << i) - 1;
    leaf.set_refs(refs & below | (refs & !below) << 1);
}

fn write_body(leaf: LeafRef<'_>, at: usize, entry: &NewEntry<'_>) {
    let form = entry.form();
    let lengths = Lengths::new(entry.suffix.len(), entry.value.len(), form);
    let mut body = leaf.words().stream(at);
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

impl LeafLatched<'_> {
    /// The leaf's summary bits cover an entry with these flags.
    pub(super) fn note_flags(&self, flags: u32) {
        let leaf = self.leaf();
        let state = leaf.state();
        let mut now = state;
        now.dirty |= flags & DIRTY != 0;
        now.tombstones |= flags & TOMBSTONE != 0;
        if now != state {
            leaf.set_state(now);
        }
    }

    /// Moves the entries together, so that no heap byte is dead.
    pub(crate) fn compact(&self) {
        let leaf = self.leaf();
        let mut buffer = LeafBuffer::new();
        let old = self.stable().copy(&mut buffer).raw();
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
