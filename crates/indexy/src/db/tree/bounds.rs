//! The two ends of a range of keys: from the first one on, up to, not including, the second.

#![forbid(unsafe_code)]

use crate::{key::successor, limits::MAX_KEY_BYTES};
use std::ops::{Bound, RangeBounds};

/// `[from, to)`; `None`: no end.
pub(in crate::db) type KeyRange = (Vec<u8>, Option<Vec<u8>>);

/// The ends of `range`, of the length of a key and one byte at most.
pub(in crate::db) fn of<K: AsRef<[u8]>>(range: impl RangeBounds<K>) -> KeyRange {
    let from = match range.start_bound() {
        Bound::Included(key) => key.as_ref().to_vec(),
        Bound::Excluded(key) => successor(key.as_ref()),
        Bound::Unbounded => Vec::new(),
    };
    let to = match range.end_bound() {
        Bound::Included(key) => Some(successor(key.as_ref())),
        Bound::Excluded(key) => Some(key.as_ref().to_vec()),
        Bound::Unbounded => None,
    };
    cut_to_length((from, to))
}

/// No key lies between a longer end and its first so many bytes.
pub(super) fn cut_to_length((mut from, mut to): KeyRange) -> KeyRange {
    from.truncate(MAX_KEY_BYTES + 1);
    if let Some(to) = &mut to {
        to.truncate(MAX_KEY_BYTES + 1);
    }
    (from, to)
}
