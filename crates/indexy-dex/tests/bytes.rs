//! Keys of any length: the tree is a sorted map over every transport, with tiny caches, odd keys,
//! splits, merges, cooling, offloading and ranges that move; what a dead owner left is a tree.

mod pools;

use indexy_dex::{
    Address, BulkLoad, ByteTree, Error, MAX_VALUE_BYTES, Options, Tree,
    node::{self, Bytes, Image, TreeKey},
    offload::{self, Offloading},
    partition::Table,
    remote::{self, Latency, Model, RemoteMemory},
};
use pools::{Dice, ModelPool, Pool, ShmPool, TcpPool, UnsteadyPool, region};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
};

const POOL_BYTES: u64 = 64 << 20;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Empty keys, zeros and ones, long common beginnings, the longest.
fn key(dice: &mut Dice, limit: usize, keys: u64) -> Vec<u8> {
    let number = dice.roll(keys);
    let digits = number.to_string().into_bytes();
    let mut key = match number % 8 {
        0 => (number as u32).to_be_bytes().to_vec(),
        1 => [&b"customer/order/"[..limit.min(15) - 8], &digits[..]].concat(),
        2 => vec![(number % 3) as u8 * 127; (number / 7) as usize % (limit + 1)],
        3 => [vec![b'x'; limit - digits.len()], digits].concat(),
        4 => [&[0xff; 9][..], &digits[..]].concat(),
        5 => [&number.to_be_bytes()[..], &[0; 3]].concat(),
        6 => digits.iter().rev().copied().collect(),
        _ => digits,
    };
    key.truncate(limit);
    key
}

fn value(dice: &mut Dice) -> Vec<u8> {
    let length = match dice.roll(60) {
        0 => dice.roll(MAX_VALUE_BYTES as u64 / 8),
        1 => 980 + dice.roll(30),
        2..5 => 120 + dice.roll(20),
        _ => dice.roll(30),
    };
    (0..length).map(|_| dice.roll(256) as u8).collect()
}

#[derive(Clone, Copy)]
struct Force {
    cache_pages: usize,
    leaf_admission: f64,
    offloading: Offloading,
    /// One operation of so many hands a range over; 0: none.
    hand_over_every: u64,
    owners: u16,
    fill: usize,
    operations: u64,
    keys: u64,
    seed: u64,
}

const FORCE: Force = Force {
    cache_pages: 12,
    leaf_admission: 0.3,
    offloading: Offloading::Measured,
    hand_over_every: 0,
    owners: 1,
    fill: 10,
    operations: 12_000,
    keys: 9_000,
    seed: 1,
};

struct Run<M, const N: usize> {
    trees: Vec<ByteTree<M, N>>,
    table: Table,
    model: Map,
    dice: Dice,
}

fn number(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let bytes = key.len().min(8);
    first[..bytes].copy_from_slice(&key[..bytes]);
    u64::from_be_bytes(first)
}

impl<M: RemoteMemory, const N: usize> Run<M, N> {
    fn start<P: Pool<Memory = M>>(pool: &P, force: Force) -> Self {
        let mut dice = Dice(force.seed);
        let count = force.keys / 3;
        let model: Map = (0..count)
            .map(|_| (key(&mut dice, N, force.keys), value(&mut dice)))
            .collect();
        let starts = [0, number(b"12"), number(b"customer"), number(b"xxxxxxxx")];
        let segments = (0..force.owners).map(|owner| (starts[usize::from(owner)], owner));
        let wanted = Table::new(segments.collect()).unwrap();
        let load = BulkLoad::default().fill(force.fill).table(wanted.clone());
        let entries = model.clone().into_iter().map(Ok);
        let loaded = ByteTree::<M, N>::load(&load, &pool.connect(), entries).unwrap();
        let table = loaded.table;
        assert_eq!(table, wanted, "leaves start where owners do");
        let open = |owner| {
            let options = Options::new(owner, force.cache_pages)
                .leaf_admission(force.leaf_admission)
                .offloading(force.offloading)
                .seed(force.seed + u64::from(owner));
            ByteTree::open(pool.connect(), options).unwrap()
        };
        Self {
            trees: (0..force.owners).map(open).collect(),
            table,
            model,
            dice,
        }
    }

