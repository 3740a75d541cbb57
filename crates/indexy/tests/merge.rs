//! Merges through the whole API, over every pair, in budgets so small that operands are resolved
//! and released all the time.
//!
//! A model test runs random calls against a map. Threads add to counters beside readers, flushes,
//! releases and snapshots, and each merge counts once; the same after kills of the process.
//! `INDEXY_MERGE_STEPS` (default 4,000) a case of the model, `INDEXY_MERGE_KILLS` (default 3) a
//! case.

#[path = "pairs/mod.rs"]
mod pairs;
mod places;

use indexy::{
    Change, Db, Durability, Error, Merge, MergeOperator, Options, Snapshot, Tree, TreeOptions,
};
use pairs::Pair;
use places::fast_dir;
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{
    collections::BTreeMap,
    path::Path,
    process::{Child, Command},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

const MIB: usize = 1 << 20;

fn setting(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |value| value.parse().unwrap())
}

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

// --- the model -----------------------------------------------------------------------

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

const LIMIT: usize = 300;

/// Keys of several leaves, and few enough to be met again.
fn key(n: u32) -> Vec<u8> {
    format!("{:03}/{n}", n * 7 % 400).into_bytes()
}

fn merged(map: &mut Map, key: &[u8], part: &[u8]) -> bool {
    let Some(value) = map.get_mut(key) else {
        map.insert(key.to_vec(), part.to_vec());
        return true;
    };
    let fits = value.len() + 1 + part.len() <= LIMIT;
    if fits {
        value.push(b',');
        value.extend(part);
    }
    fits
}

struct World {
    db: Db,
    tree: Tree,
    map: Map,
    snapshots: Vec<(Snapshot, Map)>,
    random: StdRng,
    written: u32,
}

impl World {
    fn any_key(&mut self) -> Vec<u8> {
        key(self.random.random_range(0..400))
    }

    /// No two are the same.
    fn any_part(&mut self) -> Vec<u8> {
        self.written += 1;
        let len = self.random.random_range(0..20);
        [self.written.to_string().into_bytes(), vec![b'.'; len]].concat()
    }

    fn merge(&mut self) {
        let (key, part) = (self.any_key(), self.any_part());
        let fits = merged(&mut self.map, &key, &part);
        match self.tree.merge(&key, &part) {
            Ok(()) => {}
            Err(Error::MergeRefused { .. }) => assert!(!fits),
            Err(e) => panic!("{e}"),
        }
    }

    fn batch(&mut self) {
        let mut batch = self.db.batch();
        let (mut map, mut fits) = (self.map.clone(), true);
        for _ in 0..self.random.random_range(1..8) {
            let (key, part) = (self.any_key(), self.any_part());
            match self.random.random_range(0..6) {
                0 => {
                    map.insert(key.clone(), part.clone());
                    batch.insert(&self.tree, key, part);
                }
                1 => {
                    map.remove(&key);
                    batch.remove(&self.tree, key);
                }
                _ => {
                    fits &= merged(&mut map, &key, &part);
                    batch.merge(&self.tree, key, part);
                }
            }
        }
        match batch.commit() {
            Ok(()) => self.map = map,
            Err(Error::MergeRefused { .. }) => assert!(!fits),
            Err(e) => panic!("{e}"),
        }
    }

    fn transaction(&mut self) {
        let mut tx = self.db.begin().unwrap();
        for _ in 0..3 {
            let (key, part) = (self.any_key(), self.any_part());
            let fits = merged(&mut self.map, &key, &part);
            assert_eq!(tx.merge(&self.tree, &key, &part).is_ok(), fits);
            let found = tx.get(&self.tree, &key).unwrap();
            assert_eq!(found.as_deref(), self.map.get(&key).map(|v| &v[..]));
        }
        tx.commit().unwrap();
    }

