//! A database that is opened again, overwritten, compacted and opened again keeps the newest
//! values.

use crate::{
    pairs::{self, Pair},
    places::fast_dir,
    support::{MIB, Random, assert_sound, open},
};
use indexy::{Db, Durability, Error, IndexYKind, Options};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

const KEYS: u64 = 6000;

fn key(i: u64) -> Vec<u8> {
    format!("key/{:05}", i.wrapping_mul(2_654_435_761) % KEYS).into_bytes()
}

fn check(db: &Db, expected: &BTreeMap<Vec<u8>, Vec<u8>>, when: &str) {
    let tree = db.tree("t").unwrap();
    let found: BTreeMap<Vec<u8>, Vec<u8>> = tree
        .iter()
        .map(|e| e.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap())
        .collect();
    assert!(found == *expected, "{when}: scans differ");
    for (key, value) in expected.iter().step_by(11) {
        assert_eq!(
            tree.get(key).unwrap().as_deref(),
            Some(&value[..]),
            "{when}"
        );
    }
    assert_sound(db);
}

/// Tests of this file that share the pairs.
const CASES: usize = 6;

/// [`run_with`] the pairs of this test.
fn run(number: usize, options: &Options, crash: bool) {
    for pair in pairs::chosen(number, CASES) {
        run_with(&pairs::options(pair, options.clone()), crash);
    }
}

/// Overwrites, removes, flushes, reopens: with `crash`, without closing.
fn run_with(options: &Options, crash: bool) {
    let dir = tempfile::tempdir().unwrap();
    let mut expected = BTreeMap::new();
    let mut random = Random(7);
    for round in 0..8u64 {
        let db = open(dir.path(), options);
        check(&db, &expected, "opened");
        let tree = db.tree("t").unwrap();
        for part in 0..3 {
            for n in 0..KEYS / 2 {
                let key = key(random.next());
                if random.one_in(5) {
                    tree.remove(&key).unwrap();
                    expected.remove(&key);
                } else {
                    let value = format!("{round}.{part}.{n}{}", "x".repeat((n % 150) as usize));
                    tree.insert(&key, &value).unwrap();
                    expected.insert(key, value.into_bytes());
                }
            }
            if part < 2 {
                db.flush().unwrap();
            }
        }
        check(&db, &expected, "before the end");
        if crash {
            db.sync().unwrap();
        } else {
            db.close().unwrap();
        }
    }
    check(&open(dir.path(), options), &expected, "at last");
}

#[test]
fn closed_with_a_log() {
    run(0, &Options::new(2 * MIB), false);
}

#[test]
fn not_closed_with_a_log() {
    run(1, &Options::new(2 * MIB), true);
}

#[test]
fn closed_without_a_log() {
    run(
        2,
        &Options::new(2 * MIB).durability(Durability::None),
        false,
    );
}

#[test]
fn a_short_log() {
    run(3, &Options::new(2 * MIB).log_limit_bytes(1), true);
}

#[test]
fn durability_may_change_from_open_to_open() {
    pairs::chosen(4, CASES)
        .into_iter()
        .for_each(durability_changes);
}

fn durability_changes(pair: Pair) {
    let dir = tempfile::tempdir().unwrap();
    let all = [
        Durability::Buffered { interval_ms: 50 },
        Durability::None,
        Durability::Sync,
        Durability::None,
        Durability::Buffered { interval_ms: 5 },
        Durability::Sync,
    ];
    for (round, durability) in all.into_iter().enumerate() {
        let db = open(
            dir.path(),
            &pairs::options(pair, Options::new(2 * MIB).durability(durability)),
        );
        let tree = db.tree("t").unwrap();
        for earlier in 0..round as u32 {
            for i in 0..500u32 {
                let found = tree
                    .get([earlier, i].map(u32::to_be_bytes).concat())
                    .unwrap();
                assert_eq!(found.unwrap(), earlier.to_be_bytes(), "{durability:?}");
            }
        }
        for i in 0..500u32 {
            let key = [round as u32, i].map(u32::to_be_bytes).concat();
            tree.insert(key, (round as u32).to_be_bytes()).unwrap();
        }
        if round % 2 == 0 {
            // What the next one finds is in the log.
            db.sync().unwrap();
            drop((db, tree));
        } else {
            db.close().unwrap();
        }
    }
}

#[test]
fn many_trees() {
    pairs::chosen(5, CASES).into_iter().for_each(many_trees_of);
}

