//! What is refused, and what the kinds of Index Y share.

use super::*;
use crate::{
    db::directory::DirectoryLock,
    y::conformance::{Entries, put, write},
};
use std::sync::atomic::Ordering::Relaxed;

/// Shares of a database in `dir`.
fn shares(dir: &Path, total: usize) -> YShared {
    let lock = DirectoryLock::take(dir, false).unwrap();
    let directory = OwnedDirectory::new(dir, Arc::new(lock), Arc::default());
    let (factories, medium) = (Factories::default(), Medium::default());
    YShared::new(
        total,
        factories,
        (false, Access::Block),
        medium,
        Arc::new(directory),
    )
}

/// The tree of that kind in `dir`.
fn open(shared: &YShared, dir: &Path, kind: IndexYKind) -> Arc<dyn IndexY> {
    let path = dir.join(kind.to_string());
    shared.open(kind, &path, 1, false).unwrap()
}

#[test]
fn what_is_not_compiled_in_is_refused_with_a_reason() {
    assert!(supported(IndexYKind::Lsm, &Factories::default()).is_ok());
    let rocks = supported(IndexYKind::RocksDb, &Factories::default());
    if cfg!(feature = "rocksdb") {
        assert!(rocks.is_ok());
    } else {
        let refused = rocks.unwrap_err().to_string();
        assert!(refused.contains("feature `rocksdb`"), "{refused}");
    }
}

/// Trees of runs and of pages have their pages in one pool, if these have one size: either fills
/// more than half of it, and then the other one's are gone.
#[test]
fn trees_of_both_kinds_share_one_pool() {
    let (dir, total) = (tempfile::tempdir().unwrap(), 640 << 10);
    let shared = shares(dir.path(), total);
    let key = |n: u32| n.to_be_bytes();
    let entries: Entries = (0..4000).map(|n| put(&key(n), &[7; 100])).collect();
    let kinds = [IndexYKind::Lsm, IndexYKind::BPlus { page_bytes: 4096 }];
    for kind in kinds {
        write(&*open(&shared, dir.path(), kind), &entries).unwrap();
    }
    // Opened again, they have nothing in frames.
    let [lsm, paged] = kinds.map(|kind| open(&shared, dir.path(), kind));
    let pool = shared.pages().pool(4096);
    let reads = |y: &dyn IndexY| {
        let before = pool.reads.load(Relaxed);
        for n in 0..4000 {
            assert_eq!(y.get(&key(n)).unwrap().unwrap(), [7; 100]);
        }
        pool.reads.load(Relaxed) - before
    };
    let frames = pool.frames.limit() as u64;
    for (y, kind) in [&lsm, &paged].into_iter().zip(kinds) {
        let (cold, warm) = (reads(&**y), reads(&**y));
        assert!((frames / 2 + 10..frames).contains(&cold), "{kind}: {cold}");
        assert!(warm < cold / 4, "{kind}: {cold}, then {warm} reads");
    }
    let again = reads(&*lsm);
    assert!(again > frames / 2, "{again} reads of {frames} frames");
    let now = shared.memory_bytes();
    assert!((total..=total + (64 << 10)).contains(&now), "{now}");
}

/// I7: a kind that comes later gets its part of the same total, and the others give it up.
#[cfg(feature = "rocksdb")]
#[test]
fn i7_kinds_share_the_total() {
    let (dir, total) = (tempfile::tempdir().unwrap(), 16 << 20);
    let shared = shares(dir.path(), total);
    // Beside the frames of a pool there is a little of its own.
    let check = |total: usize| {
        let now = shared.memory_bytes();
        assert!((total..=total + (1 << 20)).contains(&now), "{now}");
    };
    check(total);
    let lsm = open(&shared, dir.path(), IndexYKind::Lsm);
    check(total);
    let rocks = open(&shared, dir.path(), IndexYKind::RocksDb);
    check(total);
    shared.set_memory(total / 2);
    check(total / 2);
    assert!(lsm.is_empty().unwrap() && rocks.is_empty().unwrap());
}
