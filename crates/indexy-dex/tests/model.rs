//! The tree is a sorted map, over every transport, with tiny caches, whatever is forced on it:
//! splits, merges, cooling, offloading, repartitioning.

mod pools;

use indexy_dex::{
    Address, BulkLoad, Error, Options, Tree,
    node::{self, Image},
    offload::Offloading,
    partition::Table,
    remote::{self, RemoteMemory},
};
use pools::{Dice, ModelPool, Pool, ShmPool, TcpPool};
use std::collections::BTreeMap;

const POOL_BYTES: u64 = 64 << 20;

/// What is forced on the tree.
#[derive(Clone, Copy)]
struct Force {
    cache_pages: usize,
    leaf_admission: f64,
    offloading: Offloading,
    /// One operation of so many hands a range over; 0: none.
    hand_over_every: u64,
    /// Entries of a loaded node: few make a deep tree, many are split soon.
    fill: usize,
    operations: u64,
    /// Keys are below.
    keys: u64,
    seed: u64,
}

const FORCE: Force = Force {
    // Two a level of a tree with four levels.
    cache_pages: 8,
    leaf_admission: 0.3,
    offloading: Offloading::Measured,
    hand_over_every: 0,
    fill: 6,
    operations: 30_000,
    keys: 20_000,
    seed: 1,
};

struct Run<M> {
    trees: Vec<Tree<M>>,
    table: Table,
    model: BTreeMap<u64, u64>,
    dice: Dice,
}

impl<M: RemoteMemory> Run<M> {
    fn start<P: Pool<Memory = M>>(pool: &P, force: Force, owners: u16) -> Self {
        let loaded: BTreeMap<u64, u64> = (0..force.keys).step_by(5).map(|k| (k, !k)).collect();
        let each = force.keys / u64::from(owners);
        let segments = (0..owners).map(|owner| (u64::from(owner) * each, owner));
        let load = BulkLoad::default().table(Table::new(segments.collect()).unwrap());
        let load = load.fill(force.fill);
        let table = load.load(&pool.connect(), loaded.clone()).unwrap();
        let open = |owner| {
            let options = Options::new(owner, force.cache_pages)
                .leaf_admission(force.leaf_admission)
                .offloading(force.offloading)
                .seed(force.seed + u64::from(owner));
            Tree::open(pool.connect(), options).unwrap()
        };
        Self {
            trees: (0..owners).map(open).collect(),
            table,
            model: loaded,
            dice: Dice(force.seed),
        }
    }

    fn tree(&self, key: u64) -> &Tree<M> {
        &self.trees[usize::from(self.table.owner_of(key))]
    }

    fn step(&mut self, force: Force, phase: u64) {
        let key = self.dice.roll(force.keys);
        let value = self.dice.roll(u64::MAX);
        // Phases grow and shrink the tree in turn.
        let removes = if phase.is_multiple_of(2) { 1 } else { 7 };
        let choice = self.dice.roll(12);
        let tree = &self.trees[usize::from(self.table.owner_of(key))];
        match choice {
            0 => {
                let mut found = Vec::new();
                let most = 1 + (value % 300) as usize;
                let end = key + value % 3_000;
                let next = tree.scan(key, end, most, &mut found).unwrap();
                self.check_scan(key, end, &found, next, most);
            }
            1..4 => {
                let expected = self.model.get(&key).copied();
                assert_eq!(tree.get(key).unwrap(), expected, "get {key}");
            }
            choice if choice - 4 < removes => {
                let old = tree.remove(key).unwrap();
                assert_eq!(old, self.model.remove(&key), "remove {key}");
            }
            _ => {
                let old = tree.put(key, value).unwrap();
                assert_eq!(old, self.model.insert(key, value), "put {key}");
            }
        }
    }

    fn check_scan(&self, from: u64, to: u64, found: &[(u64, u64)], next: Option<u64>, most: usize) {
        let end = next.map_or(to, |next| next - 1);
        let mut expected: Vec<_> = self.model.range(from..=end.max(from)).collect();
        if next == Some(from) {
            expected.clear();
        }
        let expected: Vec<(u64, u64)> = expected.into_iter().map(|(k, v)| (*k, *v)).collect();
        assert_eq!(found, expected, "scan {from}..={to}, next {next:?}");
        assert!(found.len() <= most);
        if let Some(next) = next {
            let owner = self.table.owner_of(from);
            let is_owned = self.table.owner_of(next) == owner;
            assert!(
                !is_owned || found.len() == most,
                "stopped at {next} for nothing"
            );
        }
    }

