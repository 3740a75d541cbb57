//! The shape of a version: what the policy decides by.
//!
//! Cost: a few instructions for each table of each partition; no I/O. With many thousands of tables
//! that is milliseconds, so [`Known`] keeps the shape as long as the version stays.

#![forbid(unsafe_code)]

use super::policy::{Effort, Limits, PartitionShape, Shape};
use crate::y::lsm::version::{Partition, Slice, TableFile, Version, sum};
use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

/// The shape of the version that was looked at last.
pub(crate) struct Known<T> {
    /// Keeps no table.
    version: Weak<Version<T>>,
    /// See [`Known::shape`].
    damage: u64,
    shape: Option<Shape>,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self {
            version: Weak::new(),
            damage: 0,
            shape: None,
        }
    }
}

impl<T: TableFile> Known<T> {
    /// The shape of `version`, which `shape_of` makes if it is not known. `damage`: another number
    /// whenever damage was met. Cost: of a known one a look at what reads paid for each partition.
    pub(crate) fn shape(
        &mut self,
        version: &Arc<Version<T>>,
        damage: u64,
        effort: Effort,
        shape_of: impl FnOnce() -> Shape,
    ) -> &Shape {
        // No other version has its address while it is known.
        let same = self.version.as_ptr() == Arc::as_ptr(version) && self.damage == damage;
        let mut shape = match self.shape.take().filter(|_| same) {
            Some(shape) => shape,
            None => shape_of(),
        };
        for (known, partition) in shape.partitions.iter_mut().zip(version.partitions()) {
            known.wasted = partition.reads().wasted();
            known.skipped = partition.reads().skipped();
        }
        shape.effort = effort;
        (self.version, self.damage) = (Arc::downgrade(version), damage);
        self.shape.insert(shape)
    }
}

/// The shape of `version`. `is_damaged`: what a partition has of a table cannot be merged.
pub(crate) fn shape_of<T: TableFile>(
    version: &Version<T>,
    effort: Effort,
    limits: Limits,
    is_damaged: impl Fn(&Partition<T>, &T) -> bool,
) -> Shape {
    let live = live_bytes(version);
    let shape = |partition: &Arc<Partition<T>>| {
        let weights = partition.weights();
        let dead = |tables: &[Arc<T>], slices: &[Slice]| -> u64 {
            let pairs = tables.iter().zip(slices);
            pairs
                .map(|(table, slice)| share(&**table, *slice, &live))
                .sum()
        };
        let damaged = |table: &Arc<T>| is_damaged(partition, table);
        PartitionShape {
            base: sum(&weights.base),
            base_tables: partition.base.len(),
            layers: weights.layers.clone(),
            wasted: partition.reads().wasted(),
            skipped: partition.reads().skipped(),
            dead_base: dead(&partition.base, &weights.base),
            dead_layers: dead(&partition.layers, &weights.layers),
            damaged_base: partition.base.iter().any(damaged),
            damaged_layers: {
                let layers = partition.layers.iter().enumerate();
                layers.filter(|(_, t)| damaged(t)).map(|(i, _)| i).collect()
            },
            outside: false,
        }
    };
    Shape {
        partitions: version.partitions().iter().map(shape).collect(),
        effort,
        limits,
    }
}

/// Of each table, by its number, what partitions have of it, and how many do.
fn live_bytes<T: TableFile>(version: &Version<T>) -> HashMap<u64, (u64, u64)> {
    let mut live = HashMap::new();
    for partition in version.partitions() {
        let weights = partition.weights();
        let slices = weights.layers.iter().chain(&weights.base);
        for (table, slice) in partition.tables().zip(slices) {
            let (bytes, slices) = live.entry(table.facts().number).or_insert((0, 0));
            *bytes += slice.bytes;
            *slices += 1;
        }
    }
    live
}

/// The part of the table's dead bytes that goes with `slice`.
fn share<T: TableFile>(table: &T, slice: Slice, live: &HashMap<u64, (u64, u64)>) -> u64 {
    let facts = table.facts();
    let Some((bytes, slices)) = live.get(&facts.number) else {
        return 0;
    };
    let dead = facts.bytes().saturating_sub(*bytes);
    match bytes {
        0 => dead / (*slices).max(1),
        bytes => (u128::from(dead) * u128::from(slice.bytes) / u128::from(*bytes)) as u64,
    }
}
