//! Building leaves from borrowed entries, one after the other, without an allocation an entry.
//!
//! An entry waits in the form in which it will stand in the page, with its whole key: the prefix
//! that all keys share is known when the page is full. [`LeafBuilder::finish`] writes the page.

use super::{
    Header, Kind,
    build::Entry,
    entry::{DELETED, FAR_KEY, FAR_VALUE, LENGTH, far_bytes},
    filling::{Size, capacity},
    fixed::{FixedWriter, Shape},
    heads::head,
    node::{EntryAt, Far, ValueAt},
    slotted::SlottedWriter,
};

/// A leaf in the making. Threads: one.
pub(crate) struct LeafBuilder {
    page_bytes: usize,
    /// Entries as a page holds them, but with the prefix.
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    size: Size,
}

struct Slot {
    /// Where the entry ends; it begins where the one before ends.
    end: u32,
    /// Bytes of the stub, and the flags of a slot.
    length: u16,
}

#[allow(dead_code, reason = "what only tables of the run store need")]
impl LeafBuilder {
    pub(crate) fn new(page_bytes: usize) -> Self {
        Self {
            page_bytes,
            bytes: Vec::new(),
            slots: Vec::new(),
            size: Size::default(),
        }
    }

    /// Adds an entry behind all others; `false`: the page has no room for it, and must be finished
    /// first. An empty page has room for every entry whose stub is at most
    /// [`max_stub`](super::node::max_stub) long and whose stub and near value together take at most
    /// [`max_near`](super::node::max_near).
    #[inline]
    pub(crate) fn add(&mut self, stub: &[u8], far_key: Option<Far>, value: ValueAt<'_>) -> bool {
        debug_assert!(stub.len() <= usize::from(LENGTH));
        debug_assert!(
            self.last()
                .is_none_or(|last| last < stub || far_key.is_some())
        );
        let entry = EntryAt {
            stub,
            far_key,
            value,
        };
        let mut size = self.size;
        size.add(self.prefix(), &entry);
        if size.page_bytes() > capacity(self.page_bytes) {
            return false;
        }
        self.size = size;
        self.bytes.extend_from_slice(stub);
        let mut flags = 0;
        if let Some(far) = far_key {
            flags |= FAR_KEY;
            self.bytes.extend_from_slice(&far_bytes(far));
        }
        match value {
            ValueAt::Near(value) => self.bytes.extend_from_slice(value),
            ValueAt::Far(far) => {
                flags |= FAR_VALUE;
                self.bytes.extend_from_slice(&far_bytes(far));
            }
            ValueAt::Deleted => flags |= DELETED,
        }
        self.slots.push(Slot {
            end: self.bytes.len() as u32,
            length: stub.len() as u16 | flags,
        });
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Entries.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Bytes of the page that the entries take, without its header.
    pub(crate) fn filled(&self) -> usize {
        self.size.page_bytes()
    }

    /// The stub of the first key.
    pub(crate) fn first(&self) -> Option<&[u8]> {
        self.stub(0)
    }

    /// The stub of the last key.
    pub(crate) fn last(&self) -> Option<&[u8]> {
        self.stub(self.slots.len().checked_sub(1)?)
    }

    fn stub(&self, i: usize) -> Option<&[u8]> {
        let (entry, slot) = self.entry(i)?;
        entry.get(..usize::from(slot.length & LENGTH))
    }

    fn entry(&self, i: usize) -> Option<(&[u8], &Slot)> {
        let start = match i.checked_sub(1) {
            Some(before) => self.slots.get(before)?.end,
            None => 0,
        };
        let slot = self.slots.get(i)?;
        let entry = self.bytes.get(start as usize..slot.end as usize)?;
        Some((entry, slot))
    }

    /// What all stubs start with.
    fn prefix(&self) -> &[u8] {
        self.bytes.get(..self.size.prefix).unwrap_or_default()
    }

    /// Writes the leaf into `page`, which has the size given to [`new`](Self::new) and any content,
    /// all but what [`seal`](super::seal) writes, and starts the next one.
    pub(crate) fn finish(&mut self, page: &mut [u8]) {
        page.fill(0);
        match self.size.shape() {
            Some(shape) => self.write_fixed(page, shape),
            None => self.write_slotted(page),
        }
        self.clear();
    }

    fn header(&self, kind: Kind) -> Header {
        Header {
            count: self.slots.len() as u16,
            prefix: self.size.prefix as u16,
            ..Header::of_kind(kind)
        }
    }

    /// The entries: what is behind the prefix, and the slot.
    fn entries(&self) -> impl Iterator<Item = (&[u8], &Slot)> {
        let mut start = 0;
        self.slots.iter().map(move |slot| {
            let end = slot.end as usize;
            let entry = self.bytes.get(start + self.size.prefix..end);
            start = end;
            (entry.unwrap_or_default(), slot)
        })
    }

    fn write_slotted(&self, page: &mut [u8]) {
        self.header(Kind::Leaf).write(page);
        let prefix = self.prefix();
        let mut leaf = SlottedWriter::new(page, self.slots.len(), prefix);
        for (entry, slot) in self.entries() {
            let key_bytes = usize::from(slot.length & LENGTH) - prefix.len();
            let (key, behind) = entry.split_at_checked(key_bytes).unwrap_or_default();
            leaf.add(key, slot.length & !LENGTH, behind);
        }
        debug_assert_eq!(leaf.bytes(), self.size.slotted_bytes());
    }

    fn write_fixed(&self, page: &mut [u8], shape: Shape) {
        let payload = shape.payload();
        let header = Header {
            payload,
            ..self.header(Kind::FixedLeaf)
        };
        header.write(page);
        let prefix = self.prefix();
        let mut leaf = FixedWriter::new(page, shape, self.slots.len(), prefix);
        for (i, (entry, slot)) in self.entries().enumerate() {
            let key_bytes = usize::from(slot.length & LENGTH) - prefix.len();
            let (key, value) = entry.split_at_checked(key_bytes).unwrap_or_default();
            let deleted = slot.length & DELETED != 0;
            leaf.put(i, head(key), key, (!deleted).then_some(value));
        }
    }

    /// Forgets all entries.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.slots.clear();
        self.size = Size::default();
    }
}

/// Fills `page` with `entries`, which fit.
pub(crate) fn leaf(page: &mut [u8], entries: &[Entry]) {
    let mut builder = LeafBuilder::new(page.len());
    for entry in entries {
        let EntryAt {
            stub,
            far_key,
            value,
        } = entry.at();
        let added = builder.add(stub, far_key, value);
        debug_assert!(added, "more than fits");
    }
    builder.finish(page);
}
