//! The radix cache: who has it, that no answer depends on it, and that it keeps the budget.

use super::support::{MIB, Random, assert_sound, setting};
use crate::places::fast_dir;
use indexy::{Db, Durability, Error, IndexXKind, IndexYKind, Options, Tree, TreeOptions};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    time::{Duration, Instant},
};

const KINDS: [IndexXKind; 2] = [IndexXKind::Radix, IndexXKind::RadixLeaves];
const PAGED: IndexYKind = IndexYKind::BPlus { page_bytes: 4096 };

fn options(x: IndexXKind, budget: usize) -> Options {
    Options::new(budget).index_x(x).index_y(PAGED)
}

#[test]
fn it_needs_a_disk_index_with_places() {
    let dir = fast_dir();
    for x in KINDS {
        let refused = Db::open(dir.path(), Options::new(4 * MIB).index_x(x)).map(|_| ());
        assert!(
            matches!(refused, Err(Error::Unsupported { .. })),
            "{refused:?}"
        );
        let db = Db::open(dir.path(), Options::new(4 * MIB)).unwrap();
        let lsm = TreeOptions::new().index_x(x).index_y(IndexYKind::Lsm);
        let refused = db.tree_with("t", lsm).map(|_| ());
        assert!(
            matches!(refused, Err(Error::Unsupported { .. })),
            "{refused:?}"
        );
        let resident = TreeOptions::new().index_x(x).index_y(PAGED).resident(true);
        assert!(db.tree_with("t", resident).is_err());
    }
}

#[test]
fn its_kind_is_remembered() {
    for x in KINDS {
        let dir = fast_dir();
        let db = Db::open(dir.path(), options(x, 4 * MIB)).unwrap();
        db.tree("t").unwrap().insert("key", "value").unwrap();
        db.close().unwrap();
        let db = Db::open(dir.path(), Options::new(4 * MIB)).unwrap();
        let tree = db.tree("t").unwrap();
        assert_eq!(tree.pair(), (x, PAGED));
        assert_eq!(tree.get("key").unwrap().unwrap(), b"value");
    }
}

/// Values of all sizes, four times the budget, with overwrites, removals, ranges and restarts.
#[test]
fn answers_do_not_depend_on_it() {
    for x in KINDS {
        let dir = fast_dir();
        let mut random = Random(setting("INDEXY_RADIX_SEED", 5));
        let mut model: BTreeMap<[u8; 8], Vec<u8>> = BTreeMap::new();
        let (mut located, mut stale) = (0, 0);
        for restart in 0..4 {
            let db = Db::open(dir.path(), options(x, 4 * MIB)).unwrap();
            let tree = db.tree("t").unwrap();
            for step in 0..20_000 {
                let key = random.below(9_000).to_be_bytes();
                match random.below(16) {
                    0 => {
                        tree.remove(key).unwrap();
                        model.remove(&key);
                    }
                    1..4 => {
                        let len = match random.below(40) {
                            0 => 20_000,
                            1..10 => 1_500,
                            _ => 60,
                        };
                        let value = vec![random.next() as u8; len];
                        tree.insert(key, &value).unwrap();
                        model.insert(key, value);
                    }
                    4 if step % 50 == 0 => {
                        let end = (u64::from_be_bytes(key) + random.below(200)).to_be_bytes();
                        tree.remove_range(key..end).unwrap();
                        model.retain(|k, _| *k < key || *k >= end);
                    }
                    _ => {
                        let found = tree.get(key).unwrap();
                        assert_eq!(found.as_deref(), model.get(&key).map(|v| &v[..]), "{x}");
                    }
                }
            }
            if restart == 1 {
                db.flush().unwrap();
                tree.compact::<&[u8]>(..).unwrap();
            }
            for (key, value) in &model {
                assert_eq!(tree.get(key).unwrap().unwrap(), value[..]);
            }
            let stats = db.stats();
            assert!(stats.memory_used_bytes <= 4 * MIB as u64, "{stats:?}");
            located += stats.located;
            stale += stats.stale_locators;
            assert_sound(&db);
            db.close().unwrap();
        }
        assert!(located > 1_000 && stale > 100, "{x}: {located} {stale}");
    }
}

/// Dropped and cleared trees leave nothing of it.
#[test]
fn it_goes_with_its_tree() {
    let dir = fast_dir();
    let db = Db::open(dir.path(), options(IndexXKind::Radix, 8 * MIB)).unwrap();
    let fill = |tree: &Tree| {
        for n in 0..40_000u64 {
            tree.insert(n.to_be_bytes(), [3; 50]).unwrap();
        }
        db.flush().unwrap();
        for n in 0..40_000u64 {
            assert_eq!(tree.get(n.to_be_bytes()).unwrap().unwrap(), [3; 50]);
        }
    };
    let tree = db.tree("t").unwrap();
    fill(&tree);
    tree.clear().unwrap();
    for n in (0..40_000u64).step_by(7) {
        assert_eq!(tree.get(n.to_be_bytes()).unwrap(), None);
    }
    fill(&tree);
    db.drop_tree("t").unwrap();
    assert!(matches!(tree.get("key"), Err(Error::TreeDropped { .. })));
    fill(&db.tree("t").unwrap());
    assert_sound(&db);
}

/// Four readers beside a writer: no reader sees a version that is older than one that was
/// acknowledged before it asked.
#[test]
fn readers_beside_a_writer_see_what_was_acknowledged() {
    const KEYS: u64 = 30_000;
    let time = Duration::from_secs(setting("INDEXY_RADIX_SECONDS", 2));
    for x in KINDS {
        let dir = fast_dir();
        let options = options(x, 2 * MIB).durability(Durability::None);
        let db = Db::open(dir.path(), options).unwrap();
        let tree = db.tree("t").unwrap();
        let value = |n: u64, version: u64| {
            let mut value = vec![n as u8; if n.is_multiple_of(97) { 6_000 } else { 90 }];
            value[..8].copy_from_slice(&version.to_be_bytes());
            value
        };
        for n in 0..KEYS {
            tree.insert(n.to_be_bytes(), value(n, 0)).unwrap();
        }
        let versions: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for seed in 0..4 {
                let (tree, versions, stop) = (&tree, &versions, &stop);
                scope.spawn(move || {
                    let mut random = Random(seed);
                    while !stop.load(SeqCst) {
                        // Few keys, so that their locators are met again and again.
                        let n = random.below(KEYS / 20) * 20;
                        let floor = versions[n as usize].load(SeqCst);
                        let found = tree.get(n.to_be_bytes()).unwrap().unwrap();
                        let version = u64::from_be_bytes(found[..8].try_into().unwrap());
                        assert!(version >= floor, "{n}: {version} after {floor}");
                        assert!(found[8..].iter().all(|byte| *byte == n as u8));
                    }
                });
            }
            let mut random = Random(77);
            let begin = Instant::now();
            let mut version = 0;
            while begin.elapsed() < time {
                version += 1;
                let n = random.below(KEYS);
                tree.insert(n.to_be_bytes(), value(n, version)).unwrap();
                versions[n as usize].store(version, SeqCst);
            }
            stop.store(true, SeqCst);
        });
        let stats = db.stats();
        assert!(
            stats.located > 0 && stats.stale_locators > 0,
            "{x}: {stats:?}"
        );
        assert_sound(&db);
    }
}