    fn tree(&self, key: &[u8]) -> &ByteTree<M, N> {
        &self.trees[usize::from(self.table.owner_of(number(key)))]
    }

    fn step(&mut self, force: Force, phase: u64) {
        let key = key(&mut self.dice, N, force.keys);
        let removes = if phase.is_multiple_of(2) { 1 } else { 7 };
        let choice = self.dice.roll(13);
        let new = value(&mut self.dice);
        let end = self::key(&mut self.dice, N, force.keys);
        let tree = &self.trees[usize::from(self.table.owner_of(number(&key)))];
        match choice {
            0 => self.scan(&key, &end, new.len() % 200 + 1),
            1 => self.scan_back(&end, &key, new.len() % 200 + 1),
            2..5 => assert_eq!(tree.get(&key).unwrap(), self.model.get(&key).cloned()),
            choice if choice - 5 < removes => {
                let had = self.model.remove(&key).is_some();
                assert_eq!(tree.remove(&key).unwrap(), had, "{key:?}");
            }
            _ => {
                let had = self.model.insert(key.clone(), new.clone()).is_some();
                assert_eq!(tree.put(&key, &new).unwrap(), had, "{key:?}");
            }
        }
    }

    fn scan(&self, from: &[u8], to: &[u8], most: usize) {
        let mut found = Vec::new();
        let next = self.tree(from).scan(from, Some(to), most, &mut found);
        let next = next.unwrap();
        let end = next.as_deref().unwrap_or(to);
        let inside = self
            .model
            .iter()
            .filter(|(key, _)| from <= &key[..] && &key[..] < end);
        let expected: Vec<_> = inside.map(|(k, v)| (k.clone(), v.clone())).collect();
        assert_eq!(found, expected, "{from:?}..{to:?}, next {next:?}");
        assert!(found.len() <= most);
    }

    fn scan_back(&self, from: &[u8], to: &[u8], most: usize) {
        // The owner of the last key below `to`.
        let Some(last) = Bytes::<N>::new(to).and_then(Bytes::before) else {
            return;
        };
        let mut found = Vec::new();
        let tree = self.tree(last.as_slice());
        let next = tree.scan_back(from, Some(to), most, &mut found).unwrap();
        let start = next.as_deref().unwrap_or(from);
        let inside = self
            .model
            .iter()
            .filter(|(key, _)| start <= &key[..] && &key[..] < to);
        let expected: Vec<_> = inside.map(|(k, v)| (k.clone(), v.clone())).rev().collect();
        assert_eq!(found, expected, "{from:?}..{to:?} back, next {next:?}");
    }

    fn hand_over(&mut self) {
        let owners = self.trees.len() as u64;
        let from = self.dice.roll(owners);
        let to = (from + 1 + self.dice.roll(owners - 1)) % owners;
        let tree = self.trees[from as usize].tree();
        let ownership = tree.ownership();
        let ranges = ownership.ranges();
        if ranges.is_empty() || self.table.segments().count() > 20 {
            return;
        }
        let (low, high) = ranges[self.dice.roll(ranges.len() as u64) as usize];
        let some = |dice: &mut Dice| number(&key(dice, N, 3_000)).clamp(low, high);
        let start = match self.dice.roll(3) {
            0 => low,
            _ => tree.range_start(some(&mut self.dice)).unwrap().max(low),
        };
        let end = match self.dice.roll(3) {
            0 => high,
            _ => {
                let after = tree.range_start(some(&mut self.dice).max(start)).unwrap();
                if after > start { after - 1 } else { high }
            }
        };
        let epoch = tree.release(start, end, to as u16).unwrap();
        let inside = start.to_be_bytes();
        let refused = self.trees[from as usize].get(&inside);
        assert!(matches!(refused, Err(Error::NotOwner { .. })));
        self.table = self.trees[to as usize].tree().adopt_table().unwrap();
        assert_eq!(self.table.epoch(), epoch);
        assert_eq!(self.table.owner_of(end), to as u16);
    }

