//! Scans, and the walk over leaf sizes.
//!
//! Keeps: I9, X's part: each leaf is read atomically, entries come in order, and every mounted range that was
//! met is reported, so that what is not in X is asked of Y.
//!
//! Threads: any; no latch is taken. The guard is entered for one leaf at a time.

#![forbid(unsafe_code)]

use super::{
    Art,
    leaf::{
        Measured,
        layout::{DIRTY, TOMBSTONE},
        stable::{LeafBuffer, StableLeaf},
    },
    search::{Patience, Probe, Spot},
    walk::{Below, Bounds, entries_within, first},
};
use crate::x::{Chunk, ChunkEntry, LeafInfo, Order, ScanLimits, StopWalk};
use std::ops::{ControlFlow, Range};

/// A scan under way.
struct Scan<'a> {
    from: &'a [u8],
    to: Option<&'a [u8]>,
    order: Order,
    out: &'a mut Chunk,
    bytes: usize,
    leaves: usize,
    /// The bytes that the keys of the current leaf have before their suffixes.
    path: Vec<u8>,
}

impl Scan<'_> {
    fn add_leaf(&mut self, leaf: StableLeaf<'_>, within: Range<usize>) {
        self.leaves += 1;
        match self.order {
            Order::Ascending => within.for_each(|i| self.add_entry(leaf, i)),
            Order::Descending => within.rev().for_each(|i| self.add_entry(leaf, i)),
        }
    }

    fn add_entry(&mut self, leaf: StableLeaf<'_>, i: usize) {
        let entry = leaf.entry(i);
        let mut key = Vec::with_capacity(self.path.len() + entry.suffix_len);
        key.extend_from_slice(&self.path);
        leaf.push_suffix(&entry, 0, &mut key);
        let value = (!entry.slot.is(TOMBSTONE)).then(|| {
            let mut value = Vec::with_capacity(entry.value_len);
            leaf.push_value(&entry, &mut value);
            value
        });
        self.bytes += key.len() + value.as_ref().map_or(0, Vec::len);
        let dirty = entry.slot.is(DIRTY);
        self.out.entries.push(ChunkEntry { key, value, dirty });
    }

    /// Notes that the part of `bounds` in `from..to` is mounted.
    fn add_mounted(&mut self, bounds: &Bounds, from: &[u8], to: Option<&[u8]>) {
        let start = from.max(&bounds.start[..]);
        let end = match (bounds.end.as_deref(), to) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if end.is_some_and(|end| end <= start) {
            return;
        }
        let end = end.map(<[u8]>::to_vec);
        match (self.out.mounted.last_mut(), self.order) {
            (Some(last), Order::Ascending) if last.1.as_deref() == Some(start) => last.1 = end,
            (Some(last), Order::Descending) if end.as_ref() == Some(&last.0) => {
                last.0 = start.to_vec();
            }
            _ => self.out.mounted.push((start.to_vec(), end)),
        }
    }
}

impl Art {
    /// See [`IndexX::scan`](crate::x::IndexX::scan).
    pub(super) fn collect(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        order: Order,
        limits: ScanLimits,
        out: &mut Chunk,
    ) {
        out.entries.clear();
        out.mounted.clear();
        out.resume = None;
        if to.is_some_and(|to| to <= from) {
            return;
        }
        let mut scan = Scan {
            from,
            to,
            order,
            out,
            bytes: 0,
            leaves: 0,
            path: Vec::new(),
        };
        let mut buffer = LeafBuffer::new();
        let mut at = match order {
            Order::Ascending => Some(from.to_vec()),
            Order::Descending => to.map(<[u8]>::to_vec),
        };
        loop {
            let bounds = self.scan_range(&mut scan, at.as_deref(), &mut buffer);
            at = match order {
                Order::Ascending => bounds.next(to),
                Order::Descending => Some(bounds.start).filter(|start| &start[..] > from),
            };
            let full = scan.bytes >= limits.bytes
                || scan.out.entries.len() >= limits.entries
                || scan.leaves >= limits.leaves;
            if at.is_none() || full {
                scan.out.resume = at;
                return;
            }
        }
    }

    /// Adds the range at `at` (descending: just below it) to `scan`.
    fn scan_range(
        &self,
        scan: &mut Scan<'_>,
        at: Option<&[u8]>,
        buffer: &mut LeafBuffer,
    ) -> Bounds {
        let below;
        let probe = match (scan.order, at) {
            (Order::Ascending, Some(at)) => Probe::at(at),
            _ => {
                below = Below::new(at);
                below.probe()
            }
        };
        let guard = self.memory.enter();
        let mut patience = Patience::default();
        loop {
            let place = self.descend(&guard, probe);
            if let Some(bounds) = place.bounds(probe) {
                let (from, to) = match scan.order {
                    Order::Ascending => (at.unwrap_or_default(), scan.to),
                    Order::Descending => (scan.from, at),
                };
                match place.spot {
                    Spot::Leaf(seen) => {
                        if let Some(leaf) = seen.copy(buffer) {
                            let find = |suffix: &[u8]| leaf.find(suffix).unwrap_or_else(|i| i);
                            let n = leaf.len();
                            let within = entries_within(&bounds, place.depth, n, from, to, find);
                            probe.fill(place.depth, &mut scan.path);
                            scan.add_leaf(leaf, within);
                            if leaf.state().mount.is_some() {
                                scan.add_mounted(&bounds, from, to);
                            }
                            return bounds;
                        }
                    }
                    Spot::Empty(mount) | Spot::Gap { mount, .. } => {
                        scan.leaves += 1;
                        if mount.is_some() {
                            scan.add_mounted(&bounds, from, to);
                        }
                        return bounds;
                    }
                }
            }
            patience.wait();
        }
    }

    /// See [`IndexX::leaves`](crate::x::IndexX::leaves).
    pub(super) fn visit_leaves(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        visit: &mut dyn FnMut(LeafInfo<'_>) -> ControlFlow<StopWalk>,
    ) -> ControlFlow<StopWalk> {
        let mut at = first(from, to);
        while let Some(key) = at {
            let (bounds, seen) = self.step(&key, |step| match step.place.spot {
                Spot::Leaf(leaf) => leaf.measure(),
                Spot::Empty(mount) | Spot::Gap { mount, .. } => {
                    let mounted = mount.is_some();
                    Some(Measured {
                        mounted,
                        ..Measured::default()
                    })
                }
            });
            if seen.keys > 0 || seen.bytes > 0 || seen.mounted {
                visit(LeafInfo {
                    start: &bounds.start,
                    keys: seen.keys,
                    dirty: seen.dirty,
                    bytes: seen.bytes,
                    mounted: seen.mounted,
                })?;
            }
            at = bounds.next(to);
        }
        ControlFlow::Continue(())
    }
}
