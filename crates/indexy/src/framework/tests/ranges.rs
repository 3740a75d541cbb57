//! Ranges that are removed at once, in X, in Y and in the log.

use super::{
    scanning::{scan_of, without_y},
    *,
};
use crate::{wal::BatchEncoder, x::Order, y::memory::Point};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{
    sync::atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    },
    time::Duration,
};

/// As a batch of the API does, with the stripes of all keys.
fn remove_range(rig: &Rig, tree: &Joined, from: &[u8], to: Option<&[u8]>) {
    let mut batch = BatchEncoder::default();
    let removal = RecordRef::RemoveRange {
        tree: tree.id,
        from,
        to,
    };
    batch.push(removal).unwrap();
    let mut runs = tree.writer.lock();
    let log = &rig.shared.log;
    let apply = || {
        log.wait_durable().unwrap();
        tree.remove_range(&mut runs, from, to).unwrap();
    };
    log.commit_batch(batch.record(), apply).unwrap();
}

/// A reader has taken what Y has of `k`; then the range goes. The mount reaches over its ends.
#[test]
fn i3_a_reader_does_not_resurrect_what_a_range_took() {
    Rig::each(|rig, tree, y| {
        for key in [&b"a"[..], b"k", b"z"] {
            put(tree, key, b"v1");
        }
        clean(tree);
        cut(tree);
        let pause = y.pause(Point::GetEnd);
        std::thread::scope(|s| {
            let reader = s.spawn(|| get(tree, b"k"));
            pause.wait_reached();
            remove_range(rig, tree, b"k", Some(b"l"));
            pause.resume();
            assert_eq!(
                reader.join().unwrap(),
                some(b"v1"),
                "it was there when it was read"
            );
        });
        assert_eq!(get(tree, b"k"), None);
        assert_eq!(get(tree, b"z"), some(b"v1"));
        assert_clean_means_equal(tree);
    });
}

/// A load that found no pause takes place while the removal begins: Y shows that when it is over.
#[test]
fn i3_a_removal_waits_for_loads_that_take_place() {
    for to in [None, Some(&b"l"[..])] {
        Rig::each(|rig, tree, _| {
            put(tree, b"k", b"v1");
            clean(tree);
            cut(tree);
            let loads = &rig.shared.loads;
            let loading = tree.load_pause.pass(loads).unwrap();
            std::thread::scope(|s| {
                let removal = s.spawn(|| remove_range(rig, tree, b"", to));
                while !removal.is_finished() && tree.load_pause.pass(loads).is_some() {
                    std::thread::yield_now();
                }
                std::thread::sleep(Duration::from_millis(20));
                let shown = tree.y.get(b"k").unwrap();
                let finished = removal.is_finished();
                drop(loading);
                removal.join().unwrap();
                assert!(shown.is_some() && !finished);
            });
            assert_eq!(get(tree, b"k"), None);
            assert!(tree.load_pause.pass(loads).is_some());
        });
    }
}

/// What Y has is older than what X had: a reader must not be told of it in between.
#[test]
fn i1_a_range_goes_from_y_before_it_goes_from_x() {
    Rig::each(|rig, tree, y| {
        put_away(tree, b"k", b"v1");
        put(tree, b"k", b"v2");
        let removed = AtomicBool::new(false);
        std::thread::scope(|s| {
            let reader = s.spawn(|| {
                let mut seen = Vec::new();
                while !removed.load(Acquire) {
                    seen.extend(get(tree, b"k"));
                }
                seen
            });
            std::thread::yield_now();
            remove_range(rig, tree, b"", None);
            removed.store(true, Release);
            let seen = reader.join().unwrap();
            assert!(
                seen.iter().all(|value| value == b"v2"),
                "an older version was seen"
            );
        });
        assert_eq!(get(tree, b"k"), None);
        assert_eq!(in_y(y, b"k"), None);
    });
}

#[test]
fn i8_ranges_are_removed_in_the_order_of_the_log() {
    type Expected = BTreeMap<Vec<u8>, Vec<u8>>;
    fn compare(tree: &Joined, expected: &Expected) {
        for key in 0..=u8::MAX {
            assert_eq!(
                get(tree, &[key]),
                expected.get(&vec![key]).cloned(),
                "{key}"
            );
        }
    }
    for kind in X_KINDS {
        for seed in 0..12 {
            let rig = Rig::new(kind);
            let (tree, _) = rig.tree(TREE);
            let mut random = StdRng::seed_from_u64(seed);
            let mut expected = Expected::new();
            for step in 0..400u32 {
                let key = vec![random.random::<u8>()];
                match random.random_range(0..20) {
                    0..10 => {
                        put(&tree, &key, &step.to_be_bytes());
                        expected.insert(key, step.to_be_bytes().to_vec());
                    }
                    10..13 => {
                        remove(&tree, &key);
                        expected.remove(&key);
                    }
                    13 => {
                        let to = random.random_bool(0.9).then(|| vec![random.random::<u8>()]);
                        let to = to.filter(|to| *to > key);
                        remove_range(&rig, &tree, &key, to.as_deref());
                        let within = |k: &Vec<u8>| *k >= key && to.as_ref().is_none_or(|t| k < t);
                        expected.retain(|k, _| !within(k));
                    }
                    14 | 15 => clean(&tree),
                    16 | 17 => drop(cut(&tree)),
                    18 => drop(get(&tree, &key)),
                    _ => rig.flush().unwrap(),
                }
            }
            compare(&tree, &expected);
            assert_clean_means_equal(&tree);
            tree.x.verify(true).unwrap();
            rig.log().sync().unwrap();
            rig.crash_and(|tree| compare(tree, &expected));
        }
    }
}

/// Y has nothing of a range that was removed, and X knows that: it is asked for nothing there. The
/// leaves at the ends of the range reach over them, and may ask.
#[test]
fn reads_of_a_removed_range_ask_y_for_nothing() {
    Rig::each(|rig, tree, y| {
        let key = |n: u16| n.to_be_bytes();
        for n in 0..3000 {
            put(tree, &key(n), b"1");
        }
        clean(tree);
        let settled = tree.settled();
        tree.x
            .cut(&key(1000), Some(&key(2000)), settled, false, usize::MAX);
        let calls = y.calls();
        assert_eq!(get(tree, &key(1500)), some(b"1"));
        assert_eq!(y.calls(), calls + 1, "it was in Y alone");
        remove_range(rig, tree, &key(800), Some(&key(2200)));
        without_y(y, || {
            for n in 1100..2000 {
                assert_eq!(get(tree, &key(n)), None, "{n}");
            }
            for order in [Order::Ascending, Order::Descending] {
                let left = scan_of(tree, &key(1100), Some(&key(2000)), order);
                assert_eq!(left, [] as [Vec<u8>; 0], "{order:?}");
            }
        });
        assert_eq!(scan_of(tree, &[], None, Order::Ascending).len(), 1600);
        // The whole tree, when it is in Y alone.
        cut(tree);
        remove_range(rig, tree, b"", None);
        without_y(y, || {
            for n in 0..3000 {
                assert_eq!(get(tree, &key(n)), None, "{n}");
            }
            for order in [Order::Ascending, Order::Descending] {
                assert_eq!(scan_of(tree, &[], None, order), [] as [Vec<u8>; 0]);
            }
        });
    });
}
