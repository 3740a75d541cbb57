//! The measurements behind `docs/decisions/0002-lsm-tree-as-index-y.md`. Ignored by default; parameters come from
//! the environment, results go to standard output, one line each.
//!
//! `INDEXY_MEASURE_DIR` (kept between steps), `_KEYS`, `_RUN_KEYS`, `_CACHE` (bytes), `_SECONDS`.

use super::{LsmShared, LsmY};
use crate::{
    x::Order,
    y::{
        IndexY, Maintained,
        measured::{Sorted, key},
    },
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

fn parameter(name: &str, default: usize) -> usize {
    let value = std::env::var(format!("INDEXY_MEASURE_{name}"));
    value.map_or(default, |v| v.parse().expect("a number"))
}

fn open() -> (Arc<LsmShared>, LsmY) {
    let dir = std::env::var("INDEXY_MEASURE_DIR").expect("INDEXY_MEASURE_DIR");
    let shared = Arc::new(LsmShared::new(
        parameter("CACHE", 12 << 20),
        parameter("DIRECT", 0) == 1,
    ));
    let y = LsmY::open(&PathBuf::from(dir), &shared, false).unwrap();
    (shared, y)
}

fn run(from: u64, n: u64) -> Sorted {
    let mut keys: Vec<_> = (from..from + n).map(|i| (key(i), i)).collect();
    keys.sort_unstable();
    Sorted(keys)
}

/// A field of `/proc/self/{file}`.
fn proc(file: &str, field: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).unwrap();
    let line = text.lines().find(|l| l.starts_with(field)).unwrap();
    let number = line.split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

/// Processor time of this process so far.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = text.split_whitespace().collect();
    let ticks = |i: usize| fields[i].parse::<f64>().unwrap();
    (ticks(13) + ticks(14)) / 100.0
}

fn rss_kib() -> u64 {
    proc("status", "VmRSS:")
}

#[test]
#[ignore = "measurement"]
fn load() {
    let (shared, y) = open();
    let (keys, run_keys) = (
        parameter("KEYS", 30_000_000) as u64,
        parameter("RUN_KEYS", 1_000_000) as u64,
    );
    let (mut ingest, mut compact) = (Duration::ZERO, Duration::ZERO);
    let (mut most_level0, mut most_runs, mut longest_step) = (0, 0, Duration::ZERO);
    let before = proc("io", "write_bytes:");
    let (mut peak_rss, mut cpu) = (0, 0.0);
    for from in (0..keys).step_by(run_keys as usize) {
        let mut source = run(from, run_keys.min(keys - from));
        let (start, cpu_before) = (Instant::now(), cpu_seconds());
        y.write_run(&mut source).unwrap();
        ingest += start.elapsed();
        drop(source);
        most_level0 = most_level0.max(y.snapshot().level0.runs);
        most_runs = most_runs.max(y.run_count());
        loop {
            let start = Instant::now();
            let more = y.maintain().unwrap();
            compact += start.elapsed();
            longest_step = longest_step.max(start.elapsed());
            peak_rss = peak_rss.max(rss_kib());
            if more == Maintained::Idle {
                break;
            }
        }
        cpu += cpu_seconds() - cpu_before;
    }
    let written = proc("io", "write_bytes:") - before;
    let seconds = (ingest + compact).as_secs_f64();
    println!(
        "load: {keys} keys in {seconds:.1} s = {:.2} M/s ({:.2} M/s of processor time; ingest {:.1} s, compaction {:.1} s, longest step {:.0} ms); written {} MiB = {:.1} x the payload; \
         on disk {} MiB, {} runs (most {most_runs}, level 0 {most_level0}), {} tables; rss now {} MiB, peak {} MiB; shared {} KiB, tree {} KiB",
        keys as f64 / seconds / 1e6,
        keys as f64 / cpu / 1e6,
        ingest.as_secs_f64(),
        compact.as_secs_f64(),
        longest_step.as_secs_f64() * 1e3,
        written >> 20,
        written as f64 / (keys * 16) as f64,
        y.disk_bytes() >> 20,
        y.run_count(),
        y.snapshot().tables().count(),
        rss_kib() >> 10,
        peak_rss >> 10,
        shared.memory_bytes() >> 10,
        y.memory_bytes() >> 10,
    );
}

