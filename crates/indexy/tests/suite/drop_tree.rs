//! `drop_tree` beside everything that may be going on: it ends soon, and nothing else is held up by
//! it.

use crate::{
    gated_y::{Call, Gate, Gated, OpenAtDrop},
    places::fast_dir,
    support::{MIB, StopAtDrop, assert_sound, child, child_argument, open, shim, tell, wait},
};
use indexy::{Db, Error, IndexYKind, Options, Result, Tree, TreeOptions};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

/// `drop_tree` takes no longer, whatever else goes on. (A writer waits a minute for memory.)
const SOON: Duration = Duration::from_secs(20);
/// What is to wait for something has come so far by then.
const A_MOMENT: Duration = Duration::from_millis(100);

struct World {
    dir: tempfile::TempDir,
    options: Options,
    gate: Arc<Gate>,
    db: Db,
    /// On the Index Y with the gate.
    gated: Tree,
    plain: Tree,
}

fn world() -> World {
    let dir = fast_dir();
    let gate: Arc<Gate> = Arc::default();
    let options = Options::new(4 * MIB)
        .register_index_y("gated", Arc::new(Gated(gate.clone())))
        .unwrap();
    let db = open(dir.path(), &options);
    let of_gated = TreeOptions::new().index_y(IndexYKind::custom("gated").unwrap());
    let gated = db.tree_with("gated", of_gated).unwrap();
    let plain = db.tree("plain").unwrap();
    for tree in [&gated, &plain] {
        for i in 0u32..2000 {
            tree.insert(i.to_be_bytes(), [1; 100]).unwrap();
        }
    }
    World {
        dir,
        options,
        gate,
        db,
        gated,
        plain,
    }
}

fn drop_soon(db: &Db, name: &str) {
    let start = Instant::now();
    db.drop_tree(name).unwrap();
    assert!(start.elapsed() < SOON, "{name}: {:?}", start.elapsed());
}

/// What is left works, also after a reopen.
fn assert_goes_on(world: World, left: &[&str]) {
    let World {
        dir,
        options,
        db,
        gated,
        plain,
        ..
    } = world;
    for name in left {
        let tree = db.tree(name).unwrap();
        for i in 0u32..3000 {
            tree.insert(i.to_be_bytes(), [2; 100]).unwrap();
        }
    }
    db.flush().unwrap();
    assert_sound(&db);
    assert_eq!(db.tree_names(), left);
    drop((gated, plain, db));
    let db = open(dir.path(), &options);
    assert_eq!(db.tree_names(), left);
    assert_sound(&db);
}

/// A writer of the one tree waits for memory, because its Index Y takes nothing.
#[test]
fn beside_a_writer_that_waits_for_memory() {
    let world = world();
    let World {
        gate,
        db,
        gated,
        plain,
        ..
    } = &world;
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        gate.close(Call::WriteRun);
        let writer = s.spawn(|| {
            for i in 0u32.. {
                match gated.insert(i.to_be_bytes(), [3; 4000]) {
                    Ok(()) if !stop.load(SeqCst) => {}
                    Ok(()) | Err(Error::TreeDropped { .. }) => return,
                    Err(error) => panic!("{error:?}"),
                }
            }
        });
        let _opened = OpenAtDrop(gate);
        let _stop = StopAtDrop(&stop);
        // It stands still.
        let start = Instant::now();
        let mut last = (db.stats().writes, Instant::now());
        while last.1.elapsed() < Duration::from_millis(500) {
            assert!(start.elapsed() < SOON, "it never waits");
            std::thread::sleep(Duration::from_millis(5));
            let writes = db.stats().writes;
            if writes != last.0 {
                last = (writes, Instant::now());
            }
        }
        assert!(db.stats().stalls > 0);
        drop_soon(db, "plain");
        assert!(matches!(
            plain.insert(b"k", b"v"),
            Err(Error::TreeDropped { .. })
        ));
        gate.open();
        drop_soon(db, "gated");
        writer.join().unwrap();
    });
    assert_goes_on(world, &[]);
}

