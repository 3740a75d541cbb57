//! A piece of a range: some entries of one leaf, and where the rest begins.

use super::search::{CachedPages, Root, Route};
use crate::{
    error::Result,
    x::Order,
    y::page::{
        PageSource,
        build::{self, Bound, Entry},
        node::Node,
    },
};

/// Entries taken from a leaf at a time: more than most scans want, and few beside a large page's.
const CHUNK_ENTRIES: usize = 64;

/// A range of keys, read from the end that `order` says.
#[derive(Clone, Copy)]
pub(crate) struct Span<'a> {
    pub(crate) from: &'a [u8],
    pub(crate) to: Option<&'a [u8]>,
    pub(crate) order: Order,
}

/// Some entries of a leaf.
#[derive(Default)]
pub(crate) struct Chunk {
    /// In the asked order.
    pub(crate) entries: Vec<Entry>,
    /// What is left begins (descending: ends) at this key; `None`: nothing is left in the tree.
    pub(crate) rest: Option<Vec<u8>>,
}

impl<S: PageSource> CachedPages<S> {
    /// The first entries of `span` under `root`; perhaps none, though there are more.
    pub(crate) fn chunk(&self, root: &Root, span: Span<'_>) -> Result<Chunk> {
        let mut route = Edge {
            file: &self.file,
            span,
            behind: None,
        };
        let found = self.at_leaf(root, &mut route, |leaf| self.chunk_of(leaf, span))?;
        let (mut entries, rest) = found.unwrap_or_default();
        if span.order == Order::Descending {
            entries.reverse();
        }
        // Read outside of the pool's guard.
        let rest = rest
            .or(route.behind)
            .map(|key| key.whole(&|far| self.file.fetch(far)))
            .transpose()?;
        Ok(Chunk { entries, rest })
    }

    /// What a leaf has of the range, ascending, no more than a chunk, and the key behind it if that
    /// is in the leaf; `None` inside if it makes no sense.
    fn chunk_of(
        &self,
        leaf: &Node<'_>,
        span: Span<'_>,
    ) -> Result<Option<(Vec<Entry>, Option<Bound>)>> {
        let fetch = |far| self.file.fetch(far);
        let to = match span.to {
            None => Some((leaf.keys(), false)),
            Some(to) => leaf.search(to, &fetch)?,
        };
        let (Some((start, _)), Some((end, _))) = (leaf.search(span.from, &fetch)?, to) else {
            return Ok(None);
        };
        let (within, rest) = match span.order {
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
        Ok(Some((entries, rest)))
    }
}

/// To the first leaf of a range in its order; remembers where that leaf ends.
struct Edge<'a, S> {
    file: &'a S,
    span: Span<'a>,
    behind: Option<Bound>,
}

impl<S: PageSource> Route for Edge<'_, S> {
    /// Each leaf of a range is read once or, as ranges come in pieces, twice at once: that tells
    /// nothing.
    const KEEPS_LEAVES: bool = false;

    fn child(&mut self, node: &Node<'_>) -> Result<Option<usize>> {
        let fetch = |far| self.file.fetch(far);
        let (child, bound) = match (self.span.order, self.span.to) {
            (Order::Ascending, _) => {
                let child = node.child_for(self.span.from, &fetch)?;
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
