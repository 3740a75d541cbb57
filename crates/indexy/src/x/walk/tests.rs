//! What the conformance suite cannot ask: bytes, shapes, and what comes back. Every kind of tree
//! runs all of it.

use crate::{
    mem::{
        EVERYTHING_IS_IN_THE_WAY, Memory,
        budget::{Budget, Holder},
    },
    x::{
        Chunk, IndexX, Lookup, Order, ScanLimits, XStats,
        tree::{Kind, Tree},
    },
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc};

macro_rules! every_tree {
    ($($test:ident,)*) => {
        mod art {
            $(
                #[test]
                fn $test() {
                    super::$test::<crate::x::art::Radix>();
                }
            )*
        }
        mod bptree {
            $(
                #[test]
                fn $test() {
                    super::$test::<crate::x::bptree::Balanced>();
                }
            )*
        }
    };
}

mod sizes;

every_tree! {
    an_entry_of_two_words_takes_less_than_thirty_bytes,
    bytes_are_exact_and_all_come_back,
    slabs_that_hold_little_are_emptied_without_losing_anything,
    a_reader_keeps_the_block_that_it_found_while_that_moves,
    a_tree_that_was_emptied_takes_nothing,
    what_was_cleared_goes_with_the_tree,
    what_a_cut_spares_is_packed_again,
    a_cut_counts_what_it_freed_where_memory_is_tight,
    removals_give_leaves_back,
    keys_nested_as_deep_as_keys_can_be,
    what_lives_is_found_over_what_is_dead,
    i4_operands_stay_until_they_are_resolved,
    i3_an_operand_is_resolved_if_nothing_was_removed_since,
}

fn wait<S: Kind>(tree: &Tree<S>, key: &[u8], operand: &[u8], over: Option<&[u8]>) -> bool {
    tree.put_operand(key, operand, over, || Ok::<(), ()>(())) == Ok(true)
}

/// Beside values of the same size and of others: no run takes them, no cut does, their range stays
/// mounted, and bytes and counts are exact.
fn i4_operands_stay_until_they_are_resolved<S: Kind>() {
    for long in [false, true] {
        let tree = Tree::<S>::new(memory(), true);
        let bytes = |i: u64| vec![i as u8; if long { (i % 200) as usize } else { 8 }];
        for i in 0..3000 {
            match i % 3 {
                0 => put(&tree, &spread(i), &bytes(i)),
                1 => assert!(wait(&tree, &spread(i), &bytes(i), None)),
                _ => remove(&tree, &spread(i)),
            }
        }
        assert!(!wait(&tree, &spread(0), b"", None), "it has a value");
        assert!(!wait(&tree, &spread(2), b"", None), "it has a tombstone");
        assert!(!wait(&tree, &spread(1), b"", None), "it has an operand");
        assert!(!wait(&tree, &spread(1), b"", Some(b"another")));
        assert_eq!(tree.stats().operands, 1000);
        assert_eq!(tree.verify(true), Ok(()));
        clean(&tree, 1);
        tree.clear_mounts(&[], None);
        tree.cut(&[], None, 1, false, usize::MAX);
        assert_eq!(tree.verify(true), Ok(()));
        let stats = tree.stats();
        assert_eq!(
            (stats.keys, stats.operands, stats.dirty),
            (1000, 1000, 1000)
        );
        let mut waiting = Vec::new();
        let mut at = Some(Vec::new());
        while let Some(from) = at {
            at = tree.operands(&from, None, 10, &mut waiting);
        }
        assert_eq!(waiting.len(), 1000);
        assert!(waiting.is_sorted_by(|a, b| a.key < b.key));
        for i in (1..3000).step_by(3) {
            let key = spread(i);
            assert_eq!(tree.get(&key, |_| ()), Lookup::Operand);
            let (operand, stamp) = tree.operand(&key).unwrap();
            assert_eq!(operand, bytes(i));
            let value = (i % 2 == 0).then_some(&b"resolved"[..]);
            match i % 5 {
                0 => put(&tree, &key, b"over it"),
                1 => remove(&tree, &key),
                2 => assert!(wait(&tree, &key, b"longer or not", Some(&bytes(i)))),
                _ => {
                    let done = tree.resolve(&key, &operand, stamp, value, || Ok::<(), ()>(()));
                    assert_eq!(done, Ok(true));
                }
            }
        }
        assert_eq!(tree.verify(true), Ok(()));
        for one in waiting {
            remove(&tree, &one.key);
        }
        assert_eq!(tree.stats().operands, 0);
        assert_eq!(tree.verify(true), Ok(()));
    }
}

