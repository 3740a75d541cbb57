//! Reads a slotted node. Every offset and length is cut to what a node has, so a torn read gives a
//! wrong answer and never an access outside.

use super::{
    key::Bytes,
    stored::{Stored, bytes_of},
};
use crate::node::{
    inner::Route,
    layout::{NODE_BYTES, NODE_WORDS, Words, level, raw_count},
};

const LENGTHS: usize = 3;
const LOW_BYTE: usize = 32;
/// The length of an end that is none.
const NO_END: u8 = u8::MAX;
pub(super) const NODE: usize = NODE_BYTES as usize;
/// Bytes of a slot.
pub(super) const SLOT: usize = 4;
/// Bytes of a child.
pub(super) const CHILD: usize = 8;

/// The word where children and slots start.
pub(super) const fn start(limit: usize) -> usize {
    LOW_BYTE / 8 + limit / 4
}

/// Bytes for children, slots and heap.
pub(super) const fn room(limit: usize) -> usize {
    NODE - 8 * start(limit)
}

/// Most keys of a node of this level.
pub(super) fn most(limit: usize, level: u8) -> usize {
    match level {
        0 => room(limit) / SLOT,
        _ => (room(limit) - CHILD) / (SLOT + CHILD),
    }
}

/// What the word of the lengths says.
#[derive(Clone, Copy)]
pub(super) struct Lengths {
    pub(super) low: u8,
    pub(super) end: u8,
    pub(super) prefix: u8,
    pub(super) heap: u16,
}

impl Lengths {
    pub(super) fn of(node: &impl Words) -> Self {
        let word = node.get(LENGTHS);
        Self {
            low: word as u8,
            end: (word >> 8) as u8,
            prefix: (word >> 16) as u8,
            heap: (word >> 32) as u16,
        }
    }

    pub(super) fn word(self) -> u64 {
        let lengths = [self.low, self.end, self.prefix].map(u64::from);
        lengths[0] | lengths[1] << 8 | lengths[2] << 16 | u64::from(self.heap) << 32
    }

    pub(super) fn has_end(self) -> bool {
        self.end != NO_END
    }
}

/// Writes the fences and the lengths.
pub(super) fn set_head<const N: usize>(
    node: &mut impl Words,
    low: &Bytes<N>,
    end: Option<&Bytes<N>>,
    prefix: usize,
    heap: usize,
) {
    let lengths = Lengths {
        low: low.as_slice().len() as u8,
        end: end.map_or(NO_END, |end| end.as_slice().len() as u8),
        prefix: prefix as u8,
        heap: heap as u16,
    };
    node.set(LENGTHS, lengths.word());
    let mut fences = [[0; N]; 2];
    fences[0][..low.as_slice().len()].copy_from_slice(low.as_slice());
    if let Some(end) = end {
        fences[1][..end.as_slice().len()].copy_from_slice(end.as_slice());
    }
    let (words, _) = fences.as_flattened().as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        node.set(LOW_BYTE / 8 + i, u64::from_le_bytes(*word));
    }
}

/// Copies the bytes from `at` on; those outside are as they were.
pub(super) fn copy(node: &impl Words, mut at: usize, mut into: &mut [u8]) {
    while !into.is_empty() && at < NODE {
        let word = node.get(at / 8).to_le_bytes();
        let part = &word[at % 8..];
        let bytes = part.len().min(into.len());
        into[..bytes].copy_from_slice(&part[..bytes]);
        (at, into) = (at + bytes, &mut into[bytes..]);
    }
}

fn bytes_at<const N: usize>(node: &impl Words, at: usize, length: usize) -> Bytes<N> {
    let mut buffer = [0; N];
    let bytes = &mut buffer[..length.min(N)];
    copy(node, at, bytes);
    Bytes::cut(bytes)
}

/// Entries or separators.
pub(super) fn count<const N: usize>(node: &impl Words) -> usize {
    raw_count(node).min(most(N, level(node)))
}

pub(super) fn low<const N: usize>(node: &impl Words) -> Bytes<N> {
    bytes_at(node, LOW_BYTE, usize::from(Lengths::of(node).low))
}

/// The key after the high fence; `None`: there is none.
pub(super) fn end<const N: usize>(node: &impl Words) -> Option<Bytes<N>> {
    let lengths = Lengths::of(node);
    let end = usize::from(lengths.end);
    lengths.has_end().then(|| bytes_at(node, LOW_BYTE + N, end))
}

pub(super) fn high<const N: usize>(node: &impl Words) -> Bytes<N> {
    // An end that is empty is damaged or torn.
    let before = |end: Bytes<N>| end.predecessor().unwrap_or(Bytes::EMPTY);
    end(node).map_or(Bytes::GREATEST, before)
}

