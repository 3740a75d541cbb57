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

/// What `tree` takes is not a tenth more than a tree takes that was filled with the same.
fn takes_no_more_than_fresh<S: Kind>(what: &str, tree: &Tree<S>, size: impl Fn(u64) -> usize) {
    let stats = tree.stats();
    let fresh = loaded::<S>(stats.keys as u64, size).stats();
    let each = |bytes: usize| bytes as f64 / stats.keys as f64;
    assert!(
        stats.bytes * 10 <= fresh.bytes * 11,
        "{what}: {:.1} bytes a key, {:.1} in a fresh tree",
        each(stats.bytes),
        each(fresh.bytes)
    );
    assert_eq!(tree.verify(true), Ok(()));
}

/// Each value is written once more, in order of keys or in any.
fn values_of_other_sizes_take_what_a_fresh_load_takes<S: Kind>() {
    const KEYS: u64 = 8_000;
    let mut order: Vec<u64> = (0..KEYS).collect();
    for sorted in [true, false] {
        match sorted {
            true => order.sort_by_key(|&i| spread(i)),
            false => order.shuffle(&mut StdRng::seed_from_u64(1)),
        }
        for (from, to) in SIZES.iter().flat_map(|&from| SIZES.map(|to| (from, to))) {
            let tree = loaded::<S>(KEYS, |_| from);
            order
                .iter()
                .for_each(|&i| put(&tree, &spread(i), &vec![2; to]));
            let what = format!("{from} to {to} bytes, sorted: {sorted}");
            takes_no_more_than_fresh(&what, &tree, |_| to);
        }
    }
}

/// Values of any of the sizes in place of others.
fn sizes_in_turns_take_what_a_fresh_load_takes<S: Kind>() {
    const KEYS: u64 = 8_000;
    let mut rng = StdRng::seed_from_u64(2);
    let mut sizes = vec![SIZES[0]; KEYS as usize];
    let tree = loaded::<S>(KEYS, |_| SIZES[0]);
    for round in 0..6 {
        for _ in 0..2 * KEYS {
            let i = rng.random_range(0..KEYS);
            let size = SIZES[rng.random_range(0..SIZES.len())];
            sizes[i as usize] = size;
            put(&tree, &spread(i), &vec![3; size]);
        }
        let what = format!("round {round}");
        takes_no_more_than_fresh(&what, &tree, |i| sizes[i as usize]);
    }
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
            assert!(
                replaced * 4 <= puts,
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