/// The tree that is dropped has a run in flight, whose Index Y takes its time.
#[test]
fn beside_a_run_in_flight() {
    let world = world();
    let (gate, db) = (&world.gate, &world.db);
    std::thread::scope(|s| {
        let _opened = OpenAtDrop(gate);
        gate.close(Call::WriteRun);
        let flush = s.spawn(|| db.flush());
        gate.wait_until_reached();
        drop_soon(db, "plain");
        let opener = s.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            gate.open();
        });
        drop_soon(db, "gated");
        opener.join().unwrap();
        flush.join().unwrap().unwrap();
    });
    assert_goes_on(world, &[]);
}

/// A compaction that did not come to its end does not say that it has.
#[test]
fn beside_its_compaction() {
    for close in [false, true] {
        let world = world();
        let (gate, db, gated) = (&world.gate, &world.db, &world.gated);
        std::thread::scope(|s| {
            let _opened = OpenAtDrop(gate);
            gate.close(Call::Compact);
            let compaction = s.spawn(|| gated.compact::<&[u8]>(..));
            gate.wait_until_reached();
            match close {
                true => db.close().unwrap(),
                false => drop_soon(db, "gated"),
            }
            gate.open();
            let ended = compaction.join().unwrap();
            let told = matches!(
                (close, &ended),
                (true, Err(Error::Closed)) | (false, Err(Error::TreeDropped { .. }))
            );
            assert!(told, "{ended:?}");
        });
    }
}

#[test]
fn beside_a_verification_and_a_checkpoint() {
    for call in [Call::Verify, Call::Copy] {
        let world = world();
        let (gate, db) = (&world.gate, &world.db);
        let copies = fast_dir();
        let copy = copies.path().join("copy");
        std::thread::scope(|s| {
            let _opened = OpenAtDrop(gate);
            gate.close(call);
            let going_on = s.spawn(|| match call {
                Call::Copy => db.checkpoint(&copy),
                _ => db
                    .verify()
                    .map(|report| assert!(report.is_ok(), "{report:?}")),
            });
            gate.wait_until_reached();
            drop_soon(db, "gated");
            drop_soon(db, "plain");
            let again = db.tree("plain").unwrap();
            again.insert(b"k", b"v").unwrap();
            gate.open();
            going_on.join().unwrap().unwrap();
        });
        if call == Call::Copy {
            let copy = open(&copy, &world.options);
            assert_eq!(copy.tree_names(), ["plain"]);
            assert_sound(&copy);
        }
        assert_goes_on(world, &["plain"]);
    }
}

/// A read is inside the Index Y of the tree, and scans are open.
#[test]
fn beside_reads_and_scans() {
    let World {
        dir,
        options,
        gate,
        db,
        ..
    } = world();
    db.close().unwrap();
    // Memory has nothing: the Index Y is asked.
    let db = open(dir.path(), &options);
    let world = World {
        gated: db.tree("gated").unwrap(),
        plain: db.tree("plain").unwrap(),
        dir,
        options,
        gate,
        db,
    };
    let World {
        gate,
        db,
        gated,
        plain,
        ..
    } = &world;
    let mut scans = [gated.iter(), plain.iter()];
    for scan in &mut scans {
        scan.next().unwrap().unwrap();
    }
    std::thread::scope(|s| {
        let _opened = OpenAtDrop(gate);
        gate.close(Call::Get);
        let reader = s.spawn(|| gated.get(7u32.to_be_bytes()));
        gate.wait_until_reached();
        drop_soon(db, "gated");
        drop_soon(db, "plain");
        gate.open();
        // What it read was there when it asked.
        match reader.join().unwrap() {
            Ok(Some(value)) => assert_eq!(value, [1; 100]),
            Err(Error::TreeDropped { .. }) => {}
            other => panic!("{other:?}"),
        }
    });
    for scan in scans {
        let ended = scan
            .map(|entry| entry.map(drop))
            .collect::<Result<Vec<_>>>();
        assert!(matches!(ended, Err(Error::TreeDropped { .. })), "{ended:?}");
    }
    assert_goes_on(world, &[]);
}

