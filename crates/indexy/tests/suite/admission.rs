//! What reads bring into memory, under each policy of admission. That no answer depends on it is
//! the model test's part.

use crate::{
    pairs,
    places::fast_dir,
    support::{MIB, Random, assert_sound, open},
};
use indexy::{Admission, Db, Error, IndexXKind, Options, Stats, Tree, TreeOptions};

const KEYS: u64 = 5000;

fn key(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

fn with(admission: Admission) -> TreeOptions {
    TreeOptions::new().admission(admission)
}

/// A tree whose keys are all on disk and not in memory.
fn cold(db: &Db, admission: Admission) -> Tree {
    let tree = db.tree_with("t", with(admission)).unwrap();
    (0..KEYS).for_each(|n| tree.insert(key(n), [n as u8; 50]).unwrap());
    tree.release::<&[u8]>(..).unwrap();
    assert_eq!(tree.stats().x_keys, 0);
    tree
}

/// Keys in memory after `work` on a cold tree, and what was counted.
fn after(admission: Admission, work: impl Fn(&Db, &Tree)) -> (u64, Stats) {
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(16 * MIB));
    let tree = cold(&db, admission);
    work(&db, &tree);
    assert_sound(&db);
    (tree.stats().x_keys, db.stats())
}

type Work = fn(&Db, &Tree);

fn get_all(tree: &Tree) {
    (0..KEYS).for_each(|n| assert_eq!(tree.get(key(n)).unwrap().unwrap(), [n as u8; 50]));
}

const NOTHING: [Admission; 2] = [Admission::OnUpdate, Admission::Never];

#[test]
fn reads_of_every_kind_load_by_the_policy() {
    let reads: [(&str, Work); 4] = [
        ("get", |_, tree| get_all(tree)),
        ("multi_get", |_, tree| {
            let values = tree.multi_get((0..KEYS).map(key)).unwrap();
            assert!(values.iter().all(Option::is_some));
        }),
        ("snapshot", |db, tree| {
            let snapshot = db.snapshot().unwrap();
            tree.insert("written since", "").unwrap();
            let there = |n| snapshot.get(tree, key(n)).unwrap().is_some();
            assert!((0..KEYS).all(there));
            tree.release("written since"..).unwrap();
        }),
        ("transaction", |db, tree| {
            let all = |tx: &mut indexy::Transaction| {
                (0..KEYS).try_for_each(|n| tx.get(tree, key(n)).map(|v| assert!(v.is_some())))
            };
            db.transact(all).unwrap();
        }),
    ];
    for (name, read) in reads {
        assert_eq!(after(Admission::Always, read).0, KEYS, "{name}");
        for admission in NOTHING {
            let (loaded, stats) = after(admission, read);
            assert_eq!(loaded, 0, "{name}: {admission:?}");
            assert_eq!((stats.not_admitted, stats.misses), (KEYS, KEYS), "{name}");
        }
        let (loaded, stats) = after(Admission::Top { percent: 20 }, read);
        let expected = KEYS / 5;
        assert!(loaded.abs_diff(expected) < expected / 4, "{name}: {loaded}");
        assert_eq!(stats.not_admitted, KEYS - loaded, "{name}");
    }
}

#[test]
fn scans_and_absent_keys_load_nothing() {
    for admission in [Admission::Always, Admission::Top { percent: 100 }] {
        let (loaded, stats) = after(admission, |_, tree| {
            assert_eq!(tree.iter().count() as u64, KEYS);
            (KEYS..2 * KEYS).for_each(|n| assert!(tree.get(key(n)).unwrap().is_none()));
        });
        assert_eq!((loaded, stats.not_admitted), (0, 0), "{admission:?}");
    }
}

#[test]
fn reads_for_an_update_load_under_on_update_alone() {
    let nothing_changes: Work = |_, tree| {
        for n in 0..KEYS {
            let swapped = tree.compare_and_swap(key(n), Some("another"), Some("new"));
            assert!(!swapped.unwrap());
        }
    };
    assert_eq!(after(Admission::OnUpdate, nothing_changes).0, KEYS);
    assert_eq!(after(Admission::Never, nothing_changes).0, 0);
}

#[test]
fn writes_always_go_to_memory() {
    let top = Admission::Top { percent: 1 };
    for admission in [top, Admission::OnUpdate, Admission::Never] {
        let (there, stats) = after(admission, |_, tree| {
            (0..1000).for_each(|n| tree.insert(key(n), "inserted").unwrap());
            let change = |_: Option<&[u8]>| Some(b"updated".to_vec());
            (1000..2000).for_each(|n| drop(tree.update(key(n), change).unwrap()));
            (2000..2500).for_each(|n| assert!(tree.take(key(n)).unwrap().is_some()));
            (2500..3000).for_each(|n| tree.remove(key(n)).unwrap());
        });
        assert!((3000..3100).contains(&there), "{admission:?}: {there}");
        assert!(stats.x_dirty_keys >= 2900);
    }
}

