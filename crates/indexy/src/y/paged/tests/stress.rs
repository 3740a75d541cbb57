//! Four readers beside a writer, commits and a pool that changes its size, against a model.

use super::*;
use crate::y::conformance::{Entries, Store, put, write};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    time::{Duration, Instant},
};

const KEYS: u32 = 20_000;
const TIME: Duration = Duration::from_secs(4);

/// Each key's value says for which round it was written; its length makes leaves split and join.
fn value(key: u32, round: u64) -> Vec<u8> {
    let len = (u64::from(key) * 31 + round * 7) % 90 + 8;
    let mut value = vec![key as u8; len as usize];
    value[..8].copy_from_slice(&round.to_le_bytes());
    value
}

fn round_of(key: u32, value: &[u8]) -> u64 {
    let round = u64::from_le_bytes(value[..8].try_into().unwrap());
    assert!(value[8..].iter().all(|b| *b == key as u8));
    round
}

/// Reads up to 300 keys from `key` on, or down from it.
fn scan_from(y: &PagedY, key: u32) {
    let at = key.to_be_bytes();
    let (from, to, order) = match key % 2 {
        0 => (&at[..], None, Order::Ascending),
        _ => (&b""[..], Some(&at[..]), Order::Descending),
    };
    let range = y.range(from, to, order).unwrap();
    for (i, entry) in range.take(300).enumerate() {
        let (k, v) = entry.unwrap();
        let expected = match order {
            Order::Ascending => key + i as u32,
            Order::Descending => key - 1 - i as u32,
        };
        assert_eq!(k, &expected.to_be_bytes()[..]);
        round_of(expected, &v);
    }
}

#[test]
fn readers_beside_runs_commits_and_a_changing_pool() {
    stress(&OnDisk::new(4096, 256 << 10));
}

#[test]
fn readers_by_the_byte_beside_runs_commits_and_a_changing_pool() {
    stress(&OnDisk::mapped(4096, 256 << 10));
}

fn stress(store: &OnDisk) {
    let y = store.open();
    let all: Entries = (0..KEYS)
        .map(|k| put(&k.to_be_bytes(), &value(k, 0)))
        .collect();
    write(&y, &all).unwrap();
    let acknowledged: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (y, stop, acknowledged) = (&y, &stop, &acknowledged);
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(seed);
                while !stop.load(SeqCst) {
                    let key = rng.random_range(0..KEYS);
                    let floor = acknowledged[key as usize].load(SeqCst);
                    let found = y.get(&key.to_be_bytes()).unwrap().expect("never removed");
                    assert!(round_of(key, &found) >= floor);
                    if seed == 0 {
                        scan_from(y, key);
                    }
                }
            });
        }
        scope.spawn(|| {
            let mut step = 0;
            while !stop.load(SeqCst) {
                y.maintain().unwrap();
                y.make_durable().unwrap();
                step += 1;
                store.shared.set_memory((step % 3) * (200 << 10));
            }
        });
        let mut rng = StdRng::seed_from_u64(99);
        let start = Instant::now();
        let mut round = 0;
        while start.elapsed() < TIME {
            round += 1;
            let from = rng.random_range(0..KEYS - 2000);
            let step = rng.random_range(1..40);
            let keys: Vec<u32> = (from..from + 2000).step_by(step).collect();
            let run = keys
                .iter()
                .map(|k| put(&k.to_be_bytes(), &value(*k, round)));
            write(&y, &run.collect()).unwrap();
            for key in keys {
                acknowledged[key as usize].store(round, SeqCst);
            }
        }
        stop.store(true, SeqCst);
    });
    assert_eq!(y.verify().unwrap(), u64::from(KEYS));
    y.maintain().unwrap();
    y.make_durable().unwrap();
    assert!(y.release_files());
    drop(y);
    assert_eq!(store.open().verify().unwrap(), u64::from(KEYS));
}
