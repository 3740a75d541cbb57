//! A table of regions: boundaries, and what is known of each region.
//!
//! Threads: any. Boundaries never change; cells are atomics, each a hint but for the floor (I6).

#![forbid(unsafe_code)]

use crate::{wal::Lsn, x::RunId};
use std::{
    ops::Range,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
};

/// State of one region.
#[derive(Debug, Default)]
pub(super) struct Cell {
    /// D: written since the pass that cleared it.
    dirty: AtomicBool,
    /// C: a candidate for cleaning since the last pass.
    candidate: AtomicBool,
    /// Cut or cleaned since its size was measured.
    changed: AtomicBool,
    /// Sampled accesses since the last release, decayed.
    accesses: AtomicU32,
    /// Nothing dirty in this region has an LSN below (I6).
    floor: AtomicU64,
    /// The run that cleaned it last. (Not the floor: without a log all floors are alike.)
    cleaned: AtomicU32,
    /// See [`Times`].
    used: AtomicU64,
    passed: AtomicU64,
    cut: AtomicU64,
}

/// When things happened to a region, in microseconds of the process.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times {
    /// The last sampled access. 0: none.
    pub used: u64,
    /// The hand of [`Release::Clock`](crate::Release::Clock) went over it.
    pub passed: u64,
    /// A release went over it. 0: none did.
    pub cut: u64,
}

/// A table of regions; immutable but for its cells.
#[derive(Debug)]
pub(crate) struct Table {
    /// First key of each region; the first is empty.
    starts: Vec<Box<[u8]>>,
    /// Bytes that all starts but the first share; `heads` begin after them.
    shared: usize,
    /// First eight bytes of each start after `shared`, big-endian.
    heads: Vec<u64>,
    cells: Vec<Cell>,
}

