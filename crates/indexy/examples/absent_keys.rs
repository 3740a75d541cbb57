//! What keys that are not there cost, with and without a filter over what left memory.
//!
//! Run: `cargo run --release -p indexy --example absent_keys`. `DIR` sets the directory (default a
//! temporary one), `KEYS` their number (default 1 M), `BUDGET_MIB` the memory budget (default 16),
//! `MILLIS` the length of a turn (default 500). `HITS=n` makes so many gets of keys in memory and
//! nothing else, for a count of instructions.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that measures, and ends at the first error"
)]

use indexy::{Admission, Db, Durability, Evicted, IndexYKind, Options, Tree, TreeOptions};
use std::{
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

const FILTER: Evicted = Evicted::Filter { bits_per_key: 10 };
const TURNS: usize = 3;

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok().and_then(|n| n.parse().ok());
    given.unwrap_or(default)
}

/// A key that lies anywhere; odd ones are never put.
fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

fn main() {
    let parent = std::env::var_os("DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    if let Ok(hits) = std::env::var("HITS") {
        return gets_in_memory(parent, hits.parse().unwrap());
    }
    for (name, y) in [
        ("paged tree", IndexYKind::BPlus { page_bytes: 4096 }),
        ("LSM tree", IndexYKind::Lsm),
    ] {
        let dir = tempfile::tempdir_in(&parent).unwrap();
        let budget = number("BUDGET_MIB", 16) << 20;
        let options = Options::new(budget as usize)
            .index_y(y)
            .durability(Durability::None)
            .direct_reads(true);
        let db = Db::open(dir.path(), options).unwrap();
        let keys = number("KEYS", 1_000_000);
        let tree = db.tree("t").unwrap();
        for n in 0..keys {
            tree.insert(key(2 * n), [7; 100]).unwrap();
        }
        db.flush().unwrap();
        tree.release::<&[u8]>(..).unwrap();
        for turn in 0..TURNS {
            let without = gets(&db, keys, Evicted::Ranges, turn);
            let with = gets(&db, keys, FILTER, turn);
            println!("{name}: {:.1} x", with / without);
        }
        db.close().unwrap();
    }
}

/// Absent gets a second.
fn gets(db: &Db, keys: u64, evicted: Evicted, turn: usize) -> f64 {
    let options = TreeOptions::new().evicted(evicted);
    let tree: Tree = db
        .tree_with("t", options.admission(Admission::Never))
        .unwrap();
    let built = Instant::now();
    while db.stats().filters_building > 0 {
        thread::sleep(Duration::from_millis(1));
    }
    let built = built.elapsed();
    let (before, start) = (db.stats(), Instant::now());
    let length = Duration::from_millis(number("MILLIS", 500));
    let mut n = turn as u64 * 7_919;
    let mut done = 0u64;
    while start.elapsed() < length {
        for _ in 0..32 {
            n = (n + 104_729) % keys;
            assert!(tree.get(key(2 * n + 1)).unwrap().is_none());
        }
        done += 32;
    }
    let rate = done as f64 / start.elapsed().as_secs_f64();
    let asked = db.stats().y_reads - before.y_reads;
    println!(
        "  {evicted:?}: {:.1} k/s, {asked} of {done} asked on disk; {} bytes, built in {built:?}",
        rate / 1e3,
        db.stats().filter_bytes,
    );
    rate
}

fn gets_in_memory(parent: PathBuf, hits: u64) {
    let dir = tempfile::tempdir_in(parent).unwrap();
    let options = Options::new(64 << 20).durability(Durability::None);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.tree("t").unwrap();
    for n in 0..10_000 {
        tree.insert(key(n), [7; 100]).unwrap();
    }
    for n in 0..hits {
        assert!(tree.get(key(n * 7919 % 10_000)).unwrap().is_some());
    }
}
