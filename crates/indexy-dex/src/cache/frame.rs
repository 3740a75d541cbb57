//! A frame: a node's words and what the cache knows of it.

use super::latch::Latch;
use crate::node::{self, Image, NODE_WORDS, SWIZZLED, TreeKey, View, Words};
use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
};

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Free = 0,
    Hot = 1,
    Cooling = 2,
}

#[repr(align(64))]
pub(crate) struct Frame {
    pub(crate) latch: Latch,
    /// Changes under the latch.
    state: AtomicU8,
    /// The words differ from the pool's. Changes under the latch.
    dirty: AtomicBool,
    /// A write of the words was sent, and its answer was lost. Changes under the latch.
    in_doubt: AtomicBool,
    /// Threads that work below. Rises under the latch, falls without it.
    pins: AtomicU32,
    /// The frame that this one is swizzled in. Changes under the parent's latch.
    parent: AtomicU32,
    words: [AtomicU64; NODE_WORDS],
}

impl Default for Frame {
    fn default() -> Self {
        Self {
            latch: Latch::default(),
            state: AtomicU8::new(State::Free as u8),
            dirty: AtomicBool::new(false),
            in_doubt: AtomicBool::new(false),
            pins: AtomicU32::new(0),
            parent: AtomicU32::new(0),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Frame {
    /// The node. Reads without the latch are validated; writes are made under it.
    #[inline]
    pub(crate) fn node(&self) -> View<'_> {
        View(&self.words)
    }

    pub(crate) fn state(&self) -> State {
        match self.state.load(Relaxed) {
            0 => State::Free,
            1 => State::Hot,
            _ => State::Cooling,
        }
    }

    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u8, Relaxed);
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty.load(Relaxed)
    }

    pub(crate) fn set_dirty(&self, dirty: bool) {
        self.dirty.store(dirty, Relaxed);
    }

    pub(crate) fn is_in_doubt(&self) -> bool {
        self.in_doubt.load(Relaxed)
    }

    /// Returns what it was. The caller holds the latch.
    pub(super) fn set_in_doubt(&self, in_doubt: bool) -> bool {
        self.in_doubt.swap(in_doubt, Relaxed)
    }

    pub(crate) fn parent(&self) -> usize {
        self.parent.load(Relaxed) as usize
    }

    pub(crate) fn set_parent(&self, parent: usize) {
        self.parent.store(parent as u32, Relaxed);
    }

    /// Acquire: what the last holder did below is seen.
    pub(crate) fn is_pinned(&self) -> bool {
        self.pins.load(Acquire) > 0
    }

    /// C3: keeps the frame where it is. The caller holds the latch.
    pub(crate) fn pin(&self) -> Pin<'_> {
        self.pins.fetch_add(1, AcqRel);
        Pin(self)
    }

    /// Replaces the node. The caller holds the latch and announced the change.
    pub(crate) fn fill(&self, image: &Image) {
        let mut node = self.node();
        for (i, word) in image.0.iter().enumerate() {
            node.set(i, *word);
        }
    }

    /// Frames of the children that are swizzled here.
    pub(crate) fn hot_children<K: TreeKey>(&self) -> impl Iterator<Item = usize> {
        let node = self.node();
        let slots = if node::level(&node) > 0 {
            K::count(&node) + 1
        } else {
            0
        };
        let words = (0..slots).map(move |slot| K::child(&node, slot));
        words.filter(|word| word & SWIZZLED != 0).map(frame_of)
    }
}

/// The frame that a swizzled word names.
#[inline]
pub(crate) fn frame_of(word: u64) -> usize {
    (word & !SWIZZLED) as usize
}

/// Holds a frame; see C3.
pub(crate) struct Pin<'a>(&'a Frame);

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.0.pins.fetch_sub(1, AcqRel);
    }
}
