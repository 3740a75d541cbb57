//! Values that become longer and shorter: leaves follow them, and do so seldom enough.

use super::{memory, put, remove, spread};
use crate::x::{
    IndexX, Lookup,
    entry::MAX_INLINE_VALUE,
    tree::{Kind, Spot, Tree},
};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::SliceRandom};
use std::collections::BTreeMap;

every_tree! {
    values_of_other_sizes_take_what_a_fresh_load_takes,
    sizes_in_turns_take_what_a_fresh_load_takes,
    a_leaf_whose_values_left_shrinks,
    sizes_that_change_to_and_fro_seldom_replace_a_leaf,
    values_around_the_limit_are_what_was_written,
}

const SIZES: [usize; 4] = [40, 120, 200, 1000];

fn loaded<S: Kind>(keys: u64, size: impl Fn(u64) -> usize) -> Tree<S> {
    let tree = Tree::<S>::new(memory(), false);
    (0..keys).for_each(|i| put(&tree, &spread(i), &vec![1; size(i)]));
    tree
}

/// How full leaves are goes up and down with the number of keys: they split at much the same time.
/// So a tree is compared with a fresh one at several, which make up one such turn.
const NUMBERS: [u64; 4] = [5_657, 6_727, 8_000, 9_514];

/// Bytes of trees that were changed, and of such that were filled with the same.
#[derive(Default)]
struct Compared {
    changed: usize,
    fresh: usize,
}

impl Compared {
    fn add<S: Kind>(&mut self, tree: &Tree<S>, size: impl Fn(u64) -> usize) {
        assert_eq!(tree.verify(true), Ok(()));
        let stats = tree.stats();
        self.changed += stats.bytes;
        self.fresh += loaded::<S>(stats.keys as u64, size).stats().bytes;
    }

    /// The first ones take a tenth more at most.
    fn check(&self, what: &str) {
        let part = self.changed as f64 / self.fresh as f64;
        assert!(part <= 1.1, "{what}: {part:.3} of fresh trees");
    }
}

/// Each value is written once more, in order of keys or in any.
fn values_of_other_sizes_take_what_a_fresh_load_takes<S: Kind>() {
    for (from, to) in SIZES.iter().flat_map(|&from| SIZES.map(|to| (from, to))) {
        for sorted in [true, false] {
            let mut compared = Compared::default();
            for keys in NUMBERS {
                let mut order: Vec<u64> = (0..keys).collect();
                match sorted {
                    true => order.sort_by_key(|&i| spread(i)),
                    false => order.shuffle(&mut StdRng::seed_from_u64(1)),
                }
                let tree = loaded::<S>(keys, |_| from);
                let value = vec![2; to];
                order.iter().for_each(|&i| put(&tree, &spread(i), &value));
                compared.add(&tree, |_| to);
            }
            compared.check(&format!("{from} to {to} bytes, sorted: {sorted}"));
        }
    }
}

/// Values of any of the sizes in place of others.
fn sizes_in_turns_take_what_a_fresh_load_takes<S: Kind>() {
    let mut compared = Compared::default();
    for keys in NUMBERS {
        let mut rng = StdRng::seed_from_u64(2);
        let mut sizes = vec![SIZES[0]; keys as usize];
        let tree = loaded::<S>(keys, |_| SIZES[0]);
        for _ in 0..10 * keys {
            let i = rng.random_range(0..keys);
            let size = SIZES[rng.random_range(0..SIZES.len())];
            sizes[i as usize] = size;
            put(&tree, &spread(i), &vec![3; size]);
        }
        compared.add(&tree, |i| sizes[i as usize]);
    }
    compared.check("sizes in turns");
}

/// Bytes of the leaf that has `key`, and where it is.
fn leaf_of<S: Kind>(tree: &Tree<S>, key: &[u8]) -> (usize, usize) {
    let guard = tree.memory.enter();
    match S::try_find(&tree.root, &guard, key) {
        Some(Spot::Leaf(seen)) => {
            let leaf = seen.leaf();
            (leaf.size(), leaf.block().addr().get())
        }
        _ => panic!("no leaf"),
    }
}

