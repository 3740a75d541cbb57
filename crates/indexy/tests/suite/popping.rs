//! Threads that take entries from both ends of a tree larger than memory, beside writers, flushes
//! and releases by hand: each entry is given out once, with its newest value. And of one in memory,
//! beside writers at its ends: nothing that lives is passed.

use crate::{
    pairs,
    places::fast_dir,
    support::{MIB, StopAtDrop, assert_sound, open},
};
use indexy::{Key, Options, Tree, Value};
use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
};

const KEYS: u64 = 40_000;
const TAKERS: u64 = 4;

fn key(n: u64) -> [u8; 8] {
    (n * 2 + 1).to_be_bytes()
}

fn value(n: u64, version: u8) -> Vec<u8> {
    let len = 40 + n as usize % 60;
    [&n.to_be_bytes()[..], &vec![version; len]].concat()
}

type Taken = Vec<(Key, Value)>;

/// Takes from both ends until nothing is left; every other one from the front.
fn take_all(tree: &Tree, turn: u64) -> Taken {
    let mut taken = Taken::new();
    for n in turn.. {
        let popped = match n % 2 {
            0 => tree.pop_first(),
            _ => tree.pop_last(),
        };
        match popped.unwrap() {
            Some(entry) => taken.push(entry),
            None => break,
        }
    }
    taken
}

/// Moves what it can between memory and disk until it is told to stop.
fn disturb(tree: &Tree, stop: &AtomicBool, flush: impl Fn()) {
    for n in 0u64.. {
        if stop.load(SeqCst) {
            return;
        }
        match n % 3 {
            0 => flush(),
            1 => drop(tree.release::<&[u8]>(..).unwrap()),
            _ => drop(tree.range(key(n * 997 % KEYS)..).next()),
        }
    }
}

fn newest(n: u64) -> Vec<u8> {
    value(n, if n.is_multiple_of(3) { 2 } else { 1 })
}

#[test]
fn i9_every_entry_is_taken_once() {
    for pair in pairs::chosen(0, 2) {
        println!("{}", pairs::name(pair));
        let dir = fast_dir();
        let db = open(dir.path(), &pairs::options(pair, Options::new(2 * MIB)));
        let tree = db.tree("t").unwrap();
        for n in 0..KEYS {
            tree.insert(key(n), value(n, 1)).unwrap();
        }
        db.flush().unwrap();
        for n in (0..KEYS).step_by(3) {
            tree.insert(key(n), value(n, 2)).unwrap();
        }
        let stop = AtomicBool::new(false);
        let taken: Taken = std::thread::scope(|s| {
            let _stop = StopAtDrop(&stop);
            let flush = || db.flush().unwrap();
            let (tree, stop) = (&tree, &stop);
            s.spawn(move || disturb(tree, stop, flush));
            let takers: Vec<_> = (0..TAKERS)
                .map(|turn| s.spawn(move || take_all(tree, turn)))
                .collect();
            takers
                .into_iter()
                .flat_map(|taker| taker.join().unwrap())
                .collect()
        });
        assert_eq!(taken.len() as u64, KEYS);
        let found: HashMap<Key, Value> = taken.into_iter().collect();
        for n in 0..KEYS {
            let found = found.get(&key(n)[..]).map(|value| &value[..]);
            assert_eq!(found, Some(&newest(n)[..]), "{n}");
        }
        assert!(tree.is_empty().unwrap());
        assert_sound(&db);
    }
}

