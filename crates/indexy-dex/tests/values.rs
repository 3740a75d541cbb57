//! Values out of line: a sorted map of byte strings, over every transport, with tiny caches and
//! ranges that move; what a dead owner's leaves name is still there.

mod pools;

use indexy_dex::{
    BulkLoad, Error, MAX_VALUE_BYTES, Options, Tree, Values,
    offload::{self, Offloading},
    partition::Table,
    remote::{Latency, Model, NEXT_FREE_OFFSET, RemoteMemory},
};
use pools::{Dice, ModelPool, Pool, ShmPool, TcpPool, UnsteadyPool, region};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
};

fn value(dice: &mut Dice) -> Vec<u8> {
    let length = match dice.roll(20) {
        0 => dice.roll(MAX_VALUE_BYTES as u64 + 1),
        1 => 0,
        2 => 980 + dice.roll(30),
        _ => dice.roll(40),
    };
    (0..length).map(|_| dice.roll(256) as u8).collect()
}

fn run<P: Pool>(pool: &P, operations: u64, offloading: Offloading) {
    Tree::format(&pool.connect()).unwrap();
    let open = |owner| {
        let options = Options::new(owner, 8)
            .leaf_admission(0.4)
            .offloading(offloading);
        Values::new(Tree::open(pool.connect(), options).unwrap())
    };
    let mut trees = vec![open(0)];
    let (mut model, mut dice) = (BTreeMap::new(), Dice(operations));
    // The second owner's first key.
    let mut border = u64::MAX;
    for i in 0..operations {
        let key = dice.roll(600);
        let tree = &trees[usize::from(key >= border)];
        match dice.roll(8) {
            0 => assert_eq!(tree.remove(key).unwrap(), model.remove(&key).is_some()),
            1..4 => assert_eq!(tree.get(key).unwrap(), model.get(&key).cloned(), "{key}"),
            4 => {
                let mut found = Vec::new();
                let next = tree.scan(key, key + 40, 25, &mut found).unwrap();
                let inside = model.range(key..next.unwrap_or(key + 41));
                let expected = inside.map(|(k, v): (&u64, &Vec<u8>)| (*k, v.clone()));
                assert_eq!(found, expected.collect::<Vec<_>>());
            }
            _ => {
                let new = value(&mut dice);
                let had = model.insert(key, new.clone()).is_some();
                assert_eq!(tree.put(key, &new).unwrap(), had);
            }
        }
        if i % 400 == 399 {
            trees.iter().for_each(|tree| tree.flush().unwrap());
        }
        if i == operations / 3 {
            // The upper part goes to a second owner.
            border = trees[0].tree().leaf_start(450).unwrap();
            trees[0].tree().release(border, u64::MAX, 1).unwrap();
            trees.push(open(1));
        }
        if i == operations / 3 * 2 {
            trees[1].tree().release(border, u64::MAX, 0).unwrap();
            trees[0].tree().adopt_table().unwrap();
            border = u64::MAX;
        }
    }
    for key in 0..600 {
        assert_eq!(trees[0].get(key).unwrap().as_ref(), model.get(&key));
    }
}

#[test]
fn over_the_model() {
    run(&ModelPool::new(2, 64 << 20), 6_000, Offloading::Measured);
    run(&ModelPool::new(3, 64 << 20), 6_000, Offloading::Always);
}

#[test]
fn over_shared_memory() {
    run(&ShmPool::new(2, 64 << 20), 3_000, Offloading::Measured);
}

#[test]
fn over_tcp() {
    run(&TcpPool::new(2, 64 << 20), 2_000, Offloading::Measured);
}

fn alone() -> (Model, Values<Model>) {
    let pool = Model::new(vec![region(32 << 20)], offload::serve, Latency::rdma());
    Tree::format(&pool).unwrap();
    let tree = Tree::open(pool.attach(0).unwrap(), Options::new(0, 100)).unwrap();
    (pool, Values::new(tree))
}

#[test]
fn lengths_up_to_the_limit() {
    let (_, values) = alone();
    for length in (0..1_100).chain([2_000, 4_096, MAX_VALUE_BYTES - 1, MAX_VALUE_BYTES]) {
        let value: Vec<u8> = (0..length).map(|i| (i * 7 + length) as u8).collect();
        values.put(5, &value).unwrap();
        assert_eq!(values.get(5).unwrap(), Some(value));
    }
    let long = vec![0; MAX_VALUE_BYTES + 1];
    assert!(matches!(values.put(5, &long), Err(Error::Options(_))));
    let before = values.counts();
    values.put(6, &[1; 992]).unwrap();
    values.get(6).unwrap();
    let spent = values.counts() - before;
    assert_eq!((spent.writes, spent.reads, spent.calls), (1, 1, 0));
}

#[test]
fn memory_of_replaced_values_is_used_again() {
    let (pool, values) = alone();
    for round in 0..200_u64 {
        for key in 0..20 {
            values.put(key, &[round as u8; 3_000]).unwrap();
        }
        values.flush().unwrap();
    }
    let mut next_free = [0];
    let word = indexy_dex::Address::new(0, NEXT_FREE_OFFSET);
    pool.read(word, &mut next_free).unwrap();
    // Two blocks of three nodes for each key, and a chunk.
    assert!(
        next_free[0] / 1024 < 2 * 3 * 20 + 140,
        "{} nodes",
        next_free[0] / 1024
    );
}

