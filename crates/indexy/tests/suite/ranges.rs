//! Ranges that are removed at once, and ends that are taken.

use crate::{
    pairs,
    places::fast_dir,
    support::{MIB, Random, assert_sound, open},
};
use indexy::{Db, Error, IndexXKind, Options, Tree, TreeOptions};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    time::{Duration, Instant},
};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn content(tree: &Tree) -> Model {
    let entries = tree
        .iter()
        .map(|e| e.map(|(k, v)| (k.to_vec(), v.to_vec())));
    entries.collect::<Result<_, _>>().unwrap()
}

fn options(pair: pairs::Pair) -> Options {
    pairs::options(pair, Options::new(2 * MIB))
}

/// Random writes, batches and removals of ranges, with release and reopening between: the same as
/// in a map.
#[test]
fn ranges_are_removed_as_in_a_map() {
    for pair in pairs::chosen(0, 4) {
        let dir = fast_dir();
        let mut db = open(dir.path(), &options(pair));
        let mut tree = db.tree("t").unwrap();
        let (mut random, mut model) = (Random(7), Model::new());
        let key = |n: u64| (n % 30_000).to_be_bytes().to_vec();
        for step in 0..60u64 {
            for _ in 0..1500 {
                let (key, value) = (key(random.next()), vec![step as u8; 60]);
                tree.insert(&key, &value).unwrap();
                model.insert(key, value);
            }
            let from = key(random.next());
            let to = key(u64::from_be_bytes(from[..].try_into().unwrap()) + random.below(3000));
            let kept = from.clone().max(to.clone());
            match step % 4 {
                0 => tree.remove_range(from.as_slice()..to.as_slice()).unwrap(),
                1 => {
                    let mut batch = db.batch();
                    batch.insert(&tree, &from, "removed");
                    batch.remove_range(&tree, from.as_slice()..to.as_slice());
                    batch.insert(&tree, &kept, "kept");
                    match batch.commit() {
                        Err(Error::Unsupported { .. }) => {
                            tree.remove_range(from.as_slice()..to.as_slice()).unwrap();
                            tree.insert(&kept, "kept").unwrap();
                        }
                        committed => committed.unwrap(),
                    }
                }
                _ => continue,
            }
            if step % 4 == 1 && from >= to {
                model.insert(from.clone(), b"removed".to_vec());
            }
            model.retain(|key, _| *key < from || *key >= to);
            if step % 4 == 1 {
                model.insert(kept, b"kept".to_vec());
            }
            if step % 12 == 8 {
                drop((tree, db));
                db = open(dir.path(), &options(pair));
                tree = db.tree("t").unwrap();
            }
            assert!(content(&tree) == model, "{pair:?}: step {step}");
        }
        assert_sound(&db);
        tree.clear().unwrap();
        assert_eq!(tree.len().unwrap(), 0, "{pair:?}");
        assert_eq!(tree.first().unwrap(), None);
    }
}