impl Table {
    /// `starts`: strictly ascending, the first one empty; `floors` beside them.
    pub(super) fn new(starts: Vec<Box<[u8]>>, floors: Vec<Lsn>) -> Self {
        debug_assert!(starts[0].is_empty() && starts.windows(2).all(|w| w[0] < w[1]));
        let shared = match (starts.get(1), starts.last()) {
            (Some(a), Some(b)) => a.iter().zip(b.iter()).take_while(|(x, y)| x == y).count(),
            _ => 0,
        };
        let heads = starts
            .iter()
            .map(|s| head(s.get(shared..).unwrap_or(&[])))
            .collect();
        let cells = floors
            .into_iter()
            .map(|floor| Cell {
                floor: AtomicU64::new(floor.0),
                dirty: AtomicBool::new(true),
                ..Cell::default()
            })
            .collect();
        Self {
            starts,
            shared,
            heads,
            cells,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Index of the region that `key` lies in. Cost: about log2(n) steps over one array of words.
    pub(crate) fn find(&self, key: &[u8]) -> usize {
        if self.cells.len() == 1 {
            return 0;
        }
        let prefix = &self.starts[1][..self.shared];
        let key_prefix = &key[..self.shared.min(key.len())];
        match key_prefix.cmp(prefix) {
            std::cmp::Ordering::Less => return 0,
            std::cmp::Ordering::Greater => return self.cells.len() - 1,
            std::cmp::Ordering::Equal => {}
        }
        let key_head = head(&key[self.shared..]);
        let from = 1 + self.heads[1..].partition_point(|&h| h < key_head);
        let ties = self.heads[from..]
            .iter()
            .take_while(|&&h| h == key_head)
            .count();
        from + self.starts[from..from + ties].partition_point(|s| **s <= *key) - 1
    }

    /// Bounds of region `i`: `[start, end)`.
    pub(crate) fn bounds(&self, i: usize) -> (&[u8], Option<&[u8]>) {
        (&self.starts[i], self.starts.get(i + 1).map(|s| &**s))
    }

    pub(crate) fn dirty(&self, i: usize) -> bool {
        self.cells[i].dirty.load(Relaxed)
    }

    pub(crate) fn set_dirty(&self, i: usize, dirty: bool) {
        self.cells[i].dirty.store(dirty, Relaxed);
    }

    pub(crate) fn candidate(&self, i: usize) -> bool {
        self.cells[i].candidate.load(Relaxed)
    }

    pub(crate) fn set_candidate(&self, i: usize, candidate: bool) {
        self.cells[i].candidate.store(candidate, Relaxed);
    }

    pub(crate) fn changed(&self, i: usize) -> bool {
        self.cells[i].changed.load(Relaxed)
    }

    /// A cut or a run went over region `i`, so that its measured size no longer holds; or it is
    /// measured now.
    pub(crate) fn set_changed(&self, i: usize, changed: bool) {
        // Not moved behind the walk that follows: it is walked under latches, which order it.
        self.cells[i].changed.store(changed, Relaxed);
    }

    pub(crate) fn accesses(&self, i: usize) -> u64 {
        u64::from(self.cells[i].accesses.load(Relaxed))
    }

    pub(crate) fn times(&self, i: usize) -> Times {
        let cell = &self.cells[i];
        Times {
            used: cell.used.load(Relaxed),
            passed: cell.passed.load(Relaxed),
            cut: cell.cut.load(Relaxed),
        }
    }

    pub(crate) fn set_passed(&self, i: usize, now: u64) {
        self.cells[i].passed.store(now, Relaxed);
    }

    pub(crate) fn set_cut(&self, i: usize, now: u64) {
        self.cells[i].cut.store(now, Relaxed);
    }

    pub(crate) fn floor(&self, i: usize) -> Lsn {
        Lsn(self.cells[i].floor.load(Relaxed))
    }

    /// The run that cleaned region `i` last, 0 for none.
    pub(crate) fn cleaned(&self, i: usize) -> RunId {
        self.cells[i].cleaned.load(Relaxed)
    }

    pub(crate) fn set_cleaned(&self, i: usize, run: RunId) {
        self.cells[i].cleaned.store(run, Relaxed);
    }

    /// I6: raised only by a sweep over the whole region that began when the log ended at `floor`.
    pub(crate) fn raise_floor(&self, i: usize, floor: Lsn) {
        self.cells[i].floor.fetch_max(floor.0, Relaxed);
    }

    /// Smallest floor of all regions.
    pub(crate) fn min_floor(&self) -> Lsn {
        self.cells
            .iter()
            .map(|c| Lsn(c.floor.load(Relaxed)))
            .min()
            .unwrap_or_default()
    }
}

impl Table {
    #[inline]
    pub(super) fn note_write(&self, key: &[u8]) {
        let cell = &self.cells[self.find(key)];
        if !cell.dirty.load(Relaxed) {
            cell.dirty.store(true, Relaxed);
        }
    }

    /// `n` sampled accesses to `key` at the moment `now`.
    #[inline]
    pub(crate) fn note_accesses(&self, key: &[u8], n: u32, now: u64) {
        let cell = &self.cells[self.find(key)];
        cell.accesses.fetch_add(n, Relaxed);
        cell.used.store(now, Relaxed);
    }

    pub(super) fn decay(&self) {
        for cell in &self.cells {
            // A count added between load and store is lost; it is a sample.
            let halved = cell.accesses.load(Relaxed) / 2;
            cell.accesses.store(halved, Relaxed);
        }
    }

    /// The same regions with other boundaries.
    ///
    /// Every new region starts with D set, with the lowest floor (I6), the oldest run and the
    /// oldest cut of those that it overlaps, and with the newest access. The accesses of an old
    /// region are shared out among those that overlap it.
    pub(super) fn rebound(&self, starts: Vec<Box<[u8]>>) -> Self {
        let overlapped: Vec<Range<usize>> = (0..starts.len())
            .map(|i| self.overlapped(&starts[i], starts.get(i + 1).map(|end| &**end)))
            .collect();
        let least = |old: &Range<usize>, of: &dyn Fn(&Cell) -> u64| {
            self.cells[old.clone()].iter().map(of).min().unwrap_or(0)
        };
        let floor = |old: &Range<usize>| Lsn(least(old, &|c| c.floor.load(Relaxed)));
        let new = Self::new(starts, overlapped.iter().map(floor).collect());
        let mut shares = vec![0; self.len()];
        for at in overlapped.iter().cloned().flatten() {
            shares[at] += 1;
        }
        for (cell, old) in new.cells.iter().zip(overlapped) {
            let accesses: u32 = old.clone().map(|at| self.take_share(at, &mut shares)).sum();
            cell.accesses.store(accesses, Relaxed);
            let cleaned = least(&old, &|c| u64::from(c.cleaned.load(Relaxed)));
            cell.cleaned.store(cleaned as RunId, Relaxed);
            cell.cut
                .store(least(&old, &|c| c.cut.load(Relaxed)), Relaxed);
            cell.passed
                .store(least(&old, &|c| c.passed.load(Relaxed)), Relaxed);
            let used = self.cells[old].iter().map(|c| c.used.load(Relaxed)).max();
            cell.used.store(used.unwrap_or(0), Relaxed);
        }
        new
    }

    /// The part of the accesses of region `at` that one of `shares[at]` takers gets, who is one
    /// less then.
    fn take_share(&self, at: usize, shares: &mut [u32]) -> u32 {
        let (cell, takers) = (&self.cells[at], &mut shares[at]);
        let left = cell.accesses.load(Relaxed);
        let share = left.checked_div(*takers).unwrap_or(left);
        *takers = takers.saturating_sub(1);
        cell.accesses.store(left - share, Relaxed);
        share
    }

    /// The regions that `[start, end)` overlaps.
    pub(crate) fn overlapped(&self, start: &[u8], end: Option<&[u8]>) -> Range<usize> {
        let first = self.find(start);
        let last = match end {
            // The region that the end lies in is overlapped unless it begins right there.
            Some(end) => match self.find(end) {
                at if *self.starts[at] == *end => at - 1,
                at => at,
            },
            None => self.len() - 1,
        };
        first..last.max(first) + 1
    }
}

fn head(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    let n = bytes.len().min(8);
    word[..n].copy_from_slice(&bytes[..n]);
    u64::from_be_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(keys: &[&[u8]]) -> Vec<Box<[u8]>> {
        keys.iter().map(|k| Box::from(*k)).collect()
    }

    #[test]
    fn find_agrees_with_a_linear_search() {
        let tables = [
            starts(&[b"", b"user:0001", b"user:0002", b"user:00021", b"user:1"]),
            starts(&[
                b"",
                b"a",
                b"a\0",
                b"a\0\0",
                b"b",
                b"\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            ]),
            starts(&[
                b"",
                b"prefix-aaaaaaaa-1",
                b"prefix-aaaaaaaa-2",
                b"prefix-aaaaaaaaa",
            ]),
            starts(&[b"", b"x"]),
        ];
        let keys: Vec<Vec<u8>> = tables
            .iter()
            .flatten()
            .flat_map(|s| {
                let s = s.to_vec();
                let mut longer = s.clone();
                longer.push(0);
                let mut shorter = s.clone();
                shorter.pop();
                let mut high = s.clone();
                high.extend([0xff; 12]);
                [s, longer, shorter, high]
            })
            .collect();
        for starts in tables {
            let floors = vec![Lsn(0); starts.len()];
            let table = Table::new(starts, floors);
            for key in &keys {
                let expected = table.starts.iter().rposition(|s| **s <= **key).unwrap();
                assert_eq!(table.find(key), expected, "{key:?} in {:?}", table.starts);
            }
        }
    }
}
