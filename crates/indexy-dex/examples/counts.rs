//! Verbs an operation, under a Zipfian load: the paper's Table 2, scaled down.
//!
//! ```text
//! cargo run --release -p indexy-dex --example counts -- [million keys] [million operations] [us]
//! ```
//!
//! The paper: 200 million keys, four compute servers with 256 MiB of cache each. Here: one of four
//! equal partitions, with a cache scaled by the number of keys. Counts are exact. Times are the
//! model's virtual ones, of verbs alone: 2 us a one-sided verb, or as told, and 4 us a call.

use indexy_dex::{
    BulkLoad, Options, Result, Tree,
    baselines::OneSided,
    offload::{self, Offloading},
    partition::Table,
    remote::{Counts, Latency, Model, Region, RemoteMemory},
};
use std::sync::Arc;

const PAPER_KEYS: u64 = 200_000_000;
const PARTITIONS: u64 = 4;
const THETA: f64 = 0.99;
const MIB: u64 = 1 << 20;

/// SplitMix64.
struct Dice(u64);

fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

impl Dice {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// From 0 to below 1.
    fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Ranks from 0, the first the most frequent; after Gray et al., as in YCSB.
struct Zipf {
    items: u64,
    zeta: f64,
    eta: f64,
    alpha: f64,
}

impl Zipf {
    fn new(items: u64) -> Self {
        let zeta = |n: u64| (1..=n).map(|i| (i as f64).powf(-THETA)).sum::<f64>();
        let all = zeta(items);
        let share = (2.0 / items as f64).powf(1.0 - THETA);
        Self {
            items,
            zeta: all,
            eta: (1.0 - share) / (1.0 - zeta(2) / all),
            alpha: 1.0 / (1.0 - THETA),
        }
    }

