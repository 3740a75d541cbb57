//! Partitions that have become too large are split, small neighbours are joined: both without I/O.
//!
//! A split cuts a base between two of its tables. A join keeps V5: partitions A and B (A below B)
//! become one only if
//! - no table that only A has reaches B's keys, and none that only B has reaches A's: otherwise
//!   keys that were removed from B, or merged there into newer tables, would come back to life;
//! - a table of both is in the base of both or a layer of both, in the same order.

#![forbid(unsafe_code)]

use super::{
    facts::TableFile,
    partition::{Partition, is_in, sum},
};
use std::{ops::Range, sync::Arc};

/// Neighbours are joined if together they have at most this part of a partition's bytes.
const JOIN_DIVISOR: u64 = 2;

type Partitions<T> = Vec<Arc<Partition<T>>>;

/// Splits those of `touched` whose base is over twice `partition_bytes`.
pub(super) fn split<T: TableFile>(
    partitions: Partitions<T>,
    touched: Range<usize>,
    partition_bytes: u64,
) -> Partitions<T> {
    let mut split = Vec::with_capacity(partitions.len());
    for (i, partition) in partitions.into_iter().enumerate() {
        let base = || sum(&partition.weights().base).bytes;
        if touched.contains(&i) && base() > 2 * partition_bytes {
            split.extend(
                pieces(&partition, partition_bytes)
                    .into_iter()
                    .map(Arc::new),
            );
        } else {
            split.push(partition);
        }
    }
    split
}

/// Cuts `whole` between tables of its base, so that each piece has about `partition_bytes` there.
fn pieces<T: TableFile>(whole: &Partition<T>, partition_bytes: u64) -> Vec<Partition<T>> {
    let mut pieces = Vec::new();
    let mut from: Box<[u8]> = whole.from.clone();
    let mut bytes = 0;
    let mut before: Option<&Arc<T>> = None;
    for (table, slice) in whole.base.iter().zip(&whole.weights().base) {
        if let Some(before) = before
            && bytes + slice.bytes / 2 > partition_bytes
        {
            let key = separator(&before.facts().max, &table.facts().min);
            pieces.push(whole.part(&from, Some(key)));
            from = key.into();
            bytes = 0;
        }
        bytes += slice.bytes;
        before = Some(table);
    }
    pieces.push(whole.part(&from, whole.to.as_deref()));
    pieces
}

/// The shortest key above `low` and not above `high`, which is above `low`.
fn separator<'k>(low: &[u8], high: &'k [u8]) -> &'k [u8] {
    let same = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    high.get(..same + 1).unwrap_or(high)
}

/// Joins neighbours where they are small and V5 allows it. `may` says whether those at a border,
/// which has the index of the partition above it, are to be looked at.
pub(super) fn join<T: TableFile>(
    partitions: Partitions<T>,
    may: impl Fn(usize) -> bool,
    partition_bytes: u64,
) -> Partitions<T> {
    let most = partition_bytes / JOIN_DIVISOR;
    let mut joined: Partitions<T> = Vec::with_capacity(partitions.len());
    for (i, next) in partitions.into_iter().enumerate() {
        let one = joined.last().filter(|_| may(i));
        let one = one.and_then(|last| join_two(last, &next, most));
        match (one, joined.last_mut()) {
            (Some(one), Some(last)) => *last = Arc::new(one),
            _ => joined.push(next),
        }
    }
    joined
}

fn join_two<T: TableFile>(
    low: &Partition<T>,
    high: &Partition<T>,
    most: u64,
) -> Option<Partition<T>> {
    let bytes = low.weights().all().bytes + high.weights().all().bytes;
    if bytes > most || !may_join(low, high) {
        return None;
    }
    let mut base = low.base.clone();
    base.extend(high.base.iter().filter(|t| !is_in(t, &low.base)).cloned());
    let layers = join_layers(&low.layers, &high.layers)?;
    let mut whole = Partition::new(low.from.clone(), high.to.clone());
    (whole.base, whole.layers) = (base, layers);
    let (a, b) = (low.reads(), high.reads());
    Some(whole.paid_by(a.wasted() + b.wasted(), a.skipped() + b.skipped()))
}

/// V5.
fn may_join<T: TableFile>(low: &Partition<T>, high: &Partition<T>) -> bool {
    let border = &high.from;
    let low_stays =
        |table: &Arc<T>, same: &[Arc<T>]| is_in(table, same) || table.facts().max < *border;
    let high_stays =
        |table: &Arc<T>, same: &[Arc<T>]| is_in(table, same) || table.facts().min >= *border;
    low.base.iter().all(|t| low_stays(t, &high.base))
        && low.layers.iter().all(|t| low_stays(t, &high.layers))
        && high.base.iter().all(|t| high_stays(t, &low.base))
        && high.layers.iter().all(|t| high_stays(t, &low.layers))
}

/// Both lists in one, each in its order; `None` if they have common tables in different orders.
/// Tables that only one of them has do not overlap those that only the other has.
fn join_layers<T>(low: &[Arc<T>], high: &[Arc<T>]) -> Option<Vec<Arc<T>>> {
    let mut joined = Vec::with_capacity(low.len() + high.len());
    let mut rest = high;
    for table in low {
        if is_in(table, high) {
            let at = rest.iter().position(|other| Arc::ptr_eq(table, other))?;
            let (before, after) = rest.split_at(at);
            joined.extend(before.iter().cloned());
            rest = after.get(1..).unwrap_or_default();
        }
        joined.push(Arc::clone(table));
    }
    joined.extend(rest.iter().cloned());
    Some(joined)
}
