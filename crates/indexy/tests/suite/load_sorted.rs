//! Sorted loads: whole or not there, over replays, crashes, refusals and whatever goes on beside.

use crate::{
    pairs::{self, Pair},
    places::fast_dir,
    support::{MIB, Random, StopAtDrop, assert_sound, child, child_argument, open, setting},
};
use indexy::{Db, Durability, Error, IndexYKind, Options, Tree};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    time::Duration,
};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn content(tree: &Tree) -> Model {
    let entries = tree
        .iter()
        .map(|e| e.map(|(k, v)| (k.to_vec(), v.to_vec())));
    entries.collect::<Result<_, _>>().unwrap()
}

fn options(pair: Pair) -> Options {
    pairs::options(pair, Options::new(2 * MIB))
}

/// Pairs whose disk index takes loads.
fn chosen(number: usize, of: usize) -> impl Iterator<Item = Pair> {
    let pairs = pairs::chosen(number, of).into_iter();
    pairs.filter(|(_, y)| *y != IndexYKind::RocksDb)
}

fn key(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

fn entries(from: u64, to: u64, round: u8) -> Model {
    let value = |n: u64| vec![round; (n % 90) as usize];
    (from..to).map(|n| (key(n).to_vec(), value(n))).collect()
}

/// Bytes of the files of all trees.
fn tree_bytes(path: &Path) -> u64 {
    let mut todo = vec![path.join("trees")];
    let mut bytes = 0;
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            match meta.is_dir() {
                true => todo.push(entry.path()),
                false => bytes += meta.len(),
            }
        }
    }
    bytes
}

/// Random writes, removals and loads into ranges that are empty by then, with release and reopening
/// between: the same as in a map.
#[test]
fn loads_are_as_in_a_map() {
    for pair in chosen(0, 4) {
        let dir = fast_dir();
        let mut db = open(dir.path(), &options(pair));
        let mut tree = db.tree("t").unwrap();
        let (mut random, mut model) = (Random(7), Model::new());
        let mut refused = 0;
        for step in 0..60u64 {
            for _ in 0..400 {
                let key = key(random.below(60_000)).to_vec();
                match random.one_in(3) {
                    true => {
                        tree.remove(&key).unwrap();
                        model.remove(&key);
                    }
                    false => {
                        tree.insert(&key, [step as u8; 60]).unwrap();
                        model.insert(key, vec![step as u8; 60]);
                    }
                }
            }
            let from = random.below(60_000);
            let wide = random.one_in(2);
            let load = entries(
                from,
                from + 1 + random.below(if wide { 6000 } else { 40 }),
                1,
            );
            let end = load.keys().next_back().unwrap().clone();
            let range = key(from).to_vec()..=end;
            if wide {
                // One by one, or at once.
                if step % 2 == 0 {
                    tree.remove_range(range.clone()).unwrap();
                } else {
                    tree.range(range.clone())
                        .for_each(|e| tree.remove(e.unwrap().0).unwrap());
                }
                model.retain(|key, _| !range.contains(key));
            }
            if step % 7 == 3 {
                db.flush().unwrap();
            }
            let empty = model.range(range).next().is_none();
            match tree.load_sorted(&load) {
                Ok(count) => {
                    assert!(empty && count == load.len() as u64, "{pair:?}: step {step}");
                    model.extend(load);
                }
                Err(Error::RangeNotEmpty { .. }) => {
                    assert!(!empty, "{pair:?}: step {step}");
                    refused += 1;
                }
                Err(e) => panic!("{e}"),
            }
            if step % 5 == 4 {
                // Without a close: the log is replayed.
                drop((tree, db));
                db = open(dir.path(), &options(pair));
                tree = db.tree("t").unwrap();
            }
            assert!(content(&tree) == model, "{pair:?}: step {step}");
        }
        assert!(refused > 0);
        assert_sound(&db);
    }
}

