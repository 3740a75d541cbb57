//! What to merge next: a pure function of the shape of a tree.
//!
//! Merging is late: the more layers go into one merge, the less is written for each. A partition is
//! merged when
//! - it has [`Limits::most_layers`], or
//! - reads have paid for it: they have looked in vain into as many blocks, or passed over as many
//!   deletes, as the merge costs (a ski-rental: at most twice the best choice in hindsight), or
//! - a quarter of it is deletes, or
//! - too much of the tables' files is dead, and it has a large share of that, or
//! - nothing was written for a while ([`Effort::Quiet`]), or somebody asked ([`Effort::Thorough`]).
//!
//! A merge is *major* (all layers and the base) if the layers have at least a quarter of the base's
//! bytes. Else the base is left alone, and layers of like size are merged: each byte is written
//! once as a run, once or twice among layers, and with the base when it is at most four fifths of
//! what is written. With data of R layers and merges of T layers a byte is written about 1 + R/2T
//! times while R grows to some 4 T.
//!
//! A partition that has too much for one step is cut first. Small neighbours are merged together.
//!
//! What cannot be read stays where it is: of such a partition the base is left alone, and readable
//! layers that follow each other are merged until there is one of them.

#![forbid(unsafe_code)]

use crate::y::lsm::version::{Slice, sum};
use std::{cmp::Reverse, ops::Range};

/// Entries that are merged in the time of one block looked at in vain: 100 us with two threads at
/// one device, at 0.2 us an entry.
const ENTRIES_A_BLOCK: u64 = 500;
/// Deletes that are passed over in the time of merging one entry.
const DELETES_AN_ENTRY: u64 = 2;
/// The base takes part if the layers have this part of its bytes.
const BASE_DIVISOR: u64 = 4;
/// Deletes may be this part of a partition's entries.
const DELETES_DIVISOR: u64 = 4;
/// Dead bytes may be this part of the live ones while runs come, and when they rest.
const DEAD_DIVISOR: u64 = 2;
const DEAD_AT_REST_DIVISOR: u64 = 8;
/// The same of one partition, when somebody asked for all space.
const DEAD_WHEN_ASKED_DIVISOR: u64 = 16;
/// Layers are of like size if the largest has at most so many times the bytes of the smallest:
/// while runs come, and when they rest.
const LIKE: u64 = 3;
const LIKE_AT_REST: u64 = 8;
/// Layers that are smaller than this part of a partition count as if they were as large.
const SMALL_DIVISOR: u64 = 64;
/// A step merges at most so many times [`Limits::partition_bytes`].
const LARGEST_STEP: u64 = 4;
/// A tree may have so many partitions, and twice those that its bytes make.
const MANY_PARTITIONS: u64 = 16;
/// Fewer neighbours are not worth a merge of their own.
const FEWEST_NEIGHBOURS: usize = 4;
/// A base may have so many tables, and twice those that its bytes make.
const MANY_TABLES: u64 = 64;

/// What bounds a step and the layers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// What a partition should have, and a table at most.
    pub(crate) partition_bytes: u64,
    /// Layers that are merged whatever reads do.
    pub(crate) most_layers: usize,
    /// Layers with which runs should wait.
    pub(crate) congested_layers: usize,
}

impl Limits {
    pub(crate) fn new(partition_bytes: u64) -> Self {
        Self {
            partition_bytes: partition_bytes.max(1),
            most_layers: 8,
            congested_layers: 24,
        }
    }

    /// Whether runs should wait, when a partition has so many layers.
    pub(crate) fn congested(&self, layers: usize) -> bool {
        layers >= self.congested_layers
    }
}

/// How much to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Runs come.
    Busy,
    /// No run for some seconds: nobody waits for the processor.
    Quiet,
    /// Until nothing is left that takes space in vain.
    Thorough,
}

/// A partition as the policy sees it.
#[derive(Debug, Clone, Default)]
pub(crate) struct PartitionShape {
    pub(crate) base: Slice,
    pub(crate) base_tables: usize,
    /// Newest first.
    pub(crate) layers: Vec<Slice>,
    /// Blocks that reads looked into in vain.
    pub(crate) wasted: u64,
    /// Deletes that reads passed over.
    pub(crate) skipped: u64,
    /// Its share of the dead bytes of the tables of its base, and of its layers.
    pub(crate) dead_base: u64,
    pub(crate) dead_layers: u64,
    /// Something of the base cannot be read.
    pub(crate) damaged_base: bool,
    /// Layers of which something cannot be read, ascending.
    pub(crate) damaged_layers: Vec<usize>,
    /// Not asked for: nothing is due in it.
    pub(crate) outside: bool,
}