    /// A random owner gives a random part of one of its ranges away.
    fn hand_over(&mut self) {
        let owners = self.trees.len() as u64;
        let from = self.dice.roll(owners);
        let to = (from + 1 + self.dice.roll(owners - 1)) % owners;
        let tree = &self.trees[from as usize];
        let ownership = tree.ownership();
        let ranges = ownership.ranges();
        if ranges.is_empty() || self.table.segments().count() > 20 {
            return;
        }
        let (low, high) = ranges[self.dice.roll(ranges.len() as u64) as usize];
        let inside = |dice: &mut Dice| low + dice.roll((high - low).clamp(1, 20_000));
        let start = match self.dice.roll(3) {
            0 => low,
            _ => tree.leaf_start(inside(&mut self.dice)).unwrap().max(low),
        };
        let end = match self.dice.roll(3) {
            0 => high,
            _ => tree
                .leaf_start(inside(&mut self.dice).max(start))
                .unwrap()
                .max(start),
        };
        // The end of a leaf is where the next one starts.
        let end = if end > start && end < high {
            end - 1
        } else {
            high
        };
        let epoch = tree.release(start, end, to as u16).unwrap();
        assert!(matches!(tree.get(start), Err(Error::NotOwner { .. })));
        let taker = &self.trees[to as usize];
        assert!(matches!(taker.get(end), Err(Error::NotOwner { .. })));
        self.table = taker.adopt_table().unwrap();
        assert_eq!(self.table.epoch(), epoch);
        assert_eq!(self.table.owner_of(start), to as u16);
    }

    fn check_all(&self, keys: u64) {
        for (key, value) in &self.model {
            assert_eq!(self.tree(*key).get(*key).unwrap(), Some(*value), "{key}");
        }
        let mut found = Vec::new();
        let mut next = Some(0);
        while let Some(from) = next {
            next = self
                .tree(from)
                .scan(from, u64::MAX, usize::MAX, &mut found)
                .unwrap();
        }
        let all: Vec<_> = self.model.iter().map(|(k, v)| (*k, *v)).collect();
        assert_eq!(found, all, "below {keys}");
    }
}

fn run<P: Pool>(pool: &P, force: Force, owners: u16) -> Run<P::Memory> {
    let mut run = Run::start(pool, force, owners);
    for i in 0..force.operations {
        let phase = i * 6 / force.operations;
        run.step(force, phase);
        if force.hand_over_every > 0 && i % force.hand_over_every == 0 {
            run.hand_over();
        }
    }
    run.check_all(force.keys);
    run
}

/// Levels 0 to 3 of a subtree are on one server, whatever was split and merged.
fn subtrees_lie_on_one_server<M: RemoteMemory>(tree: &Tree<M>) {
    tree.flush().unwrap();
    let read = |at: Address| {
        let mut image = Image::zero();
        tree.memory().read(at, &mut image.0).unwrap();
        node::check(&image, at).unwrap();
        image
    };
    let mut root = [0];
    tree.memory()
        .read(Address::new(0, remote::ROOT_OFFSET), &mut root)
        .unwrap();
    let root = Address::from_word(root[0]).unwrap();
    let mut todo = vec![root];
    let mut inner = 0;
    while let Some(at) = todo.pop() {
        let image = read(at);
        if node::level(&image) == 0 {
            continue;
        }
        inner += 1;
        for slot in 0..=node::count(&image) {
            let child = Address::from_word(node::child(&image, slot)).unwrap();
            let may_differ = at == root || node::level(&image) >= 4;
            assert!(may_differ || child.server() == at.server(), "{at}: {child}");
            todo.push(child);
        }
    }
    assert!(inner > 10);
}

#[test]
fn with_offloading_as_measured() {
    run(&ModelPool::new(1, POOL_BYTES), FORCE, 1);
    let done = run(&ModelPool::new(3, POOL_BYTES), FORCE, 1);
    subtrees_lie_on_one_server(&done.trees[0]);
}

#[test]
fn with_all_offloaded() {
    for leaf_admission in [0.0, 0.3] {
        let force = Force {
            offloading: Offloading::Always,
            leaf_admission,
            ..FORCE
        };
        let done = run(&ModelPool::new(2, POOL_BYTES), force, 1);
        assert!(done.trees[0].counts().calls > 10_000);
        subtrees_lie_on_one_server(&done.trees[0]);
    }
}

#[test]
fn with_every_leaf_admitted_and_with_none() {
    for leaf_admission in [0.0, 1.0] {
        let force = Force {
            leaf_admission,
            offloading: Offloading::Never,
            ..FORCE
        };
        run(&ModelPool::new(2, POOL_BYTES), force, 1);
    }
}

#[test]
fn with_a_cache_that_holds_everything() {
    let force = Force {
        cache_pages: 10_000,
        leaf_admission: 1.0,
        ..FORCE
    };
    run(&ModelPool::new(2, POOL_BYTES), force, 1);
}

