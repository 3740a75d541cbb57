//! The bytes of a packed leaf.
//!
//! | offset | what |
//! |---|---|
//! | 0 | latch |
//! | 8 | entries (8 bits), heap top (12), dead heap bytes (12), run (32) |
//! | 16 | mounted, may hold dirty entries, may hold tombstones (1 bit each) |
//! | | block size / 16 (8 bits), stamp (53) |
//! | 24 | reference bits, one per entry |
//! | 32 | slots in key order, 4 bytes each: head (16), offset (12), flags (4) |
//! | top .. size | heap: `suffix length, value length` (varints), `suffix, value` or a pointer |
//!
//! The head is the first two bytes of the suffix, big-endian, zero padded. A suffix starts at the
//! depth of the leaf's parent. Values over `MAX_INLINE_VALUE` and suffixes over `MAX_INLINE_SUFFIX`
//! bytes are in a block of their own (`large.rs`).
//!
//! Everything is read as relaxed atomic words, and may be torn until the version was validated: so
//! every offset and length is clamped to the block by `Words`.

use crate::{
    mem::words::Words,
    x::{RunId, Stamp, child::ChildWord, leaf},
};
use std::{ptr::NonNull, sync::atomic::Ordering::Relaxed};

/// Most entries of a leaf: one reference bit each.
pub(crate) const MAX_ENTRIES: usize = 64;
/// Offsets in a leaf have 12 bits.
pub(crate) const MAX_BLOCK_BYTES: usize = leaf::BUFFER_BYTES;
pub(crate) const HEADER_BYTES: usize = 32;
pub(crate) const SLOT_BYTES: usize = 4;
pub(crate) const SLOTS_PER_WORD: usize = 8 / SLOT_BYTES;

const LATCH: usize = 0;
const META: usize = 1;
const STATE: usize = 2;
const REFS: usize = 3;
const SIZE_UNIT: usize = 16;

const _: () = assert!(MAX_BLOCK_BYTES / SIZE_UNIT <= 0xFF && MAX_BLOCK_BYTES <= 0xFFF);
const _: () = assert!(HEADER_BYTES == (REFS + 1) * 8);

/// Counts and offsets of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub n: usize,
    /// Where the heap starts.
    pub top: usize,
    /// Heap bytes that belong to no entry.
    pub dead: usize,
    /// The last run that copied from this leaf.
    pub run: RunId,
}

impl Meta {
    fn pack(self) -> u64 {
        debug_assert!(self.n <= MAX_ENTRIES && self.top <= 0xFFF && self.dead <= 0xFFF);
        self.n as u64
            | (self.top as u64) << 8
            | (self.dead as u64) << 20
            | u64::from(self.run) << 32
    }

    #[inline]
    fn unpack(word: u64) -> Self {
        Self {
            n: (word as usize & 0xFF).min(MAX_ENTRIES),
            top: word as usize >> 8 & 0xFFF,
            dead: word as usize >> 20 & 0xFFF,
            run: (word >> 32) as RunId,
        }
    }

    /// Bytes between the slots and the heap.
    pub(crate) fn gap(&self) -> usize {
        self.top.saturating_sub(HEADER_BYTES + self.n * SLOT_BYTES)
    }
}

/// What is true of the whole range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// The range is mounted with this stamp, or complete.
    pub mount: Option<Stamp>,
    /// No entry is dirty unless this is set.
    pub dirty: bool,
    /// No entry is a tombstone unless this is set.
    pub tombstones: bool,
}

/// One slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

impl Slot {
    pub(crate) fn new(head: u16, offset: usize, flags: u32) -> Self {
        debug_assert!(offset <= 0xFFF && flags <= 0xF);
        Self(u32::from(head) << 16 | (offset as u32) << 4 | flags)
    }
    #[inline]
    pub(crate) fn head(self) -> u16 {
        (self.0 >> 16) as u16
    }
    #[inline]
    pub(crate) fn offset(self) -> usize {
        (self.0 >> 4 & 0xFFF) as usize
    }
    #[inline]
    pub(crate) fn flags(self) -> u32 {
        self.0 & 0xF
    }
    #[inline]
    pub(crate) fn is(self, flag: u32) -> bool {
        self.0 & flag != 0
    }
    pub(crate) fn with_flags(self, flags: u32) -> Self {
        Self(self.0 & !0xF | flags)
    }
    /// What to add to a word of slots to move their offsets up by `bytes`.
    pub(crate) fn further(bytes: usize) -> u64 {
        let one = (bytes as u64) << 4;
        one | one << 32
    }
    pub(crate) fn with_offset(self, offset: usize) -> Self {
        Self::new(self.head(), offset, self.flags())
    }
}

