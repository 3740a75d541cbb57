//! Filters of evicted keys beside runs, loads and builds of themselves (I1).

use super::*;
use crate::{
    framework::{
        filter_builder::{Built, build, shed},
        policies::Evicted,
        signal::Stop,
    },
    y::memory::{Op, Point},
};
use std::thread;

const FILTER: Evicted = Evicted::Filter { bits_per_key: 10 };

fn choose(tree: &Joined, evicted: Evicted) {
    let _no_run = tree.writer.lock();
    // Several parts of a few keys.
    tree.writer.evicted().choose_with_parts(evicted, 3 << 10);
}

fn build_one(rig: &Rig, tree: &Joined) -> Result<Built> {
    build(&rig.shared, tree, &Stop::new(Arc::default()))
}

/// Builds all that is due; the filter knows every key then.
fn build_all(rig: &Rig, tree: &Joined) {
    while build_one(rig, tree).unwrap() == Built::Yes {}
    assert!(!tree.writer.evicted().is_incomplete());
}

fn denies(tree: &Joined, key: &[u8]) -> bool {
    tree.writer.evicted().denies(key)
}

fn name(n: u32) -> [u8; 4] {
    n.wrapping_mul(0x9E37_79B1).to_be_bytes()
}

/// Every key of Y is admitted.
fn assert_all_admitted(tree: &Joined, y: &MemoryY) {
    for key in y.contents().keys() {
        assert!(!denies(tree, key), "{key:?}");
    }
    let mut problems = Vec::new();
    tree.compare_filter_with_y(10, &mut problems).unwrap();
    assert_eq!(problems, [] as [String; 0]);
}

#[test]
fn absent_keys_are_denied_without_a_read_once_the_filter_is_built() {
    Rig::each(|rig, tree, y| {
        for n in 0..2000 {
            put(tree, &name(n), b"v");
        }
        clean(tree);
        cut(tree);
        choose(tree, FILTER);
        // Nothing is known yet: Y is asked.
        assert!(tree.writer.evicted().is_incomplete());
        assert_eq!((get(tree, &name(1)), y.reads()), (some(b"v"), 1));
        assert_eq!((get(tree, &name(9999)), y.reads()), (None, 2));
        build_all(rig, tree);
        let before = y.reads();
        let absent: Vec<_> = (5000..6000).map(name).collect();
        assert!(absent.iter().all(|key| get(tree, key).is_none()));
        let keys: Vec<&[u8]> = absent.iter().map(|key| &key[..]).collect();
        assert!(tree.multi_get(&keys).unwrap().iter().all(Option::is_none));
        let asked = y.reads() - before;
        assert!(asked < 100, "{asked} of 2000");
        assert!(rig.shared.counters.denials() >= 2000 - asked);
        for n in 0..2000 {
            assert_eq!(get(tree, &name(n)), some(b"v"));
        }
        assert_all_admitted(tree, y);
        choose(tree, Evicted::Ranges);
        assert!(!denies(tree, b"never seen"));
        assert_eq!(rig.shared.filters.bytes(), 0);
    });
}

/// A run that is under way holds what was given up: no more of the filter goes for that.
#[test]
fn filters_give_up_no_more_than_there_is_no_room_for() {
    Rig::each(|rig, tree, _| {
        for n in 0..20_000 {
            put(tree, &name(n), b"v");
        }
        clean(tree);
        choose(tree, FILTER);
        build_all(rig, tree);
        let (trees, filters) = ([tree.clone()], &rig.shared.filters);
        let whole = filters.bytes();
        let run = tree.writer.evicted().for_run();
        rig.shared.budget.set_limit(whole * 8 - 8);
        assert!(filters.is_exceeded());
        assert!(shed(&rig.shared, &trees, tree));
        assert!(filters.is_exceeded());
        while shed(&rig.shared, &trees, tree) {}
        let left = tree.writer.evicted().bytes();
        assert!(left >= whole / 2, "{left} of {whole}");
        drop(run);
        assert_eq!(filters.bytes(), left);
        assert!(!filters.is_exceeded());
    });
}

#[test]
fn i1_the_filter_knows_a_key_before_y_shows_it() {
    Rig::each(|rig, tree, y| {
        choose(tree, FILTER);
        build_all(rig, tree);
        assert!(denies(tree, b"k"));
        put(tree, b"k", b"v");
        let pause = y.pause(Point::RunVisible);
        thread::scope(|s| {
            let cleaner = s.spawn(|| clean(tree));
            pause.wait_reached();
            assert_eq!(in_y(y, b"k"), some(b"v"));
            assert!(!denies(tree, b"k"));
            pause.resume();
            cleaner.join().unwrap();
        });
        cut(tree);
        assert_eq!(get(tree, b"k"), some(b"v"));
    });
}

