//! How many gets of a hundred memory answers, by the counters of the database: while the same keys
//! are popular, after a scan of everything, and after other keys became popular.
//!
//! Run: `cargo run --release -p indexy-bench --example hits [-- POLICY...]`; the policies are those
//! of `POLICIES`, and the default is the database's. Settings are variables of the environment:
//! `KEYS` (30 M) of 8 bytes with values of 8, `BUDGET_MIB` (128), `ZIPF` (0.99), `SEED` (1),
//! `SCATTERED` (1; 0: popular keys lie side by side), `DIR` (a temporary directory), and millions
//! of gets: `STEADY` (60), `SCANNED` (5), `SHIFTED` (36). Each policy has a database of its own;
//! ART over an LSM tree, one thread, no log. Half an hour for two policies, little of the disk.
//!
//! A line per part: gets so far in millions, hits of 100 gets, what as many of the most popular
//! keys as memory held at its end would give, keys in memory in millions, releases so far, and
//! thousands of gets a second.
#![allow(missing_docs, reason = "a program")]
#![allow(
    clippy::print_stdout,
    reason = "a program that measures, and ends at the first error"
)]

use indexy::{Admission, Db, Durability, Options, Release, Stats, Tree, TreeOptions};
use indexy_bench::workload::{Pick, Rng, rng};
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A policy: its name, how regions go, whether what was read is spared, and what comes in.
type Policy = (&'static str, Release, bool, Admission);

const POLICIES: [Policy; 9] = [
    ("default", Release::AccessDensity, true, Admission::Always),
    ("coldest", Release::Coldest, true, Admission::Always),
    ("lru", Release::Lru, true, Admission::Always),
    ("fifo", Release::Fifo, true, Admission::Always),
    ("random", Release::Random, true, Admission::Always),
    ("plain", Release::AccessDensity, false, Admission::Always),
    (
        "top50",
        Release::AccessDensity,
        true,
        Admission::Top { percent: 50 },
    ),
    (
        "top20",
        Release::AccessDensity,
        true,
        Admission::Top { percent: 20 },
    ),
    (
        "top5",
        Release::AccessDensity,
        true,
        Admission::Top { percent: 5 },
    ),
];

/// Gets of a part, in thousands.
const STEADY_PART: u64 = 7_500;
const SCANNED_PART: u64 = 1_000;
const SHIFTED_PART: u64 = 3_000;

fn main() -> Result<()> {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names.push("default".into());
    }
    println!("policy  phase  M gets  hits  best  M keys  releases  k/s");
    for name in names {
        let Some(policy) = POLICIES.iter().find(|(known, ..)| *known == name) else {
            let known = POLICIES.map(|(name, ..)| name).join(", ");
            return Err(format!("no policy {name}: {known}").into());
        };
        Run::new(policy)?.all()?;
    }
    Ok(())
}

/// One policy and its database.
struct Run {
    name: &'static str,
    db: Db,
    tree: Tree,
    keys: u64,
    exponent: f64,
    scattered: bool,
    rng: Rng,
    gets: u64,
    /// Dropped last.
    _dir: tempfile::TempDir,
}

impl Run {
    /// A database with all keys on disk, and none in memory.
    fn new(&(name, release, spare, admission): &Policy) -> Result<Self> {
        let parent = std::env::var("DIR").map_or_else(|_| std::env::temp_dir(), Into::into);
        let dir = tempfile::tempdir_in(parent)?;
        let options = Options::new((number("BUDGET_MIB", 128) as usize) << 20)
            .durability(Durability::None)
            .release(release)
            .second_chance(spare);
        let db = Db::open(dir.path(), options)?;
        let tree = db.tree_with("t", TreeOptions::new().admission(admission))?;
        let keys = number("KEYS", 30_000_000);
        tree.load_sorted((0..keys).map(|n| (n.to_be_bytes(), n.to_be_bytes())))?;
        let exponent = std::env::var("ZIPF").map_or(Ok(0.99), |e| e.parse());
        Ok(Self {
            name,
            db,
            tree,
            keys,
            exponent: exponent?,
            scattered: number("SCATTERED", 1) != 0,
            rng: rng(number("SEED", 1), 0, 0),
            gets: 0,
            _dir: dir,
        })
    }

    fn all(mut self) -> Result<()> {
        self.phase("steady", 0, number("STEADY", 60), STEADY_PART)?;
        for entry in self.tree.iter() {
            entry?;
        }
        self.phase("scanned", 0, number("SCANNED", 5), SCANNED_PART)?;
        let half = self.keys / 2;
        self.phase("shifted", half, number("SHIFTED", 36), SHIFTED_PART)?;
        let Self { db, tree, .. } = self;
        drop(tree);
        Ok(db.close()?)
    }

    /// That many millions of gets, of keys that were turned by `rotate`.
    fn phase(&mut self, phase: &str, rotate: u64, millions: u64, part: u64) -> Result<()> {
        let chooser = Pick::Zipf {
            keys: self.keys,
            exponent: self.exponent,
            scattered: self.scattered,
            rotate,
        }
        .chooser();
        let end = self.gets + millions * 1_000_000;
        while self.gets < end {
            let (before, begun) = (self.db.stats(), Instant::now());
            let count = (part * 1_000).min(end - self.gets);
            for _ in 0..count {
                let key = chooser.next(&mut self.rng).to_be_bytes();
                let same = self.tree.get_with(key, |value| value == key)?;
                assert_eq!(same, Some(true), "the value of {key:x?}");
            }
            self.gets += count;
            let rate = count as f64 / begun.elapsed().as_secs_f64() / 1e3;
            self.say(phase, &before, &self.db.stats(), rate);
        }
        Ok(())
    }

    fn say(&self, phase: &str, before: &Stats, now: &Stats, rate: f64) {
        let (hits, misses) = (now.hits - before.hits, now.misses - before.misses);
        println!(
            "{:<8} {phase:<8} {:>6.1} {:>6.2} {:>6.2} {:>6.2} {:>5} {rate:>7.0}",
            self.name,
            self.gets as f64 / 1e6,
            100.0 * hits as f64 / (hits + misses).max(1) as f64,
            100.0 * self.weight(now.x_keys) / self.weight(self.keys),
            now.x_keys as f64 / 1e6,
            now.releases,
        );
    }

    /// What the most popular of that number are drawn, up to a factor.
    fn weight(&self, ranks: u64) -> f64 {
        (1..=ranks).map(|r| (r as f64).powf(-self.exponent)).sum()
    }
}

/// The variable `name` of the environment.
fn number(name: &str, otherwise: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(otherwise, |n| n.parse().expect(name))
}
