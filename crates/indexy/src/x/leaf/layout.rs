//! The bytes of a leaf.
//!
//! | offset | what |
//! |---|---|
//! | 0 | latch |
//! | 8 | entries (8 bits), room for entries (8), heap top (16), dead heap bytes (16), depth (16) |
//! | 16 | mounted (1 bit), stamp (53), between them (10) the value length of a *fixed* leaf, of a
//! | | *slotted* one how often an entry was written shorter |
//! | 24 | run (32), fixed (1), suffix length of a fixed leaf (15), block size / 16 (16) |
//! | 32 | a bit per entry each: dirty, in Y, tombstone, referenced |
//! | 64 | heads (4 bytes each): `heads.rs` |
//! | then, *fixed* | places: a byte each, the number of the entry's record (small records: none) |
//! | | records: what the suffix has behind its head, the value |
//! | then, *slotted* | slots (16 bits: offset, whether large) |
//! | top .. size | heap: `suffix length, value length` (varints), the suffix behind its head, the |
//! | | value; or a pointer to them |
//!
//! A suffix is a key without its first `depth` bytes, which all keys of the leaf's range have in
//! common (prefix truncation; the bytes themselves are not stored: who needs them came with them).
//! *Fixed* is a leaf whose suffixes have one length and whose values have one length, small ones:
//! no slots and no lengths. Small records are in key order. Others are in none: an insert moves
//! heads and places, never records; the places of `n` entries are the numbers below `n`.
//!
//! Everything is read as relaxed atomic words, and may be torn until the version was validated: so
//! every offset and length is clamped to the block by `Words`.

use super::handles::LeafRef;
use crate::{
    mem::{Memory, words::Words},
    x::{
        RunId, Stamp,
        child::ChildWord,
        entry::{MAX_INLINE_SUFFIX, MAX_INLINE_VALUE},
        heads::{HEAD_BYTES, Heads, UNHINTED, head_bytes},
    },
};
use std::ptr::NonNull;

/// A leaf does not grow beyond this, unless it has a single entry: the node size of leaves.
pub(crate) const LEAF_BYTES: usize = 2048;
/// Most entries of a leaf: a bit each in the header.
pub(crate) const MAX_ENTRIES: usize = 64;
/// Suffix and value of an entry of a fixed leaf, together, at most.
pub(super) const MAX_FIXED_BYTES: usize = 32;

/// Records of up to so many bytes are kept in order: to move them costs less than a byte each to
/// find them by.
const MAX_ORDERED_BYTES: usize = 12;

pub(super) const HEADER_BYTES: usize = 64;
pub(super) const SLOT_BYTES: usize = 2;
pub(super) const PLACE_BYTES: usize = 1;
const SIZE_UNIT: usize = 16;

/// Room for a single entry of any size that is kept inline, beside the one that it replaces.
const SINGLE_BYTES: usize =
    HEADER_BYTES + head_bytes(1) + 8 + 2 * (10 + MAX_INLINE_SUFFIX + MAX_INLINE_VALUE);
/// Blocks of leaves have this at most.
pub(super) const MAX_BLOCK_BYTES: usize = if LEAF_BYTES > 2048 { LEAF_BYTES } else { 2048 };

const _: () = assert!(MAX_ENTRIES <= UNHINTED);
const _: () = assert!(LEAF_BYTES >= 256 && SINGLE_BYTES <= MAX_BLOCK_BYTES);

const META: usize = 1;
pub(super) const STATE: usize = 2;
pub(super) const KIND: usize = 3;
pub(super) const BITS: usize = 4;

/// What stands between mark and stamp.
const STATE_BETWEEN: u64 = 0x3FF << 1;

/// How the entries of a leaf are laid out; never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Fixed { suffix_len: usize, value_len: usize },
    Slotted,
}

/// Counters and offsets of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub n: usize,
    /// Room for so many entries; never changes.
    pub cap: usize,
    /// Where the heap starts.
    pub top: usize,
    /// Heap bytes that belong to no entry.
    pub dead: usize,
    /// Bytes of a key before its suffix; never changes.
    pub depth: usize,
}

