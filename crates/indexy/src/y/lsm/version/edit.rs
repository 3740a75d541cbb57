//! Steps of a version that add a run, remove a range, or cut a partition. Pure; no I/O.

#![forbid(unsafe_code)]

use super::{
    contents::{Version, insert_into_base},
    facts::TableFile,
    partition::{Partition, overlap},
    tidy,
};
use crate::error::Result;
use std::{ops::Range, sync::Arc};

impl<T: TableFile> Version<T> {
    /// This version and a run over it: `tables`, which do not overlap each other.
    ///
    /// Where a table overlaps nothing of a partition it goes into its base: it is newer than
    /// nothing there. Elsewhere it is the newest layer.
    pub(crate) fn with_run(&self, tables: &[Arc<T>]) -> Self {
        let mut partitions = self.partitions.clone();
        for table in tables {
            let facts = table.facts();
            let (first, last) = (self.find(&facts.min), self.find(&facts.max));
            for slot in partitions.iter_mut().take(last + 1).skip(first) {
                *slot = Arc::new(with_table(slot, table));
            }
        }
        let ends = tables.iter().map(|t| {
            let facts = t.facts();
            self.find(&facts.min)..self.find(&facts.max) + 1
        });
        let touched = ends.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
        let touched = touched.unwrap_or(0..0);
        let bytes = self.partition_bytes;
        Self::of(tidy::split(partitions, touched, bytes), bytes)
    }

    /// This version without the keys of `[from, to)`.
    pub(crate) fn without_range(&self, from: &[u8], to: Option<&[u8]>) -> Self {
        let mut partitions = self.partitions.clone();
        if to.is_none_or(|to| from < to) {
            let first = cut_at(&mut partitions, from);
            let end = to.map_or(partitions.len(), |to| cut_at(&mut partitions, to));
            let cleared = Partition::new(from.into(), to.map(Into::into));
            partitions.splice(first..end, [Arc::new(cleared)]);
            partitions = tidy::join(partitions, around(first..first + 1), self.partition_bytes);
        }
        Self::of(partitions, self.partition_bytes)
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

fn with_table<T: TableFile>(partition: &Partition<T>, table: &Arc<T>) -> Partition<T> {
    let (mut base, mut layers) = (partition.base.clone(), partition.layers.clone());
    if partition.tables().any(|other| overlap(&**other, &**table)) {
        layers.insert(0, Arc::clone(table));
    } else {
        insert_into_base(&mut base, Arc::clone(table));
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

/// These partitions and a neighbour at each end.
pub(super) fn around(range: Range<usize>) -> Range<usize> {
    range.start.saturating_sub(1)..range.end + 1
}
