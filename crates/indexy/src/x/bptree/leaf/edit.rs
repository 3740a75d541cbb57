//! Changing a latched leaf in place.
//!
//! Keeps: bytes in the heap that no entry owns are counted as dead, so that room is known exactly. An edit
//! fails only where it says so, before it changed anything.
//! Threads: the holder of the latch; readers that look on meanwhile find the version changed.

use super::{
    super::heads::{HEAD_BYTES, head, rest},
    LeafLatched,
    layout::{Bit, Kind, MAX_FIXED_BYTES, PLACE_BYTES, Records, SLOT_BYTES, Slot},
    stable::LeafBuffer,
};
use crate::x::{
    RunId, Stamp,
    form::{DIRTY, Form, IN_Y, Lengths, NewEntry, TOMBSTONE, entry_size},
};

const BITS: [(Bit, u32); 3] = [
    (Bit::Dirty, DIRTY),
    (Bit::InY, IN_Y),
    (Bit::Tombstone, TOMBSTONE),
];

/// Heap bytes of an entry of a slotted leaf: the head stands elsewhere.
pub(in crate::x::bptree) fn heap_bytes(suffix_len: usize, value_len: usize, form: Form) -> usize {
    let in_head = match form {
        Form::BothOut => 0,
        _ => suffix_len.min(HEAD_BYTES),
    };
    entry_size(suffix_len, value_len, form) - in_head
}

impl Kind {
    /// The kind of a leaf that has only entries with these lengths.
    pub(in crate::x::bptree) fn of(suffix_len: usize, value_len: usize) -> Self {
        if suffix_len + value_len > MAX_FIXED_BYTES {
            return Self::Slotted;
        }
        Self::Fixed {
            suffix_len,
            value_len,
        }
    }

    /// A leaf of this kind can have `entry`.
    #[inline]
    pub(in crate::x::bptree) fn takes(self, entry: &NewEntry<'_>) -> bool {
        match self {
            Self::Slotted => true,
            Self::Fixed {
                suffix_len,
                value_len,
            } => {
                entry.suffix.len() == suffix_len
                    && entry.large.is_none()
                    && (entry.value.len() == value_len || entry.flags & TOMBSTONE != 0)
            }
        }
    }
}

impl<'g> LeafLatched<'g> {
    /// There is room for `entry`, which is not here yet.
    #[inline]
    pub(in crate::x::bptree) fn has_room(&self, entry: &NewEntry<'_>) -> bool {
        let leaf = self.leaf;
        let meta = leaf.meta();
        let kind = leaf.kind();
        let heap = || heap_bytes(entry.suffix.len(), entry.value.len(), entry.form()) <= leaf.gap();
        meta.n < meta.cap && kind.takes(entry) && (kind != Kind::Slotted || heap())
    }

    /// There is room to write `entry` in place of entry `i`.
    pub(in crate::x::bptree) fn has_room_instead(&self, i: usize, entry: &NewEntry<'_>) -> bool {
        let leaf = self.leaf;
        if leaf.kind() != Kind::Slotted {
            return leaf.kind().takes(entry);
        }
        let size = heap_bytes(entry.suffix.len(), entry.value.len(), entry.form());
        size <= leaf.entry(i).size() || leaf.gap() >= size
    }

    /// Writes `entry` at index `i`; those from there on move up. The caller checked `has_room`.
    pub(in crate::x::bptree) fn insert(&self, i: usize, entry: &NewEntry<'_>) {
        let leaf = self.leaf;
        let mut meta = leaf.meta();
        leaf.heads().insert(i, meta.n, head(entry.suffix));
        self.insert_bits(i, entry.flags);
        match leaf.records() {
            Some(records) => {
                let place = self.open_place(&records, i, meta.n);
                let mut record = leaf.words().stream(records.at(place));
                record.write(rest(entry.suffix));
                if entry.flags & TOMBSTONE == 0 {
                    record.write(entry.value);
                }
                record.finish();
            }
            None => {
                meta.top -= heap_bytes(entry.suffix.len(), entry.value.len(), entry.form());
                self.write_body(meta.top, entry);
                let (at, behind) = (leaf.arrays() + i * SLOT_BYTES, (meta.n - i) * SLOT_BYTES);
                let slot = Slot::new(meta.top, entry.large.is_some());
                leaf.words().insert(at, behind, slot.raw(), SLOT_BYTES);
            }
        }
        meta.n += 1;
        leaf.set_meta(meta);
        if entry.flags & DIRTY == 0 {
            // It comes from Y because it was read.
            leaf.reference(i);
        }
    }

