//! Images that go to disk: a snapshot outlives many times its memory in writes, commits find what
//! is on disk alone, and nothing of it outlives the handle.

use crate::{
    pairs,
    places::fast_dir,
    support::{MIB, Random, assert_sound, child, child_argument, open, wait},
};
use indexy::{Db, Durability, Error, Isolation, Options, Snapshot, Tree};
use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    time::{Duration, Instant},
};

const BUDGET: usize = 4 * MIB;

fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

fn fill(tree: &Tree, keys: u64, round: u8, len: usize) {
    for n in 0..keys {
        tree.insert(key(n), vec![round; len]).unwrap();
    }
}

/// `keys` entries of `round`, by key and from both ends.
fn check(snapshot: &Snapshot, tree: &Tree, keys: u64, round: u8, len: usize) {
    for n in (0..keys).step_by(13) {
        let found = snapshot.get(tree, key(n)).unwrap().unwrap();
        assert!(
            found.len() == len && found.iter().all(|b| *b == round),
            "{n}"
        );
    }
    let mut expected: Vec<_> = (0..keys).map(key).collect();
    expected.sort_unstable();
    let of = |entry: indexy::Result<(indexy::Key, indexy::Value)>| {
        let (key, value) = entry.unwrap();
        assert!(value.len() == len && value.iter().all(|b| *b == round));
        key
    };
    assert!(snapshot.iter(tree).map(of).eq(expected.iter().copied()));
    expected.reverse();
    assert!(
        snapshot
            .iter(tree)
            .rev()
            .map(of)
            .eq(expected.iter().copied())
    );
}

fn on_disk(db: &Db) -> u64 {
    db.stats().snapshot_disk_bytes
}

/// Writes elsewhere until the images of `tree` that are there now are on disk alone.
fn spill(db: &Db, tree: &Tree) {
    let before = on_disk(db);
    let start = Instant::now();
    let mut n = 1 << 40;
    while on_disk(db) == before {
        for _ in 0..1000 {
            tree.insert(key(n), "").unwrap();
            n += 1;
        }
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "nothing is spilled"
        );
    }
}

fn images(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir.join("images"));
    entries.map_or_else(
        |_| Vec::new(),
        |all| all.map(|e| e.unwrap().path()).collect(),
    )
}

