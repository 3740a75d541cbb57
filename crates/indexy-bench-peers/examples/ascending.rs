//! Ascending keys beside LMDB and redb: inserts into the end, and a sorted load.
//!
//! Run: `cargo run --release --example ascending -- DIR`, in `crates/indexy-bench-peers`; `DIR`
//! says which disk. One thread, keys and values of 8 bytes, all in memory. Inserts have no log and
//! no syncs, 4,096 entries in a transaction of LMDB and redb. The sorted load is
//! `Tree::load_sorted`, and LMDB's `APPEND` in one transaction that is synced. All take turns, each
//! turn in an empty directory of its own; a line has millions of entries a second of all turns, the
//! median first. `ENTRIES` (5 M), `TURNS` (5).

use heed::{Database, Env, EnvFlags, EnvOpenOptions, PutFlags, types::Bytes};
use indexy::{Db, Durability, Options};
use redb::TableDefinition;
use std::{path::Path, time::Instant};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
/// Fills an empty directory with that many entries: millions of them a second.
type Fill = fn(&Path, u64) -> Result<f64>;

const BUDGET: usize = 1 << 30;
const BATCH: u64 = 4096;
const FILLS: [(&str, Fill); 5] = [
    ("indexy, insert", insert),
    ("lmdb, put", lmdb_put),
    ("redb, insert", redb_insert),
    ("indexy, load_sorted", load_sorted),
    ("lmdb, APPEND", lmdb_append),
];

fn main() -> Result<()> {
    let parent = std::env::args().nth(1).ok_or("which directory?")?;
    let entries = std::env::var("ENTRIES").map_or(Ok(5_000_000), |n| n.parse::<u64>())?;
    let turns = std::env::var("TURNS").map_or(Ok(5), |n| n.parse::<usize>())?;
    let mut rates = FILLS.map(|_| Vec::new());
    for _ in 0..turns {
        for ((_, fill), rates) in FILLS.iter().zip(&mut rates) {
            rates.push(fill(tempfile::tempdir_in(&parent)?.path(), entries)?);
        }
    }
    for ((name, _), mut rates) in FILLS.iter().zip(rates) {
        rates.sort_by(f64::total_cmp);
        let median = rates.get(rates.len() / 2).copied().unwrap_or_default();
        println!("{name:<20} {median:>7.2}   of {rates:.2?}");
    }
    Ok(())
}

fn rate(entries: u64, begun: Instant) -> f64 {
    entries as f64 / begun.elapsed().as_secs_f64() / 1e6
}

fn insert(dir: &Path, entries: u64) -> Result<f64> {
    let db = Db::open(dir, Options::new(BUDGET).durability(Durability::None))?;
    let tree = db.tree("t")?;
    let begun = Instant::now();
    for n in 0..entries {
        tree.insert(n.to_be_bytes(), n.to_be_bytes())?;
    }
    let rate = rate(entries, begun);
    drop(tree);
    db.close()?;
    Ok(rate)
}

fn load_sorted(dir: &Path, entries: u64) -> Result<f64> {
    let db = Db::open(dir, Options::new(BUDGET).durability(Durability::None))?;
    let tree = db.tree("t")?;
    let begun = Instant::now();
    tree.load_sorted((0..entries).map(|n| (n.to_be_bytes(), n.to_be_bytes())))?;
    let rate = rate(entries, begun);
    drop(tree);
    db.close()?;
    Ok(rate)
}

fn environment(dir: &Path, flags: EnvFlags) -> Result<(Env, Database<Bytes, Bytes>)> {
    let mut options = EnvOpenOptions::new();
    options.map_size(1 << 40);
    // SAFETY: what a crash loses without syncs is a directory that is thrown away.
    unsafe { options.flags(flags) };
    // SAFETY: the directory is new, and this process alone knows it.
    let env = unsafe { options.open(dir)? };
    let mut transaction = env.write_txn()?;
    let database = env.create_database(&mut transaction, None)?;
    transaction.commit()?;
    Ok((env, database))
}

fn lmdb_put(dir: &Path, entries: u64) -> Result<f64> {
    let flags =
        EnvFlags::NO_SYNC | EnvFlags::NO_META_SYNC | EnvFlags::WRITE_MAP | EnvFlags::MAP_ASYNC;
    let (env, database) = environment(dir, flags)?;
    let begun = Instant::now();
    for batch in (0..entries).step_by(BATCH as usize) {
        let mut transaction = env.write_txn()?;
        for n in batch..(batch + BATCH).min(entries) {
            database.put(&mut transaction, &n.to_be_bytes(), &n.to_be_bytes())?;
        }
        transaction.commit()?;
    }
    Ok(rate(entries, begun))
}

fn lmdb_append(dir: &Path, entries: u64) -> Result<f64> {
    let (env, database) = environment(dir, EnvFlags::empty())?;
    let begun = Instant::now();
    let mut transaction = env.write_txn()?;
    for n in 0..entries {
        let (key, value) = (n.to_be_bytes(), n.to_be_bytes());
        database.put_with_flags(&mut transaction, PutFlags::APPEND, &key, &value)?;
    }
    transaction.commit()?;
    Ok(rate(entries, begun))
}

fn redb_insert(dir: &Path, entries: u64) -> Result<f64> {
    const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("t");
    let database = redb::Database::builder()
        .set_cache_size(BUDGET)
        .create(dir.join("t.redb"))?;
    let begun = Instant::now();
    for batch in (0..entries).step_by(BATCH as usize) {
        let mut transaction = database.begin_write()?;
        transaction.set_durability(redb::Durability::None)?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for n in batch..(batch + BATCH).min(entries) {
                table.insert(&n.to_be_bytes()[..], &n.to_be_bytes()[..])?;
            }
        }
        transaction.commit()?;
    }
    Ok(rate(entries, begun))
}
