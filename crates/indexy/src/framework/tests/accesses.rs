//! What is counted as accesses of a region, and when the counts fade.

use super::*;
use crate::{
    framework::{
        regions::sample::PERIOD,
        release::cut::{Effort, release},
        scan::MergeLimits,
    },
    x::Order,
};

const KEYS: u16 = 2000;
/// One of a region in the middle.
const HOT: [u8; 2] = (KEYS / 2).to_be_bytes();
/// So many accesses are to be counted.
const SAMPLES: u32 = 30;
const LIMITS: MergeLimits = MergeLimits {
    bytes: 1 << 20,
    entries: 10,
    at_hand: 40,
};

/// Keys of many regions, dirty, without an access.
fn fill(tree: &Joined) {
    for n in 0..KEYS {
        put(tree, &n.to_be_bytes(), &[7; 100]);
    }
    tree.choose_regions_of(16 << 10);
    assert!(tree.regions.table().len() > 8);
    assert_eq!(all(tree), 0);
}

/// Of each region.
fn counts(tree: &Joined) -> Vec<u64> {
    let table = tree.regions.table();
    (0..table.len()).map(|i| table.accesses(i)).collect()
}

fn all(tree: &Joined) -> u64 {
    counts(tree).iter().sum()
}

fn of_hot(tree: &Joined) -> u64 {
    let table = tree.regions.table();
    table.accesses(table.find(&HOT))
}

#[test]
fn writes_of_every_kind_count_for_the_region_of_their_key() {
    Rig::each(|_, tree, _| {
        fill(tree);
        for _ in 0..SAMPLES * PERIOD / 3 {
            put(tree, &HOT, b"put");
            tree.apply(&HOT, Some(b"of a batch"));
            remove(tree, &HOT);
        }
        assert_eq!(of_hot(tree), u64::from(SAMPLES));
        assert_eq!(all(tree), u64::from(SAMPLES), "no other region has any");
    });
}

/// Of keys in memory, of absent ones, and of those that only Y has.
#[test]
fn gets_of_every_kind_count_for_the_region_of_their_key() {
    Rig::each(|_, tree, _| {
        fill(tree);
        let absent = [&HOT[..], b"absent"].concat();
        for _ in 0..SAMPLES * PERIOD / 3 {
            assert!(get(tree, &HOT).is_some());
            assert_eq!(get(tree, &absent), None);
            assert!(tree.multi_get(&[&HOT]).unwrap()[0].is_some());
        }
        assert_eq!(of_hot(tree), u64::from(SAMPLES));
        assert_eq!(all(tree), u64::from(SAMPLES), "no other region has any");

        clean(tree);
        for _ in 0..PERIOD {
            cut(tree);
            assert!(get(tree, &HOT).is_some());
        }
        assert_eq!(of_hot(tree), u64::from(SAMPLES) + 1);
        assert_eq!(all(tree), u64::from(SAMPLES) + 1);
    });
}

/// Scans the region of [`HOT`] once; returns how many entries it has.
fn scan_hot(tree: &Joined, order: Order) -> u64 {
    let table = tree.regions.table();
    let (from, to) = table.bounds(table.find(&HOT));
    let (mut from, mut to) = (from.to_vec(), to.map(<[u8]>::to_vec));
    let mut found = 0;
    loop {
        let chunk = tree.scan_chunk(&from, to.as_deref(), order, LIMITS);
        let chunk = chunk.unwrap();
        found += chunk.entries.len() as u64;
        match (chunk.resume, order) {
            (None, _) => return found,
            (Some(at), Order::Ascending) => from = at,
            (Some(at), Order::Descending) => to = Some(at),
        }
    }
}

#[test]
fn scans_count_the_entries_that_they_find_in_memory() {
    for order in [Order::Ascending, Order::Descending] {
        Rig::each(|_, tree, _| {
            fill(tree);
            let period = u64::from(PERIOD);
            let mut found = 0;
            while found < u64::from(SAMPLES) * period {
                found += scan_hot(tree, order);
            }
            let counted = of_hot(tree);
            // The thread may have been in the middle of a period.
            let expected = found / period..=found / period + 1;
            assert!(expected.contains(&counted), "{counted}, not {expected:?}");
            assert_eq!(all(tree), counted, "no other region has any");

            clean(tree);
            cut(tree);
            for _ in 0..100 {
                assert!(scan_hot(tree, order) > 0);
            }
            assert_eq!(all(tree), counted, "they are on disk");
        });
    }
}

#[test]
fn keys_that_are_read_ahead_for_whoever_removes_the_first_count() {
    const POPS: u64 = 1900;
    const MOST_AHEAD: u64 = 16;
    for order in [Order::Ascending, Order::Descending] {
        Rig::each(|_, tree, _| {
            fill(tree);
            // The first call says only that there may be more.
            assert!(tree.first(order).is_none());
            for _ in 0..POPS {
                let first = tree.first(order).expect("all of the tree is in memory");
                remove(tree, &first.key);
                tree.pass_first(&first);
            }
            // Each key was read, and written.
            let (least, period) = (2 * POPS, u64::from(PERIOD));
            let expected = least / period..=(least + MOST_AHEAD) / period + 1;
            let counted = all(tree);
            assert!(expected.contains(&counted), "{counted}, not {expected:?}");
        });
    }
}

#[test]
fn counts_are_halved_once_by_a_release_that_freed_something_and_by_no_other() {
    const NOTED: u32 = 64;
    Rig::each(|rig, tree, _| {
        let (other, _) = rig.tree(TREE + 1);
        for tree in [tree, &other] {
            fill(tree);
            tree.regions.note_accesses(&HOT, NOTED);
        }
        let release = |effort| release(&rig.trees(), &rig.shared, 8 << 10, effort);
        let assert_noted = |n: u32, when: &str| {
            for tree in [tree, &other] {
                assert_eq!(all(tree), u64::from(n), "tree {} {when}", tree.id);
            }
        };
        for effort in [Effort::Usual, Effort::Exhaustive] {
            assert_eq!(release(effort), 0, "all is dirty");
            assert_noted(NOTED, "after nothing was freed");
        }
        clean(tree);
        assert!(release(Effort::Usual) > 0);
        assert_noted(NOTED / 2, "after one release");
        assert!(release(Effort::Usual) > 0);
        assert_noted(NOTED / 4, "after two");
    });
}
