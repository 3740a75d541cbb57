//! Between versions and what the version log says. Pure.

#![forbid(unsafe_code)]

use super::{
    contents::Version,
    facts::TableFile,
    log::{Change, Hunk, Listing, Placed},
    paid::Paid,
    partition::Partition,
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// The version that `listing` describes.
pub(super) fn build<T: TableFile>(
    listing: &Listing,
    tables: &BTreeMap<u64, Arc<T>>,
    partition_bytes: u64,
) -> std::result::Result<Version<T>, &'static str> {
    let of = |numbers: &[u64]| -> Option<Vec<Arc<T>>> {
        numbers.iter().map(|n| tables.get(n).cloned()).collect()
    };
    let ends = listing
        .partitions
        .iter()
        .skip(1)
        .map(|p| Some(p.from.clone()));
    let mut partitions = Vec::with_capacity(listing.partitions.len());
    let placed = listing.partitions.iter().zip(ends.chain([None]));
    for (i, (placed, to)) in placed.enumerate() {
        let mut partition = Partition::new(placed.from.clone(), to);
        partition.base = of(&placed.base).ok_or("an unknown table")?;
        partition.layers = of(&placed.layers).ok_or("an unknown table")?;
        let (wasted, skipped) = listing.paid.in_partition(i);
        partitions.push(Arc::new(partition.paid_by(wasted, skipped)));
    }
    Version::checked(partitions, partition_bytes)
}

fn placed<T: TableFile>(partition: &Partition<T>) -> Placed {
    let numbers = |tables: &[Arc<T>]| tables.iter().map(|t| t.facts().number).collect();
    Placed {
        from: partition.from.clone(),
        base: numbers(&partition.base),
        layers: numbers(&partition.layers),
    }
}

/// What the log should say of `version`, and of what reads have paid.
pub(super) fn listing_of<T: TableFile>(version: &Version<T>, paid: Paid) -> Listing {
    let tables = version.tables().into_iter();
    Listing {
        tables: tables
            .map(|(n, table)| (n, table.facts().clone()))
            .collect(),
        partitions: version.partitions.iter().map(|p| placed(p)).collect(),
        paid,
    }
}

/// How `new` differs from `old`, or from nothing. Partitions that both have are known by their
/// address; they are in the same order in both. Nothing of what reads have paid.
pub(super) fn change_of<T: TableFile>(new: &Version<T>, old: Option<&Version<T>>) -> Change {
    let partitions = old.map_or(&[][..], Version::partitions);
    let places = partitions.iter().enumerate();
    let before: HashMap<*const Partition<T>, usize> =
        places.map(|(i, p)| (Arc::as_ptr(p), i)).collect();
    let mut hunks = Vec::new();
    let (mut at, mut inserted) = (0, Vec::new());
    let mut end_hunk = |at: usize, next: usize, inserted: &mut Vec<Placed>| {
        if next > at || !inserted.is_empty() {
            hunks.push(Hunk {
                at,
                removed: next - at,
                inserted: std::mem::take(inserted),
            });
        }
    };
    for partition in &new.partitions {
        match before.get(&Arc::as_ptr(partition)) {
            Some(&same) if same >= at => {
                end_hunk(at, same, &mut inserted);
                at = same + 1;
            }
            _ => inserted.push(placed(partition)),
        }
    }
    end_hunk(at, partitions.len(), &mut inserted);
    let known = old.map(Version::tables).unwrap_or_default();
    let tables = new.tables().into_iter();
    Change {
        tables: tables
            .filter(|(number, _)| !known.contains_key(number))
            .map(|(_, table)| table.facts().clone())
            .collect(),
        hunks,
        paid: Paid::default(),
    }
}