fn many_trees_of(pair: Pair) {
    let dir = tempfile::tempdir().unwrap();
    let options = pairs::options(pair, Options::new(16 * MIB));
    let db = open(dir.path(), &options);
    for t in 0..60u32 {
        let tree = db.tree(&format!("tree {t}")).unwrap();
        for i in 0..200u32 {
            tree.insert(i.to_be_bytes(), t.to_be_bytes()).unwrap();
        }
    }
    db.sync().unwrap();
    for t in (0..60).step_by(3) {
        db.drop_tree(&format!("tree {t}")).unwrap();
    }
    drop(db);
    let db = open(dir.path(), &options);
    assert_eq!(db.tree_names().len(), 40);
    for t in (0..60u32).filter(|t| t % 3 != 0) {
        let tree = db.tree(&format!("tree {t}")).unwrap();
        assert_eq!(tree.len().unwrap(), 200);
        assert_eq!(
            tree.get(7u32.to_be_bytes()).unwrap().unwrap(),
            t.to_be_bytes()
        );
    }
    assert_sound(&db);
}

/// I2: overlapping runs are really merged, with newer ones from after a reopen above them.
#[test]
fn overwritten_after_a_reopen_and_compacted() {
    const ROUNDS: u32 = 3;
    const FLUSHES: u32 = 8;
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new(4 * MIB).durability(Durability::None);
    let mut newest = 0;
    for round in 0..ROUNDS {
        let db = open(dir.path(), &options);
        let tree = db.tree("t").unwrap();
        for flush in 0..FLUSHES {
            newest = round * FLUSHES + flush + 1;
            for i in 0..2000u32 {
                let key = i.wrapping_mul(2_654_435_761).to_be_bytes();
                if i % 7 == newest % 7 {
                    tree.remove(key).unwrap();
                } else {
                    tree.insert(key, newest.to_be_bytes()).unwrap();
                }
            }
            db.flush().unwrap();
        }
        let waiting = Instant::now();
        // Each flush wrote a run over all keys; some are one now.
        while db.stats().y_runs >= u64::from(FLUSHES) {
            assert!(waiting.elapsed() < Duration::from_secs(60), "never merged");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_newest(&db, newest);
        db.close().unwrap();
    }
    assert_newest(&open(dir.path(), &options), newest);
}

fn assert_newest(db: &Db, newest: u32) {
    let tree = db.tree("t").unwrap();
    for i in 0..2000u32 {
        let found = tree
            .get(i.wrapping_mul(2_654_435_761).to_be_bytes())
            .unwrap();
        let expected = (i % 7 != newest % 7).then(|| newest.to_be_bytes().to_vec());
        assert_eq!(found.as_deref(), expected.as_deref(), "{i} of run {newest}");
    }
    assert_sound(db);
}

/// A process that ends at once leaves merges to the next one, which does them though it does not
/// write.
#[test]
fn merges_left_by_a_close_are_done_without_a_write() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new(4 * MIB);
    let db = open(dir.path(), &options);
    let tree = db.tree("t").unwrap();
    let begun = Instant::now();
    for round in 0..4u32 {
        for i in 0..500u32 {
            tree.insert(i.to_be_bytes(), round.to_be_bytes()).unwrap();
        }
        db.flush().unwrap();
    }
    // Writers seem to rest after five seconds.
    let slow = begun.elapsed() > Duration::from_secs(4);
    assert!(slow || db.stats().y_runs == 4, "{:?}", db.stats());
    db.close().unwrap();
    let db = open(dir.path(), &options);
    let opened = Instant::now();
    while db.stats().y_runs > 1 || db.stats().y_unsettled > 0 {
        let stats = db.stats();
        assert!(opened.elapsed() < Duration::from_secs(20), "{stats:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    let tree = db.tree("t").unwrap();
    for i in 0..500u32 {
        let found = tree.get(i.to_be_bytes()).unwrap();
        assert_eq!(found.unwrap(), 3u32.to_be_bytes());
    }
}

/// The folder of the tree is there, and what it begins with is not.
#[test]
fn a_tree_that_lost_its_files_is_not_made_anew() {
    for pair in pairs::chosen(0, 1) {
        let lost: &[&str] = match pair.1 {
            IndexYKind::Lsm => &["versions", "tables"],
            IndexYKind::BPlus { .. } => &["pages"],
            _ => continue,
        };
        let dir = fast_dir();
        let options = pairs::options(pair, Options::new(2 * MIB));
        let db = open(dir.path(), &options);
        db.tree("t").unwrap().insert("key", "value").unwrap();
        db.close().unwrap();
        drop(db);
        let tree = dir.path().join("trees/1");
        for name in lost {
            let path = tree.join(name);
            match path.is_dir() {
                true => {
                    std::fs::remove_dir_all(&path).unwrap();
                    std::fs::create_dir(&path).unwrap();
                }
                false => std::fs::remove_file(path).unwrap(),
            }
        }
        std::fs::write(tree.join("left"), "").unwrap();
        for read_only in [false, true] {
            let refused = Db::open(dir.path(), options.clone().read_only(read_only));
            let refused = refused.map(|_| ());
            assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
        }
    }
}
