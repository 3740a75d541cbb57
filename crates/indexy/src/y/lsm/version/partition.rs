//! One partition of the key space, what it has, and what reads paid for it.
//!
//! Immutable but for the counters of reads, which successors share until a merge: any thread may
//! count.

#![forbid(unsafe_code)]

use super::facts::{Estimate, TableFile};
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// See the module of the folder.
pub(crate) struct Partition<T> {
    /// The lowest key.
    pub(crate) from: Box<[u8]>,
    /// Where the next partition begins.
    pub(crate) to: Option<Box<[u8]>>,
    /// Ascending, not overlapping.
    pub(crate) base: Vec<Arc<T>>,
    /// Newest first.
    pub(crate) layers: Vec<Arc<T>>,
    reads: Arc<Reads>,
    weights: OnceLock<Weights>,
}

/// What reads have paid since the partition was merged last.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    wasted: AtomicU64,
    skipped: AtomicU64,
}

impl Reads {
    /// A read looked into `blocks` of this partition in vain.
    pub(crate) fn waste(&self, blocks: u64) {
        self.wasted.fetch_add(blocks, Relaxed);
    }

    /// A read passed over `deletes` of this partition.
    pub(crate) fn skip(&self, deletes: u64) {
        self.skipped.fetch_add(deletes, Relaxed);
    }

    /// Nothing was paid.
    fn are_free(&self) -> bool {
        self.wasted() == 0 && self.skipped() == 0
    }

    pub(crate) fn wasted(&self) -> u64 {
        self.wasted.load(Relaxed)
    }

    pub(crate) fn skipped(&self) -> u64 {
        self.skipped.load(Relaxed)
    }
}

/// How much lies in the slice of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) entries: u64,
    pub(crate) deletes: u64,
    pub(crate) bytes: u64,
}

/// How much lies in a partition, roughly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Weights {
    pub(crate) base: Vec<Slice>,
    /// Newest first.
    pub(crate) layers: Vec<Slice>,
}

impl Weights {
    pub(crate) fn all(&self) -> Slice {
        sum(self.base.iter().chain(&self.layers))
    }
}

pub(crate) fn sum<'s>(slices: impl IntoIterator<Item = &'s Slice>) -> Slice {
    slices
        .into_iter()
        .fold(Slice::default(), |sum, slice| Slice {
            entries: sum.entries + slice.entries,
            deletes: sum.deletes + slice.deletes,
            bytes: sum.bytes + slice.bytes,
        })
}

/// Whether the two have a key in common, judged by their ends.
pub(super) fn overlap<T: TableFile>(one: &T, other: &T) -> bool {
    let (one, other) = (one.facts(), other.facts());
    one.min <= other.max && other.min <= one.max
}

pub(super) fn is_in<T>(table: &Arc<T>, tables: &[Arc<T>]) -> bool {
    tables.iter().any(|other| Arc::ptr_eq(table, other))
}

impl<T> Partition<T> {
    pub(crate) fn new(from: Box<[u8]>, to: Option<Box<[u8]>>) -> Self {
        Self {
            from,
            to,
            base: Vec::new(),
            layers: Vec::new(),
            reads: Arc::default(),
            weights: OnceLock::new(),
        }
    }

    /// The same bounds with other tables, and nothing paid.
    pub(super) fn with(&self, base: Vec<Arc<T>>, layers: Vec<Arc<T>>) -> Self {
        Self {
            base,
            layers,
            ..Self::new(self.from.clone(), self.to.clone())
        }
    }

    /// A successor of this partition: reads that still use this one count for it, too.
    pub(super) fn heir_of(mut self, before: &Self) -> Self {
        self.reads = Arc::clone(&before.reads);
        self
    }

    /// Begins with what these have paid.
    pub(super) fn paid_by(self, wasted: u64, skipped: u64) -> Self {
        self.reads.waste(wasted);
        self.reads.skip(skipped);
        self
    }

    pub(crate) fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Tables that a read may have to look into, of those that lie over one another.
    pub(crate) fn depth(&self) -> usize {
        self.layers.len() + usize::from(!self.base.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.base.is_empty() && self.layers.is_empty()
    }

    /// All tables, newest first.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<T>> {
        self.layers.iter().chain(&self.base)
    }

