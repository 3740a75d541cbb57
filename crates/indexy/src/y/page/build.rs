//! Entries and children in memory, as they come out of nodes, and inner pages made of them.
//!
//! The layout is that of [`node`](super::node). A page is built whole and never changed. Not here:
//! how many fit a page (`filling.rs`), leaves (`leaf_builder.rs`).

use super::{
    Header, Kind, PageNo,
    entry::{FAR_BYTES, FAR_KEY, far_bytes},
    filling::{Element, common_prefix},
    fixed::Lengths,
    node::{EntryAt, Far, Fetch, Node, REFERENCE_BYTES, ValueAt, max_stub},
    put,
    slotted::SlottedWriter,
};
use crate::{
    error::Result,
    key::{Key, Value},
};
use std::{cmp::Ordering, ops::Range};

/// A key as a page holds it: its first bytes and, if that is not all, where all of it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bound {
    pub(crate) stub: Key,
    pub(crate) far: Option<Far>,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Near(Value),
    Far(Far),
    Deleted,
}

/// An entry of a leaf.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Bound,
    pub(crate) value: Content,
}

/// A child of an inner page: no key under it is less than `from`.
#[derive(Clone, Debug)]
pub(crate) struct Child {
    pub(crate) from: Bound,
    pub(crate) page: PageNo,
}

impl Bound {
    pub(crate) fn compare(&self, key: &[u8], fetch: Fetch<'_>) -> Result<Ordering> {
        let Some(far) = self.far else {
            return Ok((*self.stub).cmp(key));
        };
        let common = key.len().min(self.stub.len());
        match self.stub.get(..common).cmp(&key.get(..common)) {
            Ordering::Equal if key.len() <= self.stub.len() => Ok(Ordering::Greater),
            Ordering::Equal => Ok(fetch(far)?.as_slice().cmp(key)),
            other => Ok(other),
        }
    }

    pub(crate) fn whole(&self, fetch: Fetch<'_>) -> Result<Vec<u8>> {
        match self.far {
            Some(far) => fetch(far),
            None => Ok(self.stub.to_vec()),
        }
    }

    /// The stub of `key` in pages of `page_bytes`; all of it if it is short.
    pub(crate) fn stub_of(key: &[u8], page_bytes: usize) -> &[u8] {
        key.get(..max_stub(page_bytes)).unwrap_or(key)
    }
}

impl Element for Entry {
    fn stub(&self) -> &[u8] {
        &self.key.stub
    }

    fn bytes(&self) -> usize {
        self.at().bytes()
    }

    fn lengths(&self) -> Option<Lengths> {
        self.at().lengths()
    }
}

impl Entry {
    /// This entry, borrowed.
    pub(super) fn at(&self) -> EntryAt<'_> {
        EntryAt {
            stub: &self.key.stub,
            far_key: self.key.far,
            value: match &self.value {
                Content::Near(value) => ValueAt::Near(value),
                Content::Far(far) => ValueAt::Far(*far),
                Content::Deleted => ValueAt::Deleted,
            },
        }
    }
}

impl Element for EntryAt<'_> {
    #[inline]
    fn stub(&self) -> &[u8] {
        self.stub
    }

    #[inline]
    fn bytes(&self) -> usize {
        let key = self.far_key.map_or(0, |_| FAR_BYTES);
        let value = match self.value {
            ValueAt::Near(value) => value.len(),
            ValueAt::Far(_) => FAR_BYTES,
            ValueAt::Deleted => 0,
        };
        self.stub.len() + key + value
    }

    #[inline]
    fn lengths(&self) -> Option<Lengths> {
        let value = match self.value {
            ValueAt::Near(value) => Some(value.len()),
            ValueAt::Far(_) => return None,
            ValueAt::Deleted => None,
        };
        let near = self.far_key.is_none();
        near.then(|| Lengths::new(self.stub.len(), value))
    }
}