impl Meta {
    #[inline]
    fn pack(self) -> u64 {
        debug_assert!(self.n <= self.cap && self.cap <= MAX_ENTRIES && self.top <= MAX_BLOCK_BYTES);
        debug_assert!(self.dead <= MAX_BLOCK_BYTES && self.depth <= usize::from(u16::MAX));
        self.n as u64
            | (self.cap as u64) << 8
            | (self.top as u64) << 16
            | (self.dead as u64) << 32
            | (self.depth as u64) << 48
    }

    #[inline]
    fn unpack(word: u64) -> Self {
        Self {
            n: (word as usize & 0xFF).min(MAX_ENTRIES),
            cap: (word as usize >> 8 & 0xFF).min(MAX_ENTRIES),
            top: word as usize >> 16 & 0xFFFF,
            dead: word as usize >> 32 & 0xFFFF,
            depth: word as usize >> 48,
        }
    }
}

/// Bytes of a leaf of this kind with room for `cap` entries and, if it is slotted, `heap` bytes for
/// them.
pub(crate) fn leaf_bytes(kind: Kind, cap: usize, heap: usize) -> usize {
    let arrays = HEADER_BYTES + head_bytes(cap);
    match kind {
        Kind::Slotted => arrays + (cap * SLOT_BYTES).next_multiple_of(8) + heap,
        Kind::Fixed {
            suffix_len,
            value_len,
        } => {
            let record = suffix_len.saturating_sub(HEAD_BYTES) + value_len;
            arrays + places_bytes(cap, record) + cap * record
        }
    }
}

#[inline]
const fn places_bytes(cap: usize, record: usize) -> usize {
    if record > MAX_ORDERED_BYTES {
        cap.next_multiple_of(8)
    } else {
        0
    }
}

/// Where the entries of a fixed leaf are.
#[derive(Clone, Copy)]
pub(super) struct Records {
    /// Offset of the places.
    pub places: usize,
    /// Offset of the records.
    first: usize,
    /// Bytes of a suffix, and of what it has behind its head.
    pub suffix_len: usize,
    pub rest: usize,
    /// Bytes of a record.
    pub size: usize,
    /// They are in key order, without places.
    pub ordered: bool,
}

impl Records {
    /// Offset of record `place`.
    #[inline]
    pub(super) fn at(&self, place: usize) -> usize {
        self.first + place * self.size
    }

    #[inline]
    fn places_bytes(&self, cap: usize) -> usize {
        places_bytes(cap, self.size)
    }
}

/// A bit that every entry has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bit {
    /// Newer than what Y was given.
    Dirty,
    /// Y may hold some version of the key.
    InY,
    /// The key was removed.
    Tombstone,
    /// Read since the last cut. A hint: an edit at the same time may lose or move it.
    Referenced,
}

impl<'g> LeafRef<'g> {
    /// # Safety
    /// `block` is a leaf that stays allocated for `'g`.
    #[inline(always)]
    pub(crate) unsafe fn from_block(block: NonNull<u64>) -> Self {
        // SAFETY: a leaf has a header; by the contract it stays allocated.
        let header = unsafe { Words::new(block, HEADER_BYTES) };
        // The size bits never change after the leaf was made.
        let size = (header.word(KIND) as usize >> 48) * SIZE_UNIT;
        // SAFETY: as above; `size` is what was allocated.
        unsafe { Self::new(block, Words::new(block, size)) }
    }

    /// Writes the header of a new leaf, whose block is zeroed.
    pub(super) fn format(self, kind: Kind, meta: Meta) {
        let (words, bytes) = (self.words(), self.size());
        debug_assert!(bytes <= MAX_BLOCK_BYTES && bytes.is_multiple_of(SIZE_UNIT));
        assert!(leaf_bytes(kind, meta.cap, 0) <= bytes);
        let size = ((bytes / SIZE_UNIT) as u64) << 48;
        let (kind, value_len) = match kind {
            Kind::Slotted => (0, 0),
            Kind::Fixed {
                suffix_len,
                value_len,
            } => (1 | (suffix_len as u64) << 1, value_len as u64),
        };
        words.set_word(KIND, size | kind << 32);
        words.set_word(STATE, value_len << 1);
        self.set_meta(meta);
    }