fn i3_an_operand_is_resolved_if_nothing_was_removed_since<S: Kind>() {
    let tree = Tree::<S>::new(memory(), true);
    let resolve = |operand: &[u8], stamp| {
        tree.resolve(b"b", operand, stamp, Some(b"value"), || Ok::<(), ()>(()))
    };
    put(&tree, b"a", b"1");
    assert!(wait(&tree, b"b", b"2", None));
    let (operand, stamp) = tree.operand(b"b").unwrap();
    assert_eq!(resolve(b"3", stamp), Ok(false), "another operand");
    clean(&tree, 1);
    tree.cut(&[], None, 1, false, usize::MAX);
    assert_eq!(resolve(&operand, stamp), Ok(false), "a neighbour was cut");
    let (operand, stamp) = tree.operand(b"b").unwrap();
    let refused = tree.resolve(b"b", &operand, stamp, None, || Err("no"));
    assert_eq!(refused, Err("no"));
    assert_eq!(resolve(&operand, stamp), Ok(true));
    assert_eq!(tree.get(b"b", |v| v == b"value"), Lookup::Found(true));
    assert_eq!(resolve(&operand, stamp), Ok(false), "it is a value");
    assert_eq!(tree.verify(true), Ok(()));
}

fn memory() -> Arc<Memory> {
    Memory::new(Arc::new(Budget::new(64 << 20)))
}

fn put<S: Kind>(tree: &Tree<S>, key: &[u8], value: &[u8]) {
    assert!(tree.put(key, Some(value), || Ok::<(), ()>(())).is_ok());
}

fn remove<S: Kind>(tree: &Tree<S>, key: &[u8]) {
    assert!(tree.put(key, None, || Ok::<(), ()>(())).is_ok());
}

