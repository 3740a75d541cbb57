//! Transactions through the API: isolation case by case (the names are those of Adya's phenomena,
//! as the Hermitage suite tests them), their own writes, savepoints, errors, and threads.

use crate::{
    pairs,
    places::fast_dir,
    support::{MIB, Random, assert_sound, open},
};
use indexy::{
    Db, Error, Isolation, MergeOperator, Options, RetryPolicy, Transaction, Tree, TreeOptions,
    Value,
};
use std::{
    collections::BTreeMap,
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

struct Rig {
    _dir: tempfile::TempDir,
    db: Db,
    tree: Tree,
}

/// Two rows: 1 is 10 and 2 is 20.
fn rig() -> Rig {
    rig_with(&Options::new(4 * MIB))
}

fn rig_with(options: &Options) -> Rig {
    let dir = fast_dir();
    let db = open(dir.path(), options);
    let tree = db.tree("test").unwrap();
    tree.insert("1", "10").unwrap();
    tree.insert("2", "20").unwrap();
    Rig {
        _dir: dir,
        db,
        tree,
    }
}

impl Rig {
    fn begin(&self, isolation: Isolation) -> Transaction {
        let mut tx = self.db.begin().unwrap();
        tx.isolation(isolation);
        tx
    }

    fn get(&self, tx: &Transaction, key: &str) -> String {
        let value = tx.get(&self.tree, key).unwrap().unwrap();
        String::from_utf8(value.to_vec()).unwrap()
    }

    fn put(&self, tx: &mut Transaction, key: &str, value: &str) {
        tx.insert(&self.tree, key, value).unwrap();
    }

    fn now(&self, key: &str) -> Option<String> {
        let value = self.tree.get(key).unwrap();
        value.map(|value| String::from_utf8(value.to_vec()).unwrap())
    }

    /// Keys whose value is a multiple of three.
    fn thirds(&self, tx: &Transaction) -> Vec<Vec<u8>> {
        let third = |value: &Value| {
            let number: u32 = std::str::from_utf8(value).unwrap().parse().unwrap();
            number.is_multiple_of(3)
        };
        let all = tx.iter(&self.tree).map(Result::unwrap);
        all.filter(|(_, value)| third(value))
            .map(|(key, _)| key.to_vec())
            .collect()
    }
}

fn conflicts(result: indexy::Result<()>) -> bool {
    match result {
        Ok(()) => false,
        Err(Error::Conflict { tree, .. }) => {
            assert_eq!(tree, "test");
            true
        }
        Err(error) => panic!("{error}"),
    }
}

const BOTH: [Isolation; 2] = [Isolation::Serializable, Isolation::Snapshot];

#[test]
fn g0_dirty_writes() {
    for isolation in BOTH {
        let rig = rig();
        let (mut one, mut two) = (rig.begin(isolation), rig.begin(isolation));
        rig.put(&mut one, "1", "11");
        rig.put(&mut two, "1", "12");
        rig.put(&mut one, "2", "21");
        one.commit().unwrap();
        assert_eq!(
            (rig.now("1").unwrap(), rig.now("2").unwrap()),
            ("11".into(), "21".into())
        );
        rig.put(&mut two, "2", "22");
        // Blind writes: serially one after the other, or refused. Never mixed.
        match conflicts(two.commit()) {
            true => assert_eq!(rig.now("1").unwrap() + &rig.now("2").unwrap(), "1121"),
            false => assert_eq!(rig.now("1").unwrap() + &rig.now("2").unwrap(), "1222"),
        }
    }
}

#[test]
fn g1a_aborted_and_g1b_intermediate_reads() {
    for isolation in BOTH {
        let rig = rig();
        let mut one = rig.begin(isolation);
        rig.put(&mut one, "1", "101");
        assert_eq!(rig.get(&rig.begin(isolation), "1"), "10");
        one.rollback();
        assert_eq!(rig.get(&rig.begin(isolation), "1"), "10");
        let mut one = rig.begin(isolation);
        rig.put(&mut one, "1", "101");
        let two = rig.begin(isolation);
        rig.put(&mut one, "1", "11");
        one.commit().unwrap();
        assert_eq!(rig.get(&two, "1"), "10");
    }
}

#[test]
fn g1c_circular_information_flow() {
    for isolation in BOTH {
        let rig = rig();
        let (mut one, mut two) = (rig.begin(isolation), rig.begin(isolation));
        rig.put(&mut one, "1", "11");
        rig.put(&mut two, "2", "22");
        assert_eq!(rig.get(&one, "2"), "20");
        assert_eq!(rig.get(&two, "1"), "10");
        one.commit().unwrap();
        assert_eq!(
            conflicts(two.commit()),
            isolation == Isolation::Serializable
        );
    }
}

#[test]
fn otv_observed_transaction_vanishes() {
    for isolation in BOTH {
        let rig = rig();
        let mut one = rig.begin(isolation);
        rig.put(&mut one, "1", "11");
        rig.put(&mut one, "2", "19");
        one.commit().unwrap();
        let three = rig.begin(isolation);
        assert_eq!(rig.get(&three, "1"), "11");
        let mut two = rig.begin(isolation);
        rig.put(&mut two, "1", "12");
        rig.put(&mut two, "2", "18");
        two.commit().unwrap();
        assert_eq!(rig.get(&three, "2"), "19");
        assert_eq!(rig.get(&three, "1"), "11");
        three.commit().unwrap();
    }
}

#[test]
fn pmp_predicate_many_preceders() {
    for isolation in BOTH {
        let rig = rig();
        let (one, mut two) = (rig.begin(isolation), rig.begin(isolation));
        assert!(rig.thirds(&one).is_empty());
        rig.put(&mut two, "3", "30");
        two.commit().unwrap();
        assert!(rig.thirds(&one).is_empty());
    }
}

#[test]
fn p4_lost_update() {
    for isolation in BOTH {
        let rig = rig();
        let (mut one, mut two) = (rig.begin(isolation), rig.begin(isolation));
        assert_eq!(rig.get(&one, "1"), "10");
        assert_eq!(rig.get(&two, "1"), "10");
        rig.put(&mut one, "1", "11");
        rig.put(&mut two, "1", "11");
        one.commit().unwrap();
        assert!(conflicts(two.commit()));
    }
}

/// The same against every other way to write.
#[test]
fn p4_lost_update_beside_plain_writes() {
    type Other = fn(&Rig);
    let others: [Other; 6] = [
        |rig| rig.tree.insert("1", "11").unwrap(),
        |rig| rig.tree.remove("1").unwrap(),
        |rig| {
            let old = rig.tree.update("1", |_| Some(b"11".to_vec()));
            assert!(old.unwrap().is_some());
        },
        |rig| {
            assert!(
                rig.tree
                    .compare_and_swap("1", Some("10"), Some("11"))
                    .unwrap()
            )
        },
        |rig| {
            let mut batch = rig.db.batch();
            batch.insert(&rig.tree, "1", "11");
            batch.commit().unwrap();
        },
        |rig| rig.tree.remove_range("0".."2").unwrap(),
    ];
    for isolation in BOTH {
        for (i, other) in others.iter().enumerate() {
            let rig = rig();
            let mut tx = rig.begin(isolation);
            assert_eq!(rig.get(&tx, "1"), "10");
            rig.put(&mut tx, "1", "12");
            other(&rig);
            assert!(conflicts(tx.commit()), "{isolation:?} {i}");
            assert_ne!(rig.now("1").as_deref(), Some("12"));
        }
    }
}

#[test]
fn g_single_read_skew() {
    for isolation in BOTH {
        let rig = rig();
        let (mut one, mut two) = (rig.begin(isolation), rig.begin(isolation));
        assert_eq!(rig.get(&one, "1"), "10");
        assert_eq!(rig.get(&two, "1"), "10");
        assert_eq!(rig.get(&two, "2"), "20");
        rig.put(&mut two, "1", "12");
        rig.put(&mut two, "2", "18");
        two.commit().unwrap();
        assert_eq!(rig.get(&one, "2"), "20");
        // A deletion by what it saw.
        one.remove(&rig.tree, "2").unwrap();
        assert!(conflicts(one.commit()));
        assert_eq!(rig.now("2").unwrap(), "18");
    }
}

#[test]
fn g2_item_write_skew() {
    for isolation in BOTH {
        let rig = rig();
        let (mut one, mut two) = (rig.begin(isolation), rig.begin(isolation));
        for tx in [&one, &two] {
            assert_eq!(rig.get(tx, "1") + &rig.get(tx, "2"), "1020");
        }
        rig.put(&mut one, "1", "11");
        rig.put(&mut two, "2", "21");
        one.commit().unwrap();
        assert_eq!(
            conflicts(two.commit()),
            isolation == Isolation::Serializable
        );
    }
}

#[test]
fn g2_item_write_skew_is_refused_where_it_is_asked_for() {
    let rig = rig();
    let (mut one, mut two) = (
        rig.begin(Isolation::Snapshot),
        rig.begin(Isolation::Snapshot),
    );
    for tx in [&one, &two] {
        for key in ["1", "2"] {
            tx.get_for_update(&rig.tree, key).unwrap();
        }
    }
    rig.put(&mut one, "1", "11");
    rig.put(&mut two, "2", "21");
    one.commit().unwrap();
    assert!(conflicts(two.commit()));
}

#[test]
fn g2_anti_dependency_cycles_over_phantoms() {
    for isolation in BOTH {
        let rig = rig();
        let (mut one, mut two) = (rig.begin(isolation), rig.begin(isolation));
        assert!(rig.thirds(&one).is_empty() && rig.thirds(&two).is_empty());
        rig.put(&mut one, "3", "30");
        rig.put(&mut two, "4", "42");
        one.commit().unwrap();
        assert_eq!(
            conflicts(two.commit()),
            isolation == Isolation::Serializable
        );
    }
}

/// A range that ends before it begins has no keys, and takes nothing back of what was read beside
/// it.
#[test]
fn ranges_without_keys_hide_no_read() {
    use std::ops::Bound::{Excluded, Included};
    let nothing = (Excluded("1"), Excluded("1"));
    let first = (Included("1"), Excluded("3"));
    let second = (Included("0"), Excluded("2"));
    // What is read in this order; the row "1" is in one of both.
    for (reads, written) in [
        ([first, (Included("5"), Excluded("1"))], "1"),
        ([first, (Included("3"), Excluded("0"))], "1"),
        ([(Included("2"), Excluded("0")), second], "1"),
        ([first, nothing], "1"),
        ([nothing, first], "1"),
        ([first, (Included("5"), Excluded("1"))], "15"),
    ] {
        let rig = rig();
        let mut one = rig.begin(Isolation::Serializable);
        for read in reads {
            assert!(
                one.range::<&str>(&rig.tree, read)
                    .all(|entry| entry.is_ok())
            );
        }
        rig.tree.insert(written, "11").unwrap();
        rig.put(&mut one, "7", "sum");
        assert!(conflicts(one.commit()), "{reads:?} {written}");
    }
}

/// Fekete's anomaly: a reader that commits first is in the cycle, too.
#[test]
fn g2_two_edges() {
    let rig = rig();
    let mut one = rig.begin(Isolation::Serializable);
    assert_eq!(rig.get(&one, "1") + &rig.get(&one, "2"), "1020");
    let mut two = rig.begin(Isolation::Serializable);
    let old = rig.get(&two, "2");
    rig.put(&mut two, "2", &(old + "5"));
    two.commit().unwrap();
    let three = rig.begin(Isolation::Serializable);
    assert_eq!(rig.get(&three, "1") + &rig.get(&three, "2"), "10205");
    three.commit().unwrap();
    rig.put(&mut one, "1", "0");
    assert!(conflicts(one.commit()));
}

#[test]
fn a_range_is_read_as_far_as_it_was_walked() {
    for (read, written, conflict) in [
        (2, "b", true),
        (2, "b1", false),
        (2, "a1", true),
        (9, "zz", true),
    ] {
        let rig = rig();
        for key in ["a", "b", "c", "d"] {
            rig.tree.insert(key, "").unwrap();
        }
        let mut tx = rig.begin(Isolation::Serializable);
        tx.range(&rig.tree, "a"..)
            .take(read)
            .for_each(|entry| drop(entry.unwrap()));
        rig.put(&mut tx, "other", "");
        rig.tree.insert(written, "theirs").unwrap();
        assert_eq!(conflicts(tx.commit()), conflict, "{read} {written}");
        // From the other end.
        let mut tx = rig.begin(Isolation::Serializable);
        tx.range(&rig.tree, "a".."e")
            .rev()
            .take(2)
            .for_each(|entry| drop(entry.unwrap()));
        rig.put(&mut tx, "other", "");
        rig.tree.insert("b2", "theirs").unwrap();
        tx.commit().unwrap();
        let mut tx = rig.begin(Isolation::Serializable);
        tx.range(&rig.tree, "a".."e")
            .rev()
            .take(2)
            .for_each(|entry| drop(entry.unwrap()));
        rig.put(&mut tx, "other", "");
        rig.tree.insert("c2", "theirs").unwrap();
        assert!(conflicts(tx.commit()));
    }
}

/// What was read takes more than its limit: neighbours are joined, and no conflict is missed.
#[test]
fn many_reads_are_all_remembered() {
    let rig = rig();
    for n in 0..20_000u32 {
        rig.tree.insert(n.to_be_bytes(), "").unwrap();
    }
    for missed in [0u32, 1, 9_998, 10_000, 19_998] {
        let mut tx = rig.begin(Isolation::Serializable);
        for n in (0..20_000u32).rev().filter(|n| n % 2 == 0 || *n == missed) {
            tx.get(&rig.tree, n.to_be_bytes()).unwrap();
        }
        rig.put(&mut tx, "other", "");
        rig.tree.insert(missed.to_be_bytes(), "theirs").unwrap();
        assert!(conflicts(tx.commit()), "{missed}");
    }
}

#[test]
fn who_only_reads_always_commits() {
    let rig = rig();
    let tx = rig.begin(Isolation::Serializable);
    assert_eq!(rig.get(&tx, "1"), "10");
    rig.tree.insert("1", "11").unwrap();
    assert_eq!(rig.get(&tx, "1"), "10");
    tx.commit().unwrap();
}

fn plain(entry: indexy::Result<(indexy::Key, Value)>) -> (Vec<u8>, Vec<u8>) {
    let (key, value) = entry.unwrap();
    (key.to_vec(), value.to_vec())
}

/// A random range of the transaction, from the front and from both ends in turn.
fn check_range(
    tx: &Transaction,
    tree: &Tree,
    model: &BTreeMap<Vec<u8>, Vec<u8>>,
    random: &mut Random,
) {
    let (a, b) = (random.below(40) as u8, random.below(40) as u8);
    let (from, to) = (vec![a.min(b)], vec![a.max(b)]);
    let wanted: Vec<_> = model.range(from.clone()..to.clone()).collect();
    let found: Vec<_> = tx
        .range(tree, from.clone()..to.clone())
        .map(plain)
        .collect();
    assert!(found.iter().map(|(k, v)| (k, v)).eq(wanted.iter().copied()));
    let mut range = tx.range(tree, from..to);
    let (mut front, mut back) = (Vec::new(), Vec::new());
    while let Some(entry) = range.next() {
        front.push(plain(entry));
        back.extend(range.next_back().map(plain));
    }
    back.reverse();
    front.extend(back);
    assert!(front.iter().map(|(k, v)| (k, v)).eq(wanted));
}

/// Random writes, reads and savepoints in a transaction, against a map.
#[test]
fn its_own_writes_over_its_snapshot() {
    for pair in pairs::chosen(0, 2) {
        let dir = fast_dir();
        let db = open(dir.path(), &pairs::options(pair, Options::new(4 * MIB)));
        let tree = db.tree("t").unwrap();
        let mut random = Random(7);
        let mut committed: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for round in 0..60u8 {
            let mut model = committed.clone();
            let mut tx = db.begin().unwrap();
            // Others write meanwhile, to keys that the transaction does not see so.
            tree.insert([200, round], "theirs").unwrap();
            let mut saved = None;
            for _ in 0..random.below(200) {
                let key = vec![random.below(40) as u8, 1];
                match random.below(12) {
                    0..=4 => {
                        tx.insert(&tree, &key, [round]).unwrap();
                        model.insert(key, vec![round]);
                    }
                    5..=7 => {
                        tx.remove(&tree, &key).unwrap();
                        model.remove(&key);
                    }
                    8 => saved = Some((tx.savepoint(), model.clone())),
                    9 => {
                        if let Some((savepoint, then)) = saved.clone() {
                            tx.rollback_to(savepoint).unwrap();
                            model = then;
                        }
                    }
                    10 => {
                        let found = tx.get_untracked(&tree, &key).unwrap();
                        assert_eq!(found.as_deref(), model.get(&key).map(Vec::as_slice));
                    }
                    _ => check_range(&tx, &tree, &model, &mut random),
                }
            }
            let keys = [[1, 1], [2, 1], [1, 1]];
            let wanted: Vec<_> = keys
                .iter()
                .map(|key| model.get(&key[..]).map(|v| Value::from(&v[..])))
                .collect();
            assert_eq!(tx.multi_get(&tree, keys).unwrap(), wanted);
            // Scans have read what lies between; others wrote beyond it alone.
            if random.one_in(4) {
                tx.rollback();
                continue;
            }
            tx.commit().unwrap();
            committed = model;
        }
        let left: BTreeMap<_, _> = tree
            .range([0u8]..[100])
            .map(Result::unwrap)
            .map(|(key, value)| (key.to_vec(), value.to_vec()))
            .collect();
        assert_eq!(left, committed);
        assert_sound(&db);
    }
}

#[test]
fn mistakes_leave_the_transaction_as_it_was() {
    let (ours, theirs) = (rig(), rig());
    let mut tx = ours.begin(Isolation::Serializable);
    let foreign = |result: indexy::Result<()>| matches!(result, Err(Error::ForeignTree));
    assert!(foreign(tx.insert(&theirs.tree, "1", "")));
    assert!(foreign(tx.remove(&theirs.tree, "1")));
    assert!(foreign(tx.get(&theirs.tree, "1").map(drop)));
    assert!(foreign(tx.iter(&theirs.tree).next().unwrap().map(drop)));
    let mut batch = theirs.db.batch();
    batch.insert(&theirs.tree, "1", "");
    assert!(foreign(tx.append(batch)));
    let long = vec![0; 70_000];
    assert!(matches!(
        tx.insert(&ours.tree, &long, ""),
        Err(Error::KeyTooLong { .. })
    ));
    let large = vec![0; tx.limit()];
    assert!(matches!(
        tx.insert(&ours.tree, "1", &large),
        Err(Error::BatchTooLarge { .. })
    ));
    let mut batch = ours.db.batch();
    batch.insert(&ours.tree, "9", "");
    batch.remove_range(&ours.tree, "1".."2");
    assert!(matches!(tx.append(batch), Err(Error::Unsupported { .. })));
    // Over the limit by what an operation counts beside key and value.
    let large = vec![0; tx.limit() - 10];
    assert!(matches!(
        tx.insert(&ours.tree, "1", &large),
        Err(Error::BatchTooLarge { .. })
    ));
    let mut other = ours.begin(Isolation::Serializable);
    let theirs = other.savepoint();
    assert!(matches!(
        tx.rollback_to(theirs),
        Err(Error::Unsupported { .. })
    ));
    let mut cursor = other.cursor(&ours.tree, "1"..);
    assert!(matches!(cursor.next(&tx), Err(Error::Unsupported { .. })));
    assert!(tx.is_empty());
    rig_dropped(tx, &ours);
}

fn rig_dropped(mut tx: Transaction, rig: &Rig) {
    rig.put(&mut tx, "1", "11");
    rig.db.drop_tree("test").unwrap();
    assert!(matches!(tx.commit(), Err(Error::TreeDropped { .. })));
}

#[test]
fn a_closure_that_panics_or_fails_writes_nothing() {
    let rig = rig();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        rig.db.transact_with(
            &RetryPolicy::new().alone_after(0),
            |tx| -> indexy::Result<()> {
                rig.put(tx, "1", "11");
                panic!("by the test");
            },
        )
    }));
    assert!(panicked.is_err());
    #[derive(Debug)]
    struct Mine;
    impl From<Error> for Mine {
        fn from(_: Error) -> Self {
            Self
        }
    }
    let failed = rig
        .db
        .transact_with(&RetryPolicy::new(), |tx| -> Result<(), Mine> {
            rig.put(tx, "1", "11");
            Err(Mine)
        });
    assert!(failed.is_err());
    assert_eq!(rig.now("1").unwrap(), "10");
    // The turn was given back.
    rig.db
        .transact(|tx| tx.insert(&rig.tree, "1", "12"))
        .unwrap();
    assert_eq!(rig.now("1").unwrap(), "12");
}

