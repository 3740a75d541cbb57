//! I7: what `memory_bytes` says is an upper bound of what the process grows by. In a process of its
//! own, so that other tests do not count.

use super::tests::{OnDisk, numbered};
use super::*;
use crate::y::{
    RunEntry, RunSource,
    conformance::{self, Store, settle},
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::process::Command;

const CHILD: &str = "INDEXY_ROCKS_MEMORY_CHILD";

/// Resident bytes of this process.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Runs a test of this file alone, with at most `heaps` heaps of glibc's; true in the process that
/// is the child.
fn alone(name: &str, heaps: u32) -> bool {
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("y::rocks::memory_tests::{name}")])
        .args(["--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .env("MALLOC_ARENA_MAX", heaps.to_string())
        .status();
    assert!(status.unwrap().success());
    false
}

/// A run that takes no memory itself: entries of 8 + 100 bytes, keys all over the space.
struct Striped {
    first: u64,
    step: u64,
    n: u64,
}

impl RunSource for Striped {
    fn drain(&mut self, sink: &mut dyn FnMut(RunEntry<'_>) -> Result<()>) -> Result<()> {
        (0..self.n).try_for_each(|i| {
            let key = (self.first + i * self.step).to_be_bytes();
            sink((&key, Some(&[self.first as u8; 100])))
        })
    }

    fn before_publish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Writes runs of 8 MiB that all overlap, so that compaction has work; returns the number of keys.
fn fill(y: &RocksY, runs: u64) -> u64 {
    const RUN: u64 = 75_000;
    for first in 0..runs {
        let (step, n) = (runs, RUN);
        y.write_run(&mut Striped { first, step, n }).unwrap();
        while y.congested() {
            y.maintain().unwrap();
        }
    }
    runs * RUN
}

fn read_beside(y: &RocksY, keys: u64, threads: u64, reads: u64) {
    std::thread::scope(|scope| {
        for seed in 0..threads {
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(seed);
                for i in 0..reads {
                    let key = rng.random_range(0..keys).to_be_bytes();
                    assert!(y.get(&key).unwrap().is_some());
                    if i % 1000 == 0 {
                        let part = y.range(&key, None, Order::Ascending).unwrap().take(100);
                        assert!(part.filter(Result::is_ok).count() > 0);
                    }
                }
            });
        }
    });
}

/// Writes with compaction, then reads with many threads, in a cache granted `cache` bytes. Checks
/// after each step that the process has grown by no more than what is said and `more`.
fn grow(cache: usize, more: usize) {
    // The first use of anything costs what it costs, once a process.
    let warm = OnDisk::with_cache(1 << 20);
    conformance::write(&warm.open(), &numbered(0, 1000, b"v")).unwrap();
    drop(warm);

    let store = OnDisk::with_cache(cache);
    let before = resident();
    let y = store.open();
    let check = |what: &str| {
        let said = store.shared.memory_bytes() + y.memory_bytes();
        let grown = resident().saturating_sub(before);
        let kib = |bytes| bytes >> 10;
        let cached = store.shared.cached_bytes();
        println!(
            "{what}: grown by {} KiB, said {} KiB, cached {} KiB",
            kib(grown),
            kib(said),
            kib(cached)
        );
        assert!(grown <= said + more, "{what}: {grown} of {said}");
    };
    let keys = fill(&y, 24);
    settle(&y);
    check("written");
    for threads in [1, 4, 16, 64, 1] {
        read_beside(&y, keys, threads, 40_000 / threads);
        check(&format!("{threads} threads"));
    }
}

#[test]
fn i7_memory_stays_within_what_is_said() {
    if alone("i7_memory_stays_within_what_is_said", 1) {
        grow(8 << 20, 0);
    }
}

/// What the database promises of the process leaves room for the heaps of glibc (32 MiB).
#[test]
fn i7_with_many_heaps_a_small_cache_takes_a_bounded_amount_more() {
    if alone(
        "i7_with_many_heaps_a_small_cache_takes_a_bounded_amount_more",
        16,
    ) {
        grow(8 << 20, WORK_BYTES + (32 << 20));
    }
}

/// What an open tree and a table of it take, for the constants in `engine.rs`.
#[test]
fn i7_open_trees_stay_within_what_is_said() {
    if !alone("i7_open_trees_stay_within_what_is_said", 1) {
        return;
    }
    const TREES: usize = 16;
    let stores: Vec<_> = (0..=TREES).map(|_| OnDisk::with_cache(1 << 20)).collect();
    let warm = stores[TREES].open();
    conformance::write(&warm, &numbered(0, 1000, b"v")).unwrap();
    let before = resident();
    let trees: Vec<_> = stores[..TREES].iter().map(Store::open).collect();
    let empty = resident() - before;
    for y in &trees {
        for run in 0..3 {
            // Runs that do not overlap are not merged.
            conformance::write(y, &numbered(run * 10_000, 1000, b"v")).unwrap();
        }
        assert!(y.get(&5u64.to_be_bytes()).unwrap().is_some());
    }
    let said: usize = trees.iter().map(|y| y.memory_bytes()).sum();
    let grown = resident() - before;
    println!(
        "a tree: {} KiB empty, {} KiB with 3 tables, said {} KiB",
        (empty / TREES) >> 10,
        (grown / TREES) >> 10,
        (said / TREES) >> 10
    );
    assert!(grown <= said, "{grown} of {said}");
}
