//! Cold counters: `merge` against `update`, over data several times the memory budget.
//!
//!     cargo run --release -p indexy --example merge_counters [bplus]
//!
//! Prints operations per second of each, with all that merges leave to be done until the values are
//! on disk.

use indexy::{Db, IndexYKind, MergeOperator, Options, TreeOptions};
use std::{error::Error, time::Instant};

const BUDGET: usize = 16 << 20;
const COUNTERS: u64 = 4_000_000;
const UPDATES: u64 = 100_000;
const MERGES: u64 = 2_000_000;

fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Counters in random order.
fn any(i: u64) -> u64 {
    let mixed = (i + 1).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) % COUNTERS
}

fn number(value: &[u8]) -> u64 {
    value.try_into().map_or(0, u64::from_be_bytes)
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let index_y = match std::env::args().nth(1).as_deref() {
        Some("bplus") => IndexYKind::BPlus { page_bytes: 4096 },
        _ => IndexYKind::Lsm,
    };
    let db = Db::open(dir.path(), Options::new(BUDGET).direct_reads(true))?;
    let options = TreeOptions::new()
        .index_y(index_y)
        .merge_operator(MergeOperator::AddU64);
    let counters = db.tree_with("counters", options)?;
    let mut keys: Vec<_> = (0..COUNTERS).map(key).collect();
    keys.sort_unstable();
    counters.load_sorted(keys.iter().map(|key| (key, 0u64.to_be_bytes())))?;
    drop(keys);
    db.flush()?;

    let started = Instant::now();
    for i in 0..UPDATES {
        counters.update(key(any(i)), |old| {
            Some((old.map_or(0, number) + 1).to_be_bytes().to_vec())
        })?;
    }
    db.flush()?;
    let updates = UPDATES as f64 / started.elapsed().as_secs_f64();
    println!("{index_y} update: {updates:.0} a second");

    counters.release::<&[u8]>(..)?;
    let reads = db.stats().y_reads;
    let started = Instant::now();
    for i in 0..MERGES {
        counters.merge(key(any(i)), 1u64.to_be_bytes())?;
    }
    let called = MERGES as f64 / started.elapsed().as_secs_f64();
    db.flush()?;
    let merges = MERGES as f64 / started.elapsed().as_secs_f64();
    let reads = db.stats().y_reads - reads;
    println!(
        "{index_y} merge:  {merges:.0} a second on disk, {called:.0} called, {reads} keys read"
    );
    println!("{index_y} ratio:  {:.1}", merges / updates);

    let mut sum = 0;
    for entry in counters.iter() {
        sum += number(&entry?.1);
    }
    assert_eq!(sum, UPDATES + MERGES, "each merge counts once");
    Ok(())
}
