//! Releases and runs after leaves and regions have parted: X joins small leaves, regions keep their
//! bounds.

use super::*;
use crate::{
    error::Error,
    framework::{
        counters::read,
        release::cut::{Effort, release},
    },
    y::memory::Op,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

const KEYS: u16 = 3000;
/// A few leaves a region.
const REGION_BYTES: u64 = 16 << 10;
const SEEDS: u64 = 8;
const VALUE_BYTES: usize = 300;

/// Entries of a few hundred bytes in many regions, clean; then some of them go, until the leaves of
/// several regions have become one.
fn thinned(tree: &Joined, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    for n in 0..KEYS {
        put(tree, &n.to_be_bytes(), &[n as u8; VALUE_BYTES]);
    }
    clean(tree);
    tree.choose_regions_of(REGION_BYTES);
    let mut from = 0;
    while from < KEYS {
        let (gone, stays) = (random.random_range(1..120), random.random_range(1..4));
        let to = (from + gone).min(KEYS);
        let (from_key, to_key) = (from.to_be_bytes(), to.to_be_bytes());
        tree.x
            .cut(&from_key, Some(&to_key), tree.settled(), false, usize::MAX);
        from = to + stays;
    }
}

/// What is clean can be had, whichever region it lies in: or writers would wait for ever for memory
/// that X holds.
#[test]
fn i7_whatever_is_clean_can_be_released() {
    for seed in 0..SEEDS {
        Rig::each(|rig, tree, _| {
            thinned(tree, seed);
            let trees = rig.trees();
            while release(&trees, &rig.shared, REGION_BYTES, Effort::Usual) > 0 {}
            let left = tree.x.stats().keys;
            assert_eq!(left, 0, "seed {seed}: of {KEYS} keys");
            assert_eq!(get(tree, &7u16.to_be_bytes()), some(&[7; VALUE_BYTES]));
        });
    }
}

/// The same for what is dirty: after a run that failed, the oldest regions are everything.
#[test]
fn i7_whatever_is_dirty_is_cleaned_when_memory_is_short() {
    for seed in 0..SEEDS {
        Rig::each(|_, tree, y| {
            thinned(tree, seed);
            let mut random = StdRng::seed_from_u64(seed);
            for _ in 0..200 {
                let n: u16 = random.random_range(0..KEYS);
                put(tree, &n.to_be_bytes(), b"new");
            }
            let full = Error::OutOfSpace { path: "y".into() };
            y.fail(Op::WriteRun, 0, 0, full);
            assert!(tree.write_back(Pick::All).is_err());
            assert!(tree.x.stats().dirty > 0);
            while tree.write_back(Pick::Oldest).unwrap().keys > 0 {}
            assert_eq!(tree.x.stats().dirty, 0, "seed {seed}");
            assert_clean_means_equal(tree);
        });
    }
}

/// A region alone is of level 0; neighbours of the same density go as one, of a higher level.
#[test]
fn what_is_released_is_counted_by_its_level() {
    Rig::each(|rig, tree, _| {
        for n in 0..KEYS {
            put(tree, &n.to_be_bytes(), &[n as u8; VALUE_BYTES]);
        }
        clean(tree);
        tree.choose_regions_of(REGION_BYTES);
        let counters = &rig.shared.counters;
        assert!(release(&rig.trees(), &rig.shared, 1, Effort::Usual) > 0);
        let by_level = || counters.released_by_level.each_ref().map(read);
        assert_eq!(by_level(), [1, 0, 0, 0]);
        assert_eq!(read(&counters.released_regions), 1);
        assert!(release(&rig.trees(), &rig.shared, u64::MAX, Effort::Usual) > 0);
        // Everything, at each of the rounds of a release at most: between 17 and 256 regions.
        let [_, _, wholes, above] = by_level();
        assert!((1..=4).contains(&wholes), "{wholes}");
        assert_eq!(above, 0);
        assert!((17..=256).contains(&read(&counters.released_regions)));
        assert_eq!(tree.x.stats().keys, 0);
    });
}
