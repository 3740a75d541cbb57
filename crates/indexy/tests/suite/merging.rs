//! Merges beside filters, transactions and large batches, keys of every length, and operators that
//! do not behave. The model, threads and kills are in `tests/merge.rs`.

use crate::{pairs, places::fast_dir, support::MIB};
use indexy::{Db, Durability, Error, Evicted, Merge, MergeOperator, Options, Tree, TreeOptions};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

fn add() -> TreeOptions {
    TreeOptions::new().merge_operator(MergeOperator::AddU64)
}

fn append(limit: usize) -> TreeOptions {
    TreeOptions::new().merge_operator(MergeOperator::Append {
        separator: b",".to_vec(),
        limit,
    })
}

/// What is dirty goes to disk, and what is clean out of memory.
fn release(tree: &Tree) {
    tree.release::<&[u8]>(..).unwrap();
}

fn number(value: Option<&[u8]>) -> u64 {
    value.map_or(0, |v| u64::from_be_bytes(v.try_into().unwrap()))
}

fn counter(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

fn sum(tree: &Tree) -> u64 {
    tree.iter().map(|e| number(Some(&e.unwrap().1))).sum()
}

/// Neighbours that wait in one leaf for what makes no difference.
#[test]
fn operands_that_make_no_difference_cost_a_read_each() {
    const KEYS: u64 = 64;
    for pair in pairs::chosen(2, 3) {
        for resolve in ["by a run", "by a reader"] {
            let dir = fast_dir();
            let db = Db::open(dir.path(), pairs::options(pair, Options::new(8 * MIB))).unwrap();
            let tree = db.tree_with("t", append(3)).unwrap();
            for n in 0..KEYS {
                tree.insert(n.to_be_bytes(), "abc").unwrap();
            }
            release(&tree);
            (0..KEYS).for_each(|n| tree.merge(n.to_be_bytes(), "x").unwrap());
            let before = db.stats().y_reads;
            match resolve {
                "by a run" => db.flush().unwrap(),
                _ => {
                    let keys: Vec<_> = (0..KEYS).map(u64::to_be_bytes).collect();
                    let values = tree.multi_get(&keys).unwrap();
                    assert!(values.iter().all(|value| value.as_deref() == Some(b"abc")));
                }
            }
            let reads = db.stats().y_reads - before;
            let name = pairs::name(pair);
            assert!(reads <= 2 * KEYS, "{name}: {reads} reads {resolve}");
            for n in 0..KEYS {
                assert_eq!(
                    tree.get(n.to_be_bytes()).unwrap().as_deref(),
                    Some(&b"abc"[..])
                );
            }
        }
    }
}

/// A filter that says that a key is absent on disk says nothing of what waits for it.
#[test]
fn a_filter_of_evicted_keys_hides_no_operand() {
    for pair in pairs::chosen(0, 3) {
        let dir = fast_dir();
        let db = Db::open(dir.path(), pairs::options(pair, Options::new(8 * MIB))).unwrap();
        let how = add().evicted(Evicted::Filter { bits_per_key: 10 });
        let tree = db.tree_with("t", how).unwrap();
        for n in 0..2000 {
            tree.insert(counter(n * 2), [0; 8]).unwrap();
        }
        db.flush().unwrap();
        release(&tree);
        let began = Instant::now();
        while db.stats().filters_building > 0 {
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(2));
        }
        for round in 1..4u64 {
            (0..4000).for_each(|n| tree.merge(counter(n), 1u64.to_be_bytes()).unwrap());
            let keys: Vec<_> = (0..4000).map(counter).collect();
            let values = tree.multi_get(&keys).unwrap();
            for (n, value) in values.iter().enumerate() {
                assert_eq!(number(value.as_deref()), round, "{n}");
            }
            (0..4000).for_each(|n| tree.merge(counter(n), 0u64.to_be_bytes()).unwrap());
            if round == 2 {
                release(&tree);
            }
            for n in 0..4000 {
                assert_eq!(
                    number(tree.get(counter(n)).unwrap().as_deref()),
                    round,
                    "{n}"
                );
            }
            assert_eq!(sum(&tree), 4000 * round);
            release(&tree);
        }
    }
}

