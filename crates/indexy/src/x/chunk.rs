//! Filling the chunk of a scan.
//!
//! Keeps: I9, X's part: every mounted range that was met is reported, so that what is not in X is
//! asked of Y.

#![forbid(unsafe_code)]

use super::{Chunk, ChunkEntry, MAX_TOMBSTONES, Order, ScanLimits, bounds::Bounds};
use crate::key::successor;

/// Of a mounted leaf so many times the entries are taken: Y would be asked again for the rest of
/// it.
const MOUNTED_TIMES: usize = 4;

/// A scan under way.
pub(crate) struct Filling<'a> {
    pub from: &'a [u8],
    pub to: Option<&'a [u8]>,
    pub order: Order,
    limits: ScanLimits,
    out: &'a mut Chunk,
    bytes: usize,
    live: usize,
    leaves: usize,
}

impl<'a> Filling<'a> {
    /// Empties `out`; `None` when there is nothing to scan.
    pub(crate) fn begin(
        from: &'a [u8],
        to: Option<&'a [u8]>,
        order: Order,
        limits: ScanLimits,
        out: &'a mut Chunk,
    ) -> Option<Self> {
        out.entries.clear();
        out.mounted.clear();
        (out.resume, out.passed) = (None, 0);
        to.is_none_or(|to| from < to).then_some(Self {
            from,
            to,
            order,
            limits,
            out,
            bytes: 0,
            live: 0,
            leaves: 0,
        })
    }

    /// How many live entries of a leaf fit: more where it is mounted.
    pub(crate) fn room(&self, mounted: bool) -> usize {
        let room = self.limits.entries.saturating_sub(self.live);
        match mounted {
            true => room.saturating_mul(MOUNTED_TIMES),
            false => room,
        }
    }

    /// The numbers in `mask`, in the order of the scan.
    pub(crate) fn in_order(&self, mask: u64) -> impl Iterator<Item = usize> + Clone + use<> {
        let (mut left, order) = (mask, self.order);
        std::iter::from_fn(move || {
            let i = match (left, order) {
                (0, _) => return None,
                (_, Order::Ascending) => left.trailing_zeros(),
                (_, Order::Descending) => 63 - left.leading_zeros(),
            };
            left &= !(1 << i);
            Some(i as usize)
        })
    }

    /// Calls `add` with the numbers of the entries in `mask`, in the order of the scan: what one
    /// more leaf has to show. Returns where it stopped, if the chunk was full before the last of
    /// them: ascending where to go on, descending the last key; and whether the leaf had all of
    /// this at one moment, as `add` and then `unchanged` say. If not, nothing was added.
    pub(crate) fn leaf(
        &mut self,
        mask: u64,
        mounted: bool,
        add: impl FnMut(usize) -> Option<ChunkEntry>,
        unchanged: impl FnOnce() -> bool,
    ) -> Option<Option<Vec<u8>>> {
        let before = (self.out.entries.len(), self.bytes, self.live);
        let stop = self.add_all(mask, mounted, add).filter(|_| unchanged());
        if stop.is_none() {
            self.out.entries.truncate(before.0);
            (self.bytes, self.live) = (before.1, before.2);
        } else {
            self.leaves += 1;
        }
        stop
    }

    /// As `leaf`; `None` when `add` gave up.
    fn add_all(
        &mut self,
        mask: u64,
        mounted: bool,
        mut add: impl FnMut(usize) -> Option<ChunkEntry>,
    ) -> Option<Option<Vec<u8>>> {
        let room = self.live.saturating_add(self.room(mounted));
        let n = mask.count_ones() as usize;
        self.out.entries.reserve(n.min(room - self.live));
        for (i, step) in self.in_order(mask).zip(1..) {
            let entry = add(i)?;
            self.live += usize::from(entry.value.is_some() || entry.operand);
            self.bytes += entry.key.len() + entry.value.as_ref().map_or(0, |v| v.len());
            let full = self.bytes >= self.limits.bytes || self.live >= room;
            let stop = (full && step < n).then(|| match self.order {
                Order::Ascending => successor(&entry.key),
                Order::Descending => entry.key.to_vec(),
            });
            self.out.entries.push(entry);
            if stop.is_some() {
                return Some(stop);
            }
        }
        Some(None)
    }

    /// Counts more ranges without anything to show.
    pub(crate) fn pass(&mut self, ranges: usize) {
        self.leaves += ranges;
        if self.out.entries.is_empty() {
            self.out.passed += ranges;
        }
    }

    /// Goes on at `at`. True when the scan is at its end or the chunk is full.
    pub(crate) fn ends(&mut self, at: &mut Option<Vec<u8>>) -> bool {
        let limits = &self.limits;
        let leaves = match self.out.mounted.is_empty() {
            true => limits.leaves,
            false => limits.leaves_if_mounted,
        };
        let full = self.bytes >= limits.bytes
            || self.live >= limits.entries
            || self.out.entries.len() >= limits.entries.saturating_add(MAX_TOMBSTONES)
            || self.leaves >= leaves;
        if at.is_none() || full {
            self.out.resume = at.take();
            return true;
        }
        false
    }

    /// Notes that the part of `bounds` in `from..to` is mounted, up to where `stop` (of
    /// [`Filling::leaf`]) says.
    pub(crate) fn add_mounted(
        &mut self,
        bounds: &Bounds,
        from: &[u8],
        to: Option<&[u8]>,
        stop: Option<&[u8]>,
    ) {
        let (from, to) = match (self.order, stop) {
            (_, None) => (from, to),
            (Order::Ascending, stop) => (from, stop),
            (Order::Descending, Some(stop)) => (stop, to),
        };
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
