//! The shape of a version: what the policy decides by.
//!
//! Cost: a few instructions for each table of each partition; no I/O.

#![forbid(unsafe_code)]

use super::policy::{Effort, Limits, PartitionShape, Shape};
use crate::y::run_store::version::{Partition, Slice, TableFile, Version, sum};
use std::{collections::HashMap, sync::Arc};

/// The shape of `version`.
pub(crate) fn shape_of<T: TableFile>(
    version: &Version<T>,
    effort: Effort,
    limits: Limits,
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
        PartitionShape {
            base: sum(&weights.base),
            base_tables: partition.base.len(),
            layers: weights.layers.clone(),
            wasted: partition.reads().wasted(),
            skipped: partition.reads().skipped(),
            dead_base: dead(&partition.base, &weights.base),
            dead_layers: dead(&partition.layers, &weights.layers),
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
