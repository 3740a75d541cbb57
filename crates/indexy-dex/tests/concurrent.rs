//! Threads of several compute servers on one pool, with tiny caches and ranges that move.
//!
//! Each key has one writer, which writes ascending values and 0 for a removal of its own; so a
//! reader that saw a value must not see a smaller one later. That is what linearizability means
//! for one register with one writer.

mod pools;

use indexy_dex::{
    BulkLoad, Error, Options, Result, Tree, offload::Offloading, partition::Table,
    remote::RemoteMemory,
};
use pools::{Dice, ModelPool, Pool, ShmPool, UnsteadyPool};
use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
};

const WRITERS: u64 = 3;
const READERS: u64 = 2;
const FEW_KEYS: u64 = 6_000;
const MANY_KEYS: u64 = 100_000;
/// Of each reader, through one leaf.
const ROUNDS: u64 = 20_000;

struct Force {
    /// Keys are below; one of seven is loaded.
    keys: u64,
    /// Of each writer.
    operations: u64,
    cache_pages: usize,
    leaf_admission: f64,
    offloading: Offloading,
    moves: bool,
    fill: usize,
}

/// The tree that serves `key`: another one is asked while a range moves.
fn ask<M: RemoteMemory, T>(
    trees: &[Tree<M>],
    guess: &mut usize,
    operation: impl Fn(&Tree<M>) -> Result<T>,
) -> T {
    for _ in 0..10_000_000 {
        match operation(&trees[*guess]) {
            Ok(answer) => return answer,
            Err(Error::NotOwner { .. }) => *guess = (*guess + 1) % trees.len(),
            Err(error) => panic!("{error}"),
        }
        thread::yield_now();
    }
    panic!("nobody serves the key");
}

fn write<M: RemoteMemory>(
    trees: &[Tree<M>],
    force: &Force,
    writer: u64,
    last: &mut HashMap<u64, u64>,
) {
    let mut dice = Dice(writer + 100);
    let mut guess = 0;
    for i in 1..=force.operations {
        let key = dice.roll(force.keys / WRITERS) * WRITERS + writer;
        let before = last.get(&key).copied();
        // Long phases of removals, so that nodes are merged.
        let removes = (i * 6 / force.operations) % 2 == 1 && dice.roll(4) > 0;
        let old = if removes {
            last.remove(&key);
            ask(trees, &mut guess, |tree| tree.remove(key))
        } else {
            last.insert(key, i);
            ask(trees, &mut guess, |tree| tree.put(key, i))
        };
        assert_eq!(old, before, "the writer of {key} finds what it wrote");
    }
}

fn read<M: RemoteMemory>(trees: &[Tree<M>], force: &Force, reader: u64, done: &AtomicBool) {
    let mut dice = Dice(reader + 200);
    let mut seen: HashMap<u64, u64> = HashMap::new();
    let mut guess = 0;
    let mut check = |key: u64, value: u64| {
        let last = seen.entry(key).or_default();
        assert!(*last <= value, "{key} went back from {last} to {value}");
        *last = value;
    };
    while !done.load(Relaxed) {
        let key = dice.roll(force.keys);
        if dice.roll(20) > 0 {
            if let Some(value) = ask(trees, &mut guess, |tree| tree.get(key)) {
                check(key, value);
            }
            continue;
        }
        let found = ask(trees, &mut guess, |tree| {
            let mut found = Vec::new();
            tree.scan(key, key + 500, 200, &mut found)?;
            Ok(found)
        });
        assert!(found.is_sorted_by(|a, b| a.0 < b.0));
        for (key, value) in found {
            check(key, value);
        }
    }
}

