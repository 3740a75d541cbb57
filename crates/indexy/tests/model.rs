//! The whole API against ordered maps: random operations with odd keys, small budgets, forced cleaning and release,
//! and reopening in between.
//!
//! `INDEXY_TEST_PAIRS` says with which pairs of indexes (`pairs/mod.rs`); `INDEXY_MODEL_OPS` sets the number of operations per case (default 260,000; four cases), `INDEXY_MODEL_SEED` the seed.

mod pairs;

use indexy::{Batch, Db, Durability, Options, Tree};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{collections::BTreeMap, path::Path};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const TREES: usize = 2;

struct Case {
    seed: u64,
    options: Options,
    /// Longest value.
    value_bytes: usize,
    /// Number of distinct keys, roughly.
    keys: u64,
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

fn check_scan(tree: &Tree, model: &Model, rng: &mut StdRng, keys: u64) {
    let (a, b) = (key(rng, keys), key(rng, keys));
    let (a, b) = if a <= b { (a, b) } else { (b, a) };
    let take = rng.random_range(1..200);
    let expected = model.range(a.clone()..b.clone()).map(entry);
    let found = tree
        .range(&a[..]..&b[..])
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
    let k = key(rng, keys);
    match rng.random_range(0..100) {
        0..=34 => {
            let v = value(rng, case.value_bytes);
            tree.insert(&k, &v).unwrap();
            models[t].insert(k, v);
        }
        35..=44 => {
            tree.remove(&k).unwrap();
            models[t].remove(&k);
        }
        45..=47 => assert_eq!(
            tree.take(&k).unwrap().map(|v| v.to_vec()),
            models[t].remove(&k)
        ),
        48..=51 => {
            let old = if rng.random() {
                models[t].get(&k).cloned()
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
            assert_eq!(swapped, models[t].get(&k) == old.as_ref());
            if swapped {
                match new {
                    Some(new) => models[t].insert(k, new),
                    None => models[t].remove(&k),
                };
            }
        }
        52..=54 => {
            let new = tree
                .update(&k, |old| old.map(|o| [o, b"+"].concat()).or(Some(vec![7])))
                .unwrap();
            let slot = models[t]
                .entry(k)
                .and_modify(|v| v.push(b'+'))
                .or_insert_with(|| vec![7]);
            assert_eq!(new.as_deref(), Some(&slot[..]));
        }
        55..=84 => {
            assert_eq!(
                tree.get(&k).unwrap().as_deref(),
                models[t].get(&k).map(|v| &v[..]),
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
                    .map(|k| models[t].get(k).cloned())
                    .collect::<Vec<_>>()
            );
        }
        86..=89 => {
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
        90..=95 => check_scan(tree, &models[t], rng, keys),
        96 => {
            assert_eq!(
                tree.first().unwrap().map(|(k, _)| k.to_vec()),
                models[t].keys().next().cloned()
            );
            assert_eq!(
                tree.last().unwrap().map(|(k, _)| k.to_vec()),
                models[t].keys().next_back().cloned()
            );
            assert_eq!(tree.contains_key(&k).unwrap(), models[t].contains_key(&k));
        }
        97 => {
            let p = &k[..k.len().min(3)];
            let found: Vec<_> = tree
                .prefix(p)
                .take(50)
                .map(|e| e.unwrap().0.to_vec())
                .collect();
            let expected: Vec<_> = models[t]
                .range(p.to_vec()..)
                .map(|(k, _)| k.clone())
                .take_while(|k| k.starts_with(p))
                .take(50)
                .collect();
            assert_eq!(found, expected);
        }
        98 if rng.random_range(0..200) == 0 => {
            let (a, b) = (key(rng, keys), key(rng, keys));
            let (a, b) = if a <= b { (a, b) } else { (b, a) };
            tree.remove_range(&a[..]..=&b[..]).unwrap();
            models[t].retain(|k, _| *k < a || *k > b);
        }
        98 => db.sync().unwrap(),
        _ if rng.random_range(0..300) == 0 => db.flush().unwrap(),
        _ => {}
    }
}

fn open(path: &Path, options: &Options) -> (Db, Vec<Tree>) {
    let db = Db::open(path, options.clone()).unwrap();
    let trees = (0..TREES)
        .map(|t| db.tree(&format!("tree {t}")).unwrap())
        .collect();
    (db, trees)
}

/// Tests of this file.
const CASES: usize = 4;

fn run(case: &Case) {
    for pair in pairs::chosen(case.seed as usize, CASES) {
        println!("{}", pairs::name(pair));
        run_with(case, pairs::options(pair, case.options.clone()));
    }
}

fn run_with(case: &Case, options: Options) {
    let ops = from_env("INDEXY_MODEL_OPS", 260_000);
    let seed = from_env("INDEXY_MODEL_SEED", case.seed);
    let dir = tempfile::tempdir().unwrap();
    let mut rng = StdRng::seed_from_u64(seed);
    let mut models = vec![Model::new(); TREES];
    let (mut db, mut trees) = open(dir.path(), &options);
    for op in 0..ops {
        step(&db, &trees, &mut models, &mut rng, case);
        let budget = [2usize << 20, 3 << 20, 8 << 20][rng.random_range(0..3)];
        if rng.random_range(0..5000) == 0 {
            match db.set_memory_budget(budget) {
                Ok(()) | Err(indexy::Error::BudgetTooSmall { .. }) => {}
                Err(e) => panic!("{e}"),
            }
        }
        if rng.random_range(0..ops / 6) == 0 {
            // With a log, dropping is enough; without one, only what was flushed is promised.
            if rng.random() {
                db.close().unwrap();
                assert!(matches!(trees[0].get(b"x"), Err(indexy::Error::Closed)));
            }
            trees.clear();
            drop(db);
            (db, trees) = open(dir.path(), &options);
            for (tree, model) in trees.iter().zip(&models) {
                check_all(tree, model);
            }
        }
        if op % (ops / 4) == ops / 8 {
            let report = db.verify().unwrap();
            assert!(report.is_ok(), "{report:?}");
        }
    }
    for (tree, model) in trees.iter().zip(&models) {
        check_all(tree, model);
    }
    let report = db.verify().unwrap();
    assert!(report.is_ok(), "{report:?}");
    db.close().unwrap();
}

#[test]
fn small_values_buffered() {
    run(&Case {
        seed: 1,
        options: Options::new(2 << 20),
        value_bytes: 200,
        keys: 60_000,
    });
}

#[test]
fn values_up_to_past_x_buffered() {
    run(&Case {
        seed: 2,
        options: Options::new(2 << 20),
        value_bytes: 400_000,
        keys: 3_000,
    });
}

#[test]
fn few_keys_overwritten_often_without_a_log() {
    let options = Options::new(2 << 20).durability(Durability::None);
    run(&Case {
        seed: 3,
        options,
        value_bytes: 3000,
        keys: 2_000,
    });
}

#[test]
fn a_short_log_that_forces_cleaning_by_age() {
    let options = Options::new(8 << 20).log_limit_bytes(1 << 20);
    run(&Case {
        seed: 4,
        options,
        value_bytes: 1000,
        keys: 30_000,
    });
}
