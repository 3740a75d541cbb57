//! Filters of evicted keys through the API, over every pair: what is there is found, what is absent
//! costs no read, and nothing of a filter is stored.
//!
//! `INDEXY_EVICTED_STEPS`: random calls a pair (2500). `INDEXY_EVICTED_SEED`: their seed.
//! `INDEXY_EVICTED_MILLIS`: length of the concurrent test (400).

use super::{
    custom_y::{Files, options_with},
    pairs,
    support::{MIB, Random, assert_sound, setting},
};
use crate::places::fast_dir;
use indexy::{
    Admission, Db, Durability, Error, Evicted, IndexXKind, IndexYKind, Options, Tree, TreeOptions,
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

const FILTER: Evicted = Evicted::Filter { bits_per_key: 10 };

fn filtered() -> TreeOptions {
    TreeOptions::new().evicted(FILTER)
}

fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

/// Waits until filters know all keys on disk.
fn wait_built(db: &Db) {
    let began = Instant::now();
    while db.stats().filters_building > 0 {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{:?}",
            db.stats()
        );
        thread::sleep(Duration::from_millis(2));
    }
}

/// Everything goes to disk and leaves memory.
fn put_away(db: &Db, tree: &Tree) {
    db.flush().unwrap();
    tree.release::<&[u8]>(..).unwrap();
}

#[test]
fn absent_keys_cost_no_read_of_the_disk_over_every_pair() {
    for pair in pairs::chosen(0, 4) {
        let dir = fast_dir();
        let options = pairs::options(pair, Options::new(8 * MIB).durability(Durability::None));
        for opened in 0..2 {
            let db = Db::open(dir.path(), options.clone()).unwrap();
            let tree = db.tree_with("t", filtered()).unwrap();
            assert_eq!(tree.evicted(), FILTER);
            if opened == 0 {
                for n in 0..20_000 {
                    tree.insert(key(n), b"value").unwrap();
                }
            }
            put_away(&db, &tree);
            wait_built(&db);
            let before = db.stats();
            for n in 100_000..104_000 {
                assert!(tree.get(key(n)).unwrap().is_none());
            }
            let stats = db.stats();
            let asked = stats.y_reads - before.y_reads;
            assert!(asked < 120, "{}: {asked} of 4000", pairs::name(pair));
            // A write buffer is not released: it may know by itself what is absent.
            let known = match pairs::keeps_nothing(pair) {
                true => stats.absent_without_io - before.absent_without_io,
                false => 0,
            };
            let denied = stats.denied_by_filter - before.denied_by_filter;
            assert!(
                denied + known + asked >= 4000,
                "{}: {denied} denied",
                pairs::name(pair)
            );
            assert!(stats.filter_bytes > 20_000);
            for n in (0..20_000).step_by(7) {
                assert_eq!(tree.get(key(n)).unwrap().unwrap(), b"value");
            }
            assert_sound(&db);
            db.close().unwrap();
        }
        // Nothing of it is stored.
        let db = Db::open(dir.path(), options).unwrap();
        let tree = db.tree("t").unwrap();
        assert_eq!(
            (tree.evicted(), db.stats().filter_bytes),
            (Evicted::Ranges, 0)
        );
        assert!(tree.get(key(1)).unwrap().is_some());
    }
}

/// A disk index from outside: its keys are in the filter, and it is not asked for others.
#[test]
fn absent_keys_do_not_ask_a_registered_disk_index() {
    const KEYS: u64 = 5000;
    let dir = fast_dir();
    let files: Arc<Files> = Arc::default();
    let asks = |keys: std::ops::Range<u64>, tree: &Tree| {
        let before = files.gets.load(SeqCst);
        let found = keys.filter(|n| tree.contains_key(key(*n)).unwrap());
        (found.count() as u64, files.gets.load(SeqCst) - before)
    };
    for opened in 0..2 {
        let db = Db::open(dir.path(), options_with(&files)).unwrap();
        let tree = db.tree("t").unwrap();
        if opened == 0 {
            for n in 0..KEYS {
                tree.insert(key(n), b"value").unwrap();
            }
        }
        put_away(&db, &tree);
        let absent = 100_000..102_000;
        assert_eq!(asks(absent.clone(), &tree), (0, 2000), "without a filter");
        let tree = db.tree_with("t", filtered()).unwrap();
        assert_eq!(tree.pair().1.to_string(), "custom:file");
        wait_built(&db);
        let (found, asked) = asks(absent, &tree);
        assert!(found == 0 && asked < 60, "{asked} of 2000");
        assert_eq!(asks(0..KEYS, &tree), (KEYS, KEYS as usize));
        assert!(db.stats().denied_by_filter >= 1900);
        db.close().unwrap();
    }
}

