//! Blocks too large for a slab: runs of pages in shared chunks, and single mappings.
//!
//! Up to [`RUN_MAX`] bytes, a block is a run of pages of a chunk (first fit), so that a million of
//! them do not need a million mappings. Larger ones have a mapping each, with a page for
//! the header. Pages go back to the system when the block is freed; memory handed out is zero.
//!
//! Locks: one, for the search of a run or the mapping of a chunk; pages are given back outside of
//! it.

use super::{
    charge::Charge,
    chunk::{CHUNK_BYTES, ChunkHeader, HEADER_BYTES, Kind, Owner, chunk_of, set_header},
    classes::PAGE,
};
use crate::mem::mapping::{Mapping, discard};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    ptr::NonNull,
    sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed},
};

/// Largest block that shares a chunk with others, in bytes.
pub(super) const RUN_MAX: usize = 1 << 20;
/// Pages of a chunk of runs.
const PAGES: usize = CHUNK_BYTES / PAGE;
/// Pages of its headers.
const HEADER_PAGES: usize = 1;
const _: () = assert!(HEADER_BYTES + size_of::<RunLengths>() <= HEADER_PAGES * PAGE);

/// Pages of the run that starts at each page; behind the chunk's header.
type RunLengths = [AtomicU32; PAGES];

/// See the module header.
#[derive(Default)]
pub(super) struct Large {
    state: Mutex<State>,
    /// Bytes of its allocated blocks.
    live: AtomicUsize,
}

#[derive(Default)]
struct State {
    /// `None`: was unmapped, its place can be used again.
    chunks: Vec<Option<RunChunk>>,
    /// Longest free run of each chunk, in pages; 0 for those that are not mapped.
    longest: Vec<u16>,
    /// By address.
    singles: HashMap<usize, Mapping>,
}

struct RunChunk {
    mapping: Mapping,
    pages: FreePages,
}

impl Large {
    /// Zeroed pages for `bytes`, which is a multiple of [`PAGE`].
    pub(super) fn take(&self, bytes: usize, charge: &Charge, owner: Owner) -> NonNull<u64> {
        self.live.fetch_add(bytes, Relaxed);
        if bytes <= RUN_MAX {
            self.take_run(bytes, charge, owner)
        } else {
            self.take_single(bytes, charge, owner)
        }
    }

    fn take_single(&self, bytes: usize, charge: &Charge, arena: Owner) -> NonNull<u64> {
        let mut mapping = Mapping::new(PAGE + bytes);
        set_header(
            &mut mapping,
            ChunkHeader {
                arena,
                kind: Kind::Single { bytes },
                slot: 0,
            },
        );
        charge.take(mapping.bytes());
        let base = mapping.base();
        self.state.lock().singles.insert(base.addr().get(), mapping);
        // SAFETY: the mapping is longer than a page.
        unsafe { base.add(PAGE).cast() }
    }

    fn take_run(&self, bytes: usize, charge: &Charge, owner: Owner) -> NonNull<u64> {
        let wanted = bytes / PAGE;
        let mut state = self.state.lock();
        let slot = state
            .longest
            .iter()
            .position(|&longest| usize::from(longest) >= wanted)
            .unwrap_or_else(|| state.map_chunk(charge, owner));
        let Some((first, base)) = state.change(slot, |chunk| {
            let first = chunk.pages.take(wanted)?;
            Some((first, chunk.mapping.base()))
        }) else {
            unreachable!("the chunk has a run of {wanted} pages");
        };
        // SAFETY: the chunk is mapped and not unmapped while this run is not free.
        let lengths = unsafe { run_lengths(base.cast()) };
        lengths[first].store(wanted as u32, Relaxed);
        drop(state);
        charge.take(bytes);
        // SAFETY: `first < PAGES`, so it is inside the chunk.
        unsafe { base.add(first * PAGE).cast() }
    }

    /// Takes `block` back.
    ///
    /// # Safety
    /// `block` is an allocated block of `kind` from this `Large` that nobody accesses any more.
    pub(super) unsafe fn give(&self, block: NonNull<u64>, kind: Kind, charge: &Charge) {
        // SAFETY: the caller's promise.
        let bytes = unsafe { block_bytes(block, kind) };
        self.live.fetch_sub(bytes, Relaxed);
        // SAFETY: the block is allocated, so its chunk is mapped.
        let header = unsafe { chunk_of(block) };
        if let Kind::Single { .. } = kind {
            let mapping = self.state.lock().singles.remove(&header.addr().get());
            if let Some(mapping) = mapping {
                charge.give(mapping.bytes());
            }
            return;
        }
        // SAFETY: the pages are the caller's until they are marked free below.
        unsafe { discard(block.cast(), bytes) };
        charge.give(bytes);
        let first = (block.addr().get() & (CHUNK_BYTES - 1)) / PAGE;
        // SAFETY: the run is not free yet, so its chunk is mapped, with a header.
        let slot = unsafe { header.as_ref() }.slot;
        let mut state = self.state.lock();
        state.change(slot, |chunk| chunk.pages.give(first, bytes / PAGE));
        let unmapped = state.unmap_if_spare(slot);
        drop(state);
        if unmapped.is_some() {
            charge.give(HEADER_PAGES * PAGE);
        }
    }

