//! Policies that go by times: a release notes what the next one goes by.

use super::*;
use crate::framework::{
    policies::Release,
    regions::sample,
    release::cut::{Effort, release},
};
use std::collections::BTreeSet;

const KEYS: u16 = 2000;
/// Several leaves a region.
const REGION_BYTES: u64 = 64 << 10;

/// Runs `test` over clean keys of so many regions; releases go by `policy` alone.
fn each(policy: Release, test: impl Fn(&Rig, &Joined, usize)) {
    let policies = Policies {
        release: policy,
        second_chance: false,
        ..Policies::default()
    };
    let manifest = Manifest {
        policies,
        ..Manifest::default()
    };
    Rig::each_as(manifest, |rig, tree, _| {
        for n in 0..KEYS {
            put(tree, &n.to_be_bytes(), &[7; 300]);
        }
        clean(tree);
        tree.choose_regions_of(REGION_BYTES);
        let regions = tree.regions.table().len();
        assert!(regions > 5, "{regions}");
        test(rig, tree, regions);
    });
}

fn in_memory(tree: &Joined) -> BTreeSet<[u8; 2]> {
    let keys = (0..KEYS).map(u16::to_be_bytes);
    keys.filter(|key| tree.has_in_x(key)).collect()
}

/// The one region of which a small release takes something.
fn released(rig: &Rig, tree: &Joined) -> usize {
    let before = in_memory(tree);
    let freed = release(&rig.trees(), &rig.shared, 1, Effort::Usual);
    let after = in_memory(tree);
    let table = tree.regions.table();
    let regions = before.difference(&after).map(|key| table.find(key));
    let regions: BTreeSet<usize> = regions.collect();
    assert!(freed > 0 && regions.len() == 1, "{freed} of {regions:?}");
    *regions.first().unwrap()
}

/// Something of `region` is accessed, at a time of its own.
fn access(tree: &Joined, region: usize) {
    let now = sample::now();
    while sample::now() == now {
        std::hint::spin_loop();
    }
    let table = tree.regions.table();
    tree.regions.note_accesses(table.bounds(region).0, 1);
}

#[test]
fn with_fifo_what_was_cut_longest_ago_goes_first() {
    each(Release::Fifo, |rig, tree, regions| {
        let order: Vec<usize> = (0..=regions).map(|_| released(rig, tree)).collect();
        let expected = (0..regions).chain([0]);
        assert!(expected.eq(order.iter().copied()), "{order:?}");
    });
}

#[test]
fn with_clock_a_region_that_was_passed_once_goes_the_next_time() {
    const IDLE: usize = 3;
    each(Release::Clock, |rig, tree, regions| {
        (0..regions).for_each(|region| access(tree, region));
        assert_eq!(released(rig, tree), 0, "all were in use");
        let others = (0..regions).filter(|region| *region != IDLE);
        others.for_each(|region| access(tree, region));
        assert_eq!(released(rig, tree), IDLE);
    });
}
