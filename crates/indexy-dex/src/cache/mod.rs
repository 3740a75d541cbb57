//! The compute server's cache: frames, the mapping table, the cooling map, eviction.
//! Source: DEX section 5.
//!
//! A frame is free, hot or cooling. A hot frame other than the root's is swizzled: one hot inner
//! frame, its parent, holds its number. A cooling frame is clean, is in the mapping table and in
//! the cooling map, and nobody's child. So the hot frames are a tree with the root on top, and a
//! node is never hot below one that is not: the cache is path-aware.
//!
//! # Invariants
//! - C1: a frame's words change only under its latch, and a reader that saw an equal, unlocked
//!   version before and after saw one state.
//! - C2: a node is in one place: its frame in the mapping table, or an I/O mark there while one
//!   thread works on a copy, or the pool alone.
//! - C3: whoever holds an I/O mark holds a pin on the hot parent. A pinned frame is not cooled,
//!   split or merged, so the mark's holder can always find its way back, and no ancestor of a node
//!   that is being worked on leaves the cache.
//! - C4: a node that is not hot has no dirty descendant: a child is written back while its
//!   parent's latch is held, and a parent is cooled only when no child is swizzled. So what hangs
//!   below a missing node is complete in the pool, and a call may work on it.
//!
//! # Latches
//! Order: parent before child, then the cooling map's bucket, then the mapping table's shard.
//! Below a latch that is held, latches are only tried, but for a parent's hot child, which is
//! waited for from above. A frame is taken, and with it others cooled or evicted, before any latch.

mod cooling;
mod doubt;
mod evict;
mod frame;
mod latch;
mod mapping;
#[allow(unsafe_code, reason = "advice to the kernel")]
mod memory;

pub(crate) use evict::Taken;
pub(crate) use frame::{Frame, Pin, State, frame_of};
pub(crate) use latch::Latched;
pub(crate) use mapping::{IoMark, Place};

use crate::{
    address::Address,
    error::{Error, Result},
    node::{self, Image, TreeKey},
    random::Random,
};
use cooling::Cooling;
use mapping::Mapping;
use parking_lot::Mutex;
use std::{marker::PhantomData, sync::atomic::AtomicUsize};

/// The frame of the tree's root, which never leaves.
pub(crate) const ROOT: usize = 0;

pub(crate) struct Cache<K> {
    frames: Box<[Frame]>,
    free: Mutex<Vec<usize>>,
    mapping: Mapping,
    cooling: Cooling,
    random: Random,
    /// Frames that are in doubt.
    doubts: AtomicUsize,
    /// How nodes hold their keys.
    keys: PhantomData<fn() -> K>,
}

impl<K: TreeKey> Cache<K> {
    /// `frames` of 1 KiB, a tenth of them for cooling.
    pub(crate) fn new(frames: usize, seed: u64) -> Self {
        Self {
            frames: memory::frames(frames),
            free: Mutex::new((1..frames).rev().collect()),
            mapping: Mapping::default(),
            cooling: Cooling::new(frames / 10),
            random: Random::new(seed),
            doubts: AtomicUsize::new(0),
            keys: PhantomData,
        }
    }

    /// Puts the root into its frame.
    pub(crate) fn start(&self, image: &Image) -> Result<()> {
        let at = node::address(image);
        let at = at.ok_or_else(|| Error::corrupt(Address::new(0, 0), "the root has no address"))?;
        let root = &self.frames[ROOT];
        let mut latched = root.latch.lock();
        latched.changes();
        root.fill(image);
        root.set_state(State::Hot);
        self.mapping.insert(at, ROOT);
        Ok(())
    }

    #[inline]
    pub(crate) fn frame(&self, number: usize) -> &Frame {
        &self.frames[number]
    }

    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    pub(crate) fn random(&self) -> &Random {
        &self.random
    }
}
