//! Ranges beside runs that are published while they are open.

use super::{crash::open_sim, *};
use crate::{
    storage::sim::Sim,
    y::{
        conformance::{Entries, Store, put, write},
        removed_range::pages_of_a_removed_range,
    },
};
use rand::{Rng, SeedableRng, rngs::StdRng};

const KEYS: u32 = 1500;

/// Keys in pages alone, keys that differ in their chains alone, and both kinds mixed.
fn key(style: u64, id: u32) -> Vec<u8> {
    match style {
        0 => id.to_be_bytes().to_vec(),
        1 => [&[(id / 100) as u8; 515][..], &id.to_be_bytes()].concat(),
        _ => {
            let mut key = (id / 3).to_be_bytes().to_vec();
            key.resize(4 + [0, 508, 600][id as usize % 3], 0);
            key
        }
    }
}

/// A run over a part of the keys: even ones get a value of another size, odd ones may go.
fn disturb(y: &PagedY, style: u64, rng: &mut StdRng) {
    let from = rng.random_range(0..KEYS);
    let to = (from + rng.random_range(1..600)).min(KEYS);
    let odd_go = rng.random_bool(0.5);
    let run: Entries = (from..to)
        .map(|id| {
            let value = vec![2; rng.random_range(0..300)];
            (key(style, id), (id % 2 == 0 || !odd_go).then_some(value))
        })
        .collect();
    write(y, &run).unwrap();
}

/// Keys that are there all the while come once, in order, and `size_hint` promises nothing that
/// does not come.
#[test]
fn i9_runs_beside_an_open_range_hide_and_repeat_nothing() {
    for style in 0..3 {
        let store = OnDisk::new(4096, 64 << 10);
        let y = store.open();
        let mut rng = StdRng::seed_from_u64(style);
        let all: Entries = (0..KEYS)
            .map(|id| (key(style, id), Some(vec![1; 4])))
            .collect();
        write(&y, &all).unwrap();
        for round in 0..8 {
            let from = rng.random_range(0..KEYS - 100);
            let end = if round % 4 < 2 {
                KEYS
            } else {
                rng.random_range(from + 1..KEYS)
            };
            let to = (end < KEYS).then(|| key(style, end));
            let order = [Order::Ascending, Order::Descending][round % 2];
            let mut range = y.range(&key(style, from), to.as_deref(), order).unwrap();
            let (mut seen, mut promised): (Vec<Vec<u8>>, usize) = (Vec::new(), 0);
            loop {
                promised = promised.max(seen.len() + range.size_hint().0);
                let Some(entry) = range.next() else { break };
                seen.push(entry.unwrap().0.to_vec());
                if rng.random_bool(0.02) {
                    disturb(&y, style, &mut rng);
                }
            }
            assert!(seen.len() >= promised);
            if order == Order::Descending {
                seen.reverse();
            }
            assert!(seen.is_sorted_by(|a, b| a < b));
            let within =
                |k: &Vec<u8>| *k >= key(style, from) && to.as_ref().is_none_or(|to| k < to);
            assert!(seen.iter().all(within));
            for id in (from..end).filter(|id| id % 2 == 0) {
                assert!(
                    seen.binary_search(&key(style, id)).is_ok(),
                    "style {style}, {id}"
                );
            }
        }
        y.make_durable().unwrap();
        y.verify().unwrap();
    }
}

/// I7: whoever removes a large tree holds a bit for each of its pages, and so does the old version
/// while somebody reads it.
#[test]
fn a_removal_holds_few_bytes_for_a_page() {
    const COUNT: u32 = 300;
    let sim = Sim::default();
    let y = open_sim(&sim, 4096).unwrap();
    let large = vec![3; 300 << 10];
    let run = |n: u32| put(&n.to_be_bytes(), &large);
    write(&y, &(0..COUNT).map(run).collect()).unwrap();
    y.make_durable().unwrap();
    let pages = y.space.lock().end() as usize;
    assert!(pages > 20_000, "{pages}");
    let read = y.version.load_full();
    let space_bytes = || y.space.lock().memory_bytes();
    let before = space_bytes();
    let removal = y.begin_removal(&[(b"", None)]).unwrap();
    let held = y.load_bytes.load(Relaxed);
    assert!((pages / 8..pages * 2).contains(&held), "{held} of {pages}");
    removal.publish().unwrap();
    assert_eq!(y.load_bytes.load(Relaxed), 0);
    let old = space_bytes() - before;
    assert!((pages / 8..pages * 2).contains(&old), "{old} of {pages}");
    drop(read);
    y.make_durable().unwrap();
    y.maintain().unwrap();
    assert!(space_bytes() < before + pages);
    assert!(y.space.lock().busy_pages() < 10);
    assert!(y.is_empty().unwrap());
}

/// All of a removed range lies in the two leaves that are left at its ends: they are read once.
#[test]
fn a_removed_range_is_passed_by_reads_of_two_leaves() {
    for page_bytes in [4096, 16384] {
        let store = OnDisk::new(page_bytes, 1 << 20);
        let pages = pages_of_a_removed_range(&store, |y| y.pages.pool.reads.load(Relaxed));
        assert!(pages <= 2, "{pages}");
    }
}
