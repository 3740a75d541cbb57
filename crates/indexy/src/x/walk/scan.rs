//! Scans.
//!
//! Keeps: I9, X's part: each leaf is read atomically, entries come in order, and every mounted
//! range that was met is reported, so that what is not in X is asked of Y. Where nothing is
//! mounted, tombstones are left out. Ranges that hold nothing else are passed: a few by the descent
//! that comes to them, more of them side by side, each looked at by its header.
//!
//! A leaf is read in place and validated when all of it was read. If it changed meanwhile, what was
//! read is dropped, and the next turn reads a copy, which is made in a fraction of the time.
//!
//! Threads: any; no latch is taken. The guard is entered for one leaf at a time.

#![forbid(unsafe_code)]

use crate::{
    mem::Guard,
    x::{
        Chunk, ChunkEntry, Order, ScanLimits,
        backoff::Backoff,
        bounds::{Below, Bounds, Passed, Probe, entries_within},
        chunk::Filling,
        leaf::{Bit, LeafBuffer, LeafSeen, mask},
        tree::{Descend, Place, Spot, Structure, Tree},
    },
};

/// Of fewer entries than these the scan fetches each by itself; of more, all of the leaf.
const FEW: usize = 24;

/// Room for the paths of most leaves.
const PATH: usize = 32;

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

impl Scan<'_> {
    /// Adds the entries of `leaf`, whose suffixes start at `depth`; of its `copy`, if it has been
    /// made. Returns where the chunk was full; `None` outside when the leaf changed. Where the scan
    /// will come to its end, `go_on` is called.
    fn add_leaf(
        &mut self,
        part: Part<'_>,
        leaf: LeafSeen<'_>,
        again: bool,
        bounds: &Bounds,
        go_on: impl FnOnce(),
    ) -> Option<Option<Vec<u8>>> {
        let seen = leaf;
        // Who writes to the leaf all the time leaves enough for a copy, but not for more.
        let leaf = match again {
            true => seen.copy(&mut self.buffer)?.raw(),
            false => seen.leaf(),
        };
        let unchanged = || again || seen.unchanged();
        let depth = leaf.depth();
        let find = |suffix: &[u8]| match leaf.find(suffix, unchanged) {
            Some(Ok(i) | Err(i)) => i,
            // It changed; the end of this function finds it out, too.
            None => 0,
        };
        let within = mask(entries_within(
            bounds,
            depth,
            leaf.len(),
            part.from,
            part.to,
            find,
        ));
        part.probe.fill(depth, &mut self.path);
        let path = &self.path[..];
        let mounted = leaf.mount().is_some();
        let shown = match mounted {
            true => within,
            // Y is not asked: a tombstone hides nothing.
            false => within & !leaf.bits(Bit::Tombstone),
        };
        let room = self.filling.room(mounted);
        if shown.count_ones() as usize <= room {
            go_on();
        }
        if room < FEW && !again {
            leaf.prefetch(self.filling.in_order(shown).take(room));
        } else {
            leaf.prefetch_entries();
        }
        let add = |i| {
            let (key, value) = leaf.key_and_value(path, i, unchanged)?;
            let operand = leaf.has_bit(i, Bit::Tombstone) && !leaf.has_bit(i, Bit::InY);
            Some(ChunkEntry {
                key,
                value,
                operand,
                dirty: leaf.has_bit(i, Bit::Dirty),
            })
        };
        let stop = self.filling.leaf(shown, mounted, add, unchanged)?;
        if mounted {
            self.filling
                .add_mounted(bounds, part.from, part.to, stop.as_deref());
        }
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
            path: Vec::with_capacity(from.len().max(PATH)),
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
        let (mut backoff, mut again) = (Backoff::default(), false);
        loop {
            let (place, passed) = self.descend_past(&guard, part.probe, order);
            let end;
            let probe = passed.probe(part.probe);
            let part = match (passed.ranges, order) {
                (0, _) => part,
                (_, Order::Ascending) => Part {
                    probe,
                    from: &passed.bytes,
                    to,
                },
                (_, Order::Descending) => {
                    end = passed.end();
                    Part {
                        probe,
                        from,
                        to: end.as_deref(),
                    }
                }
            };
            scan.filling.pass(passed.ranges);
            if part.to.is_some_and(|to| to <= part.from) {
                return None;
            }
            if let Some((bounds, stop)) = scan.add_place::<S>(part, &place, again) {
                return stop.or_else(|| match order {
                    Order::Ascending => bounds.next(to),
                    Order::Descending => Some(bounds.start).filter(|start| &start[..] > from),
                });
            }
            again = true;
            backoff.wait();
        }
    }

    /// Goes down to `probe`, or past what is dead there; starts again as often as something changes
    /// on the way.
    fn descend_past<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        probe: Probe<'_>,
        order: Order,
    ) -> (S::Place<'g>, Passed) {
        let mut backoff = Backoff::default();
        loop {
            let mut passed = Passed::default();
            let place = S::try_descend_past(&self.root, guard, probe, order, &mut passed);
            if let Some(place) = place {
                return (place, passed);
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
        again: bool,
    ) -> Option<(Bounds, Option<Vec<u8>>)> {
        match place.spot()? {
            Spot::Empty(Some(_)) => {
                let bounds = place.bounds(part.probe)?;
                self.filling.pass(1);
                self.filling.add_mounted(&bounds, part.from, part.to, None);
                Some((bounds, None))
            }
            Spot::Leaf(leaf) if !leaf.is_dead()? => {
                let bounds = place.bounds(part.probe)?;
                let order = self.filling.order;
                let go_on = || place.fetch_beside(order);
                let stop = self.add_leaf(part, leaf, again, &bounds, go_on)?;
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
