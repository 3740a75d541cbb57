//! I7: what is bounded by a number of keys must be bounded by their bytes too. Keys of 64 KiB.

use crate::{
    places::fast_dir,
    support::{MIB, assert_sound, open},
};
use indexy::{Db, IndexXKind, IndexYKind, Options, Tree, limits::MAX_KEY_BYTES};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    time::Duration,
};

const BUDGET: usize = 16 * MIB;

fn key(i: u32) -> Vec<u8> {
    let mut key = i.to_be_bytes().to_vec();
    key.resize(MAX_KEY_BYTES, b'k');
    key
}

/// Over paged trees: an LSM tree keeps the longest keys of its tables in memory.
fn database(x: IndexXKind, keys: u32) -> (tempfile::TempDir, Db, Tree) {
    let dir = fast_dir();
    let options = Options::new(BUDGET)
        .index_x(x)
        .index_y(IndexYKind::BPlus { page_bytes: 16384 });
    let db = open(dir.path(), &options);
    let tree = db.tree("t").unwrap();
    for i in 0..keys {
        tree.insert(key(i), i.to_be_bytes()).unwrap();
    }
    (dir, db, tree)
}

/// Resident memory of this process in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size() as u64
}

/// The most that `of` was while `work` ran.
fn peak(of: impl Fn() -> u64 + Sync, work: impl FnOnce()) -> u64 {
    let (most, done) = (AtomicU64::new(of()), AtomicBool::new(false));
    std::thread::scope(|s| {
        s.spawn(|| {
            while !done.load(SeqCst) {
                most.fetch_max(of(), SeqCst);
                std::thread::sleep(Duration::from_micros(500));
            }
        });
        let _stop = crate::support::StopAtDrop(&done);
        work();
    });
    most.load(SeqCst)
}

#[test]
fn i7_removing_a_range_of_long_keys_stays_within_the_budget() {
    use crate::support::{child, child_argument, wait};
    // Resident memory is that of the process: one of its own.
    if child_argument().is_none() {
        let name = "long_keys::i7_removing_a_range_of_long_keys_stays_within_the_budget";
        let child = child(name, "alone").spawn().unwrap();
        assert!(wait(child, Duration::from_secs(240)));
        return;
    }
    let before = resident();
    let (_dir, db, tree) = database(IndexXKind::Art, 1500);
    db.flush().unwrap();
    let used = || db.stats().memory_used_bytes;
    let (mut by_count, mut by_system) = (0, 0);
    by_count += peak(used, || {
        by_system += peak(resident, || tree.remove_range(key(10)..).unwrap());
    });
    assert!(by_count <= BUDGET as u64, "{by_count}");
    let allowed = (BUDGET + BUDGET / 10 + 32 * MIB) as u64;
    assert!(
        by_system - before <= allowed,
        "{} of {allowed}",
        by_system - before
    );
    assert_eq!(tree.len().unwrap(), 10);
    assert_sound(&db);
}

#[test]
fn i7_scans_over_long_keys_are_counted() {
    for x in [IndexXKind::Art, IndexXKind::BPlus, IndexXKind::None] {
        let (_dir, db, tree) = database(x, 400);
        let used = || db.stats().memory_used_bytes;
        let most = peak(used, || {
            let mut scans: Vec<_> = (0..16).map(|_| tree.iter()).collect();
            for i in 0..400 {
                for scan in &mut scans {
                    assert_eq!(scan.next().unwrap().unwrap().0, key(i));
                }
            }
        });
        assert!(most <= BUDGET as u64, "{x}: {most}");
        for i in 0..400 {
            assert_eq!(tree.get(key(i)).unwrap().unwrap(), i.to_be_bytes());
        }
        db.flush().unwrap();
        assert_sound(&db);
    }
}

#[test]
fn i7_batches_of_long_keys_are_what_they_say() {
    let (_dir, db, tree) = database(IndexXKind::Art, 10);
    let mut batch = db.batch();
    let mut keys = 0;
    while batch.bytes() + MAX_KEY_BYTES + 100 < batch.limit() {
        batch.insert(&tree, key(keys), b"batch");
        keys += 1;
    }
    assert!(keys > 10, "{keys} keys are {} bytes", batch.bytes());
    assert!(batch.bytes() > keys as usize * MAX_KEY_BYTES);
    batch.commit().unwrap();
    for i in 0..keys {
        assert_eq!(tree.get(key(i)).unwrap().unwrap(), b"batch");
    }
}
