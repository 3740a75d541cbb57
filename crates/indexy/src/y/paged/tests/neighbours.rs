//! Runs that carry over from a page into its right neighbour.

use super::*;
use crate::y::conformance::{Entries, Model, Store, check, put, write};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;

/// Runs that change most leaves fill pages, and the file stays near what the entries take; runs
/// here and there leave halves.
#[test]
fn neighbours_that_change_fill_pages() {
    const RUNS: usize = 8;
    const RUN_KEYS: usize = 5000;
    let store = OnDisk::new(4096, 0);
    let y = store.open();
    let mut rng = StdRng::seed_from_u64(3);
    for _ in 0..RUNS {
        let mut run: Entries = (0..RUN_KEYS)
            .map(|_| put(&rng.random::<[u8; 8]>(), &[7; 8]))
            .collect();
        run.sort();
        write(&y, &run).unwrap();
    }
    y.make_durable().unwrap();
    assert_eq!(y.verify().unwrap(), (RUNS * RUN_KEYS) as u64);
    // A slot, seven bytes of a key behind its prefix, a length and a value.
    let least = RUNS * RUN_KEYS * (8 + 7 + 4 + 8) / 4096;
    let used = y.space.lock().busy_pages() as usize;
    assert!(used <= least * 6 / 5, "{used} pages for {least}");
}

/// Keys of all lengths, whose bounds lie in chains: every run joins, splits and carries over.
#[test]
fn leaves_of_long_keys_take_what_their_neighbours_leave() {
    let store = OnDisk::new(4096, 64 << 10);
    let y = store.open();
    let mut model = Model::new();
    let mut rng = StdRng::seed_from_u64(4);
    for round in 0..12u8 {
        let mut run = BTreeMap::new();
        for _ in 0..400 {
            let len = [3, 30, 300, 510, 520, 900][rng.random_range(0..6)];
            let mut key = vec![rng.random_range(0..3); len];
            let tail = rng.random::<u16>().to_be_bytes();
            let at = rng.random_range(0..len - 1);
            key[at..at + 2].copy_from_slice(&tail);
            let value = vec![round; [0, 10, 500, 1500][rng.random_range(0..4)]];
            run.insert(key, (round % 4 != 3 || rng.random()).then_some(value));
        }
        for key in model.keys().filter(|_| round % 4 == 3) {
            if rng.random_bool(0.6) {
                run.insert(key.clone(), None);
            }
        }
        for (key, value) in &run {
            match value {
                Some(value) => model.insert(key.clone(), value.clone()),
                None => model.remove(key),
            };
        }
        write(&y, &run.into_iter().collect()).unwrap();
        y.make_durable().unwrap();
        assert_eq!(y.verify().unwrap(), model.len() as u64, "round {round}");
        check(&y, &model);
    }
}

/// Where a run starts does not decide which of the leaves behind it stay in frames.
#[test]
fn leaves_that_were_read_stay_in_frames_behind_cold_ones() {
    const KEYS: u32 = 100_000;
    let store = OnDisk::new(4096, 1 << 20);
    let y = store.open();
    let key = |i: u32| (i * 2).to_be_bytes();
    let all: Entries = (0..KEYS).map(|i| put(&key(i), &[1; 8])).collect();
    write(&y, &all).unwrap();
    y.make_durable().unwrap();
    drop(y);
    let y = store.open();
    let read_hot = || {
        let before = y.pages.pool.reads.load(Relaxed);
        for i in (1000..17_000).step_by(40) {
            assert!(y.get(&key(i)).unwrap().is_some());
        }
        y.pages.pool.reads.load(Relaxed) - before
    };
    // Each leaf is full: all of them overflow.
    let run: Entries = (0..24_000)
        .map(|i| put(&(i * 2 + 1u32).to_be_bytes(), &[1; 8]))
        .collect();
    let cold = read_hot();
    assert!(cold > 40, "{cold}");
    assert_eq!(read_hot(), 0);
    write(&y, &run).unwrap();
    let again = read_hot();
    assert!(again <= 5, "{again} of {cold} pages were read again");
}