/// The log has older writes, removals, batches and removed ranges of the very keys. None of them
/// touches the load when the log is replayed, and newer ones do.
#[test]
fn i8_older_records_do_not_undo_a_load() {
    for pair in chosen(1, 4) {
        let dir = fast_dir();
        let options = options(pair).durability(Durability::Sync);
        let db = open(dir.path(), &options);
        let (tree, other) = (db.tree("t").unwrap(), db.tree("other").unwrap());
        let mut batch = db.batch();
        for n in (0..3000).step_by(7) {
            batch.insert(&tree, key(n), "old");
            batch.insert(&other, key(n), "stays");
        }
        batch.commit().unwrap();
        // What the disk index has is older still, and hidden by tombstones that are in the log.
        db.flush().unwrap();
        for n in (0..3000).step_by(7) {
            tree.remove(key(n)).unwrap();
            tree.insert(key(n + 1), "old").unwrap();
        }
        tree.remove_range(key(500)..key(2500)).unwrap();
        for n in (1..3000).step_by(7) {
            tree.remove(key(n)).unwrap();
        }
        tree.insert(key(5000), "beside").unwrap();
        // Not of every key: what was removed stays so, wherever it was.
        let mut load = entries(1, 2990, 9);
        load.retain(|key, _| key[7] % 3 != 0);
        tree.load_sorted(&load).unwrap();
        let mut model = load;
        model.insert(key(5000).to_vec(), b"beside".to_vec());
        for n in (3..2990).step_by(100) {
            tree.insert(key(n), "newer").unwrap();
            model.insert(key(n).to_vec(), b"newer".to_vec());
            tree.remove(key(n + 1)).unwrap();
            model.remove(&key(n + 1)[..]);
        }
        assert!(content(&tree) == model, "{pair:?}");
        drop((tree, other, db));
        let read_only = open(dir.path(), &options.clone().read_only(true));
        assert!(content(&read_only.tree("t").unwrap()) == model, "{pair:?}");
        drop(read_only);
        for _ in 0..2 {
            let db = open(dir.path(), &options);
            assert!(content(&db.tree("t").unwrap()) == model, "{pair:?}");
            let other = db.tree("other").unwrap();
            assert_eq!(other.len().unwrap(), 3000u64.div_ceil(7));
            assert_sound(&db);
        }
    }
}

/// What is refused, and what fails in the middle, leaves nothing, not even space.
#[test]
fn a_load_that_fails_leaves_nothing() {
    for pair in chosen(2, 4) {
        let dir = fast_dir();
        let db = open(dir.path(), &options(pair));
        let tree = db.tree("t").unwrap();
        tree.insert(key(1_000_000), "mine").unwrap();
        db.flush().unwrap();
        let bytes = tree_bytes(dir.path());
        let large = entries(0, 100_000, 3);
        let with = |at: u64, n: u64| {
            let mut list: Vec<(Vec<u8>, Vec<u8>)> = large.clone().into_iter().collect();
            list.insert(at as usize, (key(n).to_vec(), vec![]));
            list
        };
        let duplicate = tree.load_sorted(with(90_000, 89_999));
        assert!(matches!(duplicate, Err(Error::NotSorted { entry: 90_000 })));
        let unsorted = tree.load_sorted(with(5, 3));
        assert!(matches!(unsorted, Err(Error::NotSorted { entry: 5 })));
        let over = tree.load_sorted(with(100_000, 1_000_001));
        assert!(matches!(over, Err(Error::RangeNotEmpty { .. })));
        let long = tree.load_sorted([(vec![0; 70_000], "")]);
        assert!(matches!(long, Err(Error::KeyTooLong { .. })));
        let failing = (0..60_000).map(|n| {
            if n < 50_000 {
                Ok((key(n), ""))
            } else {
                Err(Error::Closed)
            }
        });
        assert!(matches!(tree.try_load_sorted(failing), Err(Error::Closed)));
        let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let entries =
                (0..60_000).map(|n| (key(n), if n < 50_000 { "" } else { panic!("mine") }));
            tree.load_sorted(entries)
        }));
        assert!(panics.is_err());
        assert_eq!(tree.len().unwrap(), 1, "{pair:?}");
        // The paged file keeps free pages until it is maintained.
        let kept = bytes
            + if matches!(pair.1, IndexYKind::Lsm) {
                64 << 10
            } else {
                16 << 20
            };
        assert!(tree_bytes(dir.path()) <= kept, "{pair:?}");
        assert_eq!(tree.load_sorted(&large).unwrap(), 100_000);
        let none: [(&str, &str); 0] = [];
        assert_eq!(tree.load_sorted(none).unwrap(), 0);
        assert_sound(&db);
    }
}

/// The files of the tree are gone when the load comes to its end.
#[test]
fn a_load_into_a_tree_that_is_dropped_says_so() {
    for pair in chosen(2, 4) {
        let dir = fast_dir();
        let db = open(dir.path(), &options(pair));
        let tree = db.tree("t").unwrap();
        for last in [5001, 200_000] {
            let entries = (0..last).map(|n| {
                if n == 5000 {
                    db.drop_tree("t").unwrap();
                }
                (key(n), [3; 90])
            });
            let tree = if last == 5001 {
                tree.clone()
            } else {
                db.tree("t").unwrap()
            };
            let loaded = tree.load_sorted(entries);
            assert!(
                matches!(loaded, Err(Error::TreeDropped { .. })),
                "{pair:?}: {loaded:?}"
            );
        }
        db.tree("t")
            .unwrap()
            .load_sorted(entries(0, 100, 1))
            .unwrap();
        assert_sound(&db);
    }
}