    /// The same bytes in a new block; nobody holds its latch.
    pub(super) fn copy(self, memory: &Memory) -> Self {
        let block = memory.allocate(self.size());
        // SAFETY: the block is new and zeroed; once published it is retired, not freed.
        let new = unsafe { Self::new(block.ptr, Words::new(block.ptr, self.size())) };
        let (from, len) = (META * 8, self.size() - META * 8);
        new.words().copy_from(&self.words(), from, from, len);
        new
    }

    /// The word that leads here: a search looks at header, heads, and slots or places, then at one
    /// entry.
    #[inline]
    pub(crate) fn word(self) -> ChildWord {
        let cap = self.meta().cap;
        let each = match self.kind() {
            Kind::Slotted => cap * SLOT_BYTES,
            Kind::Fixed { .. } => self
                .records()
                .map_or(0, |records| records.places_bytes(cap)),
        };
        ChildWord::leaf(self.block(), self.arrays() + each)
    }

    /// Word `i` of the header.
    #[inline(always)]
    pub(super) fn header(self, i: usize) -> u64 {
        assert!(i < HEADER_BYTES / 8);
        // SAFETY: the block is a leaf (`new`), and every leaf has a header.
        unsafe { self.words().word_inside(i) }
    }

    #[inline]
    pub(crate) fn meta(self) -> Meta {
        Meta::unpack(self.header(META))
    }

    #[inline]
    pub(super) fn set_meta(self, meta: Meta) {
        self.words().set_word(META, meta.pack());
    }

    /// Bytes of a key before its suffix.
    #[inline]
    pub(crate) fn depth(self) -> usize {
        self.meta().depth
    }

    #[inline]
    pub(crate) fn kind(self) -> Kind {
        let word = self.header(KIND) >> 32;
        if word & 1 == 0 {
            return Kind::Slotted;
        }
        Kind::Fixed {
            suffix_len: word as usize >> 1 & 0x7FFF,
            value_len: (self.header(STATE) & STATE_BETWEEN) as usize >> 1,
        }
    }

    pub(super) fn write_run(self, run: RunId) {
        let kind = self.header(KIND) >> 32 << 32;
        self.words().set_word(KIND, kind | u64::from(run));
    }

    #[inline]
    pub(super) fn write_mount(self, mount: Option<Stamp>) {
        let between = self.header(STATE) & STATE_BETWEEN;
        let stamp = mount.map_or(0, |stamp| stamp << 11 | 1);
        self.words().set_word(STATE, between | stamp);
    }

    /// How often an entry of a slotted leaf was written shorter in its place, as far as that is
    /// counted; never, of a fixed one.
    pub(super) fn shortened(self) -> usize {
        match self.kind() {
            Kind::Slotted => (self.header(STATE) & STATE_BETWEEN) as usize >> 1,
            Kind::Fixed { .. } => 0,
        }
    }

    /// Counts an entry of a slotted leaf that is written shorter.
    pub(super) fn count_shortened(self) {
        let state = self.header(STATE);
        if state & STATE_BETWEEN != STATE_BETWEEN {
            self.words().set_word(STATE, state + (1 << 1));
        }
    }

    #[inline]
    pub(super) fn set_bits(self, bit: Bit, bits: u64) {
        self.words().set_word(BITS + bit as usize, bits);
    }

    #[inline]
    pub(crate) fn has_bit(self, i: usize, bit: Bit) -> bool {
        self.bits(bit) >> (i & 63) & 1 != 0
    }

