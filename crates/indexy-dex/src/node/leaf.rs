//! A leaf: sorted keys and their values.

use super::layout::{
    CAPACITY, HIGH, Image, KEYS, LOW, VALUES, Words, blank, count, high, is_full, key, low,
    partition, set_count, shift,
};
use crate::{address::Address, node::layout::set_fences};

/// A leaf or inner node with fewer entries is merged with a neighbour.
const SPARSE_ENTRIES: usize = CAPACITY / 4;
/// A merged node keeps room: it is not split again by the next inserts.
pub(super) const MERGED_ENTRIES: usize = CAPACITY * 3 / 4;

/// What is done to a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit<V = u64> {
    /// Looks a key up.
    Get,
    /// Inserts a key or replaces its value.
    Put(V),
    /// Removes a key.
    Remove,
}

/// What became of an [`Edit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<V = u64> {
    /// Done; the value before.
    Done {
        /// What the key had.
        old: Option<V>,
        /// The leaf was changed.
        changed: bool,
    },
    /// The key is new and the leaf is full: nothing was done.
    Full,
}

/// An empty leaf.
pub fn new_leaf(address: Address, low: u64, high: u64) -> Image {
    blank(address, 0, low, high)
}

/// The value of entry `i`, below [`CAPACITY`].
#[inline]
pub fn value(leaf: &impl Words, i: usize) -> u64 {
    leaf.get(VALUES + i)
}

/// The word of the value of entry `i`.
pub(crate) fn value_word(i: usize) -> usize {
    VALUES + i
}

/// Where `key` is, or where it would be.
#[inline]
pub fn find(leaf: &impl Words, wanted: u64) -> Result<usize, usize> {
    let at = partition(leaf, |key| key < wanted);
    if at < count(leaf) && key(leaf, at) == wanted {
        Ok(at)
    } else {
        Err(at)
    }
}

/// Does `edit` to `key`.
#[inline]
pub fn apply(leaf: &mut impl Words, key: u64, edit: Edit) -> Change {
    let found = find(leaf, key);
    let old = found.ok().map(|at| value(leaf, at));
    let changed = match (edit, found) {
        (Edit::Get, _) | (Edit::Remove, Err(_)) => false,
        (Edit::Put(value), Ok(at)) => {
            leaf.set(VALUES + at, value);
            true
        }
        (Edit::Put(_), Err(_)) if is_full(leaf) => return Change::Full,
        (Edit::Put(value), Err(at)) => {
            let entries = count(leaf);
            shift(leaf, KEYS + at, KEYS + at + 1, entries - at);
            shift(leaf, VALUES + at, VALUES + at + 1, entries - at);
            leaf.set(KEYS + at, key);
            leaf.set(VALUES + at, value);
            set_count(leaf, entries + 1);
            true
        }
        (Edit::Remove, Ok(at)) => {
            let entries = count(leaf);
            shift(leaf, KEYS + at + 1, KEYS + at, entries - at - 1);
            shift(leaf, VALUES + at + 1, VALUES + at, entries - at - 1);
            set_count(leaf, entries - 1);
            true
        }
    };
    Change::Done { old, changed }
}

/// Entries with keys from `from` on.
pub fn entries(leaf: &impl Words, from: u64) -> impl Iterator<Item = (u64, u64)> {
    let start = partition(leaf, |key| key < from);
    (start..count(leaf)).map(|i| (key(leaf, i), value(leaf, i)))
}

/// Gives an empty leaf these entries, which ascend and fit.
pub(super) fn fill(leaf: &mut impl Words, entries: impl Iterator<Item = (u64, u64)>) {
    let mut filled = 0;
    for (key, value) in entries.take(CAPACITY) {
        leaf.set(KEYS + filled, key);
        leaf.set(VALUES + filled, value);
        filled += 1;
    }
    set_count(leaf, filled);
}

/// So few entries that a merge is worth it.
pub fn is_sparse(node: &impl Words) -> bool {
    count(node) < SPARSE_ENTRIES
}

/// Moves the upper half of a leaf with two entries or more to a new one; returns it with its
/// lowest key.
pub fn split_leaf(leaf: &mut impl Words, right_at: Address) -> (u64, Image) {
    let entries = count(leaf);
    let keep = entries / 2;
    let separator = key(leaf, keep);
    let mut right = blank(right_at, 0, separator, high(leaf));
    for i in keep..entries {
        right.set(KEYS + i - keep, key(leaf, i));
        right.set(VALUES + i - keep, value(leaf, i));
    }
    set_count(&mut right, entries - keep);
    set_count(leaf, keep);
    leaf.set(HIGH, separator - 1);
    (separator, right)
}

/// Appends `right`, the next node of the same level, if the result keeps room; `false`: it would
/// not.
pub fn merge(left: &mut impl Words, right: &impl Words) -> bool {
    let (own, other) = (count(left), count(right));
    let inner = usize::from(super::level(left) > 0);
    // Two inner nodes bring the separator between them.
    if own + other + inner > MERGED_ENTRIES {
        return false;
    }
    if inner == 1 {
        left.set(KEYS + own, right.get(LOW));
    }
    for i in 0..other {
        left.set(KEYS + own + inner + i, key(right, i));
    }
    for i in 0..other + inner {
        left.set(VALUES + own + inner + i, value(right, i));
    }
    set_count(left, own + other + inner);
    let low = low(left);
    set_fences(left, low, high(right));
    true
}