/// A key that is overwritten where it has an operand: a snapshot sees what that made of it.
#[test]
fn a_snapshot_sees_what_an_operand_made_before_it_was_overwritten() {
    for pair in pairs::chosen(0, 3) {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path(), pairs::options(pair, Options::new(4 * MIB))).unwrap();
        let tree = db.tree_with("t", add()).unwrap();
        let one = 1u64.to_be_bytes();
        for key in ["overwritten", "removed", "other"] {
            tree.insert(key, one).unwrap();
        }
        release(&tree);
        tree.merge("overwritten", one).unwrap();
        tree.merge("removed", one).unwrap();
        let snapshot = db.snapshot().unwrap();
        // From the second one on, images are left by the search of the write.
        tree.insert("other", one).unwrap();
        tree.insert("overwritten", [0; 8]).unwrap();
        tree.remove("removed").unwrap();
        for key in ["overwritten", "removed"] {
            let seen = snapshot.get(&tree, key).unwrap();
            assert_eq!(number(seen.as_deref()), 2, "{} {key}", pairs::name(pair));
        }
    }
}

/// What a transaction has read, and what it merges into, conflicts with a merge of somebody else,
/// whether that reads the key or leaves an operand; and the other way round.
#[test]
fn a_merge_conflicts_with_what_a_transaction_has_read() {
    for pair in pairs::chosen(1, 3) {
        let dir = fast_dir();
        let db = Db::open(dir.path(), pairs::options(pair, Options::new(4 * MIB))).unwrap();
        let tree = db.tree_with("t", add()).unwrap();
        let one = 1u64.to_be_bytes();
        // In memory, on disk, there as an operand, and absent.
        for state in 0..4 {
            for merges in [false, true] {
                tree.clear().unwrap();
                tree.insert("other", one).unwrap();
                if state < 3 {
                    tree.insert("k", one).unwrap();
                }
                if state > 0 {
                    release(&tree);
                }
                if state == 2 {
                    tree.merge("k", one).unwrap();
                }
                let mut tx = db.begin().unwrap();
                match merges {
                    true => tx.merge(&tree, "k", one).unwrap(),
                    false => {
                        tx.get(&tree, "k").unwrap();
                        tx.insert(&tree, "other", one).unwrap();
                    }
                }
                let before = number(tree.get("k").unwrap().as_deref());
                if state > 0 {
                    release(&tree);
                }
                tree.merge("k", one).unwrap();
                let what = format!("{} {state} {merges}", pairs::name(pair));
                assert!(matches!(tx.commit(), Err(Error::Conflict { .. })), "{what}");
                assert_eq!(
                    number(tree.get("k").unwrap().as_deref()),
                    before + 1,
                    "{what}"
                );
                // A commit under a merge.
                let mut tx = db.begin().unwrap();
                tx.merge(&tree, "k", one).unwrap();
                release(&tree);
                tx.commit().unwrap();
                tree.merge("k", one).unwrap();
                assert_eq!(
                    number(tree.get("k").unwrap().as_deref()),
                    before + 3,
                    "{what}"
                );
            }
        }
    }
}

/// Many merges into one key of a batch are one write of what they make, also beside ranges that are
/// removed, where operations keep their order.
#[test]
fn a_batch_is_as_large_as_what_its_merges_make() {
    let dir = fast_dir();
    let db = Db::open(dir.path(), Options::new(2 * MIB)).unwrap();
    let tree = db.tree_with("t", append(100 << 10)).unwrap();
    tree.insert("k", vec![b'0'; 50 << 10]).unwrap();
    tree.insert("gone", "x").unwrap();
    release(&tree);
    let mut batch = db.batch();
    for n in 0..500 {
        batch.merge(&tree, "k", n.to_string());
        batch.merge(&tree, "gone", n.to_string());
        match n {
            100 => batch.remove_range(&tree, "g".."h"),
            200 => batch.insert(&tree, "gone", "a"),
            300 => batch.remove(&tree, "gone"),
            _ => {}
        }
    }
    batch.commit().unwrap();
    let list = |from: u32| {
        let parts = (from..500).map(|n| n.to_string());
        parts.collect::<Vec<_>>().join(",")
    };
    let value = tree.get("k").unwrap().unwrap();
    assert_eq!(value[50 << 10..], *format!(",{}", list(0)).as_bytes());
    assert_eq!(*tree.get("gone").unwrap().unwrap(), *list(301).as_bytes());
    // Each of them fits, and all of them do not.
    let mut batch = db.batch();
    for n in 0..40u8 {
        tree.insert([n], vec![n; 60 << 10]).unwrap();
        batch.merge(&tree, [n], "more");
    }
    assert!(matches!(batch.commit(), Err(Error::BatchTooLarge { .. })));
    assert_eq!(tree.get([7]).unwrap().unwrap().len(), 60 << 10);
    // What makes no difference is no write.
    let max = TreeOptions::new().merge_operator(MergeOperator::Max);
    let max = db.tree_with("max", max).unwrap();
    max.insert("k", "b").unwrap();
    let mut batch = db.batch();
    (0..3).for_each(|_| batch.merge(&max, "k", "a"));
    batch.commit().unwrap();
    let mut batch = db.batch();
    batch.merge(&max, "k", "a");
    batch.merge(&max, "k", "c");
    batch.merge(&max, "k", "b");
    batch.commit().unwrap();
    assert_eq!(max.get("k").unwrap().unwrap(), b"c");
    drop((tree, max, db));
    let db = Db::open(dir.path(), Options::new(2 * MIB)).unwrap();
    assert_eq!(db.tree("max").unwrap().get("k").unwrap().unwrap(), b"c");
}

