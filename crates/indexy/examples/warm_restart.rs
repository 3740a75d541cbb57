//! A restart with and without a hot set: the hit ratio of zipf gets by time.
//!
//!     cargo run --release -p indexy --example warm_restart -- [budget MiB] [times] [threads]
//!
//! Data of `times` the budget (8), read by `threads` (1) with zipf 0.99 over scattered keys until
//! the hit ratio stands. Then the database is closed and opened twice, with and without warming,
//! and read as before. Printed is when each has nine tenths of the hit ratio of before, in seconds
//! since the call of `open`.

use indexy::{Db, HotSet, Options, Result};
use std::{
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

const VALUE_BYTES: usize = 100;
const KEY_BYTES: usize = 16;
const SKEW: f64 = 0.99;
/// The hit ratio is looked at this often.
const LOOK: Duration = Duration::from_millis(50);
/// Gets before the restart, for each key.
const GETS_A_KEY: u64 = 4;

fn key(rank: u64) -> String {
    format!("{:016x}", rank.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// Ranks from 0 on, by the inverse of the integral over `x^-SKEW`.
struct Zipf {
    keys: u64,
    state: u64,
}

impl Zipf {
    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let unit = (self.state >> 11) as f64 / (1u64 << 53) as f64;
        let flat = 1.0 - SKEW;
        let most = (self.keys as f64).powf(flat);
        let rank = (unit * (most - 1.0) + 1.0).powf(1.0 / flat);
        (rank as u64 - 1).min(self.keys - 1)
    }
}

/// What was seen of the hit ratio: seconds since the open, and the ratio since the last look.
type Curve = Vec<(f64, f64)>;

/// Reads with so many threads until `enough` says so of the seconds and the gets so far.
fn read(
    db: &Db,
    (keys, threads): (u64, u64),
    opened: Instant,
    enough: impl Fn(&Curve, u64) -> bool,
) -> Result<Curve> {
    let tree = db.tree("t")?;
    let (done, gets) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut curve = Curve::new();
    std::thread::scope(|s| {
        for thread in 0..threads {
            let (tree, done, gets) = (&tree, &done, &gets);
            s.spawn(move || {
                let state = 0x1234_5678_9ABC_DEF1 + thread;
                let mut zipf = Zipf { keys, state };
                while !done.load(Relaxed) {
                    for _ in 0..100 {
                        assert!(tree.get(key(zipf.next())).is_ok_and(|v| v.is_some()));
                    }
                    gets.fetch_add(100, Relaxed);
                }
            });
        }
        let mut last = db.stats();
        while !enough(&curve, gets.load(Relaxed)) {
            std::thread::sleep(LOOK);
            let now = db.stats();
            let (hits, misses) = (now.hits - last.hits, now.misses - last.misses);
            let ratio = hits as f64 / (hits + misses).max(1) as f64;
            curve.push((opened.elapsed().as_secs_f64(), ratio));
            last = now;
        }
        done.store(true, Relaxed);
    });
    Ok(curve)
}

/// The mean of the last part of a curve.
fn settled(curve: &Curve) -> f64 {
    let last = &curve[curve.len() - (curve.len() / 5).max(1)..];
    last.iter().map(|(_, ratio)| ratio).sum::<f64>() / last.len() as f64
}

/// Opens, reads until the ratio is `goal`, closes; returns when that was.
fn restart(dir: &Path, options: Options, work: (u64, u64), goal: f64) -> Result<f64> {
    let opened = Instant::now();
    let db = Db::open(dir, options)?;
    let there = |curve: &Curve, _| curve.last().is_some_and(|(_, ratio)| *ratio >= goal);
    let curve = read(&db, work, opened, there)?;
    for (seconds, ratio) in curve.iter().step_by((curve.len() / 8).max(1)) {
        println!("    {seconds:6.2} s  {ratio:.3}");
    }
    println!("    warmed {} keys", db.stats().warmed_keys);
    let reached = curve.last().map_or(0.0, |(seconds, _)| *seconds);
    db.close()?;
    Ok(reached)
}

fn main() -> Result<()> {
    let argument = |at, default| {
        let given = std::env::args().nth(at);
        given.and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (budget, times, threads) = (argument(1, 32), argument(2, 8), argument(3, 1));
    let keys = budget * times * (1 << 20) / (KEY_BYTES + VALUE_BYTES) as u64;
    let dir = tempfile::tempdir().map_err(|e| indexy::Error::io("create", ".", e))?;
    let every = Duration::MAX;
    // Past the page cache: a restart of the machine finds that empty, too.
    let off = Options::new((budget as usize) << 20).direct_reads(true);
    let keep = off.clone().hot_set(HotSet::Keep { every });

    let db = Db::open(dir.path(), keep.clone())?;
    let tree = db.tree("t")?;
    for rank in 0..keys {
        tree.insert(key(rank), [rank as u8; VALUE_BYTES])?;
    }
    db.flush()?;
    let work = (keys, threads);
    let opened = Instant::now();
    let before = settled(&read(&db, work, opened, |_, gets| {
        gets > keys * GETS_A_KEY
    })?);
    let closing = Instant::now();
    drop(tree);
    db.close()?;
    let file = std::fs::metadata(dir.path().join("HOT")).map_or(0, |m| m.len());
    println!("{keys} keys, {budget} MiB of memory, hit ratio {before:.3}");
    println!(
        "closed in {:.2} s, {file} bytes saved",
        closing.elapsed().as_secs_f64()
    );
    let mut ratios = Vec::new();
    for round in 0..3 {
        println!("  without, round {round}");
        let cold = restart(dir.path(), off.clone(), work, before * 0.9)?;
        println!("  with, round {round}");
        let warm = restart(dir.path(), keep.clone(), work, before * 0.9)?;
        println!(
            "nine tenths: {cold:.2} s without, {warm:.2} s with: {:.1} x",
            cold / warm
        );
        ratios.push(cold / warm);
    }
    ratios.sort_by(f64::total_cmp);
    println!("median {:.1} x", ratios[1]);
    Ok(())
}