impl Element for Child {
    fn stub(&self) -> &[u8] {
        &self.from.stub
    }

    fn bytes(&self) -> usize {
        let far = self.from.far.map_or(0, |_| FAR_BYTES);
        self.from.stub.len() + far + REFERENCE_BYTES
    }

    fn lengths(&self) -> Option<Lengths> {
        None
    }
}

/// Fills `page` (zeros) with `children`, which fit. The bound of the first is not stored: the
/// parent has it.
pub(crate) fn inner(page: &mut [u8], level: u8, children: &[Child]) {
    let header = Header {
        level,
        count: children.len() as u16,
        ..Header::of_kind(Kind::Inner)
    };
    let bounds = children.iter().skip(1).map(|c| &c.from);
    fill(page, header, bounds);
    let start = page.len() - children.len() * REFERENCE_BYTES;
    for (i, child) in children.iter().enumerate() {
        put(page, start + i * REFERENCE_BYTES, &child.page.to_le_bytes());
    }
}

/// The shortest key that is greater than `left` and not greater than `right`, which is greater.
pub(crate) fn separator<'a>(left: &[u8], right: &'a [u8]) -> &'a [u8] {
    let shortest = common_prefix(left, right) + 1;
    right.get(..shortest).unwrap_or(right)
}

/// Writes header, heads, slots, prefix and keys.
fn fill<'a>(
    page: &mut [u8],
    mut header: Header,
    bounds: impl ExactSizeIterator<Item = &'a Bound> + DoubleEndedIterator + Clone,
) {
    let first: &[u8] = bounds.clone().next().map_or(&[], |b| &b.stub);
    let last: &[u8] = bounds.clone().next_back().map_or(&[], |b| &b.stub);
    let prefix = common_prefix(first, last);
    header.prefix = prefix as u16;
    header.write(page);
    let shared = first.get(..prefix).unwrap_or_default();
    let mut keys = SlottedWriter::new(page, bounds.len(), shared);
    for bound in bounds {
        let rest = bound.stub.get(prefix..).unwrap_or_default();
        match bound.far {
            None => keys.add(rest, 0, &[]),
            Some(far) => keys.add(rest, FAR_KEY, &far_bytes(far)),
        }
    }
}

/// The entries of a leaf; `None` if it makes no sense.
pub(crate) fn entries(node: &Node<'_>) -> Option<Vec<Entry>> {
    entries_within(node, 0..node.keys())
}

/// Some entries of a leaf.
pub(crate) fn entries_within(node: &Node<'_>, within: Range<usize>) -> Option<Vec<Entry>> {
    let mut scratch = Vec::new();
    let mut entries = Vec::with_capacity(within.len());
    for i in within {
        let value = match node.value(i)? {
            ValueAt::Near(bytes) => Content::Near(Value::new(bytes)),
            ValueAt::Far(far) => Content::Far(far),
            ValueAt::Deleted => Content::Deleted,
        };
        let key = bound(node, i, &mut scratch)?;
        entries.push(Entry { key, value });
    }
    Some(entries)
}

/// The children of an inner page, the first one from `from` on.
pub(crate) fn children(node: &Node<'_>, from: Bound) -> Option<Vec<Child>> {
    let mut scratch = Vec::new();
    let mut children = Vec::with_capacity(node.children());
    let page = node.child(0)?.0;
    children.push(Child { from, page });
    for i in 0..node.keys() {
        let from = bound(node, i, &mut scratch)?;
        let page = node.child(i + 1)?.0;
        children.push(Child { from, page });
    }
    Some(children)
}

/// Key `i`.
pub(crate) fn bound(node: &Node<'_>, i: usize, scratch: &mut Vec<u8>) -> Option<Bound> {
    let key = node.key(i)?;
    scratch.clear();
    key.append_to(scratch);
    Some(Bound {
        stub: Key::new(scratch),
        far: key.far,
    })
}
