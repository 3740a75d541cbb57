//! A slab: equal blocks side by side, and the list of those that are free.
//!
//! The headers of all slabs of a chunk stand together behind the chunk's header, so that blocks of
//! powers of two fill their slab, headers do not compete for the same cache sets, and a slab's
//! pages can go back to the system while its header stays.
//!
//! A free block's first word is the offset in the chunk of the next free one. Blocks that were
//! never used are taken in order behind the list. With debug assertions a freed block is filled
//! with a pattern, which is checked when it is used again: a write after the free panics.
//!
//! Header fields are relaxed atomics: some are read without a lock (class and shard, which do
//! not change while a block of the slab is allocated), the rest is protected by the
//! lock of the shard that owns the slab.

use super::{
    chunk::{CHUNK_BYTES, ChunkHeader, HEADER_BYTES, Kind, chunk_of},
    classes::class_bytes,
};
use std::{
    ptr::NonNull,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed},
};

/// Bytes of a [`SlabHeader`].
const SLAB_HEADER_BYTES: usize = 64;
/// Partly used slabs are kept in this many lists, by how full they are.
pub(super) const BINS: usize = 4;
/// The list of those that are to run empty: nothing is taken from them.
pub(super) const EMPTYING: usize = BINS;
/// To empty slabs that are fuller than this, in quarters, would cost more than it frees.
const FULLEST_QUARTERS: usize = 2;
/// Fills freed blocks behind their first word, with debug assertions.
const FREED: u64 = 0xFEED_F00D_DEAD_B10C;

/// See the module header.
#[repr(C, align(64))]
pub(super) struct SlabHeader {
    class: AtomicU32,
    shard: AtomicU32,
    block_bytes: AtomicU32,
    /// Blocks that it has.
    capacity: AtomicU32,
    /// Blocks that are allocated.
    used: AtomicU32,
    /// Offset in the chunk of the first free block that was used before; 0: none.
    free: AtomicU32,
    /// Offset in the chunk of the first block never used.
    fresh: AtomicU32,
    /// Blocks never used are zero.
    zeroed: AtomicBool,
    /// It is to run empty. Changes under the shard's lock, read without.
    emptying: AtomicBool,
    /// Blocks that lie out of line were taken from it since it was prepared. Relaxed: who looks for
    /// such blocks may miss a slab that just got its first.
    out_of_line: AtomicBool,
    /// It did not run empty when it was to: so many times more it is not chosen.
    left_alone: AtomicU8,
    /// Neighbours in the shard's list.
    pub(super) previous: AtomicPtr<SlabHeader>,
    pub(super) next: AtomicPtr<SlabHeader>,
}
const _: () = assert!(size_of::<SlabHeader>() == SLAB_HEADER_BYTES);

/// A slab of a live chunk. Copies are the same slab; who may use it is said where it is passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slab(NonNull<SlabHeader>);

// SAFETY: the header consists of atomics, and the slab's memory is only reached through methods
// that say who may.
unsafe impl Send for Slab {}

/// A block taken from a slab.
pub(super) struct Taken {
    pub(super) block: NonNull<u64>,
    /// All of its bytes are zero.
    pub(super) zeroed: bool,
}

/// Offset in a chunk of what follows its slab headers.
pub(super) const fn headers_end(shift: u32) -> usize {
    HEADER_BYTES + (CHUNK_BYTES >> shift) * SLAB_HEADER_BYTES
}

impl Slab {
    /// Slab `index` of the chunk at `base`.
    ///
    /// # Safety
    /// `base` is a live chunk of slabs of `1 << shift` bytes that is not unmapped while the result
    /// is used, and `index` is below their number.
    pub(super) unsafe fn new(base: NonNull<u8>, shift: u32, index: usize) -> Self {
        debug_assert!(index < CHUNK_BYTES >> shift);
        // SAFETY: `index` is below the number of slabs, so the header lies before `headers_end`.
        let header = unsafe { base.add(HEADER_BYTES + index * SLAB_HEADER_BYTES) };
        Self(header.cast())
    }

    /// The slab that `block` lies in.
    ///
    /// # Safety
    /// `block` is an allocated block of a chunk of slabs of `1 << shift` bytes.
    #[inline(always)]
    pub(super) unsafe fn of(block: NonNull<u64>, shift: u32) -> Self {
        let index = (block.addr().get() & (CHUNK_BYTES - 1)) >> shift;
        // SAFETY: the block's chunk is live as long as the block is allocated; the offset in it is
        // below `CHUNK_BYTES`.
        unsafe { Self::new(chunk_of(block).cast(), shift, index) }
    }