/// A batch waits for a snapshot that begins, and that for a value on its way into another tree.
/// Meanwhile the tree of the batch goes: nothing of the batch is applied or stays.
#[test]
fn beside_a_batch_that_waits_for_the_gate() {
    let world = world();
    let World {
        gate,
        db,
        gated,
        plain,
        ..
    } = &world;
    let before = db.snapshot().unwrap();
    let mut batch = db.batch();
    // Few and small: it waits for no memory, nor for the stripe of the value.
    for i in 0u32..20 {
        batch.insert(plain, i.to_be_bytes(), [4; 100]);
    }
    std::thread::scope(|s| {
        let _opened = OpenAtDrop(gate);
        gate.close(Call::Publish);
        let large = s.spawn(|| gated.insert(b"large", vec![5; 3 * MIB / 4]));
        gate.wait_until_reached();
        let images = db.stats().snapshot_memory_bytes;
        let snapshot = s.spawn(|| db.snapshot());
        std::thread::sleep(A_MOMENT);
        let commit = s.spawn(|| batch.commit());
        std::thread::sleep(A_MOMENT);
        drop_soon(db, "plain");
        let used = db.stats().memory_used_bytes;
        assert!(!snapshot.is_finished() && !commit.is_finished());
        gate.open();
        let told = commit.join().unwrap();
        assert!(matches!(told, Err(Error::TreeDropped { .. })), "{told:?}");
        large.join().unwrap().unwrap();
        assert_eq!(db.stats().snapshot_memory_bytes, images);
        assert!(db.stats().memory_used_bytes <= used);
        drop(snapshot.join().unwrap().unwrap());
    });
    drop(before);
    assert_goes_on(world, &["gated"]);
}