    fn check_all(&self) {
        for (key, value) in &self.model {
            assert_eq!(self.tree(key).get(key).unwrap().as_ref(), Some(value));
        }
        let all: Vec<_> = self.model.clone().into_iter().collect();
        let (mut found, mut next) = (Vec::new(), Some(Vec::new()));
        while let Some(from) = next {
            let tree = self.tree(&from);
            next = tree.scan(&from, None, usize::MAX, &mut found).unwrap();
        }
        assert!(found == all);
    }
}

fn run<P: Pool, const N: usize>(pool: &P, force: Force) -> Run<P::Memory, N> {
    let mut run = Run::start(pool, force);
    for i in 0..force.operations {
        run.step(force, i * 6 / force.operations);
        if force.hand_over_every > 0 && i % force.hand_over_every == 0 {
            run.hand_over();
        }
        if i % 3_000 == 2_999 {
            run.trees.iter().for_each(|tree| tree.flush().unwrap());
        }
    }
    run.check_all();
    run
}

/// Every node of the pool is whole, and levels 0 to 3 of a subtree are on one server.
fn nodes_are_whole<M: RemoteMemory, const N: usize>(tree: &ByteTree<M, N>) {
    tree.flush().unwrap();
    let memory = tree.tree().memory();
    let mut root = [0];
    memory
        .read(Address::new(0, remote::ROOT_OFFSET), &mut root)
        .unwrap();
    let root = Address::from_word(root[0]).unwrap();
    let (mut todo, mut inner) = (vec![root], 0);
    while let Some(at) = todo.pop() {
        let mut image = Image::zero();
        memory.read(at, &mut image.0).unwrap();
        Bytes::<N>::check(&image, at).unwrap();
        if node::level(&image) == 0 {
            continue;
        }
        inner += 1;
        for slot in 0..=Bytes::<N>::count(&image) {
            let child = Address::from_word(Bytes::<N>::child(&image, slot)).unwrap();
            let may_differ = at == root || node::level(&image) >= 4;
            assert!(may_differ || child.server() == at.server(), "{at}: {child}");
            todo.push(child);
        }
    }
    assert!(inner > 5);
}

#[test]
fn with_keys_of_every_limit() {
    for seed in 0..2 {
        let force = Force { seed, ..FORCE };
        nodes_are_whole(&run::<_, 16>(&ModelPool::new(1, POOL_BYTES), force).trees[0]);
        nodes_are_whole(&run::<_, 32>(&ModelPool::new(2, POOL_BYTES), force).trees[0]);
        nodes_are_whole(&run::<_, 64>(&ModelPool::new(2, POOL_BYTES), force).trees[0]);
        nodes_are_whole(&run::<_, 128>(&ModelPool::new(3, POOL_BYTES), force).trees[0]);
    }
}

#[test]
fn with_all_offloaded() {
    for leaf_admission in [0.0, 0.3, 1.0] {
        let force = Force {
            offloading: Offloading::Always,
            leaf_admission,
            ..FORCE
        };
        let done = run::<_, 16>(&ModelPool::new(2, POOL_BYTES), force);
        assert!(done.trees[0].counts().calls > 1_000);
        let done = run::<_, 128>(&ModelPool::new(2, POOL_BYTES), force);
        assert!(done.trees[0].counts().calls > 1_000);
    }
}

#[test]
fn with_full_nodes_and_a_large_cache() {
    let force = Force {
        fill: node::CAPACITY,
        cache_pages: 4_000,
        leaf_admission: 1.0,
        ..FORCE
    };
    run::<_, 16>(&ModelPool::new(2, POOL_BYTES), force);
    run::<_, 128>(&ModelPool::new(2, POOL_BYTES), force);
}

