//! Writes that meet a run on its way to Y (I2, I4, I5).

use super::*;
use crate::{
    error::Error,
    y::memory::{Op, Point},
};

/// Starts a clean of everything, stops it at `point`, does `meanwhile`, lets it go on.
fn while_cleaning(tree: &Joined, y: &MemoryY, point: Point, meanwhile: impl FnOnce()) {
    let pause = y.pause(point);
    std::thread::scope(|s| {
        s.spawn(|| clean(tree));
        pause.wait_reached();
        meanwhile();
        pause.resume();
    });
}

const IN_FLIGHT: [Point; 3] = [Point::RunDrained, Point::RunPublish, Point::RunVisible];

#[test]
fn i2_v2_written_while_v1_is_cleaned_stays_dirty() {
    for point in IN_FLIGHT {
        Rig::each(|rig, tree, y| {
            put(tree, b"k", b"v1");
            while_cleaning(tree, y, point, || {
                put(tree, b"k", b"v2");
                assert_eq!(get(tree, b"k"), some(b"v2"));
            });
            assert_eq!(in_y(y, b"k"), some(b"v1"));
            assert_clean_means_equal(tree);
            cut(tree);
            assert_eq!(get(tree, b"k"), some(b"v2"), "after a cut");
            clean(tree);
            cut(tree);
            assert_eq!(get(tree, b"k"), some(b"v2"), "from Y");
            rig.flush().unwrap();
            rig.crash_and(|tree| assert_eq!(get(tree, b"k"), some(b"v2")));
        });
    }
}

#[test]
fn i2_a_remove_while_the_copy_is_in_flight_reaches_y() {
    for point in IN_FLIGHT {
        Rig::each(|rig, tree, y| {
            // Neither in Y nor below a mount: only `in_y`, set at the copy, keeps the tombstone.
            put(tree, b"k", b"v1");
            while_cleaning(tree, y, point, || {
                remove(tree, b"k");
                assert_eq!(get(tree, b"k"), None);
            });
            assert_eq!(get(tree, b"k"), None);
            cut(tree);
            assert_eq!(get(tree, b"k"), None, "after a cut");
            clean(tree);
            assert_eq!(in_y(y, b"k"), None);
            assert_eq!(get(tree, b"k"), None, "after the delete was cleaned");
            rig.flush().unwrap();
            rig.crash_and(|tree| assert_eq!(get(tree, b"k"), None));
        });
    }
}

#[test]
fn i2_a_value_written_while_its_delete_is_in_flight_is_not_purged() {
    for point in IN_FLIGHT {
        Rig::each(|_, tree, y| {
            put_away(tree, b"k", b"v1");
            remove(tree, b"k");
            while_cleaning(tree, y, point, || {
                put(tree, b"k", b"v2");
            });
            assert_eq!(get(tree, b"k"), some(b"v2"));
            clean(tree);
            cut(tree);
            assert_eq!(get(tree, b"k"), some(b"v2"));
        });
    }
}

#[test]
fn i4_nothing_in_flight_is_cut() {
    for point in [Point::RunDrained, Point::RunPublish] {
        Rig::each(|_, tree, y| {
            put(tree, b"a", b"1");
            put(tree, b"b", b"1");
            while_cleaning(tree, y, point, || {
                assert_eq!(cut(tree).dropped, 0);
                assert_eq!(get(tree, b"a"), some(b"1"));
                assert_eq!(get(tree, b"b"), some(b"1"));
            });
            assert_eq!(cut(tree).dropped, 2);
            assert_eq!(get(tree, b"a"), some(b"1"));
        });
    }
}

#[test]
fn i4_a_run_that_y_fails_is_dirty_again() {
    for applied in 0..4 {
        Rig::each(|rig, tree, y| {
            put_away(tree, b"gone", b"old");
            put(tree, b"a", b"1");
            put(tree, b"b", b"1");
            remove(tree, b"gone");
            let full = Error::OutOfSpace { path: "y".into() };
            y.fail(Op::WriteRun, 0, applied, full);
            assert!(matches!(
                tree.write_back(Pick::All),
                Err(Error::OutOfSpace { .. })
            ));
            cut(tree);
            let check = |tree: &Joined| {
                assert_eq!(get(tree, b"a"), some(b"1"));
                assert_eq!(get(tree, b"b"), some(b"1"));
                assert_eq!(get(tree, b"gone"), None);
            };
            check(tree);
            clean(tree);
            cut(tree);
            check(tree);
            assert_eq!(y.contents().len(), 2);
            rig.flush().unwrap();
            rig.crash_and(check);
        });
    }
}

#[test]
fn i6_a_failed_run_does_not_raise_the_floor() {
    Rig::each(|rig, tree, y| {
        put(tree, b"a", b"1");
        rig.log().sync().unwrap();
        y.fail(Op::WriteRun, 0, 0, Error::OutOfSpace { path: "y".into() });
        assert!(rig.flush().is_err());
        rig.truncate();
        assert_eq!(rig.manifest.lock().start, Lsn(0));
        rig.crash_and(|tree| assert_eq!(get(tree, b"a"), some(b"1")));
    });
}

