//! Ranges: a chunk of entries of one leaf at a time, from the newest version each time.
//!
//! An open iterator pins nothing between two chunks, and within one only while it has large values
//! to read. It is no snapshot: of a run that is published meanwhile it may see the part that lies
//! ahead. Each key comes once, in order: a leaf's bounds, or the next key in it, say where to go
//! on, whatever the leaves are by then.

use crate::{
    error::Result,
    key::{Key, Value},
    x::Order,
    y::{
        page::{
            PageSource,
            build::{Content, Entry},
        },
        paged::{tree::PagedY, version::Version},
        pool::chunk::{Chunk, Span},
    },
};
use std::{collections::VecDeque, sync::Arc};

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
        let span = Span {
            from: &self.from,
            to: self.to.as_deref(),
            order: self.order,
        };
        let Chunk { entries, rest } = self.y.pages.chunk(&version.root, span)?;
        self.ready = entries.into();
        let far = |e: &Entry| matches!(e.value, Content::Far(_)) || e.key.far.is_some();
        let pinned = self.ready.iter().any(far);
        self.version = pinned.then_some(version);
        self.shorten(rest);
        Ok(())
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
            Some(far) => self.y.pages.file.fetch(far)?.into(),
            None => entry.key.stub,
        };
        let value = match entry.value {
            Content::Near(value) => value,
            Content::Far(far) => self.y.pages.file.fetch_value(far)?,
            Content::Deleted => return Err(self.y.pages.file.corrupt(0, "it holds a delete")),
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
        // Keys and values that are not in the leaf are still to be read.
        match self.version {
            None => (self.ready.len(), None),
            Some(_) => (0, None),
        }
    }
}
