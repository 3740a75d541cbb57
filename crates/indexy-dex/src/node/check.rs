//! What comes from the pool is not trusted.

use super::{
    inner::child,
    layout::{
        CAPACITY, Image, MAX_LEVEL, RESERVED, Words, address, count, has_magic, high, key, level,
        low, raw_count,
    },
};
use crate::{
    address::Address,
    error::{Error, Result},
};

/// A node that was read at `at` is one that a compute server writes: every later access to it
/// stays inside, and every child is an address.
pub fn check(node: &Image, at: Address) -> Result<()> {
    match fault(node, at) {
        None => Ok(()),
        Some(what) => Err(Error::corrupt(at, what)),
    }
}

fn fault(node: &Image, at: Address) -> Option<&'static str> {
    if !has_magic(node, 0) {
        return Some("this is no node");
    }
    if address(node) != Some(at) {
        return Some("the node belongs elsewhere");
    }
    if level(node) > MAX_LEVEL || raw_count(node) > CAPACITY {
        return Some("the node's level or count is impossible");
    }
    if low(node) > high(node) {
        return Some("the node's fences are in the wrong order");
    }
    if RESERVED.map(|i| node.get(i)).any(|word| word != 0) {
        return Some("reserved words of the node are not zero");
    }
    let entries = count(node);
    let inner = level(node) > 0;
    let keys = || (0..entries).map(|i| key(node, i));
    if keys().zip(keys().skip(1)).any(|(a, b)| a >= b) {
        return Some("the node's keys are not ascending");
    }
    let first = keys().next().unwrap_or(high(node));
    let lowest_allowed = low(node).checked_add(u64::from(inner && entries > 0));
    if lowest_allowed.is_none_or(|lowest| first < lowest)
        || keys().next_back().is_some_and(|last| last > high(node))
    {
        return Some("a key lies outside the node's fences");
    }
    let strange = |word| Address::from_word(word).is_none_or(|child| child.offset() == 0);
    if inner && (0..=entries).any(|slot| strange(child(node, slot))) {
        return Some("a child has an impossible address");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{new_inner, new_leaf};

    #[test]
    fn whole_nodes_pass() {
        let at = Address::new(1, 4096);
        check(&new_leaf(at, 5, 5), at).unwrap();
        let inner = new_inner(at, 1, &[(0, 8192), (10, 9216)], u64::MAX);
        check(&inner, at).unwrap();
        check(&new_inner(at, 1, &[(7, 8192)], 7), at).unwrap();
    }

    #[test]
    fn damage_is_found() {
        let at = Address::new(1, 4096);
        let inner = new_inner(at, 1, &[(5, 8192), (10, 9216), (20, 1024)], 30);
        let damage: [(usize, u64); 10] = [
            (1, 8192),
            (2, 0),
            (2, inner.get(2) | 0xffff << 8),
            (2, inner.get(2) | 0xf0),
            (4, 4),
            (6, 1),
            (8, 25),
            (8, 5),
            (9, 31),
            (67, crate::node::SWIZZLED),
        ];
        for (i, word) in damage {
            let mut damaged = inner.clone();
            damaged.set(i, word);
            assert!(check(&damaged, at).is_err(), "word {i}: {word:#x}");
        }
        check(&inner, at).unwrap();
    }
}