#[test]
fn i5_the_log_is_durable_before_y_shows_a_run() {
    Rig::each(|rig, tree, y| {
        let end = put(tree, b"k", b"v1");
        assert!(rig.log().durable() < end);
        while_cleaning(tree, y, Point::RunPublish, || {
            assert!(rig.log().durable() >= end);
        });
    });
}

#[test]
fn i4_a_value_too_large_for_x_does_not_lose_to_an_older_copy_in_flight() {
    let large = large();
    Rig::each(|rig, tree, y| {
        put(tree, b"k", b"v1");
        let pause = y.pause(Point::RunDrained);
        std::thread::scope(|s| {
            s.spawn(|| clean(tree));
            pause.wait_reached();
            let writer = s.spawn(|| put(tree, b"k", &large));
            std::thread::sleep(10 * A_WHILE);
            assert!(!writer.is_finished(), "it waits for the run");
            assert_eq!(get(tree, b"k"), some(b"v1"));
            pause.resume();
        });
        assert!(get(tree, b"k").as_deref() == Some(&large[..]));
        clean(tree);
        cut(tree);
        assert!(get(tree, b"k").as_deref() == Some(&large[..]));
        rig.flush().unwrap();
        rig.crash_and(|tree| assert!(get(tree, b"k").as_deref() == Some(&large[..])));
    });
}

/// A value that X does not hold.
fn large() -> Vec<u8> {
    vec![7; BUDGET / 8 + 1]
}

/// Writes a large value, and has `meanwhile` happen when Y is at `point` with it.
fn while_put_past_x(tree: &Joined, y: &MemoryY, point: Point, meanwhile: impl FnOnce()) {
    let pause = y.pause(point);
    std::thread::scope(|s| {
        let writer = s.spawn(|| put(tree, b"large", &large()));
        pause.wait_reached();
        meanwhile();
        pause.resume();
        writer.join().unwrap();
    });
}

#[test]
fn i5_the_log_is_durable_before_y_shows_a_value_past_x() {
    Rig::each(|rig, tree, y| {
        let small = put(tree, b"small", b"v");
        while_put_past_x(tree, y, Point::RunPublish, || {
            assert!(rig.log().end().0 > small.0 + large().len() as u64);
            assert_eq!(rig.log().durable(), rig.log().end());
        });
    });
}

#[test]
fn i6_a_value_past_x_stays_in_the_log_until_y_has_it() {
    Rig::each(|rig, tree, y| {
        while_put_past_x(tree, y, Point::RunPublish, || rig.truncate());
        rig.crash_and(|tree| assert!(get(tree, b"large") == Some(large())));
    });
}

#[test]
fn a_value_past_x_that_y_has_no_room_for_is_not_logged() {
    Rig::each(|rig, tree, y| {
        put(tree, b"large", b"old");
        let end = rig.log().end();
        rig.log().sync().unwrap();
        y.fail(Op::DrainRun, 0, 0, Error::OutOfSpace { path: "y".into() });
        let refused = put_as_routed(tree, b"large", Some(&large())).unwrap_err();
        assert!(matches!(refused, Error::OutOfSpace { .. }), "{refused}");
        assert_eq!(rig.log().end(), end);
        assert_eq!(get(tree, b"large"), some(b"old"));
        rig.crash_and(|tree| assert_eq!(get(tree, b"large"), some(b"old")));
    });
}

#[test]
fn a_failure_of_y_poisons_whoever_meets_it() {
    let failure = || Error::io("sync", "y", std::io::Error::other("broken"));
    for op in [Op::DrainRun, Op::WriteRun, Op::MakeDurable] {
        Rig::each(|rig, tree, y| {
            put(tree, b"k", b"v");
            y.fail(op, 0, 0, failure());
            let met = rig.flush().unwrap_err();
            assert_eq!(met.to_string(), failure().to_string());
            let Err(Error::Poisoned { cause }) = rig.shared.poison.check() else {
                panic!("{op:?}: not poisoned");
            };
            assert_eq!(*cause, *failure().to_string(), "{op:?}");
            assert_eq!(get(tree, b"k"), some(b"v"), "{op:?}");
        });
    }
    Rig::each(|rig, tree, y| {
        y.fail(Op::WriteRun, 0, 0, failure());
        assert!(put_as_routed(tree, b"large", Some(&large())).is_err());
        assert!(rig.shared.poison.check().is_err());
    });
    Rig::each(|rig, tree, y| {
        put(tree, b"k", b"v");
        y.fail(Op::WriteRun, 0, 0, Error::OutOfSpace { path: "y".into() });
        assert!(rig.flush().is_err());
        assert!(
            rig.shared.poison.check().is_ok(),
            "a full device is no such failure"
        );
    });
}

