//! Atomic operations on one key from many threads, and writes that need a lot of memory at once.

use crate::{
    places::fast_dir,
    support::{MIB, assert_sound, open},
};
use indexy::{Db, Durability, Error, Options};
use std::time::{Duration, Instant};

const THREADS: u64 = 8;

fn with_threads(work: impl Fn(u64) + Sync) {
    std::thread::scope(|s| {
        for t in 0..THREADS {
            let work = &work;
            s.spawn(move || work(t));
        }
    });
}

#[test]
fn counters_are_exact() {
    const ADDS: u64 = 1500;
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(2 * MIB));
    let tree = db.tree("t").unwrap();
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().unwrap());
    with_threads(|t| {
        for n in 0..ADDS {
            let key = [b"update", b"swap__"][(n % 2) as usize];
            if n % 2 == 0 {
                let add =
                    |old: Option<&[u8]>| Some((old.map_or(0, number) + 1).to_be_bytes().to_vec());
                tree.update(key, add).unwrap();
            } else {
                loop {
                    let old = tree.get(key).unwrap();
                    let new = (old.as_deref().map_or(0, number) + 1).to_be_bytes();
                    if tree.compare_and_swap(key, old, Some(new)).unwrap() {
                        break;
                    }
                }
            }
            // What else goes on: it is written away and cut.
            tree.insert([t.to_be_bytes(), n.to_be_bytes()].concat(), [7; 300])
                .unwrap();
            if n % 500 == 0 {
                db.flush().unwrap();
            }
        }
    });
    for key in [b"update", b"swap__"] {
        let sum = number(&tree.get(key).unwrap().unwrap());
        assert_eq!(sum, THREADS * ADDS / 2, "{key:?}");
    }
    assert_sound(&db);
}

#[test]
fn a_key_is_taken_once() {
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(2 * MIB));
    let tree = db.tree("t").unwrap();
    let taken: Vec<std::sync::atomic::AtomicU32> = (0..3000).map(|_| Default::default()).collect();
    for i in 0..3000u32 {
        tree.insert(i.to_be_bytes(), [1; 300]).unwrap();
    }
    db.flush().unwrap();
    with_threads(|_| {
        for i in 0..3000u32 {
            if tree.take(i.to_be_bytes()).unwrap().is_some() {
                taken[i as usize].fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
        }
    });
    assert!(
        taken
            .iter()
            .all(|t| t.load(std::sync::atomic::Ordering::SeqCst) == 1)
    );
    assert!(tree.is_empty().unwrap());
}

/// Large values, from below to above what X takes, and large batches, from all threads: none waits
/// for long, none fails, and the budget holds.
#[test]
fn i7_large_writes_fit_without_long_waits() {
    let dir = fast_dir();
    let budget = 8 * MIB;
    let db = open(dir.path(), &Options::new(budget));
    let tree = db.tree("t").unwrap();
    for i in 0..60_000u32 {
        tree.insert(i.to_be_bytes(), [1; 200]).unwrap();
    }
    let most = std::sync::atomic::AtomicU64::new(0);
    with_threads(|t| {
        for n in 0..6u64 {
            let start = Instant::now();
            let len = match (t + n) % 4 {
                0 => budget / 8 - 100,
                1 => budget / 9,
                2 => budget / 7,
                _ => budget / 30,
            };
            let key = [t.to_be_bytes(), n.to_be_bytes()].concat();
            let value = vec![t as u8; len];
            match n % 3 {
                0 => tree.insert(&key, &value).unwrap(),
                1 => {
                    let new = tree.update(&key, |_| Some(value.clone())).unwrap();
                    assert_eq!(new.unwrap().len(), len);
                }
                _ => batch(&db, t, len),
            }
            most.fetch_max(
                db.stats().memory_used_bytes,
                std::sync::atomic::Ordering::SeqCst,
            );
            let waited = start.elapsed();
            assert!(waited < Duration::from_secs(20), "{waited:?}");
        }
    });
    let most = most.into_inner();
    assert!(most <= budget as u64, "{most} of {budget} bytes were used");
    for t in 0..THREADS {
        let value = tree
            .get([t.to_be_bytes(), 0u64.to_be_bytes()].concat())
            .unwrap()
            .unwrap();
        assert!(value.iter().all(|&b| b == t as u8));
    }
    assert_sound(&db);
}

/// A batch as large as one may be.
fn batch(db: &Db, t: u64, value: usize) {
    let tree = db.tree("t").unwrap();
    let mut count = 8;
    loop {
        let mut batch = db.batch();
        for i in 0..count {
            batch.insert(
                &tree,
                [b"batch".to_vec(), vec![t as u8, i]].concat(),
                vec![t as u8; value],
            );
        }
        match batch.commit() {
            Ok(()) => return,
            Err(Error::BatchTooLarge { .. }) if count > 1 => count -= 1,
            Err(e) => panic!("{e:?}"),
        }
    }
}

/// A removal that changes nothing is acknowledged only when what made the key absent is durable.
#[test]
fn i8_removals_under_sync() {
    let dir = fast_dir();
    let options = Options::new(2 * MIB).durability(Durability::Sync);
    let db = open(dir.path(), &options);
    let tree = db.tree("t").unwrap();
    tree.insert(b"k", b"v").unwrap();
    with_threads(|_| tree.remove(b"k").unwrap());
    with_threads(|_| assert_eq!(tree.get(b"k").unwrap(), None));
    drop((db, tree));
    assert!(
        open(dir.path(), &options)
            .tree("t")
            .unwrap()
            .is_empty()
            .unwrap()
    );
}

/// The largest batch, with its copy for the log, fits the smallest budget beside everything that is
/// always there.
#[test]
fn i7_the_largest_batch_in_the_smallest_budget() {
    let dir = fast_dir();
    let budget = indexy::limits::MIN_MEMORY_BUDGET_BYTES;
    let db = open(dir.path(), &Options::new(budget));
    let tree = db.tree("t").unwrap();
    for i in 0..20_000u32 {
        tree.insert(i.to_be_bytes(), [1; 200]).unwrap();
    }
    with_threads(|t| {
        for round in 0..5u8 {
            let mut batch = db.batch();
            let each = budget / 4 / 10;
            for n in 0..10 {
                // Overhead of an operation is less than this.
                batch.insert(&tree, [t as u8, n], vec![round; each - 200]);
            }
            let start = Instant::now();
            batch.commit().unwrap();
            let used = db.stats().memory_used_bytes;
            assert!(used <= budget as u64, "{used} of {budget} bytes were used");
            assert!(start.elapsed() < Duration::from_secs(20));
        }
    });
    assert_eq!(tree.get([0, 9]).unwrap().unwrap()[0], 4);
}
