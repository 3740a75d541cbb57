//! Sweeps that are overtaken by writers and runs (`sweep.rs`).

use super::*;
use crate::{framework::expiry::NEVER, y::memory::Point};

fn each(test: impl Fn(&Arc<Rig>, &Arc<Joined>, &MemoryY)) {
    let manifest = Manifest {
        expires: true,
        ..Manifest::default()
    };
    Rig::each_as(manifest, test);
}

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

fn put_until(tree: &Joined, key: &[u8], value: &[u8], expires: u64) {
    put(tree, key, &expiry::stored(expires, value));
}

/// `value`, as it lives for ever.
fn living(value: &[u8]) -> Option<Vec<u8>> {
    some(&expiry::stored(NEVER, value))
}

/// Sweeps everything in a thread that is stopped with what Y has in hand, and does `meanwhile`.
fn while_swept(tree: &Joined, y: &MemoryY, meanwhile: impl FnOnce()) {
    let pause = y.pause(Point::RangeEnd);
    std::thread::scope(|s| {
        s.spawn(|| tree.sweep(&[], None, || Ok(())).unwrap());
        pause.wait_reached();
        meanwhile();
        pause.resume();
    });
}

/// An entry that was found dead is written anew, in memory or also to Y, before the sweep removes
/// it: alone, and amid so many that they go as a range.
#[test]
fn i1_a_sweep_takes_nothing_that_was_renewed_meanwhile() {
    for dead in [3, 900] {
        for (cleaned, dropped) in [(false, false), (true, false), (true, true)] {
            each(|_, tree, y| {
                (0..dead).for_each(|n| put_until(tree, &key(n), b"old", 1));
                clean(tree);
                cut(tree);
                // A run takes deletes in the place of the dead.
                let run: Vec<_> = (0..dead)
                    .map(|n| (key(n).to_vec(), Some(expiry::stored(1, b"old").to_vec())))
                    .collect();
                crate::y::conformance::write(y, &run).unwrap();
                let renewed = key(dead / 2);
                while_swept(tree, y, || {
                    put_until(tree, &renewed, b"new", NEVER);
                    if cleaned {
                        clean(tree);
                    }
                    if dropped {
                        cut(tree);
                    }
                });
                assert_eq!(get(tree, &renewed), living(b"new"), "{dead} {cleaned}");
                clean(tree);
                cut(tree);
                assert_eq!(get(tree, &renewed), living(b"new"));
                assert_eq!(y.contents().len(), 1);
            });
        }
    }
}

/// A full device, say: the sweep is due again, and not at the next occasion.
#[test]
fn a_sweep_that_failed_comes_again() {
    use crate::{
        error::Error,
        y::{Maintained, memory::Op},
    };
    each(|_, tree, y| {
        put_until(tree, &key(9), b"new", NEVER);
        clean(tree);
        cut(tree);
        // What it leaves never expires: no time comes at which another one is due.
        while tree.maintain().unwrap() == Maintained::More {}
        // A run takes deletes in the place of the dead.
        let run: Vec<_> = (0..3)
            .map(|n| (key(n).to_vec(), Some(expiry::stored(1, b"old").to_vec())))
            .collect();
        crate::y::conformance::write(y, &run).unwrap();
        let expiry = tree.expiry.as_ref().unwrap();
        expiry.wrote(1 << 40);
        y.fail(Op::DrainRun, 0, 0, Error::OutOfSpace { path: "/".into() });
        let failed = (0..100).filter(|_| tree.maintain().is_err()).count();
        assert_eq!((failed, y.contents().len()), (1, 1));
    });
}