    fn rank(&self, unit: f64) -> u64 {
        let at = unit * self.zeta;
        if at < 1.0 {
            return 0;
        }
        if at < 1.0 + 0.5_f64.powf(THETA) {
            return 1;
        }
        let rank = self.items as f64 * (self.eta * unit - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.items - 1)
    }
}

/// A permutation of `0..items`: four Feistel rounds, again until the result is below `items`.
fn scramble(rank: u64, items: u64) -> u64 {
    let half = (64 - (items - 1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1_u64 << half) - 1;
    let mut word = rank;
    loop {
        let (mut left, mut right) = (word >> half, word & mask);
        for round in 0..4_u64 {
            (left, right) = (right, left ^ (mix(right ^ round << 56) & mask));
        }
        word = left << half | right;
        if word < items {
            return word;
        }
    }
}

struct Load {
    keys: u64,
    /// Keys of the first partition: those below.
    own_keys: u64,
    operations: u64,
    zipf: Zipf,
}

impl Load {
    /// Calls `operation` with keys of the first partition, and whether it writes.
    fn run(
        &self,
        seed: u64,
        operations: u64,
        writes: f64,
        mut operation: impl FnMut(u64, bool) -> Result<()>,
    ) -> Result<()> {
        let mut dice = Dice(seed);
        let mut done = 0;
        while done < operations {
            let key = scramble(self.zipf.rank(dice.unit()), self.keys);
            if key < self.own_keys {
                operation(key, dice.unit() < writes)?;
                done += 1;
            }
        }
        Ok(())
    }
}

fn row(name: &str, counts: Counts, operations: u64, ns: u64) {
    let each = |sum: u64| sum as f64 / operations as f64;
    println!(
        "{name:<52} {:>6.3} {:>6.3} {:>6.3} {:>7.4} {:>7.1} {:>6.2}",
        each(counts.reads),
        each(counts.writes),
        each(counts.swaps),
        each(counts.calls),
        each(counts.bytes()),
        each(ns) / 1_000.0,
    );
}

/// One line: a tree with these options, warmed up, then measured.
fn measure(load: &Load, pool: &Model, name: &str, options: Options, writes: f64) -> Result<()> {
    let tree = Tree::open(pool.another(), options)?;
    let operation = |key, is_write| {
        if is_write {
            tree.put(key, key ^ 1)?;
        } else {
            assert!(tree.get(key)?.is_some(), "{key}");
        }
        Ok(())
    };
    load.run(1, load.operations, writes, operation)?;
    let (before, started) = (tree.counts(), tree.memory().now_ns());
    load.run(2, load.operations, writes, operation)?;
    let ns = tree.memory().now_ns() - started;
    row(name, tree.counts() - before, load.operations, ns);
    tree.flush()
}

/// The pool, and where the second partition starts.
fn pool(keys: u64, one_sided_us: u64) -> Result<(Model, u64)> {
    let bytes = (keys * 40).next_multiple_of(4096) + 64 * MIB;
    let latency = Latency {
        one_sided_ns: 1_000 * one_sided_us,
        ..Latency::rdma()
    };
    let regions: Result<Vec<_>> = (0..4)
        .map(|_| Ok(Arc::new(Region::create(bytes)?)))
        .collect();
    let pool = Model::new(regions?, offload::serve, latency);
    let table = (0..PARTITIONS).map(|i| (i * keys / PARTITIONS, i as u16));
    let load = BulkLoad::default().table(Table::new(table.collect())?);
    let table = load.load(&pool, (0..keys).map(|key| (key, key)))?;
    let second = table.segments().nth(1).map_or(keys, |segment| segment.0);
    Ok((pool, second))
}

fn main() -> Result<()> {
    let numbers: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse().ok())
        .collect();
    let keys = numbers.first().copied().unwrap_or(20) * 1_000_000;
    let operations = numbers.get(1).copied().unwrap_or(5) * 1_000_000;
    let (pool, own_keys) = pool(keys, numbers.get(2).copied().unwrap_or(2))?;
    let load = Load {
        keys,
        own_keys,
        operations,
        zipf: Zipf::new(keys),
    };
    let options = |mib: u64| {
        let bytes = mib * MIB * keys / PAPER_KEYS;
        Options::new(0, (bytes / 1024) as usize)
    };
    let never = |mib| options(mib).offloading(Offloading::Never);
    println!("{keys} keys, {PARTITIONS} partitions, zipf {THETA}; caches scaled from the paper's");
    println!(
        "{:<52}  reads writes   CAS   calls   bytes  us",
        "an operation"
    );
    let line = |name: &str, options, writes| measure(&load, &pool, name, options, writes);
    line("read-only, 256 MiB", options(256), 0.0)?;
    line("write-intensive, 256 MiB", options(256), 0.5)?;
    line("read-only, 256 MiB, no offloading", never(256), 0.0)?;
    line("write-intensive, 256 MiB, no offloading", never(256), 0.5)?;
    line("read-only, 64 MiB, no offloading", never(64), 0.0)?;
    line(
        "the same, every leaf admitted",
        never(64).leaf_admission(1.0),
        0.0,
    )?;
    line("read-only, 31 MiB, no offloading", never(31), 0.0)?;
    line(
        "read-only, 31 MiB, offloading as measured",
        options(31),
        0.0,
    )?;
    let always = options(31).offloading(Offloading::Always);
    line("read-only, 31 MiB, offloading always", always, 0.0)?;
    line("write-intensive, 31 MiB, no offloading", never(31), 0.5)?;
    line(
        "write-intensive, 31 MiB, offloading as measured",
        options(31),
        0.5,
    )?;
    let inner = never(512).leaf_admission(0.0);
    line(
        "partitions, inner nodes cached, read-only",
        inner.clone(),
        0.0,
    )?;
    line(
        "partitions, inner nodes cached, write-intensive",
        inner,
        0.5,
    )?;
    one_sided(&load, &pool)
}

/// The baseline without a cache: a twentieth of the operations, for each is many verbs.
fn one_sided(load: &Load, pool: &Model) -> Result<()> {
    let one_sided = OneSided::open(pool.another())?;
    let some = load.operations / 20;
    for (name, writes) in [
        ("one-sided, no cache, read-only", 0.0),
        ("the same, write-intensive", 0.5),
    ] {
        let before = one_sided.memory().counts();
        let started = one_sided.memory().now_ns();
        load.run(3, some, writes, |key, is_write| {
            let found = match is_write {
                true => one_sided.put(key, key)?,
                false => one_sided.get(key)?,
            };
            assert!(found.is_some(), "{key}");
            Ok(())
        })?;
        let ns = one_sided.memory().now_ns() - started;
        row(name, one_sided.memory().counts() - before, some, ns);
    }
    Ok(())
}