    /// A read of one key, in one of the many ways.
    fn read(&mut self) {
        let key = self.any_key();
        let is = self.map.get(&key).cloned();
        let tree = &self.tree;
        let found = match self.random.random_range(0..7) {
            0 => tree.get(&key).unwrap().map(|v| v.to_vec()),
            1 => tree.get_with(&key, <[u8]>::to_vec).unwrap(),
            2 => tree
                .try_get(&key)
                .unwrap()
                .wait()
                .unwrap()
                .map(|v| v.to_vec()),
            3 => {
                assert_eq!(tree.contains_key(&key).unwrap(), is.is_some());
                return;
            }
            4 => {
                let keys = [
                    b"none".to_vec(),
                    key.clone(),
                    self.map.keys().next().cloned().unwrap_or_default(),
                ];
                let values = tree.multi_get(&keys).unwrap();
                for (key, value) in keys.iter().zip(values) {
                    assert_eq!(value.as_deref(), self.map.get(key).map(|v| &v[..]));
                }
                return;
            }
            5 => {
                self.map.remove(&key);
                tree.take(&key).unwrap().map(|v| v.to_vec())
            }
            _ => {
                let new = tree.update(&key, |old| {
                    assert_eq!(old, is.as_deref());
                    old.map(|old| old[..old.len() / 2].to_vec())
                });
                let new = new.unwrap().map(|v| v.to_vec());
                if let Some(new) = &new {
                    self.map.insert(key, new.clone());
                }
                assert_eq!(new.is_some(), is.is_some());
                return;
            }
        };
        assert_eq!(found, is);
    }

    fn scan(&mut self) {
        let (a, b) = (self.any_key(), self.any_key());
        let (from, to) = (a.clone().min(b.clone()), a.max(b));
        let is: Vec<_> = self.map.range(from.clone()..to.clone()).collect();
        let pairs = |range: indexy::Range| -> Vec<_> {
            range
                .map(|e| e.unwrap())
                .map(|(k, v)| (k.to_vec(), v.to_vec()))
                .collect()
        };
        let found = pairs(self.tree.range(&from[..]..&to[..]));
        assert!(found.iter().map(|(k, v)| (k, v)).eq(is.iter().copied()));
        let back: Vec<_> = self
            .tree
            .range(&from[..]..&to[..])
            .rev()
            .map(|e| e.unwrap().1.to_vec())
            .collect();
        assert!(back.iter().eq(is.iter().rev().map(|(_, v)| *v)));
        assert_eq!(self.tree.len().unwrap(), self.map.len() as u64);
        let ends =
            |e: Option<(indexy::Key, indexy::Value)>| e.map(|(k, v)| (k.to_vec(), v.to_vec()));
        let own = |e: Option<(&Vec<u8>, &Vec<u8>)>| e.map(|(k, v)| (k.clone(), v.clone()));
        assert_eq!(
            ends(self.tree.first().unwrap()),
            own(self.map.first_key_value())
        );
        assert_eq!(
            ends(self.tree.last().unwrap()),
            own(self.map.last_key_value())
        );
    }

    fn snapshots(&mut self) {
        if self.snapshots.len() < 3 {
            self.snapshots
                .push((self.db.snapshot().unwrap(), self.map.clone()));
            return;
        }
        let (snapshot, map) = self.snapshots.remove(0);
        match snapshot.iter(&self.tree).collect::<Result<Vec<_>, _>>() {
            Ok(found) => {
                let found = found.iter().map(|(k, v)| (k.to_vec(), v.to_vec()));
                assert!(found.eq(map.into_iter()));
            }
            Err(Error::SnapshotTooOld) => {}
            Err(e) => panic!("{e}"),
        }
    }

    fn step(&mut self) {
        match self.random.random_range(0..100) {
            0..=44 => self.merge(),
            45..=51 => self.batch(),
            52..=54 => self.transaction(),
            55..=72 => self.read(),
            73..=76 => {
                let (key, value) = (self.any_key(), self.any_part());
                self.tree.insert(&key, &value).unwrap();
                self.map.insert(key, value);
            }
            77..=80 => {
                let key = self.any_key();
                self.tree.remove(&key).unwrap();
                self.map.remove(&key);
            }
            81..=82 => {
                let (a, b) = (self.any_key(), self.any_key());
                let (from, to) = (a.clone().min(b.clone()), a.max(b));
                self.tree.remove_range(&from[..]..&to[..]).unwrap();
                self.map.retain(|k, _| *k < from || *k >= to);
            }
            83 => {
                if self.random.random_range(0..4) == 0 {
                    self.tree.clear().unwrap();
                    self.map.clear();
                }
            }
            84..=86 => self.scan(),
            87..=90 => self.snapshots(),
            91..=92 => {
                if let Some((key, value)) = self.tree.pop_first().unwrap() {
                    assert_eq!(self.map.pop_first(), Some((key.to_vec(), value.to_vec())));
                }
            }
            93 => {
                let report = self.db.verify().unwrap();
                assert!(report.is_ok(), "{report:?}");
            }
            94 => self.db.flush().unwrap(),
            _ => release(&self.tree),
        }
    }
}