/// A tree as the policy sees it.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) partitions: Vec<PartitionShape>,
    pub(crate) effort: Effort,
    pub(crate) limits: Limits,
}

impl Shape {
    /// The same, as if nothing were due outside of `partitions`.
    pub(crate) fn within(mut self, partitions: &Range<usize>) -> Self {
        for (i, partition) in self.partitions.iter_mut().enumerate() {
            if !partitions.contains(&i) {
                *partition = PartitionShape {
                    outside: true,
                    ..PartitionShape::default()
                };
            }
        }
        self
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing is due.
    Rest,
    /// Merge all layers and the bases of these partitions.
    Major(Range<usize>),
    /// Merge these layers of a partition.
    Minor(usize, Range<usize>),
    /// Cut a partition about its middle. If that cannot be, merge these layers of it, or else all
    /// of it.
    Cut(usize, Option<Range<usize>>),
}

/// The next step.
pub(crate) fn next(shape: &Shape) -> Step {
    let partitions = shape.partitions.iter().enumerate();
    // Those that are worst first: reads look into the most layers there.
    let due = partitions.filter_map(|(i, p)| Some((p, i, p.possible(p.due(shape)?)?)));
    let first = due.max_by_key(|(p, i, _)| (p.layers.len(), p.paid(), Reverse(*i)));
    if let Some((partition, i, merge)) = first {
        return partition.step(i, merge, shape);
    }
    if let Some(step) = neighbours(shape) {
        return step;
    }
    dead(shape).unwrap_or(Step::Rest)
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Merge {
    Major,
    Minor(Range<usize>),
}

impl PartitionShape {
    fn all(&self) -> Slice {
        sum(self.layers.iter().chain([&self.base]))
    }

    fn is_damaged(&self) -> bool {
        self.damaged_base || !self.damaged_layers.is_empty()
    }

    /// What can be merged instead of `merge`, for what is damaged.
    fn possible(&self, merge: Merge) -> Option<Merge> {
        let damaged = |layers: &Range<usize>| {
            let mut damaged = self.damaged_layers.iter();
            damaged.any(|layer| layers.contains(layer))
        };
        let impossible = match &merge {
            Merge::Major => self.is_damaged(),
            Merge::Minor(layers) => damaged(layers),
        };
        if !impossible {
            return Some(merge);
        }
        // The most layers between two damaged ones.
        let ends = self.damaged_layers.iter().copied();
        let mut start = 0;
        let between = ends.chain([self.layers.len()]).map(|end| {
            let layers = start..end;
            start = end + 1;
            layers
        });
        let most = between.max_by_key(|layers| (layers.len(), Reverse(layers.start)))?;
        (most.len() > 1).then_some(Merge::Minor(most))
    }

    fn paid(&self) -> u64 {
        let blocks = self.wasted.saturating_mul(ENTRIES_A_BLOCK);
        blocks.saturating_add(self.skipped / DELETES_AN_ENTRY)
    }

    /// What to merge, if anything is due.
    fn due(&self, shape: &Shape) -> Option<Merge> {
        let all = self.all();
        if all.deletes * DELETES_DIVISOR > all.entries {
            return Some(Merge::Major);
        }
        let base_tables = self.base.bytes / shape.limits.partition_bytes;
        if self.base_tables as u64 > MANY_TABLES + 2 * base_tables {
            return Some(Merge::Major);
        }
        if self.layers.len() >= shape.limits.most_layers.max(2) {
            let merge = self.merge(shape);
            return Some(merge.unwrap_or(Merge::Minor(0..self.layers.len())));
        }
        match shape.effort {
            Effort::Thorough => {
                let dead = self.dead_base + self.dead_layers;
                let dead = dead > all.bytes / DEAD_WHEN_ASKED_DIVISOR;
                let useless = dead || all.deletes > 0 || !self.layers.is_empty();
                useless.then_some(Merge::Major)
            }
            Effort::Quiet => self.merge(shape),
            Effort::Busy => None,
        }
        .or_else(|| self.paid_for(shape))
    }

    /// What reads have paid for.
    fn paid_for(&self, shape: &Shape) -> Option<Merge> {
        let paid = self.paid();
        if paid == 0 || (self.layers.is_empty() && self.all().deletes == 0) {
            return None;
        }
        let merge = self.merge(shape).unwrap_or(Merge::Major);
        (paid >= self.read_by(&merge).entries).then_some(merge)
    }

    /// What to merge of the layers: with the base, if they are large enough for that, else among
    /// themselves, if there are two of like size.
    fn merge(&self, shape: &Shape) -> Option<Merge> {
        let layers = sum(&self.layers);
        if !self.layers.is_empty() && layers.bytes >= self.base.bytes / BASE_DIVISOR {
            return Some(Merge::Major);
        }
        self.of_like_size(shape).map(Merge::Minor)
    }

    /// The most neighbouring layers of like size, two at least.
    fn of_like_size(&self, shape: &Shape) -> Option<Range<usize>> {
        let times = match shape.effort {
            Effort::Busy => LIKE,
            Effort::Quiet | Effort::Thorough => LIKE_AT_REST,
        };
        let small = shape.limits.partition_bytes / SMALL_DIVISOR;
        let mut best: Option<Range<usize>> = None;
        for start in 0..self.layers.len() {
            let (mut least, mut most) = (u64::MAX, 0);
            let like = |layer: &&Slice| {
                least = least.min(layer.bytes.max(small));
                most = most.max(layer.bytes);
                most <= least.saturating_mul(times)
            };
            let run = self.layers.iter().skip(start).take_while(like).count();
            if run > best.as_ref().map_or(1, Range::len) {
                best = Some(start..start + run);
            }
        }
        best
    }

    fn read_by(&self, merge: &Merge) -> Slice {
        match merge {
            Merge::Major => self.all(),
            Merge::Minor(layers) => sum(self.layers.get(layers.clone()).unwrap_or_default()),
        }
    }

    fn step(&self, i: usize, merge: Merge, shape: &Shape) -> Step {
        let most = shape.limits.partition_bytes.saturating_mul(LARGEST_STEP);
        if self.read_by(&merge).bytes > most {
            let layers = match merge {
                Merge::Minor(layers) if self.is_damaged() => Some(layers),
                _ => None,
            };
            return Step::Cut(i, layers);
        }
        match merge {
            Merge::Major => Step::Major(i..i + 1),
            Merge::Minor(layers) => Step::Minor(i, layers),
        }
    }
}

/// Small neighbours, if there are too many partitions for what they have.
fn neighbours(shape: &Shape) -> Option<Step> {
    let limit = shape.limits.partition_bytes;
    let all = shape.partitions.iter().map(|p| p.all().bytes).sum::<u64>();
    let enough = MANY_PARTITIONS + 2 * (all / limit);
    let inside = shape.partitions.iter().filter(|p| !p.outside).count();
    if inside as u64 <= enough {
        return None;
    }
    // What is damaged or outside is no neighbour of anything.
    let bytes = |p: &PartitionShape| match p.is_damaged() || p.outside {
        true => limit + 1,
        false => p.all().bytes,
    };
    let bytes: Vec<u64> = shape.partitions.iter().map(bytes).collect();
    let mut best = 0..0;
    let (mut start, mut inside) = (0, 0);
    for (end, added) in bytes.iter().enumerate() {
        inside += added;
        while inside > limit {
            inside -= bytes.get(start).copied().unwrap_or(inside);
            start += 1;
        }
        if end + 1 - start > best.len() {
            best = start..end + 1;
        }
    }
    (best.len() >= FEWEST_NEIGHBOURS).then_some(Step::Major(best))
}

/// The partition whose merge frees the most dead bytes for what it costs, if there are too many.
fn dead(shape: &Shape) -> Option<Step> {
    let partitions = &shape.partitions;
    let live: u64 = partitions.iter().map(|p| p.all().bytes).sum();
    let dead = partitions.iter().map(|p| p.dead_base + p.dead_layers);
    let divisor = match shape.effort {
        Effort::Busy => DEAD_DIVISOR,
        Effort::Quiet | Effort::Thorough => DEAD_AT_REST_DIVISOR,
    };
    if dead.sum::<u64>() <= live / divisor {
        return None;
    }
    let merge = |p: &PartitionShape| {
        let minor = || Merge::Minor(0..p.layers.len());
        let major = p.dead_base >= p.dead_layers || p.merge(shape) == Some(Merge::Major);
        let merge = if major { Merge::Major } else { minor() };
        (p.possible(merge.clone())? == merge).then_some(merge)
    };
    let worth = |p: &PartitionShape| {
        let Some(merge) = merge(p) else {
            return 0;
        };
        let (freed, cost) = (p.dead_base + p.dead_layers, p.read_by(&merge).bytes);
        u128::from(freed) * 1_000_000 / u128::from(cost.max(1))
    };
    let all = partitions.iter().enumerate();
    let (i, best) = all.max_by_key(|(i, p)| (worth(p), Reverse(*i)))?;
    let merge = merge(best).filter(|_| worth(best) > 0)?;
    Some(best.step(i, merge, shape))
}
