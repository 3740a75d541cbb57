//! Situations that take two operations at one moment, made by hand.

use super::{BulkLoad, Options, Tree};
use crate::{
    address::Address,
    cache::{Place, State, frame_of},
    node::{self, SWIZZLED},
    offload::{self, Offloading, Policy},
    partition::Table,
    remote::{Latency, Model, Region},
};
use std::sync::Arc;

const KEYS: u64 = 20_000;
const FILL: usize = 40;

fn pool() -> Model {
    let region = Arc::new(Region::create(16 << 20).unwrap());
    Model::new(vec![region], offload::serve, Latency::rdma())
}

fn options(owner: u16) -> Options {
    Options::new(owner, 1_000)
        .leaf_admission(1.0)
        .offloading(Offloading::Never)
}

/// The frame of the child of `frame` on the way to `key`.
fn child(tree: &Tree<Model>, frame: usize, key: u64) -> usize {
    let word = node::route(&tree.cache.frame(frame).node(), key).word;
    assert!(word & SWIZZLED != 0);
    frame_of(word)
}

/// The leaf of `key` cools, and its parent leaves before it does. Returns where the leaf is.
fn cool_way(tree: &Tree<Model>, key: u64) -> Address {
    tree.get(key).unwrap();
    let inner = child(tree, super::ROOT, key);
    let leaf = child(tree, inner, key);
    let (inner_at, leaf_at) = (
        tree.address_of(inner).unwrap(),
        tree.address_of(leaf).unwrap(),
    );
    tree.cache.cool(leaf, &tree.memory).unwrap();
    tree.cache.cool(inner, &tree.memory).unwrap();
    tree.cache.forget_cooling(inner_at).unwrap();
    assert_eq!(tree.cache.mapping().get(inner_at), None);
    assert_eq!(tree.cache.mapping().get(leaf_at), Some(Place::Frame(leaf)));
    leaf_at
}

#[test]
fn c2_an_offloaded_write_drops_the_copy_that_cools() {
    let memory = pool();
    let load = BulkLoad::default().fill(FILL);
    load.load(&memory, (0..KEYS).map(|key| (key, key))).unwrap();
    let mut tree = Tree::open(memory, options(0)).unwrap();
    cool_way(&tree, 777);
    tree.policy = Policy::new(Offloading::Always);
    assert_eq!(tree.put(777, 1).unwrap(), Some(777));
    assert_eq!(tree.counts().calls, 1);
    tree.policy = Policy::new(Offloading::Never);
    assert_eq!(tree.get(777).unwrap(), Some(1));
}

/// The write was done, and its answer is lost.
#[test]
fn c2_an_offloaded_write_that_fails_drops_the_copy_that_cools() {
    let region = Arc::new(Region::create(16 << 20).unwrap());
    let garbled = |region: &Region, request: &[u64]| {
        offload::serve(region, request);
        vec![u64::MAX; 9]
    };
    let memory = Model::new(vec![region], garbled, Latency::rdma());
    let load = BulkLoad::default().fill(FILL);
    load.load(&memory, (0..KEYS).map(|key| (key, key))).unwrap();
    let mut tree = Tree::open(memory, options(0)).unwrap();
    let leaf_at = cool_way(&tree, 777);
    tree.policy = Policy::new(Offloading::Always);
    tree.put(777, 1).unwrap_err();
    tree.policy = Policy::new(Offloading::Never);
    assert_eq!(tree.cache.mapping().get(leaf_at), None);
    assert_eq!(tree.get(777).unwrap(), Some(1));
}

#[test]
fn c4_a_node_cools_when_its_children_and_its_pins_are_gone() {
    let memory = pool();
    let load = BulkLoad::default().fill(FILL);
    load.load(&memory, (0..KEYS).map(|key| (key, key))).unwrap();
    let tree = Tree::open(memory, options(0)).unwrap();
    tree.put(777, 1).unwrap();
    let inner = child(&tree, super::ROOT, 777);
    let leaf = child(&tree, inner, 777);
    let cool = |frame: usize| {
        tree.cache.cool(frame, &tree.memory).unwrap();
        tree.cache.frame(frame).state()
    };
    assert_eq!(cool(inner), State::Hot, "its leaf is hot, and dirty");
    let before = tree.counts();
    assert_eq!(cool(leaf), State::Cooling);
    assert_eq!((tree.counts() - before).writes, 1);
    let latched = tree.cache.frame(inner).latch.lock();
    let pin = tree.cache.frame(inner).pin();
    drop(latched);
    assert_eq!(cool(inner), State::Hot, "a thread works below");
    drop(pin);
    assert_eq!(cool(inner), State::Cooling);
    // Both are found where they cool.
    let before = tree.counts();
    assert_eq!(tree.get(777).unwrap(), Some(1));
    assert_eq!(tree.counts(), before);
}

#[test]
fn c3_a_shared_node_keeps_a_child_that_a_thread_works_on() {
    let memory = pool();
    // A node of level 1 has 40 leaves from key 800,000 on, 35 of them owner 0's.
    let border = 940_000;
    let load = BulkLoad::default().fill(FILL);
    let load = load.table(Table::new(vec![(0, 0), (border, 1)]).unwrap());
    let entries = (0..KEYS).map(|key| (key * 100, key));
    let table = load.load(&memory, entries).unwrap();
    assert_eq!(table.owner_of(border - 1), 0);
    let one = Tree::open(memory.another(), options(0)).unwrap();
    let two = Tree::open(memory, options(1)).unwrap();
    let own = one.ownership();
    let key = border - 100;
    let root = one.cache.frame(super::ROOT).node();
    let way = || node::route(&root, key);
    // A thread of owner 0 has read the shared node.
    let at = one.look(super::ROOT).ok().unwrap();
    let before = way();
    let claim = one.claim(&own, at, before, key).ok().unwrap().unwrap();
    let taken = one.cache.take(&one.memory).unwrap().unwrap();
    let (image, is_trimmed) = one.fetch(&claim).ok().unwrap();
    assert!(!is_trimmed);
    // Owner 1 splits leaves below it until it is split: the key moves to the new half.
    for key in (border..border + 20_000).step_by(3) {
        two.put(key, 1).unwrap();
    }
    // Another thread of owner 0 wants to read the root again, and leaves it.
    one.refresh(&own, key).unwrap();
    assert_eq!(way(), before);
    assert!(one.place(claim, taken, &image, false).is_ok());
    assert!(way().word & SWIZZLED != 0);
    // Nobody works on it: the way of the key is another one.
    one.refresh(&own, key).unwrap();
    assert!(way().low > before.low, "{:?}", way());
    assert_eq!(one.get(key).unwrap(), Some(key / 100));
}
