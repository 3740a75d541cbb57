//! The measurements behind `docs/decisions/0005-paged-bptree-as-index-y.md`. Ignored by default; parameters come from the
//! environment, results go to standard output, one line each.
//!
//! `INDEXY_MEASURE_DIR` (kept between steps), `_KEYS`, `_RUN_KEYS`, `_CACHE` (bytes), `_PAGE` (bytes), `_SECONDS`, `_BATCH`.
//! `cargo test --release -p indexy --lib paged::measure::NAME -- --ignored --exact --nocapture`

use super::{IndexY, PagedShared, PagedY, Relaxed, device};
use crate::y::measured::{Sorted, key};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, AtomicU64},
    time::{Duration, Instant},
};

fn parameter(name: &str, default: usize) -> usize {
    let value = std::env::var(format!("INDEXY_MEASURE_{name}"));
    value.map_or(default, |v| v.parse().expect("a number"))
}

fn open() -> PagedY {
    let dir = std::env::var("INDEXY_MEASURE_DIR").expect("INDEXY_MEASURE_DIR");
    let shared = PagedShared::new(parameter("CACHE", 12 << 20));
    let page = parameter("PAGE", 4096) as u32;
    PagedY::open(&device(), &PathBuf::from(dir), page, &shared, 1, false).unwrap()
}

/// Random keys in sorted runs of `_RUN_KEYS`: entries a second, bytes written by the process for each byte of entries.
#[test]
#[ignore = "a measurement"]
fn fill() {
    let y = open();
    let (keys, run) = (
        parameter("KEYS", 1_000_000) as u64,
        parameter("RUN_KEYS", 20_000),
    );
    let (start, before) = (Instant::now(), written());
    let mut from = 0;
    while from < keys {
        let mut some: Vec<_> = (from..(from + run as u64).min(keys))
            .map(|i| (key(i), i))
            .collect();
        some.sort_unstable();
        from += some.len() as u64;
        y.write_run(&mut Sorted(some)).unwrap();
        y.make_durable().unwrap();
    }
    let seconds = start.elapsed().as_secs_f64();
    let amplification = (written() - before) as f64 / (keys * 16) as f64;
    println!(
        "fill: {:.0} entries/s, write amplification {amplification:.1}, {} MiB on disk",
        keys as f64 / seconds,
        y.disk_bytes() >> 20
    );
}

fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    let line = io.lines().find_map(|l| l.strip_prefix("write_bytes: "));
    line.unwrap().parse().unwrap()
}

/// Uniform reads by 1 and 2 threads, one by one and `_BATCH` at a time, with a pool of `_CACHE` bytes.
#[test]
#[ignore = "a measurement"]
fn reads() {
    let y = open();
    let keys = parameter("KEYS", 1_000_000) as u64;
    for batch in [1, parameter("BATCH", 64)] {
        for threads in [1, 2] {
            // The first time warms the pool.
            for round in ["warming", "measured"] {
                let (gets, reads) = read_for_a_while(&y, keys, threads, batch);
                println!(
                    "{round}: {threads} threads, {batch} at a time: {gets:.0} gets/s, {:.3} reads/get",
                    reads / gets
                );
            }
        }
    }
}

/// Gets and reads of the device a second.
fn read_for_a_while(y: &PagedY, keys: u64, threads: u64, batch: usize) -> (f64, f64) {
    let (stop, gets) = (AtomicBool::new(false), AtomicU64::new(0));
    let reads = y.pool.reads.load(Relaxed);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for seed in 0..threads {
            let (stop, gets) = (&stop, &gets);
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(seed);
                while !stop.load(Relaxed) {
                    for _ in 0..64 / batch.min(64) {
                        let wanted: Vec<_> = (0..batch)
                            .map(|_| key(random.random_range(0..keys)))
                            .collect();
                        if let [one] = &wanted[..] {
                            assert!(y.get(one).unwrap().is_some());
                            continue;
                        }
                        let wanted: Vec<&[u8]> = wanted.iter().map(|k| &k[..]).collect();
                        assert!(y.multi_get(&wanted).unwrap().iter().all(Option::is_some));
                    }
                    gets.fetch_add((64 / batch.min(64) * batch) as u64, Relaxed);
                }
            });
        }
        std::thread::sleep(Duration::from_secs(parameter("SECONDS", 5) as u64));
        stop.store(true, Relaxed);
    });
    let seconds = start.elapsed().as_secs_f64();
    let reads = y.pool.reads.load(Relaxed) - reads;
    (gets.load(Relaxed) as f64 / seconds, reads as f64 / seconds)
}
