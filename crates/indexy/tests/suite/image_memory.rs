//! What is kept for snapshots takes no more memory than it may, however it comes about.

use crate::{
    places::fast_dir,
    support::{MIB, assert_sound, open},
};
use indexy::{Error, Options};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    time::{Duration, Instant},
};

/// Blind writes over large values that are in Y alone: cleaning reads what they were.
#[test]
fn large_cold_values_are_not_all_read_at_once() {
    const BUDGET: usize = 4 * MIB;
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(BUDGET));
    let tree = db.tree("t").unwrap();
    for n in 0..400u32 {
        tree.insert(n.to_be_bytes(), vec![1; 200_000]).unwrap();
    }
    db.flush().unwrap();
    // A new handle begins with nothing in X.
    drop((tree, db));
    let db = open(dir.path(), &Options::new(BUDGET));
    let tree = db.tree("t").unwrap();
    let snapshot = db.snapshot().unwrap();
    for n in 0..400u32 {
        tree.insert(n.to_be_bytes(), "small").unwrap();
    }
    assert_eq!(snapshot.get(&tree, [0; 4]).unwrap().unwrap().len(), 200_000);
    let (used, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|s| {
        s.spawn(|| {
            while !done.load(SeqCst) {
                used.fetch_max(db.stats().memory_used_bytes, SeqCst);
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        db.flush().unwrap();
        done.store(true, SeqCst);
    });
    let used = used.load(SeqCst);
    assert!(used <= BUDGET as u64, "{used} bytes");
    for n in 0..400u32 {
        let found = snapshot.get(&tree, n.to_be_bytes()).unwrap().unwrap();
        assert!(
            found.len() == 200_000 && found.iter().all(|b| *b == 1),
            "{n}"
        );
    }
    assert_sound(&db);
}

/// Large values that are in Y alone, and removed: a scan of a snapshot reads few of them for what
/// it gives back, and each of them once.
#[test]
fn a_scan_of_large_cold_values_reads_each_once() {
    const KEYS: u32 = 200;
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(4 * MIB));
    let tree = db.tree("t").unwrap();
    for n in 0..KEYS {
        tree.insert(n.to_be_bytes(), vec![1; 200_000]).unwrap();
    }
    db.flush().unwrap();
    drop((tree, db));
    let db = open(dir.path(), &Options::new(4 * MIB));
    let tree = db.tree("t").unwrap();
    let snapshot = db.snapshot().unwrap();
    for n in 0..KEYS {
        tree.remove(n.to_be_bytes()).unwrap();
    }
    for back in [false, true] {
        let before = db.stats().y_reads;
        let mut entries = snapshot.iter(&tree);
        let mut next = || match back {
            true => entries.next_back(),
            false => entries.next(),
        };
        let numbers = (0..KEYS).map(|n| if back { KEYS - 1 - n } else { n });
        for n in numbers {
            let (key, value) = next().unwrap().unwrap();
            assert_eq!((&key[..], value.len()), (&n.to_be_bytes()[..], 200_000));
        }
        assert!(next().is_none());
        let reads = db.stats().y_reads - before;
        assert!(reads <= 2 * u64::from(KEYS), "{reads} reads");
    }
}

/// The limit of the images is that of a larger budget.
#[test]
fn a_smaller_budget_takes_the_images_along() {
    let dir = fast_dir();
    let options = Options::new(64 * MIB).snapshot_memory_bytes(32 * MIB);
    let db = open(dir.path(), &options);
    let tree = db.tree("t").unwrap();
    let fill = |round: u8| {
        for n in 0..20_000u32 {
            tree.insert(n.to_be_bytes(), [round; 1000]).unwrap();
        }
    };
    fill(1);
    db.set_memory_budget(16 * MIB).unwrap();
    let snapshot = db.snapshot().unwrap();
    fill(2);
    assert_eq!(snapshot.get(&tree, [0; 4]).unwrap().unwrap(), [1; 1000]);
    let used = db.stats().memory_used_bytes;
    assert!(used <= 16 * MIB as u64, "{used} bytes");
}

/// Nobody writes after the budget became smaller: nothing else looks at the images.
#[test]
fn a_smaller_budget_is_kept_although_nobody_writes() {
    const SMALL: usize = 6 * MIB;
    for disk_bytes in [None, Some(0)] {
        let dir = fast_dir();
        let options = Options::new(64 * MIB).snapshot_memory_bytes(32 * MIB);
        let options = match disk_bytes {
            Some(bytes) => options.snapshot_disk_bytes(bytes),
            None => options,
        };
        let db = open(dir.path(), &options);
        let tree = db.tree("t").unwrap();
        let fill = |round: u8| {
            for n in 0..12_000u32 {
                tree.insert(n.to_be_bytes(), [round; 1000]).unwrap();
            }
        };
        fill(1);
        let snapshot = db.snapshot().unwrap();
        fill(2);
        db.set_memory_budget(SMALL).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while db.stats().memory_used_bytes > SMALL as u64 {
            assert!(
                Instant::now() < deadline,
                "{disk_bytes:?}: {:?}",
                db.stats()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        match (disk_bytes, snapshot.get(&tree, [0; 4])) {
            (None, found) => assert_eq!(found.unwrap().unwrap(), [1; 1000]),
            (Some(_), found) => assert!(matches!(found, Err(Error::SnapshotTooOld)), "{found:?}"),
        }
        assert_sound(&db);
    }
}

/// What scans hold passes: a budget that is large enough without it is not refused.
#[test]
fn open_scans_do_not_keep_the_budget_from_shrinking() {
    const SMALL: usize = 6 * MIB;
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(64 * MIB));
    let tree = db.tree("t").unwrap();
    for n in 0..12_000u32 {
        tree.insert(n.to_be_bytes(), [1; 1000]).unwrap();
    }
    db.flush().unwrap();
    let before = db.stats().memory_used_bytes;
    let mut scans: Vec<_> = (0..1000).map(|_| tree.range::<[u8; 4]>(..)).collect();
    for scan in &mut scans {
        assert!(scan.by_ref().take(40).all(|entry| entry.is_ok()));
    }
    let held = db.stats().memory_used_bytes.saturating_sub(before);
    assert!(held > 3 * MIB as u64, "{held} bytes");
    db.set_memory_budget(SMALL).unwrap();
    scans.truncate(20);
    assert!(scans.iter_mut().all(|scan| scan.count() == 11_960));
}

/// The values of a hot key grow and shrink: one old image and one young one are all there is.
#[test]
fn a_hot_key_does_not_wear_out_an_old_snapshot() {
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(4 * MIB));
    let tree = db.tree("t").unwrap();
    tree.insert("hot", "old").unwrap();
    let old = db.snapshot().unwrap();
    for n in 0..3000 {
        let young = db.snapshot().unwrap();
        let len = if n % 2 == 0 { 10 } else { 2000 };
        tree.insert("hot", vec![1; len]).unwrap();
        drop(young);
        assert_eq!(old.get(&tree, "hot").unwrap().unwrap(), b"old", "{n}");
    }
}

/// A batch at its limit over a batch as large: images and copies have no room beside it.
#[test]
fn the_largest_batch_of_the_smallest_budget_gives_no_snapshot_up() {
    for values in [2, 5, 60] {
        let dir = fast_dir();
        let db = open(dir.path(), &Options::new(2 * MIB));
        let tree = db.tree("t").unwrap();
        let len = db.batch().limit() / values - 128;
        let key = |n: usize| (n as u32).to_be_bytes();
        let mut snapshots = Vec::new();
        for round in 0..5u8 {
            let mut attempts = 0;
            db.transact(|tx| {
                attempts += 1;
                (0..values).try_for_each(|n| tx.insert(&tree, key(n), vec![round; len]))
            })
            .unwrap();
            assert_eq!(attempts, 1, "round {round}");
            snapshots.push((round, db.snapshot().unwrap()));
        }
        let mut all = db.batch();
        (0..values).for_each(|n| all.remove(&tree, key(n)));
        all.commit().unwrap();
        for (round, snapshot) in &snapshots {
            for n in 0..values {
                let found = snapshot.get(&tree, key(n)).unwrap().unwrap();
                assert!(found.len() == len && found.iter().all(|b| b == round));
            }
        }
        assert!(tree.is_empty().unwrap());
        assert_sound(&db);
    }
}

/// The user's limit is far below one image: writers wait more often, and that is all.
#[test]
fn a_small_limit_of_images_gives_no_snapshot_up() {
    for limit in [1, 1000, 64 << 10] {
        let dir = fast_dir();
        let options = Options::new(4 * MIB).snapshot_memory_bytes(limit);
        let db = open(dir.path(), &options);
        let tree = db.tree("t").unwrap();
        let write = |round: u8| {
            for (n, len) in (0..6u32).zip([10, 100, 3000, 100_000, 300_000, 2_000_000]) {
                tree.insert(n.to_be_bytes(), vec![round; len]).unwrap();
            }
            let mut batch = db.batch();
            for n in 6..300u32 {
                batch.insert(&tree, n.to_be_bytes(), [round; 2000]);
            }
            batch.commit().unwrap();
        };
        write(1);
        let snapshot = db.snapshot().unwrap();
        write(2);
        write(3);
        for entry in snapshot.iter(&tree) {
            let (key, value) = entry.unwrap();
            assert!(value.iter().all(|b| *b == 1), "limit {limit}, key {key:?}");
        }
        assert_eq!(snapshot.len(&tree).unwrap(), 300, "limit {limit}");
    }
}
