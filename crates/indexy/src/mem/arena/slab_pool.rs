//! The pool: hands out whole slabs, and gives those that come back to the system.
//!
//! A slab that comes back joins a small *reserve*, which keeps its pages and stays charged to the
//! budget. Beyond it, the pages go back to the system and the charge with them (I7). A chunk
//! without slabs in use is unmapped, except one. Slabs are taken from the reserve first, then from
//! the lowest chunk that has one, so at most one chunk has slabs that were never used.
//!
//! Huge pages are asked for chunk by chunk, in large budgets only. The first slab of a chunk that
//! goes back ends that: the kernel would fill the hole with a huge page again, which nobody has
//! charged.
//!
//! Locks: one, for tens of nanoseconds, or for the mapping of a new chunk. Pages are
//! given back outside of it.

use super::{
    charge::Charge,
    chunk::{CHUNK_BYTES, ChunkHeader, Kind, Owner, set_header},
    slab::{Slab, headers_end},
};
use crate::mem::mapping::{Mapping, discard};
use parking_lot::Mutex;

/// A page of the system at least, for what the headers of a chunk occupy.
const HEADER_GRAIN: usize = 4 << 10;

/// See the module header.
pub(super) struct SlabPool {
    shift: u32,
    huge: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    reserve: Vec<Slab>,
    /// Slabs in reserve at most.
    most: usize,
    /// `None`: was unmapped, its place can be used again.
    chunks: Vec<Option<Chunk>>,
    /// No chunk before this one has a free slab.
    lowest: usize,
    /// A chunk all of whose slabs are free.
    spare: Option<usize>,
}

struct Chunk {
    mapping: Mapping,
    /// Bit `i`: slab `i` is free, and its memory zero.
    free: u128,
    huge: bool,
}

/// A slab that the caller alone has.
pub(super) struct Handed {
    pub(super) slab: Slab,
    pub(super) zeroed: bool,
}

impl SlabPool {
    /// Slabs of `1 << shift` bytes (16 KiB to 1 MiB), none of them kept in reserve; `huge`: in huge
    /// pages if the system has them.
    pub(super) fn new(shift: u32, huge: bool) -> Self {
        debug_assert!(CHUNK_BYTES >> shift <= 128);
        Self {
            shift,
            huge,
            state: Mutex::default(),
        }
    }

    pub(super) fn shift(&self) -> u32 {
        self.shift
    }

    /// From now on `most` slabs are kept in reserve; the others go back.
    pub(super) fn set_reserve(&self, most: usize, charge: &Charge) {
        let beyond = {
            let mut state = self.state.lock();
            state.most = most;
            let kept = state.reserve.len().min(most);
            state.reserve.split_off(kept)
        };
        beyond.into_iter().for_each(|slab| self.give(slab, charge));
    }

    /// Bytes charged for the headers of a chunk.
    pub(super) fn header_charge(&self) -> usize {
        headers_end(self.shift).next_multiple_of(HEADER_GRAIN)
    }

    /// Bytes charged for `slab`: its share of the chunk without headers.
    fn charge_of(&self, slab: Slab) -> usize {
        let bytes = 1 << self.shift;
        if slab.place().1 == 0 {
            bytes - self.header_charge()
        } else {
            bytes
        }
    }

    /// Slabs of an empty chunk, as bits. The first one shares its memory with the headers: it is
    /// used only if they leave it most of it.
    fn all_slabs(&self) -> u128 {
        let slabs = CHUNK_BYTES >> self.shift;
        let all = u128::MAX >> (128 - slabs);
        if headers_end(self.shift) * 4 > 1 << self.shift {
            all & !1
        } else {
            all
        }
    }

    /// A slab without blocks.
    pub(super) fn take(&self, charge: &Charge, owner: Owner) -> Handed {
        let mut state = self.state.lock();
        if let Some(slab) = state.reserve.pop() {
            return Handed {
                slab,
                zeroed: false,
            };
        }
        let slot = self.chunk_with_free(&mut state, charge, owner);
        let Some(chunk) = state.chunks[slot].as_mut() else {
            unreachable!("chunk_with_free returns a mapped chunk");
        };
        let index = chunk.free.trailing_zeros() as usize;
        chunk.free &= chunk.free - 1;
        // SAFETY: the chunk is mapped with headers for this shift; it is not unmapped while this
        // slab is not free.
        let slab = unsafe { Slab::new(chunk.mapping.base(), self.shift, index) };
        if state.spare == Some(slot) {
            state.spare = None;
        }
        drop(state);
        charge.take(self.charge_of(slab));
        Handed { slab, zeroed: true }
    }