#[test]
fn what_cannot_be_had_is_refused_with_the_reason() {
    let dir = fast_dir();
    let db = Db::open(dir.path(), Options::new(4 * MIB)).unwrap();
    let filter = TreeOptions::new().evicted(Evicted::Filter { bits_per_key: 16 });
    let refused = |options: TreeOptions, why: &str| {
        let error = db.tree_with("refused", options).unwrap_err();
        assert!(
            matches!(
                error,
                Error::InvalidOption {
                    option: "evicted",
                    ..
                }
            ),
            "{error}"
        );
        assert!(error.to_string().contains(why), "{error}");
    };
    for bits_per_key in [0, 3, 33, 255] {
        let filter = Evicted::Filter { bits_per_key };
        refused(TreeOptions::new().evicted(filter), "bits a key");
    }
    refused(filtered().resident(true), "resident");
    assert_eq!(db.tree_names(), [""; 0]);
    // A tree that is there keeps what it has.
    let tree = db.tree("t").unwrap();
    for n in 0..300_000 {
        tree.insert(key(n), b"").unwrap();
    }
    db.flush().unwrap();
    let error = db.tree_with("t", filter.clone()).unwrap_err();
    assert!(
        error.to_string().contains("an eighth of the memory budget"),
        "{error}"
    );
    assert_eq!(tree.evicted(), Evicted::Ranges);
    // With more memory it fits.
    db.set_memory_budget(8 * MIB).unwrap();
    let tree = db.tree_with("t", filter).unwrap();
    wait_built(&db);
    // A smaller one takes the place of the one before.
    let smaller = TreeOptions::new().evicted(Evicted::Filter { bits_per_key: 12 });
    let before = db.stats().filter_bytes;
    let tree_of_less = db.tree_with("t", smaller).unwrap();
    wait_built(&db);
    assert!(db.stats().filter_bytes < before);
    drop(tree_of_less);
    // And less takes parts of it away.
    db.set_memory_budget(4 * MIB).unwrap();
    let began = Instant::now();
    while db.stats().filter_bytes > 512 << 10 && began.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(5));
    }
    assert!(db.stats().filter_bytes <= 512 << 10);
    for n in (0..300_000).step_by(997) {
        assert!(tree.contains_key(key(n)).unwrap());
    }
    assert_eq!(
        db.tree_with("t", TreeOptions::new().evicted(Evicted::Ranges))
            .unwrap()
            .evicted(),
        Evicted::Ranges
    );
    assert_eq!(db.stats().filter_bytes, 0);
}

/// Random calls against a map, with tiny budgets, releases by hand, loads, ranges and reopens.
#[test]
fn random_calls_agree_with_a_map() {
    let steps = setting("INDEXY_EVICTED_STEPS", 2500);
    let seed = setting("INDEXY_EVICTED_SEED", 1);
    for (number, pair) in pairs::chosen(1, 4).into_iter().enumerate() {
        println!("{}, seed {seed}", pairs::name(pair));
        let mut random = Random(seed + number as u64);
        let dir = fast_dir();
        let options = pairs::options(pair, Options::new(2 * MIB).durability(Durability::None));
        let open = || {
            let db = Db::open(dir.path(), options.clone()).unwrap();
            let tree = db
                .tree_with("t", filtered().admission(Admission::Always))
                .unwrap();
            (db, tree)
        };
        let (mut db, mut tree) = open();
        let mut map = BTreeMap::<Vec<u8>, Vec<u8>>::new();
        for step in 0..steps {
            let n = random.below(3000);
            let name = (n as u32).to_be_bytes().to_vec();
            match random.below(1000) {
                0..400 => {
                    let value = vec![step as u8; 1 + random.below(600) as usize];
                    tree.insert(&name, &value).unwrap();
                    map.insert(name, value);
                }
                400..600 => {
                    tree.remove(&name).unwrap();
                    map.remove(&name);
                }
                600..900 => {
                    assert_eq!(
                        tree.get(&name).unwrap().as_deref(),
                        map.get(&name).map(|v| &v[..])
                    );
                }
                900..930 => {
                    let names: Vec<_> = (n as u32..n as u32 + 40).map(u32::to_be_bytes).collect();
                    let found = tree.multi_get(&names).unwrap();
                    for (name, found) in names.iter().zip(found) {
                        assert_eq!(found.as_deref(), map.get(&name[..]).map(|v| &v[..]));
                    }
                }
                930..960 => put_away(&db, &tree),
                960..970 => {
                    let to = (n as u32 + random.below(200) as u32).to_be_bytes().to_vec();
                    tree.remove_range(name.clone()..to.clone()).unwrap();
                    map.retain(|key, _| *key < name || *key >= to);
                }
                970..980 if tree.pair().1 != IndexYKind::RocksDb => {
                    // Keys that only a load brings.
                    let base = 10_000 + step as u32 * 64;
                    let loaded: Vec<_> = (base..base + 64)
                        .map(|n| n.to_be_bytes().to_vec())
                        .collect();
                    let entries = loaded.iter().map(|key| (key.clone(), b"loaded".to_vec()));
                    tree.load_sorted(entries).unwrap();
                    map.extend(loaded.into_iter().map(|key| (key, b"loaded".to_vec())));
                }
                980..985 => wait_built(&db),
                985..990 => {
                    db.close().unwrap();
                    (db, tree) = open();
                }
                _ => {}
            }
        }
        assert_same(&db, &tree, &map);
    }
}

