//! Changing a latched leaf in place.
//!
//! Keeps: bytes in the heap that no entry owns are counted as dead, so that room is known exactly.
//! An edit fails only where it says so, before it changed anything.
//! Threads: the holder of the latch; readers that look on meanwhile find the version changed.

use super::{
    handles::{LeafLatched, LeafRef},
    layout::{Bit, Kind, MAX_FIXED_BYTES, PLACE_BYTES, Records, SLOT_BYTES, Slot},
    stable::LeafBuffer,
};
use crate::x::{
    RunId, Stamp,
    entry::{DIRTY, Form, IN_Y, Lengths, NewEntry, TOMBSTONE, entry_size, is_removal},
    heads::{HEAD_BYTES, head, rest},
};

const BITS: [(Bit, u32); 3] = [
    (Bit::Dirty, DIRTY),
    (Bit::InY, IN_Y),
    (Bit::Tombstone, TOMBSTONE),
];

/// Heap bytes of an entry of a slotted leaf: the head stands elsewhere.
#[inline]
pub(crate) fn heap_bytes(suffix_len: usize, value_len: usize, form: Form) -> usize {
    let in_head = match form {
        Form::BothOut => 0,
        _ => suffix_len.min(HEAD_BYTES),
    };
    entry_size(suffix_len, value_len, form) - in_head
}

impl Kind {
    /// The kind of a leaf that has only entries with these lengths.
    #[inline]
    pub(crate) fn of(suffix_len: usize, value_len: usize) -> Self {
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
    pub(crate) fn takes(self, entry: &NewEntry<'_>) -> bool {
        match self {
            Self::Slotted => true,
            Self::Fixed {
                suffix_len,
                value_len,
            } => {
                entry.suffix.len() == suffix_len
                    && entry.large.is_none()
                    && (entry.value.len() == value_len || is_removal(entry.flags))
            }
        }
    }
}

impl LeafLatched<'_> {
    /// There is room for `entry`, which is not here yet.
    #[inline]
    pub(crate) fn has_room(&self, entry: &NewEntry<'_>) -> bool {
        let leaf = self.leaf();
        let meta = leaf.meta();
        let kind = leaf.kind();
        let heap = || heap_bytes(entry.suffix.len(), entry.value.len(), entry.form()) <= leaf.gap();
        meta.n < meta.cap && kind.takes(entry) && (kind != Kind::Slotted || heap())
    }

    /// There is room to write `entry` in place of entry `i`.
    #[inline]
    pub(crate) fn has_room_instead(&self, i: usize, entry: &NewEntry<'_>) -> bool {
        let leaf = self.leaf();
        if leaf.kind() != Kind::Slotted {
            return leaf.kind().takes(entry);
        }
        let size = heap_bytes(entry.suffix.len(), entry.value.len(), entry.form());
        size <= leaf.entry(i).size() || leaf.gap() >= size
    }

    /// Writes `entry` at index `i`; those from there on move up. The caller checked `has_room`.
    pub(crate) fn insert(&self, i: usize, entry: &NewEntry<'_>) {
        let leaf = self.leaf();
        let mut meta = leaf.meta();
        leaf.heads().insert(i, meta.n, head(entry.suffix));
        insert_bits(leaf, i, entry.flags);
        match leaf.records() {
            Some(records) => {
                let place = open_place(leaf, &records, i, meta.n);
                let mut record = leaf.words().stream(records.at(place));
                record.write(rest(entry.suffix));
                if !is_removal(entry.flags) {
                    record.write(entry.value);
                }
                record.finish();
            }
            None => {
                meta.top -= heap_bytes(entry.suffix.len(), entry.value.len(), entry.form());
                write_body(leaf, meta.top, entry);
                let (at, behind) = (leaf.arrays() + i * SLOT_BYTES, (meta.n - i) * SLOT_BYTES);
                let slot = Slot::new(meta.top, entry.large.is_some());
                leaf.words().insert(at, behind, slot.raw(), SLOT_BYTES);
            }
        }
        meta.n += 1;
        leaf.set_meta(meta);
    }

    /// Writes `entry`, of the same suffix, over entry `i`. The caller checked `has_room_instead`.
    #[inline]
    pub(crate) fn replace(&self, i: usize, entry: &NewEntry<'_>) {
        let leaf = self.leaf();
        match leaf.kind() {
            Kind::Fixed { .. } => {
                // Of a tombstone the value that was is left.
                if !is_removal(entry.flags) {
                    leaf.words().write(leaf.entry(i).tail, entry.value);
                }
            }
            Kind::Slotted => replace_slotted(leaf, i, entry),
        }
        set_flags(leaf, i, entry.flags);
    }