/// The empty key and the longest ones wait as others do, over lives without a close.
#[test]
fn keys_of_every_length_wait() {
    for pair in pairs::chosen(2, 3) {
        let dir = fast_dir();
        let long = |last: u8| [vec![7; 65_533], vec![last]].concat();
        let keys = [vec![], vec![0], long(1), long(2), vec![255; 65_534]];
        let open = || {
            let db = Db::open(dir.path(), pairs::options(pair, Options::new(4 * MIB)));
            let db = db.unwrap();
            let tree = db.tree_with("t", add()).unwrap();
            (db, tree)
        };
        {
            let (db, tree) = open();
            for key in &keys {
                if let Err(error) = tree.insert(key, [0; 8]) {
                    assert!(matches!(error, Error::KeyTooLong { .. }), "{error}");
                }
            }
            db.flush().unwrap();
        }
        for life in 0..4u64 {
            let (_db, tree) = open();
            for key in &keys {
                let found = tree.get(key);
                if let Ok(Some(value)) = found {
                    assert_eq!(number(Some(&value)), life * 2, "{}", key.len());
                    tree.merge(key, 1u64.to_be_bytes()).unwrap();
                    release(&tree);
                    tree.merge(key, 1u64.to_be_bytes()).unwrap();
                }
            }
            if life % 2 == 0 {
                release(&tree);
            }
        }
    }
}

/// Panics when it meets a value, or makes too much of it.
struct Rude(AtomicU64);

impl Merge for Rude {
    fn name(&self) -> &str {
        "rude"
    }
    fn merge(&self, _: &[u8], base: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
        match self.0.load(Ordering::SeqCst) {
            1 => panic!("rude"),
            2 => vec![0; 200 << 10],
            _ => [base.unwrap_or_default(), operand].concat(),
        }
    }
    fn combine(&self, _: &[u8], earlier: &[u8], later: &[u8]) -> Vec<u8> {
        match self.0.load(Ordering::SeqCst) {
            3 => panic!("rude"),
            _ => [earlier, later].concat(),
        }
    }
    fn is_bounded(&self) -> bool {
        true
    }
}

/// A panic of an operator is its caller's, and nothing is written, locked or lost; in a thread of
/// the database it poisons. A value that is too long leaves the old one.
#[test]
fn an_operator_that_panics_or_makes_too_much_breaks_nothing() {
    let dir = fast_dir();
    let rude = Arc::new(Rude(AtomicU64::new(0)));
    let options = || {
        let options = Options::new(4 * MIB).durability(Durability::Sync);
        options.register_merge(rude.clone()).unwrap()
    };
    let db = Db::open(dir.path(), options()).unwrap();
    let how = TreeOptions::new().merge_operator(MergeOperator::Own("rude".into()));
    let tree = db.tree_with("t", how).unwrap();
    let caught = |call: &dyn Fn()| {
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err());
    };
    let now = |does: u64| rude.0.store(does, Ordering::SeqCst);
    for key in ["hot", "cold"] {
        tree.insert(key, "a").unwrap();
    }
    release(&tree);
    tree.get("hot").unwrap();
    tree.merge("cold", "b").unwrap();
    now(1);
    caught(&|| tree.merge("hot", "b").unwrap());
    caught(&|| drop(tree.get("cold")));
    caught(&|| drop(tree.multi_get(["cold"])));
    caught(&|| drop(tree.iter().collect::<Vec<_>>()));
    caught(&|| drop(tree.update("cold", |_| None)));
    caught(&|| {
        let mut batch = db.batch();
        batch.insert(&tree, "hot", "no");
        batch.merge(&tree, "cold", "c");
        drop(batch.commit());
    });
    now(3);
    caught(&|| tree.merge("cold", "c").unwrap());
    now(2);
    assert!(matches!(
        tree.merge("hot", "b"),
        Err(Error::MergeRefused { .. })
    ));
    assert_eq!(tree.get("hot").unwrap().unwrap(), b"a");
    now(0);
    assert_eq!(tree.get("hot").unwrap().unwrap(), b"a");
    assert_eq!(tree.get("cold").unwrap().unwrap(), b"ab");
    tree.merge("hot", "c").unwrap();
    release(&tree);
    tree.merge("cold", "d").unwrap();
    now(2);
    db.flush().unwrap();
    assert_eq!(tree.get("cold").unwrap().unwrap(), b"ab", "it was too much");
    now(0);
    release(&tree);
    tree.merge("cold", "e").unwrap();
    now(1);
    caught(&|| drop(db.flush()));
    now(0);
    tree.merge("hot", "f").unwrap();
    drop((tree, db));
    let tree = Db::open(dir.path(), options()).unwrap().tree("t").unwrap();
    assert_eq!(tree.get("cold").unwrap().unwrap(), b"abe");
    assert_eq!(tree.get("hot").unwrap().unwrap(), b"acf");
}

