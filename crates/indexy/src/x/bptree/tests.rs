//! What the conformance suite cannot ask: bytes, shapes, and what comes back.

use super::BPlus;
use crate::{
    mem::{Memory, budget::Budget},
    x::{IndexX, Lookup},
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{ops::ControlFlow, sync::Arc};

fn memory() -> Arc<Memory> {
    Memory::new(Arc::new(Budget::new(64 << 20)))
}

fn put(tree: &BPlus, key: &[u8], value: &[u8]) {
    assert!(tree.put(key, Some(value), || Ok::<(), ()>(())).is_ok());
}

fn remove(tree: &BPlus, key: &[u8]) {
    assert!(tree.put(key, None, || Ok::<(), ()>(())).is_ok());
}

fn spread(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

/// Everything is clean and Y has it.
fn clean(tree: &BPlus, run: u32) {
    let flow = tree.clean(&[], None, run, &mut |_, _| ControlFlow::Continue(()));
    assert!(flow.is_continue());
    tree.settle(&[], None, run);
}

#[test]
fn an_entry_of_two_words_takes_less_than_thirty_bytes() {
    let tree = BPlus::new(memory(), false);
    for (n, most) in [(1_000, 30.0), (30_000, 26.0), (300_000, 26.0)] {
        for i in tree.stats().keys as u64..n {
            put(&tree, &spread(i), &i.to_le_bytes());
        }
        let each = tree.stats().bytes as f64 / n as f64;
        assert!(each < most, "{each:.1} bytes per entry at {n}");
    }
    let dense = BPlus::new(memory(), false);
    for i in 0..100_000u64 {
        put(&dense, &i.to_be_bytes(), &i.to_le_bytes());
    }
    let each = dense.stats().bytes as f64 / 100_000.0;
    assert!(each < 20.0, "{each:.1} bytes per dense entry");
}

#[test]
fn bytes_are_exact_and_all_come_back() {
    let memory = memory();
    {
        let tree = BPlus::new(memory.clone(), false);
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

/// Blocks of many sizes, of which few are left everywhere: what is left moves together and slabs go back.
#[test]
fn slabs_that_hold_little_are_emptied_without_losing_anything() {
    let memory = memory();
    let tree = BPlus::new(memory.clone(), true);
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

#[test]
fn a_tree_that_was_emptied_takes_nothing() {
    for cut in [false, true] {
        let memory = memory();
        let tree = BPlus::new(memory.clone(), false);
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

#[test]
fn what_a_cut_spares_is_packed_again() {
    let tree = BPlus::new(memory(), false);
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

#[test]
fn removals_give_leaves_back() {
    let tree = BPlus::new(memory(), false);
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

#[test]
fn keys_nested_as_deep_as_keys_can_be() {
    let memory = memory();
    let tree = BPlus::new(memory.clone(), false);
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

/// Separators that share more than their node's range does, and keys that are before, behind, and shorter than that.
#[test]
fn nodes_leave_out_what_their_separators_share() {
    for len in [0, 1, 4, 7, 8, 9, 16, 64, 127, 128, 129, 200] {
        let tree = BPlus::new(memory(), false);
        let prefix: Vec<u8> = (0..len).map(|i| 100 + i as u8 % 7).collect();
        let mut model = std::collections::BTreeMap::new();
        let check = |model: &std::collections::BTreeMap<Vec<u8>, [u8; 8]>, what: &str| {
            assert_eq!(tree.verify(true), Ok(()), "{what}, prefix of {len}");
            for (key, value) in model {
                let got = tree.get(key, |v| v == value);
                assert_eq!(got, Lookup::Found(true), "{what}, prefix of {len}");
                let longer = [key.as_slice(), b"\0"].concat();
                let absent = !model.contains_key(&longer);
                assert_eq!(tree.get(&longer, |_| ()) == Lookup::Absent, absent);
            }
        };
        let add = |model: &mut std::collections::BTreeMap<Vec<u8>, [u8; 8]>, key: Vec<u8>| {
            let value = (model.len() as u64).to_le_bytes();
            put(&tree, &key, &value);
            model.insert(key, value);
        };
        for i in 0..6000 {
            add(&mut model, [&prefix[..], &spread(i)].concat());
        }
        check(&model, "one prefix");
        // Each byte of the prefix, and its end, gets neighbours on both sides.
        for cut in 0..=len.min(140) {
            for last in [0, 99, 101, 255] {
                let key = [&prefix[..cut], &[last], &spread(cut as u64)[..4]].concat();
                add(&mut model, key);
            }
            add(&mut model, prefix[..cut].to_vec());
        }
        check(&model, "with neighbours");
        for i in 0..3000u64 {
            add(&mut model, spread(i).to_vec());
        }
        check(&model, "with others");
        let gone: Vec<Vec<u8>> = model.keys().step_by(3).cloned().collect();
        for key in &gone {
            remove(&tree, key);
            model.remove(key);
            assert_eq!(tree.get(key, |_| ()), Lookup::Absent);
        }
        check(&model, "with gaps");
        for key in model.keys() {
            remove(&tree, key);
        }
        assert_eq!(tree.stats().bytes, 0);
    }
}

/// A removal in a slotted leaf has no room of a value: a fixed leaf that gave it one could be larger than leaves get.
#[test]
fn many_removals_beside_a_few_values_fit_a_leaf() {
    for value_bytes in [8, 20, 24, 30] {
        for values in 1..4 {
            let tree = BPlus::new(memory(), true);
            let key = |i: u64| i.to_be_bytes();
            (0..64 - values).for_each(|i| remove(&tree, &key(i)));
            (64 - values..64).for_each(|i| put(&tree, &key(i), &vec![1; value_bytes]));
            // The leaf is full: it is split, in front of all, behind all, and where a value stands.
            remove(&tree, &key(64));
            put(&tree, &key(65), &[2; 3]);
            (66..300).for_each(|i| remove(&tree, &key(i)));
            assert_eq!(tree.verify(true), Ok(()));
            for i in 64 - values..64 {
                let found = tree.get(&key(i), <[u8]>::to_vec);
                assert!(matches!(found, Lookup::Found(v) if v == vec![1; value_bytes]));
            }
        }
    }
}

/// The same where a cut leaves them behind.
#[test]
fn a_cut_leaves_removals_that_fit_a_leaf() {
    let tree = BPlus::new(memory(), true);
    put(&tree, b"key00000", &[7; 600]);
    put(&tree, b"key00001", &[7; 24]);
    clean(&tree, 1);
    for i in 2..63 {
        remove(&tree, format!("key{i:05}").as_bytes());
    }
    put(&tree, b"key00063", &[8; 24]);
    let cut = tree.cut(&[], None, 1, false, usize::MAX);
    assert_eq!((cut.dropped, cut.unclean), (2, 62));
    assert_eq!(tree.verify(true), Ok(()));
    assert_eq!(tree.stats().keys, 62);
}