    /// Drops the entry `i`.
    pub(crate) fn remove(&self, i: usize) {
        let leaf = self.leaf();
        let mut meta = leaf.meta();
        let after = meta.n - i - 1;
        match leaf.records() {
            Some(records) if records.ordered => {
                close(leaf, records.at(0), records.size, i, after);
            }
            Some(records) => {
                fill_record(leaf, &records, leaf.place(&records, i), meta.n);
                close(leaf, records.places, PLACE_BYTES, i, after);
            }
            None => {
                let entry = leaf.entry(i);
                if entry.start == meta.top {
                    meta.top += entry.size();
                } else {
                    meta.dead += entry.size();
                }
                close(leaf, leaf.arrays(), SLOT_BYTES, i, after);
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

    /// Makes the range mounted with this stamp, or complete.
    pub(crate) fn set_mount(&self, mount: Option<Stamp>) {
        self.leaf().write_mount(mount);
    }

    /// The entries of `mask` were copied to `run`: they are clean and in Y from here on (I2).
    pub(crate) fn mark_copied(&self, mask: u64, run: RunId) {
        let leaf = self.leaf();
        leaf.set_bits(Bit::Dirty, leaf.bits(Bit::Dirty) & !mask);
        leaf.set_bits(Bit::InY, leaf.bits(Bit::InY) | mask);
        leaf.write_run(run);
    }

    /// Marks the entries of `mask` dirty.
    pub(crate) fn mark_dirty(&self, mask: u64) {
        let leaf = self.leaf();
        leaf.set_bits(Bit::Dirty, leaf.bits(Bit::Dirty) | mask);
    }

    /// Forgets the reference bits among `mask`.
    pub(crate) fn clear_references(&self, mask: u64) {
        let leaf = self.leaf();
        leaf.set_bits(Bit::Referenced, leaf.bits(Bit::Referenced) & !mask);
    }
}

/// The place of a record for a new entry `i` beside `n` others.
#[inline(always)]
fn open_place(leaf: LeafRef<'_>, records: &Records, i: usize, n: usize) -> usize {
    let words = leaf.words();
    if records.ordered {
        words.copy_within(records.at(i), records.at(i + 1), (n - i) * records.size);
        return i;
    }
    words.insert(records.places + i, n - i, n as u64, PLACE_BYTES);
    n
}

/// Puts the bits of a new entry at `i`, which is not referenced yet.
#[inline]
fn insert_bits(leaf: LeafRef<'_>, i: usize, flags: u32) {
    let below = (1u64 << i) - 1;
    let insert = |bit, flag| {
        let bits = leaf.bits(bit);
        let own = u64::from(flags & flag != 0) << i;
        let now = bits & below | (bits & !below) << 1 | own;
        if now != bits {
            leaf.set_bits(bit, now);
        }
    };
    insert(Bit::Dirty, DIRTY);
    insert(Bit::InY, IN_Y);
    insert(Bit::Tombstone, TOMBSTONE);
    insert(Bit::Referenced, 0);
}

fn replace_slotted(leaf: LeafRef<'_>, i: usize, entry: &NewEntry<'_>) {
    let old = leaf.entry(i);
    let before = old.size();
    let after = heap_bytes(entry.suffix.len(), entry.value.len(), entry.form());
    let mut meta = leaf.meta();
    let offset = if after <= before {
        if after < before {
            leaf.count_shortened();
        }
        meta.dead += before - after;
        old.start
    } else {
        meta.dead += before;
        meta.top -= after;
        meta.top
    };
    write_body(leaf, offset, entry);
    leaf.set_slot(i, Slot::new(offset, entry.large.is_some()));
    leaf.set_meta(meta);
}

fn write_body(leaf: LeafRef<'_>, at: usize, entry: &NewEntry<'_>) {
    let form = entry.form();
    let lengths = Lengths::new(entry.suffix.len(), entry.value.len(), form);
    let mut body = leaf.words().stream(at);
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

/// Moves the last of `n` records to `place`, which is not needed any more.
fn fill_record(leaf: LeafRef<'_>, records: &Records, place: usize, n: usize) {
    let last = n - 1;
    if place == last {
        return;
    }
    let owner = (0..n).find(|&i| leaf.place(records, i) == last);
    let (from, to) = (records.at(last), records.at(place));
    leaf.words().copy_within(from, to, records.size);
    leaf.set_place(records, owner.unwrap_or(last), place);
}

/// Moves the `after` elements of `size` bytes behind element `i` of the array at `array` down by
/// one.
fn close(leaf: LeafRef<'_>, array: usize, size: usize, i: usize, after: usize) {
    let at = array + i * size;
    leaf.words().copy_within(at + size, at, after * size);
}

/// Replaces the flags of entry `i`.
#[inline]
fn set_flags(leaf: LeafRef<'_>, i: usize, flags: u32) {
    let mask = 1u64 << i;
    for (bit, flag) in BITS {
        let bits = leaf.bits(bit);
        let now = if flags & flag != 0 {
            bits | mask
        } else {
            bits & !mask
        };
        if now != bits {
            leaf.set_bits(bit, now);
        }
    }
}

impl LeafLatched<'_> {
    /// Moves the entries of a slotted leaf together, so that no heap byte is dead.
    pub(crate) fn compact(&self) {
        let leaf = self.leaf();
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
