//! Writing dirty regions to Index Y: one sorted run at a time.
//!
//! Source: IndeXY II-B. Differs: nothing is locked while a region is cleaned; entries are copied leaf by leaf
//! under the leaf's latch and stay in X until Y has acknowledged them (I2, I4).
//!
//! A run streams from X into Y, so that the transfer buffer is one leaf, however long the run.
//! Keeps: I2 (marks at the copy, never at the acknowledgement; a failure re-dirties), I5 (the log is durable
//! before Y publishes), I6 (floors are raised to where the log ended when the sweep began).
//!
//! Threads: the transfer lock makes runs of one tree serial. It is held across the I/O of Y; neither
//! readers nor writers of X need it.
//! Not here: which regions (`preclean.rs`), when (`background.rs`).

#![forbid(unsafe_code)]

use super::{
    counters,
    joined::{Joined, Transfer},
    preclean,
    regions::Table,
    shared::Shared,
    survey::Precision,
    watermark,
};
use crate::{
    error::{Error, Result},
    wal::Lsn,
    x::{IndexX, LeafInfo, RunId},
    y::{Maintained, RunEntry, RunSource},
};
use std::{
    ops::ControlFlow,
    sync::{Arc, atomic::Ordering},
};

/// Which regions to clean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pick {
    /// Everything dirty.
    All,
    /// One check-back pass; what it selects, and if that is nothing, nothing.
    CheckBack,
    /// The oldest dirty regions, as much as makes a run.
    Oldest,
    /// Every region that may hold something dirty below this LSN.
    Below(Lsn),
}

/// What a transfer wrote.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    pub keys: u64,
    /// Key and value bytes.
    pub bytes: u64,
}

/// Statistics of one region, from a walk over X.
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
    pub(super) fn add(&mut self, leaf: &LeafInfo<'_>) {
        self.keys += leaf.keys as u64;
        self.dirty += leaf.dirty as u64;
        self.bytes += leaf.bytes as u64;
        self.leaves += 1;
    }

    /// Bytes that a cut would free now, roughly.
    pub(crate) fn clean_bytes(&self) -> u64 {
        (self.bytes * (self.keys - self.dirty))
            .checked_div(self.keys)
            .unwrap_or(self.bytes)
    }

    /// Arena bytes of what is dirty, roughly.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        (self.bytes * self.dirty)
            .checked_div(self.keys)
            .unwrap_or(0)
    }
}

impl Joined {
    /// Cleans what `pick` says, as one run. Waits for a run in flight. An error of Y leaves everything
    /// that it did not take dirty.
    pub(crate) fn write_back(&self, pick: Pick) -> Result<Written> {
        let mut transfer = self.transfer.lock();
        if self.discarded() {
            return Ok(Written::default());
        }
        let written = self.write_picked(pick, &mut transfer)?;
        if pick != Pick::Oldest || written.keys > 0 || self.x.stats().dirty == 0 {
            return Ok(written);
        }
        // Something is dirty, and not where it was counted: see `survey.rs`.
        self.divide_anew();
        self.write_picked(pick, &mut transfer)
    }

    /// The caller holds the transfer lock.
    fn divide_anew(&self) {
        let target = watermark::region_bytes(self.shared.budget.limit());
        self.divide(target as u64);
    }

    /// What `pick` says, and the regions that it is of. Where keys are appended, one region takes all that is written, and may have become
    /// a good part of X before the releaser finds a moment between two runs to choose regions anew. Writers would wait for a run of all of
    /// it, so the regions that a run is to take are looked at. Cost: a walk over what is about to be written.
    fn pick_bounded(&self, pick: Pick, transfer: &mut Transfer) -> (Arc<Table>, Vec<usize>) {
        let table = self.regions.table();
        let selected = self.pick(pick, &table, transfer);
        let too_large = watermark::oversize_bytes(self.shared.budget.limit()) as u64;
        let short = matches!(pick, Pick::CheckBack | Pick::Oldest);
        // A single leaf with large values is as small as regions get.
        let oversize = |i: &usize| {
            let stats = self.stats_of(&table, *i);
            stats.bytes > too_large && stats.leaves > 1
        };
        if !short || !selected.iter().any(oversize) {
            return (table, selected);
        }
        self.divide_anew();
        let table = self.regions.table();
        let selected = self.pick(pick, &table, transfer);
        (table, selected)
    }

