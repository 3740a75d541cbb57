//! Sweeps that are overtaken by writers and runs (`sweep.rs`).

use super::*;
use crate::{
    framework::{expiry::NEVER, sweep::Sweeping},
    y::memory::Point,
};

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
        while tree.maintain(Sweeping::IfDue).unwrap() == Maintained::More {}
        // A run takes deletes in the place of the dead.
        let run: Vec<_> = (0..3)
            .map(|n| (key(n).to_vec(), Some(expiry::stored(1, b"old").to_vec())))
            .collect();
        crate::y::conformance::write(y, &run).unwrap();
        let expiry = tree.expiry.as_ref().unwrap();
        expiry.wrote(1 << 40);
        y.fail(Op::DrainRun, 0, 0, Error::OutOfSpace { path: "/".into() });
        let failed = |_: &i32| tree.maintain(Sweeping::IfDue).is_err();
        let failed = (0..100).filter(failed).count();
        assert_eq!((failed, y.contents().len()), (1, 1));
    });
}

/// Nothing was written that could be in doubt: writing goes on, and the sweep comes again.
#[test]
fn a_sweep_that_cannot_read_does_not_poison() {
    use crate::{
        error::Error,
        framework::{
            compactor::{Compactor, Pauses},
            signal::Stop,
        },
        y::memory::Op,
    };
    each(|rig, tree, y| {
        (0..9).for_each(|n| put_until(tree, &key(n), b"old", NEVER));
        clean(tree);
        let run: Vec<_> = (0..3)
            .map(|n| (key(n).to_vec(), Some(expiry::stored(1, b"old").to_vec())))
            .collect();
        crate::y::conformance::write(y, &run).unwrap();
        tree.expiry.as_ref().unwrap().wrote(1 << 40);
        let failure = std::io::Error::other("the device fails once");
        y.fail(Op::Range, 0, 0, Error::io("read", "y", failure));
        let compactor = Compactor {
            stop: Stop::new(rig.shared.poison.clone()),
            shared: rig.shared.clone(),
            host: rig.clone(),
        };
        let mut pauses = Pauses::default();
        assert!(!compactor.step(tree, &mut pauses));
        rig.shared.poison.check().unwrap();
        assert_eq!(y.contents().len(), 9, "it was not read");
        compactor.step(tree, &mut pauses);
        assert_eq!(y.contents().len(), 9, "too early");
        // A pause later, or when a run has worked.
        put_until(tree, &key(100), b"new", NEVER);
        clean(tree);
        while compactor.step(tree, &mut pauses) {}
        assert_eq!(y.contents().len(), 7);
    });
}