/// Operands, one behind the other, whose values grow.
struct Grows;

impl Merge for Grows {
    fn name(&self) -> &str {
        "grows"
    }
    fn merge(&self, key: &[u8], base: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
        self.combine(key, base.unwrap_or_default(), operand)
    }
    fn combine(&self, _: &[u8], earlier: &[u8], later: &[u8]) -> Vec<u8> {
        [earlier, later].concat()
    }
}

/// Each operand of one key fits or does not by itself: in memory, after a crash, and to whoever
/// salvages.
#[test]
fn operands_that_do_not_fit_together_are_merged_one_by_one() {
    const KEYS: [&str; 2] = ["read", "waits"];
    for pair in pairs::chosen(1, 3) {
        let dir = fast_dir();
        let (at, saved) = (dir.path().join("a"), dir.path().join("b"));
        let options = || {
            let options = pairs::options(pair, Options::new(8 * MIB));
            options.register_merge(Arc::new(Grows)).unwrap()
        };
        let how = TreeOptions::new().merge_operator(MergeOperator::Own("grows".into()));
        let base = vec![b'a'; 127 << 10];
        let parts = [vec![b'b'; 600], vec![b'c'; 600], vec![b'd'; 100]];
        let expected = [&base[..], &parts[0], &parts[2]].concat();
        let is_there = |tree: &Tree, key: &str| {
            let found = tree.get(key).unwrap().unwrap();
            assert!(found == expected[..], "{key} {}", found.len());
        };
        {
            let db = Db::open(&at, options()).unwrap();
            let tree = db.tree_with("t", how.clone()).unwrap();
            for key in KEYS {
                tree.insert(key, &base).unwrap();
            }
            release(&tree);
            for (key, part) in KEYS
                .iter()
                .flat_map(|key| parts.iter().map(move |p| (key, p)))
            {
                match tree.merge(key, part) {
                    // A pair that has the value in memory says so.
                    Ok(()) | Err(Error::MergeRefused { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            is_there(&tree, "read");
            // Left without a close: the log has the operands.
        }
        Db::salvage(&at, &saved, options(), indexy::Doubtful::Take).unwrap();
        for path in [&at, &saved] {
            let db = Db::open(path, options()).unwrap();
            let tree = db.tree("t").unwrap();
            KEYS.iter().for_each(|key| is_there(&tree, key));
        }
    }
}

/// A few bytes of operands beside values or keys that are large: what waits is counted as what it
/// is.
#[test]
fn small_operands_beside_large_entries_fit_a_smaller_budget() {
    let merge = |tree: &Tree, n| tree.merge(counter(n), 1u64.to_be_bytes()).unwrap();
    let large = vec![7; 2 * MIB];
    let long = |n: u64| [&n.to_be_bytes()[..], &[7; 60 << 10]].concat();
    for values in [true, false] {
        let dir = fast_dir();
        {
            let db = Db::open(dir.path(), Options::new(256 * MIB)).unwrap();
            let tree = db.tree_with("t", add()).unwrap();
            (0..20_000).for_each(|n| tree.insert(counter(n), [0; 8]).unwrap());
            release(&tree);
            match values {
                true => (0..19u8).for_each(|n| tree.insert([n], &large).unwrap()),
                false => (0..650).for_each(|n| tree.insert(long(n), [0; 8]).unwrap()),
            }
            (0..20_000).for_each(|n| merge(&tree, n));
            db.sync().unwrap();
        }
        let db = Db::open(dir.path(), Options::new(48 * MIB).read_only(true)).unwrap();
        let tree = db.tree("t").unwrap();
        assert_eq!(number(tree.get(counter(1)).unwrap().as_deref()), 1);
    }
}
