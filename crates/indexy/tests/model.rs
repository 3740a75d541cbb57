//! The whole API against ordered maps: random operations with odd keys, small budgets, forced
//! cleaning and release, and reopening in between.
//!
//! `INDEXY_TEST_PAIRS` says with which pairs of indexes (`pairs/mod.rs`); `INDEXY_MODEL_OPS` sets
//! the number of operations per case and pair (default: 100,000 with the default pair, 30,000 with
//! others and where a case says what reads load; seven cases), `INDEXY_MODEL_SEED` the seed. Seed,
//! case and pair say under which policies (`policies/mod.rs`).

mod pairs;
mod places;
#[path = "policies/mod.rs"]
mod policy_choice;

use indexy::{
    Admission, Batch, Db, Durability, Error, IndexYKind, Options, Stats, Tree, TreeOptions,
};
use pairs::Pair;
use places::fast_dir;
use policy_choice::Policies;
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{collections::BTreeMap, ops::Bound, path::Path};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const TREES: usize = 2;

struct Case {
    seed: u64,
    options: Options,
    /// Longest value.
    value_bytes: usize,
    /// Number of distinct keys, roughly.
    keys: u64,
    /// So much is written that memory is released.
    releases: bool,
    /// Of trees with a memory index. `None`: any.
    admission: Option<Admission>,
}

fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(default)
}

/// A key of a shape that an index may stumble over.
fn key(rng: &mut StdRng, keys: u64) -> Vec<u8> {
    let n = rng.random_range(0..keys);
    match n % 8 {
        0 => n.to_be_bytes().to_vec(),
        1 => n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec(),
        2 => format!("user/{:06}/profile/settings/{}", n / 64, n % 64).into_bytes(),
        3 => vec![0; (n % 40) as usize],
        4 => vec![0xff; (n % 40) as usize],
        5 => "abc".repeat((n % 50) as usize).into_bytes(),
        6 => [vec![b'p'; 300], n.to_le_bytes().to_vec()].concat(),
        _ => n.to_string().into_bytes(),
    }
}

fn value(rng: &mut StdRng, max: usize) -> Vec<u8> {
    let len = match rng.random_range(0..20) {
        0 => 0,
        1 => rng.random_range(0..=max),
        _ => rng.random_range(0..=64),
    };
    let byte: u8 = rng.random();
    (0..len).map(|i| byte.wrapping_add(i as u8)).collect()
}

fn entry((k, v): (&Vec<u8>, &Vec<u8>)) -> (Vec<u8>, Vec<u8>) {
    (k.clone(), v.clone())
}

