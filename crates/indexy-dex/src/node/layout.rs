//! Where the fields of a node lie.

use crate::address::Address;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Words of a node.
pub const NODE_WORDS: usize = 128;
/// Bytes of a node.
pub const NODE_BYTES: u64 = 8 * NODE_WORDS as u64;
/// Entries of a leaf, separators of an inner node.
pub const CAPACITY: usize = 58;
/// Levels above the leaves that a tree can have.
pub const MAX_LEVEL: u8 = 15;
/// The bit of a child word that stands for a frame.
pub const SWIZZLED: u64 = 1 << 63;

/// The word of the version.
pub const VERSION: usize = 0;
/// The word of the node's address.
pub const ADDRESS: usize = 1;
pub(super) const KIND: usize = 2;
/// The word of the lowest key.
pub const LOW: usize = 3;
/// The word of the highest key.
pub const HIGH: usize = 4;
pub(super) const KEYS: usize = 8;
pub(super) const VALUES: usize = KEYS + CAPACITY;
/// Keys of one cache line.
const GROUP: usize = 8;
pub(super) const RESERVED: std::ops::Range<usize> = 5..KEYS;
pub(super) const MAGIC: u64 = 0x4445_5831;

const _: () = assert!(VALUES + CAPACITY < NODE_WORDS);

/// The words of a node.
pub trait Words {
    /// The word `i`, which is below [`NODE_WORDS`].
    fn get(&self, i: usize) -> u64;
    /// Replaces the word `i`.
    fn set(&mut self, i: usize, word: u64);
}

/// A node of our own.
#[derive(Clone, PartialEq, Eq)]
pub struct Image(pub [u64; NODE_WORDS]);

impl Image {
    /// All zero: no valid node.
    pub fn zero() -> Self {
        Self([0; NODE_WORDS])
    }

    /// A copy of `words`.
    pub fn of(words: &impl Words) -> Self {
        Self(std::array::from_fn(|i| words.get(i)))
    }
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "level {}, {} entries", level(self), raw_count(self))
    }
}

impl Words for Image {
    #[inline]
    fn get(&self, i: usize) -> u64 {
        self.0[i]
    }

    #[inline]
    fn set(&mut self, i: usize, word: u64) {
        self.0[i] = word;
    }
}

/// A node that other threads may write.
#[derive(Clone, Copy)]
pub struct View<'a>(pub &'a [AtomicU64; NODE_WORDS]);

impl Words for View<'_> {
    #[inline]
    fn get(&self, i: usize) -> u64 {
        self.0[i].load(Relaxed)
    }

    #[inline]
    fn set(&mut self, i: usize, word: u64) {
        self.0[i].store(word, Relaxed);
    }
}

/// Levels above the leaves.
#[inline]
pub fn level(node: &impl Words) -> u8 {
    node.get(KIND) as u8
}

/// Entries or separators, at most [`CAPACITY`].
#[inline]
pub fn count(node: &impl Words) -> usize {
    usize::from((node.get(KIND) >> 8) as u16).min(CAPACITY)
}

/// How the node holds its keys; [`TreeKey::LAYOUT`](super::TreeKey::LAYOUT).
pub fn layout(node: &impl Words) -> u8 {
    (node.get(KIND) >> 24) as u8
}

pub(super) fn has_magic(node: &impl Words, expected: u8) -> bool {
    node.get(KIND) >> 32 == MAGIC && layout(node) == expected
}

/// The count as it stands, which may be damaged.
pub(super) fn raw_count(node: &impl Words) -> usize {
    usize::from((node.get(KIND) >> 8) as u16)
}

pub(super) fn set_kind(node: &mut impl Words, level: u8, count: usize) {
    debug_assert!(count <= CAPACITY && level <= MAX_LEVEL);
    node.set(KIND, MAGIC << 32 | (count as u64) << 8 | u64::from(level));
}

pub(super) fn set_count(node: &mut impl Words, count: usize) {
    let level = level(node);
    set_kind(node, level, count);
}

/// The lowest key that the node may hold.
#[inline]
pub fn low(node: &impl Words) -> u64 {
    node.get(LOW)
}

/// The highest key that the node may hold.
#[inline]
pub fn high(node: &impl Words) -> u64 {
    node.get(HIGH)
}

/// `key` lies between the fences.
#[inline]
pub fn covers(node: &impl Words, key: u64) -> bool {
    low(node) <= key && key <= high(node)
}

/// Sets the fences.
pub fn set_fences(node: &mut impl Words, low: u64, high: u64) {
    node.set(LOW, low);
    node.set(HIGH, high);
}

/// The node's own address; `None` if its top bit is set.
pub fn address(node: &impl Words) -> Option<Address> {
    Address::from_word(node.get(ADDRESS))
}

/// No entry can be added.
#[inline]
pub fn is_full(node: &impl Words) -> bool {
    count(node) == CAPACITY
}

/// Key or separator `i`, below [`CAPACITY`].
#[inline]
pub fn key(node: &impl Words, i: usize) -> u64 {
    node.get(KEYS + i)
}

/// Keys or separators that `below` holds for, which are the first ones.
///
/// Two steps, each of loads that do not wait for one another: a node that no cache of the
/// processor holds is brought in at once, where a binary search waits for one line after the other.
#[inline]
pub(super) fn partition(node: &impl Words, below: impl Fn(u64) -> bool) -> usize {
    let count = count(node);
    let is_below = |i: usize| usize::from(below(key(node, i)));
    let groups: usize = (GROUP - 1..count).step_by(GROUP).map(is_below).sum();
    let start = GROUP * groups;
    let rest: usize = (start..count.min(start + GROUP)).map(is_below).sum();
    start + rest
}

/// Moves `words` words from index `from` to index `to`.
pub(super) fn shift(node: &mut impl Words, from: usize, to: usize, words: usize) {
    let mut one = |i: usize| {
        let word = node.get(from + i);
        node.set(to + i, word);
    };
    if from < to {
        (0..words).rev().for_each(&mut one);
    } else {
        (0..words).for_each(&mut one);
    }
}

/// An empty node.
pub(super) fn blank(address: Address, level: u8, low: u64, high: u64) -> Image {
    let mut node = Image::zero();
    node.set(ADDRESS, address.word());
    set_kind(&mut node, level, 0);
    set_fences(&mut node, low, high);
    node
}

/// A copy becomes a new node at `address`.
pub fn reset(node: &mut Image, address: Address) {
    node.set(VERSION, 0);
    node.set(ADDRESS, address.word());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_found_in_nodes_of_every_size() {
        for entries in 0..=CAPACITY {
            let mut node = blank(Address::new(0, 4096), 0, 0, u64::MAX);
            (0..entries).for_each(|i| node.set(KEYS + i, 2 * i as u64));
            set_count(&mut node, entries);
            for key in 0..=2 * CAPACITY as u64 {
                let expected = (0..entries).filter(|i| (2 * i) < key as usize).count();
                assert_eq!(partition(&node, |other| other < key), expected);
            }
        }
    }
}
