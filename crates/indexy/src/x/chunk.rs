//! Filling the chunk of a scan.
//!
//! Keeps: I9, X's part: every mounted range that was met is reported, so that what is not in X is
//! asked of Y.

#![forbid(unsafe_code)]

use super::{Chunk, ChunkEntry, Order, ScanLimits, bounds::Bounds};
use crate::key::successor;
use std::ops::Range;

/// A scan under way.
pub(crate) struct Filling<'a> {
    pub from: &'a [u8],
    pub to: Option<&'a [u8]>,
    pub order: Order,
    limits: ScanLimits,
    out: &'a mut Chunk,
    bytes: usize,
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
        out.resume = None;
        to.is_none_or(|to| from < to).then_some(Self {
            from,
            to,
            order,
            limits,
            out,
            bytes: 0,
            leaves: 0,
        })
    }

    /// Calls `add` with the numbers in `within`, in the order of the scan: entries of one more
    /// leaf. Returns where it stopped, if the chunk was full of bytes before the last of them
    /// (values may be large): ascending where to go on, descending the last key.
    pub(crate) fn leaf(
        &mut self,
        within: Range<usize>,
        mut add: impl FnMut(usize) -> ChunkEntry,
    ) -> Option<Vec<u8>> {
        self.leaves += 1;
        let n = within.len();
        for step in 0..n {
            let entry = add(match self.order {
                Order::Ascending => within.start + step,
                Order::Descending => within.end - 1 - step,
            });
            self.bytes += entry.key.len() + entry.value.as_ref().map_or(0, |v| v.len());
            let stop =
                (step + 1 < n && self.bytes >= self.limits.bytes).then(|| match self.order {
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

    /// Counts one more empty range.
    pub(crate) fn empty(&mut self) {
        self.leaves += 1;
    }

    /// Goes on at `at`. True when the scan is at its end or the chunk is full.
    pub(crate) fn ends(&mut self, at: &mut Option<Vec<u8>>) -> bool {
        let limits = &self.limits;
        let full = self.bytes >= limits.bytes
            || self.out.entries.len() >= limits.entries
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