fn assert_same(db: &Db, tree: &Tree, map: &BTreeMap<Vec<u8>, Vec<u8>>) {
    wait_built(db);
    for (key, value) in map {
        assert_eq!(tree.get(key).unwrap().as_deref(), Some(&value[..]));
    }
    assert_eq!(tree.len().unwrap(), map.len() as u64);
    assert_sound(db);
}

/// Writers, readers and releases at once: what a writer has acknowledged is found.
#[test]
fn no_key_is_missed_under_writers_and_releases() {
    // The filter of more does not fit into its part of the budget.
    const KEYS: u32 = 20_000;
    for pair in pairs::chosen(2, 4) {
        let dir = fast_dir();
        let options = pairs::options(pair, Options::new(2 * MIB).durability(Durability::None));
        let db = Db::open(dir.path(), options).unwrap();
        let tree = db.tree_with("t", filtered()).unwrap();
        let (written, done) = (AtomicU32::new(0), AtomicBool::new(false));
        let millis = setting("INDEXY_EVICTED_MILLIS", 400);
        thread::scope(|scope| {
            for seed in 0..2 {
                let (tree, written, done) = (&tree, &written, &done);
                scope.spawn(move || {
                    let mut random = Random(seed);
                    while !done.load(SeqCst) {
                        let known = written.load(SeqCst);
                        if known > 0 {
                            let n = random.below(known.into());
                            assert!(tree.get(key(n)).unwrap().is_some(), "{n}");
                            assert!(tree.get(key(n + (1 << 40))).unwrap().is_none());
                        }
                    }
                });
            }
            let began = Instant::now();
            let mut n = 0;
            while began.elapsed() < Duration::from_millis(millis) {
                tree.insert(key((n % KEYS).into()), [n as u8; 100]).unwrap();
                n += 1;
                written.store(n.min(KEYS), SeqCst);
                if n % 2000 == 0 {
                    tree.release::<&[u8]>(..).unwrap();
                }
            }
            done.store(true, SeqCst);
        });
        wait_built(&db);
        for n in 0..written.load(SeqCst) {
            assert!(tree.get(key(n.into())).unwrap().is_some());
        }
        assert_sound(&db);
    }
}

#[test]
fn a_read_only_database_and_one_without_an_index_x_have_filters_too() {
    let dir = fast_dir();
    let options = Options::new(4 * MIB).index_x(IndexXKind::None);
    let db = Db::open(dir.path(), options.clone()).unwrap();
    let tree = db.tree_with("t", filtered()).unwrap();
    for n in 0..5000 {
        tree.insert(key(n), b"value").unwrap();
    }
    put_away(&db, &tree);
    db.close().unwrap();
    let db = Db::open(dir.path(), options.read_only(true)).unwrap();
    let tree = db.tree_with("t", filtered()).unwrap();
    wait_built(&db);
    for n in 0..5000 {
        assert!(tree.get(key(n)).unwrap().is_some());
        assert!(tree.get(key(n + 10_000)).unwrap().is_none());
    }
    assert!(db.stats().denied_by_filter > 4800);
    db.drop_tree("t").unwrap_err();
}

/// The filter of a tree that is gone takes no memory from others, though somebody has its handle.
#[test]
fn the_filter_of_a_dropped_tree_is_given_back() {
    let dir = fast_dir();
    let db = Db::open(dir.path(), Options::new(8 * MIB)).unwrap();
    let gone = db.tree_with("gone", filtered()).unwrap();
    for n in 0..20_000 {
        gone.insert(key(n), b"v").unwrap();
    }
    put_away(&db, &gone);
    wait_built(&db);
    assert!(db.stats().filter_bytes > 10_000);
    db.drop_tree("gone").unwrap();
    assert_eq!(db.stats().filter_bytes, 0);
    assert!(matches!(gone.get(key(1)), Err(Error::TreeDropped { .. })));
}