#[test]
fn with_ranges_that_move() {
    for (seed, offloading) in [
        (1, Offloading::Never),
        (2, Offloading::Measured),
        (3, Offloading::Always),
    ] {
        for cache_pages in [12, 60, 2_000] {
            let force = Force {
                hand_over_every: 60,
                owners: 3,
                offloading,
                cache_pages,
                seed,
                ..FORCE
            };
            run::<_, 16>(&ModelPool::new(2, POOL_BYTES), force);
            run::<_, 128>(&ModelPool::new(2, POOL_BYTES), force);
        }
    }
}

#[test]
fn over_shared_memory() {
    let force = Force {
        hand_over_every: 100,
        owners: 2,
        ..FORCE
    };
    run::<_, 16>(&ShmPool::new(2, POOL_BYTES), force);
    run::<_, 128>(&ShmPool::new(2, POOL_BYTES), force);
}

#[test]
fn over_tcp() {
    let force = Force {
        hand_over_every: 100,
        owners: 2,
        operations: 2_000,
        keys: 1_000,
        ..FORCE
    };
    run::<_, 32>(&TcpPool::new(2, POOL_BYTES), force);
    run::<_, 128>(&TcpPool::new(2, POOL_BYTES), force);
}

#[test]
fn from_nothing_and_back() {
    let pool = ModelPool::new(1, POOL_BYTES);
    ByteTree::<_, 128>::format(&pool.connect()).unwrap();
    let tree = ByteTree::<_, 128>::open(pool.connect(), Options::new(0, 64)).unwrap();
    let keys = || {
        (0..6_000_u64).map(|i| {
            let word = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let tail = word.to_string().into_bytes();
            [vec![b'k'; (word % 109) as usize], tail].concat()
        })
    };
    for _ in 0..2 {
        for key in keys() {
            assert!(!tree.put(&key, &key[..key.len().min(20)]).unwrap());
        }
        for key in keys() {
            assert!(tree.get(&key).unwrap().is_some() && tree.remove(&key).unwrap());
        }
        let mut found = Vec::new();
        assert_eq!(tree.scan(b"", None, 10, &mut found).unwrap(), None);
        assert!(found.is_empty());
    }
    // Merges gave nodes back: a second round took few new ones.
    let mut next_free = [0];
    let word = Address::new(0, remote::NEXT_FREE_OFFSET);
    tree.tree().memory().read(word, &mut next_free).unwrap();
    let nodes = next_free[0] / 1024;
    assert!(nodes < 2_600, "{nodes} nodes for 6,000 keys");
}

#[test]
fn the_ends_of_the_key_space_are_keys() {
    let pool = ModelPool::new(1, POOL_BYTES);
    ByteTree::<_, 16>::format(&pool.connect()).unwrap();
    let tree = ByteTree::<_, 16>::open(pool.connect(), Options::new(0, 64)).unwrap();
    let (last, zeros) = ([0xff; 16], [0; 16]);
    let keys: [&[u8]; 5] = [b"", &[0], &zeros, &last[..15], &last];
    for key in keys {
        assert!(!tree.put(key, key).unwrap());
        assert_eq!(tree.get(key).unwrap().as_deref(), Some(key));
    }
    let all: Vec<_> = keys
        .iter()
        .map(|key| (key.to_vec(), key.to_vec()))
        .collect();
    let mut found = Vec::new();
    assert_eq!(tree.scan(b"", None, 9, &mut found).unwrap(), None);
    assert_eq!(found, all);
    // From end to start, an entry at a time.
    let (mut found, mut to) = (Vec::new(), Some(None));
    while let Some(end) = to {
        let end: Option<Vec<u8>> = end;
        to = tree
            .scan_back(b"", end.as_deref(), 1, &mut found)
            .unwrap()
            .map(Some);
    }
    found.reverse();
    assert_eq!(found, all);
    // Ends that are longer than keys.
    let beyond = [0xff; 17];
    let mut found = Vec::new();
    assert_eq!(
        tree.scan(&last, Some(&beyond), 9, &mut found).unwrap(),
        None
    );
    assert_eq!(tree.scan(&beyond, None, 9, &mut found).unwrap(), None);
    assert_eq!(found, all[4..]);
    let long = vec![1; 17];
    assert!(matches!(tree.put(&long, b""), Err(Error::Options(_))));
    assert_eq!(tree.get(&long).unwrap(), None);
    assert!(!tree.remove(&long).unwrap());
    let huge = vec![0; MAX_VALUE_BYTES + 1];
    assert!(matches!(tree.put(b"a", &huge), Err(Error::Options(_))));
}

