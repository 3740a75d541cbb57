//! Checkpoints taken while others write open as a state that was: a prefix of the log.

use crate::{
    pairs::{self, Pair},
    places::fast_dir,
    support::{MIB, StopAtDrop, assert_sound, open},
};
use indexy::{Db, Durability, Error, Options};
use std::{
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
};

const WRITERS: usize = 3;
/// A writer's keys are overwritten round and round.
const KEYS: u64 = 3000;

fn key(writer: usize, n: u64) -> Vec<u8> {
    format!("{writer}/{:05}", n % KEYS).into_bytes()
}

/// The n-th write of a writer: odd ones are batches over both trees.
fn write(db: &Db, writer: usize, n: u64) {
    let (a, b) = (db.tree("a").unwrap(), db.tree("b").unwrap());
    let value = [n.to_be_bytes().to_vec(), vec![writer as u8; 100]].concat();
    if n.is_multiple_of(2) {
        a.insert(key(writer, n), &value).unwrap();
    } else {
        let mut batch = db.batch();
        batch.insert(&a, key(writer, n), &value);
        batch.insert(&b, key(writer, n), &value);
        batch.insert(&a, format!("last/{writer}"), n.to_be_bytes());
        batch.insert(&b, format!("last/{writer}"), n.to_be_bytes());
        batch.commit().unwrap();
    }
}

fn number(value: &[u8]) -> u64 {
    u64::from_be_bytes(value[..8].try_into().unwrap())
}

/// The copy holds exactly the first so many writes of every writer; returns how many.
fn check(path: &Path, options: &Options, at_least: &[u64], at_most: &[AtomicU64]) {
    let copy = open(path, options);
    assert_sound(&copy);
    let (a, b) = (copy.tree("a").unwrap(), copy.tree("b").unwrap());
    for writer in 0..WRITERS {
        let of = |tree: &indexy::Tree, n| tree.get(key(writer, n)).unwrap().map(|v| number(&v));
        // The newest write that is there.
        let newest = (0..KEYS).filter_map(|n| of(&a, n)).max();
        let count = newest.map_or(0, |n| n + 1);
        assert!(count >= at_least[writer], "{count} < {}", at_least[writer]);
        assert!(count <= at_most[writer].load(SeqCst));
        for n in 0..KEYS {
            // The last write of this key among the first `count`.
            let last = (count > n).then(|| (count - 1 - n) / KEYS * KEYS + n);
            assert_eq!(of(&a, n), last, "writer {writer} of {count} in a");
            let in_b = last.filter(|last| last % 2 == 1);
            assert_eq!(of(&b, n), in_b, "writer {writer} of {count} in b");
        }
        let last_batch = |tree: &indexy::Tree| {
            let last = tree.get(format!("last/{writer}")).unwrap();
            last.map(|v| number(&v))
        };
        // Odd writes are the batches: the newest of them is the last or the one before it.
        if count > 1 {
            let newest = count - 1;
            let expected = Some(newest - u64::from(newest.is_multiple_of(2)));
            assert_eq!(last_batch(&a), expected);
            assert_eq!(last_batch(&b), expected);
        }
    }
}

/// Tests of this file that share the pairs.
const CASES: usize = 4;

/// [`run_with`] the pairs of test `number`.
fn run(number: usize, options: &Options, rounds: u32) {
    for pair in pairs::chosen(number, CASES) {
        println!("{}", pairs::name(pair));
        run_with(&pairs::options(pair, options.clone()), rounds);
    }
}

fn run_with(options: &Options, rounds: u32) {
    let dir = fast_dir();
    let db = open(dir.path(), options);
    db.tree("a").unwrap();
    db.tree("b").unwrap();
    let copies = fast_dir();
    let done = AtomicBool::new(false);
    let started: [AtomicU64; WRITERS] = Default::default();
    let acknowledged: [AtomicU64; WRITERS] = Default::default();
    std::thread::scope(|s| {
        for writer in 0..WRITERS {
            let (db, done) = (&db, &done);
            let (started, acknowledged) = (&started[writer], &acknowledged[writer]);
            s.spawn(move || {
                for n in 0.. {
                    if done.load(SeqCst) {
                        break;
                    }
                    started.store(n + 1, SeqCst);
                    write(db, writer, n);
                    acknowledged.store(n + 1, SeqCst);
                }
            });
        }
        let stop = StopAtDrop(&done);
        for round in 0..rounds {
            let path = copies.path().join(round.to_string());
            let at_least: Vec<u64> = acknowledged.iter().map(|a| a.load(SeqCst)).collect();
            db.checkpoint(&path).unwrap();
            check(&path, options, &at_least, &started);
            if round % 4 == 3 {
                db.flush().unwrap();
            }
            // A copy is a database like any other: it is written, reopened, and read once more.
            let copy = open(&path, options);
            let tree = copy.tree("a").unwrap();
            tree.insert(b"mine", b"1").unwrap();
            copy.close().unwrap();
            assert!(
                open(&path, options)
                    .tree("a")
                    .unwrap()
                    .contains_key(b"mine")
                    .unwrap()
            );
            std::fs::remove_dir_all(&path).unwrap();
        }
        drop(stop);
    });
    assert_sound(&db);
    assert!(!db.tree("a").unwrap().contains_key(b"mine").unwrap());
}

