//! All entries of a leaf at once, in buffers that are used again for the next leaf.

use super::{
    entry::Place,
    node::{EntryAt, Far, Node, ValueAt},
};

/// The entries of one leaf. The buffers stay when the next leaf is read: no allocation an entry.
#[derive(Default)]
pub(crate) struct LeafEntries {
    /// Stubs, one behind the other.
    stubs: Vec<u8>,
    entries: Vec<Found>,
    /// Of those entries that have some, in order: of the key, then of the value.
    far: Vec<Far>,
}

struct Found {
    /// Where the stub ends; it begins where the one before ends.
    stub_end: u32,
    /// Where the value is in the page, if it is near.
    value: u32,
    bytes: u32,
    /// Of the entry's first one in `far`.
    far: u16,
    far_key: bool,
    kind: ValueKind,
}

#[derive(Clone, Copy)]
enum ValueKind {
    Near,
    Far,
    Deleted,
}

impl LeafEntries {
    /// Reads all entries of `leaf` in place of those that were here; `None`: it makes no sense, and
    /// there are no entries.
    pub(crate) fn read(&mut self, leaf: &Node<'_>) -> Option<()> {
        self.clear();
        let read = self.read_all(leaf);
        if read.is_none() {
            self.clear();
        }
        read
    }

    fn read_all(&mut self, leaf: &Node<'_>) -> Option<()> {
        if !leaf.is_leaf() {
            return None;
        }
        self.entries.reserve(leaf.keys());
        for i in 0..leaf.keys() {
            let (key, place) = leaf.entry(i)?;
            key.append_to(&mut self.stubs);
            let first = self.far.len() as u16;
            self.far.extend(key.far);
            let (kind, value, bytes) = match place {
                Place::Near(at) => (ValueKind::Near, at.start as u32, at.len() as u32),
                Place::Far(far) => {
                    self.far.push(far);
                    (ValueKind::Far, 0, 0)
                }
                Place::Deleted => (ValueKind::Deleted, 0, 0),
            };
            self.entries.push(Found {
                stub_end: self.stubs.len() as u32,
                value,
                bytes,
                far: first,
                far_key: key.far.is_some(),
                kind,
            });
        }
        Some(())
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn clear(&mut self) {
        self.stubs.clear();
        self.entries.clear();
        self.far.clear();
    }

    /// Entry `i`; `page` is the leaf that was read. `None`: there are not so many.
    #[inline]
    pub(crate) fn get<'a>(&'a self, i: usize, page: &'a [u8]) -> Option<EntryAt<'a>> {
        let start = match i.checked_sub(1) {
            Some(before) => self.entries.get(before)?.stub_end,
            None => 0,
        };
        let found = self.entries.get(i)?;
        let stub = self.stubs.get(start as usize..found.stub_end as usize)?;
        let first = usize::from(found.far);
        let far_key = match found.far_key {
            true => Some(*self.far.get(first)?),
            false => None,
        };
        let value = match found.kind {
            ValueKind::Near => {
                let at = found.value as usize;
                ValueAt::Near(page.get(at..at + found.bytes as usize)?)
            }
            ValueKind::Far => ValueAt::Far(*self.far.get(first + usize::from(found.far_key))?),
            ValueKind::Deleted => ValueAt::Deleted,
        };
        Some(EntryAt {
            stub,
            far_key,
            value,
        })
    }
}
