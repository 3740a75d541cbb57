//! Merges the runs of a snapshot into one stream of live entries, in either order.
//!
//! One cursor a run; the smallest (largest) key goes first, and of equal keys only the entry
//! with the highest sequence number counts. Runs are few (below twenty), so the cursors are
//! searched linearly. An error ends the stream.
//! Memory: a block a run, beside the shared cache.

#![forbid(unsafe_code)]

use crate::{
    error::Result,
    key::{Key, Value},
    x::Order,
    y::lsm::{
        engine_calls::contain_decoding,
        keys,
        read::snapshot::{Run, Snapshot},
        table::{
            TableReader,
            cursor::{Bounds, TableCursor},
        },
    },
};
use lsm_tree::{InternalValue, UserKey};
use std::{cmp::Ordering, sync::Arc};

/// Reads one run, opening one table at a time.
struct Cursor {
    /// Tables not yet opened, in the order to read them reversed.
    tables: Vec<Arc<TableReader>>,
    open: Option<TableCursor>,
    head: Option<InternalValue>,
}

/// Live and dead entries of a snapshot; see the module header.
pub(crate) struct Merge {
    cursors: Vec<Cursor>,
    order: Order,
    bounds: Bounds,
    /// The last key that was given. No cursor looks beyond it before it is asked to: that may read.
    given: Option<UserKey>,
    /// Pins the files; also tells when old snapshots are out of use.
    _snapshot: Arc<Snapshot>,
}

impl Merge {
    pub(crate) fn new(snapshot: Arc<Snapshot>, bounds: Bounds, order: Order) -> Self {
        let cursors = snapshot
            .runs
            .iter()
            .map(|run| Cursor {
                tables: tables_between(run, &bounds, order),
                open: None,
                head: None,
            })
            .filter(|cursor| !cursor.tables.is_empty())
            .collect();
        Self {
            cursors,
            order,
            bounds,
            given: None,
            _snapshot: snapshot,
        }
    }

    /// The next key with its newest entry, tombstones included.
    pub(crate) fn next_entry(&mut self) -> Result<Option<InternalValue>> {
        for cursor in &mut self.cursors {
            cursor.pass(self.given.as_ref(), &self.bounds, self.order)?;
        }
        let mut best: Option<usize> = None;
        for (i, cursor) in self.cursors.iter().enumerate() {
            let Some(head) = &cursor.head else { continue };
            let better = match best.and_then(|b| self.cursors[b].head.as_ref()) {
                None => true,
                Some(current) => match (head.key.user_key.cmp(&current.key.user_key), self.order) {
                    (Ordering::Equal, _) => head.key.seqno > current.key.seqno,
                    (ordering, Order::Ascending) => ordering.is_lt(),
                    (ordering, Order::Descending) => ordering.is_gt(),
                },
            };
            if better {
                best = Some(i);
            }
        }
        let newest = best.and_then(|best| self.cursors[best].head.take());
        self.given = newest.as_ref().map(|entry| entry.key.user_key.clone());
        Ok(newest)
    }

    /// The next live entry, as the engine has it.
    pub(crate) fn next_live(&mut self) -> Result<Option<InternalValue>> {
        loop {
            match self.next_entry()? {
                Some(entry) if entry.is_tombstone() => {}
                other => return Ok(other),
            }
        }
    }

    /// Whether the next live entry comes without a read, and surely comes: not told where it is one
    /// of several versions.
    fn at_hand(&self) -> bool {
        let mut first: Option<&InternalValue> = None;
        for cursor in self.cursors.iter().filter(|c| !c.at_end()) {
            let Some(entry) = cursor.at_hand() else {
                return false;
            };
            let key = &entry.key.user_key;
            let order = first.map(|first| match self.order {
                Order::Ascending => key.cmp(&first.key.user_key),
                Order::Descending => first.key.user_key.cmp(key),
            });
            if Some(key) == self.given.as_ref() || order == Some(Ordering::Equal) {
                return false;
            }
            if order.is_none_or(Ordering::is_lt) {
                first = Some(entry);
            }
        }
        first.is_some_and(|entry| !entry.is_tombstone())
    }
}

impl Cursor {
    fn at_end(&self) -> bool {
        self.head.is_none() && self.open.is_none() && self.tables.is_empty()
    }

    /// The next entry, if it comes without a read.
    fn at_hand(&self) -> Option<&InternalValue> {
        let ahead = || self.open.as_ref().and_then(TableCursor::at_hand);
        self.head.as_ref().or_else(ahead)
    }

    /// Brings an entry to the head that is not one of `given`.
    fn pass(&mut self, given: Option<&UserKey>, bounds: &Bounds, order: Order) -> Result<()> {
        loop {
            match &self.head {
                Some(head) if Some(&head.key.user_key) != given => return Ok(()),
                _ => self.advance(bounds, order)?,
            }
            if self.head.is_none() {
                return Ok(());
            }
        }
    }

    fn advance(&mut self, bounds: &Bounds, order: Order) -> Result<()> {
        self.head = None;
        loop {
            if let Some(cursor) = &mut self.open {
                let table = Arc::clone(cursor.table());
                self.head = contain_decoding(table.path(), || cursor.next())?;
                if self.head.is_some() {
                    return Ok(());
                }
                self.open = None;
            }
            let Some(table) = self.tables.pop() else {
                return Ok(());
            };
            let cursor = contain_decoding(table.path(), || {
                Ok(TableCursor::new(Arc::clone(&table), bounds.clone(), order))
            })?;
            self.open = Some(cursor);
        }
    }
}

fn tables_between(run: &Run, bounds: &Bounds, order: Order) -> Vec<Arc<TableReader>> {
    let tables = &run.tables;
    let first = tables.partition_point(|t| t.max() < &*bounds.from);
    let end = match &bounds.to {
        None => tables.len(),
        Some(to) => tables.partition_point(|t| t.min() < &**to),
    };
    let mut between = tables.get(first..end).unwrap_or_default().to_vec();
    if order == Order::Ascending {
        between.reverse();
    }
    between
}

/// Live entries of a range as the contract hands them out.
pub(crate) struct Range {
    merge: Option<Merge>,
}

impl Range {
    pub(crate) fn new(
        snapshot: Arc<Snapshot>,
        from: &[u8],
        to: Option<&[u8]>,
        order: Order,
    ) -> Self {
        let from = keys::stored(from);
        let to = to.map(keys::stored);
        let empty = to.as_ref().is_some_and(|to| *to <= from);
        snapshot.schedule.waste(snapshot.level0.runs as u64);
        let bounds = Bounds {
            from: UserKey::from(&*from),
            to: to.map(|to| UserKey::from(&*to)),
        };
        Self {
            merge: (!empty).then(|| Merge::new(snapshot, bounds, order)),
        }
    }
}

impl Iterator for Range {
    type Item = Result<(Key, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        let merge = self.merge.as_mut()?;
        match merge.next_live() {
            Ok(Some(entry)) => Some(Ok((
                Key::new(keys::original(&entry.key.user_key)),
                Value::new(&entry.value),
            ))),
            Ok(None) => {
                self.merge = None;
                None
            }
            Err(e) => {
                self.merge = None;
                Some(Err(e))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let at_hand = self.merge.as_ref().is_some_and(Merge::at_hand);
        (usize::from(at_hand), None)
    }
}
