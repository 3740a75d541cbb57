//! What the regions of a tree hold, measured no oftener than choosing needs.
//!
//! Measuring walks leaves, a cache miss or two each: with 100 MiB in X some 50 ms, and the releaser
//! asks whenever it frees a few MiB. So what was measured is kept. A region is measured again when
//! a cut or a run went over it, all of them once a quarter as many keys as X has were written or
//! loaded. In between sizes are too small by what was added.
//!
//! No invariant depends on the sizes: they choose. But they may be *stale*: a leaf counts for the
//! region that it begins in. Regions are chosen so that a leaf begins with each; later X joins
//! small leaves over the bounds of regions, and what lies behind a bound counts for the region
//! before. A run over the second region then leaves the count of the first as it was. So a caller
//! that finds nothing in what was measured asks for [`Precision::Exact`], and if there is nothing
//! either, has the regions chosen anew. Without that, what X holds could be looked for in the wrong
//! region for ever (`release/step.rs`, `clean/run.rs`).
//!
//! Threads: releaser and cleaner, under the survey's own lock, which is taken last and held during
//! the walk. A region's `changed` is cleared before it is walked, so that what happens meanwhile
//! has it walked again.

#![forbid(unsafe_code)]

use super::{Regions, table::Table};
use crate::x::{AnyX, IndexX, LeafInfo};
use parking_lot::Mutex;
use std::{ops::ControlFlow, sync::Arc};

/// How fresh the numbers have to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    /// Within a quarter of X.
    Rough,
    /// As of now.
    Exact,
}

/// Everything is measured anew after this part of X's keys was written or loaded...
const CHANGED_DIVISOR: u64 = 4;
/// ...or if more than this part of the regions changed: one walk is cheaper than many.
const CHANGED_REGIONS_DIVISOR: usize = 2;

/// What one region holds.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RegionStats {
    pub keys: u64,
    pub dirty: u64,
    /// Arena bytes.
    pub bytes: u64,
    pub leaves: u64,
}

impl RegionStats {
    /// Counts one leaf more.
    fn add(&mut self, leaf: &LeafInfo<'_>) {
        self.keys += leaf.keys as u64;
        self.dirty += leaf.dirty as u64;
        self.bytes += leaf.bytes as u64;
        self.leaves += 1;
    }

    /// Bytes that a cut would free now, roughly.
    pub(crate) fn clean_bytes(&self) -> u64 {
        self.part_of_bytes(self.keys.saturating_sub(self.dirty))
            .unwrap_or(self.bytes)
    }

    /// Arena bytes of what is dirty, roughly.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.part_of_bytes(self.dirty).unwrap_or(0)
    }

    /// Arena bytes of so many of its keys; `None` without keys.
    fn part_of_bytes(&self, keys: u64) -> Option<u64> {
        let product = u128::from(self.bytes) * u128::from(keys);
        product
            .checked_div(self.keys.into())
            .map(|part| part as u64)
    }

    /// Sums the leaves of one region.
    pub(crate) fn of(x: &AnyX, table: &Table, region: usize) -> Self {
        let (from, to) = table.bounds(region);
        let mut stats = Self::default();
        let _ = x.leaves(from, to, &mut |leaf| {
            // As in a walk over everything, a leaf belongs to where it starts.
            if leaf.start >= from {
                stats.add(&leaf);
            }
            ControlFlow::Continue(())
        });
        stats
    }

    /// Walks X once and sums its leaves by region. Cost: one visit per leaf, no I/O.
    fn of_all(x: &AnyX, table: &Table) -> Vec<Self> {
        let mut stats = vec![Self::default(); table.len()];
        let mut at = 0;
        let _ = x.leaves(&[], None, &mut |leaf| {
            while table.bounds(at).1.is_some_and(|end| leaf.start >= end) {
                at += 1;
            }
            stats[at].add(&leaf);
            ControlFlow::Continue(())
        });
        stats
    }
}

/// What was measured last.
#[derive(Debug, Default)]
pub(crate) struct Survey(Mutex<Measured>);

#[derive(Debug, Default)]
struct Measured {
    /// The regions that it is of.
    table: Option<Arc<Table>>,
    stats: Vec<RegionStats>,
    /// Keys changed in the database when everything was measured.
    changes: u64,
}

impl Survey {
    /// Sizes of the regions and the table that they belong to. `changes`: keys written or loaded so
    /// far, in all trees. Cost: see the module header.
    pub(crate) fn measure(
        &self,
        x: &AnyX,
        regions: &Regions,
        changes: u64,
        precision: Precision,
    ) -> (Arc<Table>, Vec<RegionStats>) {
        let mut measured = self.0.lock();
        let table = regions.table();
        if precision == Precision::Exact || measured.is_outdated(x, &table, changes) {
            measured.changes = changes;
            (0..table.len()).for_each(|i| table.set_changed(i, false));
            measured.stats = RegionStats::of_all(x, &table);
            measured.table = Some(Arc::clone(&table));
        } else {
            for i in 0..table.len() {
                if table.changed(i) {
                    table.set_changed(i, false);
                    measured.stats[i] = RegionStats::of(x, &table, i);
                }
            }
        }
        (table, measured.stats.clone())
    }
}

impl Measured {
    fn is_outdated(&self, x: &AnyX, table: &Arc<Table>, changes: u64) -> bool {
        if !self.table.as_ref().is_some_and(|t| Arc::ptr_eq(t, table)) {
            return true;
        }
        let changed = (0..table.len()).filter(|&i| table.changed(i)).count();
        let since = changes.saturating_sub(self.changes);
        changed * CHANGED_REGIONS_DIVISOR > table.len()
            || since * CHANGED_DIVISOR > x.stats().keys as u64
    }
}