/// The first two bytes of a suffix, zero padded.
#[inline]
pub(crate) fn head(suffix: &[u8]) -> u16 {
    match suffix {
        [] => 0,
        [a] => u16::from(*a) << 8,
        [a, b, ..] => u16::from_be_bytes([*a, *b]),
    }
}

/// The format of packed leaves.
#[derive(Clone, Copy)]
pub(crate) struct Packed;

pub(crate) type LeafRef<'g> = leaf::LeafRef<'g, Packed>;
pub(crate) type LeafSeen<'g> = leaf::LeafSeen<'g, Packed>;
pub(crate) type LeafLatched<'g> = leaf::LeafLatched<'g, Packed>;
pub(crate) type StableLeaf<'x> = leaf::StableLeaf<'x, Packed>;

impl<'g> LeafRef<'g> {
    /// # Safety
    /// `block` is a leaf that stays allocated for `'g`.
    #[inline]
    pub(crate) unsafe fn from_block(block: NonNull<u64>) -> Self {
        // SAFETY: a leaf has a header; by the contract it stays allocated.
        let header = unsafe { Words::new(block, HEADER_BYTES) };
        // The size bits never change after the leaf was made.
        let size = size_of_state(header.word(STATE));
        // SAFETY: as above; `size` is what was allocated.
        unsafe { Self::new(block, Words::new(block, size)) }
    }

    /// Writes the header of a new leaf.
    pub(super) fn format(self, mount: Option<Stamp>, run: RunId) {
        let (words, bytes) = (self.words(), self.size());
        debug_assert!(bytes <= MAX_BLOCK_BYTES && bytes.is_multiple_of(SIZE_UNIT));
        words.set_word(LATCH, 0);
        words.set_word(REFS, 0);
        words.set_word(STATE, ((bytes / SIZE_UNIT) as u64) << 3);
        self.set_meta(Meta {
            n: 0,
            top: bytes,
            dead: 0,
            run,
        });
        self.set_state(State {
            mount,
            dirty: false,
            tombstones: false,
        });
    }

    pub(crate) fn word(self) -> ChildWord {
        ChildWord::leaf(self.block(), self.size())
    }

    #[inline]
    pub(crate) fn meta(self) -> Meta {
        Meta::unpack(self.words().word(META))
    }

    pub(super) fn set_meta(self, meta: Meta) {
        self.words().set_word(META, meta.pack());
    }

    #[inline]
    pub(super) fn state(self) -> State {
        let word = self.words().word(STATE);
        State {
            mount: (word & 1 != 0).then_some(word >> 11),
            dirty: word & 2 != 0,
            tombstones: word & 4 != 0,
        }
    }

    pub(super) fn set_state(self, state: State) {
        let size = self.words().word(STATE) & (0xFF << 3);
        let word = u64::from(state.mount.is_some())
            | u64::from(state.dirty) << 1
            | u64::from(state.tombstones) << 2
            | size
            | state.mount.unwrap_or(0) << 11;
        self.words().set_word(STATE, word);
    }

    pub(super) fn refs(self) -> u64 {
        self.words().word(REFS)
    }

    pub(super) fn set_refs(self, refs: u64) {
        self.words().set_word(REFS, refs);
    }

    /// Notes that entry `i` was read.
    #[inline]
    pub(super) fn set_referenced(self, i: usize) {
        let bit = 1u64 << (i & 63);
        if self.words().word(REFS) & bit == 0 {
            self.words().atomic(REFS).fetch_or(bit, Relaxed);
        }
    }

    /// Slot `i`; garbage when there are not so many.
    #[inline]
    pub(crate) fn slot(self, i: usize) -> Slot {
        Slot(self.words().aligned_u32(HEADER_BYTES + i * SLOT_BYTES))
    }

    pub(super) fn set_slot(self, i: usize, slot: Slot) {
        let at = HEADER_BYTES + i * SLOT_BYTES;
        self.words().set_aligned_u32(at, slot.0);
    }
}

#[inline]
fn size_of_state(word: u64) -> usize {
    (word as usize >> 3 & 0xFF) * SIZE_UNIT
}
