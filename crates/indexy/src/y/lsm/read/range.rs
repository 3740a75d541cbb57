//! Ranges: the tables of one partition after the other, merged; the newest entry of a key wins.
//!
//! An open range pins its version, and so the files of its tables. It takes a chunk of a leaf from
//! each table at a time, and no leaf before an entry of it may be next. Deletes are passed over and
//! counted, so that the partition is merged when that is worth it.

use crate::{
    error::Result,
    key::{Key, Value},
    x::Order,
    y::{
        lsm::{
            stored::Stored,
            tree::LsmY,
            version::{Partition, Version},
        },
        page::{
            PageSource,
            build::{Content, Entry},
        },
        pool::chunk::Span,
    },
};
use std::{cmp::Ordering, sync::Arc, vec::IntoIter};

/// See the module header.
pub(crate) struct Range {
    version: Arc<Version<Stored>>,
    order: Order,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    /// Partitions that are still to come.
    left: std::ops::Range<usize>,
    partition: Option<Arc<Partition<Stored>>>,
    /// Newest first.
    sources: Vec<Source>,
    /// Deletes passed over in the present partition.
    skipped: u64,
    done: bool,
}

/// Tables that do not overlap: a layer, or a base.
struct Source {
    /// In the order of the range; those before `at` are done.
    tables: Vec<Arc<Stored>>,
    at: usize,
    /// What is left of the range in the present table.
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    ready: IntoIter<Entry>,
    head: Option<Head>,
    /// The chunk has deletes, or keys or values that are still to be read.
    uneven: bool,
    /// The chunk is the last one of the present table.
    ended: bool,
}

/// The next entry of a source.
struct Head {
    key: Key,
    value: Content,
}

impl Range {
    pub(crate) fn new(y: &LsmY, from: &[u8], to: Option<&[u8]>, order: Order) -> Self {
        let version = y.version();
        let empty = to.is_some_and(|to| to <= from);
        let first = version.find(from);
        let end = match to {
            // The last partition with a key below `to`.
            Some(to) => {
                let at = version.find(to);
                let begins = version.partitions().get(at).is_some_and(|p| *p.from < *to);
                at + usize::from(begins)
            }
            None => version.partitions().len(),
        };
        Self {
            version,
            order,
            from: from.to_vec(),
            to: to.map(<[u8]>::to_vec),
            left: first..end,
            partition: None,
            sources: Vec::new(),
            skipped: 0,
            done: empty,
        }
    }

    /// The next entry that is not deleted.
    fn next_entry(&mut self) -> Result<Option<(Key, Value)>> {
        loop {
            let Some(first) = self.first_source()? else {
                if !self.next_partition()? {
                    return Ok(None);
                }
                continue;
            };
            let Some(head) = self.sources.get_mut(first).and_then(|s| s.head.take()) else {
                continue;
            };
            // What is older than it is of no use.
            for source in self.sources.iter_mut().skip(first + 1) {
                if source
                    .head
                    .as_ref()
                    .is_some_and(|other| other.key == head.key)
                {
                    source.head = None;
                }
            }
            match self.value_of(first, head.value)? {
                Some(value) => return Ok(Some((head.key, value))),
                None => self.skipped += 1,
            }
        }
    }

    fn value_of(&self, source: usize, value: Content) -> Result<Option<Value>> {
        Ok(match value {
            Content::Near(value) => Some(value),
            Content::Deleted => None,
            Content::Far(far) => match self.sources.get(source).and_then(Source::table) {
                Some(table) => Some(table.table().file().fetch(far)?.into()),
                None => None,
            },
        })
    }

    /// The source whose entry is next, the newest of those with the same key.
    fn first_source(&mut self) -> Result<Option<usize>> {
        let order = self.order;
        let mut first: Option<(usize, &Key)> = None;
        for (i, source) in self.sources.iter_mut().enumerate() {
            source.fill(order)?;
            let Some(head) = &source.head else { continue };
            let sooner = first.is_none_or(|(_, key)| {
                let sooner = match order {
                    Order::Ascending => Ordering::Less,
                    Order::Descending => Ordering::Greater,
                };
                head.key.cmp(key) == sooner
            });
            if sooner {
                first = Some((i, &head.key));
            }
        }
        Ok(first.map(|(i, _)| i))
    }