/// Moves ranges to and fro until all is done.
fn repartition<M: RemoteMemory>(
    trees: &[Tree<M>],
    force: &Force,
    done: &AtomicBool,
    moves: &AtomicU64,
) {
    let mut dice = Dice(300);
    while !done.load(Relaxed) {
        let from = dice.roll(trees.len() as u64) as usize;
        let to = (from + 1) % trees.len();
        let ownership = trees[from].ownership();
        let Some(&(low, high)) = ownership.ranges().first() else {
            continue;
        };
        let middle = low + dice.roll((high - low).clamp(1, force.keys));
        let start = trees[from].leaf_start(middle).unwrap();
        match trees[from].release(start.max(low), high, to as u16) {
            Ok(_) => {
                trees[to].adopt_table().unwrap();
                moves.fetch_add(1, Relaxed);
            }
            // The leaf was split or merged meanwhile.
            Err(Error::Options(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn run<P: Pool>(pool: &P, owners: u16, force: &Force) {
    let loaded = (0..force.keys)
        .filter(|key| key % 7 == 0)
        .map(|key| (key, 0));
    let each = force.keys / u64::from(owners);
    let segments = (0..owners).map(|owner| (u64::from(owner) * each, owner));
    let table = Table::new(segments.collect()).unwrap();
    let load = BulkLoad::default().fill(force.fill).table(table);
    load.load(&pool.connect(), loaded.clone()).unwrap();
    let open = |owner| {
        let options = Options::new(owner, force.cache_pages)
            .leaf_admission(force.leaf_admission)
            .offloading(force.offloading);
        Tree::open(pool.connect(), options).unwrap()
    };
    let trees: Vec<_> = (0..owners).map(open).collect();
    let (done, moves) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut last: HashMap<u64, u64> = HashMap::new();
    thread::scope(|scope| {
        let (trees, done, moves) = (&trees, &done, &moves);
        for reader in 0..READERS {
            scope.spawn(move || read(trees, force, reader, done));
        }
        if force.moves {
            scope.spawn(move || repartition(trees, force, done, moves));
        }
        let of = |writer| {
            loaded
                .clone()
                .filter(move |entry| entry.0 % WRITERS == writer)
        };
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let mut last: HashMap<u64, u64> = of(writer).collect();
                scope.spawn(move || {
                    write(trees, force, writer, &mut last);
                    last
                })
            })
            .collect();
        let wrote: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Relaxed);
        last = wrote.into_iter().flat_map(|wrote| wrote.unwrap()).collect();
    });
    assert!(!force.moves || moves.load(Relaxed) > 5, "{moves:?} moves");
    let mut guess = 0;
    for key in 0..force.keys {
        if force.keys > MANY_KEYS && key % 7 != 0 && !last.contains_key(&key) {
            continue;
        }
        let value = ask(&trees, &mut guess, |tree| tree.get(key));
        assert_eq!(value, last.get(&key).copied(), "{key}");
    }
}

/// Small nodes: many levels, and merges.
const DEEP: Force = Force {
    keys: FEW_KEYS,
    operations: 6_000,
    cache_pages: 48,
    leaf_admission: 0.3,
    offloading: Offloading::Measured,
    moves: false,
    fill: 4,
};

/// Full nodes: inner nodes are split while threads read what is below them.
const FULL: Force = Force {
    keys: 1_200_000,
    operations: 12_000,
    cache_pages: 400,
    leaf_admission: 0.5,
    fill: 58,
    ..DEEP
};

fn pool() -> UnsteadyPool {
    UnsteadyPool(ModelPool::new(2, 64 << 20))
}

#[test]
fn threads_of_one_owner() {
    for (leaf_admission, offloading) in [
        (0.1, Offloading::Never),
        (1.0, Offloading::Measured),
        (0.3, Offloading::Always),
    ] {
        let force = Force {
            leaf_admission,
            offloading,
            ..DEEP
        };
        run(&pool(), 1, &force);
    }
}

#[test]
fn threads_of_one_owner_split_inner_nodes() {
    for offloading in [Offloading::Never, Offloading::Always] {
        run(&pool(), 1, &Force { offloading, ..FULL });
    }
}

#[test]
fn threads_of_three_owners() {
    run(&pool(), 3, &DEEP);
    run(&pool(), 3, &FULL);
}

#[test]
fn threads_of_two_owners_while_ranges_move() {
    for (offloading, force) in [
        (Offloading::Never, DEEP),
        (Offloading::Always, DEEP),
        (Offloading::Measured, FULL),
    ] {
        for cache_pages in [60, 2_000] {
            let force = Force {
                cache_pages,
                offloading,
                moves: true,
                ..force
            };
            run(&pool(), 2, &force);
        }
    }
}

#[test]
fn over_shared_memory_while_ranges_move() {
    let force = Force {
        operations: 25_000,
        moves: true,
        fill: 10,
        ..DEEP
    };
    run(&ShmPool::new(2, 64 << 20), 2, &force);
}

#[test]
fn readers_see_leaves_as_one_state() {
    let pool = ModelPool::new(1, 16 << 20);
    let loaded = (1..=40).map(|key| (2 * key, key));
    BulkLoad::default().load(&pool.connect(), loaded).unwrap();
    let tree = Tree::open(pool.connect(), Options::new(0, 100)).unwrap();
    let rounds = [AtomicU64::new(0), AtomicU64::new(0)];
    let is_enough = || rounds.iter().all(|rounds| rounds.load(Relaxed) >= ROUNDS);
    thread::scope(|scope| {
        for rounds in &rounds {
            scope.spawn(|| {
                while !is_enough() {
                    for key in 1..=40 {
                        let value = tree.get(2 * key).unwrap();
                        // Lets the other threads end.
                        if value != Some(key) {
                            rounds.store(u64::MAX, Relaxed);
                        }
                        assert_eq!(value, Some(key));
                    }
                    rounds.fetch_add(1, Relaxed);
                }
            });
        }
        while !is_enough() {
            // Every entry moves up, and down again.
            tree.put(1, 1).unwrap();
            tree.remove(1).unwrap();
        }
    });
}