    /// What it takes in memory, without the tables, and the pointer to it.
    pub(super) fn memory_bytes(&self) -> usize {
        let tables = self.base.capacity() + self.layers.capacity();
        let keys = self.from.len() + self.to.as_deref().map_or(0, <[u8]>::len);
        size_of::<Self>()
            + size_of::<Arc<Self>>()
            + size_of::<Reads>()
            + keys
            + tables * (size_of::<Arc<T>>() + size_of::<Slice>())
    }

    /// Whether the partition ends at `to` or before.
    pub(super) fn ends_by(&self, to: Option<&[u8]>) -> bool {
        match (self.to.as_deref(), to) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(end), Some(to)) => end <= to,
        }
    }
}

impl<T: TableFile> Partition<T> {
    /// The table of the base that may have `key`.
    pub(crate) fn base_for(&self, key: &[u8]) -> Option<&Arc<T>> {
        let next = self.base.partition_point(|t| *t.facts().min <= *key);
        let table = self.base.get(next.checked_sub(1)?)?;
        (*key <= *table.facts().max).then_some(table)
    }

    /// The tables that may have `key`, newest first.
    #[cfg(test)]
    pub(crate) fn tables_for<'p>(&'p self, key: &'p [u8]) -> impl Iterator<Item = &'p Arc<T>> {
        let layers = self.layers.iter().filter(move |table| {
            let facts = table.facts();
            *facts.min <= *key && *key <= *facts.max
        });
        layers.chain(self.base_for(key))
    }

    pub(super) fn overlaps(&self, table: &T) -> bool {
        let facts = table.facts();
        *self.from <= *facts.max && self.to.as_deref().is_none_or(|to| *facts.min < *to)
    }

    /// Whether all of `table` lies inside.
    fn covers(&self, table: &T) -> bool {
        let facts = table.facts();
        *self.from <= *facts.min && self.to.as_deref().is_none_or(|to| *facts.max < *to)
    }

    fn slice(&self, table: &T) -> Slice {
        let facts = table.facts();
        if self.covers(table) {
            return Slice {
                entries: facts.entries,
                deletes: facts.deletes,
                bytes: facts.bytes(),
            };
        }
        let Estimate { entries, bytes } = table.estimate(&self.from, self.to.as_deref());
        let entries = entries.min(facts.entries);
        let share = u128::from(facts.deletes) * u128::from(entries);
        Slice {
            entries,
            deletes: (share / u128::from(facts.entries.max(1))) as u64,
            bytes: bytes.min(facts.bytes()),
        }
    }

    /// What each table has inside the bounds. Computed once.
    pub(crate) fn weights(&self) -> &Weights {
        let of = |tables: &[Arc<T>]| tables.iter().map(|t| self.slice(t)).collect();
        self.weights.get_or_init(|| Weights {
            base: of(&self.base),
            layers: of(&self.layers),
        })
    }

    /// The part of this partition in `[from, to)`, which lies inside it. It begins with its share
    /// of what reads have paid.
    pub(super) fn part(&self, from: &[u8], to: Option<&[u8]>) -> Self {
        let mut part = Self::new(from.into(), to.map(Into::into));
        let base = (self.base.iter()).skip(self.base.partition_point(|t| *t.facts().max < *from));
        let base = base.take_while(|table| part.overlaps(table)).cloned();
        let layers = self.layers.iter().filter(|table| part.overlaps(table));
        (part.base, part.layers) = (base.collect(), layers.cloned().collect());
        if self.reads.are_free() {
            return part;
        }
        let (some, all) = (part.weights().all().entries, self.weights().all().entries);
        let share = |paid: u64| {
            let share = u128::from(paid) * u128::from(some) / u128::from(all.max(1));
            u64::try_from(share).unwrap_or(paid)
        };
        let (wasted, skipped) = (share(self.reads.wasted()), share(self.reads.skipped()));
        part.paid_by(wasted, skipped)
    }
}
