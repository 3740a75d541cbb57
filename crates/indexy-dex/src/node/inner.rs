//! An inner node: separators and children.

use super::layout::{
    CAPACITY, HIGH, Image, KEYS, VALUES, Words, blank, count, high, key, low, partition, set_count,
    shift,
};
use crate::address::Address;

/// The way from an inner node to the child of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route<K = u64> {
    /// Which child.
    pub slot: usize,
    /// Its word: an address, or a frame.
    pub word: u64,
    /// The lowest key that it covers.
    pub low: K,
    /// The highest key that it covers.
    pub high: K,
}

/// An inner node over `children`, each with its lowest key; the first key is the node's own low.
///
/// # Panics
/// If there are none, or more than a node holds.
pub fn new_inner(address: Address, level: u8, children: &[(u64, u64)], high: u64) -> Image {
    let (first, rest) = children.split_first().expect("a child");
    assert!(rest.len() <= CAPACITY);
    let mut node = blank(address, level, first.0, high);
    node.set(VALUES, first.1);
    for (i, &(low, word)) in rest.iter().enumerate() {
        node.set(KEYS + i, low);
        node.set(VALUES + 1 + i, word);
    }
    set_count(&mut node, rest.len());
    node
}

/// The word of child `slot`, at most [`CAPACITY`].
#[inline]
pub fn child(node: &impl Words, slot: usize) -> u64 {
    node.get(VALUES + slot)
}

/// Replaces the word of child `slot`.
pub fn set_child(node: &mut impl Words, slot: usize, word: u64) {
    node.set(VALUES + slot, word);
}

/// The child that covers `wanted`.
#[inline]
pub fn route(node: &impl Words, wanted: u64) -> Route {
    let slot = partition(node, |separator| separator <= wanted);
    at_slot(node, slot)
}

/// The child `slot`, at most the count.
pub fn at_slot(node: &impl Words, slot: usize) -> Route {
    let before = slot.checked_sub(1).map(|i| key(node, i));
    let after = (slot < count(node)).then(|| key(node, slot).wrapping_sub(1));
    Route {
        slot,
        word: child(node, slot),
        low: before.unwrap_or_else(|| low(node)),
        high: after.unwrap_or_else(|| high(node)),
    }
}

/// The slot whose word is `word`.
pub fn slot_of(node: &impl Words, word: u64) -> Option<usize> {
    (0..=count(node)).find(|&slot| child(node, slot) == word)
}

/// Adds a child whose lowest key is `separator`. The node must not be full.
pub fn insert_child(node: &mut impl Words, separator: u64, word: u64) {
    let entries = count(node);
    debug_assert!(entries < CAPACITY);
    let at = partition(node, |other| other < separator);
    shift(node, KEYS + at, KEYS + at + 1, entries - at);
    shift(node, VALUES + at + 1, VALUES + at + 2, entries - at);
    node.set(KEYS + at, separator);
    node.set(VALUES + at + 1, word);
    set_count(node, entries + 1);
}

/// Removes child `slot`, which is not the first, and the separator before it.
pub fn remove_child(node: &mut impl Words, slot: usize) {
    let entries = count(node);
    debug_assert!(0 < slot && slot <= entries);
    shift(node, KEYS + slot, KEYS + slot - 1, entries - slot);
    shift(node, VALUES + slot + 1, VALUES + slot, entries - slot);
    set_count(node, entries - 1);
}

/// Moves the upper half of an inner node with two separators or more to a new one; returns it
/// with its lowest key.
pub fn split_inner(node: &mut impl Words, right_at: Address) -> (u64, Image) {
    let entries = count(node);
    let keep = entries / 2;
    let separator = key(node, keep);
    let children: Vec<(u64, u64)> = (keep + 1..=entries)
        .map(|slot| (key(node, slot - 1), child(node, slot)))
        .collect();
    let right = new_inner(right_at, super::level(node), &children, high(node));
    set_count(node, keep);
    node.set(HIGH, separator - 1);
    (separator, right)
}
