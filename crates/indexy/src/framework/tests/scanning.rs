//! Scans that meet a clean, a cut and a load between their look at X and their look at Y (I9).

use super::*;
use crate::{
    error::Error,
    framework::{dead_stretches::Passed, scan::MergeLimits},
    x::Order,
    y::memory::{Op, Point},
};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const LIMITS: MergeLimits = MergeLimits {
    bytes: 1 << 20,
    entries: 10,
    at_hand: 40,
};

fn scan(tree: &Joined, order: Order) -> Vec<Vec<u8>> {
    scan_of(tree, &[], None, order)
}

/// The keys of `[from, to)`, chunk by chunk.
pub(super) fn scan_of(tree: &Joined, from: &[u8], to: Option<&[u8]>, order: Order) -> Vec<Vec<u8>> {
    let (mut from, mut to) = (from.to_vec(), to.map(<[u8]>::to_vec));
    let mut keys = Vec::new();
    loop {
        let chunk = tree
            .scan_chunk(&from, to.as_deref(), order, LIMITS)
            .unwrap();
        keys.extend(chunk.entries.iter().map(|(k, _)| k.to_vec()));
        match (chunk.resume, order) {
            (None, _) => return keys,
            (Some(at), Order::Ascending) => from = at,
            (Some(at), Order::Descending) => to = Some(at),
        }
    }
}

/// Does `reads`, which need nothing of `y`.
pub(super) fn without_y(y: &MemoryY, reads: impl FnOnce()) {
    let calls = y.calls();
    let what = "a read of a range of Y".into();
    y.fail(Op::Range, 0, 0, Error::Unsupported { what });
    reads();
    assert_eq!(y.calls(), calls, "Y was asked for keys");
    let next = y.range(&[], None, Order::Ascending);
    assert!(
        next.is_err(),
        "Y was asked for a range, and the fault has struck"
    );
}

fn keys() -> Vec<Vec<u8>> {
    (0..40u8).map(|n| vec![n]).collect()
}

#[test]
fn i9_what_moves_between_x_and_y_is_seen_once() {
    for order in [Order::Ascending, Order::Descending] {
        for point in [Point::RangeStart, Point::RangeEnd] {
            Rig::each(|_, tree, y| {
                // Odd keys in Y alone, even ones dirty in X beside mounts.
                for key in keys().iter().filter(|k| k[0] % 2 == 1) {
                    put(tree, key, b"y");
                }
                clean(tree);
                cut(tree);
                for key in keys().iter().filter(|k| k[0] % 2 == 0) {
                    put(tree, key, b"x");
                }
                let pause = y.pause(point);
                let mut seen = std::thread::scope(|s| {
                    let scan = s.spawn(|| scan(tree, order));
                    pause.wait_reached();
                    // Everything changes sides.
                    clean(tree);
                    cut(tree);
                    for key in keys().iter().filter(|k| k[0] % 2 == 1) {
                        assert_eq!(get(tree, key), some(b"y"));
                    }
                    pause.resume();
                    scan.join().unwrap()
                });
                if order == Order::Descending {
                    seen.reverse();
                }
                assert_eq!(seen, keys(), "{order:?} {point:?}");
            });
        }
    }
}

#[test]
fn i9_what_was_removed_before_the_scan_does_not_come_back_from_y() {
    Rig::each(|_, tree, y| {
        for key in keys() {
            put(tree, &key, b"1");
        }
        clean(tree);
        cut(tree);
        for key in keys().iter().filter(|k| k[0] % 3 == 0) {
            remove(tree, key);
        }
        let expected: Vec<_> = keys().into_iter().filter(|k| k[0] % 3 != 0).collect();
        assert_eq!(scan(tree, Order::Ascending), expected);
        let pause = y.pause(Point::RangeStart);
        std::thread::scope(|s| {
            let scan = s.spawn(|| scan(tree, Order::Ascending));
            pause.wait_reached();
            clean(tree);
            pause.resume();
            assert_eq!(scan.join().unwrap(), expected);
        });
        assert_eq!(scan(tree, Order::Ascending), expected);
    });
}

/// Where all keys are in memory and nothing is mounted, X says everything, though Y has the keys
/// too.
#[test]
fn scans_of_what_is_in_memory_ask_y_for_nothing() {
    Rig::each(|_, tree, y| {
        let key = |n: u16| n.to_be_bytes().to_vec();
        for n in 0..1000 {
            put(tree, &key(n), b"1");
        }
        clean(tree);
        let scan_all = |from: u16, to: u16| {
            for order in [Order::Ascending, Order::Descending] {
                let mut seen = scan_of(tree, &key(from), Some(&key(to)), order);
                if order == Order::Descending {
                    seen.reverse();
                }
                assert_eq!(seen, (from..to).map(key).collect::<Vec<_>>(), "{order:?}");
            }
        };
        without_y(y, || {
            scan_all(0, 1000);
            assert_eq!(scan(tree, Order::Ascending).len(), 1000);
            assert_eq!(tree.count(|| Ok(())).unwrap(), 1000);
        });
        // Another part of the tree is in Y alone.
        let settled = tree.settled();
        let cut = tree
            .x
            .cut(&key(600), Some(&key(800)), settled, false, usize::MAX);
        assert_eq!(cut.dropped, 200);
        without_y(y, || {
            scan_all(0, 500);
            scan_all(900, 1000);
        });
        scan_all(0, 1000);
    });
}

