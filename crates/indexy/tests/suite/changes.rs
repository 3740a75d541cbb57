//! The change feed: a replica that follows it is equal to the database, over restarts, whatever is
//! written and however the log is cut.

use crate::{
    pairs,
    places::fast_dir,
    support::{MIB, Random, StopAtDrop, open},
};
use indexy::{Change, ChangePosition, ChangeSet, Changes, Db, Durability, Error, Options, Tree};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};

const TREES: [&str; 2] = ["a", "b"];
const LONG: Duration = Duration::from_secs(60);

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    Options::new(2 * MIB)
        .durability(Durability::Buffered { interval_ms: 5 })
        .log_limit_bytes(2 << 20)
        .change_history_bytes(1 << 30)
}

/// What is made of the changes alone.
#[derive(Default)]
struct Replica {
    trees: BTreeMap<String, Entries>,
    at: ChangePosition,
}

impl Replica {
    fn apply(&mut self, set: &ChangeSet, source: &Db) {
        assert!(set.position() > self.at);
        for change in set.iter() {
            match change {
                Change::Insert { tree, key, value } => {
                    self.tree(tree).insert(key.to_vec(), value.to_vec());
                }
                Change::Remove { tree, key } => {
                    self.tree(tree).remove(key);
                }
                Change::RemoveRange { tree, from, to } => {
                    self.tree(tree).retain(|k, _| !is_in(k, from, to));
                }
                Change::Load { tree, from, to } => {
                    for entry in source.tree(tree).unwrap().range(from..) {
                        let (key, value) = entry.unwrap();
                        if is_in(&key, from, to) {
                            self.tree(tree).insert(key.to_vec(), value.to_vec());
                        }
                    }
                }
                change => panic!("{change:?}"),
            }
        }
        self.at = set.position();
    }

    fn tree(&mut self, name: &str) -> &mut Entries {
        self.trees.entry(name.into()).or_default()
    }

    /// Takes what there is.
    fn catch_up(&mut self, db: &Db) {
        for set in db.changes(self.at).unwrap() {
            self.apply(&set.unwrap(), db);
        }
    }
}

fn is_in(key: &[u8], from: &[u8], to: Option<&[u8]>) -> bool {
    key >= from && to.is_none_or(|to| key < to)
}

fn contents(tree: &Tree) -> Entries {
    let entries = tree.iter().map(|entry| entry.unwrap());
    entries.map(|(k, v)| (k.to_vec(), v.to_vec())).collect()
}

fn key(n: u64) -> Vec<u8> {
    format!("{n:06}").into_bytes()
}

/// One write of any kind.
fn write(db: &Db, trees: &[Tree], random: &mut Random) {
    let tree = &trees[random.below(2) as usize];
    let (n, len) = (random.below(5000), random.below(600) as usize);
    let value = vec![n as u8; len];
    match random.below(100) {
        0 => {
            let from = random.below(5000);
            tree.remove_range(key(from)..key(from + 50)).unwrap();
        }
        1 => tree.insert(key(n), vec![1; 100_000]).unwrap(),
        2..10 => tree.remove(key(n)).unwrap(),
        10..15 => {
            tree.update(key(n), |old| old.map(|old| old[old.len() / 2..].to_vec()))
                .unwrap();
        }
        15..25 => db
            .transact(|tx| {
                let old = tx.get(&trees[0], key(n))?;
                tx.remove(&trees[0], key(n))?;
                match old {
                    Some(old) => tx.insert(&trees[1], key(n), old),
                    None => tx.insert(&trees[0], key(n), &value),
                }
            })
            .unwrap(),
        25..30 => {
            let mut batch = db.batch();
            for i in 0..20 {
                batch.insert(&trees[i % 2], key(n + i as u64), &value);
            }
            if n % 8 == 0 {
                batch.remove_range(&trees[0], key(n + 5)..key(n + 9));
            }
            batch.commit().unwrap();
        }
        _ => tree.insert(key(n), value).unwrap(),
    }
}

fn same(db: &Db, replica: &mut Replica) {
    db.sync().unwrap();
    replica.catch_up(db);
    for name in TREES {
        let tree = contents(&db.tree(name).unwrap());
        assert!(tree == *replica.tree(name), "tree {name}");
    }
}

