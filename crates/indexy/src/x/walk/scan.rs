//! Scans.
//!
//! Keeps: I9, X's part: each leaf is read atomically, entries come in order, and every mounted
//! range that was met is reported, so that what is not in X is asked of Y. Where nothing is
//! mounted, tombstones are left out, and leaves that hold nothing else are passed side by side,
//! each looked at by its header.
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
        leaf::{Bit, LeafBuffer, LeafSeen, StableLeaf, mask},
        tree::{Descend, Place, Spot, Structure, Tree},
    },
};

/// A scan under way.
struct Scan<'a> {
    filling: Filling<'a>,
    /// The bytes that the keys of the current leaf have before their suffixes.
    path: Vec<u8>,
    buffer: LeafBuffer,
}

/// The part of the scan that starts (descending: ends) in one range.
#[derive(Clone, Copy)]
struct Part<'a> {
    probe: Probe<'a>,
    from: &'a [u8],
    to: Option<&'a [u8]>,
}

/// Entry `i` of `leaf`, whose keys start with `path`.
fn chunk_entry(path: &[u8], leaf: StableLeaf<'_>, i: usize) -> ChunkEntry {
    let entry = leaf.entry(i);
    let tombstone = leaf.has(i, Bit::Tombstone);
    ChunkEntry {
        key: Key::build(path.len() + entry.suffix_len, |key| {
            let (start, suffix) = key.split_at_mut(path.len());
            start.copy_from_slice(path);
            leaf.copy_suffix(&entry, suffix);
        }),
        value: (!tombstone).then(|| leaf.value(&entry)),
        dirty: leaf.has(i, Bit::Dirty),
    }
}

impl Scan<'_> {
    /// Adds the entries of `leaf`, whose suffixes start at `depth`. Returns where the chunk was
    /// full; `None` outside when the leaf changed.
    fn add_leaf(
        &mut self,
        part: Part<'_>,
        leaf: LeafSeen<'_>,
        depth: usize,
        bounds: &Bounds,
    ) -> Option<Option<Vec<u8>>> {
        let leaf = leaf.copy(&mut self.buffer)?;
        let within = mask(entries_of(leaf, bounds, depth, part.from, part.to));
        part.probe.fill(depth, &mut self.path);
        let path = &self.path[..];
        let add = |i| chunk_entry(path, leaf, i);
        if leaf.mount().is_none() {
            // Y is not asked: a tombstone hides nothing.
            let live = within & !leaf.bits(Bit::Tombstone);
            return Some(self.filling.leaf(live, false, add));
        }
        let stop = self.filling.leaf(within, true, add);
        self.filling
            .add_mounted(bounds, part.from, part.to, stop.as_deref());
        Some(stop)
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
            path: Vec::with_capacity(from.len()),
            buffer: LeafBuffer::new(),
        };
        let mut at = match order {
            Order::Ascending => self.scan_range(&mut scan, Some(from)),
            Order::Descending => self.scan_range(&mut scan, to),
        };
        while !scan.filling.ends(&mut at) {
            at = self.scan_range(&mut scan, at.as_deref());
        }
    }

    /// Adds the range at `at` (descending: just below it) to `scan`, and what is dead beside it.
    /// Returns where to go on.
    fn scan_range(&self, scan: &mut Scan<'_>, at: Option<&[u8]>) -> Option<Vec<u8>> {
        let (from, to, order) = (scan.filling.from, scan.filling.to, scan.filling.order);
        let below;
        let part = match (order, at) {
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
            if let Some((bounds, stop)) = scan.add_place::<S>(part, &place) {
                return stop.or_else(|| match order {
                    Order::Ascending => bounds.next(to),
                    Order::Descending => Some(bounds.start).filter(|start| &start[..] > from),
                });
            }
            backoff.wait();
        }
    }
}

impl Scan<'_> {
    /// Adds what is at `place`. Returns the bounds of what was passed, and where in it the chunk
    /// was full; `None` when something changed.
    fn add_place<'g, S: Structure>(
        &mut self,
        part: Part<'_>,
        place: &S::Place<'g>,
    ) -> Option<(Bounds, Option<Vec<u8>>)> {
        match place.spot()? {
            Spot::Empty(Some(_)) => {
                let bounds = place.bounds(part.probe)?;
                self.filling.pass(1);
                self.filling.add_mounted(&bounds, part.from, part.to, None);
                Some((bounds, None))
            }
            Spot::Leaf(leaf) if !leaf.is_dead()? => {
                leaf.leaf().prefetch_entries();
                place.fetch_beside(self.filling.order);
                let bounds = place.bounds(part.probe)?;
                let depth = leaf.leaf().depth();
                let stop = self.add_leaf(part, leaf, depth, &bounds)?;
                Some((bounds, stop))
            }
            _ => {
                let (bounds, ranges) = place.dead_row(part.probe, self.filling.order)?;
                self.filling.pass(ranges);
                Some((bounds, None))
            }
        }
    }
}