    #[inline]
    pub(crate) fn heads(self) -> Heads<'g> {
        Heads::plain(self.words(), HEADER_BYTES)
    }

    /// Offset of the slots, or of the places of a fixed leaf.
    #[inline]
    pub(super) fn arrays(self) -> usize {
        HEADER_BYTES + head_bytes(self.meta().cap)
    }

    /// Where the entries are; `None` when the leaf is slotted.
    #[inline]
    pub(super) fn records(self) -> Option<Records> {
        let Kind::Fixed {
            suffix_len,
            value_len,
        } = self.kind()
        else {
            return None;
        };
        let cap = self.meta().cap;
        let places = HEADER_BYTES + head_bytes(cap);
        let rest = suffix_len.saturating_sub(HEAD_BYTES);
        let size = rest + value_len;
        let for_places = places_bytes(cap, size);
        Some(Records {
            places,
            first: places + for_places,
            suffix_len,
            rest,
            size,
            ordered: size <= MAX_ORDERED_BYTES,
        })
    }

    /// Gives the entries to come the records in their order.
    #[inline]
    pub(super) fn number_places(self, records: &Records) {
        const FIRST: u64 = u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7]);
        const EACH: u64 = u64::from_le_bytes([8; 8]);
        let first = records.places / 8;
        for word in 0..records.places_bytes(self.meta().cap) / 8 {
            self.words()
                .set_word(first + word, FIRST + word as u64 * EACH);
        }
    }

    /// The head of entry `i` of a fixed leaf without its first `strip` bytes, behind which there
    /// are enough.
    #[inline]
    pub(super) fn head_behind(self, records: &Records, i: usize, strip: usize) -> u32 {
        let rest = self.words().read_u64(records.at(self.place(records, i)));
        let eight = u64::from(self.heads().get(i)) << 32 | rest.swap_bytes() >> 32;
        match strip {
            0..HEAD_BYTES => (eight << (8 * strip) >> 32) as u32,
            _ => {
                let at = records.at(self.place(records, i)) + strip - HEAD_BYTES;
                (self.words().read_u64(at) as u32).swap_bytes()
            }
        }
    }

    /// The record of entry `i`; garbage when there are not so many.
    #[inline]
    pub(super) fn place(self, records: &Records, i: usize) -> usize {
        if records.ordered {
            return i;
        }
        usize::from(self.words().read_u8(records.places + i))
    }

    pub(super) fn set_place(self, records: &Records, i: usize, place: usize) {
        self.words().write(records.places + i, &[place as u8]);
    }

    /// Slot `i` of a slotted leaf; garbage when there are not so many.
    #[inline]
    pub(super) fn slot(self, i: usize) -> Slot {
        let at = self.arrays() + i * SLOT_BYTES;
        Slot((self.words().aligned_u32(at & !3) >> (at % 4 * 8)) as u16)
    }

    #[inline]
    pub(super) fn set_slot(self, i: usize, slot: Slot) {
        let at = self.arrays() + i * SLOT_BYTES;
        self.words().write(at, &slot.0.to_le_bytes());
    }

    /// Has the processor fetch the entries, too. A search needs one of them; a scan needs all, and
    /// so does a write that finds no room.
    #[inline]
    pub(crate) fn prefetch_entries(self) {
        self.words().prefetch(self.arrays()..self.size());
    }

    /// Heap bytes of a slotted leaf that entries own.
    pub(super) fn heap_used(self) -> usize {
        let meta = self.meta();
        (self.size() - meta.top).saturating_sub(meta.dead)
    }

    /// Bytes between the slots and the heap of a slotted leaf.
    #[inline]
    pub(crate) fn gap(self) -> usize {
        let meta = self.meta();
        let slots = self.arrays() + (meta.cap * SLOT_BYTES).next_multiple_of(8);
        meta.top.saturating_sub(slots)
    }
}

/// Where an entry of a slotted leaf is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(u16);

impl Slot {
    #[inline]
    pub(super) fn new(offset: usize, large: bool) -> Self {
        debug_assert!(offset < MAX_BLOCK_BYTES);
        Self((offset as u16) << 1 | u16::from(large))
    }
    #[inline]
    pub(super) fn raw(self) -> u64 {
        u64::from(self.0)
    }
    #[inline]
    pub(super) fn offset(self) -> usize {
        usize::from(self.0 >> 1)
    }
    /// The value, and a long suffix, are in a block of their own.
    #[inline]
    pub(super) fn is_large(self) -> bool {
        self.0 & 1 != 0
    }
}
