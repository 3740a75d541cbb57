//! Closing and dropping while others read, write, flush and take checkpoints.

use crate::support::{MIB, Random, StopAtDrop, assert_sound, open};
use indexy::{Db, Durability, Error, Options, Tree};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    time::{Duration, Instant},
};

fn options() -> Options {
    Options::new(4 * MIB).durability(Durability::Buffered { interval_ms: 10 })
}

fn key(i: u64) -> [u8; 8] {
    i.to_be_bytes()
}

/// Enough that most of it is in Y alone, in several tables.
fn fill(tree: &Tree, from: u64, to: u64) {
    for i in from..to {
        tree.insert(key(i), [i as u8; 200]).unwrap();
    }
}

/// The log has a record that is larger than the budget: it is replayed without asking for room that
/// it takes itself.
#[test]
fn a_value_larger_than_the_budget_comes_back_from_the_log() {
    for durability in [Durability::Sync, Durability::Buffered { interval_ms: 10 }] {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::new(2 * MIB).durability(durability);
        let value = |n: u8, len| vec![n; len];
        let db = open(dir.path(), &options);
        let tree = db.tree("t").unwrap();
        for n in 0..3u8 {
            tree.insert([n], value(n, 5 * MIB)).unwrap();
            tree.insert([n, 0], value(n, 100)).unwrap();
        }
        db.sync().unwrap();
        drop((tree, db));
        let started = Instant::now();
        let db = open(dir.path(), &options);
        assert!(started.elapsed() < Duration::from_secs(20));
        let tree = db.tree("t").unwrap();
        for n in 0..3u8 {
            assert!(tree.get([n]).unwrap().unwrap() == value(n, 5 * MIB));
            assert!(tree.get([n, 0]).unwrap().unwrap() == value(n, 100));
        }
        assert_sound(&db);
    }
}

#[test]
fn dropping_under_load_gives_typed_errors_and_no_stale_values() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &options());
    for round in 0..4u64 {
        let tree = db.tree("t").unwrap();
        // Version 1 in Y, version 2 in X only.
        for i in 0..3000 {
            tree.insert(key(i), [1; 300]).unwrap();
        }
        db.flush().unwrap();
        for i in 0..3000 {
            tree.insert(key(i), [2; 300]).unwrap();
        }
        let running = AtomicU64::new(0);
        std::thread::scope(|s| {
            for t in 0..4 {
                let (tree, db, running) = (&tree, &db, &running);
                s.spawn(move || {
                    let mut random = Random(round * 10 + t);
                    running.fetch_add(1, SeqCst);
                    loop {
                        let i = random.below(3000);
                        let result = match t {
                            0 => tree.insert(key(i), [2; 300]),
                            1 => tree.get(key(i)).map(|v| assert_eq!(v.unwrap()[0], 2)),
                            2 => tree
                                .range(key(i)..)
                                .take(50)
                                .try_for_each(|e| e.map(|(_, v)| assert_eq!(v[0], 2))),
                            _ => {
                                let mut batch = db.batch();
                                batch.insert(tree, key(i), [2; 300]);
                                batch.commit()
                            }
                        };
                        match result {
                            Ok(()) => {}
                            Err(Error::TreeDropped { .. }) => return,
                            Err(e) => panic!("thread {t}: {e:?}"),
                        }
                    }
                });
            }
            while running.load(SeqCst) < 4 {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(30));
            db.drop_tree("t").unwrap();
        });
        assert_eq!(db.tree_names(), [] as [String; 0]);
        db.flush().unwrap();
    }
    let trees = std::fs::read_dir(dir.path().join("trees")).unwrap();
    assert_eq!(trees.count(), 0, "folders are gone");
}