    /// The lowest chunk that has a free slab; maps one if there is none.
    fn chunk_with_free(&self, state: &mut State, charge: &Charge, owner: Owner) -> usize {
        let has_free = |chunk: &Option<Chunk>| chunk.as_ref().is_some_and(|c| c.free != 0);
        let from = state.lowest.min(state.chunks.len());
        if let Some(found) = state.chunks[from..].iter().position(has_free) {
            state.lowest = from + found;
            return state.lowest;
        }
        let slot = match state.chunks.iter().position(Option::is_none) {
            Some(slot) => slot,
            None => {
                state.chunks.push(None);
                state.chunks.len() - 1
            }
        };
        state.chunks[slot] = Some(self.map_chunk(slot, owner));
        charge.take(self.header_charge());
        state.lowest = slot;
        slot
    }

    fn map_chunk(&self, slot: usize, arena: Owner) -> Chunk {
        let mut mapping = Mapping::new(CHUNK_BYTES);
        mapping.advise_huge(self.huge);
        set_header(
            &mut mapping,
            ChunkHeader {
                arena,
                kind: Kind::Slabs { shift: self.shift },
                slot,
            },
        );
        Chunk {
            mapping,
            free: self.all_slabs(),
            huge: self.huge,
        }
    }

    /// Takes back a slab that has no blocks and that the caller alone has.
    pub(super) fn give(&self, slab: Slab, charge: &Charge) {
        let (slot, index) = slab.place();
        {
            let mut state = self.state.lock();
            if state.reserve.len() < state.most {
                state.reserve.push(slab);
                return;
            }
            if let Some(chunk) = state.chunks[slot].as_mut().filter(|c| c.huge) {
                chunk.huge = false;
                chunk.mapping.advise_huge(false);
            }
        }
        let (_, bytes) = slab.extent(self.shift);
        // SAFETY: the slab's memory is inside its chunk, which is mapped while the slab is not
        // free; the caller alone has it.
        unsafe { discard(slab.memory(self.shift), bytes) };
        charge.give(self.charge_of(slab));

        let unmapped = {
            let mut state = self.state.lock();
            state.lowest = state.lowest.min(slot);
            self.mark_free(&mut state, slot, index)
        };
        if unmapped.is_some() {
            charge.give(self.header_charge());
        }
    }

    /// Marks a slab free; the mapping of a chunk that is not needed any more.
    fn mark_free(&self, state: &mut State, slot: usize, index: usize) -> Option<Mapping> {
        let chunk = state.chunks[slot].as_mut()?;
        chunk.free |= 1 << index;
        if chunk.free != self.all_slabs() {
            return None;
        }
        match state.spare {
            // Two are empty: keep the lower one.
            Some(other) => {
                let (keep, drop) = (other.min(slot), other.max(slot));
                state.spare = Some(keep);
                state.chunks[drop].take().map(|c| c.mapping)
            }
            None => {
                if self.huge && !chunk.huge {
                    chunk.huge = true;
                    chunk.mapping.advise_huge(true);
                }
                state.spare = Some(slot);
                None
            }
        }
    }
}
#[cfg(test)]
impl SlabPool {
    /// What the tables say is charged.
    pub(super) fn expected_charge(&self) -> usize {
        let state = self.state.lock();
        let slabs = CHUNK_BYTES >> self.shift;
        let mapped = state.chunks.iter().flatten();
        mapped
            .map(|chunk| {
                let used = |&i: &usize| (self.all_slabs() & !chunk.free) >> i & 1 == 1;
                // SAFETY: the chunk is mapped, and `i` is one of its slabs.
                let slab = |i| unsafe { Slab::new(chunk.mapping.base(), self.shift, i) };
                let bytes: usize = (0..slabs)
                    .filter(used)
                    .map(|i| self.charge_of(slab(i)))
                    .sum();
                bytes + self.header_charge()
            })
            .sum()
    }

    /// The most that may be charged when no block is allocated: the reserve, and the headers of its
    /// chunks and of the spare one.
    pub(super) fn resting_bytes(&self) -> usize {
        let most = self.state.lock().most;
        (most << self.shift) + (most + 1) * self.header_charge()
    }
}