    /// The place of a record for a new entry `i` beside `n` others.
    #[inline(always)]
    fn open_place(&self, records: &Records, i: usize, n: usize) -> usize {
        let words = self.leaf.words();
        if records.ordered {
            words.copy_within(records.at(i), records.at(i + 1), (n - i) * records.size);
            return i;
        }
        words.insert(records.places + i, n - i, n as u64, PLACE_BYTES);
        n
    }

    /// Puts the bits of a new entry at `i`, which is not referenced yet.
    #[inline]
    fn insert_bits(&self, i: usize, flags: u32) {
        let below = (1u64 << i) - 1;
        let insert = |bit, flag| {
            let bits = self.leaf.bits(bit);
            let own = u64::from(flags & flag != 0) << i;
            let now = bits & below | (bits & !below) << 1 | own;
            if now != bits {
                self.leaf.set_bits(bit, now);
            }
        };
        insert(Bit::Dirty, DIRTY);
        insert(Bit::InY, IN_Y);
        insert(Bit::Tombstone, TOMBSTONE);
        insert(Bit::Referenced, 0);
    }

    /// Writes `entry`, of the same suffix, over entry `i`. The caller checked `has_room_instead`.
    pub(in crate::x::bptree) fn replace(&self, i: usize, entry: &NewEntry<'_>) {
        let leaf = self.leaf;
        match leaf.kind() {
            Kind::Fixed { .. } => {
                // Of a tombstone the value that was is left.
                if entry.flags & TOMBSTONE == 0 {
                    leaf.words().write(leaf.entry(i).tail, entry.value);
                }
            }
            Kind::Slotted => self.replace_slotted(i, entry),
        }
        self.set_flags(i, entry.flags);
    }

    fn replace_slotted(&self, i: usize, entry: &NewEntry<'_>) {
        let leaf = self.leaf;
        let old = leaf.entry(i);
        let before = old.size();
        let after = heap_bytes(entry.suffix.len(), entry.value.len(), entry.form());
        let mut meta = leaf.meta();
        let offset = if after <= before {
            meta.dead += before - after;
            old.start
        } else {
            meta.dead += before;
            meta.top -= after;
            meta.top
        };
        self.write_body(offset, entry);
        leaf.set_slot(i, Slot::new(offset, entry.large.is_some()));
        leaf.set_meta(meta);
    }

    fn write_body(&self, at: usize, entry: &NewEntry<'_>) {
        let form = entry.form();
        let lengths = Lengths::new(entry.suffix.len(), entry.value.len(), form);
        let mut body = self.leaf.words().stream(at);
        body.write(lengths.as_slice());
        if form != Form::BothOut {
            body.write(rest(entry.suffix));
        }
        match entry.large {
            Some(large) => body.write(&large.raw().to_le_bytes()),
            None => body.write(entry.value),
        }
        body.finish();
    }