    fn write_picked(&self, pick: Pick, transfer: &mut Transfer) -> Result<Written> {
        let (table, selected) = self.pick_bounded(pick, transfer);
        if selected.is_empty() {
            return Ok(Written::default());
        }
        for &i in &selected {
            table.set_dirty(i, false);
            table.set_candidate(i, false);
        }
        transfer.last_run += 1;
        let run = transfer.last_run;
        let floor = self.shared.sweep_floor();
        let ranges = join_neighbours(&table, &selected);
        let mut source = Sweep {
            joined: self,
            ranges: &ranges,
            run,
            written: Written::default(),
        };
        let result = self.shared.guarded(self.hand_to_y(&mut source));
        let written = source.written;
        if result.is_err() {
            for (from, to) in &ranges {
                self.x.redirty(from, *to, run);
            }
            selected.iter().for_each(|&i| table.set_dirty(i, true));
        }
        self.settle_run(run);
        selected.iter().for_each(|&i| table.set_changed(i, true));
        result?;
        for (from, to) in &ranges {
            self.x.settle(from, *to, run);
        }
        for &i in &selected {
            table.raise_floor(i, floor);
            table.set_cleaned(i, run);
        }
        let counters = &self.shared.counters;
        counters::add(&counters.cleaned_keys, written.keys);
        counters::add(&counters.cleaned_bytes, written.bytes);
        counters::add(&counters.runs, u64::from(written.keys > 0));
        self.shared.wake_compactor.notify();
        Ok(written)
    }

