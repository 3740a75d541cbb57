//! Scans.
//!
//! Keeps: I9, X's part: each leaf is read atomically, entries come in order, and every mounted
//! range that was met is reported, so that what is not in X is asked of Y.
//!
//! Threads: any; no latch is taken. The guard is entered for one leaf at a time.

#![forbid(unsafe_code)]

use super::step::entries_of;
use crate::{
    key::Key,
    x::{
        Chunk, ChunkEntry, Order, ScanLimits,
        backoff::Backoff,
        bounds::{Below, Bounds, Probe},
        chunk::Filling,
        leaf::{Bit, LeafBuffer, LeafFormat, LeafSeen, StableLeaf},
        tree::{Descend, Place, Spot, Tree},
    },
};

/// A scan under way.
struct Scan<'a> {
    filling: Filling<'a>,
    /// The bytes that the keys of the current leaf have before their suffixes.
    path: Vec<u8>,
    /// For a value's bytes.
    scratch: Vec<u8>,
    buffer: LeafBuffer,
}

/// The part of the scan that starts (descending: ends) in one range.
#[derive(Clone, Copy)]
struct Part<'a> {
    probe: Probe<'a>,
    from: &'a [u8],
    to: Option<&'a [u8]>,
}

/// Entry `i` of `leaf`; `path` is left as it was.
fn chunk_entry<F: LeafFormat>(
    path: &mut Vec<u8>,
    scratch: &mut Vec<u8>,
    leaf: StableLeaf<'_, F>,
    i: usize,
) -> ChunkEntry {
    let entry = leaf.entry(i);
    let depth = path.len();
    leaf.push_suffix(&entry, path);
    let key = Key::new(path);
    path.truncate(depth);
    let tombstone = leaf.has(i, &entry, Bit::Tombstone);
    let value = (!tombstone).then(|| leaf.value(&entry, scratch));
    let dirty = leaf.has(i, &entry, Bit::Dirty);
    ChunkEntry { key, value, dirty }
}

impl Scan<'_> {
    /// Adds the entries of `leaf`, whose suffixes start at `depth`. Returns where the chunk was
    /// full; `None` outside when the leaf changed.
    fn add_leaf<F: LeafFormat>(
        &mut self,
        part: Part<'_>,
        leaf: LeafSeen<'_, F>,
        depth: usize,
        bounds: &Bounds,
    ) -> Option<Option<Vec<u8>>> {
        let leaf = leaf.copy(&mut self.buffer)?;
        let (path, scratch) = (&mut self.path, &mut self.scratch);
        let within = entries_of(leaf, bounds, depth, part.from, part.to);
        part.probe.fill(depth, path);
        let stop = self
            .filling
            .leaf(within, |i| chunk_entry(path, scratch, leaf, i));
        if leaf.mount().is_some() {
            self.filling
                .add_mounted(bounds, part.from, part.to, stop.as_deref());
        }
        Some(stop)
    }

    /// Adds an empty range.
    fn add_empty(&mut self, part: Part<'_>, mounted: bool, bounds: &Bounds) {
        self.filling.empty();
        if mounted {
            self.filling.add_mounted(bounds, part.from, part.to, None);
        }
    }
}

impl<S: Descend> Tree<S> {
    /// See [`IndexX::scan`](crate::x::IndexX::scan).
    pub(super) fn collect(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        order: Order,
        limits: ScanLimits,
        out: &mut Chunk,
    ) {
        let Some(filling) = Filling::begin(from, to, order, limits, out) else {
            return;
        };
        let mut scan = Scan {
            filling,
            path: Vec::new(),
            scratch: Vec::new(),
            buffer: LeafBuffer::new(),
        };
        let mut at = match order {
            Order::Ascending => Some(from.to_vec()),
            Order::Descending => to.map(<[u8]>::to_vec),
        };
        loop {
            let (bounds, stop) = self.scan_range(&mut scan, at.as_deref());
            at = stop.or_else(|| match order {
                Order::Ascending => bounds.next(to),
                Order::Descending => Some(bounds.start).filter(|start| &start[..] > from),
            });
            if scan.filling.ends(&mut at) {
                return;
            }
        }
    }

    /// Adds the range at `at` (descending: just below it) to `scan`. Returns it, and where in it
    /// the chunk was full.
    fn scan_range(&self, scan: &mut Scan<'_>, at: Option<&[u8]>) -> (Bounds, Option<Vec<u8>>) {
        let (from, to) = (scan.filling.from, scan.filling.to);
        let below;
        let part = match (scan.filling.order, at) {
            (Order::Ascending, Some(at)) => Part {
                probe: Probe::at(at),
                from: at,
                to,
            },
            (_, at) => {
                below = Below::new(at);
                Part {
                    probe: below.probe(),
                    from,
                    to: at,
                }
            }
        };
        let guard = self.memory.enter();
        let mut backoff = Backoff::default();
        loop {
            let place = self.descend(&guard, part.probe);
            if let Some(bounds) = place.bounds(part.probe) {
                match place.spot() {
                    Some(Spot::Leaf(leaf)) => {
                        let depth = place.depth(leaf.leaf());
                        if let Some(stop) = scan.add_leaf(part, leaf, depth, &bounds) {
                            return (bounds, stop);
                        }
                    }
                    Some(Spot::Empty(mount)) => {
                        scan.add_empty(part, mount.is_some(), &bounds);
                        return (bounds, None);
                    }
                    None => {}
                }
            }
            backoff.wait();
        }
    }
}
