//! Ranges: a chunk of entries of one leaf at a time, from the newest version each time.
//!
//! An open iterator pins nothing between two chunks, and within one only while it has large values
//! to read. It is no snapshot: of a run that is published meanwhile it may see the part that lies
//! ahead. Each key comes once, in order: a leaf's bounds, or the next key in it, say where to go
//! on, whatever the leaves are by then.

use super::search::Route;
use crate::{
    error::Result,
    key::{Key, Value},
    x::Order,
    y::paged::{
        page::{
            build::{self, Bound, Content, Entry},
            node::Node,
        },
        tree::PagedY,
        version::Version,
    },
};
use std::{collections::VecDeque, sync::Arc};

/// Entries taken from a leaf at a time: more than most scans want, and few beside a large page's.
const CHUNK_ENTRIES: usize = 64;

pub(crate) struct Cursor<'y> {
    y: &'y PagedY,
    order: Order,
    /// What is left of the range.
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    done: bool,
    /// Entries of the present chunk, in the asked order.
    ready: VecDeque<Entry>,
    /// Keeps the large values of `ready`.
    version: Option<Arc<Version>>,
}

/// Some entries of a leaf, ascending.
#[derive(Default)]
struct Chunk {
    entries: Vec<Entry>,
    /// The key at which what the leaf has besides begins; descending, ends.
    rest: Option<Bound>,
}

impl<'y> Cursor<'y> {
    pub(crate) fn new(y: &'y PagedY, from: &[u8], to: Option<&[u8]>, order: Order) -> Self {
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

    /// Takes the next chunk.
    fn advance(&mut self) -> Result<()> {
        let version = self.y.version.load_full();
        let mut route = Edge {
            y: self.y,
            order: self.order,
            from: &self.from,
            to: self.to.as_deref(),
            behind: None,
        };
        let chunk = self
            .y
            .at_leaf(&version, &mut route, |leaf| self.chunk_of(leaf))?;
        let behind = route.behind.take();
        let Chunk { mut entries, rest } = chunk.unwrap_or_default();
        if self.order == Order::Descending {
            entries.reverse();
        }
        // Read now that the guard of the pool has been left; the version keeps its chain.
        let stop = rest.or(behind);
        let stop = stop
            .map(|key| key.whole(&|far| self.y.fetch(far)))
            .transpose()?;
        self.ready = entries.into();
        let far = |e: &Entry| matches!(e.value, Content::Far(_)) || e.key.far.is_some();
        let pinned = self.ready.iter().any(far);
        self.version = pinned.then_some(version);
        self.shorten(stop);
        Ok(())
    }

    /// What a leaf has of the range, no more than a chunk; `None` inside if it makes no sense.
    fn chunk_of(&self, leaf: &Node<'_>) -> Result<Option<Chunk>> {
        let fetch = |far| self.y.fetch(far);
        let to = match &self.to {
            None => Some((leaf.keys(), false)),
            Some(to) => leaf.search(to, &fetch)?,
        };
        let (Some((start, _)), Some((end, _))) = (leaf.search(&self.from, &fetch)?, to) else {
            return Ok(None);
        };
        let (within, rest) = match self.order {
            Order::Ascending => {
                let stop = end.min(start + CHUNK_ENTRIES);
                (start..stop, (stop < end).then_some(stop))
            }
            Order::Descending => {
                let stop = start.max(end.saturating_sub(CHUNK_ENTRIES));
                (stop..end, (stop > start).then_some(stop))
            }
        };
        let Some(entries) = build::entries_within(leaf, within) else {
            return Ok(None);
        };
        let rest = match rest.map(|i| build::bound(leaf, i, &mut Vec::new())) {
            None => None,
            Some(None) => return Ok(None),
            rest => rest.flatten(),
        };
        Ok(Some(Chunk { entries, rest }))
    }

    /// The range goes on behind what ended at `behind`.
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

    fn size_hint(&self) -> (usize, Option<usize>) {
        // Keys and values in chains are still to be read.
        match self.version {
            None => (self.ready.len(), None),
            Some(_) => (0, None),
        }
    }
}

/// To the first leaf of a range in its order; remembers where that leaf ends.
struct Edge<'a> {
    y: &'a PagedY,
    order: Order,
    from: &'a [u8],
    to: Option<&'a [u8]>,
    behind: Option<Bound>,
}

impl Route for Edge<'_> {
    /// Each leaf of a range is read once or, as ranges come in pieces, twice at once: that tells
    /// nothing.
    const KEEPS_LEAVES: bool = false;

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
        // A page nearer to the leaf knows its end better; one at the edge of its parent does not
        // know it.
        if let Some(key) = bound.and_then(|i| build::bound(node, i, &mut Vec::new())) {
            self.behind = Some(key);
        }
        Ok(child)
    }
}