/// A value that X never holds goes to Y by a run of its own.
#[test]
fn i1_the_filter_knows_a_value_past_x() {
    let large = vec![7; BUDGET / 8 + 1];
    Rig::each(|rig, tree, _| {
        put_away(tree, b"j", b"v");
        choose(tree, FILTER);
        build_all(rig, tree);
        assert!(denies(tree, b"k"));
        put(tree, b"k", &large);
        assert!(get(tree, b"k").as_deref() == Some(&large[..]));
    });
}

/// A run that began before a part does not know it: the scan for the part comes after the run.
#[test]
fn i1_a_part_is_built_when_no_run_is_in_flight() {
    Rig::each(|rig, tree, y| {
        put(tree, b"k", b"v");
        choose(tree, FILTER);
        // It has noted its keys, in no part, and Y does not show them.
        let pause = y.pause(Point::RunPublish);
        thread::scope(|s| {
            let cleaner = s.spawn(|| clean(tree));
            pause.wait_reached();
            let builder = s.spawn(|| build_all(rig, tree));
            thread::sleep(A_WHILE);
            assert!(!builder.is_finished());
            pause.resume();
            cleaner.join().unwrap();
            builder.join().unwrap();
        });
        cut(tree);
        assert_eq!(get(tree, b"k"), some(b"v"));
        assert_all_admitted(tree, y);
    });
}

/// Overfull, it is built anew; meanwhile runs tell both.
#[test]
fn i1_what_answers_and_what_is_built_both_learn() {
    Rig::each(|rig, tree, y| {
        choose(tree, FILTER);
        build_all(rig, tree);
        for n in 0..5000 {
            put(tree, &name(n), b"v");
        }
        clean(tree);
        for point in [Point::RangeStart, Point::RangeEnd] {
            let new = [b"new", format!("{point:?}").as_bytes()].concat();
            assert!(tree.writer.evicted().next(5000).is_some());
            let pause = y.pause(point);
            thread::scope(|s| {
                let builder = s.spawn(|| build_one(rig, tree).unwrap());
                pause.wait_reached();
                put(tree, &new, b"v");
                clean(tree);
                cut(tree);
                assert!(!denies(tree, &new));
                pause.resume();
                assert_eq!(builder.join().unwrap(), Built::Yes);
            });
            assert_eq!(get(tree, &new), some(b"v"));
            assert_all_admitted(tree, y);
            // Overfull again, for the other point.
            for n in 10_000..20_000 {
                put(tree, &name(n), b"v");
            }
            clean(tree);
        }
        build_all(rig, tree);
        assert_all_admitted(tree, y);
    });
}

/// A load is noted by no run. The part whose scan has passed is given up.
#[test]
fn i1_a_load_is_forgotten_about_before_y_shows_it() {
    for meanwhile in [false, true] {
        Rig::each(|rig, tree, y| {
            put_away(tree, b"a", b"v");
            choose(tree, FILTER);
            let load = || {
                let mut load = tree.y.begin_load().unwrap().unwrap();
                load.add(b"k", b"v").unwrap();
                load.seal().unwrap();
                tree.take_load(load, b"b", b"z").unwrap();
            };
            if meanwhile {
                // The scan has seen Y without the load.
                let pause = y.pause(Point::RangeEnd);
                thread::scope(|s| {
                    let builder = s.spawn(|| build_one(rig, tree).unwrap());
                    pause.wait_reached();
                    load();
                    pause.resume();
                    builder.join().unwrap();
                });
            } else {
                build_all(rig, tree);
                load();
            }
            assert_eq!(get(tree, b"k"), some(b"v"));
            build_all(rig, tree);
            assert_eq!(get(tree, b"a"), some(b"v"));
            assert_all_admitted(tree, y);
        });
    }
}

