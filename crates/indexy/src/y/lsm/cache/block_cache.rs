//! The block cache of a database: exact bytes, resizable.
//!
//! The engine's own cache keeps each block in an allocation of its own; with many reading threads
//! the allocator's arenas then held three to four times the cache's size (decision 0002, I7). Here
//! a shard owns one slab of small frames; a block is copied over a chain of them, and a hit copies
//! it out again (some 300 ns for 5 KiB, well below any read).
//!
//! Two queues a shard: *new* blocks pass through a short first-in-first-out queue, and stay only if
//! they are hit there; *kept* ones (and indexes and filters from the start) are evicted by second
//! chance. So cold data blocks do not push out the blocks that every read needs.
//!
//! Threads: any. Locks: one per shard, held for a copy. No I/O.

#![forbid(unsafe_code)]

use lsm_tree::Slice;
use parking_lot::Mutex;
use std::{
    collections::{HashMap, VecDeque},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

const SHARDS: usize = 16;
const FRAME_BYTES: usize = 1 << 10;
/// Frames for each block that can be held: blocks have about 5 KiB, some small ones are among them.
const FRAMES_PER_SLOT: usize = 3;
/// Upper bound of what a slot costs: itself, its entry of the map, its places in the queues.
const SLOT_BYTES: usize = 128;
/// What a frame costs in all.
const COST_PER_FRAME: usize = FRAME_BYTES + size_of::<u32>() + SLOT_BYTES.div_ceil(FRAMES_PER_SLOT);
/// Part of the frames that blocks pass through before they have proved useful.
const NEW_DIVISOR: usize = 8;
/// A block over this part of a shard is not kept.
const LARGEST_DIVISOR: usize = 8;
const NONE: u32 = u32::MAX;

/// A table and an offset in it.
pub(crate) type BlockKey = (u64, u64);

/// How a block is treated when it comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Worth {
    /// Has to prove itself.
    Unknown,
    /// Many reads need it.
    Shared,
}

/// See the module header.
pub(crate) struct BlockCache {
    shards: Vec<Mutex<Shard>>,
    bytes: AtomicUsize,
}

impl BlockCache {
    /// A cache that takes `bytes` bytes in all, bookkeeping included.
    pub(crate) fn new(bytes: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::new(Shard::new(bytes / SHARDS)));
        Self {
            shards: shards.collect(),
            bytes: AtomicUsize::new(bytes),
        }
    }

    /// Makes it `bytes` large; what it held is forgotten.
    pub(crate) fn resize(&self, bytes: usize) {
        self.bytes.store(bytes, Relaxed);
        for shard in &self.shards {
            // One after the other, and the old slab first, so that never both are held.
            let mut shard = shard.lock();
            *shard = Shard::new(0);
            *shard = Shard::new(bytes / SHARDS);
        }
    }

    /// Its size in bytes, bookkeeping included; it takes this much at most, from the first use on.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// A copy of a block.
    pub(crate) fn get(&self, key: BlockKey) -> Option<Slice> {
        self.shard(key).lock().get(key)
    }

    /// Whether a block is here. Does not count as a use.
    pub(crate) fn has(&self, key: BlockKey) -> bool {
        self.shard(key).lock().map.contains_key(&key)
    }

    /// Keeps a copy of a block, unless it is too large.
    pub(crate) fn insert(&self, key: BlockKey, block: &[u8], worth: Worth) {
        self.shard(key).lock().insert(key, block, worth);
    }

    fn shard(&self, (table, offset): BlockKey) -> &Mutex<Shard> {
        // Offsets step by some 5,000: multiply to spread them, take the upper bits.
        let mixed = (offset ^ table.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let i = (mixed >> 60) as usize;
        self.shards.get(i).unwrap_or_else(|| &self.shards[0])
    }
}
const _: () = assert!(SHARDS == 16, "a shard is chosen by four bits");

#[derive(Clone)]
struct Slot {
    key: BlockKey,
    first: u32,
    len: u32,
    used: bool,
    kept: bool,
}

