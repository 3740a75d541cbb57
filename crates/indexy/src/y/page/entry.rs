//! What an entry of a page with slots says beside its key and value.

use super::{PAGE_LIMIT, PageNo, put, u32_at, u64_at};
use std::ops::Range;

/// Where a key or value is that does not lie near: its length and its first page.
pub(super) const FAR_BYTES: usize = 12;
/// Bits of the length in a slot.
pub(super) const FAR_KEY: u16 = 1 << 15;
pub(super) const FAR_VALUE: u16 = 1 << 14;
/// The entry says that its key is deleted, and has no value. Only in tables of the run store.
pub(super) const DELETED: u16 = 1 << 13;
/// Bytes of the key.
pub(super) const LENGTH: u16 = DELETED - 1;

/// Bytes that lie outside of nodes. What file they are in, and how, is for the tree to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Far {
    pub(crate) bytes: u32,
    pub(crate) first: PageNo,
}

/// Where the value of an entry is: if it is near, its bytes in the page.
#[derive(Clone)]
pub(super) enum Place {
    Near(Range<usize>),
    Far(Far),
    Deleted,
}

/// Where something is, as an entry says it.
pub(super) fn far_bytes(far: Far) -> [u8; FAR_BYTES] {
    let mut bytes = [0; FAR_BYTES];
    put(&mut bytes, 0, &far.bytes.to_le_bytes());
    put(&mut bytes, 4, &far.first.to_le_bytes());
    bytes
}

/// Where something is, as `at` in `page` says.
pub(super) fn far_at(page: &[u8], at: usize) -> Option<Far> {
    let bytes = u32_at(page, at)?;
    let first = u64_at(page, at + 4)?;
    (first != 0 && first < PAGE_LIMIT).then_some(Far { bytes, first })
}
