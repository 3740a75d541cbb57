//! The step of a version that puts a merge's output in the place of what was merged. Pure; no I/O.
//!
//! While a merge runs, runs come on top of its inputs (or beside them, into a base), partitions are
//! cut, and ranges are removed. So the output takes the place of the inputs in every partition that
//! lies in the merged range *and still has them*; a partition that was cleared meanwhile has none
//! of them and gets nothing (V5). What came meanwhile stays above the output (V4). If the
//! partitions have changed otherwise, the merge was in vain.

#![forbid(unsafe_code)]

use super::{
    contents::{Version, insert_into_base},
    facts::TableFile,
    partition::{Partition, is_in, overlap},
    tidy,
};
use std::{ops::Range, sync::Arc};

/// What a merge reads: neighbouring partitions, and of each some tables.
pub(crate) struct Inputs<T> {
    /// Ascending.
    pub(crate) parts: Vec<Part<T>>,
    /// The base and the oldest layers, so that deletes can go. Else some layers alone.
    pub(crate) major: bool,
}

/// What a merge reads of one partition. Only keys inside the partition count.
pub(crate) struct Part<T> {
    pub(crate) partition: Arc<Partition<T>>,
    /// Indices of the partition's layers; up to the last one if the merge is major.
    pub(crate) layers: Range<usize>,
}

impl<T> Part<T> {
    /// The layers that are merged, newest first.
    pub(crate) fn layers(&self) -> &[Arc<T>] {
        let layers = self.partition.layers.get(self.layers.clone());
        layers.unwrap_or_default()
    }

    /// The tables of the base that are merged.
    pub(crate) fn base(&self, major: bool) -> &[Arc<T>] {
        if major { &self.partition.base } else { &[] }
    }

    fn holds<U>(&self, piece: &Partition<U>) -> bool {
        self.partition.from <= piece.from && piece.ends_by(self.partition.to.as_deref())
    }
}

impl<T: TableFile> Part<T> {
    /// All keys that are merged begin with the same so many bytes.
    pub(crate) fn shared_prefix(&self, major: bool) -> usize {
        let tables = || self.layers().iter().chain(self.base(major));
        let min = tables().map(|table| &*table.facts().min).min();
        let max = tables().map(|table| &*table.facts().max).max();
        let of_tables = min.zip(max).map_or(0, |(min, max)| shared(min, max));
        let bounds = self.partition.to.as_deref();
        of_tables.max(bounds.map_or(0, |to| shared(&self.partition.from, to)))
    }
}