struct Shard {
    slab: Vec<u8>,
    /// The next frame of a chain, or of the free list.
    next: Vec<u32>,
    free_frame: u32,
    free_frames: usize,
    slots: Vec<Slot>,
    free_slots: Vec<u32>,
    map: HashMap<BlockKey, u32>,
    new: VecDeque<u32>,
    kept: VecDeque<u32>,
    new_frames: usize,
}

impl Shard {
    fn new(bytes: usize) -> Self {
        let frames = bytes / COST_PER_FRAME;
        let slots = frames / FRAMES_PER_SLOT;
        Self {
            slab: vec![0; frames * FRAME_BYTES],
            next: (1..=frames as u32)
                .map(|n| if n as usize == frames { NONE } else { n })
                .collect(),
            free_frame: if frames == 0 { NONE } else { 0 },
            free_frames: frames,
            slots: Vec::with_capacity(slots),
            free_slots: Vec::with_capacity(slots),
            // Half of a slot's bytes are for the map; it must not grow beyond.
            map: HashMap::with_capacity(slots),
            new: VecDeque::with_capacity(slots),
            kept: VecDeque::with_capacity(slots),
            new_frames: 0,
        }
    }

    fn frames(&self) -> usize {
        self.next.len()
    }

    fn get(&mut self, key: BlockKey) -> Option<Slice> {
        let slot = self.slots.get_mut(*self.map.get(&key)? as usize)?;
        slot.used = true;
        let mut chain = Chain {
            slab: &self.slab,
            next: &self.next,
            frame: slot.first,
            within: 0,
        };
        Slice::from_reader(&mut chain, slot.len as usize).ok()
    }

    fn insert(&mut self, key: BlockKey, block: &[u8], worth: Worth) {
        let frames = block.len().div_ceil(FRAME_BYTES);
        if block.is_empty()
            || frames > self.frames() / LARGEST_DIVISOR
            || self.map.contains_key(&key)
            || !self.make_room(frames)
        {
            return;
        }
        let slot = Slot {
            key,
            first: self.store(block),
            len: block.len() as u32,
            used: false,
            kept: worth == Worth::Shared,
        };
        let index = match self.free_slots.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        self.map.insert(key, index);
        match worth {
            Worth::Shared => self.kept.push_back(index),
            Worth::Unknown => {
                self.new.push_back(index);
                self.new_frames += frames;
            }
        }
    }

    /// Copies `block` over free frames, of which there are enough; returns the first.
    fn store(&mut self, block: &[u8]) -> u32 {
        let first = self.free_frame;
        let mut last = first;
        for part in block.chunks(FRAME_BYTES) {
            let frame = self.free_frame as usize;
            let at = frame * FRAME_BYTES;
            self.slab[at..at + part.len()].copy_from_slice(part);
            last = self.free_frame;
            self.free_frame = self.next[frame];
            self.free_frames -= 1;
        }
        self.next[last as usize] = NONE;
        first
    }

    /// Evicts until `frames` frames and a slot are free.
    fn make_room(&mut self, frames: usize) -> bool {
        let slots = self.frames() / FRAMES_PER_SLOT;
        while self.free_frames < frames || self.map.len() >= slots {
            let enough_new = self.new_frames > self.frames() / NEW_DIVISOR;
            let evicted = if enough_new || self.kept.is_empty() {
                self.evict_new()
            } else {
                self.evict_kept()
            };
            if !evicted {
                return false;
            }
        }
        true
    }

    /// Takes the oldest new block: out, or over to the kept ones if it was used.
    fn evict_new(&mut self) -> bool {
        let Some(index) = self.new.pop_front() else {
            return false;
        };
        let slot = &mut self.slots[index as usize];
        self.new_frames -= (slot.len as usize).div_ceil(FRAME_BYTES);
        if slot.used {
            slot.used = false;
            slot.kept = true;
            self.kept.push_back(index);
        } else {
            self.free(index);
        }
        true
    }

    /// Second chance: each block used since the last round is passed over once.
    fn evict_kept(&mut self) -> bool {
        while let Some(index) = self.kept.pop_front() {
            let slot = &mut self.slots[index as usize];
            if !slot.used {
                self.free(index);
                return true;
            }
            slot.used = false;
            self.kept.push_back(index);
        }
        false
    }