/// The caller's entries may come from this very database, and what he writes into the range
/// meanwhile stays.
#[test]
fn the_source_may_use_the_database() {
    for pair in chosen(3, 4) {
        let dir = fast_dir();
        let db = open(dir.path(), &options(pair));
        let (from, to) = (db.tree("from").unwrap(), db.tree("to").unwrap());
        for n in 0..20_000 {
            from.insert(key(n), key(n * 3)).unwrap();
        }
        let copied = from.iter().inspect(|entry| {
            let (key, value) = entry.as_ref().unwrap();
            from.insert(key, [&value[..], &[1]].concat()).unwrap();
            to.insert([&[0xff][..], key].concat(), "beside").unwrap();
            if key.ends_with(&[0]) {
                db.flush().unwrap();
            }
        });
        assert_eq!(to.try_load_sorted(copied).unwrap(), 20_000);
        assert_eq!(to.len().unwrap(), 40_000, "{pair:?}");
        let third = db.tree("third").unwrap();
        let written = from
            .iter()
            .inspect(|_| third.insert(key(7777), "mine").unwrap());
        let refused = third.try_load_sorted(written);
        assert!(matches!(refused, Err(Error::RangeNotEmpty { .. })));
        assert_eq!(
            content(&third),
            Model::from([(key(7777).to_vec(), b"mine".to_vec())])
        );
        assert_sound(&db);
    }
}

/// A writer into the very range: the load is refused, or the write comes after it. It is never
/// lost.
#[test]
fn i8_a_write_into_the_range_is_not_lost() {
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(4 * MIB));
    let tree = db.tree("t").unwrap();
    let mut loads = 0;
    for round in 0..150u64 {
        let (from, stop) = (round * 1000, AtomicBool::new(false));
        let written = AtomicU64::new(0);
        std::thread::scope(|s| {
            s.spawn(|| {
                let mut n = 0;
                while !stop.load(SeqCst) {
                    if n == 0 {
                        // At the end of the load, for the most part.
                        std::thread::sleep(Duration::from_micros(round * 40));
                    }
                    n += 1;
                    tree.insert(key(from + 500 + n % 10), key(n)).unwrap();
                    written.store(n, SeqCst);
                }
            });
            match tree.load_sorted((from..from + 1000).map(|n| (key(n), "loaded"))) {
                Ok(_) => loads += 1,
                Err(Error::RangeNotEmpty { .. }) => {}
                Err(e) => panic!("{e}"),
            }
            stop.store(true, SeqCst);
        });
        let last = written.load(SeqCst);
        for n in last.saturating_sub(9).max(1)..=last {
            let found = tree.get(key(from + 500 + n % 10)).unwrap();
            assert_eq!(
                found.as_deref(),
                Some(&key(n)[..]),
                "round {round}: write {n}"
            );
        }
    }
    assert!(loads > 0);
    assert_sound(&db);
}

/// Loads of neighbouring ranges beside writers, readers, removals of ranges, checkpoints and
/// flushes. Readers see all of a load or nothing once it is over; a checkpoint has all of it or
/// nothing, and nothing that was written after a load that it lacks.
#[test]
fn loads_beside_everything_else() {
    const STRETCH: u64 = 3000;
    for pair in chosen(4, 4) {
        let dir = fast_dir();
        let db = open(&dir.path().join("db"), &options(pair));
        let tree = db.tree("t").unwrap();
        let (stop, loaded) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|s| {
            let _stop = StopAtDrop(&stop);
            for writer in 0..2u64 {
                let (tree, stop, loaded) = (&tree, &stop, &loaded);
                s.spawn(move || {
                    let mut random = Random(writer);
                    while !stop.load(SeqCst) {
                        // Beyond what is loaded, and in what was.
                        let done = loaded.load(SeqCst) * STRETCH;
                        tree.insert([&[0xf0][..], &key(random.below(5000))].concat(), "w")
                            .unwrap();
                        if done > 0 {
                            let n = random.below(done);
                            let value = tree.get(key(n)).unwrap();
                            assert!(value.is_some(), "{n} of {done}");
                            tree.insert(key(n), "written").unwrap();
                        }
                    }
                });
            }
            s.spawn(|| {
                for n in 0..3 {
                    let before = loaded.load(SeqCst);
                    let copy = dir.path().join(format!("copy{n}"));
                    db.checkpoint(&copy).unwrap();
                    let copy = open(&copy, &options(pair));
                    let count = copy.tree("t").unwrap().range(..[0xf0]).count() as u64;
                    assert!(count.is_multiple_of(STRETCH) && count >= before * STRETCH);
                    assert_sound(&copy);
                }
            });
            for n in 0..25 {
                let load = entries(n * STRETCH, (n + 1) * STRETCH, 1);
                assert_eq!(tree.load_sorted(&load).unwrap(), STRETCH);
                loaded.fetch_add(1, SeqCst);
                match n % 5 {
                    1 => db.flush().unwrap(),
                    3 => tree.remove_range(&[0xf0][..]..).unwrap(),
                    _ => {}
                }
            }
        });
        assert_eq!(
            tree.range(..[0xf0]).count() as u64,
            25 * STRETCH,
            "{pair:?}"
        );
        assert_sound(&db);
    }
}

