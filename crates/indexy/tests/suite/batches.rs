//! I8: batches over the same keys come one wholly after the other, whoever commits them and in
//! whatever order they name their keys; in memory, and in the log.

use crate::{
    pairs,
    places::fast_dir,
    support::{MIB, Random, assert_sound, open},
};
use indexy::{Db, Durability, Options, Tree};
use std::sync::{
    Barrier, Mutex,
    atomic::{AtomicU64, Ordering::SeqCst},
};

const THREADS: u64 = 8;
const KEYS: u64 = 20;
/// The threads wait for each other, commit at the same time, and the keys are looked at: what does
/// not hold may hold again after the next batch.
const ROUNDS: u64 = 300;
const COMMITS: u64 = 3;

fn key(n: u64) -> [u8; 8] {
    (n * 10).to_be_bytes()
}

/// Between two keys of the batches.
fn neighbour(n: u64, thread: u64) -> [u8; 8] {
    (n * 10 + 1 + thread).to_be_bytes()
}

fn number(value: &[u8]) -> u64 {
    u64::from_be_bytes(value[..8].try_into().unwrap())
}

/// Every key of the batches in both trees, to `number`, in random order. Lengths differ, so that
/// entries move.
fn commit(db: &Db, trees: &[Tree; 2], number: u64, random: &mut Random) {
    let mut places: Vec<(usize, u64)> = (0..2)
        .flat_map(|t| (0..KEYS).map(move |n| (t, n)))
        .collect();
    for i in (1..places.len()).rev() {
        places.swap(i, random.below(i as u64 + 1) as usize);
    }
    let value = [
        &number.to_be_bytes()[..],
        &[7; 40][..(number % 40) as usize],
    ]
    .concat();
    let mut batch = db.batch();
    for (t, n) in places {
        batch.insert(&trees[t], key(n), &value);
    }
    batch.commit().unwrap();
}

/// The numbers of all keys of the batches.
fn numbers(trees: &[Tree; 2]) -> Vec<u64> {
    let of = |tree: &Tree| -> Vec<u64> {
        let found = (0..KEYS).map(|n| tree.get(key(n)).unwrap().unwrap());
        found.map(|value| number(&value)).collect()
    };
    trees.iter().flat_map(of).collect()
}

fn all_equal(numbers: &[u64]) -> bool {
    numbers.iter().all(|n| *n == numbers[0])
}

fn two_trees(db: &Db) -> [Tree; 2] {
    ["a", "b"].map(|name| db.tree(name).unwrap())
}

fn everything(tree: &Tree) -> Vec<(Vec<u8>, Vec<u8>)> {
    let entries = tree.iter().map(Result::unwrap);
    entries.map(|(k, v)| (k.to_vec(), v.to_vec())).collect()
}

fn run(options: &Options) {
    let dir = fast_dir();
    let db = open(dir.path(), options);
    let trees = two_trees(&db);
    let next = AtomicU64::new(1);
    let barrier = Barrier::new(THREADS as usize);
    // What was found to be mixed; who panics would leave the others at the barrier.
    let mixed: Mutex<Option<Vec<u64>>> = Mutex::default();
    std::thread::scope(|s| {
        for t in 0..THREADS {
            let (db, trees, next, barrier, mixed) = (&db, &trees, &next, &barrier, &mixed);
            s.spawn(move || {
                let mut random = Random(t);
                for _ in 0..ROUNDS {
                    barrier.wait();
                    if mixed.lock().unwrap().is_some() {
                        return;
                    }
                    for _ in 0..COMMITS {
                        let number = next.fetch_add(1, SeqCst);
                        commit(db, trees, number, &mut random);
                        let beside = neighbour(random.below(KEYS), t);
                        trees[random.below(2) as usize]
                            .insert(beside, number.to_be_bytes())
                            .unwrap();
                    }
                    if barrier.wait().is_leader() {
                        let found = numbers(trees);
                        if !all_equal(&found) {
                            *mixed.lock().unwrap() = Some(found);
                        }
                    }
                }
            });
        }
    });
    assert_eq!(mixed.into_inner().unwrap(), None, "two batches were mixed");
    assert!(all_equal(&numbers(&trees)));
    let before = trees.each_ref().map(everything);
    db.sync().unwrap();
    drop((trees, db));
    // The log has them in the order in which they were applied.
    let db = open(dir.path(), options);
    let trees = two_trees(&db);
    assert!(all_equal(&numbers(&trees)));
    assert!(trees.each_ref().map(everything) == before);
    assert_sound(&db);
}

#[test]
fn i8_batches_over_the_same_keys_are_serial_in_memory_and_in_the_log() {
    let durability = Durability::Buffered { interval_ms: 20 };
    for pair in [pairs::named("art-lsm"), pairs::named("bplus-lsm")] {
        run(&pairs::options(
            pair,
            Options::new(2 * MIB).durability(durability),
        ));
    }
}