    /// # Safety
    /// `at` came from [`Slab::as_ptr`] of a slab whose chunk is still mapped.
    pub(super) unsafe fn from_ptr(at: *mut SlabHeader) -> Option<Self> {
        NonNull::new(at).map(Self)
    }

    pub(super) fn as_ptr(self) -> *mut SlabHeader {
        self.0.as_ptr()
    }

    #[inline(always)]
    pub(super) fn header(&self) -> &SlabHeader {
        // SAFETY: `new`: the chunk is live while the slab is used; zeroed memory is a valid header,
        // and it is only accessed atomically.
        unsafe { self.0.as_ref() }
    }

    fn chunk(self) -> NonNull<ChunkHeader> {
        // SAFETY: the slab's header lies in a live chunk.
        unsafe { chunk_of(self.0) }
    }

    /// Index of its chunk in the pool, and its own in the chunk.
    pub(super) fn place(self) -> (usize, usize) {
        // SAFETY: the chunk is live and its header was written before it had slabs.
        let slot = unsafe { self.chunk().as_ref() }.slot;
        let offset = self.0.addr().get() & (CHUNK_BYTES - 1);
        (slot, (offset - HEADER_BYTES) / SLAB_HEADER_BYTES)
    }

    /// It has `1 << shift` bytes, less what headers take of them.
    pub(super) fn shift(self) -> u32 {
        // SAFETY: the chunk is live and its header was written before it had slabs.
        match unsafe { self.chunk().as_ref() }.kind {
            Kind::Slabs { shift } => shift,
            _ => unreachable!("a slab lies in a chunk of slabs"),
        }
    }

    /// Offset in its chunk and length of its memory.
    pub(super) fn extent(self, shift: u32) -> (usize, usize) {
        let start = self.place().1 << shift;
        let first = start.max(headers_end(shift));
        (first, start + (1 << shift) - first)
    }

    /// Start of its memory.
    pub(super) fn memory(self, shift: u32) -> NonNull<u8> {
        // SAFETY: the extent lies inside the chunk.
        unsafe { self.chunk().cast::<u8>().add(self.extent(shift).0) }
    }

    /// Makes a slab that has no blocks in use one of `class`, owned by `shard`. The caller alone
    /// has it.
    pub(super) fn prepare(self, shift: u32, class: usize, shard: usize, zeroed: bool) {
        let (first, bytes) = self.extent(shift);
        let block = class_bytes(class);
        let header = self.header();
        header.class.store(class as u32, Relaxed);
        header.shard.store(shard as u32, Relaxed);
        header.block_bytes.store(block as u32, Relaxed);
        header.capacity.store((bytes / block) as u32, Relaxed);
        header.used.store(0, Relaxed);
        header.free.store(0, Relaxed);
        header.fresh.store(first as u32, Relaxed);
        header.zeroed.store(zeroed, Relaxed);
        header.emptying.store(false, Relaxed);
        header.out_of_line.store(false, Relaxed);
        header.left_alone.store(0, Relaxed);
    }

    /// Takes a block; `None` if all are in use. The caller holds the shard's lock.
    #[inline]
    pub(super) fn take(self) -> Option<Taken> {
        let header = self.header();
        let used = header.used.load(Relaxed);
        if used == header.capacity.load(Relaxed) {
            return None;
        }
        header.used.store(used + 1, Relaxed);
        let free = header.free.load(Relaxed);
        if free == 0 {
            let fresh = header.fresh.load(Relaxed);
            let bytes = header.block_bytes.load(Relaxed);
            header.fresh.store(fresh + bytes, Relaxed);
            return Some(Taken {
                block: self.at(fresh),
                zeroed: header.zeroed.load(Relaxed),
            });
        }
        let block = self.at(free);
        // SAFETY: a free block of this slab, which only the holder of the lock accesses; its first
        // word is the link (`put`).
        let next = unsafe { AtomicU64::from_ptr(block.as_ptr()) }.load(Relaxed);
        header.free.store(next as u32, Relaxed);
        if cfg!(debug_assertions) {
            self.check_freed(block);
        }
        Some(Taken {
            block,
            zeroed: false,
        })
    }

    /// Takes `block` back. The caller holds the shard's lock.
    ///
    /// # Safety
    /// `block` is an allocated block of this slab that nobody accesses any more.
    #[inline]
    pub(super) unsafe fn put(self, block: NonNull<u64>) {
        let header = self.header();
        let used = header.used.load(Relaxed);
        debug_assert!(used > 0, "free of a block of an empty slab");
        if cfg!(debug_assertions) {
            // SAFETY: the caller gives up the block, all of it.
            unsafe { self.mark_freed(block) };
        }
        let link = u64::from(header.free.load(Relaxed));
        // SAFETY: the caller gives up the block, which has at least one word.
        unsafe { AtomicU64::from_ptr(block.as_ptr()) }.store(link, Relaxed);
        let offset = block.addr().get() & (CHUNK_BYTES - 1);
        header.free.store(offset as u32, Relaxed);
        header.used.store(used - 1, Relaxed);
    }