#[test]
fn making_and_dropping_trees_beside_flushes_and_checkpoints() {
    let dir = tempfile::tempdir().unwrap();
    let copies = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &options());
    let kept = db.tree("kept").unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            let _stop = StopAtDrop(&done);
            for i in 0..60 {
                let tree = db.tree("short-lived").unwrap();
                fill(&tree, 0, 200);
                kept.insert(key(i), b"1").unwrap();
                db.drop_tree("short-lived").unwrap();
            }
        });
        s.spawn(|| {
            while !done.load(SeqCst) {
                db.flush().unwrap();
                assert_sound(&db);
            }
        });
        s.spawn(|| {
            for n in 0.. {
                if done.load(SeqCst) {
                    break;
                }
                let path = copies.path().join(n.to_string());
                db.checkpoint(&path).unwrap();
                let copy = open(&path, &options());
                assert_sound(&copy);
                let names = copy.tree_names();
                assert!(names.iter().all(|n| n == "kept" || n == "short-lived"));
                copy.close().unwrap();
                std::fs::remove_dir_all(&path).unwrap();
            }
        });
    });
    assert_eq!(kept.len().unwrap(), 60);
}

#[test]
fn closing_under_load_keeps_everything_that_was_acknowledged() {
    for durability in [
        Durability::None,
        Durability::Buffered { interval_ms: 10 },
        Durability::Sync,
    ] {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::new(2 * MIB).durability(durability);
        let db = open(dir.path(), &options);
        let acknowledged: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        std::thread::scope(|s| {
            for (t, acknowledged) in acknowledged.iter().enumerate() {
                let db = db.clone();
                s.spawn(move || write_until_closed(&db, t as u64, acknowledged));
            }
            s.spawn(|| {
                let tree = db.tree("t").unwrap();
                while let Ok(n) = tree.len() {
                    std::hint::black_box(n);
                }
            });
            s.spawn(|| while db.flush().is_ok() {});
            std::thread::sleep(Duration::from_millis(300));
            let start = Instant::now();
            db.close().unwrap();
            assert!(start.elapsed() < Duration::from_secs(30));
            assert!(matches!(db.flush(), Err(Error::Closed)));
        });
        // The old handles live on; the directory is somebody else's now.
        let again = open(dir.path(), &options);
        drop(db);
        let tree = again.tree("t").unwrap();
        for (t, acknowledged) in acknowledged.iter().enumerate() {
            let n = acknowledged.load(SeqCst);
            assert!(n > 0, "{durability:?}");
            for i in 0..n {
                let found = tree.get(key(t as u64 * 1_000_000 + i)).unwrap();
                assert!(found.is_some(), "{durability:?}: {i} of {n} is missing");
            }
        }
        assert_sound(&again);
    }
}

fn write_until_closed(db: &Db, t: u64, acknowledged: &AtomicU64) {
    let tree = db.tree("t").unwrap();
    for i in 0.. {
        match tree.insert(key(t * 1_000_000 + i), [t as u8; 500]) {
            Ok(()) => acknowledged.store(i + 1, SeqCst),
            Err(Error::Closed) => return,
            Err(e) => panic!("{e:?}"),
        }
    }
}

/// What a closed handle still holds must not remove files of the next one.
#[test]
fn a_closed_handle_dropped_late_harms_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new(2 * MIB);
    let mut old: Vec<(Db, Tree)> = Vec::new();
    for round in 0..6u64 {
        let db = open(dir.path(), &options);
        let tree = db.tree("t").unwrap();
        // Overwritten, so that compaction replaces tables.
        for _ in 0..3 {
            fill(&tree, 0, 8000);
            db.flush().unwrap();
        }
        db.close().unwrap();
        // Dropped while the next one works.
        if round % 2 == 1 {
            let next = open(dir.path(), &options);
            let tree = next.tree("t").unwrap();
            fill(&tree, 0, 8000);
            next.flush().unwrap();
            old.clear();
            drop(db);
            assert_sound(&next);
            for i in (0..8000).step_by(7) {
                assert_eq!(tree.get(key(i)).unwrap().unwrap(), [i as u8; 200]);
            }
        } else {
            old.push((db, tree));
        }
    }
    drop(old);
    let db = open(dir.path(), &options);
    assert_sound(&db);
    assert_eq!(db.tree("t").unwrap().len().unwrap(), 8000);
}

