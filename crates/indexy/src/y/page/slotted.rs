//! Pages with slots: leaves whose keys or values differ in length, and inner pages.
//!
//! Behind the header come the heads, a slot of four bytes for each key, the prefix and the
//! entries, one behind the other. A slot says where the entry ends and how long its key is; the
//! entry begins where the one before ends. So a value has no length of its own, and an entry takes
//! four bytes beside its key and value. `docs/formats/pages.md` has it in full.
//!
//! Every access is checked, as in `node.rs`.

use super::{
    HEADER_BYTES,
    entry::{DELETED, FAR_BYTES, FAR_KEY, FAR_VALUE, Far, LENGTH, Place, far_at},
    heads::{HEAD_BYTES, Heads, Suffix, head},
    put, u16_at,
};
use crate::error::Result;

/// Beside its head and what is behind that, what a key takes.
const SLOT_BYTES: usize = 4;
/// Head and slot.
pub(super) const ENTRY_BYTES: usize = HEAD_BYTES + SLOT_BYTES;
const _: () = assert!(SLOT_BYTES == 2 + 2 && ENTRY_BYTES == 8);

/// The parts of a page with slots, all of them inside the page.
#[derive(Clone, Copy)]
pub(super) struct Slotted<'a> {
    page: &'a [u8],
    heads: Heads<'a>,
    slots: &'a [[u8; SLOT_BYTES]],
    pub(super) prefix: &'a [u8],
    /// Where the first entry begins.
    start: usize,
}

impl<'a> Slotted<'a> {
    /// `None`: the page is too short for `keys` keys with `prefix` bytes in common.
    #[inline]
    pub(super) fn new(page: &'a [u8], keys: usize, prefix: usize) -> Option<Self> {
        let slots_at = HEADER_BYTES + keys * HEAD_BYTES;
        let prefix_at = slots_at + keys * SLOT_BYTES;
        let start = prefix_at + prefix;
        Some(Self {
            page,
            heads: Heads(page.get(HEADER_BYTES..slots_at)?.as_chunks().0),
            slots: page.get(slots_at..prefix_at)?.as_chunks().0,
            prefix: page.get(prefix_at..start)?,
            start,
        })
    }

    /// Where entry `i` begins and ends, and the length of its key with the flags.
    #[inline]
    fn bounds(&self, i: usize) -> Option<(usize, usize, u16)> {
        let slot = self.slots.get(i)?;
        let start = match i.checked_sub(1) {
            Some(before) => usize::from(u16_at(self.slots.get(before)?, 0)?),
            None => self.start,
        };
        Some((start, usize::from(u16_at(slot, 0)?), u16_at(slot, 2)?))
    }

    /// What key `i` has behind the prefix, where all of it is if that is more, and where the value
    /// begins and ends, with the flags.
    #[inline]
    fn parts(&self, i: usize) -> Option<(Suffix<'a>, Option<Far>, usize, usize, u16)> {
        let (start, end, length) = self.bounds(i)?;
        let bytes = usize::from(length & LENGTH);
        let mut at = start + bytes.saturating_sub(HEAD_BYTES);
        let tail = self.page.get(start..at)?;
        let mut far = None;
        if length & FAR_KEY != 0 {
            far = Some(far_at(self.page, at)?);
            at += FAR_BYTES;
        }
        let suffix = Suffix::new(self.heads.get(i)?, bytes, tail);
        Some((suffix, far, at, end, length))
    }

    #[inline]
    pub(super) fn key(&self, i: usize) -> Option<(Suffix<'a>, Option<Far>)> {
        let (suffix, far, ..) = self.parts(i)?;
        Some((suffix, far))
    }

    /// Entry `i` of a leaf.
    #[inline]
    pub(super) fn entry(&self, i: usize) -> Option<(Suffix<'a>, Option<Far>, Place)> {
        let (suffix, far, at, end, flags) = self.parts(i)?;
        let place = if flags & DELETED != 0 {
            Place::Deleted
        } else if flags & FAR_VALUE != 0 {
            Place::Far(far_at(self.page, at)?)
        } else {
            self.page.get(at..end)?;
            Place::Near(at..end)
        };
        Some((suffix, far, place))
    }

    /// As [`Heads::search`].
    #[inline]
    pub(super) fn search(
        &self,
        head: u32,
        decide: bool,
        compare: impl FnMut(usize) -> Result<Option<std::cmp::Ordering>>,
    ) -> Result<Option<(usize, bool)>> {
        self.heads.search(head, decide, compare)
    }
}

/// Writes keys one after the other into a page whose body is zeros.
pub(super) struct SlottedWriter<'p> {
    page: &'p mut [u8],
    keys: usize,
    /// Keys so far.
    next: usize,
    /// Where the last entry ends.
    end: usize,
}

impl<'p> SlottedWriter<'p> {
    pub(super) fn new(page: &'p mut [u8], keys: usize, prefix: &[u8]) -> Self {
        let at = HEADER_BYTES + keys * ENTRY_BYTES;
        put(page, at, prefix);
        Self {
            page,
            keys,
            next: 0,
            end: at + prefix.len(),
        }
    }

    /// Adds a key: what it has behind the prefix, the flags, and what follows it in its entry.
    #[inline]
    pub(super) fn add(&mut self, suffix: &[u8], flags: u16, behind: &[u8]) {
        let head = head(suffix).to_le_bytes();
        put(self.page, HEADER_BYTES + self.next * HEAD_BYTES, &head);
        for part in [suffix.get(HEAD_BYTES..).unwrap_or_default(), behind] {
            put(self.page, self.end, part);
            self.end += part.len();
        }
        let [a, b] = (self.end as u16).to_le_bytes();
        let [c, d] = (suffix.len() as u16 | flags).to_le_bytes();
        let slots = HEADER_BYTES + self.keys * HEAD_BYTES;
        put(self.page, slots + self.next * SLOT_BYTES, &[a, b, c, d]);
        self.next += 1;
    }

    /// Bytes behind the header so far.
    pub(super) fn bytes(&self) -> usize {
        self.end - HEADER_BYTES
    }
}