/// Latencies in 1/16-octave buckets of nanoseconds.
#[derive(Default)]
struct Histogram(BTreeMap<u32, u64>);

impl Histogram {
    fn add(&mut self, took: Duration) {
        let nanos = (took.as_nanos() as u64).max(1);
        let octave = nanos.ilog2();
        let part = if octave >= 4 {
            (nanos >> (octave - 4)) as u32 & 15
        } else {
            0
        };
        *self.0.entry(octave * 16 + part).or_default() += 1;
    }
    fn merge(&mut self, other: &Self) {
        for (bucket, n) in &other.0 {
            *self.0.entry(*bucket).or_default() += n;
        }
    }
    fn at(&self, quantile: f64) -> f64 {
        let total: u64 = self.0.values().sum();
        let mut left = (total as f64 * quantile) as u64;
        for (bucket, n) in &self.0 {
            if left < *n {
                return 2f64.powi((bucket / 16) as i32) * (1.0 + f64::from(bucket % 16 + 1) / 16.0)
                    / 1e3;
            }
            left -= n;
        }
        self.0
            .keys()
            .last()
            .map_or(0.0, |b| 2f64.powi((b / 16) as i32 + 1) / 1e3)
    }
    fn line(&self) -> String {
        format!(
            "p50 {:.0} us, p99 {:.0}, p99.9 {:.0}, max {:.0}",
            self.at(0.5),
            self.at(0.99),
            self.at(0.999),
            self.at(1.0)
        )
    }
}

/// Calls `step` on `threads` threads for a while; returns calls a second and latencies.
fn drive(
    threads: usize,
    stop: &AtomicBool,
    step: &(dyn Fn(&mut StdRng) + Sync),
) -> (f64, Histogram) {
    let seconds = parameter("SECONDS", 10) as u64;
    let start = Instant::now();
    let total = std::thread::scope(|scope| {
        let work = |seed| {
            let mut rng = StdRng::seed_from_u64(seed);
            let mut latencies = Histogram::default();
            while start.elapsed().as_secs() < seconds && !stop.load(Relaxed) {
                let begin = Instant::now();
                step(&mut rng);
                latencies.add(begin.elapsed());
            }
            latencies
        };
        let handles: Vec<_> = (0..threads as u64)
            .map(|seed| scope.spawn(move || work(seed ^ start.elapsed().as_nanos() as u64)))
            .collect();
        let mut total = Histogram::default();
        for handle in handles {
            total.merge(&handle.join().unwrap());
        }
        total
    });
    let calls: u64 = total.0.values().sum();
    (calls as f64 / start.elapsed().as_secs_f64(), total)
}

