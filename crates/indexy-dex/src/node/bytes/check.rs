//! A slotted node that comes from the pool is not trusted.

use super::{
    key::Bytes,
    slots::{
        CHILD, Lengths, NODE, SLOT, bytes_of_slot, child, end, high, key, low, most, slot, start,
        used,
    },
    stored::is_mark,
};
use crate::{
    address::Address,
    error::{Error, Result},
    node::layout::{Image, MAX_LEVEL, address, has_magic, level, raw_count},
};

/// Every later access to the node stays inside, and every child is an address.
pub(super) fn check<const N: usize>(node: &Image, at: Address) -> Result<()> {
    match fault::<N>(node, at) {
        None => Ok(()),
        Some(what) => Err(Error::corrupt(at, what)),
    }
}

fn fault<const N: usize>(node: &Image, at: Address) -> Option<&'static str> {
    if !has_magic(node, Bytes::<N>::LIMIT) {
        return Some("this is no node of the tree's kind of keys");
    }
    if address(node) != Some(at) {
        return Some("the node belongs elsewhere");
    }
    if level(node) > MAX_LEVEL || raw_count(node) > most(N, level(node)) {
        return Some("the node's level or count is impossible");
    }
    let lengths = Lengths::of(node);
    let has_fences =
        usize::from(lengths.low) <= N && (!lengths.has_end() || usize::from(lengths.end) <= N);
    if !has_fences || low::<N>(node) > high(node) || end::<N>(node) == Some(Bytes::EMPTY) {
        return Some("the node's fences are impossible");
    }
    if usize::from(lengths.prefix) != low::<N>(node).common(&high(node)) {
        return Some("the node's prefix is not that of its fences");
    }
    if 8 * start(N) + used::<N>(node) > NODE {
        return Some("the node has more bytes than room");
    }
    slots_fault::<N>(node).or_else(|| keys_fault::<N>(node))
}

/// Slots name bytes of the heap.
fn slots_fault<const N: usize>(node: &Image) -> Option<&'static str> {
    let (is_leaf, lengths) = (level(node) == 0, Lengths::of(node));
    let bottom = NODE - usize::from(lengths.heap);
    let mut bytes = 0;
    for i in 0..raw_count(node) {
        let slot = slot::<N>(node, i);
        let here = bytes_of_slot(slot, is_leaf);
        let is_inside = bottom <= slot.offset && slot.offset + here <= NODE;
        let is_short = usize::from(lengths.prefix) + slot.key <= N;
        let is_marked = if is_leaf {
            is_mark(slot.mark)
        } else {
            slot.mark == 0
        };
        if !is_inside || !is_short || !is_marked {
            return Some("a slot of the node names no bytes of it");
        }
        bytes += here;
    }
    (bytes != usize::from(lengths.heap)).then_some("the node's heap has bytes that nobody names")
}

fn keys_fault<const N: usize>(node: &Image) -> Option<&'static str> {
    let (entries, inner) = (raw_count(node), level(node) > 0);
    let keys = || (0..entries).map(|i| key::<N>(node, i));
    if keys().zip(keys().skip(1)).any(|(a, b)| a >= b) {
        return Some("the node's keys are not ascending");
    }
    let is_low = keys().next().is_some_and(|first| {
        let low = low::<N>(node);
        first < low || inner && first == low
    });
    if is_low || keys().next_back().is_some_and(|last| last > high(node)) {
        return Some("a key lies outside the node's fences");
    }
    let strange = |word| Address::from_word(word).is_none_or(|child| child.offset() == 0);
    if inner && (0..=entries).any(|slot| strange(child::<N>(node, slot))) {
        return Some("a child has an impossible address");
    }
    None
}

const _: () = assert!(SLOT == 4 && CHILD == 8);
