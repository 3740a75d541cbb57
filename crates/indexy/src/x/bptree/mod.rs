//! Index X as a B+ tree in memory.
//!
//! Source: IndeXY II-A, III-A; IOMemTable (heads, hints, optimistic latches); decision 0004. Slotted leaves and
//! inner nodes of a size chosen at build time, with prefix truncation in each node, the shortest separators, a
//! leaf layout without slots for entries of one size, and out-of-line blocks for what is large.
//!
//! A node's range never changes: splits and joins make new nodes. So a reader that holds a node which is not obsolete
//! is in the right place, whatever happened above it, and no links between siblings are needed (they would have to be kept
//! right by every split, join and cut, under a third latch). The bounds of a range, the fence keys of the
//! literature, are not stored: they are the nearest separators on the way down, which whoever needs them has just passed.
//! Scans go down once per leaf, from the end of the range before, and hold nothing between two leaves.
//!
//! Keeps: I1 (`search.rs`), I2 and I4 (`clean.rs`, `cut.rs`), I3 (`put.rs`, and every place that takes a
//! `tick`), I8 (`put.rs`).
//!
//! Threads: any. Readers take no latch: they read versions, then words, and validate. Writers latch a leaf, or
//! a leaf and its parent, or a node and its parent, and wait for no latch while they hold one. Blocks that were
//! replaced are retired under the guard of `mem/`.
//!
//! | file | what |
//! |---|---|
//! | `heads` | normalized heads and hints |
//! | `inner/`, `leaf/`, `child`, `parent` | the blocks, what hangs on what, and all unsafe code |
//! | `search`, `path` | going down |
//! | `put`, `reshape` | writes and loads; growing and splitting |
//! | `merge`, `relocate` | giving memory back |
//! | `scan`, `clean`, `cut` | what the framework asks for |

#[cfg(test)]
mod bench;
mod child;
mod clean;
mod cut;
mod heads;
mod inner;
mod leaf;
mod merge;
mod parent;
mod path;
mod put;
mod relocate;
mod reshape;
mod scan;
mod search;
#[cfg(test)]
mod tests;
mod verify;

use crate::{
    mem::Memory,
    x::{
        Chunk, Cut, IndexX, LeafInfo, Load, Lookup, Order, Put, RunId, ScanLimits, Stamp, StopWalk,
        XStats,
        counts::{Counts, Delta},
        root::Root,
    },
};
use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

/// The tree. Dropping it frees all of its memory.
pub(crate) struct BPlus {
    root: Root,
    memory: Arc<Memory>,
    counts: Counts,
    /// The removal clock: the last stamp given out.
    clock: AtomicU64,
    tracking: AtomicBool,
}

impl BPlus {
    /// An empty tree whose whole range is mounted, or complete.
    pub(crate) fn new(memory: Arc<Memory>, mounted: bool) -> Self {
        let counts = Counts::default();
        counts.add(Delta {
            mounts: isize::from(mounted),
            ..Default::default()
        });
        Self {
            root: Root::new(mounted.then_some(0)),
            memory,
            counts,
            clock: AtomicU64::new(0),
            tracking: AtomicBool::new(false),
        }
    }

    /// A fresh stamp. I3: whoever takes it holds the latch of the range that gets it, so that the order of
    /// stamps of one range is the order of its removals.
    fn tick(&self) -> Stamp {
        self.clock.fetch_add(1, Relaxed) + 1
    }

    fn tracks(&self) -> bool {
        self.tracking.load(Relaxed)
    }
}

impl Drop for BPlus {
    fn drop(&mut self) {
        parent::free_all(&mut self.root, &self.memory);
    }
}

impl IndexX for BPlus {
    #[inline]
    fn get<R>(&self, key: &[u8], found: impl FnOnce(&[u8]) -> R) -> Lookup<R> {
        self.search(key, found)
    }

    #[inline]
    fn put<E>(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<Put, E> {
        self.write(key, value, commit)
    }

    fn load(&self, key: &[u8], value: &[u8], stamp: Stamp) -> Load {
        self.install(key, value, stamp)
    }

    fn evict(&self, key: &[u8]) {
        self.evict_key(key);
    }

    fn scan(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        order: Order,
        limits: ScanLimits,
        out: &mut Chunk,
    ) {
        self.collect(from, to, order, limits, out);
    }

    fn clean(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        run: RunId,
        sink: &mut crate::x::CleanSink<'_>,
    ) -> ControlFlow<StopWalk> {
        self.copy_dirty(from, to, run, sink)
    }

    fn redirty(&self, from: &[u8], to: Option<&[u8]>, run: RunId) {
        self.mark_dirty(from, to, run);
    }

    fn settle(&self, from: &[u8], to: Option<&[u8]>, acked: RunId) {
        self.purge_tombstones(from, to, acked);
    }

    fn cut(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        acked: RunId,
        spare_referenced: bool,
        enough_bytes: usize,
    ) -> Cut {
        self.cut_range(from, to, acked, spare_referenced, enough_bytes)
    }

    fn clear_mounts(&self, from: &[u8], to: Option<&[u8]>) {
        self.complete(from, to);
    }

    fn leaves(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        visit: &mut dyn FnMut(LeafInfo<'_>) -> ControlFlow<StopWalk>,
    ) -> ControlFlow<StopWalk> {
        self.visit_leaves(from, to, visit)
    }

    fn relocate(&self) {
        self.leave_emptying_slabs();
    }

    fn track_references(&self, on: bool) {
        self.tracking.store(on, Relaxed);
    }

    fn stats(&self) -> XStats {
        self.counts.sum()
    }

    fn verify(&self, quiescent: bool) -> Result<(), String> {
        self.check(quiescent)
    }
}
