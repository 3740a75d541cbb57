//! Cleaning in the model: when a pass is due, and what it takes. See
//! `framework/clean/cleaner.rs` in the library.

use super::{DIRTY, Memory, for_present};
use indexy::{Precleaning, replay};

impl Memory {
    /// One pass of pre-cleaning; goes on where memory is short.
    pub(super) fn pass(&mut self) {
        let written = self.cleaner.written - self.cleaner.last_written;
        let released = self.releases > self.cleaner.last_releases;
        self.cleaner.last_written = self.cleaner.written;
        self.cleaner.last_releases = self.releases;
        if !self.monitored || self.policy.precleaning == Precleaning::Off {
            return;
        }
        let cleaned = if self.policy.precleaning == Precleaning::Oldest {
            self.clean_oldest()
        } else {
            let run = replay::run_bytes(self.budget);
            let cursor = self.cleaner.cursor;
            let (regions, next) = self.table.check_back(&self.dirty_bytes(), cursor, run);
            self.cleaner.cursor = next;
            self.clean(&regions)
        };
        if released || self.live() >= self.low {
            self.keep_ahead(written.saturating_sub(cleaned));
        }
    }

    /// Cleans the oldest until half is clean, or `keys` are.
    pub(super) fn keep_ahead(&mut self, keys: u64) {
        let mut cleaned = 0;
        while cleaned < keys && self.dirty * 2 > self.keys {
            match self.clean_oldest() {
                0 => break,
                more => cleaned += more,
            }
        }
    }

    fn dirty_bytes(&self) -> Vec<u64> {
        let regions = self.regions.iter();
        regions
            .map(|r| r.dirty * self.settings.entry_bytes)
            .collect()
    }

    pub(super) fn clean_oldest(&mut self) -> u64 {
        let run = replay::run_bytes(self.budget);
        let regions = self.table.oldest(&self.dirty_bytes(), run);
        self.clean(&regions)
    }

    /// Cleans `regions` as one run; returns how many keys it wrote.
    fn clean(&mut self, regions: &[usize]) -> u64 {
        self.cleaner.runs += 1;
        let mut cleaned = 0;
        for &region in regions {
            let range = self.range(region);
            for_present(&mut self.state[range], |bits| {
                *bits &= !DIRTY;
                true
            });
            cleaned += std::mem::take(&mut self.regions[region].dirty);
            self.table.note_run(region, self.cleaner.runs);
        }
        self.dirty -= cleaned;
        cleaned
    }
}
