//! Who owns the keys of a node: the first eight bytes of a key decide.

use crate::{node::TreeKey, partition::Ownership};

/// All keys of `low..=high` are owned: a node with these fences is private.
#[inline]
pub(super) fn owns<K: TreeKey>(own: &Ownership, low: K, high: K) -> bool {
    own.contains(low.prefix(), high.prefix())
}

/// Some key of `low..=high` is owned.
pub(super) fn overlaps<K: TreeKey>(own: &Ownership, low: K, high: K) -> bool {
    own.overlaps(low.prefix(), high.prefix())
}