/// What Y has at hand comes along, up to its limit; what it would have to look for does not.
#[test]
fn a_chunk_takes_along_what_y_has_at_hand() {
    Rig::each(|_, tree, _| {
        for key in keys().into_iter().chain([vec![40], vec![41]]) {
            put(tree, &key, b"y");
        }
        clean(tree);
        cut(tree);
        let chunk = |limits| {
            let chunk = tree.scan_chunk(b"", None, Order::Ascending, limits);
            chunk.unwrap().entries.len()
        };
        assert_eq!(chunk(LIMITS), LIMITS.at_hand);
        let at_hand = LIMITS.entries;
        assert_eq!(chunk(MergeLimits { at_hand, ..LIMITS }), at_hand);
    });
}

/// The first entry in `order`, chunk by chunk.
fn first(tree: &Joined, order: Order) -> Option<Vec<u8>> {
    scan(tree, order).into_iter().next()
}

/// A front of tombstones in leaves that ask Y, then one of nothing: each scan finds what lives, and
/// later ones do not look at what is dead.
#[test]
fn i9_a_dead_stretch_is_remembered_and_forgotten() {
    Rig::each(|_, tree, _| {
        let key = |n: u16| n.to_be_bytes();
        for n in 0..600 {
            put(tree, &key(n), b"1");
        }
        clean(tree);
        cut(tree);
        for n in (0..200).chain(400..600) {
            remove(tree, &key(n));
        }
        for order in [Order::Ascending, Order::Descending] {
            let ends = |n: u16, m: u16| match order {
                Order::Ascending => Some(key(n).to_vec()),
                Order::Descending => Some(key(m).to_vec()),
            };
            assert_eq!(first(tree, order), ends(200, 399));
            // To the edge, but for less than is worth it.
            let near = match (tree.dead.pass(b"", None, order), order) {
                (Passed::UpTo(at), Order::Ascending) => at[..] >= key(180)[..],
                (Passed::UpTo(at), Order::Descending) => at[..] <= key(420)[..],
                _ => false,
            };
            assert!(near, "{order:?}");
            // Written again, in the middle of it: by a write, and by a part of a batch.
            put(tree, &key(100), b"2");
            tree.apply(&key(500), Some(b"2"));
            assert_eq!(first(tree, order), ends(100, 500));
            remove(tree, &key(100));
            remove(tree, &key(500));
            assert_eq!(first(tree, order), ends(200, 399));
        }
    });
}

/// Readers remember the dead front of a queue, beside a writer of keys in it.
#[test]
fn i9_a_reader_never_passes_a_key_that_lives() {
    for kind in [XKind::Art, XKind::BPlus] {
        let rig = Rig::new(kind);
        let (tree, _) = rig.tree(TREE);
        let key = |n: u16| n.to_be_bytes();
        for n in 0..400 {
            put(&tree, &key(n), b"1");
        }
        clean(&tree);
        for n in 0..399 {
            remove(&tree, &key(n));
        }
        let end = AtomicBool::new(false);
        std::thread::scope(|s| {
            let (tree, end) = (&tree, &end);
            s.spawn(|| {
                while !end.load(Relaxed) {
                    assert!(first(tree, Order::Ascending).is_some());
                }
            });
            for round in 0..3000u16 {
                let n = round.wrapping_mul(7919) % 399;
                put(tree, &key(n), b"2");
                assert_eq!(first(tree, Order::Ascending), Some(key(n).to_vec()));
                remove(tree, &key(n));
            }
            end.store(true, Relaxed);
        });
    }
}

/// A value that is written behind the back of a scan that is about to remember the stretch: while
/// it reads for the first time, and for the second.
#[test]
fn i9_a_value_written_while_a_stretch_is_looked_at_is_not_passed() {
    for second_read in [false, true] {
        Rig::each(|_, tree, y| {
            let key = |n: u16| n.to_be_bytes();
            for n in 0..200 {
                put(tree, &key(n), b"1");
            }
            clean(tree);
            cut(tree);
            for n in 0..150 {
                remove(tree, &key(n));
            }
            let mut pause = y.pause(Point::RangeEnd);
            std::thread::scope(|s| {
                let scan = s.spawn(|| tree.scan_chunk(b"", None, Order::Ascending, LIMITS));
                pause.wait_reached();
                if second_read {
                    let next = y.pause(Point::RangeEnd);
                    pause.resume();
                    next.wait_reached();
                    pause = next;
                }
                put(tree, &key(5), b"2");
                pause.resume();
                scan.join().unwrap().unwrap();
            });
            assert_eq!(first(tree, Order::Ascending), Some(key(5).to_vec()));
        });
    }
}
