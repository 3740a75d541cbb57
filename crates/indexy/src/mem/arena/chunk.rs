//! Chunks: the address space that blocks are carved from, and how a block finds its owner.
//!
//! Every chunk starts at a multiple of [`CHUNK_BYTES`] with a [`ChunkHeader`], and every block
//! starts in the first `CHUNK_BYTES` of its chunk. So the header of any block is one mask away,
//! whatever its kind and the budget.
//!
//! | kind | bytes | behind the header |
//! |---|---|---|
//! | slabs | `CHUNK_BYTES` | slab headers, slabs (`slab.rs`, `slab_pool.rs`) |
//! | runs | `CHUNK_BYTES` | run lengths, pages (`large.rs`) |
//! | single | any | one block (`large.rs`) |
//!
//! A header is written once, before the first block of its chunk is handed out, and then only read.
//! Not here: who counts the bytes (`mod.rs`).

use crate::mem::mapping::{HUGE_PAGE_BYTES, Mapping};
use std::ptr::NonNull;

/// Alignment of every chunk, and the size of all but single ones: a huge page.
pub(crate) const CHUNK_BYTES: usize = HUGE_PAGE_BYTES;
/// Bytes of a [`ChunkHeader`].
pub(crate) const HEADER_BYTES: usize = 64;

/// What a chunk is divided into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Slabs of `1 << shift` bytes.
    Slabs { shift: u32 },
    /// Runs of pages.
    Runs,
    /// One block of so many bytes.
    Single { bytes: usize },
}

/// The arena that a chunk belongs to: `mod.rs` alone knows the type.
pub(crate) type Owner = *const ();

/// The start of a chunk.
#[repr(C, align(64))]
pub(crate) struct ChunkHeader {
    pub(crate) arena: Owner,
    pub(crate) kind: Kind,
    /// Which chunk of its kind it is, in the tables of its owner.
    pub(crate) slot: usize,
}
const _: () = assert!(size_of::<ChunkHeader>() == HEADER_BYTES);

/// The header of the chunk that `inside` points into the first [`CHUNK_BYTES`] of.
///
/// # Safety
/// `inside` was derived from the base of a mapped chunk with a header.
#[inline(always)]
pub(crate) unsafe fn chunk_of<T>(inside: NonNull<T>) -> NonNull<ChunkHeader> {
    let base = inside
        .as_ptr()
        .map_addr(|address| address & !(CHUNK_BYTES - 1))
        .cast();
    // SAFETY: the caller's pointer is inside a chunk, and no chunk is at address 0.
    unsafe { NonNull::new_unchecked(base) }
}

/// Writes the header of a new chunk, which nobody has a pointer into.
pub(crate) fn set_header(chunk: &mut Mapping, header: ChunkHeader) {
    // SAFETY: the mapping is at least a page, aligned, and exclusively borrowed.
    unsafe { chunk.base().cast::<ChunkHeader>().write(header) };
}
