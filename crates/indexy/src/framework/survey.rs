//! What the regions of a tree hold, measured no oftener than choosing needs.
//!
//! Measuring walks leaves, a cache miss or two each: with 100 MiB in X some 50 ms, and the releaser asks whenever it frees
//! a few MiB. So what was measured is kept, and measured anew is what a cut or a run went over since, and everything once
//! a quarter as many keys as X has were written or loaded. In between sizes are too small by what was added.
//! No invariant depends on them: they choose; who finds too little chosen asks for [`Precision::Exact`].
//!
//! A leaf counts for the region that it begins in. Regions are chosen so that a leaf begins with each; later X joins small leaves
//! over the bounds of regions, and what lies behind a bound counts for the region before. So who finds nothing where something
//! was counted has the regions chosen anew (`release.rs`, `transfer.rs`): else it would be looked for there for ever.
//!
//! Threads: releaser and cleaner, under the survey's own lock, which is taken last and held during the walk. A region's
//! `changed` is cleared before it is walked, so that what happens meanwhile has it walked again.

#![forbid(unsafe_code)]

use super::{counters, joined::Joined, regions::Table, transfer::RegionStats};
use crate::x::IndexX;
use std::{ops::ControlFlow, sync::Arc};

/// How fresh the numbers have to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    /// Within a quarter of X.
    Rough,
    /// As of now.
    Exact,
}

/// Everything is measured anew after this part of X's keys was written or loaded...
const CHANGED_PART: u64 = 4;
/// ...or if more than this part of the regions changed: one walk is cheaper than many.
const CHANGED_REGIONS_PART: usize = 2;

/// What was measured last.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// The regions that it is of.
    table: Option<Arc<Table>>,
    stats: Vec<RegionStats>,
    /// Writes and loads of the database when everything was measured.
    changes: u64,
}

impl Joined {
    /// Sizes of the regions and the table that they belong to. Cost: see the module header.
    pub(super) fn survey(&self, precision: Precision) -> (Arc<Table>, Vec<RegionStats>) {
        let mut survey = self.survey.lock();
        let table = self.regions.table();
        let all = precision == Precision::Exact || self.outdated(&survey, &table);
        if all {
            survey.changes = self.changes();
            (0..table.len()).for_each(|i| table.set_changed(i, false));
            survey.stats = self.region_stats(&table);
            survey.table = Some(Arc::clone(&table));
        } else {
            for i in 0..table.len() {
                if table.changed(i) {
                    table.set_changed(i, false);
                    survey.stats[i] = self.stats_of(&table, i);
                }
            }
        }
        (table, survey.stats.clone())
    }

    fn outdated(&self, survey: &Survey, table: &Arc<Table>) -> bool {
        if !survey.table.as_ref().is_some_and(|t| Arc::ptr_eq(t, table)) {
            return true;
        }
        let changed = (0..table.len()).filter(|&i| table.changed(i)).count();
        let since = self.changes().saturating_sub(survey.changes);
        changed * CHANGED_REGIONS_PART > table.len()
            || since * CHANGED_PART > self.x.stats().keys as u64
    }

    /// Keys written or loaded so far, in all trees.
    fn changes(&self) -> u64 {
        let counters = &self.shared.counters;
        counters.writes() + counters::read(&counters.misses)
    }

    /// Walks X once and sums its leaves by region. Cost: one visit per leaf, no I/O.
    fn region_stats(&self, table: &Table) -> Vec<RegionStats> {
        let mut stats = vec![RegionStats::default(); table.len()];
        let mut at = 0;
        let _ = self.x.leaves(&[], None, &mut |leaf| {
            while table.bounds(at).1.is_some_and(|end| leaf.start >= end) {
                at += 1;
            }
            stats[at].add(&leaf);
            ControlFlow::Continue(())
        });
        stats
    }

    /// The same for one region.
    pub(super) fn stats_of(&self, table: &Table, region: usize) -> RegionStats {
        let (from, to) = table.bounds(region);
        let mut stats = RegionStats::default();
        let _ = self.x.leaves(from, to, &mut |leaf| {
            // As in a walk over everything, a leaf belongs to where it starts.
            if leaf.start >= from {
                stats.add(&leaf);
            }
            ControlFlow::Continue(())
        });
        stats
    }
}