fn shared(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

impl<T: TableFile> Inputs<T> {
    /// What a major merge of these partitions of `version` reads. `None` if there are none.
    pub(crate) fn major(version: &Version<T>, partitions: Range<usize>) -> Option<Self> {
        Self::of(version, partitions, true, |partition| {
            0..partition.layers.len()
        })
    }

    /// What a merge of some layers of a partition of `version` reads.
    pub(crate) fn minor(
        version: &Version<T>,
        partition: usize,
        layers: Range<usize>,
    ) -> Option<Self> {
        Self::of(version, partition..partition + 1, false, |_| layers.clone())
    }

    /// `layers` says which layers of a partition.
    pub(super) fn of(
        version: &Version<T>,
        partitions: Range<usize>,
        major: bool,
        layers: impl Fn(&Partition<T>) -> Range<usize>,
    ) -> Option<Self> {
        let chosen = version.partitions.get(partitions)?;
        let part = |partition: &Arc<Partition<T>>| {
            let layers = layers(partition);
            let start = layers.start.min(partition.layers.len());
            let end = if major { usize::MAX } else { layers.end };
            Part {
                layers: start..end.clamp(start, partition.layers.len()),
                partition: Arc::clone(partition),
            }
        };
        let parts: Vec<_> = chosen.iter().map(part).collect();
        (!parts.is_empty()).then_some(Self { parts, major })
    }

    /// The input that `piece` is a piece of, and where the merged range ends.
    fn part_of(&self, piece: &Partition<T>) -> Option<&Part<T>> {
        self.parts.iter().find(|part| part.holds(piece))
    }

    fn touches(&self, piece: &Partition<T>) -> bool {
        let ends = |part: &Part<T>| part.partition.to.clone();
        let (first, last) = (self.parts.first(), self.parts.last());
        let starts_before = first.is_some_and(|first| !piece.ends_by(Some(&first.partition.from)));
        let ends_behind = last.is_some_and(|last| ends(last).is_none_or(|to| piece.from < to));
        starts_before && ends_behind
    }
}

impl<T: TableFile> Version<T> {
    /// This version with `output` in the place of `merged`; `None` if the merge was in vain.
    ///
    /// `output` ascends and does not overlap. A major merge's becomes the base, a minor one's a
    /// layer.
    pub(crate) fn with_merge(&self, merged: &Inputs<T>, output: &[Arc<T>]) -> Option<Self> {
        let mut partitions = self.partitions.clone();
        let mut touched: Option<Range<usize>> = None;
        for (i, slot) in partitions.iter_mut().enumerate() {
            if !merged.touches(slot) {
                continue;
            }
            let place = match merged.part_of(slot) {
                Some(part) => place(slot, part, merged.major),
                // Parts of two inputs, or of one and what lies beside it, were joined.
                None if has_inputs(slot, merged) => return None,
                None => Place::Absent,
            };
            let replaced = match place {
                Place::Absent => continue,
                Place::Changed => return None,
                Place::Base { layers, above } => with_base(slot, layers, &above, output),
                Place::Layers(range) => with_layers(slot, range, output),
            };
            *slot = Arc::new(replaced);
            touched = Some(touched.map_or(i, |t| t.start)..i + 1);
        }
        let Some(touched) = touched else {
            return Some(Self::of(partitions, self.partition_bytes));
        };
        let (bytes, before) = (self.partition_bytes, partitions.len());
        let split = tidy::split(partitions, touched.clone(), bytes);
        let end = touched.end + (split.len() - before);
        let borders = touched.start..=end;
        let joined = tidy::join(split, |border| borders.contains(&border), bytes);
        Some(Self::of(joined, bytes))
    }
}

/// Where a merge's inputs are in a partition.
enum Place<T> {
    /// Nowhere: the partition was cleared, or the merge read nothing of it.
    Absent,
    /// Not as they were.
    Changed,
    /// They are the base, but for the tables `above`, which came meanwhile, and all layers but the
    /// first ones.
    Base { layers: usize, above: Vec<Arc<T>> },
    /// These layers.
    Layers(Range<usize>),
}

fn has_inputs<T: TableFile>(piece: &Partition<T>, merged: &Inputs<T>) -> bool {
    let inputs = |part: &Part<T>| {
        let mut tables = part.layers().iter().chain(part.base(merged.major));
        tables.any(|t| piece.tables().any(|other| Arc::ptr_eq(t, other)))
    };
    merged.parts.iter().any(inputs)
}

fn place<T: TableFile>(piece: &Partition<T>, part: &Part<T>, major: bool) -> Place<T> {
    let inside = |tables: &[Arc<T>]| -> Vec<Arc<T>> {
        let inside = tables.iter().filter(|table| piece.overlaps(table));
        inside.cloned().collect()
    };
    let (layers, base) = (inside(part.layers()), inside(part.base(major)));
    let same = |found: &[Arc<T>], wanted: &[Arc<T>]| {
        found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| Arc::ptr_eq(a, b))
    };
    let is_input = |t: &&Arc<T>| is_in(t, &layers) || is_in(t, &base);
    // The merge read nothing of this partition. If it is as it was, the output has none of its keys
    // either, and may reach over it, so that it can be joined with its neighbours.
    let spanned = major && std::ptr::eq(piece, &*part.partition);
    let mut tables = piece.tables();
    if !(spanned || tables.any(|t| is_input(&t))) {
        return Place::Absent;
    }
    let start = piece.layers.iter().position(|t| is_in(t, &layers));
    let start = start.unwrap_or(piece.layers.len());
    let end = start + layers.len();
    if !same(piece.layers.get(start..end).unwrap_or_default(), &layers) {
        return Place::Changed;
    }
    if !major {
        return Place::Layers(start..end);
    }
    let (old, above): (Vec<_>, Vec<_>) = piece.base.iter().cloned().partition(|t| is_in(t, &base));
    if end != piece.layers.len() || !same(&old, &base) {
        return Place::Changed;
    }
    Place::Base {
        layers: start,
        above,
    }
}

/// `piece` with the base and all but the first `layers` replaced. What came into the base meanwhile
/// is newer than the merge's inputs, and older than the layers above them or without a key of
/// theirs.
fn with_base<T: TableFile>(
    piece: &Partition<T>,
    layers: usize,
    above: &[Arc<T>],
    output: &[Arc<T>],
) -> Partition<T> {
    let mut base = slices(piece, output);
    let mut layers: Vec<_> = piece.layers.iter().take(layers).cloned().collect();
    for table in above {
        if base.iter().any(|other| overlap(&**other, &**table)) {
            layers.push(Arc::clone(table));
        } else {
            insert_into_base(&mut base, Arc::clone(table));
        }
    }
    piece.with(base, layers)
}

/// `piece` with some layers replaced.
fn with_layers<T: TableFile>(
    piece: &Partition<T>,
    replaced: Range<usize>,
    output: &[Arc<T>],
) -> Partition<T> {
    let mut layers = piece.layers.clone();
    layers.splice(replaced, slices(piece, output));
    piece.with(piece.base.clone(), layers)
}

fn slices<T: TableFile>(piece: &Partition<T>, output: &[Arc<T>]) -> Vec<Arc<T>> {
    let inside = output.iter().filter(|table| piece.overlaps(table));
    inside.cloned().collect()
}