fn bound(rng: &mut StdRng, key: Vec<u8>) -> Bound<Vec<u8>> {
    match rng.random_range(0..7) {
        0 => Bound::Unbounded,
        1..=3 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

fn check_scan(tree: &Tree, model: &Model, rng: &mut StdRng, keys: u64) {
    let (a, b) = (key(rng, keys), key(rng, keys));
    let (a, b) = if a <= b { (a, b) } else { (b, a) };
    let take = rng.random_range(1..200);
    // Two excluded bounds that are equal are refused by the map, and an empty range here.
    let bounds = if a == b {
        (Bound::Included(a), Bound::Excluded(b))
    } else {
        (bound(rng, a), bound(rng, b))
    };
    let expected = model.range(bounds.clone()).map(entry);
    let found = tree
        .range(bounds)
        .map(|e| e.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap());
    match rng.random_range(0..3) {
        0 => assert_eq!(
            found.take(take).collect::<Vec<_>>(),
            expected.take(take).collect::<Vec<_>>()
        ),
        1 => assert_eq!(
            found.rev().take(take).collect::<Vec<_>>(),
            expected.rev().take(take).collect::<Vec<_>>()
        ),
        _ => {
            let (mut found, mut expected) = (found, expected);
            for _ in 0..take {
                if rng.random() {
                    assert_eq!(found.next(), expected.next());
                } else {
                    assert_eq!(found.next_back(), expected.next_back());
                }
            }
        }
    }
}

fn check_all(tree: &Tree, model: &Model) {
    let found = tree.iter().map(Result::unwrap);
    let mut expected = model.iter();
    let mut n = 0u64;
    for (k, v) in found {
        let (ek, ev) = expected
            .next()
            .unwrap_or_else(|| panic!("{k:?} is too much"));
        assert_eq!((&k[..], &v[..]), (&ek[..], &ev[..]));
        n += 1;
    }
    assert_eq!(expected.next(), None);
    assert_eq!(n, model.len() as u64);
}

fn step(db: &Db, trees: &[Tree], models: &mut [Model], rng: &mut StdRng, case: &Case) {
    let t = rng.random_range(0..TREES);
    let (tree, keys) = (&trees[t], case.keys);
    let roll = rng.random_range(0..100);
    match roll {
        0..=54 => write(roll, tree, &mut models[t], rng, case),
        86..=89 => batch(db, trees, models, rng, keys),
        55..=97 => read(roll, tree, &models[t], rng, keys),
        98 if rng.random_range(0..50) == 0 => {
            let a = key(rng, keys);
            // Mostly a few keys: what goes leaves memory, and nothing would be released.
            let far = if rng.random_range(0..30) == 0 {
                5000
            } else {
                100
            };
            let b = models[t].range(a.clone()..).nth(rng.random_range(0..far));
            let b = b.map_or_else(|| a.clone(), |(b, _)| b.clone());
            tree.remove_range(&a[..]..=&b[..]).unwrap();
            models[t].retain(|k, _| *k < a || *k > b);
        }
        98 if rng.random_range(0..50) == 0 => load(tree, &mut models[t], rng, keys),
        98 => db.sync().unwrap(),
        _ if rng.random_range(0..300) == 0 => db.flush().unwrap(),
        _ if rng.random_range(0..60) == 0 => release(tree, rng, keys),
        _ => {}
    }
}

/// Releases a range by hand, mostly from one key to another. What was dirty in it is gone from
/// memory at once: nobody else writes.
fn release(tree: &Tree, rng: &mut StdRng, keys: u64) {
    let (a, b) = (key(rng, keys), key(rng, keys));
    let bounds = (bound(rng, a.clone().min(b.clone())), bound(rng, a.max(b)));
    let before = tree.stats();
    let freed = tree.release(bounds.clone()).unwrap();
    if pairs::keeps_nothing(tree.pair()) {
        assert_eq!(freed, 0);
    } else if bounds == (Bound::Unbounded, Bound::Unbounded) {
        let after = tree.stats();
        assert_eq!(after.x_keys, 0, "{before:?} {after:?}");
        assert!(freed > 0 || before.x_keys == 0, "{before:?}");
    }
}

/// Loads sorted keys into a gap between two keys, or over one.
fn load(tree: &Tree, model: &mut Model, rng: &mut StdRng, keys: u64) {
    let from = key(rng, keys);
    let count = rng.random_range(1..300u32);
    let over = |n: u32| [&from[..], &n.to_be_bytes()].concat();
    let entries: Model = (0..count).map(|n| (over(n), value(rng, 300))).collect();
    let empty = model.range(over(0)..=over(count - 1)).next().is_none();
    match tree.load_sorted(&entries) {
        Ok(loaded) => {
            assert!(empty && loaded == u64::from(count));
            model.extend(entries);
        }
        Err(Error::RangeNotEmpty { .. }) => assert!(!empty),
        Err(Error::Unsupported { .. }) => assert!(tree.pair().1 == IndexYKind::RocksDb),
        Err(e) => panic!("{e}"),
    }
}

fn write(roll: u32, tree: &Tree, model: &mut Model, rng: &mut StdRng, case: &Case) {
    let k = key(rng, case.keys);
    match roll {
        0..=34 => {
            let v = value(rng, case.value_bytes);
            tree.insert(&k, &v).unwrap();
            model.insert(k, v);
        }
        35..=44 => {
            tree.remove(&k).unwrap();
            model.remove(&k);
        }
        45..=46 => assert_eq!(tree.take(&k).unwrap().map(|v| v.to_vec()), model.remove(&k)),
        47 => pop(tree, model, rng),
        48..=51 => {
            let old = if rng.random() {
                model.get(&k).cloned()
            } else {
                Some(value(rng, 20))
            };
            let new = if rng.random_range(0..4) == 0 {
                None
            } else {
                Some(value(rng, 50))
            };
            let swapped = tree
                .compare_and_swap(&k, old.as_ref(), new.as_ref())
                .unwrap();
            assert_eq!(swapped, model.get(&k) == old.as_ref());
            if swapped {
                match new {
                    Some(new) => model.insert(k, new),
                    None => model.remove(&k),
                };
            }
        }
        _ => {
            let new = tree
                .update(&k, |old| old.map(|o| [o, b"+"].concat()).or(Some(vec![7])))
                .unwrap();
            let slot = model
                .entry(k)
                .and_modify(|v| v.push(b'+'))
                .or_insert_with(|| vec![7]);
            assert_eq!(new.as_deref(), Some(&slot[..]));
        }
    }
}

/// Takes some entries from one end: seldom so many that keys are read ahead for long.
fn pop(tree: &Tree, model: &mut Model, rng: &mut StdRng) {
    let most = if rng.random_range(0..100) == 0 {
        200
    } else {
        6
    };
    let first = rng.random();
    for _ in 0..rng.random_range(1..most) {
        let (found, expected) = match first {
            true => (tree.pop_first(), model.pop_first()),
            false => (tree.pop_last(), model.pop_last()),
        };
        let found = found.unwrap().map(|(k, v)| (k.to_vec(), v.to_vec()));
        assert_eq!(found, expected);
    }
}

fn read(roll: u32, tree: &Tree, model: &Model, rng: &mut StdRng, keys: u64) {
    let k = key(rng, keys);
    match roll {
        55..=64 => {
            let found = tree.get_with(&k, <[u8]>::to_vec).unwrap();
            assert_eq!(found.as_ref(), model.get(&k), "key {k:?}");
        }
        65..=84 => {
            assert_eq!(
                tree.get(&k).unwrap().as_deref(),
                model.get(&k).map(|v| &v[..]),
                "key {k:?}"
            );
        }
        85 => {
            let some: Vec<_> = (0..20).map(|_| key(rng, keys)).collect();
            let found: Vec<_> = tree
                .multi_get(&some)
                .unwrap()
                .into_iter()
                .map(|v| v.map(|v| v.to_vec()))
                .collect();
            assert_eq!(
                found,
                some.iter()
                    .map(|k| model.get(k).cloned())
                    .collect::<Vec<_>>()
            );
        }
        90..=95 => check_scan(tree, model, rng, keys),
        96 => {
            assert_eq!(
                tree.first().unwrap().map(|(k, _)| k.to_vec()),
                model.keys().next().cloned()
            );
            assert_eq!(
                tree.last().unwrap().map(|(k, _)| k.to_vec()),
                model.keys().next_back().cloned()
            );
            assert_eq!(tree.contains_key(&k).unwrap(), model.contains_key(&k));
        }
        _ => {
            let p = &k[..k.len().min(3)];
            let found: Vec<_> = tree
                .prefix(p)
                .take(50)
                .map(|e| e.unwrap().0.to_vec())
                .collect();
            let expected: Vec<_> = model
                .range(p.to_vec()..)
                .map(|(k, _)| k.clone())
                .take_while(|k| k.starts_with(p))
                .take(50)
                .collect();
            assert_eq!(found, expected);
        }
    }
}

fn batch(db: &Db, trees: &[Tree], models: &mut [Model], rng: &mut StdRng, keys: u64) {
    let mut batch: Batch = db.batch();
    for _ in 0..rng.random_range(0..30) {
        let (t, k) = (rng.random_range(0..TREES), key(rng, keys));
        if rng.random_range(0..4) == 0 {
            batch.remove(&trees[t], &k);
            models[t].remove(&k);
        } else {
            let v = value(rng, 100);
            batch.insert(&trees[t], &k, &v);
            models[t].insert(k, v);
        }
    }
    batch.commit().unwrap();
}

fn open(path: &Path, options: &Options, pair: Pair, policies: Policies) -> (Db, Vec<Tree>) {
    let db = Db::open(path, options.clone()).unwrap();
    let open = |t| open_tree(&db, t, pair, policies);
    let trees = (0..TREES).map(open).collect();
    (db, trees)
}

/// The first tree has `pair`, the second one another.
fn open_tree(db: &Db, t: usize, pair: Pair, policies: Policies) -> Tree {
    let options = match t {
        0 => TreeOptions::new(),
        _ => pairs::second(pair),
    };
    policies.open_tree(db, &tree_name(t), options)
}

fn tree_name(t: usize) -> String {
    format!("tree {t}")
}

/// Seeds that share the pairs.
const CASES: usize = 4;
/// From the policies of a case to those of the next one: more than there are pairs in all tests.
const POLICIES_A_CASE: u64 = 100;

fn run(case: &Case) {
    let seed = from_env("INDEXY_MODEL_SEED", case.seed);
    for (n, pair) in (0..).zip(pairs::chosen(case.seed as usize, CASES)) {
        let mut policies = policy_choice::chosen(seed + POLICIES_A_CASE * case.seed + n);
        policies.admission = case.admission.unwrap_or(policies.admission);
        let ops = if pair == pairs::DEFAULT && case.admission.is_none() {
            100_000
        } else {
            30_000
        };
        let ops = from_env("INDEXY_MODEL_OPS", ops);
        let name = pairs::name(pair);
        println!("{name}: seed {seed}, {policies:?}");
        let start = std::time::Instant::now();
        let done = run_with(case, pair, policies, seed, ops);
        println!("{name}: {ops} operations, {:?}, {done:?}", start.elapsed());
        // Regions were written away, read again, and but for mere buffers cut, while the operations
        // went on.
        assert!(done.cleaned_runs > 0, "{name}: {done:?}");
        assert!(done.y_reads > ops / 200, "{name}: {done:?}");
        let refuses = policies.admission != Admission::Always && !pairs::keeps_nothing(pair);
        assert!(done.not_admitted > 0 || !refuses, "{name}: {done:?}");
        if pair == pairs::DEFAULT && ops >= 100_000 {
            assert!(done.cleaned_runs > 10, "{name}: {done:?}");
            assert!(
                !case.releases || done.released_regions > 5,
                "{name}: {done:?}"
            );
        }
    }
}

/// What the framework did, over all opens.
#[derive(Debug, Default)]
struct Done {
    cleaned_runs: u64,
    released_regions: u64,
    released_keys: u64,
    y_reads: u64,
    not_admitted: u64,
    stalls: u64,
}

impl Done {
    fn add(&mut self, stats: &Stats) {
        self.cleaned_runs += stats.cleaned_runs;
        self.released_regions += stats.released_regions;
        self.released_keys += stats.released_keys;
        self.y_reads += stats.y_reads;
        self.not_admitted += stats.not_admitted;
        self.stalls += stats.stalls;
    }
}

/// One database, the maps that say what is in it, and what happens once in a while.
struct Run<'a> {
    pair: Pair,
    policies: Policies,
    path: &'a Path,
    options: Options,
    rng: StdRng,
    db: Db,
    trees: Vec<Tree>,
    models: Vec<Model>,
    done: Done,
}

impl Run<'_> {
    fn check_all(&self) {
        for (tree, model) in self.trees.iter().zip(&self.models) {
            check_all(tree, model);
        }
    }

    fn verify(&self) {
        let report = self.db.verify().unwrap();
        assert!(report.is_ok(), "{report:?}");
    }

    fn reopen(mut self) -> Self {
        self.done.add(&self.db.stats());
        // With a log, dropping is enough; without one, only what was flushed is promised.
        if self.rng.random() {
            self.db.close().unwrap();
            assert!(matches!(self.trees[0].get(b"x"), Err(Error::Closed)));
        }
        self.trees.clear();
        drop(self.db);
        (self.db, self.trees) = open(self.path, &self.options, self.pair, self.policies);
        self.check_all();
        self
    }

    fn change_budget(&mut self) {
        let budget = [2usize << 20, 3 << 20, 4 << 20][self.rng.random_range(0..3)];
        match self.db.set_memory_budget(budget) {
            Ok(()) | Err(Error::BudgetTooSmall { .. }) => {}
            Err(e) => panic!("{e}"),
        }
    }

    /// Numbers of entries: the exact one, and the estimate, which counts at most what is in X and
    /// in Y (and there no more than was written). How much too few it says depends on how often
    /// keys were removed, which is all the time here.
    fn check_lengths(&self, ops: u64) {
        for (tree, model) in self.trees.iter().zip(&self.models) {
            let len = model.len() as u64;
            assert_eq!(tree.len().unwrap(), len);
            assert_eq!(tree.is_empty().unwrap(), len == 0);
            let about = tree.approximate_len();
            // A batch writes 30 keys at most.
            assert!(about <= 30 * (ops + 1), "{about} after {ops} operations");
        }
    }

    /// A checkpoint opens as what the database is now, and is one of its own.
    fn check_checkpoint(&mut self) {
        let copies = fast_dir();
        let path = copies.path().join("copy");
        self.db.checkpoint(&path).unwrap();
        let (copy, trees) = open(&path, &self.options, self.pair, self.policies);
        for (tree, model) in trees.iter().zip(&self.models) {
            check_all(tree, model);
        }
        trees[0].insert(b"of the copy alone", b"1").unwrap();
        drop((trees, copy));
        self.check_all();
    }

    /// A tree goes with all that is in it; its name is free for another.
    fn drop_tree(&mut self) {
        let t = self.rng.random_range(0..TREES);
        let name = tree_name(t);
        self.db.drop_tree(&name).unwrap();
        let gone = self.trees[t].insert(b"k", b"v");
        assert!(matches!(gone, Err(Error::TreeDropped { .. })), "{gone:?}");
        self.models[t].clear();
        self.trees[t] = open_tree(&self.db, t, self.pair, self.policies);
        assert!(self.trees[t].is_empty().unwrap());
        assert_eq!(self.trees[t].approximate_len(), 0);
    }
}