    #[cfg(test)]
    pub(super) fn live_bytes(&self) -> usize {
        self.live.load(Relaxed)
    }
}

impl State {
    fn map_chunk(&mut self, charge: &Charge, arena: Owner) -> usize {
        let slot = match self.chunks.iter().position(Option::is_none) {
            Some(slot) => slot,
            None => {
                self.chunks.push(None);
                self.longest.push(0);
                self.chunks.len() - 1
            }
        };
        let mut mapping = Mapping::new(CHUNK_BYTES);
        // A huge page would make pages resident that no run was charged for.
        mapping.advise_huge(false);
        set_header(
            &mut mapping,
            ChunkHeader {
                arena,
                kind: Kind::Runs,
                slot,
            },
        );
        charge.take(HEADER_PAGES * PAGE);
        self.chunks[slot] = Some(RunChunk {
            mapping,
            pages: FreePages::new(),
        });
        self.change(slot, |_| ());
        slot
    }

    /// Changes the free pages of a mapped chunk and notes its longest run.
    fn change<R>(&mut self, slot: usize, change: impl FnOnce(&mut RunChunk) -> R) -> R {
        let Some(chunk) = self.chunks[slot].as_mut() else {
            unreachable!("chunk {slot} is not mapped");
        };
        let result = change(chunk);
        self.longest[slot] = chunk.pages.longest();
        result
    }

    /// Unmaps chunk `slot` if it is empty and another one has room.
    fn unmap_if_spare(&mut self, slot: usize) -> Option<Mapping> {
        let empty = (PAGES - HEADER_PAGES) as u16;
        let spare = |(other, &longest): (usize, &u16)| other != slot && longest == empty;
        if self.longest[slot] != empty || !self.longest.iter().enumerate().any(spare) {
            return None;
        }
        self.longest[slot] = 0;
        self.chunks[slot].take().map(|chunk| chunk.mapping)
    }
}

/// Bytes of the large block at `block`, in a chunk of `kind`.
///
/// # Safety
/// `block` is an allocated block of such a chunk.
#[inline]
pub(super) unsafe fn block_bytes(block: NonNull<u64>, kind: Kind) -> usize {
    if let Kind::Single { bytes } = kind {
        return bytes;
    }
    let first = (block.addr().get() & (CHUNK_BYTES - 1)) / PAGE;
    // SAFETY: the block is allocated in a chunk of runs, so the chunk is mapped.
    let lengths = unsafe { run_lengths(chunk_of(block)) };
    lengths[first].load(Relaxed) as usize * PAGE
}

/// # Safety
/// `chunk` is a chunk of runs that stays mapped while the result is used.
unsafe fn run_lengths<'a>(chunk: NonNull<ChunkHeader>) -> &'a RunLengths {
    // SAFETY: the lengths follow the header in its page; zeroed memory is valid for them, and they
    // are accessed atomically.
    unsafe { chunk.add(1).cast::<RunLengths>().as_ref() }
}

/// Which pages of a chunk are free: bit `i % 64` of word `i / 64`.
struct FreePages([u64; PAGES / 64]);

impl FreePages {
    fn new() -> Self {
        let mut pages = Self([u64::MAX; PAGES / 64]);
        pages.set(0, HEADER_PAGES, false);
        pages
    }

    /// Free runs in ascending order, as first page and length.
    fn runs(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let first = self.next(at, true)?;
            at = self.next(first, false).unwrap_or(PAGES);
            Some((first, at - first))
        })
    }

    /// First page from `at` on that is free, or that is not.
    fn next(&self, at: usize, free: bool) -> Option<usize> {
        let mut at = at;
        while at < PAGES {
            let word = if free {
                self.0[at / 64]
            } else {
                !self.0[at / 64]
            };
            let rest = word >> (at % 64);
            if rest != 0 {
                return Some(at + rest.trailing_zeros() as usize);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    fn take(&mut self, wanted: usize) -> Option<usize> {
        let (first, _) = self.runs().find(|&(_, pages)| pages >= wanted)?;
        self.set(first, wanted, false);
        Some(first)
    }

    fn give(&mut self, first: usize, pages: usize) {
        debug_assert!(
            self.next(first, true)
                .is_none_or(|free| free >= first + pages),
            "run of {pages} pages freed twice"
        );
        self.set(first, pages, true);
    }

    fn longest(&self) -> u16 {
        self.runs()
            .map(|(_, pages)| pages as u16)
            .max()
            .unwrap_or(0)
    }

    fn set(&mut self, first: usize, pages: usize, free: bool) {
        for page in first..first + pages {
            let bit = 1 << (page % 64);
            if free {
                self.0[page / 64] |= bit;
            } else {
                self.0[page / 64] &= !bit;
            }
        }
    }
}
#[cfg(test)]
impl Large {
    /// What the tables say is charged.
    pub(super) fn expected_charge(&self) -> usize {
        let state = self.state.lock();
        let free = |c: &RunChunk| c.pages.runs().map(|(_, pages)| pages).sum::<usize>();
        let runs: usize = state
            .chunks
            .iter()
            .flatten()
            .map(|c| (PAGES - free(c)) * PAGE)
            .sum();
        runs + state.singles.values().map(Mapping::bytes).sum::<usize>()
    }
}
