//! Values, and suffixes of keys, that are too long for a node: immutable blocks of their own.
//!
//! | offset | what |
//! |---|---|
//! | 0 | length of the suffix part (32 bits), length of the value (32 bits) |
//! | 8 | suffix part (empty when the suffix is in the leaf), value |
//!
//! A block may outlive splits of its leaf that shorten the suffix: then the entry's suffix is the
//! end of the suffix part.
//!
//! A block that lies in a slab that is to run empty is *moved* (`leaf/relocate.rs`): its bytes are
//! copied to a new block, and the entry gets the new pointer under the latch of its leaf.
//!
//! Threads: written before it is published, never changed, retired when the entry is, or when it
//! was moved. Readers follow a pointer after they validated the leaf that they read it from, inside
//! the guard that they entered before. One that still holds the old pointer after a move reads the
//! old block: it stays allocated for as long as the guard, and has the same bytes.

use crate::mem::{Block, Memory};
use std::ptr::NonNull;

const HEADER_BYTES: usize = 8;
/// Lines of a block that are fetched ahead.
const FETCHED_LINES: usize = 3;

/// A large block as long as a guard keeps it.
#[derive(Clone, Copy)]
pub(crate) struct LargeRef<'g> {
    block: NonNull<u64>,
    /// Suffix part and value.
    bytes: &'g [u8],
    suffix_len: usize,
}

impl<'g> LargeRef<'g> {
    /// Writes a new block.
    fn create(memory: &Memory, suffix: &[u8], value: &[u8]) -> Self {
        let len = suffix.len() + value.len();
        let Block { ptr, bytes } = memory.allocate_out_of_line(HEADER_BYTES + len);
        debug_assert!(bytes >= HEADER_BYTES + len);
        // SAFETY: the block is ours alone, aligned, and has room for the header and `len` bytes.
        unsafe {
            ptr.write(suffix.len() as u64 | (value.len() as u64) << 32);
            let data = ptr.add(1).cast::<u8>().as_ptr();
            data.copy_from_nonoverlapping(suffix.as_ptr(), suffix.len());
            data.add(suffix.len())
                .copy_from_nonoverlapping(value.as_ptr(), value.len());
            Self::from_block(ptr)
        }
    }

    /// # Safety
    /// `block` is one that `create` made, and stays allocated for `'g`.
    unsafe fn from_block(block: NonNull<u64>) -> Self {
        // SAFETY: by the contract the block has a header that says how many bytes follow; nobody
        // writes them.
        unsafe {
            let header = block.read();
            let (suffix_len, value_len) = (header as u32 as usize, (header >> 32) as usize);
            let data = block.add(1).cast::<u8>().as_ptr();
            let bytes = std::slice::from_raw_parts(data, suffix_len + value_len);
            Self {
                block,
                bytes,
                suffix_len,
            }
        }
    }

    /// # Safety
    /// `raw` was read from a large entry of a leaf that was validated after it (or is latched),
    /// under a guard that lives for `'g`.
    #[inline]
    pub(crate) unsafe fn from_raw(raw: u64) -> Self {
        let block = std::ptr::with_exposed_provenance_mut::<u64>(raw as usize);
        // SAFETY: entries hold only what `raw` gave, never null.
        unsafe { Self::from_block(NonNull::new_unchecked(block)) }
    }

    /// What an entry holds.
    #[inline]
    pub(crate) fn raw(self) -> u64 {
        self.block.as_ptr().expose_provenance() as u64
    }

    /// Bytes of the suffix part.
    #[inline]
    pub(crate) fn suffix_len(self) -> usize {
        self.suffix_len
    }

    #[inline]
    pub(crate) fn value(self) -> &'g [u8] {
        &self.bytes[self.suffix_len..]
    }

    /// The last `len` bytes of the suffix part.
    pub(crate) fn suffix(self, len: usize) -> &'g [u8] {
        let part = &self.bytes[..self.suffix_len];
        &part[part.len().saturating_sub(len)..]
    }

    /// Frees the block when no guard can reach it any more. The caller took its entry out of the
    /// tree.
    pub(crate) fn retire(self, memory: &Memory) {
        // SAFETY: no entry leads here any more, and each entry's block is retired once, with it.
        unsafe { memory.retire(self.block) };
    }

    /// Frees the block at once.
    ///
    /// # Safety
    /// The tree that it belonged to is being dropped: nobody else looks at it, and it is freed
    /// once.
    pub(crate) unsafe fn free(self, memory: &Memory) {
        // SAFETY: the caller's promise.
        unsafe { memory.free(self.block) };
    }

    /// Whether the block that `raw` leads to is to be moved. The block is not looked at.
    ///
    /// # Safety
    /// As [`LargeRef::from_raw`].
    #[inline]
    pub(crate) unsafe fn raw_is_in_the_way(raw: u64) -> bool {
        let block = std::ptr::with_exposed_provenance_mut::<u64>(raw as usize);
        // By the contract it is an allocated block, never null.
        NonNull::new(block).is_some_and(Memory::is_in_the_way)
    }

    /// Has the processor fetch the first lines of the block that `raw` leads to. Harmless for any
    /// word.
    #[inline]
    pub(crate) fn prefetch(raw: u64) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let block = std::ptr::without_provenance::<i8>(raw as usize);
            for line in 0..FETCHED_LINES {
                // SAFETY: a prefetch reads nothing, whatever the address is.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(block.wrapping_add(line * 64)) };
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = raw;
    }

    /// The block is to be moved.
    pub(crate) fn is_in_the_way(self) -> bool {
        Memory::is_in_the_way(self.block)
    }

    /// A copy to take the place of the block, in a slab that is not to run empty.
    pub(crate) fn moved(self, memory: &Memory) -> OwnedLarge<'_> {
        let (suffix, value) = self.bytes.split_at(self.suffix_len);
        Memory::moving(self.block, || OwnedLarge::create(memory, suffix, value))
    }

    /// Bytes that it takes in the arena.
    pub(crate) fn arena_bytes(self) -> usize {
        Memory::size_of(self.block)
    }
}

/// A block that nobody else knows; freed on drop.
pub(crate) struct OwnedLarge<'a> {
    memory: &'a Memory,
    large: LargeRef<'a>,
}

impl<'a> OwnedLarge<'a> {
    /// Cost: copies suffix and value.
    pub(crate) fn create(memory: &'a Memory, suffix: &[u8], value: &[u8]) -> Self {
        let large = LargeRef::create(memory, suffix, value);
        Self { memory, large }
    }

    pub(crate) fn get(&self) -> LargeRef<'_> {
        self.large
    }

    /// An entry holds it now. Returns the bytes that it takes.
    #[inline]
    pub(crate) fn publish(self) -> usize {
        let bytes = self.large.arena_bytes();
        std::mem::forget(self);
        bytes
    }
}

impl Drop for OwnedLarge<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: never published, so that nobody else has it.
        unsafe { self.memory.free(self.large.block) };
    }
}
