//! Changes a slotted node: it is taken apart and written anew.

use super::{
    key::Bytes,
    load,
    packed::Parts,
    slots::{
        CHILD, SLOT, Slot, bytes_of_slot, count, end, find, high, low, room, slot, used, value,
    },
    stored::{MAX_INLINE_BYTES, Stored},
};
use crate::{
    address::Address,
    node::{
        layout::{Image, Words, address, level},
        leaf::{Change, Edit},
    },
};

/// A node with less is merged with a neighbour: a part of its room.
const SPARSE_DIVISOR: usize = 4;

// A leaf without room for an entry has two or more, and halves have room: the longest entry takes
// at most 260 of 736 bytes. An inner node that is full has three separators or more.
const _: () = {
    let longest = SLOT + 128 + MAX_INLINE_BYTES;
    assert!(room(128) >= 2 * longest + longest / 2);
    assert!(room(128) > 5 * (SLOT + CHILD + 128));
};

fn is_leaf(node: &impl Words) -> bool {
    level(node) == 0
}

/// No further child with the longest separator fits; leaves are split when an entry does not fit.
pub(super) fn is_full<const N: usize>(node: &impl Words) -> bool {
    let longest = SLOT
        + N
        + if is_leaf(node) {
            MAX_INLINE_BYTES
        } else {
            CHILD
        };
    used::<N>(node) + longest > room(N)
}

pub(super) fn may_split<const N: usize>(node: &impl Words) -> bool {
    let fewest = if is_leaf(node) { 2 } else { 3 };
    count::<N>(node) >= fewest && is_full::<N>(node)
}

pub(super) fn is_sparse<const N: usize>(node: &impl Words) -> bool {
    used::<N>(node) < room(N) / SPARSE_DIVISOR
}

/// The entry fits, in place of the one that its key has.
pub(super) fn has_room<const N: usize>(leaf: &impl Words, key: &Bytes<N>, value: &Stored) -> bool {
    let prefix = low::<N>(leaf).common(&high(leaf));
    let suffix = key.as_slice().len().saturating_sub(prefix);
    let old = find(leaf, key).ok().map(|i| slot::<N>(leaf, i));
    let before = old.map_or(0, |old: Slot| SLOT + bytes_of_slot(old, true));
    let after = SLOT + suffix + value.as_slice().len();
    used::<N>(leaf).saturating_sub(before) + after <= room(N)
}

pub(super) fn apply<const N: usize>(
    leaf: &mut impl Words,
    key: Bytes<N>,
    edit: Edit<Stored>,
) -> Change<Stored> {
    let found = find(leaf, &key);
    let old = found.ok().map(|at| value::<N>(leaf, at));
    let unchanged = Change::Done {
        old,
        changed: false,
    };
    let mut parts;
    match (edit, found) {
        (Edit::Get, _) | (Edit::Remove, Err(_)) => return unchanged,
        (Edit::Put(value), found) => {
            if !has_room(leaf, &key, &value) {
                return Change::Full;
            }
            parts = Parts::<N>::of(leaf);
            match found {
                Ok(at) => parts.values[at] = value,
                Err(at) => {
                    parts.keys.insert(at, key);
                    parts.values.insert(at, value);
                }
            }
        }
        (Edit::Remove, Ok(at)) => {
            parts = Parts::<N>::of(leaf);
            parts.keys.remove(at);
            parts.values.remove(at);
        }
    }
    match parts.write(leaf) {
        true => Change::Done { old, changed: true },
        false => Change::Full,
    }
}

pub(super) fn new_leaf<const N: usize>(at: Address, low: Bytes<N>, high: Bytes<N>) -> Image {
    Parts::new(0, low, high).image(at)
}

/// # Panics
/// If there are no children, or more than a node holds.
pub(super) fn new_inner<const N: usize>(
    at: Address,
    level: u8,
    children: &[(Bytes<N>, u64)],
    high: Bytes<N>,
) -> Image {
    load::inner(at, level, children, high).expect("children, no more than a node holds")
}

pub(super) fn insert_child<const N: usize>(node: &mut impl Words, separator: Bytes<N>, word: u64) {
    let mut parts = Parts::<N>::of(node);
    let at = parts.keys.partition_point(|key| *key < separator);
    parts.keys.insert(at, separator);
    parts.children.insert(at + 1, word);
    let fits = parts.write(node);
    debug_assert!(fits, "the node is full");
}

pub(super) fn remove_child<const N: usize>(node: &mut impl Words, slot: usize) {
    let mut parts = Parts::<N>::of(node);
    parts.keys.remove(slot - 1);
    parts.children.remove(slot);
    let fits = parts.write(node);
    debug_assert!(fits);
}

/// A node with two keys or more; the upper half is at least one key of a leaf, or one child.
pub(super) fn split<const N: usize>(node: &mut impl Words, right_at: Address) -> (Bytes<N>, Image) {
    let mut parts = Parts::<N>::of(node);
    let keep = parts.middle();
    let (separator, keys, values, children);
    if parts.level == 0 {
        separator = parts.keys[keep - 1].separator(&parts.keys[keep]);
        keys = parts.keys.split_off(keep);
        values = parts.values.split_off(keep);
        children = Vec::new();
    } else {
        keys = parts.keys.split_off(keep + 1);
        separator = parts.keys.pop().unwrap_or(parts.low);
        values = Vec::new();
        children = parts.children.split_off(keep + 1);
    }
    let right = Parts {
        level: parts.level,
        low: separator,
        end: parts.end.replace(separator),
        keys,
        values,
        children,
    };
    let fits = parts.write(node);
    debug_assert!(fits);
    (separator, right.image(right_at))
}

pub(super) fn merge<const N: usize>(left: &mut impl Words, right: &impl Words) -> bool {
    let mut merged = Parts::<N>::of(left);
    let other = Parts::<N>::of(right);
    if merged.level > 0 {
        merged.keys.push(other.low);
    }
    merged.keys.extend(other.keys);
    merged.values.extend(other.values);
    merged.children.extend(other.children);
    merged.end = other.end;
    // It keeps room: it is not split again by the next inserts.
    merged.used() <= room(N) * 3 / 4 && merged.write(left)
}

pub(super) fn trim<const N: usize>(node: &mut Image, first: Bytes<N>, last: Bytes<N>) -> bool {
    if low::<N>(node) == first && end::<N>(node) == last.successor() {
        return false;
    }
    if address(node).is_none() {
        return false;
    }
    // Longer fences than before have their places, and the prefix does not get shorter.
    let fits = Parts::<N>::of(node).between(first, last).write(node);
    debug_assert!(fits);
    true
}