#[test]
fn inside_an_update_a_commit_is_reentrant_and_alone_a_nested_one_is_not() {
    let rig = rig();
    rig.tree
        .update("1", |_| {
            let mut tx = rig.db.begin().unwrap();
            assert_eq!(rig.get(&tx, "2"), "20");
            rig.put(&mut tx, "2", "21");
            assert!(matches!(tx.commit(), Err(Error::Reentrant)));
            Some(b"11".to_vec())
        })
        .unwrap();
    let alone = RetryPolicy::new().alone_after(0);
    rig.db
        .transact_with(&alone, |outer| -> indexy::Result<()> {
            rig.put(outer, "1", "12");
            rig.db.transact_with(&alone, |inner| {
                rig.put(inner, "2", "22");
                Ok(())
            })
        })
        .unwrap();
    assert_eq!(
        (rig.now("1").unwrap(), rig.now("2").unwrap()),
        ("12".into(), "22".into())
    );
}

/// Inside an `update`, whose key another thread writes that has the turn alone, or whose commit
/// the turn waits for: nobody waits for the other.
#[test]
fn inside_an_update_a_commit_waits_for_no_turn() {
    for alone_inside in [false, true] {
        let rig = rig();
        let (inside, begun) = (Barrier::new(2), Barrier::new(2));
        let policy = |alone: bool| RetryPolicy::new().alone_after(if alone { 0 } else { 64 });
        let ended = AtomicU64::new(0);
        std::thread::scope(|s| {
            s.spawn(|| {
                let updated = rig.tree.update("1", |_| {
                    inside.wait();
                    begun.wait();
                    // The other one waits for this key, most likely.
                    std::thread::sleep(Duration::from_millis(100));
                    let done = rig
                        .db
                        .transact_with(&policy(alone_inside), |tx| tx.insert(&rig.tree, "2", "21"));
                    assert!(matches!(done, Err(Error::Reentrant)));
                    Some(b"11".to_vec())
                });
                updated.unwrap();
                ended.fetch_add(1, SeqCst);
            });
            s.spawn(|| {
                inside.wait();
                let first = AtomicBool::new(true);
                rig.db
                    .transact_with(&policy(!alone_inside), |tx| {
                        if first.swap(false, SeqCst) {
                            begun.wait();
                        }
                        tx.insert(&rig.tree, "1", "12")
                    })
                    .unwrap();
                ended.fetch_add(1, SeqCst);
            });
            let deadline = Instant::now() + Duration::from_secs(60);
            while ended.load(SeqCst) < 2 {
                if Instant::now() > deadline {
                    eprintln!("they wait for each other");
                    std::process::abort();
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        assert_eq!(rig.now("1").unwrap(), "12");
    }
}

#[test]
fn savepoints_that_were_passed_are_refused_and_what_they_remember_is_bounded() {
    let rig = rig();
    let mut tx = rig.begin(Isolation::Serializable);
    let first = tx.savepoint();
    rig.put(&mut tx, "a", "1");
    let second = tx.savepoint();
    tx.rollback_to(first).unwrap();
    rig.put(&mut tx, "b", "2");
    assert!(matches!(
        tx.rollback_to(second),
        Err(Error::Unsupported { .. })
    ));
    assert_eq!(tx.len(), 1);
    tx.rollback_to(first).unwrap();
    assert!(tx.is_empty());
    let overwrite = |tx: &mut Transaction| {
        let written = (0..100).find(|_| tx.insert(&rig.tree, "c", vec![0; 100_000]).is_err());
        written.unwrap()
    };
    let fit = overwrite(&mut tx);
    tx.rollback_to(first).unwrap();
    assert_eq!(overwrite(&mut tx), fit);
    tx.commit().unwrap();
    // What was read for update counts although the write that was read is taken back.
    let mut tx = rig.begin(Isolation::Snapshot);
    let first = tx.savepoint();
    rig.put(&mut tx, "1", "11");
    tx.get_for_update(&rig.tree, "1").unwrap();
    tx.rollback_to(first).unwrap();
    rig.put(&mut tx, "2", "21");
    rig.tree.insert("1", "12").unwrap();
    assert!(conflicts(tx.commit()));
}

/// What a commit leaves for others is more than may be kept, or a single large value.
#[test]
fn a_commit_does_not_give_itself_up() {
    let sizes = [(1, 700_000), (12, 100_000)];
    for ((keys, len), disk) in sizes
        .into_iter()
        .flat_map(|size| [(size, 0), (size, u64::MAX)])
    {
        let rig = rig_with(&Options::new(4 * MIB).snapshot_disk_bytes(disk));
        for key in 0..keys {
            let mut batch = rig.db.batch();
            batch.insert(&rig.tree, [key], vec![1; len]);
            batch.commit().unwrap();
        }
        let old = rig.db.snapshot().unwrap();
        let mut tx = rig.begin(Isolation::Serializable);
        for key in 0..keys {
            assert_eq!(tx.get(&rig.tree, [key]).unwrap().unwrap().len(), len);
            tx.insert(&rig.tree, [key], "small").unwrap();
        }
        tx.commit().unwrap();
        match (old.get(&rig.tree, [0]), disk) {
            (Err(Error::SnapshotTooOld), 0) => {}
            (found, _) => assert_eq!(found.unwrap().unwrap().len(), len),
        }
        assert_sound(&rig.db);
    }
}

/// Four threads keep an index of rows by their colour. With batches alone it ends with entries that
/// no row has.
#[test]
fn a_secondary_index_equals_its_rows() {
    for pair in pairs::chosen(1, 2) {
        let dir = fast_dir();
        let db = open(dir.path(), &pairs::options(pair, Options::new(4 * MIB)));
        let (rows, index) = (
            db.tree("rows").unwrap(),
            db.tree_with("index", pairs::second(pair)).unwrap(),
        );
        std::thread::scope(|s| {
            for thread in 0..4 {
                let (db, rows, index) = (&db, &rows, &index);
                s.spawn(move || {
                    let mut random = Random(thread);
                    for n in 0..500 {
                        let row = [random.below(8) as u8];
                        let colour = random.below(5) as u8;
                        db.transact(|tx| {
                            if let Some(old) = tx.get(rows, row)? {
                                tx.remove(index, [old[0], row[0]])?;
                            }
                            if random.one_in(5) {
                                tx.remove(rows, row)?;
                            } else {
                                tx.insert(rows, row, [colour])?;
                                tx.insert(index, [colour, row[0]], "")?;
                            }
                            Ok(())
                        })
                        .unwrap();
                        if n % 100 == 0 {
                            db.flush().unwrap();
                        }
                    }
                });
            }
        });
        let snapshot = db.snapshot().unwrap();
        let mut wanted: Vec<[u8; 2]> = snapshot
            .iter(&rows)
            .map(|entry| entry.map(|(row, colour)| [colour[0], row[0]]).unwrap())
            .collect();
        wanted.sort_unstable();
        let found: Vec<[u8; 2]> = snapshot
            .iter(&index)
            .map(|entry| entry.unwrap().0[..].try_into().unwrap())
            .collect();
        assert_eq!(found, wanted);
        assert_sound(&db);
    }
}

/// Everybody counts the same keys up: nobody starves, nothing is lost.
#[test]
fn under_contention_every_transaction_ends() {
    let rig = rig();
    let attempts = AtomicU64::new(0);
    std::thread::scope(|s| {
        for _ in 0..8 {
            s.spawn(|| {
                for _ in 0..200 {
                    rig.db
                        .transact(|tx| {
                            attempts.fetch_add(1, SeqCst);
                            for key in ["1", "2"] {
                                let number: u64 = rig.get(tx, key).parse().unwrap();
                                rig.put(tx, key, &(number + 1).to_string());
                            }
                            Ok(())
                        })
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(
        (rig.now("1").unwrap(), rig.now("2").unwrap()),
        ("1610".into(), "1620".into())
    );
    println!("{} attempts for 1600", attempts.load(SeqCst));
}

/// Those that have written nothing say so, too.
#[test]
fn a_commit_after_a_close_is_refused() {
    let Rig { _dir, db, tree } = rig();
    let begun = || db.begin().unwrap();
    let (empty, read, mut wrote) = (begun(), begun(), begun());
    read.get(&tree, "1").unwrap();
    wrote.insert(&tree, "1", "11").unwrap();
    db.close().unwrap();
    for tx in [empty, read, wrote] {
        let committed = tx.commit();
        assert!(matches!(committed, Err(Error::Closed)), "{committed:?}");
    }
    let nothing = db.batch().commit();
    assert!(matches!(nothing, Err(Error::Closed)), "{nothing:?}");
}

/// To drop a tree is to write what was read of it, whether that was written before or not.
#[test]
fn what_was_read_of_a_tree_that_was_dropped_has_changed() {
    for (isolation, for_update, written) in [
        (Isolation::Serializable, false, true),
        (Isolation::Serializable, false, false),
        (Isolation::Serializable, true, true),
        (Isolation::Snapshot, true, true),
        (Isolation::Snapshot, true, false),
    ] {
        let rig = rig();
        let other = rig.db.tree("other").unwrap();
        let mut tx = rig.db.begin().unwrap();
        tx.isolation(isolation);
        match for_update {
            true => tx.get_for_update(&rig.tree, "1").unwrap(),
            false => tx.get(&rig.tree, "1").unwrap(),
        };
        tx.insert(&other, "key", "10").unwrap();
        if written {
            rig.tree.insert("1", "11").unwrap();
        }
        rig.db.drop_tree("test").unwrap();
        let refused = tx.commit();
        assert!(
            matches!(refused, Err(Error::TreeDropped { .. })),
            "{isolation:?}: {refused:?}"
        );
        assert_eq!(other.get("key").unwrap(), None);
    }
    // What it does not depend on may go.
    let rig = rig();
    let other = rig.db.tree("other").unwrap();
    let mut tx = rig.db.begin().unwrap();
    tx.isolation(Isolation::Snapshot);
    tx.get(&rig.tree, "1").unwrap();
    tx.insert(&other, "key", "10").unwrap();
    rig.db.drop_tree("test").unwrap();
    tx.commit().unwrap();
}

/// A merge is a read and a write of its key, also where the value stays as it is.
#[test]
fn a_merge_that_changes_nothing_conflicts_with_a_write() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let rig = rig();
        let options = TreeOptions::new().merge_operator(MergeOperator::Max);
        let greatest = rig.db.tree_with("greatest", options).unwrap();
        greatest.insert("key", "7").unwrap();
        let mut tx = rig.db.begin().unwrap();
        tx.isolation(isolation);
        tx.merge(&greatest, "key", "5").unwrap();
        assert!(tx.is_empty());
        tx.insert(&rig.tree, "3", "30").unwrap();
        greatest.insert("key", "1").unwrap();
        let refused = tx.commit();
        assert!(
            matches!(&refused, Err(Error::Conflict { tree, .. }) if tree == "greatest"),
            "{isolation:?}: {refused:?}"
        );
        assert_eq!(rig.tree.get("3").unwrap(), None);
    }
}
