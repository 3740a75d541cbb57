//! A compute server dies, or is stopped and replaced, at every verb of its life: splits, merges, a
//! flush, a hand-over. The one that takes over finds a tree with every key that was flushed, and
//! works on it; the one that was replaced answers nothing and changes nothing.

mod mortal;
mod pools;

use indexy_dex::{
    Address, BulkLoad, Error, Options, Result, Tree,
    node::CAPACITY,
    offload::{self, Offloading},
    partition::Table,
    remote::{Latency, Model, ROOT_OFFSET, RemoteMemory},
};
use mortal::{Fate, Mortal};
use pools::{Dice, region};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, atomic::Ordering::Relaxed},
};

const STEP: u64 = 100;
const GONE: u16 = 0;
const NEXT: u16 = 1;
const THIRD: u16 = 2;

/// What a life is lived in.
#[derive(Clone, Copy, Debug)]
struct World {
    leaves: u64,
    /// Leaves before owner 0's, of a third owner, who goes on when owner 0 is gone.
    third: u64,
    offloading: Offloading,
    cache_pages: usize,
}

impl World {
    fn keys(self) -> u64 {
        self.leaves * CAPACITY as u64 * STEP
    }

    /// Inside of the first node of level 1, which both owners share.
    fn border(self) -> u64 {
        30 * CAPACITY as u64 * STEP
    }

    /// The first key of owner 0.
    fn first(self) -> u64 {
        self.third * CAPACITY as u64 * STEP
    }

    fn options(self, owner: u16) -> Options {
        Options::new(owner, self.cache_pages)
            .leaf_admission(0.5)
            .offloading(self.offloading)
    }
}

/// What the pool may say of a key: what it had when it was last flushed, and all since.
#[derive(Default)]
struct History {
    flushed: BTreeMap<u64, u64>,
    since: BTreeMap<u64, BTreeSet<Option<u64>>>,
    last: BTreeMap<u64, Option<u64>>,
}

impl History {
    fn writes(&mut self, key: u64, value: Option<u64>) {
        self.since.entry(key).or_default().insert(value);
        self.last.insert(key, value);
    }

    fn is_flushed(&mut self) {
        for (key, value) in std::mem::take(&mut self.last) {
            match value {
                Some(value) => self.flushed.insert(key, value),
                None => self.flushed.remove(&key),
            };
        }
        self.since.clear();
    }

    fn allows(&self, key: u64, value: Option<u64>) -> bool {
        self.flushed.get(&key).copied() == value
            || self.since.get(&key).is_some_and(|all| all.contains(&value))
    }
}

/// The life: returns how it ended.
fn live(world: World, tree: &Tree<Mortal>, history: &mut History) -> Result<()> {
    let border = world.border();
    let (first, near) = (world.first(), border - 40 * STEP);
    let put = |history: &mut History, key: u64, value: u64| {
        history.writes(key, Some(value));
        tree.put(key, value).map(drop)
    };
    // Splits below the shared node until it is split too; at the far end private ones.
    for i in 0..40 {
        put(history, (near - i * 29 * STEP).max(first) + 1, i)?;
        put(history, first + i * STEP + 7, i)?;
    }
    tree.flush()?;
    history.is_flushed();
    for i in 0..20 {
        put(history, (near - i * 29 * STEP).max(first) + 2, i)?;
        put(history, first + i * STEP, 1_000 + i)?;
    }
    // Merges.
    for key in (border - 4 * 58 * STEP..border).step_by(STEP as usize) {
        history.writes(key, None);
        tree.remove(key)?;
    }
    for key in (first + 3 * STEP..first + 3 * 58 * STEP).step_by(STEP as usize) {
        history.writes(key, None);
        tree.remove(key)?;
    }
    // Splits below another node take the memory of what was merged.
    for i in 0..130 {
        put(history, border - 5_000 + i * 37 + 1, i)?;
    }
    let start = tree.leaf_start((first + border) / 2)?;
    put(history, start, 5)?;
    tree.release(start, border - 1, NEXT)?;
    tree.flush()?;
    history.is_flushed();
    put(history, first + 5, 5)
}

struct Lived {
    verbs: u64,
    ended: Result<()>,
}