#[test]
fn with_three_owners() {
    run(&ModelPool::new(2, POOL_BYTES), FORCE, 3);
}

#[test]
fn with_ranges_that_move() {
    for (seed, offloading) in [
        (1, Offloading::Never),
        (2, Offloading::Measured),
        (3, Offloading::Always),
    ] {
        for cache_pages in [8, 40, 2_000] {
            let force = Force {
                hand_over_every: 100,
                offloading,
                cache_pages,
                seed,
                ..FORCE
            };
            run(&ModelPool::new(2, POOL_BYTES), force, 3);
        }
    }
}

#[test]
fn with_full_nodes() {
    for (seed, owners) in [(1, 1), (2, 3), (3, 3)] {
        let force = Force {
            fill: node::CAPACITY,
            hand_over_every: if owners > 1 { 500 } else { 0 },
            keys: 200_000,
            operations: 100_000,
            seed,
            ..FORCE
        };
        run(&ModelPool::new(2, POOL_BYTES), force, owners);
    }
}

#[test]
fn over_shared_memory() {
    let force = Force {
        hand_over_every: 100,
        ..FORCE
    };
    run(&ShmPool::new(2, POOL_BYTES), force, 2);
}

#[test]
fn over_tcp() {
    let force = Force {
        hand_over_every: 100,
        operations: 4_000,
        keys: 4_000,
        ..FORCE
    };
    run(&TcpPool::new(2, POOL_BYTES), force, 2);
}

#[test]
fn from_nothing_and_back() {
    let pool = ModelPool::new(1, POOL_BYTES);
    let memory = pool.connect();
    assert!(
        Tree::open(pool.connect(), Options::new(0, 100)).is_err(),
        "no tree yet"
    );
    Tree::format(&memory).unwrap();
    assert!(Tree::format(&memory).is_err(), "a tree already");
    let tree = Tree::open(memory, Options::new(0, 64)).unwrap();
    let mut found = Vec::new();
    for round in 0..2 {
        let keys = || (0..30_000_u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        for key in keys() {
            assert_eq!(tree.put(key, key ^ round).unwrap(), None);
        }
        for key in keys() {
            assert_eq!(tree.get(key).unwrap(), Some(key ^ round));
        }
        for key in keys() {
            assert_eq!(tree.remove(key).unwrap(), Some(key ^ round));
        }
        assert_eq!(tree.scan(0, u64::MAX, 10, &mut found).unwrap(), None);
        assert!(found.is_empty());
    }
    // Merges gave nodes back: a second round took few new ones.
    let mut next_free = [0];
    let word = indexy_dex::Address::new(0, indexy_dex::remote::NEXT_FREE_OFFSET);
    tree.memory().read(word, &mut next_free).unwrap();
    let nodes = next_free[0] / 1024;
    assert!(nodes < 1_400, "{nodes} nodes for 30,000 keys");
}

#[test]
fn the_ends_of_the_key_space_are_keys() {
    let pool = ModelPool::new(1, POOL_BYTES);
    let memory = pool.connect();
    let ends = [(0, 1), (1, 2), (u64::MAX - 1, 3), (u64::MAX, 4)];
    BulkLoad::default().fill(2).load(&memory, ends).unwrap();
    let tree = Tree::open(memory, Options::new(0, 64)).unwrap();
    for (key, value) in ends {
        assert_eq!(tree.get(key).unwrap(), Some(value));
    }
    for key in (0..200).chain(u64::MAX - 200..=u64::MAX) {
        tree.put(key, key).unwrap();
    }
    let mut found = Vec::new();
    assert_eq!(
        tree.scan(u64::MAX - 5, u64::MAX, 100, &mut found).unwrap(),
        None
    );
    assert_eq!(found.len(), 6);
    let wrong =
        BulkLoad::default().load(&ModelPool::new(1, POOL_BYTES).connect(), [(2, 0), (2, 0)]);
    assert!(matches!(wrong, Err(Error::Options(_))));
}

#[test]
fn a_full_pool_is_an_error_and_loses_nothing() {
    let pool = ModelPool::new(1, 4096 + 64 * 1024);
    let memory = pool.connect();
    Tree::format(&memory).unwrap();
    let tree = Tree::open(memory, Options::new(0, 16)).unwrap();
    let mut stored = Vec::new();
    let full = loop {
        let key = (stored.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        match tree.put(key, 7) {
            Ok(_) => stored.push(key),
            Err(error) => break error,
        }
    };
    assert!(matches!(full, Error::PoolFull { server: 0 }), "{full}");
    assert!(stored.len() > 1_000);
    for key in &stored {
        assert_eq!(tree.get(*key).unwrap(), Some(7));
    }
    for key in &stored {
        assert_eq!(tree.remove(*key).unwrap(), Some(7));
    }
    tree.put(1, 1).unwrap();
}
