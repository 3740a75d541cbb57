//! The form that pages with slots had before kinds 8 and 9: it is read, and no longer written.
//!
//! A slot of eight bytes has head, offset and length; the entry has all of the key behind the
//! prefix, and a near value has its length in front of it.

use super::{
    HEADER_BYTES,
    entry::{DELETED, FAR_BYTES, FAR_KEY, FAR_VALUE, Far, LENGTH, Place, far_at},
    heads::Suffix,
    u16_at, u32_at,
};
use crate::error::Result;
use std::cmp::Ordering;

const SLOT_BYTES: usize = 8;

#[derive(Clone, Copy)]
pub(super) struct OldSlots<'a> {
    page: &'a [u8],
    keys: usize,
    pub(super) prefix: &'a [u8],
}

impl<'a> OldSlots<'a> {
    /// `None`: the page is too short for `keys` keys with `prefix` bytes in common.
    pub(super) fn new(page: &'a [u8], keys: usize, prefix: usize) -> Option<Self> {
        let prefix_at = HEADER_BYTES + keys * SLOT_BYTES;
        let prefix = page.get(prefix_at..prefix_at + prefix)?;
        Some(Self { page, keys, prefix })
    }

    /// What key `i` has behind the prefix, where all of it is if that is more, and the offset
    /// behind it, with the flags.
    fn parts(&self, i: usize) -> Option<(Suffix<'a>, Option<Far>, usize, u16)> {
        if i >= self.keys {
            return None;
        }
        let slot = HEADER_BYTES + i * SLOT_BYTES;
        let start = usize::from(u16_at(self.page, slot + 4)?);
        let length = u16_at(self.page, slot + 6)?;
        let end = start + usize::from(length & LENGTH);
        let suffix = Suffix::of_bytes(self.page.get(start..end)?);
        if length & FAR_KEY == 0 {
            return Some((suffix, None, end, length));
        }
        let far = far_at(self.page, end)?;
        Some((suffix, Some(far), end + FAR_BYTES, length))
    }

    pub(super) fn key(&self, i: usize) -> Option<(Suffix<'a>, Option<Far>)> {
        let (suffix, far, ..) = self.parts(i)?;
        Some((suffix, far))
    }

    /// Entry `i` of a leaf.
    pub(super) fn entry(&self, i: usize) -> Option<(Suffix<'a>, Option<Far>, Place)> {
        let (suffix, far, at, flags) = self.parts(i)?;
        if flags & DELETED != 0 {
            return Some((suffix, far, Place::Deleted));
        }
        if flags & FAR_VALUE != 0 {
            return Some((suffix, far, Place::Far(far_at(self.page, at)?)));
        }
        let bytes = u32_at(self.page, at)? as usize;
        let end = (at + 4).checked_add(bytes)?;
        let inside = end <= self.page.len();
        inside.then_some((suffix, far, Place::Near(at + 4..end)))
    }

    /// As [`Heads::search`](super::heads::Heads::search).
    pub(super) fn search(
        &self,
        head: u32,
        decide: bool,
        mut compare: impl FnMut(usize) -> Result<Option<Ordering>>,
    ) -> Result<Option<(usize, bool)>> {
        let (mut low, mut high) = (0, self.keys);
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(found) = u32_at(self.page, HEADER_BYTES + middle * SLOT_BYTES) else {
                return Ok(None);
            };
            let order = match found.cmp(&head) {
                other if decide && other != Ordering::Equal => Some(other),
                _ => compare(middle)?,
            };
            match order {
                Some(Ordering::Less) => low = middle + 1,
                Some(Ordering::Equal) => return Ok(Some((middle, true))),
                Some(Ordering::Greater) => high = middle,
                None => return Ok(None),
            }
        }
        Ok(Some((low, false)))
    }
}