#[test]
fn keys_that_were_removed_are_denied_when_the_filter_is_built_anew() {
    Rig::each(|rig, tree, y| {
        for n in 0..4000 {
            put(tree, &name(n), b"v");
        }
        clean(tree);
        cut(tree);
        choose(tree, FILTER);
        build_all(rig, tree);
        for n in 0..3000 {
            remove(tree, &name(n));
        }
        clean(tree);
        cut(tree);
        assert!(!denies(tree, &name(7)), "bits are not cleared");
        build_all(rig, tree);
        let denied = (0..3000).filter(|n| denies(tree, &name(*n))).count();
        assert!(denied > 2900, "{denied}");
        // And come again.
        for n in 0..3000 {
            put(tree, &name(n), b"again");
        }
        clean(tree);
        cut(tree);
        for n in 0..4000 {
            assert!(get(tree, &name(n)).is_some());
        }
        assert_all_admitted(tree, y);
    });
}

#[test]
fn a_scan_that_fails_leaves_what_was_known() {
    Rig::each(|rig, tree, y| {
        put_away(tree, b"k", b"v");
        choose(tree, FILTER);
        y.fail(Op::Range, 0, 0, crate::Error::Closed);
        assert!(build_one(rig, tree).is_err());
        assert!(!denies(tree, b"other") && tree.writer.evicted().is_incomplete());
        assert_eq!(rig.shared.filters.bytes(), 0);
        build_all(rig, tree);
        assert!(denies(tree, b"other"));
    });
}

/// I7: what filters take is in the budget, an eighth of it at most, and follows it down.
#[test]
fn i7_filters_take_a_part_of_the_budget() {
    let rig = Rig::with_budget(XKind::Art, 4 << 20);
    let (tree, _) = rig.tree(TREE);
    choose(&tree, Evicted::Filter { bits_per_key: 32 });
    for n in 0..60_000u32 {
        put(&tree, &n.to_be_bytes(), b"");
        if n % 10_000 == 9999 {
            clean(&tree);
            cut(&tree);
        }
    }
    build_all(&rig, &tree);
    let filters = &rig.shared.filters;
    assert!(filters.bytes() > 200 << 10 && filters.bytes() <= filters.limit());
    rig.shared.budget.set_limit(512 << 10);
    assert!(filters.bytes() > filters.limit());
    while tree.writer.evicted().shed() {}
    assert_eq!(filters.bytes(), 0);
    // What does not fit is not built, and Y is asked.
    while build_one(&rig, &tree).unwrap() == Built::Yes {}
    assert!(filters.bytes() <= filters.limit());
    assert!(tree.writer.evicted().is_incomplete());
    for n in (0..60_000u32).step_by(100) {
        assert_eq!(get(&tree, &n.to_be_bytes()), some(b""));
    }
}

#[test]
fn a_tree_that_is_dropped_denies_nothing_and_builds_nothing() {
    Rig::each(|rig, tree, _| {
        put_away(tree, b"k", b"v");
        choose(tree, FILTER);
        build_all(rig, tree);
        tree.discard();
        assert!(tree.get(b"absent", |_| ()).is_err());
        let _ = build_one(rig, tree).unwrap();
        assert!(tree.get(b"k", |_| ()).is_err());
    });
}

/// Runs, cuts, removals and builds beside readers: what was put is there.
#[test]
fn i1_under_runs_and_builds_no_key_is_missed() {
    let rounds = if cfg!(debug_assertions) { 40 } else { 120 };
    Rig::each(|rig, tree, y| {
        choose(tree, FILTER);
        let stop = Stop::new(Arc::default());
        let written = std::sync::atomic::AtomicU32::new(0);
        let done = std::sync::atomic::AtomicBool::new(false);
        let acquire = std::sync::atomic::Ordering::Acquire;
        thread::scope(|s| {
            s.spawn(|| {
                while !done.load(acquire) {
                    let _ = build(&rig.shared, tree, &stop).unwrap();
                }
            });
            for seed in 0..2u32 {
                let (done, written) = (&done, &written);
                s.spawn(move || {
                    let mut n = seed;
                    while !done.load(acquire) {
                        n = n.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
                        let known = written.load(acquire);
                        if known > 0 {
                            let key = name((n >> 8) % known);
                            assert!(get(tree, &key).is_some(), "{key:?}");
                        }
                    }
                });
            }
            for round in 0..rounds {
                for n in round * 100..(round + 1) * 100 {
                    put(tree, &name(n), b"v");
                    remove(tree, &name(1_000_000 + n));
                }
                written.store((round + 1) * 100, std::sync::atomic::Ordering::Release);
                clean(tree);
                cut(tree);
            }
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        build_all(rig, tree);
        assert_all_admitted(tree, y);
    });
}