#[test]
fn a_replica_is_equal_over_restarts() {
    for pair in pairs::chosen(0, 1) {
        let dir = fast_dir();
        let mut replica = Replica::default();
        let mut random = Random(7);
        for life in 0..4 {
            let db = open(dir.path(), &pairs::options(pair, options()));
            let trees = TREES.map(|name| db.tree(name).unwrap());
            for i in 0..2000 {
                write(&db, &trees, &mut random);
                if i % 500 == 0 {
                    replica.catch_up(&db);
                }
            }
            if life == 1 {
                let sorted = (0..1000).map(|n| (format!("x{n:05}"), "loaded"));
                trees[0].load_sorted(sorted).unwrap();
                trees[0].insert("x00500", "later").unwrap();
            }
            same(&db, &mut replica);
            // One life ends without a flush, one with; both leave the place where it was.
            match life % 2 {
                0 => drop((trees, db)),
                _ => db.close().unwrap(),
            }
        }
    }
}

#[test]
fn a_follower_beside_writers_gets_whole_batches() {
    const EACH: u64 = 3000;
    const WRITERS: u64 = 3;
    let dir = fast_dir();
    let db = open(dir.path(), &options());
    let tree = db.tree("a").unwrap();
    let from = db.newest_change().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        let _stop = StopAtDrop(&stop);
        let follow = s.spawn(|| {
            let mut replica = Entries::new();
            let mut changes = db.changes(from).unwrap();
            let mut sets = 0;
            while sets < WRITERS * EACH {
                assert!(!stop.load(SeqCst), "a writer failed");
                changes.wait(Duration::from_millis(200)).unwrap();
                for set in changes.by_ref() {
                    let set = set.unwrap();
                    assert_eq!(set.iter().count(), 2, "both writes of a batch");
                    for change in set.iter() {
                        if let Change::Insert { key, value, .. } = change {
                            replica.insert(key.to_vec(), value.to_vec());
                        }
                    }
                    sets += 1;
                }
            }
            replica
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|t| {
                let (db, tree) = (&db, &tree);
                s.spawn(move || {
                    for i in 0..EACH {
                        let mut batch = db.batch();
                        batch.insert(tree, key(i), format!("{t} {i}"));
                        batch.insert(tree, key(i + 1), format!("{t} {i}"));
                        batch.commit().unwrap();
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|w| w.join().unwrap());
        assert!(follow.join().unwrap() == contents(&tree));
    });
}

#[test]
fn history_is_bounded_and_who_is_late_is_told() {
    let dir = fast_dir();
    let bounded = options().change_history_bytes(3 << 20);
    let db = open(dir.path(), &bounded);
    let tree = db.tree("a").unwrap();
    let start = db.newest_change().unwrap();
    for i in 0..20_000u64 {
        tree.insert(key(i % 3000), vec![i as u8; 1000]).unwrap();
        if i % 4000 == 0 {
            db.flush().unwrap();
        }
    }
    db.flush().unwrap();
    let history = db.stats().change_history_bytes;
    assert!((3 << 20..6 << 20).contains(&history), "{history}");
    let gone = db.changes(start).unwrap_err();
    assert!(matches!(gone, Error::ChangesGone { .. }), "{gone}");
    let oldest = db.oldest_change().unwrap();
    let kept = db.changes(oldest).unwrap().count();
    assert!(kept > 2000, "{kept}");
    drop((tree, db));
    // The same history after a restart, less with a smaller limit.
    let db = open(dir.path(), &bounded);
    assert_eq!(db.oldest_change().unwrap(), oldest);
    drop(db);
    let db = open(dir.path(), &options().change_history_bytes(0));
    assert!(db.oldest_change().unwrap() > oldest);
    assert_eq!(db.stats().change_history_bytes, 0);
}

#[test]
fn trees_that_went_are_left_out_and_renamed_ones_have_their_name() {
    let dir = fast_dir();
    let db = open(dir.path(), &options());
    let start = db.oldest_change().unwrap();
    let (old, scratch) = (db.tree("old").unwrap(), db.tree("scratch").unwrap());
    old.insert("k", "1").unwrap();
    scratch.insert("k", "2").unwrap();
    let mut both = db.batch();
    both.insert(&old, "k", "3");
    both.insert(&scratch, "k", "4");
    both.commit().unwrap();
    db.rename_tree("old", "new").unwrap();
    db.drop_tree("scratch").unwrap();
    db.sync().unwrap();
    let sets: Vec<_> = db.changes(start).unwrap().map(|s| s.unwrap()).collect();
    let changes: Vec<_> = sets.iter().flat_map(ChangeSet::iter).collect();
    let insert = |value| Change::Insert {
        tree: "new",
        key: b"k",
        value,
    };
    assert_eq!(changes, [insert(b"1"), insert(b"3")]);
}

#[test]
fn a_wait_ends_with_the_close_and_a_handle_keeps_the_directory() {
    let dir = fast_dir();
    let db = open(dir.path(), &options());
    let mut changes = db.changes(db.newest_change().unwrap()).unwrap();
    drop(db);
    assert!(matches!(
        Db::open(dir.path(), options()),
        Err(Error::Locked { .. })
    ));
    assert!(changes.next().is_none());
    drop(changes);
    let db = open(dir.path(), &options());
    let changes = db.changes(db.newest_change().unwrap()).unwrap();
    std::thread::scope(|s| {
        let waiter = s.spawn(|| changes.wait(LONG));
        std::thread::sleep(Duration::from_millis(50));
        db.close().unwrap();
        assert!(matches!(waiter.join().unwrap(), Err(Error::Closed)));
    });
    let mut after: Changes = changes;
    assert!(matches!(after.next(), Some(Err(Error::Closed))));
}

#[test]
fn without_a_log_there_are_no_changes() {
    let dir = fast_dir();
    let unlogged = options().durability(Durability::None);
    let db = open(dir.path(), &unlogged);
    let refused = db.changes(ChangePosition::default()).unwrap_err();
    assert!(matches!(refused, Error::Unsupported { .. }));
    db.close().unwrap();
    let db = open(dir.path(), &options().read_only(true));
    assert!(db.newest_change().is_err());
}

/// A load is told when it can be read: its entries are not in the feed.
#[test]
fn a_load_is_told_when_it_can_be_read() {
    const LOADS: u32 = 60;
    const EACH: u32 = 50;
    let dir = fast_dir();
    let db = open(dir.path(), &options());
    let tree = db.tree("a").unwrap();
    let mut changes = db.changes(db.newest_change().unwrap()).unwrap();
    let loading = tree.clone();
    let loader = std::thread::spawn(move || {
        for i in 0..LOADS {
            let key = |n: u32| (i * 1000 + n).to_be_bytes();
            loading
                .load_sorted((0..EACH).map(|n| (key(n), "v")))
                .unwrap();
        }
    });
    let mut seen = 0;
    while seen < LOADS {
        assert!(changes.wait(LONG).unwrap());
        for set in changes.by_ref() {
            let set = set.unwrap();
            for change in set.iter() {
                if let Change::Load { from, to, .. } = change {
                    let entries = tree.range(from.to_vec()..to.unwrap().to_vec());
                    assert_eq!(entries.count() as u32, EACH);
                    seen += 1;
                }
            }
        }
    }
    loader.join().unwrap();
}

/// What a follower read does not stay with it.
#[test]
fn followers_hold_no_memory_for_long() {
    let dir = fast_dir();
    let options = Options::new(16 * MIB).durability(Durability::Buffered { interval_ms: 20 });
    let db = open(dir.path(), &options);
    let tree = db.tree("a").unwrap();
    let start = db.newest_change().unwrap();
    let mut batch = db.batch();
    (0..3).for_each(|n| batch.insert(&tree, key(n), vec![7; MIB]));
    batch.commit().unwrap();
    db.flush().unwrap();
    let before = db.stats().memory_used_bytes;
    let followers: Vec<_> = (0..5)
        .map(|_| {
            let mut changes = db.changes(start).unwrap();
            assert_eq!(changes.by_ref().count(), 1);
            changes
        })
        .collect();
    let used = db.stats().memory_used_bytes - before;
    assert!(used < 2 * MIB as u64, "{used} bytes");
    for n in 0..5000 {
        tree.insert(key(n + 10), vec![1; 1000]).unwrap();
    }
    drop(followers);
}
