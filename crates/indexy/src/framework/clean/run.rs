//! Writing dirty regions to Index Y: one sorted run at a time.
//!
//! Source: IndeXY II-B. Differs: nothing is locked while a region is cleaned; entries are copied
//! leaf by leaf under the leaf's latch and stay in X until Y has acknowledged them (I2, I4). A run
//! streams from X into Y, so that the transfer buffer is one leaf, however long the run.
//!
//! Keeps: I2 (marks at the copy, never at the acknowledgement; a failure re-dirties), I5 (the log
//! is durable before Y publishes), I6 (floors are raised to where the log ended when the run
//! began).
//!
//! Threads: any; the run lock makes runs of one tree serial. It is held across the I/O of Y;
//! neither readers nor writers of X need it. Not here: which regions (`check_back.rs`), when
//! (`cleaner.rs`).

#![forbid(unsafe_code)]

use super::{check_back, sizes};
use crate::{
    error::{Error, Result},
    events,
    framework::{
        counters,
        disk_writer::Runs,
        expiry,
        regions::{
            Table, boundaries,
            key_range::{self, EVERYTHING, KeyRange},
            survey::{Precision, RegionStats},
        },
        spill::RunLock,
        tree::Joined,
    },
    wal::Lsn,
    x::{IndexX, RunId},
    y::{Maintained, RunEntry, RunSource},
};
use std::{ops::ControlFlow, sync::Arc, time::Instant};

/// Which regions to clean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pick {
    /// Everything dirty, run by run.
    All,
    /// One check-back pass; what it selects, and if that is nothing, nothing.
    CheckBack,
    /// The oldest dirty regions, as much as makes a run.
    Oldest,
    /// Every region that may hold something dirty below this LSN, run by run.
    Below(Lsn),
}

/// What a run wrote.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    pub keys: u64,
    /// Key and value bytes.
    pub bytes: u64,
}

/// Regions to write, and what comes behind them.
struct Picked {
    table: Arc<Table>,
    /// Ascending.
    regions: Vec<usize>,
    /// The region to go on with, where one run is not all.
    next: Option<usize>,
}

impl Joined {
    /// Cleans what `pick` says: one run, or as many as [`Pick::All`] and [`Pick::Below`] take.
    /// Waits for a run in flight. An error of Y leaves everything that it did not take dirty.
    pub(crate) fn write_back(&self, pick: Pick) -> Result<Written> {
        if matches!(pick, Pick::All | Pick::Below(_)) {
            return self.write_stretches(pick, EVERYTHING);
        }
        let mut runs = self.writer.lock();
        if self.discarded() {
            return Ok(Written::default());
        }
        let written = self.write_picked(pick, EVERYTHING, &[], &mut runs)?.0;
        if pick != Pick::Oldest || written.keys > 0 || self.x.stats().dirty == 0 {
            return Ok(written);
        }
        // Something is dirty, and not where it was counted: see `regions/survey.rs`.
        self.rechoose_regions();
        Ok(self.write_picked(pick, EVERYTHING, &[], &mut runs)?.0)
    }

    /// Cleans the keys of `[from, to)`, run by run. What is written into it meanwhile may stay
    /// dirty. Errors and waits: those of [`Joined::write_back`].
    pub(crate) fn write_back_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<Written> {
        self.write_stretches(Pick::All, (from, to))
    }

    /// All of what `pick` says of the keys of `within`, run by run in the order of keys.
    ///
    /// One run of everything would be in flight for as long as it takes to write, and writers wait
    /// for memory only so long. Between two runs the lock is given back: what was written is cut.
    fn write_stretches(&self, pick: Pick, within: KeyRange<'_>) -> Result<Written> {
        let mut all = Written::default();
        let mut next: Option<Box<[u8]>> = Some(Box::from(within.0));
        while let Some(from) = next {
            let mut runs = self.writer.lock();
            if self.discarded() {
                break;
            }
            let (written, behind) = self.write_picked(pick, within, &from, &mut runs)?;
            all.keys += written.keys;
            all.bytes += written.bytes;
            next = behind;
        }
        Ok(all)
    }