fn children(node: &impl Words, keys: usize) -> usize {
    if level(node) == 0 { 0 } else { keys + 1 }
}

/// Where the bytes of key `i` are.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub(super) offset: usize,
    pub(super) key: usize,
    pub(super) mark: u8,
}

/// Slot `i`, below the count.
pub(super) fn slot<const N: usize>(node: &impl Words, i: usize) -> Slot {
    let at = start(N) + children(node, count::<N>(node)) + i / 2;
    let word = if at < NODE_WORDS { node.get(at) } else { 0 };
    let half = (word >> (32 * (i % 2))) as u32;
    Slot {
        offset: usize::from(half as u16),
        key: usize::from((half >> 16) as u8),
        mark: (half >> 24) as u8,
    }
}

/// What all keys of the node start with.
fn prefix<const N: usize>(node: &impl Words) -> Bytes<N> {
    let length = usize::from(Lengths::of(node).prefix);
    bytes_at(node, LOW_BYTE, length)
}

/// Key or separator `i`, below the count.
pub(super) fn key<const N: usize>(node: &impl Words, i: usize) -> Bytes<N> {
    let slot = slot::<N>(node, i);
    let rest: Bytes<N> = bytes_at(node, slot.offset, slot.key);
    prefix(node).extended(rest.as_slice())
}

/// The value of entry `i` of a leaf, below the count.
pub(super) fn value<const N: usize>(leaf: &impl Words, i: usize) -> Stored {
    let slot = slot::<N>(leaf, i);
    Stored::read(slot.mark, |into| copy(leaf, slot.offset + slot.key, into))
}

/// Keys below `wanted`, or up to it.
pub(super) fn search<const N: usize>(node: &impl Words, wanted: &Bytes<N>, up_to: bool) -> usize {
    let prefix: Bytes<N> = prefix(node);
    let keys = count::<N>(node);
    let shared = prefix.as_slice().len().min(wanted.as_slice().len());
    let (head, rest) = wanted.as_slice().split_at(shared);
    match head.cmp(&prefix.as_slice()[..shared]) {
        std::cmp::Ordering::Less => return 0,
        std::cmp::Ordering::Greater => return keys,
        // All keys are longer than the prefix is, or equal to it.
        std::cmp::Ordering::Equal if shared < prefix.as_slice().len() => return 0,
        std::cmp::Ordering::Equal => {}
    }
    let (mut start, mut length) = (0, keys);
    while length > 0 {
        let half = length / 2;
        let slot = slot::<N>(node, start + half);
        let other: Bytes<N> = bytes_at(node, slot.offset, slot.key);
        let order = other.as_slice().cmp(rest);
        if order.is_lt() || up_to && order.is_eq() {
            start += half + 1;
            length -= half + 1;
        } else {
            length = half;
        }
    }
    start
}

/// Where `wanted` is in a leaf, or where it would be.
pub(super) fn find<const N: usize>(leaf: &impl Words, wanted: &Bytes<N>) -> Result<usize, usize> {
    let at = search(leaf, wanted, false);
    if at < count::<N>(leaf) && key::<N>(leaf, at) == *wanted {
        Ok(at)
    } else {
        Err(at)
    }
}

pub(super) fn child<const N: usize>(node: &impl Words, slot: usize) -> u64 {
    let at = start(N) + slot;
    if at < NODE_WORDS { node.get(at) } else { 0 }
}

pub(super) fn set_child<const N: usize>(node: &mut impl Words, slot: usize, word: u64) {
    debug_assert!(slot <= count::<N>(node));
    node.set(start(N) + slot, word);
}

pub(super) fn at_slot<const N: usize>(node: &impl Words, slot: usize) -> Route<Bytes<N>> {
    let before = slot.checked_sub(1).map(|i| key(node, i));
    let after = (slot < count::<N>(node)).then(|| key::<N>(node, slot));
    // A key that is empty is torn.
    let after = after.map(|key| key.predecessor().unwrap_or(key));
    Route {
        slot,
        word: child::<N>(node, slot),
        low: before.unwrap_or_else(|| low(node)),
        high: after.unwrap_or_else(|| high(node)),
    }
}

/// Bytes of room that the node's keys and values take, without its fences.
pub(super) fn used<const N: usize>(node: &impl Words) -> usize {
    let keys = count::<N>(node);
    let heap = usize::from(Lengths::of(node).heap);
    CHILD * children(node, keys) + SLOT * keys + heap
}

/// Bytes of an entry beside the prefix.
pub(super) fn bytes_of_slot(slot: Slot, is_leaf: bool) -> usize {
    slot.key + if is_leaf { bytes_of(slot.mark) } else { 0 }
}