    /// Goes to the next partition that has tables; false: there is none.
    fn next_partition(&mut self) -> Result<bool> {
        self.count_skipped();
        self.sources.clear();
        while self.sources.is_empty() {
            let next = match self.order {
                Order::Ascending => self.left.next(),
                Order::Descending => self.left.next_back(),
            };
            let Some(partition) = next.and_then(|i| self.version.partitions().get(i)) else {
                return Ok(false);
            };
            self.open(&Arc::clone(partition));
        }
        Ok(true)
    }

    fn open(&mut self, partition: &Arc<Partition<Stored>>) {
        let from = std::cmp::max(&*self.from, &*partition.from);
        let to = match (self.to.as_deref(), partition.to.as_deref()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let within = |table: &&Arc<Stored>| {
            let meta = table.table().meta();
            *from <= *meta.max && to.is_none_or(|to| *meta.min < *to)
        };
        let source = |tables: Vec<Arc<Stored>>| Source {
            tables,
            at: 0,
            from: from.to_vec(),
            to: to.map(<[u8]>::to_vec),
            ready: Vec::new().into_iter(),
            head: None,
            uneven: false,
            ended: false,
        };
        let layers = partition.layers.iter().filter(within);
        let mut sources: Vec<Source> = layers
            .map(|table| source(vec![Arc::clone(table)]))
            .collect();
        let mut base: Vec<_> = partition.base.iter().filter(within).cloned().collect();
        if self.order == Order::Descending {
            base.reverse();
        }
        if !base.is_empty() {
            sources.push(source(base));
        }
        self.partition = Some(Arc::clone(partition));
        self.sources = sources;
    }

    fn count_skipped(&mut self) {
        let skipped = std::mem::take(&mut self.skipped);
        if let Some(partition) = self.partition.take()
            && skipped > 0
        {
            partition.reads().skip(skipped);
        }
    }

    /// Entries that come without a read of the device.
    fn at_hand(&self) -> usize {
        match &self.sources[..] {
            [source] if !source.uneven => source.ready.len() + usize::from(source.head.is_some()),
            _ => 0,
        }
    }
}

impl Source {
    fn table(&self) -> Option<&Arc<Stored>> {
        self.tables.get(self.at)
    }

    /// Makes the next entry the head, if there is one.
    fn fill(&mut self, order: Order) -> Result<()> {
        while self.head.is_none() {
            if let Some(entry) = self.ready.next() {
                let key = match (entry.key.far, self.table()) {
                    (Some(far), Some(table)) => table.table().file().fetch(far)?.into(),
                    _ => entry.key.stub,
                };
                self.head = Some(Head {
                    key,
                    value: entry.value,
                });
                return Ok(());
            }
            if !self.next_chunk(order)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Takes the next chunk; false: nothing is left.
    fn next_chunk(&mut self, order: Order) -> Result<bool> {
        if std::mem::take(&mut self.ended) {
            self.at += 1;
        }
        let Some(table) = self.table() else {
            return Ok(false);
        };
        let span = Span {
            from: &self.from,
            to: self.to.as_deref(),
            order,
        };
        let chunk = table.table().chunk(span)?;
        let plain = |e: &Entry| e.key.far.is_none() && matches!(e.value, Content::Near(_));
        self.uneven = !chunk.entries.iter().all(plain);
        self.ready = chunk.entries.into_iter();
        let inside = chunk.rest.filter(|at| {
            let before = self.to.as_ref().is_none_or(|to| at < to);
            *at > self.from && before
        });
        match (inside, order) {
            (None, _) => self.ended = true,
            (Some(at), Order::Ascending) => self.from = at,
            (Some(at), Order::Descending) => self.to = Some(at),
        }
        Ok(true)
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        self.count_skipped();
    }
}

impl Iterator for Range {
    type Item = Result<(Key, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.next_entry().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.at_hand(), None)
    }
}