    /// What `pick` says of the keys from `from` up to `to`, the regions that it is of, and where to
    /// go on. The caller holds the run lock.
    ///
    /// Where keys are appended, one region takes all that is written, and may become a good part of
    /// X before the releaser finds a moment between two runs to choose regions anew. Writers would
    /// wait for a run of all of it, so the regions that a run is to take are measured. Cost: a walk
    /// over what is about to be written.
    fn pick_bounded(&self, pick: Pick, (from, to): KeyRange<'_>, runs: &mut Runs) -> Picked {
        let picked = self.pick(pick, (from, to), runs);
        let too_large = boundaries::oversize_bytes(self.shared.budget.limit()) as u64;
        // A single leaf with large values is as small as regions get.
        let oversize = |i: &usize| {
            let stats = RegionStats::of(&self.x, &picked.table, *i);
            stats.bytes > too_large && stats.leaves > 1
        };
        if !picked.regions.iter().any(oversize) {
            return picked;
        }
        self.rechoose_regions();
        self.pick(pick, (from, to), runs)
    }

    /// One run of what `pick` says of the keys of `within` from `from` on; also says where the next
    /// one starts.
    fn write_picked(
        &self,
        pick: Pick,
        within: KeyRange<'_>,
        from: &[u8],
        runs: &mut Runs,
    ) -> Result<(Written, Option<Box<[u8]>>)> {
        let Picked {
            table,
            regions: selected,
            next,
        } = self.pick_bounded(pick, (from, within.1), runs);
        let next = next.map(|i| Box::from(table.bounds(i).0));
        if selected.is_empty() {
            return Ok((Written::default(), next));
        }
        let (written, stopped) = self.write_regions(&table, &selected, within, runs)?;
        let next = stopped.map(Vec::into_boxed_slice).or(next);
        let counters = &self.shared.counters;
        match pick {
            Pick::CheckBack => counters::add(&counters.cleaned_by_check_back, written.keys),
            Pick::Oldest => counters::add(&counters.cleaned_by_age, written.keys),
            Pick::Below(_) => counters::add(&counters.cleaned_for_log, written.keys),
            Pick::All => {}
        }
        Ok((written, next))
    }

    /// Writes what regions have of the keys of `within`, with which each of them overlaps, as one
    /// run. The caller holds the run lock. Also says where it stopped, if memory was short.
    ///
    /// I6: the floor of a region stays that is written in part.
    pub(in crate::framework) fn write_regions(
        &self,
        table: &Table,
        selected: &[usize],
        within: KeyRange<'_>,
        runs: &mut Runs,
    ) -> Result<(Written, Option<Vec<u8>>)> {
        let bounds = |i: &usize| table.bounds(*i);
        let floor = self.shared.log.floor();
        // I6: after the floor was read. Operands that come later are logged above it.
        let parts = selected.iter().map(|i| key_range::part(within, bounds(i)));
        let resolved = self.resolve_operands(&join_neighbours(parts))?;
        let within = resolved.within(within);
        let behind = |i: &&usize| within.1.is_some_and(|to| bounds(i).0 >= to);
        let selected: Vec<usize> = selected.iter().filter(|i| !behind(i)).copied().collect();
        let in_whole = |i: &&usize| resolved.all && key_range::contains(within, bounds(i));
        let whole: Vec<usize> = selected.iter().filter(in_whole).copied().collect();
        for &i in &whole {
            table.set_dirty(i, false);
            table.set_candidate(i, false);
        }
        let run = runs.begin();
        let parts = selected.iter().map(|i| key_range::part(within, bounds(i)));
        let ranges = join_neighbours(parts);
        let mut source = CleaningRun {
            joined: self,
            ranges: &ranges,
            run,
            written: Written::default(),
        };
        let from = Instant::now();
        let result = self.writer.write_run(&mut source);
        let written = source.written;
        if result.is_err() {
            for (from, to) in &ranges {
                self.x.redirty(from, *to, run);
            }
            selected.iter().for_each(|&i| table.set_dirty(i, true));
        }
        self.writer.settle(run);
        selected.iter().for_each(|&i| table.set_changed(i, true));
        result?;
        for (from, to) in &ranges {
            self.x.settle(from, *to, run);
        }
        for &i in &whole {
            table.raise_floor(i, floor);
            table.set_cleaned(i, run);
        }
        if let Some(expiry) = &self.expiry {
            expiry.wrote(written.bytes);
        }
        events::run_written(self.id, written.keys, written.bytes, from.elapsed());
        let counters = &self.shared.counters;
        counters::add(&counters.cleaned_keys, written.keys);
        counters::add(&counters.cleaned_bytes, written.bytes);
        counters::add(&counters.runs, u64::from(written.keys > 0));
        self.shared.wake_compactor.notify();
        Ok((written, resolved.up_to))
    }