#[test]
fn an_index_that_takes_no_loads_says_so() {
    for pair in pairs::chosen(0, 1) {
        if pair.1 == IndexYKind::RocksDb {
            let dir = fast_dir();
            let tree = open(dir.path(), &options(pair)).tree("t").unwrap();
            let refused = tree.load_sorted([("a", "b")]);
            assert!(matches!(refused, Err(Error::Unsupported { .. })));
        }
    }
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(2 * MIB));
    let tree = db.tree("t").unwrap();
    let refused = tree.update("k", |_| {
        assert!(matches!(
            tree.load_sorted([("a", "b")]),
            Err(Error::Reentrant)
        ));
        None
    });
    refused.unwrap();
    db.close().unwrap();
    assert!(matches!(tree.load_sorted([("a", "b")]), Err(Error::Closed)));
}

// --- a process that is killed ------------------------------------------------------------------

/// Keys of a load of the child.
const LOAD: u64 = 2000;

/// Loads range after range; between two loads it removes keys of ranges and loads them anew, and
/// says in a tree of its own what it has done.
#[test]
fn loading_child() {
    let Some(argument) = child_argument() else {
        return;
    };
    let (pair, path) = argument.split_once(' ').unwrap();
    let db = open(Path::new(path), &options(pairs::named(pair)));
    let (tree, done) = (db.tree("t").unwrap(), db.tree("done").unwrap());
    let mut random = Random(std::process::id().into());
    for round in done.len().unwrap() + 1.. {
        let from = random.below(8) * LOAD;
        let range = key(from).to_vec()..key(from + LOAD).to_vec();
        match round % 3 {
            0 => tree.remove_range(range).unwrap(),
            _ => tree
                .range(range)
                .for_each(|e| tree.remove(e.unwrap().0).unwrap()),
        }
        let value = [round.to_be_bytes(), from.to_be_bytes()].concat();
        let load = (from..from + LOAD).map(|n| (key(n), &value));
        tree.load_sorted(load).unwrap();
        done.insert(key(round), key(from)).unwrap();
        db.sync().unwrap();
        println!("{round}");
        tree.insert(key(from + round % LOAD), &value).unwrap();
    }
}

/// Whatever moment it is killed at: every range has all of one load, or what a removal left of it.
#[test]
fn i8_a_killed_process_leaves_whole_loads() {
    use std::io::{BufRead, BufReader};
    for pair in chosen(0, 2) {
        let dir = fast_dir();
        let path = dir.path().join("db");
        let mut random = Random(1);
        for _ in 0..setting("INDEXY_KILL_ROUNDS", 3) {
            let argument = format!("{} {}", pairs::name(pair), path.display());
            let mut child = child("load_sorted::loading_child", &argument)
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(200 + random.below(600)));
            child.kill().unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            child.wait().unwrap();
            let said = lines
                .filter_map(|line| line.unwrap().parse::<u64>().ok())
                .last();
            let Ok(db) = Db::open(&path, options(pair).create_if_missing(false)) else {
                continue;
            };
            let (tree, done) = (db.tree("t").unwrap(), db.tree("done").unwrap());
            let noted = done.len().unwrap();
            assert!(noted >= said.unwrap_or(0), "{noted} {said:?}");
            let mut newest = BTreeMap::new();
            for entry in done.iter() {
                let (round, from) = entry.unwrap();
                newest.insert(from.to_vec(), round.to_vec());
            }
            for from in (0..8).map(|n| n * LOAD) {
                let found: Vec<_> = tree
                    .range(key(from).to_vec()..key(from + LOAD).to_vec())
                    .map(Result::unwrap)
                    .collect();
                let rounds: std::collections::BTreeSet<_> =
                    found.iter().map(|(_, value)| value[..8].to_vec()).collect();
                assert!(rounds.len() <= 1, "{pair:?} {from}: {rounds:?}");
                let known = newest.get(&key(from)[..]);
                let Some(round) = rounds.first() else {
                    continue;
                };
                // The load that came last, or one that was not noted yet.
                assert!(known.is_none_or(|known| round >= known), "{pair:?} {from}");
                // What is not whole is being removed, for the next load.
                let may_be_cut = u64::from_be_bytes(round[..].try_into().unwrap()) <= noted;
                assert!(found.len() as u64 == LOAD || may_be_cut, "{pair:?} {from}");
            }
            assert_sound(&db);
        }
    }
}
