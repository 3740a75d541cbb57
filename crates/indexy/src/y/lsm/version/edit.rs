//! Steps of a version that add a run, remove ranges, or cut a partition. Pure; no I/O.

#![forbid(unsafe_code)]

use super::{
    contents::{Version, insert_into_base},
    facts::TableFile,
    partition::{Partition, overlap},
    tidy,
};
use crate::{error::Result, y::contract::KeyRange};
use std::sync::Arc;

impl<T: TableFile> Version<T> {
    /// This version and a run over it: `tables`, which do not overlap each other.
    ///
    /// Where a table overlaps nothing of a partition it goes into its base: it is newer than
    /// nothing there. Elsewhere it is the newest layer.
    pub(crate) fn with_run(&self, tables: &[Arc<T>]) -> Self {
        let ends = tables.iter().map(|t| {
            let facts = t.facts();
            self.find(&facts.min)..self.find(&facts.max) + 1
        });
        let touched = ends.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
        let touched = touched.unwrap_or(0..0);
        let mut partitions = self.partitions.clone();
        for slot in partitions.iter_mut().take(touched.end).skip(touched.start) {
            let mut here = tables
                .iter()
                .filter(|table| slot.overlaps(table))
                .peekable();
            if here.peek().is_some() {
                *slot = Arc::new(with_tables(slot, here));
            }
        }
        let bytes = self.partition_bytes;
        Self::of(tidy::split(partitions, touched, bytes), bytes)
    }

    /// This version and `tables` of a load: they ascend, and this version has no key from their
    /// first to their last.
    ///
    /// More of them than a partition get partitions of their own. A table with keys on both sides
    /// of theirs, and none there, reaches over all of them: they would be layers over it, which
    /// reads look into and a merge writes again.
    pub(crate) fn with_load(&self, tables: &[Arc<T>]) -> Self {
        let bytes: u64 = tables.iter().map(|table| table.facts().bytes()).sum();
        match (tables.first(), tables.last()) {
            (Some(first), Some(last)) if bytes > self.partition_bytes => {
                let behind = [&*last.facts().max, &[0]].concat();
                let range: KeyRange<'_> = (&first.facts().min, Some(&behind));
                self.without_ranges(&[range]).with_run(tables)
            }
            _ => self.with_run(tables),
        }
    }