/// Files end with whoever holds them: the thread that spills may be merging them.
fn until_no_file_is_left(dir: &Path) {
    let start = Instant::now();
    while !images(dir).is_empty() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "{:?} are left",
            images(dir)
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The budget is kept, and every entry stays as it was.
#[test]
fn a_snapshot_outlives_a_load_of_ten_times_the_budget() {
    const KEYS: u64 = 10_000;
    const LEN: usize = 400;
    for pair in pairs::chosen(0, 2) {
        println!("{}", pairs::name(pair));
        let dir = fast_dir();
        let db = open(dir.path(), &pairs::options(pair, Options::new(BUDGET)));
        let tree = db.tree("t").unwrap();
        fill(&tree, KEYS, 0, LEN);
        let before = db.snapshot().unwrap();
        let (written, largest, most) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let done = AtomicBool::new(false);
        std::thread::scope(|s| {
            let writers: Vec<_> = (0..2)
                .map(|writer| {
                    let (tree, written) = (&tree, &written);
                    s.spawn(move || {
                        let mut random = Random(writer);
                        while written.load(SeqCst) < 10 * BUDGET as u64 {
                            let n = random.below(2 * KEYS);
                            tree.insert(key(n), vec![1; LEN]).unwrap();
                            written.fetch_add(LEN as u64, SeqCst);
                        }
                    })
                })
                .collect();
            s.spawn(|| {
                while !done.load(SeqCst) {
                    largest.fetch_max(db.stats().memory_used_bytes, SeqCst);
                    most.fetch_max(on_disk(&db), SeqCst);
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            s.spawn(|| {
                while !done.load(SeqCst) {
                    check(&before, &tree, KEYS, 0, LEN);
                }
            });
            for writer in writers {
                writer.join().unwrap();
            }
            done.store(true, SeqCst);
        });
        let largest = largest.load(SeqCst);
        assert!(largest <= BUDGET as u64, "{largest} bytes");
        assert!(most.load(SeqCst) > 0, "nothing was spilled");
        check(&before, &tree, KEYS, 0, LEN);
        drop(before);
        assert_eq!(on_disk(&db), 0);
        until_no_file_is_left(dir.path());
        assert_sound(&db);
    }
}

/// What a transaction has read, or writes, was overwritten, and that is known on disk alone.
#[test]
fn a_commit_finds_a_conflict_that_is_on_disk_alone() {
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(BUDGET));
    let tree = db.tree("t").unwrap();
    for n in 0..100 {
        tree.insert([n], "old").unwrap();
    }
    let begin = |isolation| {
        let mut tx = db.begin().unwrap();
        tx.isolation(isolation);
        tx
    };
    let mut of_a_key = begin(Isolation::Serializable);
    assert!(of_a_key.get(&tree, [7]).unwrap().is_some());
    let mut of_a_range = begin(Isolation::Serializable);
    let seen = of_a_range
        .range(&tree, [5]..[9])
        .collect::<indexy::Result<Vec<_>>>();
    assert_eq!(seen.unwrap().len(), 4);
    let mut of_a_phantom = begin(Isolation::Serializable);
    assert!(of_a_phantom.range(&tree, [200]..[210]).next().is_none());
    let mut of_a_write = begin(Isolation::Snapshot);
    let mut of_another = begin(Isolation::Serializable);
    assert!(of_another.get(&tree, [8]).unwrap().is_some());
    tree.insert([7], "new").unwrap();
    tree.insert([205], "new").unwrap();
    spill(&db, &tree);
    for tx in [
        &mut of_a_key,
        &mut of_a_range,
        &mut of_a_phantom,
        &mut of_another,
    ] {
        tx.insert(&tree, [255], "written").unwrap();
    }
    of_a_write.insert(&tree, [7], "written").unwrap();
    for (what, tx) in [
        ("key", of_a_key),
        ("range", of_a_range),
        ("phantom", of_a_phantom),
        ("write", of_a_write),
    ] {
        let committed = tx.commit();
        assert!(
            matches!(committed, Err(Error::Conflict { .. })),
            "{what}: {committed:?}"
        );
    }
    of_another.commit().unwrap();
    assert_eq!(tree.get([7]).unwrap().unwrap(), b"new");
    assert_eq!(tree.get([255]).unwrap().unwrap(), b"written");
    assert_sound(&db);
}

#[test]
fn killed_while_it_spills_child() {
    let Some(argument) = child_argument() else {
        return;
    };
    let options = Options::new(BUDGET).durability(Durability::Sync);
    let db = open(Path::new(&argument), &options);
    let tree = db.tree("t").unwrap();
    let mut batch = db.batch();
    batch.insert(&tree, "kept", "before");
    batch.commit().unwrap();
    let snapshot = db.snapshot().unwrap();
    let unlogged = db.tree("u").unwrap();
    let mut n = 0;
    loop {
        let mut batch = db.batch();
        for _ in 0..500 {
            batch.insert(&unlogged, key(n), [1; 100]);
            n += 1;
        }
        batch.commit().unwrap();
        assert!(snapshot.get(&tree, "kept").unwrap().is_some());
    }
}

#[test]
fn files_of_a_killed_process_are_removed() {
    let dir = fast_dir();
    let path = dir.path().join("db");
    let argument = path.display().to_string();
    let mut child = child("spilled::killed_while_it_spills_child", &argument)
        .spawn()
        .unwrap();
    let start = Instant::now();
    while images(&path).len() < 2 {
        assert!(
            start.elapsed() < Duration::from_secs(120),
            "nothing is spilled"
        );
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!images(&path).is_empty());
    // Who may not write leaves them alone.
    drop(Db::open(&path, Options::new(32 * MIB).read_only(true)).unwrap());
    assert!(!images(&path).is_empty());
    let db = open(&path, &Options::new(BUDGET));
    assert!(!path.join("images").exists());
    assert_eq!(
        db.tree("t").unwrap().get("kept").unwrap().unwrap(),
        b"before"
    );
    assert_sound(&db);
}

/// Snapshots pay for a limit of the user's; writers go on.
#[test]
fn past_its_limit_on_disk_a_snapshot_is_given_up() {
    const LIMIT: u64 = 1 << 20;
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(BUDGET).snapshot_disk_bytes(LIMIT));
    let tree = db.tree("t").unwrap();
    fill(&tree, 10_000, 0, 400);
    let old = db.snapshot().unwrap();
    fill(&tree, 10_000, 1, 400);
    assert!(matches!(old.get(&tree, key(1)), Err(Error::SnapshotTooOld)));
    assert!(on_disk(&db) <= LIMIT);
    let young = db.snapshot().unwrap();
    tree.insert(key(1), "new").unwrap();
    check(&young, &tree, 10_000, 1, 400);
    assert_sound(&db);
}

/// Snapshots outlive `Db`, and whoever outlives `close` touches no file of the next owner.
#[test]
fn handles_go_in_any_order() {
    let dir = fast_dir();
    let options = Options::new(BUDGET);
    let db = open(dir.path(), &options);
    let tree = db.tree("t").unwrap();
    fill(&tree, 10_000, 0, 400);
    let snapshot = db.snapshot().unwrap();
    fill(&tree, 10_000, 1, 400);
    assert!(on_disk(&db) > 0);
    drop(db);
    check(&snapshot, &tree, 10_000, 0, 400);
    drop(tree);
    assert!(!images(dir.path()).is_empty());
    drop(snapshot);
    assert!(images(dir.path()).is_empty());

    let db = open(dir.path(), &options);
    let tree = db.tree("t").unwrap();
    let snapshot = db.snapshot().unwrap();
    fill(&tree, 10_000, 2, 400);
    assert!(on_disk(&db) > 0);
    let scan = snapshot.iter(&tree);
    db.close().unwrap();
    assert!(matches!(snapshot.get(&tree, key(0)), Err(Error::Closed)));
    assert!(images(dir.path()).is_empty());
    let next = open(dir.path(), &options);
    let again = next.tree("t").unwrap();
    let other = next.snapshot().unwrap();
    fill(&again, 10_000, 3, 400);
    assert!(on_disk(&next) > 0);
    drop((scan, snapshot, tree, db));
    check(&other, &again, 10_000, 2, 400);
    assert_sound(&next);
}

/// A tree that is cleared or dropped under a snapshot: the one keeps its images, the other's go.
#[test]
fn trees_that_are_cleared_and_dropped() {
    for pair in pairs::chosen(1, 2) {
        println!("{}", pairs::name(pair));
        let dir = fast_dir();
        let db = open(dir.path(), &pairs::options(pair, Options::new(BUDGET)));
        let (cleared, dropped) = (db.tree("c").unwrap(), db.tree("d").unwrap());
        fill(&cleared, 20_000, 0, 400);
        fill(&dropped, 10_000, 0, 400);
        let snapshot = db.snapshot().unwrap();
        cleared.clear().unwrap();
        fill(&dropped, 10_000, 1, 400);
        check(&snapshot, &cleared, 20_000, 0, 400);
        check(&snapshot, &dropped, 10_000, 0, 400);
        let before = on_disk(&db);
        db.drop_tree("d").unwrap();
        // A merge that is under way holds its files to its end.
        let start = Instant::now();
        while on_disk(&db) >= before {
            assert!(start.elapsed() < Duration::from_secs(30), "its files stay");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(matches!(
            snapshot.get(&dropped, key(0)),
            Err(Error::TreeDropped { .. })
        ));
        fill(&cleared, 1000, 1, 400);
        check(&snapshot, &cleared, 20_000, 0, 400);
        assert_sound(&db);
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn full_device_child() {
    use crate::support::tell;
    let Some(argument) = child_argument() else {
        return;
    };
    for (op, kind) in [("write", "enospc"), ("write", "eio"), ("create", "enospc")] {
        println!("{op} {kind}");
        let dir = tempfile::tempdir_in(&argument).unwrap();
        let db = open(dir.path(), &Options::new(BUDGET));
        let tree = db.tree("t").unwrap();
        fill(&tree, 10_000, 0, 400);
        let old = db.snapshot().unwrap();
        fill(&tree, 3000, 1, 400);
        tell(&format!("arm/{op}/{kind}/0/forever//images/"));
        // Writers go on, whatever becomes of the snapshot.
        fill(&tree, 10_000, 1, 400);
        assert!(tell("struck"), "{op} {kind}: nothing was spilled");
        assert!(matches!(old.get(&tree, key(1)), Err(Error::SnapshotTooOld)));
        let young = db.snapshot().unwrap();
        tell("disarm");
        fill(&tree, 10_000, 2, 400);
        check(&young, &tree, 10_000, 1, 400);
        assert!(on_disk(&db) > 0);
        assert_sound(&db);
    }
}

/// A full device, or one that fails, where images are spilled: snapshots pay.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn writers_go_on_where_images_cannot_be_written() {
    let dir = fast_dir();
    let shim = crate::support::shim(dir.path());
    let argument = dir.path().display().to_string();
    let child = child("spilled::full_device_child", &argument)
        .env("LD_PRELOAD", &shim)
        .spawn();
    assert!(wait(child.unwrap(), Duration::from_secs(300)), "see above");
}