#[test]
fn a_merge_does_what_a_map_does() {
    for pair in pairs::chosen(0, 1) {
        let dir = fast_dir();
        let (mut map, mut written) = (Map::new(), 0);
        // Once more, after it was left open, with the log.
        for life in 0..3 {
            let options = Options::new(2 * MIB).durability(Durability::Sync);
            let options = options.log_limit_bytes(1 << 20);
            let db = Db::open(dir.path(), pairs::options(pair, options)).unwrap();
            let tree = db.tree_with("t", append(LIMIT)).unwrap();
            let found = tree.iter().map(|e| e.unwrap());
            let found: Map = found.map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
            assert_eq!(found, map, "{} {life}", pairs::name(pair));
            let mut world = World {
                db,
                tree,
                map,
                snapshots: Vec::new(),
                random: StdRng::seed_from_u64(life),
                written,
            };
            for _ in 0..setting("INDEXY_MERGE_STEPS", 4000) / 3 {
                world.step();
            }
            world.scan();
            (map, written) = (world.map, world.written);
        }
    }
}

// --- counters ---------------------------------------------------------------------------

const THREADS: u64 = 4;
const COUNTERS: u64 = 40_000;

fn counter(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

fn sum(tree: &Tree) -> u64 {
    tree.iter().map(|e| number(Some(&e.unwrap().1))).sum()
}

/// Cold counters, several times the budget, and a hot one.
#[test]
fn each_merge_of_many_threads_counts_once() {
    for pair in pairs::chosen(0, 1) {
        let dir = fast_dir();
        let options = || pairs::options(pair, Options::new(2 * MIB).log_limit_bytes(2 << 20));
        let db = Db::open(dir.path(), options()).unwrap();
        let tree = db.tree_with("t", add()).unwrap();
        for n in 0..COUNTERS {
            tree.insert(counter(n), 0u64.to_be_bytes()).unwrap();
        }
        db.flush().unwrap();
        release(&tree);
        let (done, merged) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|s| {
            for thread in 0..THREADS {
                let (tree, merged) = (&tree, &merged);
                s.spawn(move || {
                    let mut random = StdRng::seed_from_u64(thread);
                    for i in 0..15_000u64 {
                        let n = match i % 4 {
                            0 => 17,
                            _ => random.random_range(0..COUNTERS),
                        };
                        tree.merge(counter(n), 1u64.to_be_bytes()).unwrap();
                        merged.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            s.spawn(|| {
                let mut random = StdRng::seed_from_u64(99);
                let mut newest = vec![0; 64];
                while !done.load(Ordering::Relaxed) {
                    // A counter never goes back, and a snapshot stands still.
                    for (n, before) in newest.iter_mut().enumerate() {
                        let now = number(tree.get(counter(n as u64)).unwrap().as_deref());
                        assert!(now >= *before, "{n}: {now} after {before}");
                        *before = now;
                    }
                    let at = counter(random.random_range(0..64));
                    let snapshot = db.snapshot().unwrap();
                    if let (Ok(a), Ok(b)) = (snapshot.get(&tree, at), {
                        std::thread::sleep(Duration::from_millis(2));
                        snapshot.get(&tree, at)
                    }) {
                        assert_eq!(a, b);
                    }
                    match random.random_range(0..8) {
                        0 => db.flush().unwrap(),
                        1 => release(&tree),
                        2 => assert_eq!(tree.len().unwrap(), COUNTERS),
                        _ => {}
                    }
                }
            });
            while merged.load(Ordering::Relaxed) < THREADS * 15_000 {
                std::thread::sleep(Duration::from_millis(5));
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(sum(&tree), THREADS * 15_000, "{}", pairs::name(pair));
        drop((tree, db));
        let db = Db::open(dir.path(), options()).unwrap();
        assert_eq!(sum(&db.tree("t").unwrap()), THREADS * 15_000);
        assert!(db.verify().unwrap().is_ok());
    }
}

// --- kills -----------------------------------------------------------------------------------

const CHILD: &str = "INDEXY_MERGE_CHILD";

fn of_child(dir: &Path, pair: Pair) -> Db {
    let options = Options::new(2 * MIB)
        .durability(Durability::Buffered { interval_ms: 5 })
        .log_limit_bytes(1 << 20);
    Db::open(dir, pairs::options(pair, options)).unwrap()
}

/// The process that is killed: merges one and the same amount into two counters by a batch, and
/// into many by single merges, each of which it counts by a merge of its own after it.
#[test]
fn child_that_merges() {
    let Ok(argument) = std::env::var(CHILD) else {
        return;
    };
    let (pair, dir) = argument.split_once(' ').unwrap();
    let db = of_child(Path::new(dir), pairs::named(pair));
    let tree = db.tree_with("t", add()).unwrap();
    let one = 1u64.to_be_bytes();
    let mut random = StdRng::seed_from_u64(std::process::id().into());
    for i in 0u64.. {
        // Cold, for the most part.
        tree.merge(counter(random.random_range(0..COUNTERS)), one)
            .unwrap();
        tree.merge("total", one).unwrap();
        if i % 16 == 0 {
            let mut batch = db.batch();
            batch.merge(&tree, "a", one);
            batch.merge(&tree, "b", one);
            batch.commit().unwrap();
        }
        if i % 500 == 0 {
            release(&tree);
        }
    }
}

fn start(dir: &Path, pair: Pair) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_merges", "--nocapture"])
        .env(CHILD, format!("{} {}", pairs::name(pair), dir.display()))
        .spawn()
        .unwrap()
}

/// What is left is what a first part of all merges makes: the sum of the counters is their total,
/// or one more for a kill, and a batch is whole.
#[test]
fn i8_each_merge_counts_once_over_kills() {
    std::thread::scope(|s| {
        for pair in pairs::chosen(0, 1) {
            s.spawn(move || counts_once_over_kills(pair));
        }
    });
}

fn counts_once_over_kills(pair: Pair) {
    let dir = fast_dir();
    {
        let db = of_child(dir.path(), pair);
        let tree = db.tree_with("t", add()).unwrap();
        for n in 0..COUNTERS {
            tree.insert(counter(n), 0u64.to_be_bytes()).unwrap();
        }
        db.close().unwrap();
    }
    let (mut before, mut splits) = (0, 0);
    for round in 0..setting("INDEXY_MERGE_KILLS", 2) {
        let mut child = start(dir.path(), pair);
        std::thread::sleep(Duration::from_millis(400 + 150 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let db = of_child(dir.path(), pair);
        let tree = db.tree("t").unwrap();
        let of = |key: &str| number(tree.get(key).unwrap().as_deref());
        let (total, a, b) = (of("total"), of("a"), of("b"));
        let counted: u64 = (0..COUNTERS)
            .map(|n| number(tree.get(counter(n)).unwrap().as_deref()))
            .sum();
        let what = format!("{} {round}: {counted} counted, {total}", pairs::name(pair));
        // Between the two merges of a pair, once a kill at most.
        let split = counted - total;
        assert!(split == splits || split == splits + 1, "{what}");
        splits = split;
        assert!(total >= before, "{what} after {before}");
        assert_eq!(a, b, "{what}");
        before = total;
    }
    assert!(before > 0, "nothing was merged");
}

/// The only key that disk has goes while an operand of another one waits. So disk has nothing when
/// the log is replayed, and what replay made of the operand when it is replayed again.
#[test]
fn i8_a_merge_counts_once_when_the_log_is_replayed_over_another_disk_index() {
    for pair in pairs::chosen(0, 1) {
        // The log may be cut in time, and nothing is shown then.
        for _ in 0..8 {
            let dir = fast_dir();
            let open = || Db::open(dir.path(), pairs::options(pair, Options::new(2 * MIB)));
            {
                let db = open().unwrap();
                let tree = db.tree_with("t", add()).unwrap();
                tree.insert("other", [0; 8]).unwrap();
                release(&tree);
                tree.merge("k", 1u64.to_be_bytes()).unwrap();
                tree.remove_range("other"..="other").unwrap();
                db.sync().unwrap();
            }
            for _ in 0..3 {
                let db = open().unwrap();
                let tree = db.tree("t").unwrap();
                let counted = number(tree.get("k").unwrap().as_deref());
                assert_eq!(counted, 1, "{}", pairs::name(pair));
                release(&tree);
            }
        }
    }
}

// --- what is refused, and what is remembered ----------------------------------------------------

fn open(dir: &Path) -> Db {
    Db::open(dir, Options::new(4 * MIB)).unwrap()
}

#[test]
fn what_cannot_be_merged_is_refused_and_nothing_is_written() {
    let dir = fast_dir();
    let db = open(dir.path());
    let (plain, counters) = (db.tree("plain").unwrap(), db.tree_with("n", add()).unwrap());
    let refused = |merged: indexy::Result<()>| {
        assert!(
            matches!(merged, Err(Error::MergeRefused { .. })),
            "{merged:?}"
        );
    };
    let missing = plain.merge("k", [0; 8]);
    assert!(matches!(missing, Err(Error::MergeOperatorMissing { .. })));
    refused(counters.merge("k", b"seven.."));
    let mut batch = db.batch();
    batch.insert(&counters, "other", "");
    batch.merge(&counters, "k", b"seven..");
    refused(batch.commit());
    counters.insert("text", "abc").unwrap();
    refused(counters.merge("text", [0; 8]));
    assert_eq!(counters.len().unwrap(), 1);
    // The same where the value turns out later.
    db.flush().unwrap();
    release(&counters);
    counters.merge("text", [1; 8]).unwrap();
    counters.merge("new", [1; 8]).unwrap();
    assert_eq!(counters.get("text").unwrap().unwrap(), b"abc");
    db.flush().unwrap();
    release(&counters);
    assert_eq!(counters.get("text").unwrap().unwrap(), b"abc");
    assert_eq!(counters.get("new").unwrap().unwrap(), [1; 8]);
    let lists = db.tree_with("lists", append(10)).unwrap();
    refused(lists.merge("k", [b'x'; 11]));
    lists.merge("k", "123456").unwrap();
    refused(lists.merge("k", "7890"));
    lists.merge("k", "789").unwrap();
    assert_eq!(lists.get("k").unwrap().unwrap(), b"123456,789");
    assert!(matches!(
        db.tree_with("lists", append(11)),
        Err(Error::TreeMismatch { .. })
    ));
    assert!(matches!(
        db.tree_with("wrong", append(0)),
        Err(Error::InvalidOption { .. })
    ));
}

/// What a value past memory has under it goes first.
#[test]
fn large_values_and_long_operands_are_merged_too() {
    let dir = fast_dir();
    let db = Db::open(dir.path(), Options::new(2 * MIB)).unwrap();
    let max = TreeOptions::new().merge_operator(MergeOperator::Max);
    let tree = db.tree_with("t", max).unwrap();
    tree.insert("k", "a").unwrap();
    tree.insert("l", "a").unwrap();
    release(&tree);
    tree.merge("k", "b").unwrap();
    let large = vec![b'c'; 400 << 10];
    tree.insert("k", &large).unwrap();
    assert_eq!(tree.get("k").unwrap().unwrap(), large);
    tree.merge("k", "b").unwrap();
    assert_eq!(tree.get("k").unwrap().unwrap(), large);
    tree.merge("k", "d").unwrap();
    assert_eq!(tree.get("k").unwrap().unwrap(), b"d");
    let long = vec![b'x'; 100 << 10];
    tree.merge("l", &long).unwrap();
    release(&tree);
    tree.merge("l", "y").unwrap();
    tree.merge("l", &long).unwrap();
    assert_eq!(tree.get("l").unwrap().unwrap(), b"y");
    assert!(db.verify().unwrap().is_ok());
}

/// Operands put together, one after the other.
struct Chain;

impl Merge for Chain {
    fn name(&self) -> &str {
        "chain"
    }
    fn check(&self, _: &[u8], operand: &[u8]) -> Result<(), String> {
        match operand {
            [] => Err("it is empty".into()),
            _ => Ok(()),
        }
    }
    fn merge(&self, key: &[u8], base: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
        self.combine(key, base.unwrap_or_default(), operand)
    }
    fn combine(&self, _: &[u8], earlier: &[u8], later: &[u8]) -> Vec<u8> {
        [earlier, later].concat()
    }
}

#[test]
fn an_operator_of_the_program_is_needed_where_merges_wait() {
    let dir = fast_dir();
    let own = || {
        let options = Options::new(4 * MIB).durability(Durability::Sync);
        options.register_merge(Arc::new(Chain)).unwrap()
    };
    let chained = || TreeOptions::new().merge_operator(MergeOperator::Own("chain".into()));
    {
        let db = Db::open(dir.path(), own()).unwrap();
        let tree = db.tree_with("t", chained()).unwrap();
        assert!(matches!(
            tree.merge("k", ""),
            Err(Error::MergeRefused { .. })
        ));
        tree.insert("k", "a").unwrap();
        db.flush().unwrap();
        release(&tree);
        for part in ["b", "c", "d"] {
            tree.merge("k", part).unwrap();
        }
    }
    // Left without a close: the operands are in the log.
    let without = Db::open(dir.path(), Options::new(4 * MIB));
    assert!(matches!(without, Err(Error::MergeOperatorMissing { .. })));
    {
        let db = Db::open(dir.path(), own().read_only(true)).unwrap();
        let tree = db.tree("t").unwrap();
        assert_eq!(tree.get("k").unwrap().unwrap(), b"abcd");
        assert_eq!(tree.iter().count(), 1);
    }
    let none = Db::open(dir.path(), own().durability(Durability::None));
    assert!(matches!(none, Err(Error::Unsupported { .. })));
    {
        let db = Db::open(dir.path(), own()).unwrap();
        assert_eq!(db.tree("t").unwrap().get("k").unwrap().unwrap(), b"abcd");
        db.close().unwrap();
    }
    let db = open(dir.path());
    let tree = db.tree("t").unwrap();
    assert_eq!(tree.get("k").unwrap().unwrap(), b"abcd");
    assert!(matches!(
        tree.merge("k", "e"),
        Err(Error::MergeOperatorMissing { .. })
    ));
    assert!(matches!(
        db.tree_with("t", chained()),
        Err(Error::MergeOperatorMissing { .. })
    ));
}

/// A merge of a key that is not in memory reads nothing.
#[test]
fn a_cold_merge_reads_nothing() {
    let dir = fast_dir();
    let db = open(dir.path());
    let tree = db.tree_with("t", add()).unwrap();
    for n in 0..1000 {
        tree.insert(counter(n), 1u64.to_be_bytes()).unwrap();
    }
    release(&tree);
    let before = db.stats();
    for n in 0..1000 {
        tree.merge(counter(n), 2u64.to_be_bytes()).unwrap();
        tree.merge(counter(n), 3u64.to_be_bytes()).unwrap();
    }
    let after = db.stats();
    assert_eq!(after.y_reads, before.y_reads);
    assert_eq!(sum(&tree), 6000);
}

#[test]
fn followers_hear_of_merges_once() {
    let dir = fast_dir();
    let db = open(dir.path());
    let tree = db.tree_with("t", add()).unwrap();
    tree.insert("k", 1u64.to_be_bytes()).unwrap();
    release(&tree);
    let from = db.newest_change().unwrap();
    tree.merge("k", 2u64.to_be_bytes()).unwrap();
    release(&tree);
    tree.merge("k", 4u64.to_be_bytes()).unwrap();
    assert_eq!(number(tree.get("k").unwrap().as_deref()), 7);
    tree.merge("k", 8u64.to_be_bytes()).unwrap();
    db.sync().unwrap();
    let mut value = 1;
    for set in db.changes(from).unwrap() {
        for change in set.unwrap().iter() {
            match change {
                Change::Merge { operand, .. } => value += number(Some(operand)),
                Change::Insert { value: v, .. } => value = number(Some(v)),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(value, 15);
}

#[test]
fn checkpoints_and_salvage_have_merges_once() {
    let dir = fast_dir();
    let (at, copy, saved) = (
        dir.path().join("a"),
        dir.path().join("b"),
        dir.path().join("c"),
    );
    {
        let db = Db::open(&at, Options::new(2 * MIB)).unwrap();
        let tree = db.tree_with("t", add()).unwrap();
        for n in 0..5000 {
            tree.insert(counter(n), 1u64.to_be_bytes()).unwrap();
        }
        release(&tree);
        for n in 0..5000 {
            tree.merge(counter(n), 1u64.to_be_bytes()).unwrap();
            if n % 1000 == 999 {
                release(&tree);
            }
        }
        tree.merge(counter(1), 1u64.to_be_bytes()).unwrap();
        db.checkpoint(&copy).unwrap();
        db.sync().unwrap();
    }
    let copied = open(&copy);
    assert_eq!(sum(&copied.tree("t").unwrap()), 10_001);
    let report = Db::salvage(&at, &saved, Options::new(2 * MIB), indexy::Doubtful::Take).unwrap();
    assert!(report.losses.is_empty(), "{report:?}");
    assert_eq!(sum(&open(&saved).tree("t").unwrap()), 10_001);
}

/// Operands whose values are lost are left, not merged into nothing.
#[test]
fn salvage_invents_no_value_by_a_merge() {
    for pair in pairs::chosen(0, 1) {
        let dir = fast_dir();
        let (at, saved) = (dir.path().join("a"), dir.path().join("b"));
        let options = || pairs::options(pair, Options::new(2 * MIB));
        {
            let db = Db::open(&at, options()).unwrap();
            let tree = db.tree_with("t", add()).unwrap();
            for n in 0..3000 {
                tree.insert(counter(n), 100u64.to_be_bytes()).unwrap();
            }
            db.flush().unwrap();
            release(&tree);
            for n in 0..3000 {
                tree.merge(counter(n), 1u64.to_be_bytes()).unwrap();
            }
            db.sync().unwrap();
            // As after a crash: the operands are in the log alone.
            let crashed = dir.path().join("crashed");
            db.checkpoint(&crashed).unwrap();
            drop(tree);
            db.close().unwrap();
            std::fs::remove_dir_all(&at).unwrap();
            std::fs::rename(&crashed, &at).unwrap();
        }
        // Every page of the disk index.
        let mut dirs = vec![at.join("trees")];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    dirs.push(path);
                    continue;
                }
                let mut bytes = std::fs::read(&path).unwrap();
                for at in (64..bytes.len()).step_by(512) {
                    bytes[at] ^= 1;
                }
                std::fs::write(&path, bytes).unwrap();
            }
        }
        for doubtful in [indexy::Doubtful::LeaveOut, indexy::Doubtful::Take] {
            let report = Db::salvage(&at, &saved, options(), doubtful).unwrap();
            assert!(!report.is_whole());
            let db = Db::open(&saved, options()).unwrap();
            for entry in db.tree_with("t", add()).unwrap().iter() {
                let value = number(Some(&entry.unwrap().1));
                assert!(matches!(value, 100 | 101), "{value}");
            }
            db.close().unwrap();
            std::fs::remove_dir_all(&saved).unwrap();
        }
    }
}

/// A batch that removes two ranges: no reader sees an operand of the second one merged into nothing
/// while X drops the first one.
#[test]
fn operands_of_all_ranges_of_a_batch_go_before_their_values() {
    let dir = fast_dir();
    let db = Db::open(dir.path(), Options::new(32 * MIB)).unwrap();
    let tree = db.tree_with("t", add()).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|s| {
        let (tree, stop) = (&tree, &stop);
        s.spawn(move || {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let value = tree.get("m").unwrap().map(|v| number(Some(&v)));
                assert!(matches!(value, None | Some(100 | 101)), "{value:?}");
            }
        });
        for _ in 0..20 {
            for n in 0..20_000u32 {
                tree.insert(
                    [b"a", &n.to_be_bytes()[..]].concat(),
                    n.to_be_bytes().repeat(2),
                )
                .unwrap();
            }
            tree.insert("m", 100u64.to_be_bytes()).unwrap();
            db.flush().unwrap();
            tree.release("l".."n").unwrap();
            tree.merge("m", 1u64.to_be_bytes()).unwrap();
            let mut batch = db.batch();
            batch.remove_range(tree, "a".."b");
            batch.remove_range(tree, "l".."n");
            batch.commit().unwrap();
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