/// Its files go while Y works on them: that fails, and says nothing about the other trees.
#[test]
fn a_tree_dropped_during_its_flush_costs_the_others_nothing() {
    let failure = || Error::io("read", "y", std::io::Error::other("gone"));
    for dropped in [true, false] {
        Rig::each(|rig, tree, y| {
            y.set_congested(true);
            y.fail(Op::Maintain, 0, 0, failure());
            let pause = y.pause(Point::MaintainStart);
            std::thread::scope(|s| {
                let flush = s.spawn(|| tree.flush());
                pause.wait_reached();
                if dropped {
                    tree.discard();
                }
                pause.resume();
                assert_eq!(flush.join().unwrap().is_ok(), dropped);
            });
            assert_eq!(rig.shared.poison.check().is_ok(), dropped);
        });
    }
}

/// Where keys are appended, one region takes all of them; a run that took all of it would have
/// writers wait for it.
#[test]
fn a_run_is_short_however_large_its_region_has_become() {
    const KEYS: u64 = 20_000;
    for kind in X_KINDS {
        let rig = Rig::with_budget(kind, 4 << 20);
        let (tree, y) = rig.tree(TREE);
        put(&tree, b"", b"");
        tree.choose_regions_of(32 << 10);
        for key in 0..KEYS {
            put(&tree, &key.to_be_bytes(), b"appended");
        }
        let first = tree.write_back(Pick::Oldest).unwrap().keys;
        assert!((1..KEYS / 4).contains(&first), "{kind:?}: {first}");
        while tree.write_back(Pick::Oldest).unwrap().keys > 0 {}
        assert_eq!(tree.x.stats().dirty, 0);
        assert_eq!(y.contents().len() as u64, KEYS + 1);
        assert_clean_means_equal(&tree);
    }
}

/// A flush of much is many runs, between which memory can be released; together they are all of it,
/// also where writers go on.
#[test]
fn a_flush_is_as_many_runs_as_it_takes() {
    const KEYS: u64 = 60_000;
    for kind in X_KINDS {
        let rig = Rig::with_budget(kind, 4 << 20);
        let (tree, y) = rig.tree(TREE);
        for key in 0..KEYS {
            put(&tree, &key.to_be_bytes(), b"appended");
        }
        let before = crate::framework::counters::read(&rig.shared.counters.runs);
        rig.flush().unwrap();
        let runs = crate::framework::counters::read(&rig.shared.counters.runs) - before;
        assert!(runs >= 3, "{kind:?}: {runs} runs");
        assert_eq!(tree.x.stats().dirty, 0, "{kind:?}");
        assert_eq!(y.contents().len() as u64, KEYS);
        assert_clean_means_equal(&tree);
    }
}

/// A leaf of large values is larger than regions should be, and as small as they get: choosing them
/// anew would have each pass begin again.
#[test]
fn check_back_cleans_regions_of_one_large_leaf() {
    for kind in [XKind::Art, XKind::BPlus] {
        let rig = Rig::with_budget(kind, 8 << 20);
        let (tree, _) = rig.tree(TREE);
        for key in 0..20u64 {
            put(&tree, &key.to_be_bytes(), b"small");
        }
        for key in 1000..1100u64 {
            put(&tree, &key.to_be_bytes(), &[7; 20_000]);
        }
        tree.choose_regions_of(64 << 10);
        let passes = (0..4).map(|_| tree.write_back(Pick::CheckBack).unwrap().keys);
        assert!(passes.sum::<u64>() > 20, "{kind:?}");
    }
}

/// Of fresh keys, what was cleaned is what Y got.
#[test]
fn cleaned_keys_are_counted_by_what_asked_for_them() {
    const KEYS: u16 = 500;
    for kind in X_KINDS {
        let rig = Rig::new(kind);
        let (tree, y) = rig.tree(TREE);
        let mut next = 0;
        let mut fresh_keys = || {
            for n in next..next + KEYS {
                put(&tree, &n.to_be_bytes(), &[7; 100]);
            }
            next += KEYS;
            tree.choose_regions_of(8 << 10);
        };
        let counted = || {
            let counters = &rig.shared.counters;
            [
                &counters.cleaned_by_check_back,
                &counters.cleaned_by_age,
                &counters.cleaned_for_log,
                &counters.cleaned_keys,
            ]
            .map(crate::framework::counters::read)
        };
        let keys = u64::from(KEYS);
        fresh_keys();
        // One pass sees that all was written, the next ones that it is quiet.
        for _ in 0..100 {
            tree.write_back(Pick::CheckBack).unwrap();
        }
        assert_eq!(counted(), [keys, 0, 0, keys], "{kind:?}");
        fresh_keys();
        while tree.write_back(Pick::Oldest).unwrap().keys > 0 {}
        assert_eq!(counted(), [keys, keys, 0, 2 * keys], "{kind:?}");
        fresh_keys();
        truncate::clean_below(&*rig, rig.log().end()).unwrap();
        assert_eq!(counted(), [keys, keys, keys, 3 * keys], "{kind:?}");
        fresh_keys();
        clean(&tree);
        assert_eq!(counted(), [keys, keys, keys, 4 * keys], "{kind:?}");
        assert_eq!(y.contents().len() as u64, 4 * keys, "{kind:?}");
    }
}
