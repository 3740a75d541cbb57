//! Scans.
//!
//! Keeps: I9, X's part: each leaf is read atomically, entries come in order, and every mounted range that was
//! met is reported, so that what is not in X is asked of Y.
//!
//! Threads: any; no latch is taken. The guard is entered for one leaf at a time.

#![forbid(unsafe_code)]

use super::{
    Art,
    leaf::stable::{LeafBuffer, StableLeaf},
    search::Spot,
};
use crate::{
    key::Key,
    x::{
        Chunk, ChunkEntry, Order, ScanLimits,
        bounds::{Below, Bounds, Probe, entries_within},
        chunk::Filling,
        form::{DIRTY, TOMBSTONE},
        patience::Patience,
    },
};

/// A scan under way.
struct Scan<'a> {
    filling: Filling<'a>,
    /// The bytes that the keys of the current leaf have before their suffixes.
    path: Vec<u8>,
    /// For a value's bytes.
    scratch: Vec<u8>,
}

/// Entry `i` of `leaf`; `path` is left as it was.
fn chunk_entry(
    path: &mut Vec<u8>,
    scratch: &mut Vec<u8>,
    leaf: StableLeaf<'_>,
    i: usize,
) -> ChunkEntry {
    let entry = leaf.entry(i);
    let depth = path.len();
    leaf.push_suffix(&entry, 0, path);
    let key = Key::new(path);
    path.truncate(depth);
    let value = (!entry.slot.is(TOMBSTONE)).then(|| leaf.value(&entry, scratch));
    let dirty = entry.slot.is(DIRTY);
    ChunkEntry { key, value, dirty }
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
        let Some(filling) = Filling::begin(from, to, order, limits, out) else {
            return;
        };
        let mut scan = Scan {
            filling,
            path: Vec::new(),
            scratch: Vec::new(),
        };
        let mut buffer = LeafBuffer::new();
        let mut at = match order {
            Order::Ascending => Some(from.to_vec()),
            Order::Descending => to.map(<[u8]>::to_vec),
        };
        loop {
            let (bounds, stop) = self.scan_range(&mut scan, at.as_deref(), &mut buffer);
            at = stop.or_else(|| match order {
                Order::Ascending => bounds.next(to),
                Order::Descending => Some(bounds.start).filter(|start| &start[..] > from),
            });
            if scan.filling.ends(&mut at) {
                return;
            }
        }
    }

    /// Adds the range at `at` (descending: just below it) to `scan`. Returns it, and where in it the chunk was full.
    fn scan_range(
        &self,
        scan: &mut Scan<'_>,
        at: Option<&[u8]>,
        buffer: &mut LeafBuffer,
    ) -> (Bounds, Option<Vec<u8>>) {
        let below;
        let probe = match (scan.filling.order, at) {
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
                let (from, to) = match scan.filling.order {
                    Order::Ascending => (at.unwrap_or_default(), scan.filling.to),
                    Order::Descending => (scan.filling.from, at),
                };
                match place.spot {
                    Spot::Leaf(seen) => {
                        if let Some(leaf) = seen.copy(buffer) {
                            let find = |suffix: &[u8]| leaf.find(suffix).unwrap_or_else(|i| i);
                            let n = leaf.len();
                            let within = entries_within(&bounds, place.depth, n, from, to, find);
                            probe.fill(place.depth, &mut scan.path);
                            let Scan {
                                filling,
                                path,
                                scratch,
                            } = scan;
                            let stop =
                                filling.leaf(within, |i| chunk_entry(path, scratch, leaf, i));
                            if leaf.state().mount.is_some() {
                                scan.filling.add_mounted(&bounds, from, to, stop.as_deref());
                            }
                            return (bounds, stop);
                        }
                    }
                    Spot::Empty(mount) | Spot::Gap { mount, .. } => {
                        scan.filling.empty();
                        if mount.is_some() {
                            scan.filling.add_mounted(&bounds, from, to, None);
                        }
                        return (bounds, None);
                    }
                }
            }
            patience.wait();
        }
    }
}
