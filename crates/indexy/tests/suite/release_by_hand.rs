//! `Tree::release`: ranges leave memory when a user says so, and nobody else can tell.

use crate::{
    pairs,
    places::fast_dir,
    support::{MIB, Random, StopAtDrop, assert_sound, fingerprint, open},
};
use indexy::{Db, Error, IndexXKind, IndexYKind, Options, Tree, TreeOptions};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

fn key(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

fn number(value: &[u8]) -> u64 {
    u64::from_be_bytes(value[..8].try_into().unwrap())
}

#[test]
fn a_range_leaves_memory_and_is_read_from_disk() {
    for pair in pairs::chosen(0, 2) {
        let dir = fast_dir();
        let db = open(dir.path(), &pairs::options(pair, Options::new(16 * MIB)));
        let tree = db.tree("t").unwrap();
        for n in 0..10_000 {
            tree.insert(key(n), [n as u8; 100]).unwrap();
        }
        let before = db.stats();
        let freed = tree.release(key(2000)..key(8000)).unwrap();
        let after = db.stats();
        if pairs::keeps_nothing(pair) {
            assert_eq!(freed, 0);
            continue;
        }
        assert!(freed > 6000 * 100, "{freed}");
        assert_eq!((before.x_keys, after.x_keys), (10_000, 4000));
        assert_eq!((before.x_dirty_keys, after.x_dirty_keys), (10_000, 4000));
        assert_eq!(before.x_bytes - after.x_bytes, freed);
        assert_eq!(after.released_bytes, freed);
        assert_eq!(after.released_keys, 6000);
        // Nothing is left to release.
        assert_eq!(tree.release(key(2000)..key(8000)).unwrap(), 0);
        assert_eq!(tree.len().unwrap(), 10_000);
        for n in 0..10_000 {
            assert_eq!(tree.get(key(n)).unwrap().unwrap(), [n as u8; 100]);
        }
        assert_eq!(db.stats().misses, 6000);
        assert!(tree.release::<&[u8]>(..).unwrap() > 0);
        assert_eq!((db.stats().x_keys, db.stats().x_dirty_keys), (0, 0));
        assert_sound(&db);
    }
}

#[test]
fn empty_ranges_resident_trees_and_write_buffers_give_nothing() {
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(8 * MIB));
    let fill = |name: &str, options| {
        let tree = db.tree_with(name, options).unwrap();
        for n in 0..1000 {
            tree.insert(key(n), [1; 50]).unwrap();
        }
        tree
    };
    let tree = fill("t", TreeOptions::new());
    assert_eq!(tree.release(key(7)..key(7)).unwrap(), 0);
    #[allow(clippy::reversed_empty_ranges, reason = "a user's mistake")]
    let reversed = key(8)..key(7);
    assert_eq!(tree.release(reversed).unwrap(), 0);
    assert_eq!(tree.stats().x_dirty_keys, 1000);
    let resident = fill("resident", TreeOptions::new().resident(true));
    assert_eq!(resident.release::<&[u8]>(..).unwrap(), 0);
    let alone = fill("alone", TreeOptions::new().index_x(IndexXKind::None));
    assert_eq!(alone.release::<&[u8]>(..).unwrap(), 0);
    for tree in [resident, alone] {
        assert_eq!(tree.stats().x_dirty_keys, 1000, "nothing was written");
    }
}

#[test]
fn a_read_only_database_drops_what_it_read_and_writes_nothing() {
    let dir = fast_dir();
    let options = Options::new(8 * MIB);
    let db = open(dir.path(), &options);
    let tree = db.tree("t").unwrap();
    (0..5000).for_each(|n| tree.insert(key(n), [1; 50]).unwrap());
    db.flush().unwrap();
    tree.insert(key(7), "logged").unwrap();
    drop((tree, db));
    let before = fingerprint(dir.path());
    let db = open(dir.path(), &options.read_only(true));
    let tree = db.tree("t").unwrap();
    (0..5000).for_each(|n| assert!(tree.contains_key(key(n)).unwrap()));
    assert!(tree.release::<&[u8]>(..).unwrap() > 4000 * 50);
    assert_eq!(tree.stats().x_keys, 1, "what the log alone has stays");
    assert_eq!(tree.get(key(7)).unwrap().unwrap(), b"logged");
    drop((tree, db));
    assert!(fingerprint(dir.path()) == before, "something was written");
}

#[test]
fn errors_are_those_of_a_write() {
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(8 * MIB));
    let (tree, dropped) = (db.tree("t").unwrap(), db.tree("dropped").unwrap());
    tree.insert("k", "v").unwrap();
    tree.update("k", |_| {
        let refused = tree.release::<&[u8]>(..);
        assert!(matches!(refused, Err(Error::Reentrant)), "{refused:?}");
        None
    })
    .unwrap();
    db.drop_tree("dropped").unwrap();
    let refused = dropped.release::<&[u8]>(..);
    assert!(matches!(refused, Err(Error::TreeDropped { .. })));
    db.close().unwrap();
    let refused = tree.release::<&[u8]>(..);
    assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
}

