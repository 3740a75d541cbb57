//! What is kept for snapshots takes no more memory than it may, however it comes about.

use crate::support::{MIB, assert_sound, open};
use indexy::Options;
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    time::Duration,
};

/// Blind writes over large values that are in Y alone: cleaning reads what they were.
#[test]
fn large_cold_values_are_not_all_read_at_once() {
    const BUDGET: usize = 4 * MIB;
    let dir = tempfile::tempdir().unwrap();
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

/// The limit of the images is that of a larger budget.
#[test]
fn a_smaller_budget_takes_the_images_along() {
    let dir = tempfile::tempdir().unwrap();
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

/// The values of a hot key grow and shrink: one old image and one young one are all there is.
#[test]
fn a_hot_key_does_not_wear_out_an_old_snapshot() {
    let dir = tempfile::tempdir().unwrap();
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
