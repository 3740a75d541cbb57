//! Trees under one load, and what they cost.

use super::load::{Load, Mix, Operation};
use indexy_dex::{
    BulkLoad, Options, Result, Tree,
    baselines::{OneSided, Sherman, Smart},
    offload::{self, Offloading},
    partition::Table,
    remote::{Counts, Latency, Model, Region, RemoteMemory},
};
use std::sync::Arc;

pub(super) const PAPER_KEYS: u64 = 200_000_000;
pub(super) const PARTITIONS: u64 = 4;
pub(super) const LATENCIES_US: [u64; 3] = [2, 3, 8];
/// Records of a scan.
const SCAN: usize = 100;
/// What an operation computes, the same for every tree: a search in cached nodes.
const COMPUTE_US: f64 = 0.3;
/// What a call takes longer than a one-sided verb: the other side has to see it and answer.
const CALL_EXTRA_NS: u64 = 2_000;
const MIB: u64 = 1 << 20;

/// The pool's memory, and where the second partition starts.
pub(super) struct Pool {
    regions: Vec<Arc<Region>>,
    /// Of each region.
    pub(super) region_bytes: u64,
    pub(super) load: Load,
}

impl Pool {
    /// Keys have gaps: key `k` is stored as `2 k`, and inserted as `2 k + 1`.
    pub(super) fn new(keys: u64) -> Result<Self> {
        let bytes = (keys * 56 / PARTITIONS * 4).next_multiple_of(4096) + 64 * MIB;
        let regions: Result<Vec<_>> = (0..PARTITIONS)
            .map(|_| Ok(Arc::new(Region::create(bytes)?)))
            .collect();
        let regions = regions?;
        let memory = Model::new(regions.clone(), offload::serve, Latency::rdma());
        let table = (0..PARTITIONS).map(|i| (2 * (i * keys / PARTITIONS), i as u16));
        let load = BulkLoad::default().table(Table::new(table.collect())?);
        let table = load.load(&memory, (0..keys).map(|key| (2 * key, key)))?;
        let second = table
            .segments()
            .nth(1)
            .map_or(2 * keys, |segment| segment.0);
        Ok(Self {
            regions,
            region_bytes: bytes,
            load: Load {
                keys,
                own_keys: second / 2,
                zipf: None,
            },
        })
    }

    /// The first memory server's.
    pub(super) fn region(&self) -> Arc<Region> {
        self.regions[0].clone()
    }

    /// An endpoint whose one-sided verbs take so long, and calls longer.
    pub(super) fn memory(&self, one_sided_us: u64) -> Model {
        let latency = Latency {
            one_sided_ns: 1_000 * one_sided_us,
            two_sided_ns: 1_000 * one_sided_us + CALL_EXTRA_NS,
            ..Latency::rdma()
        };
        Model::new(self.regions.clone(), offload::serve, latency)
    }

    /// Pages of a cache of so many MiB in the paper.
    pub(super) fn pages(&self, paper_mib: u64) -> usize {
        ((paper_mib * MIB * self.load.keys / PAPER_KEYS / 1024) as usize).max(64)
    }

    pub(super) fn options(&self, paper_mib: u64) -> Options {
        Options::new(0, self.pages(paper_mib))
    }
}

/// What is measured.
#[derive(Clone)]
pub(super) enum Contender {
    Dex(Options),
    Sherman(usize),
    OneSided,
    /// Bytes of the cache; with partitions or without.
    Smart {
        cache_bytes: u64,
        partitioned: bool,
    },
}

/// Of one operation.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cost {
    pub(super) reads: f64,
    pub(super) writes: f64,
    pub(super) swaps: f64,
    pub(super) calls: f64,
    pub(super) bytes: f64,
    /// Modelled, for each of the latencies.
    pub(super) us: [f64; 3],
}

impl Cost {
    pub(super) fn verbs(&self) -> f64 {
        self.reads + self.writes + self.swaps + self.calls
    }

    fn of(counts: Counts, operations: u64) -> Self {
        let each = |sum: u64| sum as f64 / operations as f64;
        Self {
            reads: each(counts.reads),
            writes: each(counts.writes),
            swaps: each(counts.swaps),
            calls: each(counts.calls),
            bytes: each(counts.bytes()),
            us: [0.0; 3],
        }
    }
}