    /// Has Y write a run. The caller holds the transfer lock.
    ///
    /// A Y that panics, on whatever thread, leaves a run of which nobody knows what Y took: its entries are marked clean
    /// (I2), and the next run to go well would let them be cut and their log be truncated. So nothing is written from then
    /// on; poisoned before the transfer lock is let go.
    pub(super) fn hand_to_y(&self, source: &mut dyn RunSource) -> Result<()> {
        struct Alarm<'a>(&'a Shared);
        impl Drop for Alarm<'_> {
            fn drop(&mut self) {
                self.0.poison.set(&"writing to Index Y panicked");
                self.0.announce_freed();
            }
        }
        let alarm = Alarm(&self.shared);
        let result = self.y.write_run(source);
        std::mem::forget(alarm);
        result
    }

    /// From now on leaves of this run may be cut; pairs with the load in `acked`.
    fn settle_run(&self, run: RunId) {
        self.acked.store(run, Ordering::Release);
    }

    fn pick(&self, pick: Pick, table: &Table, transfer: &mut Transfer) -> Vec<usize> {
        let run_bytes = self.run_bytes();
        match pick {
            Pick::All => (0..table.len()).collect(),
            Pick::Below(lsn) => (0..table.len()).filter(|&i| table.floor(i) < lsn).collect(),
            Pick::CheckBack => {
                let dirty = self.dirty_bytes(table, Precision::Rough);
                let (selected, cursor) =
                    preclean::check_back(table, &dirty, transfer.cursor, run_bytes);
                transfer.cursor = cursor;
                selected
            }
            Pick::Oldest => [Precision::Rough, Precision::Exact]
                .into_iter()
                .map(|precision| {
                    preclean::oldest(table, &self.dirty_bytes(table, precision), run_bytes)
                })
                .find(|selected| !selected.is_empty())
                .unwrap_or_default(),
        }
    }

    /// Arena bytes of dirty entries that make a run of the size that Y likes.
    pub(super) fn run_bytes(&self) -> u64 {
        let preferred = self.y.capabilities().preferred_run_bytes;
        let limit = self.shared.budget.limit();
        if self.buffer_only {
            return watermark::buffer_run_bytes(limit, preferred) as u64;
        }
        watermark::run_bytes(limit, preferred) as u64
    }

    /// What cleaning each region would write, roughly; not 0 where something dirty came since it was measured.
    fn dirty_bytes(&self, table: &Table, precision: Precision) -> Vec<u64> {
        let (of, stats) = self.survey(precision);
        debug_assert!(
            std::ptr::eq(&*of, table),
            "the caller holds the transfer lock"
        );
        let dirty = |(i, stats): (usize, &RegionStats)| {
            stats
                .dirty_bytes()
                .max(u64::from(table.dirty(i) || table.candidate(i)))
        };
        stats.iter().enumerate().map(dirty).collect()
    }

    /// Chooses regions of about `target` bytes anew. Returns without doing anything while a run is in flight.
    pub(crate) fn choose_regions(&self, target: u64) {
        if let Some(_transfer) = self.transfer.try_lock() {
            self.divide(target);
        }
    }

    /// The same. The caller holds the transfer lock.
    fn divide(&self, target: u64) {
        // A region of several leaves is not too large when it is chosen, or it would be chosen again and again.
        let too_large = watermark::oversize_bytes(self.shared.budget.limit()) as u64;
        let mut starts: Vec<Box<[u8]>> = vec![Box::default()];
        let mut bytes = 0;
        let _ = self.x.leaves(&[], None, &mut |leaf| {
            let full = bytes >= target || bytes > 0 && bytes + leaf.bytes as u64 > too_large;
            if full && leaf.start > &**starts.last().unwrap_or(&Box::default()) {
                starts.push(Box::from(leaf.start));
                bytes = 0;
            }
            bytes += leaf.bytes as u64;
            ControlFlow::Continue(())
        });
        self.regions.rebound(starts);
        self.x.track_references(true);
    }

    /// Cleans everything; waits for Y's maintenance where it is congested.
    pub(crate) fn flush(&self) -> Result<()> {
        while self.y.congested() {
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
        self.write_back(Pick::All).map(|_| ())
    }

    /// Makes every run that is acknowledged by now durable. One thread at a time: a Y need not expect two.
    pub(super) fn make_durable(&self) -> Result<()> {
        let _one = self.making_durable.lock();
        match self.y.make_durable() {
            Err(_) if self.discarded() => Ok(()),
            made => self.shared.guarded(made),
        }
    }

    /// Copies Y, as it is between two runs, into the absent directory `dest`.
    pub(crate) fn copy_y_to(&self, dest: &std::path::Path) -> Result<()> {
        let _no_run = (!self.y.copies_beside_runs()).then(|| self.transfer.lock());
        // What fails from there on is the copy.
        self.make_durable()?;
        self.y.copy_to(dest).inspect_err(|_| {
            // Unless it is this database that can write no more: that is found out here (runs may go on beside the copy).
            let _ = self.make_durable();
        })
    }

    /// Clears the mounts of a tree whose Y is empty. Waits for a run in flight.
    pub(crate) fn clear_mounts_if_y_is_empty(&self) -> Result<()> {
        let _transfer = self.transfer.lock();
        if self.x.stats().mounts > 0 && self.y.is_empty()? {
            self.x.clear_mounts(&[], None);
        }
        Ok(())
    }

    /// Drops every entry, dirty ones too, and writes nothing to Y any more: the tree was dropped.
    pub(crate) fn discard(&self) {
        let mut transfer = self.transfer.lock();
        self.discarded.store(true, Ordering::Release);
        transfer.last_run += 1;
        let run = transfer.last_run;
        let _ = self
            .x
            .clean(&[], None, run, &mut |_, _| ControlFlow::Continue(()));
        self.settle_run(run);
        self.x.cut(&[], None, run, false, usize::MAX);
    }
}

type KeyRange<'a> = (&'a [u8], Option<&'a [u8]>);

/// The key ranges of the selected regions (ascending), neighbours joined.
fn join_neighbours<'a>(table: &'a Table, selected: &[usize]) -> Vec<KeyRange<'a>> {
    let mut ranges: Vec<KeyRange<'a>> = Vec::new();
    for &i in selected {
        let (from, to) = table.bounds(i);
        match ranges.last_mut() {
            Some(last) if last.1 == Some(from) => last.1 = to,
            _ => ranges.push((from, to)),
        }
    }
    ranges
}

/// A run: the dirty entries of some ranges of X.
struct Sweep<'a> {
    joined: &'a Joined,
    ranges: &'a [KeyRange<'a>],
    run: RunId,
    written: Written,
}

impl RunSource for Sweep<'_> {
    fn drain(&mut self, sink: &mut dyn FnMut(RunEntry<'_>) -> Result<()>) -> Result<()> {
        let mut failure: Option<Error> = None;
        for &(from, to) in self.ranges {
            let written = &mut self.written;
            let _ = self.joined.x.clean(from, to, self.run, &mut |key, value| {
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
        // I5: everything that the sweep copied was logged before now.
        self.joined.shared.wait_for_log()
    }
}