#[test]
fn what_is_missed_again_is_loaded_before_what_is_missed_once() {
    let (loaded, _) = after(Admission::Top { percent: 5 }, |db, tree| {
        let mut random = Random(1);
        for i in 0..20_000 {
            let n = match i % 4 {
                0 => random.below(100),
                _ => 100 + random.below(KEYS - 100),
            };
            tree.get(key(n)).unwrap();
        }
        let before = db.stats().hits;
        (0..100).for_each(|n| assert!(tree.contains_key(key(n)).unwrap()));
        let hot = db.stats().hits - before;
        assert!(hot > 90, "{hot} of 100");
    });
    assert!(loaded < KEYS / 3, "{loaded}");
}

#[test]
fn it_can_be_changed_and_is_not_remembered() {
    let dir = fast_dir();
    let options = Options::new(16 * MIB);
    let db = open(dir.path(), &options);
    let tree = cold(&db, Admission::Never);
    get_all(&tree);
    assert_eq!(tree.stats().x_keys, 0);
    // What is not asked for stays.
    assert_eq!(db.tree("t").unwrap().admission(), Admission::Never);
    let top = Admission::Top { percent: 100 };
    let before = db.stats().memory_used_bytes;
    db.tree_with("t", with(top)).unwrap();
    assert_eq!(tree.admission(), top);
    let counts = db.stats().memory_used_bytes - before;
    assert!(counts > 0 && counts <= (16 * MIB / 128) as u64, "{counts}");
    get_all(&tree);
    assert_eq!(tree.stats().x_keys, KEYS);
    db.set_memory_budget(8 * MIB).unwrap();
    assert_eq!(tree.admission(), top);
    db.tree_with("t", with(Admission::Always)).unwrap();
    drop((tree, db));
    let db = open(dir.path(), &options);
    assert_eq!(db.tree("t").unwrap().admission(), Admission::Always);
}

#[test]
fn what_contradicts_is_refused() {
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(8 * MIB));
    let refused = |name: &str, options: TreeOptions| {
        let error = db.tree_with(name, options).unwrap_err();
        let Error::InvalidOption { option, reason } = &error else {
            panic!("{error:?}");
        };
        assert_eq!(*option, "admission");
        reason.clone()
    };
    let top = |percent| with(Admission::Top { percent });
    assert!(refused("t", top(0)).contains("Never"));
    assert!(refused("t", top(101)).contains("101"));
    refused("t", top(20).index_x(IndexXKind::None));
    refused("t", with(Admission::Never).resident(true));
    assert_eq!(db.tree_names(), [""; 0], "nothing was made");
    let alone = TreeOptions::new().index_x(IndexXKind::None);
    db.tree_with("alone", alone.clone().admission(Admission::Never))
        .unwrap();
    refused("alone", top(20));
    let resident = TreeOptions::new().resident(true);
    db.tree_with("resident", resident.admission(Admission::Always))
        .unwrap();
    refused("resident", with(Admission::OnUpdate));
    db.tree_with("t", top(1)).unwrap();
    db.tree_with("t", top(100)).unwrap();
    refused("t", top(0));
    assert_eq!(
        db.tree("t").unwrap().admission(),
        Admission::Top { percent: 100 }
    );
}

/// Gets by threads, most of a few keys, in a budget of a part of the data: it is kept, and the
/// counts are in it.
#[test]
fn i7_threads_read_more_than_fits_under_every_policy() {
    let policies = [
        Admission::Top { percent: 1 },
        Admission::Top { percent: 50 },
        Admission::OnUpdate,
        Admission::Never,
    ];
    for (i, admission) in policies.into_iter().enumerate() {
        for pair in pairs::chosen(i, policies.len()) {
            if pairs::keeps_nothing(pair) {
                continue;
            }
            let dir = fast_dir();
            let db = open(dir.path(), &pairs::options(pair, Options::new(4 * MIB)));
            let tree = db.tree_with("t", with(admission)).unwrap();
            (0..30_000).for_each(|n| tree.insert(key(n), [n as u8; 200]).unwrap());
            std::thread::scope(|s| {
                for t in 0..4 {
                    let (db, tree) = (&db, &tree);
                    s.spawn(move || read_and_write(db, tree, &mut Random(t)));
                }
            });
            let stats = db.stats();
            assert!(stats.not_admitted > 0 && stats.releases > 0, "{stats:?}");
            assert_sound(&db);
        }
    }
}

fn read_and_write(db: &Db, tree: &Tree, random: &mut Random) {
    for i in 0..6000 {
        let n = match random.one_in(2) {
            true => random.below(30_000),
            false => random.below(300),
        };
        match random.below(10) {
            0 => tree.insert(key(n), [n as u8; 200]).unwrap(),
            _ => assert_eq!(tree.get(key(n)).unwrap().unwrap(), [n as u8; 200]),
        }
        if i % 500 == 0 {
            let stats = db.stats();
            assert!(
                stats.memory_used_bytes <= stats.memory_budget_bytes,
                "{stats:?}"
            );
        }
    }
}

/// Whoever still holds the tree holds nothing of the budget.
#[test]
fn a_dropped_tree_gives_its_counts_back() {
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(64 * MIB));
    let used = || db.stats().memory_used_bytes as usize;
    let before = used();
    let top = Admission::Top { percent: 5 };
    let tree = db.tree_with("t", with(top)).unwrap();
    assert!(used() > before + MIB / 4);
    db.drop_tree("t").unwrap();
    assert!(used() < before + MIB / 4);
    assert_eq!(tree.admission(), top);
}