    /// Makes values of the operands of `ranges`, as far as memory goes.
    fn resolve_operands(&self, ranges: &[KeyRange<'_>]) -> Result<Resolved> {
        if !self.shared.log.may_resolve() {
            let all = !ranges.iter().any(|range| self.has_operand(*range));
            return Ok(Resolved { all, up_to: None });
        }
        let mut allowance = self.allowance();
        for range in ranges {
            let up_to = self.resolve_patiently(*range, &mut allowance)?;
            if up_to.is_some() {
                return Ok(Resolved { all: true, up_to });
            }
        }
        Ok(Resolved {
            all: true,
            up_to: None,
        })
    }

    fn pick(&self, pick: Pick, (from, to): KeyRange<'_>, runs: &mut Runs) -> Picked {
        let run_bytes = self.run_bytes();
        let table = self.regions.table();
        let stretch = |wanted: &dyn Fn(usize) -> bool| {
            let dirty = self.dirty_bytes(&table, Precision::Rough);
            let wanted = |i| to.is_none_or(|to| table.bounds(i).0 < to) && wanted(i);
            check_back::stretch(&dirty, table.find(from), self.stretch_bytes(), &wanted)
        };
        let (regions, next) = match pick {
            Pick::All => stretch(&|_| true),
            Pick::Below(lsn) => stretch(&|i| table.floor(i) < lsn),
            Pick::CheckBack => {
                let dirty = self.dirty_bytes(&table, Precision::Rough);
                let (selected, cursor) =
                    check_back::check_back(&table, &dirty, runs.cursor, run_bytes);
                runs.cursor = cursor;
                (selected, None)
            }
            Pick::Oldest => {
                let selected = [Precision::Rough, Precision::Exact]
                    .into_iter()
                    .map(|precision| {
                        check_back::oldest(&table, &self.dirty_bytes(&table, precision), run_bytes)
                    })
                    .find(|selected| !selected.is_empty())
                    .unwrap_or_default();
                (selected, None)
            }
        };
        Picked {
            table,
            regions,
            next,
        }
    }

    /// The same where everything is to be written: not too small, for each run waits for the log.
    fn stretch_bytes(&self) -> u64 {
        let limit = self.shared.budget.limit();
        self.run_bytes().max(sizes::least_stretch(limit) as u64)
    }

    /// Arena bytes of dirty entries that make a run of the size that Y prefers.
    pub(crate) fn run_bytes(&self) -> u64 {
        let (limit, preferred) = (self.shared.budget.limit(), self.limits.preferred_run_bytes);
        sizes::run_bytes(limit, preferred, self.buffer_only) as u64
    }

    /// What cleaning each region would write, roughly; not 0 where something dirty came since it
    /// was measured.
    fn dirty_bytes(&self, table: &Table, precision: Precision) -> Vec<u64> {
        let (of, stats) = self.survey(precision);
        debug_assert!(std::ptr::eq(&*of, table), "the caller holds the run lock");
        let dirty = |(i, stats): (usize, &RegionStats)| {
            stats
                .dirty_bytes()
                .max(u64::from(table.dirty(i) || table.candidate(i)))
        };
        stats.iter().enumerate().map(dirty).collect()
    }

    /// Cleans everything; does Y's maintenance where it is congested.
    pub(crate) fn flush(&self) -> Result<()> {
        self.relieve_y()?;
        self.write_back(Pick::All).map(|_| ())
    }

    /// Does Y's maintenance while it is congested.
    pub(crate) fn relieve_y(&self) -> Result<()> {
        while self.y.congested() && !self.discarded() {
            let step = match self.y.maintain() {
                // Dropped meanwhile: its files may be gone, which says nothing about the others.
                Err(_) if self.discarded() => return Ok(()),
                step => self.shared.guarded(step)?,
            };
            if step == Maintained::Idle {
                break;
            }
            self.shared.poison.check()?;
        }
        Ok(())
    }
}

/// What became of the operands of a run's ranges.
struct Resolved {
    /// None that was logged before is left, up to `up_to`.
    all: bool,
    /// The run takes nothing from here on; `None`: all.
    up_to: Option<Vec<u8>>,
}

impl Resolved {
    fn within<'a>(&'a self, (from, to): KeyRange<'a>) -> KeyRange<'a> {
        match (&self.up_to, to) {
            (Some(up_to), Some(to)) => (from, Some(to.min(up_to))),
            (Some(up_to), None) => (from, Some(up_to)),
            (None, to) => (from, to),
        }
    }
}

/// Ascending `ranges`, neighbours joined.
fn join_neighbours<'a>(ranges: impl Iterator<Item = KeyRange<'a>>) -> Vec<KeyRange<'a>> {
    let mut joined: Vec<KeyRange<'a>> = Vec::new();
    for (from, to) in ranges {
        match joined.last_mut() {
            Some(last) if last.1 == Some(from) => last.1 = to,
            _ => joined.push((from, to)),
        }
    }
    joined
}