    /// Drops entry `i`.
    pub(in crate::x::bptree) fn remove(&self, i: usize) {
        let leaf = self.leaf;
        let mut meta = leaf.meta();
        let after = meta.n - i - 1;
        match leaf.records() {
            Some(records) if records.ordered => {
                self.close(records.at(0), records.size, i, after);
            }
            Some(records) => {
                self.fill_record(&records, leaf.place(&records, i), meta.n);
                self.close(records.places, PLACE_BYTES, i, after);
            }
            None => {
                let entry = leaf.entry(i);
                if entry.start == meta.top {
                    meta.top += entry.size();
                } else {
                    meta.dead += entry.size();
                }
                self.close(leaf.arrays(), SLOT_BYTES, i, after);
            }
        }
        leaf.heads().remove(i, meta.n);
        let below = (1u64 << i) - 1;
        for bit in [Bit::Dirty, Bit::InY, Bit::Tombstone, Bit::Referenced] {
            let bits = leaf.bits(bit);
            leaf.set_bits(bit, bits & below | (bits >> 1) & !below);
        }
        meta.n -= 1;
        if meta.n == 0 {
            (meta.top, meta.dead) = (leaf.size(), 0);
        }
        leaf.set_meta(meta);
    }

    /// Moves the last of `n` records to `place`, which is not needed any more.
    fn fill_record(&self, records: &Records, place: usize, n: usize) {
        let leaf = self.leaf;
        let last = n - 1;
        if place == last {
            return;
        }
        let owner = (0..n).find(|&i| leaf.place(records, i) == last);
        let (from, to) = (records.at(last), records.at(place));
        leaf.words().copy_within(from, to, records.size);
        leaf.set_place(records, owner.unwrap_or(last), place);
    }

    /// Moves the `after` elements of `size` bytes behind element `i` of the array at `array` down by one.
    fn close(&self, array: usize, size: usize, i: usize, after: usize) {
        let at = array + i * size;
        self.leaf.words().copy_within(at + size, at, after * size);
    }

    /// Replaces the flags of entry `i`.
    #[inline]
    pub(in crate::x::bptree) fn set_flags(&self, i: usize, flags: u32) {
        let mask = 1u64 << i;
        for (bit, flag) in BITS {
            let bits = self.leaf.bits(bit);
            let now = if flags & flag != 0 {
                bits | mask
            } else {
                bits & !mask
            };
            if now != bits {
                self.leaf.set_bits(bit, now);
            }
        }
    }

    /// The entries of `mask` were copied to a run: they are clean and in Y from now on.
    pub(in crate::x::bptree) fn mark_copied(&self, mask: u64, run: RunId) {
        let leaf = self.leaf;
        leaf.set_bits(Bit::Dirty, leaf.bits(Bit::Dirty) & !mask);
        leaf.set_bits(Bit::InY, leaf.bits(Bit::InY) | mask);
        leaf.set_run(run);
    }

    /// Marks the entries of `mask` dirty.
    pub(in crate::x::bptree) fn mark_dirty(&self, mask: u64) {
        let bits = self.leaf.bits(Bit::Dirty);
        self.leaf.set_bits(Bit::Dirty, bits | mask);
    }

    pub(in crate::x::bptree) fn set_mount(&self, mount: Option<Stamp>) {
        self.leaf.set_mount(mount);
    }

    /// Forgets the reference bits among `mask`.
    pub(in crate::x::bptree) fn clear_references(&self, mask: u64) {
        let bits = self.leaf.bits(Bit::Referenced);
        self.leaf.set_bits(Bit::Referenced, bits & !mask);
    }

    /// Moves the entries of a slotted leaf together, so that no heap byte is dead.
    pub(in crate::x::bptree) fn compact(&self) {
        let leaf = self.leaf;
        let mut buffer = LeafBuffer::new();
        let old = self.stable().copy(&mut buffer).raw();
        let mut meta = leaf.meta();
        (meta.top, meta.dead) = (leaf.size(), 0);
        for i in 0..meta.n {
            let (entry, slot) = (old.entry(i), old.slot(i));
            meta.top -= entry.size();
            let words = leaf.words();
            words.copy_from(&old.words(), entry.start, meta.top, entry.size());
            leaf.set_slot(i, Slot::new(meta.top, slot.is_large()));
        }
        leaf.set_meta(meta);
    }
}