#[test]
fn nothing_is_copied_among_the_databases_own_files() {
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(2 << 20));
    db.tree("t").unwrap().insert("a", "b").unwrap();
    for inside in ["trees/7", "trees/copy", "log/copy"] {
        let refused = db.checkpoint(dir.path().join(inside));
        let not_empty = matches!(refused, Err(Error::DestinationNotEmpty { .. }));
        assert!(not_empty, "{inside}: {refused:?}");
    }
    db.checkpoint(dir.path().join("copy")).unwrap();
    db.close().unwrap();
    let db = open(&dir.path().join("copy"), &Options::new(2 << 20));
    assert_eq!(db.tree("t").unwrap().len().unwrap(), 1);
}

#[test]
fn under_load_buffered() {
    run(0, &Options::new(3 * MIB), 8);
}

#[test]
fn under_load_with_a_short_log() {
    run(1, &Options::new(3 * MIB).log_limit_bytes(1 << 20), 8);
}

#[test]
fn under_load_sync() {
    run(2, &Options::new(3 * MIB).durability(Durability::Sync), 4);
}

#[test]
fn without_a_log_holds_what_was_there_before() {
    pairs::chosen(3, CASES).into_iter().for_each(without_a_log);
}

fn without_a_log(pair: Pair) {
    let dir = fast_dir();
    let copies = fast_dir();
    // With a log first, so that there has been one.
    for (n, durability) in [Durability::default(), Durability::None]
        .into_iter()
        .enumerate()
    {
        let options = pairs::options(pair, Options::new(2 * MIB).durability(durability));
        let db = open(dir.path(), &options);
        let tree = db.tree("t").unwrap();
        for i in 0..5000u32 {
            tree.insert(i.to_be_bytes(), [n as u8; 100]).unwrap();
        }
        let path = copies.path().join(n.to_string());
        db.checkpoint(&path).unwrap();
        for durability in [Durability::None, Durability::default()] {
            let copy = open(&path, &Options::new(2 * MIB).durability(durability));
            let tree = copy.tree("t").unwrap();
            assert_eq!(tree.len().unwrap(), 5000);
            assert_eq!(
                tree.get(7u32.to_be_bytes()).unwrap().unwrap(),
                [n as u8; 100]
            );
            assert_sound(&copy);
            copy.close().unwrap();
        }
        db.close().unwrap();
    }
}

#[test]
fn a_failed_one_leaves_nothing() {
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(2 * MIB));
    let tree = db.tree("t").unwrap();
    tree.insert(b"k", b"v").unwrap();
    db.flush().unwrap();
    // The maintenance that follows a flush rewrites the file: let it finish.
    std::thread::sleep(std::time::Duration::from_millis(700));
    // A table that cannot be copied.
    let mut tables = std::fs::read_dir(dir.path().join("trees/1/tables")).unwrap();
    let table = tables.next().unwrap().unwrap().path();
    let whole = std::fs::read(&table).unwrap();
    std::fs::write(&table, vec![0; whole.len()]).unwrap();
    let dest = dir.path().join("copy");
    assert!(db.checkpoint(&dest).is_err());
    assert!(!dest.exists());
    std::fs::create_dir(&dest).unwrap();
    assert!(db.checkpoint(&dest).is_err());
    assert_eq!(std::fs::read_dir(&dest).unwrap().count(), 0);
    std::fs::write(&table, whole).unwrap();
    db.checkpoint(&dest).unwrap();
    assert!(
        open(&dest, &Options::new(2 * MIB))
            .tree("t")
            .unwrap()
            .contains_key(b"k")
            .unwrap()
    );
}