    /// This version without the keys of `[from, to)`.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn without_range(&self, from: &[u8], to: Option<&[u8]>) -> Self {
        self.without_ranges(&[(from, to)])
    }

    /// This version without the keys of `ranges`, which may come in any order. Cost: one pass over
    /// the partitions, however many ranges there are.
    pub(crate) fn without_ranges(&self, ranges: &[KeyRange<'_>]) -> Self {
        let mut ranges = ranges.to_vec();
        ranges.sort_by_key(|(from, _)| *from);
        let mut kept = Kept {
            before: &self.partitions,
            after: Vec::with_capacity(self.partitions.len() + 2 * ranges.len()),
        };
        // Borders of what was cleared, each the index of the partition above it. They ascend.
        let mut borders = Vec::with_capacity(2 * ranges.len());
        // All below it is in `kept`, or cleared; `None`: that is all there is.
        let mut end: Option<&[u8]> = Some(&[]);
        for (from, to) in ranges {
            let Some(begin) = end else { break };
            let from = from.max(begin);
            if to.is_some_and(|to| to <= from) {
                continue;
            }
            kept.take(begin, Some(from));
            let at = kept.after.len();
            borders.extend([at, at + 1]);
            let cleared = Partition::new(from.into(), to.map(Into::into));
            kept.after.push(Arc::new(cleared));
            end = to;
        }
        if let Some(begin) = end {
            kept.take(begin, None);
        }
        let may = |border: usize| borders.binary_search(&border).is_ok();
        let joined = tidy::join(kept.after, may, self.partition_bytes);
        Self::of(joined, self.partition_bytes)
    }

    /// No table that the version shows reaches into `[from, to)`.
    pub(crate) fn has_nothing_in(&self, (from, to): KeyRange<'_>) -> bool {
        let below = |key: &[u8]| to.is_none_or(|to| key < to);
        let here = self.partitions.iter().skip(self.find(from));
        let mut here = here.take_while(|partition| below(&partition.from));
        here.all(|partition| {
            let mut tables = partition.tables().map(|table| table.facts());
            tables.all(|facts| *facts.max < *from || !below(&facts.min))
        })
    }

    /// A key inside partition `i` that halves it, roughly, judged by the table that has the most
    /// there. Cost: a few pages.
    pub(crate) fn middle(&self, i: usize) -> Result<Option<Box<[u8]>>> {
        let Some(partition) = self.partitions.get(i) else {
            return Ok(None);
        };
        let (from, to) = (&*partition.from, partition.to.as_deref());
        let weights = partition.weights();
        let slices = weights.layers.iter().chain(&weights.base);
        let largest = partition.tables().zip(slices).max_by_key(|(_, s)| s.bytes);
        let Some((table, _)) = largest else {
            return Ok(None);
        };
        let middle = table.middle(from, to)?;
        Ok(middle.filter(|key| *from < **key && to.is_none_or(|to| **key < *to)))
    }

    /// This version with partitions that end at `key`. Nothing else changes.
    pub(crate) fn cut(&self, key: &[u8]) -> Self {
        let mut partitions = self.partitions.clone();
        cut_at(&mut partitions, key);
        Self::of(partitions, self.partition_bytes)
    }
}

fn with_tables<'t, T: TableFile + 't>(
    partition: &Partition<T>,
    tables: impl Iterator<Item = &'t Arc<T>>,
) -> Partition<T> {
    let (mut base, mut layers) = (partition.base.clone(), partition.layers.clone());
    for table in tables {
        if partition.tables().any(|other| overlap(&**other, &**table)) {
            layers.insert(0, Arc::clone(table));
        } else {
            insert_into_base(&mut base, Arc::clone(table));
        }
    }
    partition.with(base, layers).heir_of(partition)
}

/// Makes `key` the beginning of a partition; returns its index.
fn cut_at<T: TableFile>(partitions: &mut Vec<Arc<Partition<T>>>, key: &[u8]) -> usize {
    let next = partitions.partition_point(|p| *p.from < *key);
    if partitions.get(next).is_some_and(|p| *p.from == *key) {
        return next;
    }
    // V1: the first partition begins with the empty key, so there is one before.
    let at = next.saturating_sub(1);
    if let Some(whole) = partitions.get(at).cloned() {
        let low = whole.part(&whole.from, Some(key));
        let high = whole.part(key, whole.to.as_deref());
        partitions.splice(at..=at, [Arc::new(low), Arc::new(high)]);
    }
    next
}

/// Partitions on their way from one version to the next, from low keys to high ones.
struct Kept<'v, T> {
    before: &'v [Arc<Partition<T>>],
    after: Vec<Arc<Partition<T>>>,
}

impl<T: TableFile> Kept<'_, T> {
    /// Takes over what lies in `[from, to)`, and forgets what lies below. Partitions that reach
    /// over an end are cut there; the others stay the same, which the version log knows them by.
    fn take(&mut self, from: &[u8], to: Option<&[u8]>) {
        while let Some((next, rest)) = self.before.split_first() {
            let ends = next.ends_by(to);
            let low = from.max(&next.from);
            let high = if ends { next.to.as_deref() } else { to };
            if high.is_none_or(|high| low < high) {
                let whole = *low == *next.from && high == next.to.as_deref();
                self.after.push(match whole {
                    true => Arc::clone(next),
                    false => Arc::new(next.part(low, high)),
                });
            }
            if !ends {
                return;
            }
            self.before = rest;
        }
    }
}
