//! Cuts that meet writers and readers (I1, I4).

use super::*;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const WRITERS: u8 = 3;
const KEYS: u16 = 600;
const ROUNDS: u32 = 60;

/// Writers own their keys; while they write and look back, everything is cleaned and cut over and
/// over.
#[test]
fn i4_writers_inside_regions_that_are_cut_lose_nothing() {
    Rig::each(|rig, tree, _| {
        let done = AtomicBool::new(false);
        std::thread::scope(|s| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|w| s.spawn(move || write_and_look_back(tree, w)))
                .collect();
            s.spawn(|| {
                while !done.load(Relaxed) {
                    clean(tree);
                }
            });
            s.spawn(|| {
                while !done.load(Relaxed) {
                    cut(tree);
                    std::thread::yield_now();
                }
            });
            let results: Vec<_> = writers.into_iter().map(|w| w.join()).collect();
            done.store(true, Relaxed);
            results.into_iter().for_each(|r| r.unwrap());
        });
        assert_clean_means_equal(tree);
        tree.x.verify(true).unwrap();
        rig.flush().unwrap();
        rig.crash_and(|tree| {
            for w in 0..WRITERS {
                for n in 0..KEYS {
                    assert_eq!(get(tree, &key(w, n)), last(w, n), "after a crash");
                }
            }
        });
    });
}

fn key(writer: u8, n: u16) -> Vec<u8> {
    // Neighbours belong to different writers.
    [&n.to_be_bytes()[..], &[writer]].concat()
}

/// What a writer leaves under its n-th key.
fn last(writer: u8, n: u16) -> Option<Vec<u8>> {
    value(writer, n, ROUNDS - 1)
}

fn value(writer: u8, n: u16, round: u32) -> Option<Vec<u8>> {
    // Every seventh write is a removal.
    let removed = (u32::from(n) + round).is_multiple_of(7);
    (!removed).then(|| [&[writer][..], &round.to_be_bytes()].concat())
}

fn write_and_look_back(tree: &Joined, writer: u8) {
    for round in 0..ROUNDS {
        for n in 0..KEYS {
            put_as_routed(tree, &key(writer, n), value(writer, n, round).as_deref()).unwrap();
            let back = (n * 7) % KEYS;
            let expected = match (back <= n, round) {
                (true, _) => value(writer, back, round),
                (false, 0) => None,
                (false, _) => value(writer, back, round - 1),
            };
            assert_eq!(
                get(tree, &key(writer, back)),
                expected,
                "writer {writer} key {back} round {round}"
            );
        }
    }
}

#[test]
fn i1_a_cut_leaves_mounts_that_ask_y() {
    Rig::each(|_, tree, y| {
        for n in 0..200u8 {
            put(tree, &[n, 1], &[n]);
        }
        clean(tree);
        let dropped = tree
            .x
            .cut(&[100], Some(&[150]), tree.settled(), false, usize::MAX);
        assert_eq!(dropped.dropped, 50);
        for n in 0..200u8 {
            assert_eq!(get(tree, &[n, 1]), some(&[n]));
        }
        let reads = y.reads();
        // Further away than a leaf reaches that lost something.
        assert_eq!(get(tree, &[10, 0]), None);
        assert_eq!(y.reads(), reads, "no mount, no read of Y");
        assert_eq!(get(tree, &[120, 0]), None);
        assert_eq!(y.reads(), reads + 1, "below a mount Y is asked");
    });
}

#[test]
fn i1_a_remove_below_a_mount_hides_what_y_has() {
    Rig::each(|rig, tree, _| {
        put_away(tree, b"k", b"v1");
        remove(tree, b"k");
        assert_eq!(get(tree, b"k"), None);
        cut(tree);
        assert_eq!(get(tree, b"k"), None, "a dirty tombstone is not cut");
        rig.log().sync().unwrap();
        rig.crash_and(|tree| assert_eq!(get(tree, b"k"), None, "replayed"));
    });
}