    #[inline(always)]
    fn at(self, offset: u32) -> NonNull<u64> {
        debug_assert!((offset as usize) < CHUNK_BYTES);
        // SAFETY: offsets of blocks are inside the chunk (`prepare`, `put`).
        unsafe { self.chunk().cast::<u8>().add(offset as usize).cast() }
    }

    /// # Safety
    /// The caller alone accesses the block, which belongs to this slab and is not in its list.
    unsafe fn mark_freed(self, block: NonNull<u64>) {
        let words = self.block_bytes() / 8;
        // SAFETY: the block has so many words, and the caller alone accesses them.
        let block = unsafe { std::slice::from_raw_parts_mut(block.as_ptr(), words) };
        assert!(
            block[1..].iter().any(|&w| w != FREED),
            "block of {} bytes freed twice",
            words * 8
        );
        block.fill(FREED);
    }

    fn check_freed(self, block: NonNull<u64>) {
        let words = self.block_bytes() / 8;
        // SAFETY: the block has so many words; it was just taken out of the list, by the caller
        // alone.
        let block = unsafe { std::slice::from_raw_parts(block.as_ptr(), words) };
        assert!(
            block[1..].iter().all(|&w| w == FREED),
            "block of {} bytes was written after it was freed",
            words * 8
        );
    }

    #[inline(always)]
    pub(super) fn block_bytes(self) -> usize {
        self.header().block_bytes.load(Relaxed) as usize
    }

    pub(super) fn class(self) -> usize {
        self.header().class.load(Relaxed) as usize
    }

    #[inline(always)]
    pub(super) fn shard(self) -> usize {
        self.header().shard.load(Relaxed) as usize
    }

    pub(super) fn is_empty(self) -> bool {
        self.header().used.load(Relaxed) == 0
    }

    /// Blocks in use, and free ones.
    pub(super) fn fill(self) -> (usize, usize) {
        let header = self.header();
        let (used, capacity) = (header.used.load(Relaxed), header.capacity.load(Relaxed));
        (used as usize, (capacity - used) as usize)
    }

    /// It holds so little that to move it is worth it.
    pub(super) fn is_worthwhile(self) -> bool {
        let (used, free) = self.fill();
        used * BINS <= (used + free) * FULLEST_QUARTERS
    }

    pub(super) fn is_emptying(self) -> bool {
        self.header().emptying.load(Relaxed)
    }

    /// The caller holds the shard's lock, and takes it out of its list before and puts it into one
    /// afterwards.
    pub(super) fn set_emptying(self, on: bool) {
        self.header().emptying.store(on, Relaxed);
    }

    /// A block of it is taken that lies out of line. The caller has that block.
    #[inline]
    pub(super) fn note_out_of_line(self) {
        let noted = &self.header().out_of_line;
        if !noted.load(Relaxed) {
            noted.store(true, Relaxed);
        }
    }

    pub(super) fn has_out_of_line(self) -> bool {
        self.header().out_of_line.load(Relaxed)
    }

    /// Is not to be chosen so many `times`. The caller holds the shard's lock.
    pub(super) fn leave_alone(self, times: u8) {
        self.header().left_alone.store(times, Relaxed);
    }

    /// Whether it may be chosen to run empty; if not, that was one of the times. The caller holds
    /// the shard's lock.
    pub(super) fn may_be_chosen(self) -> bool {
        let left_alone = &self.header().left_alone;
        let times = left_alone.load(Relaxed);
        left_alone.store(times.saturating_sub(1), Relaxed);
        times == 0
    }

    /// The list that it belongs in: 0 for the emptiest to `BINS - 1`, or [`EMPTYING`]; `None` when
    /// full.
    #[inline(always)]
    pub(super) fn bin(self) -> Option<usize> {
        let header = self.header();
        if header.emptying.load(Relaxed) {
            return Some(EMPTYING);
        }
        let (used, capacity) = (header.used.load(Relaxed), header.capacity.load(Relaxed));
        if used == capacity {
            return None;
        }
        let quarter = capacity / BINS as u32;
        Some(
            usize::from(used > quarter)
                + usize::from(used > 2 * quarter)
                + usize::from(used > 3 * quarter),
        )
    }
}
