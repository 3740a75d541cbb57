//! Shapes that only this tree has; what both kinds share is tested in `walk/tests.rs`.

use super::BPlus;
use crate::{
    mem::{EVERYTHING_IS_IN_THE_WAY, Memory, budget::Budget},
    x::{IndexX, Lookup, bounds::Probe},
};
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
    let flow = tree.clean(&[], None, run, &mut |_, _, _| ControlFlow::Continue(()));
    assert!(flow.is_continue());
    tree.settle(&[], None, run);
}

/// Separators that share more than their node's range does, and keys that are before, behind, and
/// shorter than that.
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

/// A removal in a slotted leaf has no room of a value: a fixed leaf that gave it one could be
/// larger than leaves get.
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

/// Separators that are too long for a node move out of slabs that are to run empty, and lead where
/// they led.
#[test]
fn large_separators_move() {
    let memory = memory();
    let tree = BPlus::new(memory.clone(), false);
    let key = |i: u64| [&spread(i / 100).repeat(15)[..], &spread(i)].concat();
    (0..10_000).for_each(|i| put(&tree, &key(i), &i.to_le_bytes()));
    EVERYTHING_IS_IN_THE_WAY.set(true);
    let in_the_way = (0..10_000).filter(|&i| {
        let guard = memory.enter();
        let place = tree.descend_to(&guard, Probe::at(&key(i)), 1);
        place.node().and_then(|node| node.has_large_in_the_way()) == Some(true)
    });
    assert!(in_the_way.count() > 1000, "the test needs long separators");
    tree.relocate();
    EVERYTHING_IS_IN_THE_WAY.set(false);
    memory.collect();
    assert_eq!(memory.live_bytes(), tree.stats().bytes);
    (10_000..20_000).for_each(|i| put(&tree, &key(i), &i.to_le_bytes()));
    assert_eq!(tree.verify(true), Ok(()));
    for i in 0..20_000 {
        let found = tree.get(&key(i), |v| v == i.to_le_bytes());
        assert_eq!(found, Lookup::Found(true), "{i}");
    }
}