/// A run: the dirty entries of some ranges of X.
struct CleaningRun<'a> {
    joined: &'a Joined,
    ranges: &'a [KeyRange<'a>],
    run: RunId,
    written: Written,
}

impl RunSource for CleaningRun<'_> {
    fn drain(&mut self, sink: &mut dyn FnMut(RunEntry<'_>) -> Result<()>) -> Result<()> {
        let mut failure: Option<Error> = None;
        // Of what is dead Y is to have nothing, and no older version either (`expiry.rs`).
        let dead_at = self.joined.dead_at();
        let is_dead = |value: &[u8]| dead_at.is_some_and(|at| expiry::is_over(value, at));
        for &(from, to) in self.ranges {
            let written = &mut self.written;
            let _ = self
                .joined
                .x
                .clean(from, to, self.run, &mut |key, value, in_y| {
                    let died = value.is_some_and(is_dead);
                    if died && !in_y {
                        // Y never heard of it.
                        return ControlFlow::Continue(());
                    }
                    let value = value.filter(|_| !died);
                    written.keys += 1;
                    written.bytes += (key.len() + value.map_or(0, <[u8]>::len)) as u64;
                    match sink((key, value)) {
                        Ok(()) => ControlFlow::Continue(()),
                        Err(error) => {
                            failure = Some(error);
                            ControlFlow::Break(())
                        }
                    }
                });
            if let Some(error) = failure {
                return Err(error);
            }
        }
        Ok(())
    }

    fn before_publish(&mut self) -> Result<()> {
        // I12: from now on Y shows what the run carries.
        for &(from, to) in self.ranges {
            self.joined.resolve_markers(from, to, RunLock::Held);
        }
        // I5: everything that the run copied was logged before now.
        self.joined.shared.log.wait_durable()
    }
}