fn one_life(world: World, at: u64, fate: Fate) -> Lived {
    let pool = Model::new(vec![region(8 << 20)], offload::serve, Latency::rdma());
    let first = world.first();
    let mut segments = vec![(first, GONE), (world.border(), NEXT)];
    if first > 0 {
        segments.insert(0, (0, THIRD));
    }
    let table = Table::new(segments).unwrap();
    let load = BulkLoad::default().fill(CAPACITY).table(table);
    let loaded: BTreeMap<u64, u64> = (0..world.keys())
        .step_by(STEP as usize)
        .map(|k| (k, !k))
        .collect();
    let table = load.load(&pool, loaded.clone()).unwrap();
    assert_eq!(table.owner_of(world.border()), NEXT);
    assert_eq!(table.owner_of(world.border() - 1), GONE);

    let next = Tree::open(pool.attach(NEXT).unwrap(), world.options(NEXT)).unwrap();
    let next = Arc::new(next);
    // It knows the shared nodes as they were.
    next.get(world.border()).unwrap();
    let third = Tree::open(pool.attach(THIRD).unwrap(), world.options(THIRD)).unwrap();
    if first > 0 {
        third.get(0).unwrap();
    }
    let taker = next.clone();
    let replace = move || drop(taker.take_over(GONE).unwrap());
    let memory = Mortal::new(pool.attach(GONE).unwrap(), at, fate, replace);
    let mut history = History {
        flushed: loaded,
        ..History::default()
    };
    let mut verbs = 0;
    let ended = Tree::open(memory, world.options(GONE)).and_then(|tree| {
        let ended = live(world, &tree, &mut history);
        verbs = tree.memory().verbs.load(Relaxed);
        let is_replaced = matches!(fate, Fate::IsReplacedBefore | Fate::IsReplacedAfter);
        if verbs > at && is_replaced {
            // All cached, or not: it answers nothing and writes nothing.
            for key in [first, first + 7, world.border() - STEP, world.border()] {
                let refused = tree.get(key);
                assert!(
                    matches!(
                        refused,
                        Err(Error::Fenced { owner: GONE, .. } | Error::NotOwner { .. })
                    ),
                    "{refused:?}"
                );
                tree.put(key, 666).unwrap_err();
            }
            let _ = tree.flush();
        }
        ended
    });
    go_on(world, &third, &next, &mut history);
    next.take_over(GONE).unwrap();
    next.take_over(THIRD).unwrap();
    check(world, &next, &history, at, fate);
    Lived { verbs, ended }
}

/// The other owners split leaves below the shared node. Locks that were left end, and what they
/// guarded is whole.
fn go_on(world: World, third: &Tree<Model>, next: &Tree<Model>, history: &mut History) {
    for key in (3..world.first()).step_by(2 * STEP as usize) {
        third.put(key, key).unwrap();
        history.flushed.insert(key, key);
    }
    third.flush().unwrap();
    for i in 0..60 {
        let key = world.border() + i * 9 * STEP + 3;
        if key < world.keys() {
            let put = next.put(key, i);
            put.unwrap_or_else(|error| panic!("{error}"));
            history.flushed.insert(key, i);
        }
    }
}

/// All keys are where they should be, and the tree can be worked on.
fn check(world: World, tree: &Tree<Model>, history: &History, at: u64, fate: Fate) {
    let mut found = Vec::new();
    assert_eq!(
        tree.scan(0, u64::MAX, usize::MAX, &mut found).unwrap(),
        None
    );
    assert!(found.is_sorted_by(|a, b| a.0 < b.0));
    let mut now: BTreeMap<u64, u64> = found.into_iter().collect();
    let keys: BTreeSet<u64> = now
        .keys()
        .chain(history.flushed.keys())
        .chain(history.since.keys())
        .copied()
        .collect();
    for key in keys {
        let value = now.get(&key).copied();
        assert!(
            history.allows(key, value),
            "{fate:?} at {at}: {key} has {value:?}"
        );
    }
    let mut dice = Dice(at);
    for i in 0..1_500 {
        let key = dice.roll(world.keys() / 20) * 20;
        match dice.roll(4) {
            0 => assert_eq!(
                tree.get(key).unwrap(),
                now.get(&key).copied(),
                "{fate:?} at {at}"
            ),
            1 => assert_eq!(
                tree.remove(key).unwrap(),
                now.remove(&key),
                "{fate:?} at {at}"
            ),
            _ => assert_eq!(
                tree.put(key, i).unwrap(),
                now.insert(key, i),
                "{fate:?} at {at}"
            ),
        }
    }
    let mut found = Vec::new();
    tree.scan(0, u64::MAX, usize::MAX, &mut found).unwrap();
    assert_eq!(
        found,
        now.into_iter().collect::<Vec<_>>(),
        "{fate:?} at {at}"
    );
}

/// Every verb, or every so many.
fn all_lives(world: World, fate: Fate, step: usize) {
    let whole = one_life(world, u64::MAX, fate);
    whole.ended.unwrap();
    assert!(whole.verbs > 150, "{} verbs", whole.verbs);
    for at in (0..whole.verbs).step_by(step) {
        let life = one_life(world, at, fate);
        assert!(
            life.ended.is_err() || at + 1 == whole.verbs,
            "{fate:?} at {at}"
        );
    }
}

