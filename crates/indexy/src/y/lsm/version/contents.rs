//! A version: the immutable list of partitions that readers pin.
//!
//! Cost of a step from one version to the next: a pointer for each partition, and new partitions
//! where something changed. Unchanged partitions are shared, and known by their address.

#![forbid(unsafe_code)]

use super::{
    facts::TableFile,
    partition::{Partition, Slice, is_in, overlap, sum},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

/// See the module of the folder.
pub(crate) struct Version<T> {
    pub(super) partitions: Vec<Arc<Partition<T>>>,
    /// What a partition's base should have: it is cut above twice as much.
    pub(super) partition_bytes: u64,
    totals: OnceLock<Totals>,
}

/// Sums over a version. Entries and live bytes are estimates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Deletes and what they hide included.
    pub(crate) live: Slice,
    pub(crate) tables: usize,
    /// Of the tables' files.
    pub(crate) bytes: u64,
    /// Tables that a point read may have to look at, at most.
    pub(crate) depth: usize,
    /// The most layers of a partition.
    pub(crate) layers: usize,
    /// What the lists take in memory, without the tables.
    pub(crate) memory_bytes: usize,
}

impl Totals {
    /// Parts of tables that no partition has.
    pub(crate) fn dead_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.live.bytes)
    }
}

impl<T: TableFile> Version<T> {
    /// One partition without tables. `partition_bytes`: what a partition's base should have.
    #[cfg(test)]
    pub(crate) fn empty(partition_bytes: u64) -> Self {
        let all = Partition::new(Box::default(), None);
        Self::of(vec![Arc::new(all)], partition_bytes)
    }

    /// A version of `partitions`, which come from a disk.
    pub(super) fn checked(
        partitions: Vec<Arc<Partition<T>>>,
        partition_bytes: u64,
    ) -> Result<Self, &'static str> {
        let version = Self {
            partitions,
            partition_bytes,
            totals: OnceLock::new(),
        };
        version.check().map(|()| version)
    }

    pub(super) fn of(partitions: Vec<Arc<Partition<T>>>, partition_bytes: u64) -> Self {
        let version = Self {
            partitions,
            partition_bytes,
            totals: OnceLock::new(),
        };
        debug_assert_eq!(version.check(), Ok(()));
        version
    }

    pub(crate) fn partitions(&self) -> &[Arc<Partition<T>>] {
        &self.partitions
    }

    /// The index of the partition that `key` belongs to.
    pub(crate) fn find(&self, key: &[u8]) -> usize {
        // V1: the first one begins with the empty key.
        let next = self.partitions.partition_point(|p| *p.from <= *key);
        next.saturating_sub(1)
    }

    /// The partition that `key` belongs to.
    pub(crate) fn partition(&self, key: &[u8]) -> Option<&Arc<Partition<T>>> {
        self.partitions.get(self.find(key))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.partitions.iter().all(|p| p.is_empty())
    }

    /// Every table once, by its number.
    pub(crate) fn tables(&self) -> BTreeMap<u64, &Arc<T>> {
        let tables = self.partitions.iter().flat_map(|p| p.tables());
        tables.map(|t| (t.facts().number, t)).collect()
    }

    /// Sums. Computed once.
    pub(crate) fn totals(&self) -> Totals {
        *self.totals.get_or_init(|| {
            let tables = self.tables();
            let slices: Vec<Slice> = self.partitions.iter().map(|p| p.weights().all()).collect();
            Totals {
                live: sum(&slices),
                tables: tables.len(),
                bytes: tables.values().map(|t| t.facts().bytes()).sum(),
                depth: self.partitions.iter().map(|p| p.depth()).max().unwrap_or(0),
                layers: self
                    .partitions
                    .iter()
                    .map(|p| p.layers.len())
                    .max()
                    .unwrap_or(0),
                memory_bytes: self.partitions.iter().map(|p| p.memory_bytes()).sum(),
            }
        })
    }

    /// Checks V1 to V3.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let mut end: Option<&[u8]> = Some(&[]);
        for partition in &self.partitions {
            if end != Some(&*partition.from) {
                return Err("V1: partitions leave a gap or overlap");
            }
            end = partition.to.as_deref();
            if end.is_some_and(|end| end <= &*partition.from) {
                return Err("V1: a partition ends before it begins");
            }
            check_tables(partition)?;
        }
        match end {
            None if !self.partitions.is_empty() => Ok(()),
            _ => Err("V1: the last partition has an end"),
        }
    }
}

fn check_tables<T: TableFile>(partition: &Partition<T>) -> Result<(), &'static str> {
    if !partition.tables().all(|t| partition.overlaps(t)) {
        return Err("V2: a table lies outside of its partition");
    }
    let mut seen: Vec<u64> = partition.tables().map(|t| t.facts().number).collect();
    seen.sort_unstable();
    if seen.windows(2).any(|two| two.first() == two.last()) {
        return Err("V2: a table is twice in a partition");
    }
    let mut neighbours = partition.base.iter().zip(partition.base.iter().skip(1));
    if !neighbours.all(|(one, next)| one.facts().max < next.facts().min) {
        return Err("V3: tables of a base overlap");
    }
    Ok(())
}

/// Puts `table` into a base that it does not overlap.
pub(super) fn insert_into_base<T: TableFile>(base: &mut Vec<Arc<T>>, table: Arc<T>) {
    debug_assert!(!base.iter().any(|t| overlap(&**t, &*table)) && !is_in(&table, base));
    let at = base.partition_point(|t| t.facts().min < table.facts().min);
    base.insert(at, table);
}
