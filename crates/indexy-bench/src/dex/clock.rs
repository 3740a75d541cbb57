//! What no model can tell, by the clock: a tree that is cached whole beside our B+ tree in memory,
//! and a node read through shared memory beside a copy of the same node here.
//!
//! Both sides of a comparison take turns; the medians of their rounds are compared.

use super::{
    contender::{Pool, never},
    error::DexError,
    load::{Dice, Mix},
    report::Report,
};
use crate::measure::median;
use indexy::{Db, Durability, IndexXKind, Options as DbOptions, Tree as LocalTree};
use indexy_dex::{
    Address, Options, Tree, offload,
    remote::{Model, NODES_OFFSET, RemoteMemory, Secret, Serving, shm},
};
use std::{hint::black_box, time::Duration, time::Instant};

/// Rounds of each side.
const ROUNDS: usize = 7;
/// Of the paper.
const NODE_BYTES: u64 = 1024;
const NODE_WORDS: usize = 128;
/// Bytes of nodes that are read: more than the caches of a processor hold.
const COPIED_BYTES: u64 = 64 << 20;
/// Bytes of the local tree for each entry of 8 and 8 bytes, with room for all else.
const LOCAL_ENTRY_BYTES: u64 = 64;
const LOCAL_LEAST_BYTES: u64 = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(10);

/// Both comparisons.
pub(super) fn clock(pool: &mut Pool, operations: u64, report: &mut Report) -> Result<(), DexError> {
    report.line("\n| | here | in the pool | ratio |");
    report.line("|---|---|---|---|");
    let gets = gets(pool, operations)?;
    report.line(&gets.line("gets, read-only, everything cached, beside a B+ tree in memory"));
    let nodes = nodes(pool, operations)?;
    report.line(&nodes.line("reads of a node through shared memory, beside a copy"));
    report.claim(
        "no figure.",
        &format!(
            "{:.2} times the local tree's gets; 0.85 or more:",
            gets.speed()
        ),
        gets.speed() >= 0.85,
    );
    report.claim(
        "no figure.",
        &format!(
            "a node through shared memory takes {:.2} times as long as a copy; 2 at most:",
            1.0 / nodes.speed()
        ),
        nodes.speed() >= 0.5,
    );
    Ok(())
}

/// Nanoseconds an operation.
struct Sides {
    here: f64,
    pool: f64,
}

impl Sides {
    /// How fast the pool's side is, the other being 1.
    fn speed(&self) -> f64 {
        self.here / self.pool
    }

    fn line(&self, what: &str) -> String {
        let Self { here, pool } = self;
        format!(
            "| {what} | {here:.0} ns | {pool:.0} ns | {:.2} |",
            self.speed()
        )
    }
}

/// Runs both in turns, each over `count` operations a round.
fn in_turns(
    count: usize,
    mut here: impl FnMut() -> Result<(), DexError>,
    mut pool: impl FnMut() -> Result<(), DexError>,
) -> Result<Sides, DexError> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let each = |began: Instant| began.elapsed().as_nanos() as f64 / count as f64;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        here()?;
        ours.push(each(began));
        let began = Instant::now();
        pool()?;
        theirs.push(each(began));
    }
    Ok(Sides {
        here: median(ours).unwrap_or_default(),
        pool: median(theirs).unwrap_or_default(),
    })
}

fn gets(pool: &Pool, operations: u64) -> Result<Sides, DexError> {
    let own = pool.load.own_keys;
    let pages = (own / 41 + own / 1_000) as usize * 5 / 4;
    let options = never(Options::new(0, pages)).leaf_admission(1.0);
    let tree = Tree::open(pool.memory(2), options)?;
    for key in 0..own {
        tree.get(2 * key)?;
    }
    let dir = folder()?;
    let budget = own * LOCAL_ENTRY_BYTES + LOCAL_LEAST_BYTES;
    let db = Db::open(dir.path(), local_options(budget))?;
    let local = db.tree("local")?;
    for key in 0..own {
        local.insert((2 * key).to_be_bytes(), key.to_le_bytes())?;
    }
    let mut keys = Vec::new();
    let mix = Mix::ReadOnly;
    pool.load.run(3, operations, mix, own, |_, key| {
        keys.push(2 * key);
        Ok(())
    })?;
    let before = tree.counts();
    let sides = in_turns(
        keys.len(),
        || get_here(&local, &keys),
        || get_cached(&tree, &keys),
    )?;
    let missed = (tree.counts() - before).verbs();
    assert_eq!(missed, 0, "the tree was not cached whole");
    Ok(sides)
}

fn folder() -> Result<tempfile::TempDir, DexError> {
    tempfile::tempdir().map_err(DexError::at(&std::env::temp_dir()))
}

fn local_options(budget: u64) -> DbOptions {
    DbOptions::new(budget as usize)
        .durability(Durability::None)
        .index_x(IndexXKind::BPlus)
}

fn get_here(local: &LocalTree, keys: &[u64]) -> Result<(), DexError> {
    for key in keys {
        assert!(local.get(key.to_be_bytes())?.is_some(), "a key was lost");
    }
    Ok(())
}

fn get_cached(tree: &Tree<Model>, keys: &[u64]) -> Result<(), DexError> {
    for key in keys {
        assert!(tree.get(*key)?.is_some(), "a key was lost");
    }
    Ok(())
}

fn nodes(pool: &Pool, operations: u64) -> Result<Sides, DexError> {
    let dir = folder()?;
    let path = dir.path().join("pool");
    let secret = Secret::new("of a comparison on one machine")?;
    let (region, serving) = (pool.region(), Serving::new(1));
    let server = shm::ShmServer::start(&path, region, offload::serve, secret.clone(), serving);
    let _server = server.map_err(DexError::at(&path))?;
    let memory = shm::Shm::connect(&[path], &secret, PATIENCE)?;
    let count = COPIED_BYTES.min(pool.region_bytes - NODES_OFFSET) / NODE_BYTES;
    let mut copies = vec![[0_u64; NODE_WORDS]; count as usize];
    for (at, copy) in copies.iter_mut().enumerate() {
        memory.read(node(at), copy)?;
    }
    let mut dice = Dice(5);
    let places: Vec<usize> = (0..operations)
        .map(|_| (dice.word() % count) as usize)
        .collect();
    let (mut ours, mut theirs) = ([0; NODE_WORDS], [0; NODE_WORDS]);
    in_turns(
        places.len(),
        || {
            for at in &places {
                let at = at + nothing(&ours);
                ours.copy_from_slice(&copies[at]);
            }
            Ok(())
        },
        || {
            for at in &places {
                let at = node(at + nothing(&theirs));
                memory.read(at, &mut theirs)?;
            }
            Ok(())
        },
    )
}

/// 0, by the node that was read last: as in a tree, where the next one is, is known only then.
fn nothing(read: &[u64; NODE_WORDS]) -> usize {
    let last = read[NODE_WORDS - 1];
    last.wrapping_sub(black_box(last)) as usize
}

fn node(at: usize) -> Address {
    Address::new(0, NODES_OFFSET + at as u64 * NODE_BYTES)
}
