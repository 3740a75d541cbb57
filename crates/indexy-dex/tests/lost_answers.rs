//! The answer of one verb is lost: the compute server does not know that the pool has what it
//! wrote. It goes on, evicts pages, and dies. The one that takes over finds every key that was
//! flushed.

mod mortal;
mod pools;

use indexy_dex::{
    BulkLoad, Error, Options, Tree,
    node::CAPACITY,
    offload::{self, Offloading},
    partition::Table,
    remote::{Latency, Model},
};
use mortal::{Fate, Mortal};
use pools::region;
use std::sync::atomic::Ordering::Relaxed;

const STEP: u64 = 100;
const GONE: u16 = 0;
const NEXT: u16 = 1;
const LEAF: u64 = CAPACITY as u64 * STEP;

/// What the compute server does until an answer is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Life {
    /// It removes most keys: leaves are merged, then the nodes above them.
    Shrinks,
    /// It fills full leaves: they are split, then the nodes above them.
    Grows,
}

/// Keys that nobody removes.
fn stays(key: u64) -> bool {
    key.is_multiple_of(9 * STEP)
}

fn change(tree: &Tree<Mortal>, life: Life, key: u64) {
    let done = match life {
        Life::Shrinks if stays(key) => return,
        Life::Shrinks => tree.remove(key),
        Life::Grows => tree.put(key + 1, 1),
    };
    assert!(matches!(done, Ok(_) | Err(Error::Lost { .. })), "{done:?}");
}

/// Leaves are merged, others are split and take the memory that is free; what changed leaves the
/// cache, but for the path.
fn go_on(tree: &Tree<Mortal>, keys: u64, leaves: u64) {
    let merged = leaves / 2 * LEAF..(leaves / 2 + 3) * LEAF;
    for key in merged.step_by(STEP as usize) {
        change(tree, Life::Shrinks, key);
    }
    for leaf in 1..leaves.min(6) {
        change(tree, Life::Grows, keys - leaf * LEAF);
    }
    for key in (0..keys).step_by(LEAF as usize / 2) {
        let _ = tree.get(key);
    }
}

/// Loses the answer of verb `at`, and makes `more` changes; returns the verbs of all, and of the
/// open.
fn one_life(life: Life, leaves: u64, at: u64, more: u32) -> (u64, u64) {
    let pool = Model::new(vec![region(8 << 20)], offload::serve, Latency::rdma());
    let load = BulkLoad::default().fill(CAPACITY).table(Table::whole());
    let keys = leaves * LEAF;
    let entries = (0..keys).step_by(STEP as usize).map(|key| (key, !key));
    load.load(&pool, entries).unwrap();
    let options = |owner| Options::new(owner, 8).offloading(Offloading::Never);
    let next = Tree::open(pool.attach(NEXT).unwrap(), options(NEXT)).unwrap();

    let memory = Mortal::new(pool.attach(GONE).unwrap(), at, Fate::LosesAnswer, || {});
    let tree = Tree::open(memory, options(GONE)).unwrap();
    let verbs = || tree.memory().verbs.load(Relaxed);
    let opened = verbs();
    let step = if life == Life::Grows { LEAF } else { STEP };
    let mut since = 0;
    for key in (0..keys).step_by(step as usize) {
        change(&tree, life, key);
        since += u32::from(verbs() > at);
        if since > more {
            break;
        }
    }
    let whole = verbs();
    go_on(&tree, keys, leaves);
    drop(tree);

    next.take_over(GONE).unwrap();
    for key in (0..keys).step_by(STEP as usize).filter(|key| stays(*key)) {
        let found = next.get(key);
        let is_there = matches!(found, Ok(Some(value)) if value == !key);
        assert!(
            is_there,
            "{life:?}, {leaves} leaves, lost {at}: {key}: {found:?}"
        );
    }
    (whole, opened)
}

#[test]
fn p5_a_change_of_nodes_whose_answer_is_lost_keeps_what_was_flushed() {
    // A second level of inner nodes begins at 60.
    for (life, leaves) in [
        (Life::Shrinks, 30),
        (Life::Shrinks, 64),
        (Life::Grows, 40),
        (Life::Grows, 59),
        (Life::Grows, 79),
        (Life::Grows, 118),
    ] {
        let (verbs, opened) = one_life(life, leaves, u64::MAX, 0);
        for at in opened..verbs {
            one_life(life, leaves, at, 0);
            one_life(life, leaves, at, 3);
        }
    }
}
