//! The epochs of snapshots, how a writer learns that one has begun, and a reader that images were
//! left.
//!
//! Keeps I10 with the leaf latch: a begin raises the watch and then reads; a writer latches and
//! then looks at the watch. Both have a sequentially consistent fence in between. So either the
//! writer sees the new watch, or every read of the new snapshot sees the latch, waits for it, and
//! finds the write. `tests/snapshot_model.rs` checks this and fails without either fence.
//!
//! A reader that found no image of a key, and read the newest value afterwards, has to know whether
//! an image came in between. Writers count their images once these are there and before the write
//! can be seen: so whoever sees the write and no image sees another count.
//!
//! Threads: any may look; the watch is set by one at a time (`pins.rs`).

use crate::sync::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};

/// The time of a snapshot, from 1 on.
pub(crate) type Epoch = u64;

/// See the module header.
#[derive(Debug)]
pub(crate) struct Clock {
    /// The newest open snapshot's epoch plus one; 0: none is open.
    watch: AtomicU64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            watch: AtomicU64::new(0),
        }
    }

    /// The watch as it is before a write. Cost: one load.
    #[inline]
    pub(crate) fn watch(&self) -> Epoch {
        self.watch.load(Acquire)
    }

    /// Whether a snapshot has begun since the watch was `seen`. The caller holds the latch of the
    /// leaf that it is about to change. Cost: one load; where taking a latch is no full barrier, a
    /// fence.
    #[inline]
    pub(crate) fn has_risen(&self, seen: Epoch) -> bool {
        // On x86-64 the latch was taken by a locked instruction, which is such a fence.
        if cfg!(any(loom, not(target_arch = "x86_64"))) {
            fence(SeqCst);
        }
        self.watch.load(Relaxed) > seen
    }

    /// A snapshot begins; its reads come after this.
    pub(crate) fn raise(&self, watch: Epoch) {
        self.watch.store(watch, Relaxed);
        fence(SeqCst);
    }

    /// Snapshots have ended.
    pub(crate) fn lower(&self, watch: Epoch) {
        self.watch.store(watch, Release);
    }
}

/// How many images were left in a tree; see the module header.
#[derive(Debug)]
pub(crate) struct Left(AtomicU64);

impl Left {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// An image is there; the write that it is for is not to be seen yet.
    #[inline]
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Release);
    }

    /// To be asked before a search for an image, and again after the newest value was read: if both
    /// are equal, no image was left between the search and the write that was read.
    #[inline]
    pub(crate) fn so_far(&self) -> u64 {
        // Acquire: pairs with the release in `count`; what was counted is found.
        self.0.load(Acquire)
    }
}