#[test]
fn trees_of_other_keys_are_refused() {
    let pool = ModelPool::new(1, POOL_BYTES);
    ByteTree::<_, 32>::format(&pool.connect()).unwrap();
    let options = || Options::new(0, 64);
    let refused = ByteTree::<_, 64>::open(pool.connect(), options());
    assert!(matches!(refused, Err(Error::Options(_))));
    assert!(matches!(
        Tree::open(pool.connect(), options()),
        Err(Error::Options(_))
    ));
    ByteTree::<_, 32>::open(pool.connect(), options()).unwrap();
    let unsorted = [b"b", b"a"].map(|key| Ok((key.to_vec(), Vec::new())));
    let pool = ModelPool::new(1, POOL_BYTES);
    let refused = ByteTree::<_, 32>::load(&BulkLoad::default(), &pool.connect(), unsorted);
    assert!(matches!(refused, Err(Error::Options(_))));
}

#[test]
fn verbs_are_those_of_other_trees() {
    let pool = ModelPool::new(1, POOL_BYTES);
    let keys = (0..20_000_u64).map(|i| (i * 50).to_be_bytes().to_vec());
    let entries = keys.map(|key| Ok((key.clone(), key)));
    ByteTree::<_, 16>::load(&BulkLoad::default(), &pool.connect(), entries).unwrap();
    let options = Options::new(0, 4_000)
        .offloading(Offloading::Never)
        .leaf_admission(0.0);
    let tree = ByteTree::<_, 16>::open(pool.connect(), options).unwrap();
    let get = |i: u64| assert!(tree.get(&(i * 50).to_be_bytes()).unwrap().is_some());
    (0..20_000).step_by(10).for_each(get);
    // Inner nodes are cached: a leaf is one read; a write of one that is not admitted, two verbs.
    let before = tree.counts();
    (0..1_000).for_each(get);
    assert_eq!((tree.counts() - before).reads, 1_000);
    let before = tree.counts();
    tree.put(&500_000_u64.to_be_bytes(), b"new").unwrap();
    let counts = tree.counts() - before;
    assert_eq!((counts.reads, counts.writes), (1, 1));
    // A value out of line is one more of each. (The first one reads how large the region is.)
    tree.put(b"first", &[7; 900]).unwrap();
    let before = tree.counts();
    tree.put(&500_000_u64.to_be_bytes(), &[7; 900]).unwrap();
    assert_eq!(
        tree.get(&500_000_u64.to_be_bytes()).unwrap(),
        Some(vec![7; 900])
    );
    let counts = tree.counts() - before;
    assert_eq!((counts.reads, counts.writes), (3, 2));
}

#[test]
fn an_ascending_run_costs_two_verbs_a_leaf() {
    let pool = ModelPool::new(1, POOL_BYTES);
    let key = |i: u64| (i * 50).to_be_bytes();
    let entries = (0..20_000).map(|i| Ok((key(i).to_vec(), key(i).to_vec())));
    let loaded = ByteTree::<_, 16>::load(&BulkLoad::default(), &pool.connect(), entries).unwrap();
    let verbs = |options: Options| {
        let options = options.offloading(Offloading::Never).leaf_admission(0.0);
        let tree = ByteTree::<_, 16>::open(pool.connect(), options).unwrap();
        let before = tree.counts();
        for i in (0..20_000).step_by(4) {
            assert!(tree.put(&key(i), &key(i)).unwrap());
        }
        tree.flush().unwrap();
        (tree.counts() - before).verbs()
    };
    let pages = loaded.inner_nodes + 60;
    let nodes = (loaded.leaves + loaded.inner_nodes) as u64;
    assert!(verbs(Options::new(0, pages)) >= 2 * 20_000 / 4);
    let few = verbs(Options::new(0, pages).write_admission(1.0));
    assert!(few <= 2 * nodes + 60, "{few} verbs, {nodes} nodes");
}