/// A queue: what is put in at the back by some comes out at the front in order, of each of them.
#[test]
fn i9_a_queue_larger_than_memory_keeps_its_order() {
    const EACH: u64 = 30_000;
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(2 * MIB));
    let tree = db.tree("queue").unwrap();
    let done = AtomicBool::new(false);
    let mut next = [0u64; 2];
    std::thread::scope(|s| {
        for writer in 0..2u64 {
            let tree = &tree;
            s.spawn(move || {
                for n in 0..EACH {
                    let key = [n.to_be_bytes(), writer.to_be_bytes()].concat();
                    tree.insert(key, value(n, writer as u8)).unwrap();
                }
            });
        }
        let _stop = StopAtDrop(&done);
        let flush = || db.flush().unwrap();
        let (tree, done) = (&tree, &done);
        s.spawn(move || disturb(tree, done, flush));
        // Each writer's entries ascend: none is passed, and none comes again.
        let mut all = 0;
        while all < 2 * EACH {
            let Some((key, found)) = tree.pop_first().unwrap() else {
                std::thread::yield_now();
                continue;
            };
            let n = u64::from_be_bytes(key[..8].try_into().unwrap());
            let writer = usize::from(key[15]);
            assert_eq!(n, next[writer], "of writer {writer}");
            assert!(found == value(n, writer as u8));
            next[writer] += 1;
            all += 1;
        }
    });
    assert!(tree.is_empty().unwrap());
    assert_sound(&db);
}

/// A key in the task of a thread, in the middle of places that grow in both directions.
fn task(place: u64, thread: u64, n: u64) -> u64 {
    place << 32 | thread << 24 | n
}

/// Tasks by priority: each thread puts one in, mostly behind all others, now and then before them
/// or among the next ones, and takes the first. What comes after its own cannot be the first while
/// its own is there.
#[test]
fn i9_the_first_of_what_lives_is_taken() {
    const ROUNDS: u64 = 30_000;
    const MIDDLE: u64 = 1 << 30;
    for pair in pairs::chosen(0, 2) {
        println!("{}", pairs::name(pair));
        let dir = fast_dir();
        let db = open(dir.path(), &pairs::options(pair, Options::new(16 * MIB)));
        let tree = db.tree("tasks").unwrap();
        for n in 0..2000 {
            let key = task(MIDDLE + n, 4, 0).to_be_bytes();
            tree.insert(key, key).unwrap();
        }
        let take_turns = &|thread: u64| {
            let mut last = MIDDLE;
            for n in 0..ROUNDS {
                // From the front for a while, then from the back.
                let front = n / 1000 % 2 == 0;
                let place = match (n % 20, front) {
                    (0, true) => n,
                    (0, false) => u64::from(u32::MAX) - n,
                    (10, true) => last,
                    (10, false) => last - 1,
                    (_, true) => MIDDLE + 2000 + n,
                    (_, false) => MIDDLE - n,
                };
                let own = task(place, thread, n).to_be_bytes();
                tree.insert(own, own).unwrap();
                let popped = if front {
                    tree.pop_first()
                } else {
                    tree.pop_last()
                };
                let (key, _) = popped.unwrap().expect("there are more");
                let passed = if front {
                    key[..] > own[..]
                } else {
                    key[..] < own[..]
                };
                assert!(!passed || tree.get(own).unwrap().is_none(), "{n}");
                last = u64::from_be_bytes(key[..].try_into().unwrap()) >> 32;
            }
        };
        std::thread::scope(|s| {
            for thread in 0..4 {
                s.spawn(move || take_turns(thread));
            }
        });
        assert_eq!(tree.len().unwrap(), 2000);
        assert_sound(&db);
    }
}

/// Keys that are too long to be noted ahead.
#[test]
fn long_keys_are_popped_in_order() {
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(16 * MIB));
    let tree = db.tree("long").unwrap();
    let key = |n: u8| [vec![7; 1500], vec![n]].concat();
    for n in 0..100 {
        tree.insert(key(n), [n]).unwrap();
    }
    for n in 0..50 {
        assert_eq!(tree.pop_first().unwrap().unwrap().0[..], key(n)[..]);
        assert_eq!(tree.pop_last().unwrap().unwrap().0[..], key(99 - n)[..]);
        assert_eq!(tree.len().unwrap(), u64::from(98 - 2 * n));
    }
    assert!(tree.pop_first().unwrap().is_none());
}
