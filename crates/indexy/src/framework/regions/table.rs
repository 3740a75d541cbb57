//! A table of regions: boundaries, and what is known of each region.
//!
//! Threads: any. Boundaries never change; cells are atomics, each a hint but for the floor (I6).

#![forbid(unsafe_code)]

use crate::{wal::Lsn, x::RunId};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

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

    #[inline]
    pub(super) fn note_access(&self, key: &[u8]) {
        self.cells[self.find(key)].accesses.fetch_add(1, Relaxed);
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
    /// Every new region starts with D set, with the lowest floor (I6) and the oldest run of those
    /// that it overlaps, and with the highest of their access counts.
    pub(super) fn rebound(&self, starts: Vec<Box<[u8]>>) -> Self {
        let overlapped: Vec<&[Cell]> = (0..starts.len())
            .map(|i| self.overlapped(&starts[i], starts.get(i + 1).map(|end| &**end)))
            .collect();
        let floor = |cells: &&[Cell]| {
            let floors = cells.iter().map(|c| c.floor.load(Relaxed));
            Lsn(floors.min().unwrap_or(0))
        };
        let new = Self::new(starts, overlapped.iter().map(floor).collect());
        for (cell, old) in new.cells.iter().zip(overlapped) {
            let accesses = old.iter().map(|c| c.accesses.load(Relaxed)).max();
            let cleaned = old.iter().map(|c| c.cleaned.load(Relaxed)).min();
            cell.accesses.store(accesses.unwrap_or(0), Relaxed);
            cell.cleaned.store(cleaned.unwrap_or(0), Relaxed);
        }
        new
    }

    /// The regions that `[start, end)` overlaps.
    fn overlapped(&self, start: &[u8], end: Option<&[u8]>) -> &[Cell] {
        let first = self.find(start);
        let last = match end {
            // The region that the end lies in is overlapped unless it begins right there.
            Some(end) => match self.find(end) {
                at if *self.starts[at] == *end => at - 1,
                at => at,
            },
            None => self.len() - 1,
        };
        &self.cells[first..=last.max(first)]
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
