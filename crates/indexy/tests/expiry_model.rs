//! Trees whose entries expire, against maps that filter by time: every call, with a clock that
//! jumps, small budgets, snapshots, transactions, forced cleaning and release, sweeps, and
//! reopening in between.
//!
//! `INDEXY_TEST_PAIRS` says with which pairs of indexes (`pairs/mod.rs`); `INDEXY_EXPIRY_OPS` sets
//! the number of operations per case and pair, `INDEXY_EXPIRY_SEED` the first seed,
//! `INDEXY_EXPIRY_CASES` the number of cases.

mod pairs;
mod places;

use indexy::{
    Clock, Db, Error, Expires, Isolation, Key, Options, Result, Snapshot, Transaction, Tree,
    TreeOptions, Ttl, Value,
};
use pairs::Pair;
use places::fast_dir;
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{
    collections::BTreeMap,
    ops::Bound,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const NEVER: u64 = u64::MAX;
const START: u64 = 1_000_000;
const KEYS: u64 = 3000;

/// What somebody sees.
type Map = BTreeMap<Vec<u8>, Vec<u8>>;
/// What a transaction writes; `None`: it removes the key.
type Ours = BTreeMap<Vec<u8>, Option<(Vec<u8>, u64)>>;
/// What each key has, and when that expires; what has expired stays in it.
type Model = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

#[derive(Debug)]
struct ByHand(AtomicU64);

impl Clock for ByHand {
    fn now(&self) -> SystemTime {
        moment(self.0.load(SeqCst))
    }
}

fn moment(at: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(at)
}

fn setting(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.and_then(|v| v.parse().ok()).unwrap_or(default)
}

fn seen(model: &Model, at: u64) -> Map {
    let live = model.iter().filter(|(_, (_, expires))| *expires > at);
    live.map(|(k, (v, _))| (k.clone(), v.clone())).collect()
}

fn live(model: &Model, key: &[u8], at: u64) -> Option<Vec<u8>> {
    let found = model.get(key).filter(|(_, expires)| *expires > at);
    found.map(|(value, _)| value.clone())
}

struct Run {
    rng: StdRng,
    options: Options,
    pair: Pair,
    clock: Arc<ByHand>,
    now: u64,
    default: u64,
    db: Db,
    tree: Tree,
    model: Model,
    /// Open snapshots, and what each of them sees.
    snapshots: Vec<(Snapshot, Map)>,
    conflicts: u64,
    swept: u64,
}

fn ttl_of(default: u64) -> Ttl {
    match default {
        NEVER => Ttl::PerEntry,
        ms => Ttl::Default(Duration::from_millis(ms)),
    }
}

fn open(path: &Path, options: &Options, pair: Pair, default: u64) -> (Db, Tree) {
    let db = Db::open(path, pairs::options(pair, options.clone())).unwrap();
    let ttl = TreeOptions::new().ttl(ttl_of(default));
    let tree = db.tree_with("t", ttl).unwrap();
    (db, tree)
}

impl Run {
    fn key(&mut self) -> Vec<u8> {
        let n = self.rng.random_range(0..KEYS);
        match n % 3 {
            0 => n.to_be_bytes().to_vec(),
            1 => format!("user/{n:05}").into_bytes(),
            _ => "abc".repeat((n % 40) as usize).into_bytes(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        let len = match self.rng.random_range(0..20) {
            0 => 0,
            1 => self.rng.random_range(0..3000),
            _ => self.rng.random_range(0..80),
        };
        vec![self.rng.random(); len]
    }

    fn after(&self, ttl: u64) -> u64 {
        self.now.saturating_add(ttl)
    }

    /// Time goes on, or tries to go back.
    fn tick(&mut self) {
        match self.rng.random_range(0..12) {
            0 => {
                // What the database was never told it does not know.
                drop(self.db.snapshot().unwrap());
                self.clock.0.store(self.now - 500, SeqCst);
                return;
            }
            1 => self.now += self.rng.random_range(0..3000),
            _ => self.now += self.rng.random_range(0..20),
        }
        self.clock.0.store(self.now, SeqCst);
    }

    fn write(&mut self) {
        let (k, v) = (self.key(), self.value());
        let (tree, expires) = (&self.tree, self.after(self.default));
        match self.rng.random_range(0..30) {
            0..=8 => {
                tree.insert(&k, &v).unwrap();
                self.model.insert(k, (v, expires));
            }
            9..=14 => {
                let ttl = 1 << self.rng.random_range(0..14);
                tree.insert_with_ttl(&k, &v, Duration::from_millis(ttl))
                    .unwrap();
                self.model.insert(k, (v, self.after(ttl)));
            }
            15 => {
                let at = self.now.saturating_sub(50) + self.rng.random_range(0..200);
                tree.insert_until(&k, &v, Expires::At(moment(at))).unwrap();
                self.model.insert(k, (v, at));
            }
            16 => {
                tree.insert_until(&k, &v, Expires::Never).unwrap();
                self.model.insert(k, (v, NEVER));
            }
            17..=18 => {
                tree.remove(&k).unwrap();
                self.model.remove(&k);
            }
            19..=26 => self.change(k, v),
            27 => self.pop(),
            28 => self.batch(),
            _ => self.rare(k),
        }
    }

    /// Writes that look at what is there.
    fn change(&mut self, k: Vec<u8>, v: Vec<u8>) {
        let (tree, expires) = (&self.tree, self.after(self.default));
        match self.rng.random_range(19..27) {
            19..=20 => {
                let had = live(&self.model, &k, self.now);
                assert_eq!(tree.take(&k).unwrap().map(Vec::from), had);
                if had.is_some() {
                    self.model.remove(&k);
                }
            }
            21..=23 => {
                let had = live(&self.model, &k, self.now);
                let old = match self.rng.random() {
                    true => had.clone(),
                    false => Some(v.clone()),
                };
                let new = (!self.rng.random_bool(0.2)).then(|| v.clone());
                let swapped = tree.compare_and_swap(&k, old.as_ref(), new.as_ref());
                assert_eq!(swapped.unwrap(), old == had);
                if old == had {
                    match new {
                        Some(new) => self.model.insert(k, (new, expires)),
                        None => self.model.remove(&k),
                    };
                }
            }
            _ => {
                let had = live(&self.model, &k, self.now);
                let change = |old: Option<&[u8]>| {
                    assert_eq!(old.map(<[u8]>::to_vec), had);
                    Some([old.unwrap_or(b"new"), b"+"].concat())
                };
                let new = tree.update(&k, change).unwrap().unwrap();
                let kept = match had {
                    Some(_) => self.model[&k].1,
                    None => expires,
                };
                self.model.insert(k, (new.to_vec(), kept));
            }
        }
    }

    /// What makes much else go.
    fn rare(&mut self, k: Vec<u8>) {
        let tree = &self.tree;
        match self.rng.random_range(0..30) {
            0 => {
                let tail: u8 = self.rng.random_range(0..4);
                tree.retain(|key, _| key.last().is_none_or(|last| last % 4 != tail))
                    .unwrap();
                let now = self.now;
                self.model.retain(|key, (_, expires)| {
                    *expires <= now || key.last().is_none_or(|last| last % 4 != tail)
                });
            }
            1 => {
                let to = self.key();
                let (from, to) = (k.clone().min(to.clone()), k.max(to));
                self.tree.remove_range(&from[..]..&to[..]).unwrap();
                self.model.retain(|key, _| *key < from || *key >= to);
            }
            2 => self.load(),
            _ => {}
        }
    }

    fn pop(&mut self) {
        let seen = seen(&self.model, self.now);
        let (popped, expected) = match self.rng.random() {
            true => (self.tree.pop_first(), seen.first_key_value()),
            false => (self.tree.pop_last(), seen.last_key_value()),
        };
        let popped = popped.unwrap().map(|(k, v)| (k.to_vec(), v.to_vec()));
        assert_eq!(popped, expected.map(|(k, v)| (k.clone(), v.clone())));
        if let Some((key, _)) = popped {
            self.model.remove(&key);
        }
    }

    fn batch(&mut self) {
        let mut batch = self.db.batch();
        for _ in 0..self.rng.random_range(0..20) {
            let (k, v) = (self.key(), self.value());
            match self.rng.random_range(0..4) {
                0 => {
                    batch.remove(&self.tree, &k);
                    self.model.remove(&k);
                }
                1 => {
                    let ttl = self.rng.random_range(1..500);
                    batch.insert_with_ttl(&self.tree, &k, &v, Duration::from_millis(ttl));
                    self.model.insert(k, (v, self.after(ttl)));
                }
                _ => {
                    batch.insert(&self.tree, &k, &v);
                    self.model.insert(k, (v, self.after(self.default)));
                }
            }
        }
        batch.commit().unwrap();
    }

    /// Loads sorted keys where nothing is seen, or tries to.
    fn load(&mut self) {
        let from = self.key();
        let over = |n: u32| [&from[..], &n.to_be_bytes()].concat();
        let count = self.rng.random_range(1..100u32);
        let entries: Vec<_> = (0..count).map(|n| (over(n), self.value())).collect();
        let range = over(0)..=over(count - 1);
        let seen = self.model.range(range.clone());
        let empty = seen.clone().all(|(_, (_, expires))| *expires <= self.now);
        let kept = !self.snapshots.is_empty();
        match self.tree.load_sorted(entries.iter().map(|(k, v)| (k, v))) {
            Ok(_) => {
                assert!(empty);
                let expires = self.after(self.default);
                let new = entries.into_iter().map(|(k, v)| (k, (v, expires)));
                self.model.retain(|key, _| !range.contains(key));
                self.model.extend(new);
            }
            Err(Error::RangeNotEmpty { .. }) => assert!(!empty || kept),
            Err(Error::Unsupported { .. }) => {}
            Err(e) => panic!("{e}"),
        }
    }

    fn read(&mut self) {
        let (k, tree) = (self.key(), &self.tree);
        let expected = live(&self.model, &k, self.now);
        match self.rng.random_range(0..14) {
            0..=4 => assert_eq!(tree.get(&k).unwrap().map(Vec::from), expected, "{k:?}"),
            5 => assert_eq!(tree.get_with(&k, <[u8]>::to_vec).unwrap(), expected),
            6 => {
                let found = tree.try_get(&k).unwrap().wait().unwrap();
                assert_eq!(found.map(Vec::from), expected);
            }
            7 => {
                assert_eq!(tree.contains_key(&k).unwrap(), expected.is_some());
                let expires = expected.map(|_| match self.model[&k].1 {
                    NEVER => Expires::Never,
                    at => Expires::At(moment(at)),
                });
                assert_eq!(tree.expires_at(&k).unwrap(), expires);
            }
            8 => {
                let keys: Vec<_> = (0..20).map(|_| self.key()).collect();
                let found = self.tree.multi_get(&keys).unwrap().into_iter();
                let found: Vec<_> = found.map(|v| v.map(Vec::from)).collect();
                let expected = keys.iter().map(|k| live(&self.model, k, self.now));
                assert_eq!(found, expected.collect::<Vec<_>>());
            }
            9 => {
                let seen = seen(&self.model, self.now);
                let key = |found: Result<Option<(Key, Value)>>| {
                    let found = found.unwrap();
                    found.map(|(k, _)| k.to_vec())
                };
                assert_eq!(key(tree.first()), seen.keys().next().cloned());
                assert_eq!(key(tree.last()), seen.keys().next_back().cloned());
                assert_eq!(tree.is_empty().unwrap(), seen.is_empty());
                assert_eq!(tree.len().unwrap(), seen.len() as u64);
            }
            10 => {
                let prefix = &k[..k.len().min(3)];
                let seen = seen(&self.model, self.now);
                let found = tree.prefix(prefix).map(|e| e.unwrap().0.to_vec());
                let expected = seen.into_keys().filter(|k| k.starts_with(prefix));
                assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
            }
            _ => {
                let range = (Bound::Included(k), Bound::Unbounded);
                let seen = seen(&self.model, self.now);
                let found = self.tree.range(range.clone());
                self.same(found, &seen, range);
            }
        }
    }

    /// `found` gives what `seen` has in `range`, from both ends.
    fn same(&mut self, found: indexy::Range, seen: &Map, range: (Bound<Vec<u8>>, Bound<Vec<u8>>)) {
        let mut expected = seen.range(range).map(|(k, v)| (k.clone(), v.clone()));
        let mut found = found.map(|e| e.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap());
        for _ in 0..self.rng.random_range(1..100) {
            match self.rng.random() {
                true => assert_eq!(found.next(), expected.next()),
                false => assert_eq!(found.next_back(), expected.next_back()),
            }
        }
    }

    fn snapshot(&mut self) {
        match self.rng.random_range(0..4) {
            0 if self.snapshots.len() < 3 => {
                let seen = seen(&self.model, self.now);
                self.snapshots.push((self.db.snapshot().unwrap(), seen));
            }
            1 if !self.snapshots.is_empty() => {
                let at = self.rng.random_range(0..self.snapshots.len());
                self.snapshots.swap_remove(at);
            }
            _ if !self.snapshots.is_empty() => {
                let at = self.rng.random_range(0..self.snapshots.len());
                let (snapshot, seen) = self.snapshots.swap_remove(at);
                for _ in 0..10 {
                    let k = self.key();
                    let found = snapshot.get(&self.tree, &k).unwrap();
                    assert_eq!(found.map(Vec::from), seen.get(&k).cloned(), "{k:?}");
                }
                let range = (Bound::Included(self.key()), Bound::Unbounded);
                let found = snapshot.range(&self.tree, range.clone());
                self.same(found, &seen, range);
                self.snapshots.push((snapshot, seen));
            }
            _ => {}
        }
    }

    /// A call of a transaction, which began with `before`. `soonest`: what it depends on and
    /// expires first.
    fn tx_step(
        &mut self,
        tx: &mut Transaction,
        serializable: bool,
        before: &Map,
        ours: &mut Ours,
        soonest: &mut u64,
    ) {
        let (mut k, v) = (self.key(), self.value());
        if self.rng.random() {
            // One that the snapshot has, if there is one behind.
            let there = before.range(k.clone()..).next();
            k = there.map_or(k, |(there, _)| there.clone());
        }
        let mine = ours.get(&k).map(|own| own.as_ref().map(|(v, _)| v.clone()));
        let expected = mine.clone().unwrap_or_else(|| before.get(&k).cloned());
        match self.rng.random_range(0..6) {
            0 => {
                tx.insert(&self.tree, &k, &v).unwrap();
                ours.insert(k, Some((v, self.after(self.default))));
            }
            1 => {
                let ttl = self.rng.random_range(1..2000);
                let life = Duration::from_millis(ttl);
                tx.insert_with_ttl(&self.tree, &k, &v, life).unwrap();
                ours.insert(k, Some((v, self.after(ttl))));
            }
            2 => {
                tx.remove(&self.tree, &k).unwrap();
                ours.insert(k, None);
            }
            3 => {
                let found = tx.get(&self.tree, &k).unwrap().map(Vec::from);
                assert_eq!(found, expected);
                if serializable && mine.is_none() && found.is_some() {
                    *soonest = (*soonest).min(self.model[&k].1);
                }
            }
            4 => {
                let found = tx.get_for_update(&self.tree, &k).unwrap().map(Vec::from);
                assert_eq!(found, expected);
                if mine.is_none() && found.is_some() {
                    *soonest = (*soonest).min(self.model[&k].1);
                }
            }
            _ => self.tick(),
        }
    }

    /// A transaction that reads and writes while time goes on.
    fn transaction(&mut self) {
        let at = self.now;
        let before = seen(&self.model, at);
        let mut tx = self.db.begin().unwrap();
        let serializable: bool = self.rng.random();
        tx.isolation(match serializable {
            true => Isolation::Serializable,
            false => Isolation::Snapshot,
        });
        let mut ours = Ours::new();
        let mut soonest = NEVER;
        for _ in 0..self.rng.random_range(1..8) {
            self.tx_step(&mut tx, serializable, &before, &mut ours, &mut soonest);
        }
        // A scan sees the snapshot with what was written.
        let mut all = before.clone();
        for (k, own) in &ours {
            match own {
                Some((v, _)) => all.insert(k.clone(), v.clone()),
                None => all.remove(k),
            };
        }
        if self.rng.random_bool(0.3) {
            let mut cursor = tx.cursor::<&[u8]>(&self.tree, ..);
            for expected in all.iter().take(5) {
                let (k, v) = cursor.next(&tx).unwrap().unwrap();
                assert_eq!((&k.to_vec(), &v.to_vec()), expected);
            }
            // It has read ahead: whatever expired of that is a conflict.
            if serializable && self.now > at {
                return;
            }
        }
        let conflict = soonest <= self.now && !ours.is_empty();
        match tx.commit() {
            Ok(()) => {
                assert!(!conflict);
                for (k, own) in ours {
                    match own {
                        Some(own) => self.model.insert(k, own),
                        None => self.model.remove(&k),
                    };
                }
            }
            Err(Error::Conflict { .. }) => {
                assert!(conflict);
                self.conflicts += 1;
            }
            Err(e) => panic!("{e}"),
        }
    }

    fn force(&mut self, path: &Path) {
        match self.rng.random_range(0..40) {
            0 => self.db.flush().unwrap(),
            1..=6 => {
                self.tree.release::<&[u8]>(..).unwrap();
            }
            7 => {
                let report = self.db.verify().unwrap();
                assert!(report.is_ok(), "{report:?}");
            }
            8..=9 => {
                self.tree.compact::<&[u8]>(..).unwrap();
                self.swept += 1;
            }
            10 => {
                self.default = [300, 2000, 20_000, NEVER][self.rng.random_range(0..4)];
                let ttl = ttl_of(self.default);
                self.tree = self.db.tree_with("t", TreeOptions::new().ttl(ttl)).unwrap();
                assert_eq!(self.db.tree("t").unwrap().ttl(), Some(ttl));
            }
            11..=13 => {
                self.snapshots.clear();
                self.clock.0.store(self.now, SeqCst);
                let (db, tree) = (self.db.clone(), self.tree.clone());
                // What these hold is replaced before anything is read.
                let dir = fast_dir();
                (self.db, self.tree) = open(dir.path(), &Options::new(2 << 20), self.pair, 1);
                match self.rng.random() {
                    true => db.close().unwrap(),
                    false => drop(db),
                }
                drop(tree);
                (self.db, self.tree) = open(path, &self.options, self.pair, self.default);
            }
            _ => {}
        }
    }

    fn check_all(&self) {
        let found = self.tree.iter().map(|e| e.unwrap());
        let found: BTreeMap<_, _> = found.map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
        assert!(found == seen(&self.model, self.now));
    }
}

/// Returns how many transactions conflicted, and how many sweeps were asked for.
fn run(seed: u64, pair: Pair, ops: u64) -> (u64, u64) {
    let dir = fast_dir();
    let clock = Arc::new(ByHand(AtomicU64::new(START)));
    let options = Options::new(2 << 20).clock(clock.clone());
    let default = [300, 3000, NEVER][seed as usize % 3];
    let (db, tree) = open(dir.path(), &options, pair, default);
    let mut run = Run {
        rng: StdRng::seed_from_u64(seed),
        options,
        pair,
        clock,
        now: START,
        default,
        db,
        tree,
        model: Model::new(),
        snapshots: Vec::new(),
        conflicts: 0,
        swept: 0,
    };
    for op in 0..ops {
        match run.rng.random_range(0..100) {
            0..=49 => run.write(),
            50..=84 => run.read(),
            85..=89 => run.tick(),
            90..=93 => run.snapshot(),
            94..=96 => run.transaction(),
            _ => run.force(dir.path()),
        }
        if op % 2000 == 0 {
            run.check_all();
        }
    }
    run.check_all();
    run.snapshots.clear();
    assert!(run.db.verify().unwrap().is_ok());
    // In the end nothing is left that expires, and nothing of it takes space.
    run.now += 100_000;
    run.clock.0.store(run.now, SeqCst);
    run.check_all();
    run.tree.compact::<&[u8]>(..).unwrap();
    run.check_all();
    let lasting = seen(&run.model, run.now).len() as u64;
    let stats = run.tree.stats();
    assert_eq!(stats.y_keys, lasting, "{stats:?}");
    (run.conflicts, run.swept)
}

#[test]
fn random_calls_agree_with_maps_that_filter_by_time() {
    let ops = setting("INDEXY_EXPIRY_OPS", 12_000);
    let first = setting("INDEXY_EXPIRY_SEED", 1);
    let mut met = (0, 0);
    for seed in first..first + setting("INDEXY_EXPIRY_CASES", 3) {
        for pair in pairs::chosen(seed as usize, 3) {
            println!("seed {seed}, {}", pairs::name(pair));
            let (conflicts, swept) = run(seed, pair, ops);
            met = (met.0 + conflicts, met.1 + swept);
        }
    }
    assert!(ops < 10_000 || met.0 > 0 && met.1 > 0, "{met:?}");
}