fn run_with(case: &Case, pair: Pair, policies: Policies, seed: u64, ops: u64) -> Done {
    let options = policies.options(pairs::options(pair, case.options.clone()));
    let dir = fast_dir();
    let (db, trees) = open(dir.path(), &options, pair, policies);
    let mut run = Run {
        path: dir.path(),
        pair,
        policies,
        options,
        rng: StdRng::seed_from_u64(seed),
        db,
        trees,
        models: vec![Model::new(); TREES],
        done: Done::default(),
    };
    for op in 0..ops {
        step(&run.db, &run.trees, &mut run.models, &mut run.rng, case);
        match run.rng.random_range(0..60_000) {
            0..12 => run.change_budget(),
            12..24 => run.check_lengths(op),
            24..26 => run.check_checkpoint(),
            26..28 => run.drop_tree(),
            _ => {}
        }
        if run.rng.random_range(0..ops / 6) == 0 {
            run = run.reopen();
        }
        if op % (ops / 4) == ops / 8 {
            run.verify();
        }
    }
    run.check_lengths(ops);
    run.check_all();
    run.verify();
    run.check_checkpoint();
    run.done.add(&run.db.stats());
    run.db.close().unwrap();
    run.done
}

#[test]
fn small_values_buffered() {
    run(&Case {
        seed: 5,
        options: Options::new(2 << 20),
        value_bytes: 800,
        keys: 120_000,
        releases: true,
        admission: None,
    });
}