/// A batch of many ranges, with writes between them, is in the log alone when the database is
/// opened again.
#[test]
fn many_ranges_of_a_batch_are_replayed() {
    const RANGES: u64 = 4000;
    for pair in pairs::chosen(0, 4) {
        let dir = fast_dir();
        let open = || Db::open(dir.path(), pairs::options(pair, Options::new(8 * MIB))).unwrap();
        let key = |n: u64| n.to_be_bytes();
        {
            let db = open();
            let tree = db.tree("t").unwrap();
            (0..RANGES * 10).for_each(|n| tree.insert(key(n), [1; 20]).unwrap());
            tree.release::<&[u8]>(..).unwrap();
            // From then on the log says what it replaced.
            match tree.load_sorted([(key(u64::MAX), "loaded")]) {
                Ok(_) | Err(Error::Unsupported { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            let mut batch = db.batch();
            for n in 0..RANGES {
                // What the range takes, what it does not take, and what comes to it afterwards.
                batch.insert(&tree, key(n * 10 + 2), "before");
                batch.remove_range(&tree, key(n * 10)..key(n * 10 + 5));
                batch.insert(&tree, key(n * 10 + 1), "after");
                batch.insert(&tree, key(n * 10 + 7), "beside");
            }
            match batch.commit() {
                Err(Error::Unsupported { .. }) => continue,
                committed => committed.unwrap(),
            }
            db.sync().unwrap();
        }
        let began = Instant::now();
        let db = open();
        println!("{}: {:?}", pairs::name(pair), began.elapsed());
        let tree = db.tree("t").unwrap();
        tree.remove(key(u64::MAX)).unwrap();
        assert_eq!(content(&tree).len() as u64, RANGES * 6);
        for n in 0..RANGES {
            let found = |n: u64| tree.get(key(n)).unwrap();
            assert_eq!(found(n * 10 + 1).as_deref(), Some(&b"after"[..]), "{n}");
            assert_eq!(found(n * 10 + 2), None, "{n}");
            assert_eq!(found(n * 10 + 7).as_deref(), Some(&b"beside"[..]), "{n}");
        }
        assert_sound(&db);
    }
}

/// Most of the budget is written and removed, again and again: writers need not wait for what was
/// removed, in a resident tree neither, and soon it takes no memory any more.
#[test]
fn what_a_clear_leaves_is_freed() {
    const BYTES: u64 = 12 << 20;
    for pair in pairs::chosen(2, 2) {
        let dir = fast_dir();
        let options = pairs::options(pair, Options::new(20 * MIB));
        let mut db = open(dir.path(), &options);
        let in_memory = matches!(pair.0, IndexXKind::Art | IndexXKind::BPlus);
        for resident in [in_memory, false] {
            let tree_options = TreeOptions::new().resident(resident);
            let mut tree = db.tree_with("t", tree_options.clone()).unwrap();
            for round in 0..8u64 {
                std::thread::scope(|s| {
                    for thread in 0..2u64 {
                        let tree = &tree;
                        s.spawn(move || {
                            for n in 0..BYTES / 2 / 300 {
                                let key = (Random(n).next() ^ thread).to_be_bytes();
                                tree.insert(key, [round as u8; 250]).unwrap();
                            }
                        });
                    }
                });
                assert!(!in_memory || db.stats().x_bytes > 5 << 20, "{pair:?}");
                tree.clear().unwrap();
                assert!(tree.is_empty().unwrap());
                if round == 3 {
                    // It goes with the handle.
                    drop((tree, db));
                    db = open(dir.path(), &options);
                    tree = db.tree_with("t", tree_options.clone()).unwrap();
                    assert!(tree.is_empty().unwrap());
                }
            }
            let freed = Instant::now() + Duration::from_secs(20);
            while db.stats().x_keys > 0 {
                assert!(Instant::now() < freed, "{pair:?}: {:?}", db.stats());
                std::thread::sleep(Duration::from_millis(1));
            }
            assert_sound(&db);
            drop(tree);
            db.drop_tree("t").unwrap();
        }
    }
}

/// Fills the budget with what `tree`, which is resident, holds of `thread`.
fn fill_resident(tree: &Tree) {
    let insert = |n| tree.insert(scattered(0, n), [1; 200]);
    let refused = (0..).find_map(|n| insert(n).err()).unwrap();
    assert!(
        matches!(refused, Error::ResidentTreesTooLarge { .. }),
        "{refused}"
    );
}

fn scattered(thread: u64, n: u64) -> [u8; 8] {
    (Random(n).next() ^ thread).to_be_bytes()
}

/// A resident tree has filled the budget, and is cleared: who sees it empty can write at once.
#[test]
fn a_cleared_resident_tree_takes_writes() {
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(64 * MIB));
    let resident = TreeOptions::new().resident(true);
    let tree = &db.tree_with("t", resident).unwrap();
    for round in 0..4u64 {
        fill_resident(tree);
        let cleared = &AtomicBool::new(false);
        let write = move |thread| {
            while !cleared.load(SeqCst) && tree.contains_key(scattered(0, 0)).unwrap() {}
            for n in 0..2000 {
                let written = tree.insert(scattered(thread, n), [2; 200]);
                assert!(written.is_ok(), "round {round}, {n}: {written:?}");
            }
        };
        std::thread::scope(|s| {
            for thread in 1..4 {
                s.spawn(move || write(thread));
            }
            let done = tree.clear();
            cleared.store(true, SeqCst);
            done.unwrap();
        });
        assert_eq!(tree.len().unwrap(), 6000);
        tree.clear().unwrap();
    }
}

/// What only removes makes room in a resident tree that has filled the budget: by batches, also
/// of keys that are gone already, and by transactions.
#[test]
fn a_full_resident_tree_takes_removals() {
    for snapshot in [false, true] {
        let dir = fast_dir();
        let db = open(dir.path(), &Options::new(16 * MIB));
        let resident = TreeOptions::new().resident(true);
        let tree = &db.tree_with("t", resident).unwrap();
        fill_resident(tree);
        let before = tree.len().unwrap();
        let snapshot = snapshot.then(|| db.snapshot().unwrap());
        let mut batch = db.batch();
        for n in 0..100 {
            batch.remove(tree, scattered(0, n));
        }
        batch.remove(tree, scattered(9, 0));
        batch.commit().unwrap();
        assert_eq!(tree.len().unwrap(), before - 100);
        if let Some(snapshot) = &snapshot {
            let old = snapshot.get(tree, scattered(0, 7)).unwrap();
            assert_eq!(old.unwrap(), [1; 200]);
        }
        fill_resident(tree);
        let before = tree.len().unwrap();
        let mut attempts = 0;
        db.transact(|tx| {
            attempts += 1;
            (200..300).try_for_each(|n| tx.remove(tree, scattered(0, n)))
        })
        .unwrap();
        assert_eq!((tree.len().unwrap(), attempts), (before - 100, 1));
        fill_resident(tree);
        for _ in 0..2 {
            tree.remove(scattered(0, 400)).unwrap();
        }
        tree.remove_range([0x80]..).unwrap();
        assert!(tree.range([0x80]..).next().is_none());
        fill_resident(tree);
        tree.clear().unwrap();
        assert!(tree.is_empty().unwrap());
    }
}

/// Readers and writers of other keys beside removals: what is outside of the range stays, what is
/// inside goes, and no value comes back.
#[test]
fn removals_beside_readers_and_writers() {
    const ROUNDS: u64 = 30;
    for pair in pairs::chosen(1, 4) {
        let dir = fast_dir();
        let db = open(dir.path(), &options(pair));
        let tree = db.tree("t").unwrap();
        let (round, done) = (AtomicU64::new(0), AtomicBool::new(false));
        let inside = |n: u64| [&b"in"[..], &n.to_be_bytes()].concat();
        std::thread::scope(|s| {
            for thread in 0..2u64 {
                let (tree, done) = (&tree, &done);
                s.spawn(move || {
                    let mut n = 0u64;
                    while !done.load(SeqCst) {
                        n += 1;
                        let key = [&b"out"[..], &(n * 2 + thread).to_be_bytes()].concat();
                        tree.insert(&key, [7; 100]).unwrap();
                        assert!(tree.get(&key).unwrap().is_some(), "{pair:?}");
                    }
                });
            }
            s.spawn(|| {
                while !done.load(SeqCst) {
                    let before = round.load(SeqCst);
                    for n in 0..200 {
                        let Some(value) = tree.get(inside(n)).unwrap() else {
                            continue;
                        };
                        let found = u64::from_be_bytes(value[..8].try_into().unwrap());
                        assert!(found >= before, "{pair:?}: round {found} after {before}");
                    }
                }
            });
            for now in 1..=ROUNDS {
                for n in 0..200 {
                    let value = [&now.to_be_bytes()[..], &[1; 100]].concat();
                    tree.insert(inside(n), value).unwrap();
                }
                tree.remove_prefix("in").unwrap();
                round.store(now + 1, SeqCst);
                assert_eq!(tree.prefix("in").count(), 0, "{pair:?}");
            }
            done.store(true, SeqCst);
        });
        assert_sound(&db);
    }
}

/// Several threads take from both ends: each entry goes to one of them.
#[test]
fn every_entry_is_popped_once() {
    const ENTRIES: u64 = 20_000;
    for pair in pairs::chosen(2, 4) {
        let dir = fast_dir();
        let db = open(dir.path(), &options(pair));
        let tree = db.tree("t").unwrap();
        (0..ENTRIES).for_each(|n| tree.insert(n.to_be_bytes(), [3; 80]).unwrap());
        let popped: Vec<Vec<Vec<u8>>> = std::thread::scope(|s| {
            let threads = (0..4).map(|thread| {
                let tree = &tree;
                s.spawn(move || {
                    let pop = || match thread % 2 {
                        0 => tree.pop_first().unwrap(),
                        _ => tree.pop_last().unwrap(),
                    };
                    let popped: Vec<_> = std::iter::from_fn(pop).map(|(k, _)| k.to_vec()).collect();
                    let order = if thread % 2 == 0 { 1 } else { -1i64 };
                    assert!(
                        popped
                            .windows(2)
                            .all(|two| order * (two[0] < two[1]) as i64 >= 0)
                    );
                    popped
                })
            });
            let threads: Vec<_> = threads.collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let mut all: Vec<Vec<u8>> = popped.concat();
        all.sort();
        all.dedup();
        assert_eq!(all.len() as u64, ENTRIES, "{pair:?}");
        assert!(tree.is_empty().unwrap());
    }
}

#[test]
fn retain_keeps_what_it_is_told_to() {
    let dir = fast_dir();
    let db = Db::open(dir.path(), Options::new(4 * MIB)).unwrap();
    let tree = db.tree("t").unwrap();
    (0..5000u64).for_each(|n| tree.insert(n.to_be_bytes(), n.to_be_bytes()).unwrap());
    tree.retain(|key, value| key == value && value[7] % 5 == 0)
        .unwrap();
    assert_eq!(
        tree.len().unwrap(),
        (0..5000u64).filter(|n| n % 256 % 5 == 0).count() as u64
    );
}