#[test]
fn handles_of_all_kinds_keep_the_database_open() {
    let dir = tempfile::tempdir().unwrap();
    let tree = open(dir.path(), &options()).tree("t").unwrap();
    tree.insert(b"k", b"v").unwrap();
    let scan = tree.iter();
    drop(tree);
    assert!(matches!(
        Db::open(dir.path(), options()),
        Err(Error::Locked { .. })
    ));
    assert_eq!(
        scan.map(|e| e.unwrap().0.to_vec()).collect::<Vec<_>>(),
        [b"k"]
    );
    open(dir.path(), &options());
}

#[test]
fn a_panic_in_a_callback_leaves_the_tree_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let tree = open(dir.path(), &options()).tree("t").unwrap();
    tree.insert(b"k", b"v").unwrap();
    let caught = |f: &dyn Fn()| {
        let f = std::panic::AssertUnwindSafe(f);
        assert!(std::panic::catch_unwind(f).is_err());
    };
    caught(&|| {
        let _ = tree.update(b"k", |_| panic!("on purpose"));
    });
    caught(&|| {
        let _ = tree.get_with(b"k", |_| panic!("on purpose"));
    });
    assert_eq!(tree.get(b"k").unwrap().unwrap(), b"v");
    tree.insert(b"k", b"w").unwrap();
    assert_eq!(tree.get(b"k").unwrap().unwrap(), b"w");
}

/// The power failed while a database was being made: any of its names may be there without the
/// others.
#[test]
fn i8_what_is_left_of_an_unfinished_creation_is_no_obstacle() {
    for names in 0..16 {
        let dir = tempfile::tempdir().unwrap();
        let there = |bit: u32| names >> bit & 1 == 1;
        for (bit, name) in ["log", "trees"].into_iter().enumerate() {
            if there(bit as u32) {
                std::fs::create_dir(dir.path().join(name)).unwrap();
            }
        }
        for (bit, name) in [(2, "LOCK"), (3, "MANIFEST.next")] {
            if there(bit) {
                std::fs::write(dir.path().join(name), b"").unwrap();
            }
        }
        let db = Db::open(dir.path(), Options::new(2 << 20)).unwrap();
        db.tree("t").unwrap().insert(b"k", b"v").unwrap();
    }
    // Somebody else's, with names of ours.
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("MANIFEST"), b"Manifest-Version: 1.0\n").unwrap();
    let refused = Db::open(dir.path(), Options::new(2 << 20));
    assert!(matches!(refused, Err(Error::Corrupt { .. })));
    assert_eq!(dir.path().read_dir().unwrap().count(), 1);
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("log")).unwrap();
    std::fs::write(dir.path().join("log/access.txt"), b"").unwrap();
    let refused = Db::open(dir.path(), Options::new(2 << 20));
    assert!(matches!(refused, Err(Error::DestinationNotEmpty { .. })));
    // Beside the lock of another program.
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("LOCK"), b"").unwrap();
    std::fs::create_dir(dir.path().join("images")).unwrap();
    std::fs::write(dir.path().join("images/photo.jpg"), b"mine").unwrap();
    let refused = Db::open(dir.path(), Options::new(2 << 20));
    assert!(matches!(refused, Err(Error::DestinationNotEmpty { .. })));
    assert!(dir.path().join("images/photo.jpg").exists());
    assert_eq!(dir.path().read_dir().unwrap().count(), 2);
}

/// A guard that writes while its thread unwinds: the log is no worse for it.
#[test]
fn a_write_in_a_destructor_during_a_panic_is_a_write() {
    struct Lease(Tree);
    impl Drop for Lease {
        fn drop(&mut self) {
            self.0.remove("lease").unwrap();
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(
        dir.path(),
        Options::new(2 << 20).durability(Durability::Sync),
    )
    .unwrap();
    let tree = db.tree("t").unwrap();
    tree.insert("lease", "mine").unwrap();
    let lease = Lease(tree.clone());
    let panicked = std::thread::spawn(move || {
        let _lease = lease;
        panic!("the program's own");
    });
    assert!(panicked.join().is_err());
    assert_eq!(tree.get("lease").unwrap(), None);
    tree.insert("again", "1").unwrap();
}