#[test]
#[ignore = "measurement"]
fn gets() {
    let (shared, y) = open();
    let keys = parameter("KEYS", 30_000_000) as u64;
    let never = AtomicBool::new(false);
    let report = |what: &str,
                  per_call: f64,
                  step: &(dyn Fn(&mut StdRng) + Sync),
                  threads: usize| {
        let read = proc("io", "read_bytes:");
        let calls = proc("io", "syscr:");
        let (rate, latencies) = drive(threads, &never, step);
        let n = rate * parameter("SECONDS", 10) as f64 * per_call;
        println!(
            "{what}, {threads} threads: {:.1} k/s; {}; {:.1} KiB and {:.2} read calls a key; rss {} MiB, cache {} KiB",
            rate * per_call / 1e3,
            latencies.line(),
            (proc("io", "read_bytes:") - read) as f64 / 1024.0 / n,
            (proc("io", "syscr:") - calls) as f64 / n,
            rss_kib() >> 10,
            shared.memory_bytes() >> 10,
        );
    };
    let present = |rng: &mut StdRng| {
        let i = rng.random_range(0..keys);
        assert!(
            y.get(&key(i))
                .unwrap()
                .is_some_and(|v| v[..] == i.to_le_bytes())
        );
    };
    for threads in [1, 1, 2, 32] {
        report("get", 1.0, &present, threads);
    }
    let absent = |rng: &mut StdRng| {
        assert!(
            y.get(&key(keys + rng.random_range(0..keys)))
                .unwrap()
                .is_none()
        );
    };
    for threads in [1, 2] {
        report("absent", 1.0, &absent, threads);
    }
    let many = |rng: &mut StdRng| {
        let keys: Vec<_> = (0..64).map(|_| key(rng.random_range(0..keys))).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|k| &k[..]).collect();
        assert!(y.multi_get(&keys).unwrap().iter().all(Option::is_some));
    };
    for threads in [1, 2] {
        report("multi_get of 64", 64.0, &many, threads);
    }
    let chunk = |rng: &mut StdRng| {
        let from = key(rng.random_range(0..keys));
        assert!(
            y.range(&from, None, Order::Ascending)
                .unwrap()
                .take(100)
                .count()
                > 0
        );
    };
    report("range of 100", 1.0, &chunk, 1);
    let start = Instant::now();
    let n = y
        .range(b"", None, Order::Ascending)
        .unwrap()
        .take(3_000_000)
        .count();
    println!(
        "scan: {:.2} M entries/s",
        n as f64 / start.elapsed().as_secs_f64() / 1e6
    );
}

#[test]
#[ignore = "measurement"]
fn gets_beside_writes() {
    let (_shared, y) = open();
    let keys = parameter("KEYS", 30_000_000) as u64;
    let run_keys = parameter("RUN_KEYS", 1_000_000) as u64;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut rng = StdRng::seed_from_u64(77);
            let (mut runs, mut longest) = (0, Duration::ZERO);
            while !stop.load(Relaxed) {
                let mut source = run(rng.random_range(0..keys - run_keys), run_keys);
                let start = Instant::now();
                y.write_run(&mut source).unwrap();
                longest = longest.max(start.elapsed());
                runs += 1;
                while y.congested() && !stop.load(Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            (runs, longest)
        });
        let maintainer = scope.spawn(|| {
            let (mut steps, mut longest) = (0, Duration::ZERO);
            while !stop.load(Relaxed) {
                let start = Instant::now();
                match y.maintain().unwrap() {
                    Maintained::More => steps += 1,
                    Maintained::Idle => std::thread::sleep(Duration::from_millis(5)),
                }
                longest = longest.max(start.elapsed());
            }
            (steps, longest)
        });
        let never = AtomicBool::new(false);
        let (rate, latencies) = drive(parameter("THREADS", 1), &never, &|rng| {
            y.get(&key(rng.random_range(0..keys))).unwrap();
        });
        stop.store(true, Relaxed);
        let (runs, run) = writer.join().unwrap();
        let (steps, step) = maintainer.join().unwrap();
        println!(
            "gets beside writes: {:.1} k/s, {}; {runs} runs (longest {} ms), {steps} compactions (longest {} ms), {} runs now",
            rate / 1e3,
            latencies.line(),
            run.as_millis(),
            step.as_millis(),
            y.run_count(),
        );
    });
}

#[test]
#[ignore = "measurement"]
fn shape() {
    let (_shared, y) = open();
    for run in &y.snapshot().runs {
        let sum = |f: &dyn Fn(&super::table::TableReader) -> u64| {
            run.tables.iter().map(|t| f(t)).sum::<u64>()
        };
        println!(
            "run: {} tables, {} KiB, filters {} KiB, {} entries, index {:?} KiB, top {:?}",
            run.tables.len(),
            sum(&|t| t.file_bytes()) >> 10,
            sum(&|t| t.filter_bytes() as u64) >> 10,
            sum(&|t| t.engine().metadata.item_count),
            sum(&|t| t.engine().regions.index.map_or(0, |h| u64::from(h.size()))) >> 10,
            sum(&|t| u64::from(
                t.engine().regions.tli.size()
                    + t.engine().regions.filter_tli.map_or(0, |h| h.size())
            )) >> 10,
        );
    }
}