fn a_leaf_whose_values_left_shrinks<S: Kind>() {
    const KEYS: u8 = 12;
    let tree = Tree::<S>::new(memory(), false);
    (0..KEYS).for_each(|i| put(&tree, &[i], &[1; 120]));
    let (large, _) = leaf_of(&tree, &[0]);
    assert!(large > usize::from(KEYS) * 120, "{large}");
    (0..KEYS).for_each(|i| put(&tree, &[i], &[2; 1000]));
    let (small, _) = leaf_of(&tree, &[0]);
    assert!(small * 3 < large, "{large} bytes became {small}");
    assert_eq!(tree.verify(true), Ok(()));
    tree.memory.collect();
    assert_eq!(tree.stats().bytes, tree.memory.live_bytes());
    for i in 0..KEYS {
        let found = tree.get(&[i], |value| value == [2; 1000]);
        assert_eq!(found, Lookup::Found(true), "{i}");
    }
}

/// One key, some, or all of a leaf have a short value and a long one in turns.
fn sizes_that_change_to_and_fro_seldom_replace_a_leaf<S: Kind>() {
    const KEYS: u8 = 13;
    const ROUNDS: usize = 400;
    for (keys, change) in [(1, 1), (2, 1), (KEYS, 1), (KEYS, 4), (KEYS, KEYS)] {
        for sizes in [[20, 120], [120, 1000], [20, 1000]] {
            let tree = Tree::<S>::new(memory(), false);
            (0..keys).for_each(|i| put(&tree, &[i], &[1; 120]));
            let mut replaced = 0;
            for round in 0..ROUNDS {
                for i in 0..change {
                    let (_, before) = leaf_of(&tree, &[i]);
                    put(&tree, &[i], &vec![2; sizes[round % 2]]);
                    let (_, after) = leaf_of(&tree, &[i]);
                    replaced += usize::from(before != after);
                }
            }
            let puts = ROUNDS * usize::from(change);
            // A leaf that became smaller was replaced after three writes of a shorter value, of six
            // in all, and once more when it grew again. A full one grows in small steps.
            let seldom = if change == KEYS { 2 } else { 3 };
            assert!(
                replaced * seldom <= puts,
                "{change} of {keys} keys, {sizes:?}: {replaced} leaves in {puts} writes"
            );
        }
    }
}

/// Lengths on both sides of the limit, removals among them, against a map.
fn values_around_the_limit_are_what_was_written<S: Kind>() {
    const KEYS: u64 = 300;
    let memory = memory();
    let tree = Tree::<S>::new(memory.clone(), false);
    let mut truth = BTreeMap::new();
    let mut rng = StdRng::seed_from_u64(3);
    for step in 0..60_000u32 {
        let i = rng.random_range(0..KEYS);
        // Times in which nearly all are short, or long.
        let short = rng.random_range(0..8) < [1, 7, 4][step as usize / 5_000 % 3];
        let len = match short {
            true => rng.random_range(0..24),
            false => rng.random_range(MAX_INLINE_VALUE - 8..=MAX_INLINE_VALUE + 8),
        };
        if rng.random_range(0..16) == 0 {
            remove(&tree, &spread(i));
            truth.remove(&i);
        } else {
            let value = vec![step as u8; len];
            put(&tree, &spread(i), &value);
            truth.insert(i, value);
        }
        if step % 1000 == 0 {
            assert_eq!(tree.verify(true), Ok(()), "{step}");
            for i in 0..KEYS {
                let found = tree.get(&spread(i), <[u8]>::to_vec);
                let expected = truth.get(&i).cloned().map_or(Lookup::Absent, Lookup::Found);
                assert_eq!(found, expected, "{i} after {step}");
            }
        }
    }
    memory.collect();
    assert_eq!(memory.live_bytes(), tree.stats().bytes);
}
