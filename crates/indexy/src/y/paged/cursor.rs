//! Ranges: a leaf at a time, found anew from the newest version each time.
//!
//! So an open iterator pins nothing between two leaves (and within one only while it has large values to read). It
//! is no snapshot: of a run that is published meanwhile it may see what lies ahead of it. Each key comes once, in order,
//! because a leaf's bounds say where to go on, whatever the leaves are by then.

use super::{
    PagedY,
    build::{self, Content, Entry},
    node::Node,
    search::Route,
    version::Version,
};
use crate::{
    error::Result,
    key::{Key, Value},
    x::Order,
};
use std::{cmp::Ordering, collections::VecDeque, sync::Arc};

pub(super) struct Cursor<'y> {
    y: &'y PagedY,
    order: Order,
    /// What is left of the range.
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    done: bool,
    /// Entries of the present leaf, in the asked order.
    ready: VecDeque<Entry>,
    /// Keeps the large values of `ready`.
    version: Option<Arc<Version>>,
}

impl<'y> Cursor<'y> {
    pub(super) fn new(y: &'y PagedY, from: &[u8], to: Option<&[u8]>, order: Order) -> Self {
        Self {
            y,
            order,
            from: from.to_vec(),
            to: to.map(<[u8]>::to_vec),
            done: to.is_some_and(|to| from >= to),
            ready: VecDeque::new(),
            version: None,
        }
    }

    /// Takes the entries of the next leaf.
    fn advance(&mut self) -> Result<()> {
        let version = self.y.version.load_full();
        let mut route = Edge {
            y: self.y,
            order: self.order,
            from: &self.from,
            to: self.to.as_deref(),
            behind: None,
        };
        let (from, to) = (&self.from[..], self.to.as_deref());
        let entries = self.y.at_leaf(&version, &mut route, |leaf| {
            self.y.entries_between(leaf, from, to)
        })?;
        let behind = route.behind.take();
        let mut entries = entries.unwrap_or_default();
        if self.order == Order::Descending {
            entries.reverse();
        }
        self.ready = entries.into();
        let far = |e: &Entry| matches!(e.value, Content::Far(_)) || e.key.far.is_some();
        let pinned = self.ready.iter().any(far);
        self.version = pinned.then_some(version);
        self.shorten(behind);
        Ok(())
    }

    /// The range goes on behind the leaf that ended at `behind`.
    fn shorten(&mut self, behind: Option<Vec<u8>>) {
        let inside = behind.filter(|at| {
            let before = self.to.as_ref().is_none_or(|to| at < to);
            at > &self.from && before
        });
        match (inside, self.order) {
            (None, _) => self.done = true,
            (Some(at), Order::Ascending) => self.from = at,
            (Some(at), Order::Descending) => self.to = Some(at),
        }
    }

    fn resolve(&self, entry: Entry) -> Result<(Key, Value)> {
        let key = match entry.key.far {
            Some(far) => self.y.fetch(far)?.into(),
            None => entry.key.stub,
        };
        let value = match entry.value {
            Content::Near(value) => value,
            Content::Far(far) => self.y.fetch(far)?.into(),
        };
        Ok((key, value))
    }
}

impl Iterator for Cursor<'_> {
    type Item = Result<(Key, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                let resolved = self.resolve(entry);
                if self.ready.is_empty() {
                    self.version = None;
                }
                return Some(resolved);
            }
            if self.done {
                return None;
            }
            if let Err(error) = self.advance() {
                self.done = true;
                return Some(Err(error));
            }
        }
    }
}

/// To the first leaf of a range in its order; remembers where that leaf ends.
struct Edge<'a> {
    y: &'a PagedY,
    order: Order,
    from: &'a [u8],
    to: Option<&'a [u8]>,
    behind: Option<Vec<u8>>,
}

impl Route for Edge<'_> {
    fn child(&mut self, node: &Node<'_>) -> Result<Option<usize>> {
        let fetch = |far| self.y.fetch(far);
        let (child, bound) = match (self.order, self.to) {
            (Order::Ascending, _) => {
                let child = node.child_for(self.from, &fetch)?;
                (child, child)
            }
            (Order::Descending, Some(to)) => {
                let child = node.search(to, &fetch)?.map(|(at, _)| at);
                (child, child.and_then(|i| i.checked_sub(1)))
            }
            (Order::Descending, None) => (Some(node.keys()), node.keys().checked_sub(1)),
        };
        // A page nearer to the leaf knows its end better; one at the edge of its parent does not know it.
        if let Some(key) = bound.and_then(|i| node.key(i)) {
            self.behind = Some(key.whole(&fetch)?);
        }
        Ok(child)
    }
}

impl PagedY {
    /// Entries of a leaf in `[from, to)`; `None` inside if it makes no sense.
    fn entries_between(
        &self,
        leaf: &Node<'_>,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> Result<Option<Vec<Entry>>> {
        let Some(mut entries) = build::entries(leaf) else {
            return Ok(None);
        };
        let end = to.map_or(Ok(entries.len()), |to| self.below(&entries, to))?;
        entries.truncate(end);
        let start = self.below(&entries, from)?;
        entries.drain(..start);
        Ok(Some(entries))
    }

    /// How many of `entries`, which ascend, have keys below `key`. Compares few: where the first bytes of a long key do not
    /// decide, its pages are read.
    fn below(&self, entries: &[Entry], key: &[u8]) -> Result<usize> {
        let (mut start, mut end) = (0, entries.len());
        while start < end {
            let middle = start.midpoint(end);
            match entries[middle].key.compare(key, &|far| self.fetch(far))? {
                Ordering::Less => start = middle + 1,
                _ => end = middle,
            }
        }
        Ok(start)
    }
}
