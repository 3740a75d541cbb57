//! Index Y alone: without an Index X the budget belongs to the caches of Y, nothing that is read
//! goes to the write buffer, and everything else is as ever.

use crate::{
    pairs::{self, Pair},
    support::{MIB, Random, StopAtDrop, assert_sound, open},
};
use indexy::{Db, Durability, Error, IndexXKind, IndexYKind, Options, Tree, TreeOptions};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

const BUDGET: usize = 8 * MIB;
const ALONE: [Pair; 2] = [
    (IndexXKind::None, IndexYKind::Lsm),
    (IndexXKind::None, IndexYKind::BPlus { page_bytes: 4096 }),
];

fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

fn value(n: u64) -> [u8; 100] {
    [n as u8; 100]
}

fn options(pair: Pair) -> Options {
    pairs::options(pair, Options::new(BUDGET))
}

fn with_both(test: impl Fn(Pair)) {
    for pair in ALONE {
        println!("{}", pairs::name(pair));
        test(pair);
    }
}

/// The most that `work` makes `db` say it uses.
fn most_used(db: &Db, work: impl FnOnce()) -> u64 {
    let (most, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|s| {
        s.spawn(|| {
            while !done.load(SeqCst) {
                most.fetch_max(db.stats().memory_used_bytes, SeqCst);
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let _stop = StopAtDrop(&done);
        work();
    });
    most.into_inner()
}

fn fill(tree: &Tree, keys: u64) {
    for n in 0..keys {
        tree.insert(key(n), value(n)).unwrap();
    }
}

#[test]
fn the_budget_is_the_cache_of_y() {
    with_both(|pair| {
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path(), &options(pair));
        let tree = db.tree("t").unwrap();
        let used = db.stats().memory_used_bytes;
        assert!(used > BUDGET as u64 / 2, "{used}");
        // A tree with an Index X needs the room for that.
        let with_x = TreeOptions::new().index_x(IndexXKind::Art);
        let other = db.tree_with("x", with_x).unwrap();
        let used = db.stats().memory_used_bytes;
        assert!(used < BUDGET as u64 / 3, "{used}");
        other.insert("k", "v").unwrap();
        fill(&tree, 20_000);
        drop(other);
        db.drop_tree("x").unwrap();
        db.flush().unwrap();
        let enough = || db.stats().memory_used_bytes > BUDGET as u64 / 2;
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !enough() {
            assert!(std::time::Instant::now() < deadline, "{:?}", db.stats());
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert_sound(&db);
    });
}

#[test]
fn i7_what_is_read_does_not_go_to_the_buffer() {
    with_both(|pair| {
        let dir = tempfile::tempdir().unwrap();
        let keys = 2 * BUDGET as u64 / 108;
        let db = open(dir.path(), &options(pair).durability(Durability::None));
        let tree = db.tree("t").unwrap();
        let most = most_used(&db, || fill(&tree, keys));
        assert!(most <= BUDGET as u64, "{most}");
        let full = db.stats();
        assert!(full.x_bytes < BUDGET as u64 / 2, "{full:?}");
        db.close().unwrap();

        let db = open(dir.path(), &options(pair));
        let tree = db.tree("t").unwrap();
        let mut random = Random(3);
        let most = most_used(&db, || {
            for _ in 0..20_000 {
                let n = random.below(keys);
                assert_eq!(tree.get(key(n)).unwrap().as_deref(), Some(&value(n)[..]));
            }
            let some: Vec<_> = (0..keys).step_by(977).collect();
            let found = tree.multi_get(some.iter().map(|&n| key(n))).unwrap();
            for (n, found) in some.into_iter().zip(found) {
                assert_eq!(found.as_deref(), Some(&value(n)[..]));
            }
        });
        assert!(most <= BUDGET as u64, "{most}");
        let stats = db.stats();
        assert_eq!(stats.x_keys, 0, "{stats:?}");
        assert_eq!(stats.uncached_reads, stats.misses, "{stats:?}");
        assert_eq!(tree.len().unwrap(), keys);
        assert_sound(&db);
    });
}

/// A batch may be larger than the write buffer: the caches make room, and take it back.
#[test]
fn i7_a_batch_larger_than_the_buffer() {
    with_both(|pair| {
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path(), &options(pair));
        let tree = db.tree("t").unwrap();
        let most = most_used(&db, || {
            for round in 0..3u64 {
                fill(&tree, 20_000);
                let mut batch = db.batch();
                for n in 0..18 {
                    batch.insert(&tree, key(n), vec![round as u8; BUDGET / 4 / 20]);
                }
                batch.commit().unwrap();
                assert_eq!(tree.get(key(7)).unwrap().unwrap()[0], round as u8);
            }
        });
        assert!(most <= BUDGET as u64, "{most}");
        assert_sound(&db);
    });
}

#[test]
fn it_is_remembered() {
    with_both(|pair| {
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path(), &options(pair));
        let resident = TreeOptions::new().resident(true);
        let refused = db.tree_with("r", resident).unwrap_err();
        assert!(matches!(refused, Error::InvalidOption { .. }), "{refused}");
        fill(&db.tree("t").unwrap(), 1000);
        // Not closed: the log has it.
        drop(db);
        let db = open(dir.path(), &Options::new(BUDGET));
        let tree = db.tree("t").unwrap();
        assert_eq!(tree.pair(), pair);
        assert!(db.stats().memory_used_bytes > BUDGET as u64 / 2);
        let art = TreeOptions::new().index_x(IndexXKind::Art);
        let refused = db.tree_with("t", art).unwrap_err();
        assert!(matches!(refused, Error::TreeMismatch { .. }), "{refused}");
        for n in 0..1000 {
            assert_eq!(tree.get(key(n)).unwrap().as_deref(), Some(&value(n)[..]));
        }
        db.close().unwrap();
        let db = open(dir.path(), &Options::new(BUDGET).read_only(true));
        assert_eq!(db.tree("t").unwrap().len().unwrap(), 1000);
    });
}