/// A batch is logged, and takes its time with the one tree. When it comes to the other one, that is
/// gone.
#[test]
fn i7_beside_a_batch_that_is_being_applied() {
    let world = world();
    let World {
        gate,
        db,
        gated,
        plain,
        ..
    } = &world;
    let mut batch = db.batch();
    batch.remove_range::<&[u8]>(gated, ..);
    for i in 0u32..200 {
        batch.insert(plain, i.to_be_bytes(), [4; 4000]);
    }
    std::thread::scope(|s| {
        let _opened = OpenAtDrop(gate);
        gate.close(Call::RemoveRange);
        let commit = s.spawn(|| batch.commit());
        gate.wait_until_reached();
        drop_soon(db, "plain");
        let used = db.stats().memory_used_bytes;
        gate.open();
        commit.join().unwrap().unwrap();
        // The handle of the tree is still there.
        assert!(matches!(plain.len(), Err(Error::TreeDropped { .. })));
        let start = Instant::now();
        while db.stats().memory_used_bytes > used {
            assert!(start.elapsed() < SOON, "it stays: {:?}", db.stats());
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    assert_goes_on(world, &["gated"]);
}

/// The device is full, or there is no descriptor left, while the manifest is replaced: the folder
/// of the tree that was being made is not taken for the next one.
#[test]
fn a_tree_that_could_not_be_named_leaves_nothing_for_the_next() {
    let scratch = fast_dir();
    let shim = shim(scratch.path());
    let child = child("drop_tree::unnamed_tree_child", "")
        .env("LD_PRELOAD", &shim)
        .spawn()
        .unwrap();
    assert!(wait(child, Duration::from_secs(120)));
}

#[test]
fn unnamed_tree_child() {
    if child_argument().is_none() {
        return;
    }
    let faults = [
        "rename/enospc/0/once/$MANIFEST",
        "create/enospc/0/once/$MANIFEST.next",
        "write/short/0/once/$MANIFEST.next",
        "open/emfile/0/once/$MANIFEST.next",
    ];
    for fault in faults {
        let dir = fast_dir();
        let db = open(dir.path(), &Options::new(4 * MIB));
        let with = |y| db.tree_with("t", TreeOptions::new().index_y(y));
        tell(&format!("arm/{fault}"));
        let refused = with(IndexYKind::BPlus { page_bytes: 4096 }).unwrap_err();
        assert!(tell("struck"), "{fault}");
        tell("disarm");
        let full = matches!(refused, Error::OutOfSpace { .. });
        assert!(full || refused.is_transient(), "{fault}: {refused:?}");
        // Again and again: the database is not poisoned by it.
        for _ in 0..3 {
            tell(&format!("arm/{fault}"));
            let refused = with(IndexYKind::Lsm).unwrap_err();
            assert!(!matches!(refused, Error::Poisoned { .. }), "{fault}");
        }
        tell("disarm");
        let folders = std::fs::read_dir(dir.path().join("trees")).unwrap();
        assert_eq!(folders.count(), 0, "{fault}");
        // Another kind, and another size of pages, in its place.
        let tree = with(IndexYKind::BPlus { page_bytes: 8192 }).unwrap();
        tree.insert(b"k", b"v").unwrap();
        db.flush().unwrap();
        db.drop_tree("t").unwrap();
        let next = with(IndexYKind::Lsm).unwrap();
        next.insert(b"k", b"w").unwrap();
        drop((tree, next, db));
        let db = open(dir.path(), &Options::new(4 * MIB));
        assert_eq!(db.tree("t").unwrap().get(b"k").unwrap().unwrap(), b"w");
        assert_sound(&db);
    }
}

/// Too few file descriptors for a while: typed errors that say so, and then everything goes on.
#[test]
fn descriptors_that_come_back_end_nothing() {
    let scratch = fast_dir();
    let shim = shim(scratch.path());
    let child = child("drop_tree::descriptors_child", "")
        .env("LD_PRELOAD", &shim)
        .spawn()
        .unwrap();
    assert!(wait(child, Duration::from_secs(120)));
}

#[test]
fn descriptors_child() {
    if child_argument().is_none() {
        return;
    }
    let dir = tempfile::Builder::new()
        .prefix("few-files")
        .tempdir()
        .unwrap();
    let options = Options::new(4 * MIB)
        .index_y(IndexYKind::BPlus { page_bytes: 4096 })
        .durability(indexy::Durability::Sync)
        .log_limit_bytes(1 << 20);
    let db = open(dir.path(), &options);
    let tree = db.tree("t").unwrap();
    let key = |i: u32| i.to_be_bytes();
    for i in 0..200 {
        tree.insert(key(i), [1; 1000]).unwrap();
    }
    tell("arm/open/emfile/0/forever/few-files");
    let mut refused = 0;
    let mut acknowledged = Vec::new();
    let until = Instant::now() + Duration::from_secs(2);
    for i in 200u32.. {
        match tree.insert(key(i), [2; 10_000]) {
            Ok(()) => acknowledged.push(i),
            Err(error) => {
                assert!(error.is_transient(), "{error:?}");
                refused += 1;
            }
        }
        if Instant::now() > until {
            break;
        }
    }
    assert!(tell("struck") && refused > 0);
    for result in [db.flush(), db.tree("another").map(drop)] {
        if let Err(error) = result {
            assert!(error.is_transient(), "{error:?}");
        }
    }
    tell("disarm");
    let start = Instant::now();
    while let Err(error) = tree.insert(b"again", b"1").and_then(|()| db.flush()) {
        assert!(error.is_transient(), "{error:?}");
        assert!(start.elapsed() < SOON, "{error:?}");
    }
    db.tree("another").unwrap();
    assert_sound(&db);
    drop((tree, db));
    let db = open(dir.path(), &options);
    assert_sound(&db);
    let tree = db.tree("t").unwrap();
    for i in 0..200 {
        assert_eq!(tree.get(key(i)).unwrap().unwrap(), [1; 1000]);
    }
    for i in acknowledged {
        assert_eq!(tree.get(key(i)).unwrap().unwrap(), [2; 10_000], "{i}");
    }
}
