//! Figures for `docs/decisions/0003-rocksdb-as-index-y.md`; run by name, with `--ignored --nocapture`.

use super::tests::OnDisk;
use super::*;
use crate::y::conformance::{self, Entries, Store, put};
use rocksdb::{FlushOptions, WriteBatch, WriteOptions};
use std::time::Instant;

const RUNS: u64 = 24;
const KEYS: u64 = 75_000;

fn run(n: u64) -> Entries {
    (0..KEYS)
        .map(|i| put(&(i * RUNS + n).to_be_bytes(), &[n as u8; 100]))
        .collect()
}

/// Seconds of processor time of this process so far.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    let ticks = |n: usize| -> f64 {
        after_name
            .split_whitespace()
            .nth(n)
            .unwrap()
            .parse()
            .unwrap()
    };
    (ticks(11) + ticks(12)) / 100.0
}

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4
}

fn measured(name: &str, write: impl Fn(&Engine, &RocksY, &Entries)) {
    let store = OnDisk::new();
    let y = store.open();
    let engine = y.engine().unwrap();
    let (wall, used) = (Instant::now(), processor());
    let (mut highest, mut preparing) = (0, 0.0);
    for n in 0..RUNS {
        let before = processor();
        let entries = run(n);
        preparing += processor() - before;
        let with_entries = resident();
        write(&engine, &y, &entries);
        highest = highest.max(resident().saturating_sub(with_entries));
    }
    let written = processor() - used - preparing;
    while !engine.wait_for_compaction(1_000_000).unwrap() {}
    println!(
        "{name}: {written:.2} s of processor writing, {:.2} s with compaction, {:.1} s in all, up to {highest} KiB more resident after a run",
        processor() - used - preparing,
        wall.elapsed().as_secs_f64()
    );
}

#[test]
#[ignore = "a measurement"]
fn ingestion_against_batches() {
    measured("ingestion", |_, y, entries| {
        conformance::write(y, entries).unwrap();
    });
    measured("batch and flush", |engine, _, entries| {
        let mut batch = WriteBatch::default();
        for (key, value) in entries {
            batch.put(key, value.as_deref().unwrap());
        }
        let mut options = WriteOptions::default();
        options.disable_wal(true);
        engine.db.write_opt(batch, &options).unwrap();
        let mut flush = FlushOptions::default();
        flush.set_wait(true);
        engine.db.flush_opt(&flush).unwrap();
    });
}
