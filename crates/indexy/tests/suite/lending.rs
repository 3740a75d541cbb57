//! Filters of LSM trees borrow from the memory index while absent keys pay for it.

use super::support::{MIB, Random, assert_sound};
use crate::places::fast_dir;
use indexy::{Db, Durability, Error, Options, Tree, TreeOptions};
use std::{
    path::Path,
    time::{Duration, Instant},
};

const KEYS: u64 = 1_500_000;
const BUDGET: usize = 12 * MIB;
/// What takes longer does not happen.
const LIMIT: Duration = Duration::from_secs(60);

/// Keys that are there are even.
fn key(n: u64) -> [u8; 8] {
    (n * 2).to_be_bytes()
}

fn with_keys(dir: &Path) -> (Db, Tree) {
    let db = Db::open(dir, Options::new(BUDGET).durability(Durability::None)).unwrap();
    let tree = db.tree("t").unwrap();
    let entries = (0..KEYS).map(|n| (key(n), [7u8; 8]));
    tree.load_sorted(entries).unwrap();
    (db, tree)
}

/// Fills the memory index with what the first `keys` keys have.
fn read_first(tree: &Tree, keys: u64) {
    for n in 0..keys {
        assert!(tree.get(key(n)).unwrap().is_some());
    }
}

/// Asks for `count` keys that are not there.
fn ask_for_absent(tree: &Tree, random: &mut Random, count: u64) {
    for _ in 0..count {
        let mut key = key(random.below(KEYS));
        key[7] |= 1;
        assert!(tree.get(key).unwrap().is_none());
    }
}

/// Goes on with `step` until `done`; the budget is kept all the while.
#[track_caller]
fn until(db: &Db, mut step: impl FnMut(), done: impl Fn(&Db) -> bool) {
    let began = Instant::now();
    while !done(db) {
        step();
        let stats = db.stats();
        assert!(
            stats.memory_used_bytes <= stats.memory_budget_bytes,
            "{stats:?}"
        );
        assert!(began.elapsed() < LIMIT, "{stats:?}");
    }
}

fn lent(db: &Db) -> u64 {
    db.stats().lent_to_filters_bytes
}

#[test]
fn filters_borrow_while_absent_keys_are_asked_for_and_give_back() {
    let dir = fast_dir();
    let (db, tree) = with_keys(dir.path());
    // The memory index is full: there is nothing to spare.
    read_first(&tree, KEYS / 3);
    assert_eq!(lent(&db), 0, "keys that are there need no filter");
    let mut random = Random(1);
    until(
        &db,
        || ask_for_absent(&tree, &mut random, 2000),
        |db| lent(db) > 0,
    );
    let stats = db.stats();
    assert!(
        stats.lent_to_filters_bytes <= BUDGET as u64 / 4,
        "{stats:?}"
    );
    // What memory holds is read again and again.
    until(&db, || read_first(&tree, 20_000), |db| lent(db) == 0);
    assert_sound(&db);
}

/// I7: what is lent is no memory that somebody could want for.
#[test]
fn i7_what_is_lent_comes_back_for_resident_trees_and_a_smaller_budget() {
    let dir = fast_dir();
    let (db, tree) = with_keys(dir.path());
    let mut random = Random(2);
    let borrow = |db: &Db, random: &mut Random| {
        let ask = || ask_for_absent(&tree, random, 2000);
        until(db, ask, |db| lent(db) > BUDGET as u64 / 16);
    };
    borrow(&db, &mut random);
    let resident = TreeOptions::new().resident(true);
    let resident = db.tree_with("resident", resident).unwrap();
    let most = BUDGET as u64 / 20 * 13;
    let mut n = 0u64;
    while db.stats().x_bytes < most {
        match resident.insert((n * 7).to_be_bytes(), [1; 64]) {
            Ok(_) => n += 1,
            Err(error) => panic!("{error} after {n}: {:?}", db.stats()),
        }
    }
    until(
        &db,
        || ask_for_absent(&tree, &mut random, 100),
        |db| lent(db) <= BUDGET as u64 / 8,
    );
    db.drop_tree("resident").unwrap();
    borrow(&db, &mut random);
    match db.set_memory_budget(BUDGET / 3) {
        Ok(()) | Err(Error::BudgetTooSmall { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    let limit = db.stats().memory_budget_bytes;
    assert!(lent(&db) <= limit / 4, "{:?}", db.stats());
    assert_sound(&db);
}