#[test]
fn v2_what_a_dead_owners_leaves_name_is_there() {
    let pool = Model::new(vec![region(32 << 20)], offload::serve, Latency::rdma());
    let table = Table::new(vec![(0, 0), (5_000, 1)]).unwrap();
    let load = BulkLoad::default().table(table);
    let entries = (0..10_000).step_by(10).map(|key| (key, 4_096));
    let table = load.load(&pool, entries).unwrap();
    let border = table.segments().nth(1).unwrap().0;
    let open = |owner| {
        let options = Options::new(owner, 1_000).leaf_admission(1.0);
        Values::new(Tree::open(pool.attach(owner).unwrap(), options).unwrap())
    };
    let (one, two) = (open(0), open(1));
    for key in (0..border).step_by(10) {
        one.tree().remove(key).unwrap();
        one.put(key, &[1; 100]).unwrap();
    }
    one.flush().unwrap();
    for round in 2..5 {
        for key in (0..border).step_by(10) {
            one.put(key, &[round; 100]).unwrap();
        }
    }
    // It dies here: its leaves in the pool name the first values.
    two.tree().take_over(0).unwrap();
    for key in (0..border).step_by(10) {
        let found = two.get(key).unwrap().unwrap();
        assert!(
            found.len() == 100 && found.iter().all(|byte| *byte == found[0]),
            "{key}"
        );
    }
}

#[test]
fn v3_readers_beside_a_writer_see_whole_values() {
    // Verbs that take a while, so that a reader's memory is used again under its eyes.
    let pool = UnsteadyPool(ModelPool::new(1, 32 << 20));
    Tree::format(&pool.connect()).unwrap();
    let values = Values::new(Tree::open(pool.connect(), Options::new(0, 100)).unwrap());
    for key in 0..8 {
        values.put(key, &[0; 2_500]).unwrap();
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = || {
            let (mut last, mut seen) = ([0; 8], 0_u64);
            while !done.load(SeqCst) || seen < 100 {
                for (key, last) in last.iter_mut().enumerate() {
                    let value = values.get(key as u64).unwrap().unwrap();
                    let round = value[0];
                    assert!(value.len() == 2_500 && value.iter().all(|byte| *byte == round));
                    assert!(*last <= round, "{key} went back");
                    *last = round;
                    seen += 1;
                }
            }
        };
        let readers = [scope.spawn(reader), scope.spawn(reader)];
        for round in 1..250 {
            for key in 0..8 {
                values.put(key, &[round; 2_500]).unwrap();
            }
            values.flush().unwrap();
        }
        done.store(true, SeqCst);
        readers
            .into_iter()
            .for_each(|reader| reader.join().unwrap());
    });
}

#[test]
fn a_full_pool_is_an_error_and_loses_nothing() {
    // Two owners over TCP; what one frees is the other's only by way of the pool.
    let pool = TcpPool::new(1, 4096 + (512 << 10));
    let table = Table::new(vec![(0, 0), (500, 1)]).unwrap();
    let load = BulkLoad::default().fill(10).table(table);
    let entries = (0..1_000).step_by(10).map(|key| (key, 4_096));
    let table = load.load(&pool.connect(), entries).unwrap();
    let border = table.segments().nth(1).unwrap().0;
    let open = |owner| Tree::open(pool.connect(), Options::new(owner, 64)).unwrap();
    let owners = [Values::new(open(0)), Values::new(open(1))];
    let owner_of = |key: u64| &owners[usize::from(key >= border)];
    for key in (0..1_000).step_by(10) {
        owner_of(key).tree().remove(key).unwrap();
    }
    let (mut stored, mut full) = (Vec::new(), [false; 2]);
    for key in 0..1_000 {
        match owner_of(key).put(key, &[key as u8; 1_500]) {
            Ok(_) => stored.push(key),
            Err(Error::PoolFull { server: 0 }) => full[usize::from(key >= border)] = true,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(
        full == [true, true] && stored.len() > 100,
        "{}",
        stored.len()
    );
    for key in &stored {
        let found = owner_of(*key).get(*key).unwrap();
        assert_eq!(found, Some(vec![*key as u8; 1_500]));
    }
    for key in &stored {
        assert!(owner_of(*key).remove(*key).unwrap());
    }
    owners.iter().for_each(|owner| owner.flush().unwrap());
    owners[0].put(1, &[7; 1_500]).unwrap();
    assert_eq!(owners[0].get(1).unwrap(), Some(vec![7; 1_500]));
}

/// Memory of values that were replaced is used again before there is none.
#[test]
fn replaced_values_do_not_fill_a_small_pool() {
    let memory = Model::new(vec![region(4 << 20)], offload::serve, Latency::rdma());
    Tree::format(&memory).unwrap();
    let tree = Values::new(Tree::open(memory, Options::new(0, 64)).unwrap());
    for round in 0..1000u32 {
        let value = vec![round as u8; MAX_VALUE_BYTES];
        assert_eq!(tree.put(7, &value).unwrap(), round > 0, "round {round}");
    }
    assert_eq!(tree.get(7).unwrap().unwrap(), vec![231; MAX_VALUE_BYTES]);
}