/// Warms a tree up with as many operations as it is measured with. Counts are those of the first
/// latency.
pub(super) fn measure(
    pool: &Pool,
    contender: &Contender,
    mix: Mix,
    operations: u64,
) -> Result<Cost> {
    if let Contender::Smart {
        cache_bytes,
        partitioned,
    } = contender
    {
        return smart(pool, *cache_bytes, *partitioned, mix, operations);
    }
    let mut cost = Cost::default();
    for (i, us) in LATENCIES_US.into_iter().enumerate() {
        let (counts, ns) = match contender {
            Contender::Dex(options) => dex(pool, us, options.clone(), mix, operations)?,
            Contender::Sherman(pages) => sherman(pool, us, *pages, mix, operations)?,
            _ => one_sided(pool, us, mix, operations)?,
        };
        if i == 0 {
            cost = Cost::of(counts, operations);
        }
        cost.us[i] = ns as f64 / operations as f64 / 1_000.0 + COMPUTE_US;
    }
    Ok(cost)
}

fn dex(pool: &Pool, us: u64, options: Options, mix: Mix, operations: u64) -> Result<(Counts, u64)> {
    let tree = Tree::open(pool.memory(us), options)?;
    let mut found = Vec::new();
    let mut operate = |operation, key: u64| {
        match operation {
            Operation::Lookup => tree.get(2 * key).map(drop)?,
            Operation::Update => tree.put(2 * key, key).map(drop)?,
            Operation::Insert => tree.put(2 * key + 1, key).map(drop)?,
            Operation::Scan => {
                found.clear();
                tree.scan(2 * key, u64::MAX, SCAN, &mut found)?;
            }
        }
        Ok(())
    };
    let own = pool.load.own_keys;
    pool.load.run(1, operations, mix, own, &mut operate)?;
    let (before, started) = (tree.counts(), tree.memory().now_ns());
    pool.load.run(2, operations, mix, own, &mut operate)?;
    let spent = (tree.counts() - before, tree.memory().now_ns() - started);
    tree.flush()?;
    Ok(spent)
}

fn sherman(pool: &Pool, us: u64, pages: usize, mix: Mix, operations: u64) -> Result<(Counts, u64)> {
    let tree = Sherman::open(pool.memory(us), pages)?;
    // Inserts split no leaves here: those into a full one are refused, and cost the same reads.
    let refused = |done: Result<Option<u64>>| match done {
        Ok(_) | Err(indexy_dex::Error::Refused { .. }) => Ok(()),
        Err(error) => Err(error),
    };
    let operate = |operation, key: u64| match operation {
        Operation::Lookup => tree.get(2 * key).map(drop),
        Operation::Update => tree.put(2 * key, key).map(drop),
        Operation::Insert => refused(tree.put(2 * key + 1, key)),
        Operation::Scan => tree.scan(2 * key, SCAN).map(drop),
    };
    let all = pool.load.keys;
    pool.load.run(1, operations, mix, all, operate)?;
    let (before, started) = (tree.memory().counts(), tree.memory().now_ns());
    pool.load.run(2, operations, mix, all, operate)?;
    Ok((
        tree.memory().counts() - before,
        tree.memory().now_ns() - started,
    ))
}

fn one_sided(pool: &Pool, us: u64, mix: Mix, operations: u64) -> Result<(Counts, u64)> {
    let tree = OneSided::open(pool.memory(us))?;
    let operate = |operation, key: u64| match operation {
        Operation::Update => tree.put(2 * key, key).map(drop),
        _ => tree.get(2 * key).map(drop),
    };
    let all = pool.load.keys;
    pool.load.run(2, operations, mix, all, operate)?;
    Ok((tree.memory().counts(), tree.memory().now_ns()))
}

fn smart(
    pool: &Pool,
    cache_bytes: u64,
    partitioned: bool,
    mix: Mix,
    operations: u64,
) -> Result<Cost> {
    // Keys keep their order, and partitions their keys: hashed below the partition's bits.
    let (own, keys) = (pool.load.own_keys, pool.load.keys);
    let hashed = |key: u64| {
        let partition = key / own;
        partition << 62 | super::load::mix(key) >> 2
    };
    let mut tree = Smart::new((0..keys).map(hashed), cache_bytes);
    let below = if partitioned { own } else { keys };
    let mut counts = tree.counts();
    for seed in [1, 2] {
        counts = tree.counts();
        pool.load
            .run(seed, operations, mix, below, |operation, key| {
                tree.touch(hashed(key), operation == Operation::Update);
                Ok(())
            })?;
    }
    let after = tree.counts();
    let each = |sum: u64| sum as f64 / operations as f64;
    let mut cost = Cost {
        reads: each(after.reads - counts.reads),
        writes: each(after.writes - counts.writes),
        swaps: each(after.swaps - counts.swaps),
        bytes: each(after.bytes - counts.bytes),
        ..Cost::default()
    };
    let wire_us = cost.bytes / Latency::rdma().bytes_per_us as f64;
    cost.us = LATENCIES_US.map(|us| cost.verbs() * us as f64 + wire_us + COMPUTE_US);
    Ok(cost)
}

/// Offloading never, whatever is measured.
pub(super) fn never(options: Options) -> Options {
    options.offloading(Offloading::Never)
}