fn spread(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

/// Everything is clean and Y has it.
fn clean<S: Kind>(tree: &Tree<S>, run: u32) {
    let flow = tree.clean(&[], None, run, &mut |_, _, _| ControlFlow::Continue(()));
    assert!(flow.is_continue());
    tree.settle(&[], None, run);
}

fn an_entry_of_two_words_takes_less_than_thirty_bytes<S: Kind>() {
    let tree = Tree::<S>::new(memory(), false);
    for (n, most) in [(1_000, 30.0), (30_000, 26.0), (300_000, 26.0)] {
        for i in tree.stats().keys as u64..n {
            put(&tree, &spread(i), &i.to_le_bytes());
        }
        let each = tree.stats().bytes as f64 / n as f64;
        assert!(each < most, "{each:.1} bytes per entry at {n}");
    }
    let dense = Tree::<S>::new(memory(), false);
    for i in 0..100_000u64 {
        put(&dense, &i.to_be_bytes(), &i.to_le_bytes());
    }
    let each = dense.stats().bytes as f64 / 100_000.0;
    assert!(each < 20.0, "{each:.1} bytes per dense entry");
}

fn bytes_are_exact_and_all_come_back<S: Kind>() {
    let memory = memory();
    {
        let tree = Tree::<S>::new(memory.clone(), false);
        let mut rng = StdRng::seed_from_u64(1);
        for _ in 0..20_000 {
            let len = rng.random_range(0..300);
            let key: Vec<u8> = (0..len).map(|_| rng.random_range(0..4)).collect();
            if rng.random_range(0..3) == 0 {
                remove(&tree, &key[..len.min(6)]);
            } else {
                put(
                    &tree,
                    &key[..rng.random_range(0..=len)],
                    &vec![1; rng.random_range(0..900)],
                );
            }
        }
        assert_eq!(tree.verify(true), Ok(()));
        memory.collect();
        assert_eq!(tree.stats().bytes, memory.live_bytes());
    }
    memory.collect();
    assert_eq!(memory.live_bytes(), 0);
}

/// Blocks of many sizes, of which few are left everywhere: what is left moves together and slabs go
/// back.
fn slabs_that_hold_little_are_emptied_without_losing_anything<S: Kind>() {
    let memory = memory();
    let tree = Tree::<S>::new(memory.clone(), true);
    const KEYS: u64 = 60_000;
    let value = |i: u64| vec![i as u8; (i % 300) as usize];
    for i in 0..KEYS {
        put(&tree, &spread(i), &value(i));
    }
    clean(&tree, 1);
    // Two of three stretches of keys go.
    for at in (0..=u8::MAX).filter(|at| at % 3 != 0) {
        let to = at.checked_add(1).map(|to| [to]);
        tree.cut(&[at], to.as_ref().map(|to| &to[..]), 1, false, usize::MAX);
    }
    memory.collect();
    let (stats, slabs) = (tree.stats(), memory.slab_bytes());
    let holes = slabs - memory.live_bytes();
    assert!(
        holes > slabs / 3,
        "{holes} of {slabs}: the test needs holes"
    );
    for _ in 0..8 {
        memory.empty_slabs(slabs / 8, || tree.relocate());
    }
    assert_eq!(tree.stats(), stats);
    assert_eq!(tree.verify(true), Ok(()));
    assert_eq!(memory.live_bytes(), stats.bytes);
    let left = memory.slab_bytes() - memory.live_bytes();
    assert!(left < holes / 2, "{left} of {holes} left");
    for i in 0..KEYS {
        let found = tree.get(&spread(i), |v| v == value(i));
        match spread(i)[0] % 3 {
            0 => assert_eq!(found, Lookup::Found(true), "{i}"),
            _ => assert!(matches!(found, Lookup::AskY(_)), "{i}"),
        }
    }
}

/// Large values, and long keys with theirs: all of their blocks move while a reader holds one, and
/// what was freed is used again.
fn a_reader_keeps_the_block_that_it_found_while_that_moves<S: Kind>() {
    let memory = memory();
    let tree = Tree::<S>::new(memory.clone(), false);
    let key = |i: u64| match i % 2 {
        0 => spread(i).to_vec(),
        _ => [&[1; 300][..], &spread(i)].concat(),
    };
    let value = |i: u64| vec![i as u8; 200];
    (0..1000).for_each(|i| put(&tree, &key(i), &value(i)));
    for held in [6, 7] {
        let same = tree.get(&key(held), |bytes| {
            EVERYTHING_IS_IN_THE_WAY.set(true);
            tree.relocate();
            EVERYTHING_IS_IN_THE_WAY.set(false);
            memory.collect();
            (1000..3000).for_each(|i| put(&tree, &key(i), &value(i)));
            bytes == value(held)
        });
        assert_eq!(same, Lookup::Found(true), "{held}");
    }
    memory.collect();
    assert_eq!(tree.verify(true), Ok(()));
    assert_eq!(memory.live_bytes(), tree.stats().bytes);
    for i in 0..3000 {
        let found = tree.get(&key(i), |v| v == value(i));
        assert_eq!(found, Lookup::Found(true), "{i}");
    }
}

fn what_was_cleared_goes_with_the_tree<S: Kind>() {
    let memory = memory();
    let tree = Tree::<S>::new(memory.clone(), false);
    for round in 0..3 {
        for i in 0..10_000u64 {
            put(&tree, &spread(i), &[1; 500][..(i % 500) as usize]);
        }
        memory.collect();
        let (held, before) = (tree.stats().bytes, memory.live_bytes());
        tree.clear();
        assert_eq!(tree.stats(), XStats::default());
        let freed = tree.take_apart(100_000);
        assert!(freed >= 100_000 && freed < held, "round {round}");
        assert_eq!(tree.stats(), XStats::default());
        memory.collect();
        assert_eq!(before - freed, memory.live_bytes());
    }
    tree.clear();
    drop(tree);
    memory.collect();
    assert_eq!(memory.live_bytes(), 0);
}

fn a_tree_that_was_emptied_takes_nothing<S: Kind>() {
    for cut in [false, true] {
        let memory = memory();
        let tree = Tree::<S>::new(memory.clone(), false);
        for i in 0..50_000u64 {
            put(&tree, &spread(i), b"value");
            put(
                &tree,
                format!("some/longer/path/{:05}/{i}", i % 700).as_bytes(),
                b"value",
            );
        }
        if cut {
            clean(&tree, 1);
            let held = tree.stats().bytes;
            let freed = tree.cut(&[], None, 1, false, usize::MAX).freed_bytes;
            assert_eq!(freed, held);
        } else {
            for i in 0..50_000u64 {
                remove(&tree, &spread(i));
                remove(
                    &tree,
                    format!("some/longer/path/{:05}/{i}", i % 700).as_bytes(),
                );
            }
        }
        let stats = tree.stats();
        assert_eq!((stats.keys, stats.bytes), (0, 0));
        assert_eq!(stats.mounts, usize::from(cut), "one range is left");
        assert_eq!(tree.verify(true), Ok(()));
        memory.collect();
        assert_eq!(memory.live_bytes(), 0);
    }
}

fn what_a_cut_spares_is_packed_again<S: Kind>() {
    let tree = Tree::<S>::new(memory(), false);
    let n = 200_000;
    for i in 0..n {
        put(&tree, &spread(i), &i.to_le_bytes());
    }
    clean(&tree, 1);
    tree.track_references(true);
    for i in (0..n).step_by(20) {
        assert!(matches!(tree.get(&spread(i), |_| ()), Lookup::Found(())));
    }
    let before = tree.stats();
    let cut = tree.cut(&[], None, 1, true, usize::MAX);
    let after = tree.stats();
    assert_eq!(after.keys as u64, n / 20);
    assert_eq!(before.bytes - after.bytes, cut.freed_bytes);
    let each = after.bytes as f64 / after.keys as f64;
    assert!(each < 32.0, "{each:.1} bytes per spared entry");
    assert_eq!(tree.verify(true), Ok(()));
}

/// Where memory is tight, blocks may be larger than they were asked for: those of merges, too.
fn a_cut_counts_what_it_freed_where_memory_is_tight<S: Kind>() {
    const BUDGET: usize = 64 << 20;
    let budget = Arc::new(Budget::new(BUDGET));
    let tree = Tree::<S>::new(Memory::new(budget.clone()), false);
    let n = 200_000u64;
    for i in 0..n {
        // Leaves of many sizes.
        put(&tree, &spread(i), &vec![1; (i % 61) as usize]);
    }
    clean(&tree, 1);
    tree.track_references(true);
    for i in (0..n).filter(|i| i.wrapping_mul(0x9E37_79B9) % 11 == 0) {
        assert!(matches!(tree.get(&spread(i), |_| ()), Lookup::Found(())));
    }
    budget.take(Holder::Log, BUDGET - budget.used());
    assert!(budget.is_tight());
    let before = tree.stats();
    let cut = tree.cut(&[], None, 1, true, usize::MAX);
    assert_eq!(before.bytes - tree.stats().bytes, cut.freed_bytes);
    assert!(cut.dropped > 0);
    assert_eq!(tree.verify(true), Ok(()));
    budget.give(Holder::Log, budget.held(Holder::Log));
}

fn removals_give_leaves_back<S: Kind>() {
    let tree = Tree::<S>::new(memory(), false);
    let n = 100_000;
    for i in 0..n {
        put(&tree, &spread(i), &i.to_le_bytes());
    }
    for i in (0..n).filter(|i| i % 20 != 0) {
        remove(&tree, &spread(i));
    }
    let stats = tree.stats();
    let each = stats.bytes as f64 / stats.keys as f64;
    assert!(each < 60.0, "{each:.1} bytes per entry that is left");
    assert_eq!(tree.verify(true), Ok(()));
}

fn keys_nested_as_deep_as_keys_can_be<S: Kind>() {
    let memory = memory();
    let tree = Tree::<S>::new(memory.clone(), false);
    let long = vec![7u8; crate::limits::MAX_KEY_BYTES];
    for len in (0..2000).chain([long.len() - 1, long.len()]) {
        put(&tree, &long[..len], &(len as u64).to_le_bytes());
    }
    for len in (0..2000).chain([long.len() - 1, long.len()]) {
        let found = tree.get(&long[..len], |v| v == (len as u64).to_le_bytes());
        assert_eq!(found, Lookup::Found(true));
    }
    assert_eq!(tree.get(&long[..3000], |_| ()), Lookup::Absent);
    assert_eq!(tree.verify(true), Ok(()));
    drop(tree);
    memory.collect();
    assert_eq!(memory.live_bytes(), 0);
}

/// Keys of 0 to 9 bytes of few kinds: with the key that ends at a node, the first and the last
/// byte, and nodes beside whose prefix there are gaps.
fn odd_key(random: &mut StdRng) -> Vec<u8> {
    let len = random.random_range(0..10);
    let bytes = [0, 1, b'a', 254, 255];
    (0..len)
        .map(|_| bytes[random.random_range(0..bytes.len())])
        .collect()
}

/// Nearly all is removed, a part of it in ranges: what is left is found over what is dead, from
/// everywhere and in both orders, one entry at a time and some at once.
fn what_lives_is_found_over_what_is_dead<S: Kind>() {
    for seed in 0..60 {
        let mut random = StdRng::seed_from_u64(seed);
        let tree = Tree::<S>::new(memory(), seed % 4 == 3);
        let mut model = BTreeMap::new();
        for _ in 0..600 {
            let key = match seed % 3 {
                0 => odd_key(&mut random),
                1 => [b"a shared prefix of some bytes/", &odd_key(&mut random)[..]].concat(),
                _ => spread(random.random_range(0..100_000)).to_vec(),
            };
            put(&tree, &key, &key);
            model.insert(key, ());
        }
        while !model.is_empty() {
            let keys: Vec<Vec<u8>> = model.keys().cloned().collect();
            let (at, n) = (
                random.random_range(0..keys.len()),
                random.random_range(1..80),
            );
            let one_in = random.random_range(1..4);
            for key in keys.iter().skip(at).take(n) {
                if random.random_range(0..one_in) == 0 {
                    remove(&tree, key);
                    model.remove(key);
                }
            }
            for _ in 0..6 {
                let from = match random.random_bool(0.3) {
                    true => Vec::new(),
                    false => keys[random.random_range(0..keys.len())].clone(),
                };
                let to = random.random_bool(0.7).then(|| odd_key(&mut random));
                check_scans(
                    &tree,
                    &model,
                    &from,
                    to.as_deref(),
                    random.random_range(1..4),
                );
            }
        }
    }
}

fn check_scans<S: Kind>(
    tree: &Tree<S>,
    model: &BTreeMap<Vec<u8>, ()>,
    from: &[u8],
    to: Option<&[u8]>,
    entries: usize,
) {
    let within = |key: &&Vec<u8>| &key[..] >= from && to.is_none_or(|to| &key[..] < to);
    for order in [Order::Ascending, Order::Descending] {
        let mut expected: Vec<Vec<u8>> = model.keys().filter(within).cloned().collect();
        if order == Order::Descending {
            expected.reverse();
        }
        let limits = ScanLimits {
            bytes: usize::MAX,
            entries,
            leaves: usize::MAX,
            leaves_if_mounted: usize::MAX,
        };
        let (mut chunk, mut found) = (Chunk::default(), Vec::new());
        let (mut from, mut to) = (from.to_vec(), to.map(<[u8]>::to_vec));
        loop {
            tree.scan(&from, to.as_deref(), order, limits, &mut chunk);
            let live = chunk.entries.iter().filter(|entry| entry.value.is_some());
            found.extend(live.map(|entry| entry.key.to_vec()));
            match (chunk.resume.take(), order) {
                (None, _) => break,
                (Some(at), Order::Ascending) => from = at,
                (Some(at), Order::Descending) => to = Some(at),
            }
        }
        assert_eq!(found, expected, "{order:?}");
    }
}
