//! Writes that a sync follows, beside fjall: one write and a sync, and a thousand and a sync.
//!
//! Run: `cargo run --release --example syncs -- DIR`, in `crates/indexy-bench-peers`; `DIR` says
//! which disk. One thread, keys of 8 bytes in random order with values of 100. Both keep a log that
//! a write does not wait for: IndeXY with its default durability and `Db::sync`, fjall with
//! `manual_journal_persist` and `PersistMode::SyncData`. The two take turns, each turn in an empty
//! directory of its own; a line has thousands of writes a second of all turns, the median first.
//! `TURNS` (5).

use fjall::{Database, KeyspaceCreateOptions, PersistMode};
use indexy::{Db, Options};
use indexy_bench::workload::mix;
use std::{path::Path, time::Instant};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const BUDGET: usize = 256 << 20;
/// Writes between two syncs, and syncs of a turn.
const WORK: [(u64, u64); 2] = [(1, 20_000), (1_000, 200)];

fn main() -> Result<()> {
    let parent = std::env::args().nth(1).ok_or("which directory?")?;
    let turns = std::env::var("TURNS").map_or(Ok(5), |n| n.parse::<usize>())?;
    for work in WORK {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..turns {
            ours.push(indexy(tempfile::tempdir_in(&parent)?.path(), work)?);
            theirs.push(fjall(tempfile::tempdir_in(&parent)?.path(), work)?);
        }
        println!("{} writes and a sync, {} times", work.0, work.1);
        say("indexy", ours);
        say("fjall", theirs);
    }
    Ok(())
}

fn say(name: &str, mut rates: Vec<f64>) {
    rates.sort_by(f64::total_cmp);
    let median = rates.get(rates.len() / 2).copied().unwrap_or_default();
    println!("  {name:<8} {median:>8.2}   of {rates:.2?}");
}

fn indexy(dir: &Path, work: (u64, u64)) -> Result<f64> {
    let db = Db::open(dir, Options::new(BUDGET))?;
    let tree = db.tree("t")?;
    let write = |key: [u8; 8], value: &[u8]| Ok(tree.insert(key, value)?);
    let rate = measure(work, write, || Ok(db.sync()?))?;
    drop(tree);
    db.close()?;
    Ok(rate)
}

fn fjall(dir: &Path, work: (u64, u64)) -> Result<f64> {
    let database = Database::builder(dir)
        .cache_size(BUDGET as u64 / 8 * 5)
        .manual_journal_persist(true)
        .open()?;
    let keyspace = database.keyspace("t", KeyspaceCreateOptions::default)?;
    let write = |key: [u8; 8], value: &[u8]| Ok(keyspace.insert(key, value)?);
    measure(work, write, || Ok(database.persist(PersistMode::SyncData)?))
}

/// Thousands of writes a second.
fn measure(
    (writes, syncs): (u64, u64),
    write: impl Fn([u8; 8], &[u8]) -> Result<()>,
    sync: impl Fn() -> Result<()>,
) -> Result<f64> {
    let value = [7; 100];
    let begun = Instant::now();
    for turn in 0..syncs {
        for n in 0..writes {
            write(mix(turn * writes + n).to_be_bytes(), &value)?;
        }
        sync()?;
    }
    Ok((writes * syncs) as f64 / begun.elapsed().as_secs_f64() / 1e3)
}
