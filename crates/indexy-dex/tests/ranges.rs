//! Ranges that are removed at once: as the keys one by one, and cheaper.

mod pools;

use indexy_dex::{BulkLoad, ByteTree, Error, Options, Tree, offload::Offloading, partition::Table};
use pools::{Dice, ModelPool, Pool, ShmPool, UnsteadyPool};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
};

const POOL_BYTES: u64 = 64 << 20;
const KEYS: u64 = 20_000;

fn options(owner: u16, cache_pages: usize, leaf_admission: f64) -> Options {
    Options::new(owner, cache_pages).leaf_admission(leaf_admission)
}

fn all<M: indexy_dex::remote::RemoteMemory>(tree: &Tree<M>) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    assert_eq!(
        tree.scan(0, u64::MAX, usize::MAX, &mut found).unwrap(),
        None
    );
    found
}

fn is_a_map<P: Pool>(pool: &P, options: Options, fill: usize) {
    let mut model: BTreeMap<u64, u64> = (0..KEYS).map(|key| (key, !key)).collect();
    let load = BulkLoad::default().fill(fill);
    load.load(&pool.connect(), model.clone()).unwrap();
    let tree = Tree::open(pool.connect(), options).unwrap();
    let mut dice = Dice(7);
    for round in 0..60 {
        let from = dice.roll(KEYS);
        let to = from + dice.roll(if round % 10 == 0 { KEYS } else { 300 });
        let mut old = Vec::new();
        assert_eq!(tree.remove_range(from, to, &mut old).unwrap(), None);
        let gone: Vec<u64> = model.range(from..=to).map(|(key, _)| *key).collect();
        let expected: Vec<u64> = gone.iter().map(|key| model.remove(key).unwrap()).collect();
        assert_eq!(old, expected, "{from}..={to}");
        for _ in 0..200 {
            let key = dice.roll(KEYS);
            assert_eq!(tree.put(key, key).unwrap(), model.insert(key, key));
        }
    }
    assert!(tree.remove_range(9, 8, &mut Vec::new()).unwrap().is_none());
    assert_eq!(all(&tree), model.clone().into_iter().collect::<Vec<_>>());
    tree.flush().unwrap();
    // What another compute server finds in the pool.
    let other = Tree::open(pool.connect(), Options::new(0, 64)).unwrap();
    assert_eq!(all(&other), model.into_iter().collect::<Vec<_>>());
}

#[test]
fn a_removed_range_is_its_keys_removed() {
    for leaf_admission in [0.0, 0.3, 1.0] {
        let pool = ModelPool::new(2, POOL_BYTES);
        let next_to_nothing = options(0, 8, leaf_admission);
        is_a_map(&pool, next_to_nothing.offloading(Offloading::Always), 6);
        is_a_map(
            &ModelPool::new(1, POOL_BYTES),
            options(0, 2_000, leaf_admission),
            40,
        );
    }
    is_a_map(&ShmPool::new(2, POOL_BYTES), options(0, 40, 0.3), 10);
}

#[test]
fn the_whole_key_space_is_a_range() {
    let pool = ModelPool::new(1, POOL_BYTES);
    let load = [(0, 1), (5, 2), (u64::MAX, 3)];
    BulkLoad::default().load(&pool.connect(), load).unwrap();
    let tree = Tree::open(pool.connect(), Options::new(0, 64)).unwrap();
    let mut old = Vec::new();
    assert_eq!(tree.remove_range(0, u64::MAX, &mut old).unwrap(), None);
    assert_eq!(old, [1, 2, 3]);
    assert!(all(&tree).is_empty());
}

#[test]
fn a_range_ends_where_another_owner_begins() {
    let pool = ModelPool::new(1, POOL_BYTES);
    let table = Table::new(vec![(0, 0), (KEYS / 2, 1)]).unwrap();
    let load = BulkLoad::default().table(table);
    load.load(&pool.connect(), (0..KEYS).map(|key| (key, key)))
        .unwrap();
    let [first, second] =
        [0, 1].map(|owner| Tree::open(pool.connect(), options(owner, 64, 0.1)).unwrap());
    let mut old = Vec::new();
    let next = first.remove_range(100, KEYS - 100, &mut old).unwrap();
    let next = next.expect("the rest is the other one's");
    assert!(second.ownership().contains(next, next) && next <= KEYS / 2);
    assert_eq!(old.len() as u64, next - 100);
    let refused = first.remove_range(next, KEYS, &mut old);
    assert!(matches!(refused, Err(Error::NotOwner { .. })));
    assert_eq!(
        second.remove_range(next, KEYS - 100, &mut old).unwrap(),
        None
    );
    assert_eq!(old, (100..=KEYS - 100).collect::<Vec<_>>());
}