    fn free(&mut self, index: u32) {
        let slot = self.slots[index as usize].clone();
        self.map.remove(&slot.key);
        let mut frame = slot.first;
        loop {
            let next = self.next[frame as usize];
            self.free_frames += 1;
            if next == NONE {
                break;
            }
            frame = next;
        }
        self.next[frame as usize] = self.free_frame;
        self.free_frame = slot.first;
        self.free_slots.push(index);
    }
}

/// Reads the bytes of a chain of frames.
struct Chain<'a> {
    slab: &'a [u8],
    next: &'a [u32],
    frame: u32,
    within: usize,
}

impl std::io::Read for Chain<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let at = self.frame as usize * FRAME_BYTES;
        let Some(bytes) = self.slab.get(at + self.within..at + FRAME_BYTES) else {
            return Ok(0);
        };
        let n = bytes.len().min(out.len());
        out[..n].copy_from_slice(&bytes[..n]);
        self.within += n;
        if self.within == FRAME_BYTES {
            self.within = 0;
            self.frame = self.next[self.frame as usize];
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    fn block(key: BlockKey, len: usize) -> Vec<u8> {
        let seed = key.0.wrapping_mul(31) ^ key.1;
        let byte = |i: usize| (seed as u8).wrapping_add((i / 7) as u8);
        (0..len).map(byte).collect()
    }

    #[test]
    fn a_hit_is_what_was_put_in() {
        let cache = BlockCache::new(1 << 20);
        let mut rng = StdRng::seed_from_u64(1);
        let (mut hits, mut lens) = (0, HashMap::new());
        for _ in 0..100_000 {
            let key = (rng.random_range(0..3), rng.random_range(0..300));
            if let Some(found) = cache.get(key) {
                assert_eq!(found[..], block(key, lens[&key])[..]);
                hits += 1;
            } else {
                let len = rng.random_range(1..9000);
                lens.insert(key, len);
                let worth = match rng.random_bool(0.2) {
                    true => Worth::Shared,
                    false => Worth::Unknown,
                };
                cache.insert(key, &block(key, len), worth);
            }
        }
        assert!(hits > 1000, "{hits}");
        for shard in &cache.shards {
            let mut shard = shard.lock();
            let held: usize = shard
                .map
                .values()
                .map(|&i| (shard.slots[i as usize].len as usize).div_ceil(FRAME_BYTES))
                .sum();
            assert_eq!(held + shard.free_frames, shard.frames());
            assert_eq!(shard.new.len() + shard.kept.len(), shard.map.len());
            // Everything can be evicted.
            let all = shard.frames();
            assert!(shard.make_room(all));
            assert!(shard.map.is_empty() && shard.free_frames == all);
        }
    }

    #[test]
    fn blocks_passing_through_do_not_push_out_shared_ones() {
        let cache = BlockCache::new(4 << 20);
        for i in 0..200 {
            cache.insert((1, i), &block((1, i), 4000), Worth::Shared);
        }
        for i in 0..20_000 {
            cache.insert((2, i), &block((2, i), 5000), Worth::Unknown);
            let again = i % 200;
            assert!(cache.get((1, again)).is_some(), "{again} after {i}");
        }
        // Blocks hit while new are kept.
        for i in 0..20_000 {
            cache.insert((3, i), &block((3, i), 5000), Worth::Unknown);
            if i >= 20 {
                let _ = cache.get((3, 10));
            }
        }
        assert!(cache.has((3, 10)));
    }

    #[test]
    fn too_large_and_no_room_at_all() {
        let cache = BlockCache::new(1 << 20);
        cache.insert((1, 1), &vec![1; 1 << 20], Worth::Shared);
        assert!(!cache.has((1, 1)));
        cache.resize(0);
        cache.insert((1, 1), &[1], Worth::Shared);
        assert!(!cache.has((1, 1)));
        cache.resize(1 << 20);
        cache.insert((1, 1), &[7; 3000], Worth::Unknown);
        assert_eq!(cache.get((1, 1)).as_deref(), Some(&[7; 3000][..]));
    }
}