/// One leaf more than fits below one node: the shared node is below the root.
const TWO_LEVELS: World = World {
    leaves: 69,
    third: 0,
    offloading: Offloading::Never,
    cache_pages: 300,
};

/// The shared node is the root, and gets a level.
const ROOT_SPLITS: World = World {
    leaves: 58,
    ..TWO_LEVELS
};

/// Both halves of the shared node stay shared when it is split.
const THREE_OWNERS: World = World {
    third: 10,
    ..TWO_LEVELS
};

/// Eviction and offloading everywhere.
const TINY: World = World {
    cache_pages: 8,
    offloading: Offloading::Always,
    ..TWO_LEVELS
};

#[test]
fn p1_p2_p3_one_that_dies_at_any_verb_leaves_a_tree() {
    for fate in [Fate::DiesBefore, Fate::DiesAfter] {
        all_lives(TWO_LEVELS, fate, 1);
        all_lives(ROOT_SPLITS, fate, 1);
        all_lives(THREE_OWNERS, fate, 1);
        all_lives(TINY, fate, 7);
    }
}

#[test]
fn f1_t6_one_that_is_replaced_at_any_verb_answers_nothing_and_changes_nothing() {
    for fate in [Fate::IsReplacedBefore, Fate::IsReplacedAfter] {
        all_lives(TWO_LEVELS, fate, 1);
        all_lives(ROOT_SPLITS, fate, 1);
        all_lives(THREE_OWNERS, fate, 1);
        all_lives(TINY, fate, 7);
    }
}

/// The owner comes back while it is replaced: one of the two serves the range.
#[test]
fn p4_one_that_comes_back_meets_the_one_that_takes_over() {
    let mut served = [0, 0];
    for at in 0.. {
        let pool = Model::new(vec![region(8 << 20)], offload::serve, Latency::rdma());
        let table = Table::new(vec![(0, GONE), (TWO_LEVELS.border(), NEXT)]).unwrap();
        let load = BulkLoad::default().fill(CAPACITY).table(table);
        let loaded = (0..TWO_LEVELS.keys())
            .step_by(STEP as usize)
            .map(|k| (k, !k));
        load.load(&pool, loaded).unwrap();
        drop(Tree::open(pool.attach(GONE).unwrap(), TWO_LEVELS.options(GONE)).unwrap());
        let back = Arc::new(Mutex::new(None));
        let (hook_back, hook_pool) = (back.clone(), pool.another());
        let come_back = move || {
            let memory = hook_pool.attach(GONE).unwrap();
            let tree = Tree::open(memory, TWO_LEVELS.options(GONE)).unwrap();
            *hook_back.lock().unwrap() = Some(tree);
        };
        let memory = pool.attach(NEXT).unwrap();
        let memory = Mortal::new(memory, at, Fate::IsReplacedBefore, come_back);
        let next = Tree::open(memory, TWO_LEVELS.options(NEXT)).unwrap();
        let taken = next.take_over(GONE);
        let back = back.lock().unwrap().take();
        let Some(back) = back else {
            break;
        };
        let answers = [next.get(STEP).is_ok(), back.get(STEP).is_ok()];
        assert!(answers != [true, true], "both serve, at {at}");
        assert!(!answers[0] || taken.is_ok(), "at {at}");
        for (served, answer) in served.iter_mut().zip(answers) {
            *served += u32::from(answer);
        }
    }
    assert!(served[0] > 0 && served[1] > 0, "{served:?}");
}

/// A root that was shared when it was locked, and is one owner's alone when that one is gone.
#[test]
fn l1_a_lock_left_on_a_root_that_nobody_shares_ends() {
    let pool = Model::new(vec![region(8 << 20)], offload::serve, Latency::rdma());
    let entries = (0..10_000).map(|key| (key, key));
    BulkLoad::default().load(&pool, entries).unwrap();
    let gone = pool.attach(GONE).unwrap();
    let (mut root, mut version) = ([0], [0]);
    gone.read(Address::new(0, ROOT_OFFSET), &mut root).unwrap();
    let root = Address::from_word(root[0]).unwrap();
    gone.read(root, &mut version).unwrap();
    let locked = gone.session() << 40 | version[0] | 1;
    assert_eq!(gone.cas(root, version[0], locked).unwrap(), version[0]);
    let next = Tree::open(pool.attach(NEXT).unwrap(), Options::new(NEXT, 100)).unwrap();
    next.take_over(GONE).unwrap();
    assert_eq!(next.get(77).unwrap(), Some(77));
    next.put(77, 1).unwrap();
    next.flush().unwrap();
    gone.read(root, &mut version).unwrap_err();
    pool.read(root, &mut version).unwrap();
    assert_eq!(version[0] & 1, 0);
}