#[test]
fn a_leaf_costs_a_read_and_a_write_and_its_merges() {
    let pool = ModelPool::new(1, POOL_BYTES);
    let load = BulkLoad::default().fill(40);
    load.load(&pool.connect(), (0..KEYS).map(|key| (key, key)))
        .unwrap();
    let tree = Tree::open(pool.connect(), options(0, 64, 0.0)).unwrap();
    let (before, leaves) = (tree.counts(), KEYS / 2 / 40);
    tree.remove_range(KEYS / 4, KEYS / 4 * 3, &mut Vec::new())
        .unwrap();
    tree.flush().unwrap();
    let counts = tree.counts() - before;
    assert!(
        counts.verbs() <= 7 * leaves,
        "{counts:?} for {leaves} leaves"
    );
}

#[test]
fn readers_and_writers_elsewhere_go_on() {
    let pool = UnsteadyPool(ModelPool::new(1, POOL_BYTES));
    let load = BulkLoad::default().fill(10);
    load.load(&pool.connect(), (0..KEYS).map(|key| (key, key)))
        .unwrap();
    let tree = Tree::open(pool.connect(), options(0, 60, 0.3)).unwrap();
    let (low, high) = (KEYS / 4, KEYS / 2);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..2 {
            let (tree, is_done) = (&tree, &is_done);
            scope.spawn(move || {
                let mut dice = Dice(thread);
                // Keys that were missed.
                let mut gone = Vec::new();
                while !is_done.load(SeqCst) {
                    let key = dice.roll(KEYS);
                    let found = tree.get(key).unwrap();
                    match (low..=high).contains(&key) {
                        false => assert_eq!(found, Some(key)),
                        true if found.is_none() => gone.push(key),
                        true => assert_eq!(found, Some(key)),
                    }
                    if let Some(key) = gone.last() {
                        assert_eq!(tree.get(*key).unwrap(), None, "it came back");
                    }
                    // Beside the range.
                    let beside = if key.is_multiple_of(2) {
                        low - 1 - thread
                    } else {
                        high + 1 + thread
                    };
                    assert_eq!(tree.put(beside, beside).unwrap(), Some(beside));
                }
            });
        }
        let mut old = Vec::new();
        tree.remove_range(low, high, &mut old).unwrap();
        assert_eq!(old, (low..=high).collect::<Vec<_>>());
        is_done.store(true, SeqCst);
    });
    let expected = (0..low).chain(high + 1..KEYS).map(|key| (key, key));
    assert_eq!(all(&tree), expected.collect::<Vec<_>>());
}

#[test]
fn byte_strings_and_values_out_of_line_go_with_their_range() {
    let pool = ModelPool::new(1, POOL_BYTES);
    let memory = pool.connect();
    ByteTree::<_, 32>::format(&memory).unwrap();
    let tree = ByteTree::<_, 32>::open(memory, options(0, 64, 0.3)).unwrap();
    let value = |i: u32| vec![i as u8; (i % 5 * 500) as usize];
    let key = |i: u32| format!("key {i:05}").into_bytes();
    for i in 0..2_000 {
        tree.put(&key(i), &value(i)).unwrap();
    }
    // Ends may be longer than a key.
    let end = [&key(1_499)[..], &[0; 40]].concat();
    assert_eq!(tree.remove_range(&key(500), Some(&end)).unwrap(), None);
    assert_eq!(tree.remove_range(b"z", Some(b"a")).unwrap(), None);
    for i in 0..2_000 {
        let expected = (!(500..1_500).contains(&i)).then(|| value(i));
        assert_eq!(tree.get(&key(i)).unwrap(), expected, "{i}");
    }
    assert_eq!(tree.remove_range(b"", None).unwrap(), None);
    let mut found = Vec::new();
    assert_eq!(tree.scan(b"", None, 10, &mut found).unwrap(), None);
    assert!(found.is_empty());
}
