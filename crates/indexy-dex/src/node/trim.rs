//! A node that covers more than its parent says: what is left of a split or a merge whose other
//! half did not reach the pool (P1, P2 of `tree/`).

use super::{
    inner::{at_slot, new_inner},
    layout::{Image, VERSION, Words, address, count, high, level, low, set_fences},
    leaf::{entries, new_leaf},
};

/// Cuts a node down to `first..=last`, which it covers. `false`: it covers nothing else.
pub fn trim(node: &mut Image, first: u64, last: u64) -> bool {
    if (low(node), high(node)) == (first, last) {
        return false;
    }
    debug_assert!(low(node) <= first && last <= high(node));
    let Some(at) = address(node) else {
        return false;
    };
    let version = node.get(VERSION);
    let mut fresh = if level(node) == 0 {
        let mut leaf = new_leaf(at, first, last);
        let kept = entries(node, first).take_while(|entry| entry.0 <= last);
        super::leaf::fill(&mut leaf, kept);
        leaf
    } else {
        let routes = (0..=count(node)).map(|slot| at_slot(node, slot));
        let kept = routes.filter(|route| route.low <= last && first <= route.high);
        let children: Vec<_> = kept
            .map(|route| (route.low.max(first), route.word))
            .collect();
        new_inner(at, level(node), &children, last)
    };
    set_fences(&mut fresh, first, last);
    fresh.set(VERSION, version);
    *node = fresh;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        address::Address,
        node::{Edit, apply, check, find, route},
    };

    #[test]
    fn a_leaf_keeps_what_lies_inside() {
        let at = Address::new(1, 4096);
        let mut leaf = new_leaf(at, 0, 99);
        for key in (0..100).step_by(10) {
            apply(&mut leaf, key, Edit::Put(key + 1));
        }
        assert!(!trim(&mut leaf, 0, 99));
        assert!(trim(&mut leaf, 15, 50));
        check(&leaf, at).unwrap();
        assert_eq!(
            entries(&leaf, 0).map(|e| e.0).collect::<Vec<_>>(),
            [20, 30, 40, 50]
        );
        assert!(find(&leaf, 50).is_ok() && high(&leaf) == 50 && low(&leaf) == 15);
    }

    #[test]
    fn an_inner_node_keeps_the_children_that_reach_inside() {
        let at = Address::new(1, 4096);
        let children = [(0, 8192), (10, 9216), (20, 10240), (30, 11264)];
        let mut inner = new_inner(at, 2, &children, 39);
        assert!(trim(&mut inner, 10, 29));
        check(&inner, at).unwrap();
        assert_eq!(
            (
                count(&inner),
                route(&inner, 10).word,
                route(&inner, 29).word
            ),
            (1, 9216, 10240)
        );
        assert!(trim(&mut inner, 10, 12));
        assert_eq!((count(&inner), route(&inner, 11).word), (0, 9216));
    }
}