const ACCOUNTS: u64 = 2000;
const OPENING: u64 = 100;
const TRANSFERS: u64 = 1200;
const WRITERS: u64 = 2;

/// Moves money between accounts, by a transaction or by a batch of notes beside it.
fn transfer(db: &Db, tree: &Tree, notes: &Tree, random: &mut Random) {
    let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
    let padded = |n: u64| [&n.to_be_bytes()[..], &[7; 200]].concat();
    db.transact(|tx| {
        let has = number(&tx.get(tree, key(from))?.expect("an account"));
        let amount = has.min(random.below(20));
        tx.insert(tree, key(from), padded(has - amount))?;
        let has = number(&tx.get(tree, key(to))?.expect("an account"));
        tx.insert(tree, key(to), padded(has + amount))
    })
    .unwrap();
    // Always in pairs.
    let mut batch = db.batch();
    let n = random.below(10_000);
    let note = [random.next() as u8; 60];
    batch.insert(notes, key(n), note);
    batch.insert(notes, key(n + 10_000), note);
    batch.commit().unwrap();
}

/// The sum of all accounts and all pairs of notes, as one moment has them.
fn audit(db: &Db, tree: &Tree, notes: &Tree) {
    let snapshot = db.snapshot().unwrap();
    let accounts = snapshot.iter(tree).map(|entry| number(&entry.unwrap().1));
    assert_eq!(accounts.sum::<u64>(), ACCOUNTS * OPENING);
    for entry in snapshot.range(notes, ..key(10_000)) {
        let (first, note) = entry.unwrap();
        let second = key(number(&first) + 10_000);
        assert_eq!(snapshot.get(notes, second).unwrap(), Some(note));
    }
}

/// Writers, snapshots and releases by hand side by side, within a small budget: nothing is lost,
/// torn or over the budget, now and after the next open.
#[test]
fn i7_releases_beside_transactions_batches_and_snapshots() {
    for (i, pair) in pairs::chosen(1, 2).into_iter().enumerate() {
        let dir = fast_dir();
        let options = pairs::options(pair, Options::new(4 * MIB));
        let db = open(dir.path(), &options);
        let tree = db.tree("accounts").unwrap();
        let notes = db.tree_with("notes", pairs::second(pair)).unwrap();
        for n in 0..ACCOUNTS {
            let account = [&OPENING.to_be_bytes()[..], &[7; 200]].concat();
            tree.insert(key(n), account).unwrap();
        }
        let done = AtomicBool::new(false);
        let until_done = |work: &dyn Fn(&mut Random)| {
            let mut random = Random(i as u64 + 9);
            while !done.load(SeqCst) {
                work(&mut random);
            }
        };
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    until_done(&|random| {
                        let (tree, most) = match random.one_in(2) {
                            true => (&tree, ACCOUNTS),
                            false => (&notes, 20_000),
                        };
                        let from = random.below(most);
                        let range = key(from)..key(from + random.below(most));
                        tree.release(range).unwrap();
                    });
                });
            }
            s.spawn(|| until_done(&|_| audit(&db, &tree, &notes)));
            s.spawn(|| until_done(&|_| assert_eq!(tree.len().unwrap(), ACCOUNTS)));
            s.spawn(|| {
                until_done(&|_| {
                    let stats = db.stats();
                    assert!(
                        stats.memory_used_bytes <= stats.memory_budget_bytes,
                        "{stats:?}"
                    );
                    std::thread::sleep(std::time::Duration::from_millis(1));
                });
            });
            let _stop = StopAtDrop(&done);
            std::thread::scope(|s| {
                for w in 0..WRITERS {
                    let (db, tree, notes) = (&db, &tree, &notes);
                    s.spawn(move || {
                        let mut random = Random(w);
                        (0..TRANSFERS).for_each(|_| transfer(db, tree, notes, &mut random));
                    });
                }
            });
        });
        audit(&db, &tree, &notes);
        assert!(pairs::keeps_nothing(pair) || db.stats().released_keys > 0);
        assert_sound(&db);
        drop((db, tree, notes));
        let db = open(dir.path(), &options);
        let notes = db.tree_with("notes", pairs::second(pair)).unwrap();
        audit(&db, &db.tree("accounts").unwrap(), &notes);
    }
}

/// Over the paged tree, whose runs take place in its file.
#[test]
fn a_release_of_all_and_of_nothing_in_turns() {
    let dir = fast_dir();
    let paged = IndexYKind::BPlus { page_bytes: 4096 };
    let db = open(dir.path(), &Options::new(4 * MIB).index_y(paged));
    let tree = db.tree("t").unwrap();
    for round in 0..20u8 {
        for n in 0..500 {
            match (n + u64::from(round)) % 5 {
                0 => tree.remove(key(n)).unwrap(),
                _ => tree.insert(key(n), [round; 30]).unwrap(),
            }
        }
        tree.release::<&[u8]>(..).unwrap();
        assert_eq!(tree.stats().x_keys, 0);
        let live = (0..500).filter(|n| (n + u64::from(round)) % 5 != 0);
        assert_eq!(tree.len().unwrap(), live.count() as u64);
    }
    assert_sound(&db);
}
