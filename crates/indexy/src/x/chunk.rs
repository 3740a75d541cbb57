//! Filling the chunk of a scan.
//!
//! Keeps: I9, X's part: every mounted range that was met is reported, so that what is not in X is
//! asked of Y.

#![forbid(unsafe_code)]

use super::{Chunk, ChunkEntry, MAX_TOMBSTONES, Order, ScanLimits, bounds::Bounds};
use crate::key::successor;

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

    /// Calls `add` with the numbers of the entries in `mask`, in the order of the scan: what one
    /// more leaf has to show. Returns where it stopped, if the chunk was full before the last of
    /// them: ascending where to go on, descending the last key. A `whole` leaf is ended by bytes
    /// alone (values may be large).
    pub(crate) fn leaf(
        &mut self,
        mask: u64,
        whole: bool,
        mut add: impl FnMut(usize) -> ChunkEntry,
    ) -> Option<Vec<u8>> {
        self.leaves += 1;
        let room = match whole {
            true => usize::MAX,
            false => self.limits.entries.saturating_sub(self.live),
        };
        let n = mask.count_ones() as usize;
        self.out.entries.reserve(n.min(room));
        let mut left = mask;
        for step in 1..=n {
            let i = match self.order {
                Order::Ascending => left.trailing_zeros(),
                Order::Descending => 63 - left.leading_zeros(),
            };
            left &= !(1 << i);
            let entry = add(i as usize);
            self.live += usize::from(entry.value.is_some());
            self.bytes += entry.key.len() + entry.value.as_ref().map_or(0, |v| v.len());
            let full = self.bytes >= self.limits.bytes || step >= room;
            let stop = (full && left != 0).then(|| match self.order {
                Order::Ascending => successor(&entry.key),
                Order::Descending => entry.key.to_vec(),
            });
            self.out.entries.push(entry);
            if stop.is_some() {
                return stop;
            }
        }
        None
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
        let full = self.bytes >= limits.bytes
            || self.live >= limits.entries
            || self.out.entries.len() >= limits.entries.saturating_add(MAX_TOMBSTONES)
            || self.leaves >= limits.leaves;
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
