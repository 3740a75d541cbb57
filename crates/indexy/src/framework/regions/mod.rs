//! The regions of one tree: disjoint key ranges of about equal size that cover the key space.
//!
//! Source: IndeXY II-B (the list of monitored nodes, D and C bits) and II-C (access counters).
//! Differs: a region is a key range, so any X works
//! (`docs/decisions/0001-ranges-and-packed-leaves.md`).
//!
//! Threads: writers set D and sampled readers count, through an atomically swapped table; floors, C
//! bits and the table itself are changed only by the holder of the tree's run lock. No invariant
//! depends on D or on a count: they choose, X's entry bits decide (I2, I4). A floor does matter
//! (I6): nothing dirty in the region has an LSN below it. Not here: choosing what to clean
//! (`clean/check_back.rs`) or to release (`release/algorithm1.rs`).

#![forbid(unsafe_code)]

pub(crate) mod boundaries;
pub(crate) mod key_range;
pub(crate) mod sample;
pub(crate) mod survey;
mod table;

pub(crate) use table::{Table, Times};

use crate::wal::Lsn;
use arc_swap::ArcSwap;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

/// The regions of one tree.
#[derive(Debug)]
pub(crate) struct Regions {
    table: ArcSwap<Table>,
    /// Off until X first reaches the low watermark: until then nothing is counted (II-C).
    monitored: AtomicBool,
}

impl Regions {
    /// One region over everything, with nothing dirty below `floor`.
    pub(crate) fn new(floor: Lsn) -> Self {
        Self {
            table: ArcSwap::from_pointee(Table::new(vec![Box::default()], vec![floor])),
            monitored: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(crate) fn monitored(&self) -> bool {
        self.monitored.load(Relaxed)
    }

    pub(crate) fn table(&self) -> Arc<Table> {
        self.table.load_full()
    }

    /// A write of `key` was applied. Cost: one load until monitored, then a binary search and at
    /// most one store.
    #[inline]
    pub(crate) fn note_write(&self, key: &[u8]) {
        if self.monitored() {
            self.table.load().note_write(key);
        }
    }

    /// `n` sampled accesses to `key`, or from it on.
    #[inline]
    pub(crate) fn note_accesses(&self, key: &[u8], n: u32) {
        if self.monitored() {
            self.table.load().note_accesses(key, n, sample::now());
        }
    }

    /// Halves all access counts: the next release still sees the past, and the present counts more.
    pub(crate) fn decay(&self) {
        self.table.load().decay();
    }

    /// Replaces the boundaries and starts monitoring. The caller holds the tree's run lock.
    pub(crate) fn rebound(&self, starts: Vec<Box<[u8]>>) {
        let new = self.table().rebound(starts);
        self.table.store(Arc::new(new));
        self.monitored.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(keys: &[&[u8]]) -> Vec<Box<[u8]>> {
        keys.iter().map(|k| Box::from(*k)).collect()
    }

    #[test]
    fn accesses_are_shared_out_and_halved() {
        let regions = Regions::new(Lsn(0));
        regions.rebound(starts(&[b"", b"m"]));
        regions.note_accesses(b"a", 90);
        regions.note_accesses(b"x", 11);
        // The first region in three, and the last of these with the second one.
        regions.rebound(starts(&[b"", b"d", b"h"]));
        let table = regions.table();
        let counts = |table: &Table| {
            (0..table.len())
                .map(|i| table.accesses(i))
                .collect::<Vec<_>>()
        };
        assert_eq!(counts(&table), [30, 30, 30 + 11]);
        assert!(table.times(2).used > 0 && table.times(2).cut == 0);
        regions.decay();
        assert_eq!(counts(&table), [15, 15, 20]);
        regions.rebound(starts(&[b"", b"b", b"c", b"d", b"h"]));
        let all: u64 = counts(&regions.table()).iter().sum();
        assert_eq!(all, 50, "none is lost");
    }

    #[test]
    fn i6_rebound_keeps_the_lowest_floor_of_what_is_overlapped() {
        let regions = Regions::new(Lsn(5));
        regions.rebound(starts(&[b"", b"d", b"m", b"t"]));
        let table = regions.table();
        assert_eq!(table.min_floor(), Lsn(5));
        for (i, floor) in [10, 20, 30, 40].into_iter().enumerate() {
            table.raise_floor(i, Lsn(floor));
        }
        regions.rebound(starts(&[b"", b"a", b"d", b"p", b"u"]));
        let table = regions.table();
        let floors: Vec<u64> = (0..5).map(|i| table.floor(i).0).collect();
        assert_eq!(floors, [10, 10, 20, 30, 40]);
    }
}