#[test]
fn values_up_to_past_x_buffered() {
    run(&Case {
        seed: 2,
        options: Options::new(2 << 20),
        value_bytes: 400_000,
        keys: 3_000,
        releases: true,
        admission: None,
    });
}

#[test]
fn few_keys_overwritten_often_without_a_log() {
    let options = Options::new(2 << 20).durability(Durability::None);
    run(&Case {
        seed: 3,
        options,
        value_bytes: 3000,
        keys: 20_000,
        releases: true,
        admission: None,
    });
}

#[test]
fn a_short_log_that_forces_cleaning_by_age() {
    let options = Options::new(3 << 20)
        .log_limit_bytes(1 << 20)
        .direct_reads(true);
    run(&Case {
        seed: 4,
        options,
        value_bytes: 1000,
        keys: 30_000,
        releases: false,
        admission: None,
    });
}

#[test]
fn reads_that_load_little_or_nothing() {
    let policies = [
        Admission::Top { percent: 10 },
        Admission::OnUpdate,
        Admission::Never,
    ];
    for (seed, admission) in (6..).zip(policies) {
        run(&Case {
            seed,
            options: Options::new(2 << 20),
            value_bytes: 800,
            keys: 60_000,
            releases: true,
            admission: Some(admission),
        });
    }
}