/// Leaves are cut down that cover more than their parents say: the owner died between the writes
/// of a split.
#[test]
fn what_a_dead_owner_left_is_a_tree() {
    for seed in 0..6 {
        let model = Model::new(vec![region(POOL_BYTES)], offload::serve, Latency::rdma());
        ByteTree::<_, 128>::format(&model).unwrap();
        let options = |owner| {
            Options::new(owner, 40)
                .offloading(Offloading::Never)
                .leaf_admission(0.5)
        };
        let one = ByteTree::<_, 128>::open(model.attach(0).unwrap(), options(0)).unwrap();
        let (mut dice, mut flushed, mut keys) = (Dice(seed), Map::new(), Map::new());
        for i in 0..3_000 {
            let key = key(&mut dice, 128, 2_000);
            if dice.roll(4) == 0 {
                one.remove(&key).unwrap();
                keys.remove(&key);
            } else {
                let value = value(&mut dice);
                one.put(&key, &value).unwrap();
                keys.insert(key, value);
            }
            if i == 2_000 {
                one.flush().unwrap();
                flushed = keys.clone();
            }
        }
        // It is gone without a flush; leaves that were evicted are newer than the last one.
        drop(one);
        let two = ByteTree::<_, 128>::open(model.attach(1).unwrap(), options(1)).unwrap();
        two.tree().take_over(0).unwrap();
        let mut found = Vec::new();
        assert_eq!(two.scan(b"", None, usize::MAX, &mut found).unwrap(), None);
        assert!(found.is_sorted_by(|a, b| a.0 < b.0));
        let found: Map = found.into_iter().collect();
        for (key, value) in &flushed {
            // What did not change since is there.
            assert!(
                keys.get(key) != Some(value) || found.get(key) == Some(value),
                "{key:?}"
            );
        }
        for (key, value) in found {
            assert_eq!(two.get(&key).unwrap(), Some(value));
            assert!(two.remove(&key).unwrap());
        }
        assert_eq!(two.scan(b"", None, 1, &mut Vec::new()).unwrap(), None);
    }
}

#[test]
fn threads_write_and_scan_beside_each_other() {
    const KEYS: u64 = 600;
    let pool = UnsteadyPool(ModelPool::new(1, POOL_BYTES));
    ByteTree::<_, 64>::format(&pool.connect()).unwrap();
    let options = Options::new(0, 24).leaf_admission(0.5);
    let tree = ByteTree::<_, 64>::open(pool.connect(), options).unwrap();
    let of = |i: u64| [&b"common beginning/"[..], i.to_string().as_bytes()].concat();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..2_u64)
            .map(|writer| {
                let tree = &tree;
                scope.spawn(move || {
                    let mut dice = Dice(writer);
                    for round in 0..6_000_u64 {
                        let key = 2 * dice.roll(KEYS / 2) + writer;
                        if round % 5 == 0 {
                            tree.remove(&of(key)).unwrap();
                        } else {
                            // The value says whose it is; some lie out of line.
                            let long = if round % 37 == 0 { 300 } else { 8 };
                            let value = [&key.to_be_bytes()[..], &vec![7; long]].concat();
                            tree.put(&of(key), &value).unwrap();
                            let own = tree.get(&of(key)).unwrap();
                            assert_eq!(own, Some(value), "a writer sees its own");
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !is_done.load(SeqCst) {
                let mut found = Vec::new();
                tree.scan(b"", None, usize::MAX, &mut found).unwrap();
                assert!(found.is_sorted_by(|a, b| a.0 < b.0));
                for (key, value) in found {
                    let number = u64::from_be_bytes(value[..8].try_into().unwrap());
                    assert_eq!(of(number), key);
                }
            }
        });
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_done.store(true, SeqCst);
        ended.into_iter().for_each(|end| end.unwrap());
    });
}
