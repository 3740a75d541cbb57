//! Writers that find no room wait for it, not for ever, and go on when there is some (I7).

use super::*;
use crate::{
    error::Error,
    framework::{
        counters,
        regions::{key_range::EVERYTHING, survey::Precision},
        worker::Background,
    },
    mem::budget::Holder,
    y::memory::Point,
};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    time::Instant,
};

const SMALL_BUDGET: usize = 4 << 20;
/// What nobody is admitted for (what a cut builds before it frees, retired blocks) may for a moment
/// be this much more.
const MOST: usize = SMALL_BUDGET + SMALL_BUDGET / 32;
const VALUE: [u8; 200] = [7; 200];
const WRITERS: u64 = 4;

fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

/// As `Tree::insert` does it.
fn write(rig: &Rig, tree: &Joined, n: u64) -> Result<()> {
    let _admitted = rig.shared.room.admit(VALUE.len() + 100)?;
    let _room = rig.log().admit(VALUE.len() + 100)?;
    put_as_routed(tree, &key(n), Some(&VALUE)).map(|_| ())
}

/// Writes keys until there is no room; returns why, and how long the last one waited.
fn fill(rig: &Rig, tree: &Joined, next: &AtomicU64) -> (Error, Duration) {
    loop {
        let start = Instant::now();
        if let Err(error) = write(rig, tree, next.fetch_add(1, SeqCst)) {
            return (error, start.elapsed());
        }
    }
}

#[test]
fn i7_writers_wait_for_a_y_that_hangs_and_are_told_in_the_end() {
    for kind in [XKind::Art, XKind::BPlus] {
        let rig = Rig::with_budget(kind, SMALL_BUDGET);
        let (tree, y) = rig.tree(TREE);
        let pause = y.pause(Point::RunStart);
        let trees: Arc<dyn Host> = rig.clone();
        let background = Background::start(&rig.shared, &trees, false).unwrap();
        let next = AtomicU64::new(0);
        std::thread::scope(|s| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|_| s.spawn(|| fill(&rig, &tree, &next)))
                .collect();
            for writer in writers {
                let (error, waited) = writer.join().unwrap();
                let Error::MemoryStalled {
                    budget_bytes,
                    waited_ms,
                } = error
                else {
                    panic!("{error}");
                };
                assert_eq!(budget_bytes, SMALL_BUDGET);
                assert!(u128::from(waited_ms) >= WAIT_LIMITS.stall.as_millis());
                assert!(
                    waited >= WAIT_LIMITS.stall && waited < 10 * WAIT_LIMITS.stall,
                    "{waited:?}"
                );
            }
        });
        pause.wait_reached();
        let used = rig.shared.budget.used();
        assert!(used <= MOST, "{kind:?}: {used}");
        let counters = &rig.shared.counters;
        assert!(counters::read(&counters.stalls) >= WRITERS);
        let stalled = u128::from(counters::read(&counters.stall_micros));
        assert!(stalled >= u128::from(WRITERS) * WAIT_LIMITS.stall.as_micros());
        // Reads never wait; whoever failed had not written.
        let tried = next.load(SeqCst);
        let there = |n: u64| get(&tree, &key(n)).is_some_and(|v| v == VALUE);
        assert_eq!(
            (0..tried).filter(|&n| there(n)).count() as u64,
            tried - WRITERS
        );
        // Y goes on, and so do they.
        pause.resume();
        for n in tried..2 * tried {
            write(&rig, &tree, n).unwrap();
        }
        assert_eq!(
            (0..2 * tried).filter(|&n| there(n)).count() as u64,
            2 * tried - WRITERS
        );
        drop(background);
    }
}

#[test]
fn i7_who_waits_for_memory_is_sent_away_by_a_close() {
    let rig = Rig::with_budget(XKind::Art, SMALL_BUDGET);
    let (tree, _) = rig.tree(TREE);
    // Nobody cleans or releases.
    let next = AtomicU64::new(0);
    std::thread::scope(|s| {
        let writer = s.spawn(|| fill(&rig, &tree, &next));
        while counters::read(&rig.shared.counters.stalls) == 0 {
            std::thread::yield_now();
        }
        rig.shared.room.begin_closing();
        let (error, waited) = writer.join().unwrap();
        assert!(matches!(error, Error::Closed), "{error}");
        assert!(waited < WAIT_LIMITS.stall, "{waited:?}");
    });
}

/// Writers fill holes faster than the releaser looks: they look themselves.
#[test]
fn i7_who_fills_holes_sees_that_what_lives_has_reached_its_limit() {
    const ROOM: usize = 256 << 10;
    let rig = Rig::with_budget(XKind::Art, 4 * SMALL_BUDGET);
    let (tree, _) = rig.tree(TREE);
    let shared = &rig.shared;
    let holdings: Arc<dyn Holdings> = rig.clone();
    shared.room.watch(Arc::downgrade(&holdings));
    let marks = shared.room.watermarks();
    let mut n = 0;
    let mut put = || {
        n += 1;
        // Past the log, whose buffers count too, and come and go.
        let put = tree.x.put(&key(n), Some(&VALUE), || Ok::<(), ()>(()));
        assert!(put.is_ok());
    };
    while shared.budget.used() < marks.low {
        put();
    }
    // Holes, for more than may live.
    tree.write_back(Pick::All).unwrap();
    for at in (0..u8::MAX).step_by(2) {
        tree.x
            .cut(&[at], Some(&[at + 1]), tree.settled(), false, usize::MAX);
    }
    rig.memory.collect();
    // Slabs that still go back do not take it below the mark.
    let fill = marks.hard.midpoint(marks.ceiling) - shared.budget.used();
    shared.budget.take(Holder::Scans, fill);
    let x_bytes = || tree.x.stats().bytes;
    let before = x_bytes();
    shared.room.set_live_limit(shared.room.live() + ROOM);
    while shared.room.admit_load(VALUE.len()).is_some() {
        assert!(x_bytes() < before + 2 * ROOM, "nobody looked");
        put();
    }
    assert!(x_bytes() >= before + ROOM / 2, "too early");
    assert!(shared.budget.used() < marks.ceiling, "the test needs holes");
    shared.room.set_live_limit(usize::MAX);
    assert!(shared.room.admit_load(VALUE.len()).is_some());
    shared.budget.give(Holder::Scans, fill);
}

fn start(rig: &Arc<Rig>) -> Background {
    let host: Arc<dyn Host> = rig.clone();
    Background::start(&rig.shared, &host, false).unwrap()
}

/// Fills X up to about its low mark.
fn fill_to_low_mark(rig: &Rig, tree: &Joined) -> u64 {
    let mut n = 0;
    while rig.shared.budget.used() < rig.shared.room.watermarks().low {
        put(tree, &key(n), &VALUE);
        n += 1;
    }
    n
}

/// All is clean, and what was measured says that all is dirty: nothing changes any more that would
/// have it measured again, and a writer waits.
#[test]
fn i7_what_was_counted_as_dirty_is_released_once_it_is_clean() {
    for kind in [XKind::Art, XKind::BPlus] {
        let rig = Rig::with_budget(kind, 2 * SMALL_BUDGET);
        let (tree, _) = rig.tree(TREE);
        let keys = fill_to_low_mark(&rig, &tree);
        tree.try_rechoose_regions();
        let (table, _) = tree.survey(Precision::Exact);
        let all: Vec<usize> = (0..table.len()).collect();
        let mut runs = tree.writer.lock();
        tree.write_regions(&table, &all, EVERYTHING, &mut runs)
            .unwrap();
        drop(runs);
        // As after a run over the region behind the one that the leaf counts for.
        (0..table.len()).for_each(|i| table.set_changed(i, false));
        assert_eq!(tree.x.stats().dirty, 0);
        let (_, stats) = tree.survey(Precision::Rough);
        assert!(
            stats.iter().all(|s| s.dirty == s.keys),
            "the test needs a stale survey"
        );
        let background = start(&rig);
        let from = Instant::now();
        let admitted = rig.shared.room.admit(SMALL_BUDGET);
        assert!(admitted.is_ok(), "{kind:?}: {:?}", admitted.err());
        assert!(from.elapsed() < WAIT_LIMITS.stall, "{:?}", from.elapsed());
        drop((admitted, background));
        assert!((0..keys).all(|n| get(&tree, &key(n)) == some(&VALUE)));
    }
}

/// The cleaner waits for a congested Y. The tree is dropped: it goes on with the others.
#[test]
fn a_congested_tree_that_is_dropped_holds_up_nobody() {
    const OTHER: u32 = 2;
    let rig = Rig::with_budget(XKind::Art, SMALL_BUDGET);
    let (tree, y) = rig.tree(TREE);
    let (other, other_y) = rig.tree(OTHER);
    y.set_congested(true);
    fill_to_low_mark(&rig, &tree);
    let background = start(&rig);
    let asked = rig.shared.clean_request.ask();
    rig.shared.wake_cleaner.notify();
    std::thread::sleep(A_WHILE);
    assert!(rig.shared.clean_request.is_pending(), "Y is congested");
    // As `drop_tree` does it.
    rig.trees.write().remove(&TREE);
    tree.discard();
    let stop = crate::framework::signal::Stop::new(Arc::default());
    rig.shared.clean_request.wait(asked, &stop, || ());
    put(&other, b"k", b"v");
    let next = AtomicU64::new(0);
    std::thread::scope(|s| {
        let writer = s.spawn(|| {
            // Three times the budget: not without the cleaner.
            for _ in 0..3 * SMALL_BUDGET / VALUE.len() {
                write(&rig, &other, next.fetch_add(1, SeqCst)).unwrap();
            }
        });
        writer.join().unwrap();
    });
    assert!(!other_y.contents().is_empty());
    drop(background);
}

/// Two trees, of which one is congested and the other one is written.
#[test]
fn a_congested_tree_holds_up_nobody_who_writes_to_another_one() {
    const OTHER: u32 = 2;
    let rig = Rig::with_budget(XKind::Art, SMALL_BUDGET);
    let (tree, y) = rig.tree(TREE);
    let (other, other_y) = rig.tree(OTHER);
    put(&tree, b"k", b"v");
    y.set_congested(true);
    fill_to_low_mark(&rig, &other);
    let background = start(&rig);
    let next = AtomicU64::new(1 << 32);
    std::thread::scope(|s| {
        s.spawn(|| {
            // Three times the budget: not without the cleaner.
            for _ in 0..3 * SMALL_BUDGET / VALUE.len() {
                write(&rig, &other, next.fetch_add(1, SeqCst)).unwrap();
            }
        });
    });
    assert!(!other_y.contents().is_empty() && y.contents().is_empty());
    drop(background);
}

/// The releaser waits for the cleaner, and the cleaner for a congested Y. A tree is cleared: what
/// it had is free for writers all the same.
#[test]
fn what_is_cleared_beside_a_congested_tree_is_freed() {
    const OTHER: u32 = 2;
    let rig = Rig::with_budget(XKind::Art, SMALL_BUDGET);
    let (tree, y) = rig.tree(TREE);
    let (other, other_y) = rig.tree(OTHER);
    put(&tree, b"k", b"v");
    fill_to_low_mark(&rig, &other);
    y.set_congested(true);
    other_y.set_congested(true);
    let background = start(&rig);
    std::thread::scope(|s| {
        let writer = s.spawn(|| {
            let from = Instant::now();
            let admitted = rig.shared.room.admit(SMALL_BUDGET / 2);
            (admitted.is_ok(), from.elapsed())
        });
        while !rig.shared.clean_request.is_pending() {
            assert!(!writer.is_finished(), "the test needs one who waits");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(A_WHILE);
        assert!(rig.shared.clean_request.is_pending(), "Y is congested");
        let mut runs = other.writer.lock();
        other.remove_range(&mut runs, b"", None).unwrap();
        drop(runs);
        let (admitted, waited) = writer.join().unwrap();
        assert!(admitted && waited < WAIT_LIMITS.stall, "{waited:?}");
    });
    assert!(rig.shared.clean_request.is_pending(), "Y is congested");
    tree.discard();
    drop(background);
}

/// Small writes take what becomes free, again and again; a large one gets in all the same.
#[test]
fn i7_a_large_write_is_not_starved_by_small_ones() {
    let rig = Rig::with_budget(XKind::Art, SMALL_BUDGET);
    let (tree, _) = rig.tree(TREE);
    let background = start(&rig);
    let (next, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|s| {
        for _ in 0..WRITERS {
            s.spawn(|| {
                while !done.load(SeqCst) {
                    write(&rig, &tree, next.fetch_add(1, SeqCst)).unwrap();
                }
            });
        }
        while rig.shared.budget.used() < rig.shared.room.watermarks().high {
            std::thread::yield_now();
        }
        for _ in 0..5 {
            let from = Instant::now();
            let admitted = rig.shared.room.admit(SMALL_BUDGET / 2);
            assert!(admitted.is_ok(), "{:?}", admitted.err());
            assert!(from.elapsed() < WAIT_LIMITS.stall, "{:?}", from.elapsed());
        }
        done.store(true, SeqCst);
    });
    let used = rig.shared.budget.used();
    assert!(used <= MOST, "{used}");
    drop(background);
}

/// Caches that cannot shrink leave X nothing: writers hear that the budget is too small.
#[test]
fn i7_caches_that_keep_all_memory_are_a_budget_too_small() {
    let rig = Rig::with_budget(XKind::Art, SMALL_BUDGET);
    let background = start(&rig);
    let room = &rig.shared.room;
    rig.shared.budget.set(Holder::IndexY, SMALL_BUDGET);
    room.caches_keep(SMALL_BUDGET - SMALL_BUDGET / 12);
    let refused = room.admit(64).err();
    assert!(
        matches!(refused, Some(Error::BudgetTooSmall { .. })),
        "{refused:?}"
    );
    drop(background);
}

/// What is more than X could ever give is refused soon, with a budget that would do; and what fits
/// beside what stays is admitted, however full X is.
#[test]
fn i7_what_never_fits_is_refused_and_what_fits_is_not() {
    let rig = Rig::with_budget(XKind::Art, SMALL_BUDGET);
    let (tree, _) = rig.tree(TREE);
    fill_to_low_mark(&rig, &tree);
    let background = start(&rig);
    let room = &rig.shared.room;
    // Tables of Y, say.
    rig.shared.budget.take(Holder::Transfer, SMALL_BUDGET / 4);
    let most = room.most_at_once();
    assert!(most > SMALL_BUDGET / 2, "{most}");
    let from = Instant::now();
    let Err(Error::BudgetTooSmall { minimum_bytes, .. }) = room.admit(most + 1) else {
        panic!("that cannot fit");
    };
    let waited = from.elapsed();
    assert!(waited < WAIT_LIMITS.stall / 2, "{waited:?}");
    assert!(
        (SMALL_BUDGET..4 * SMALL_BUDGET).contains(&minimum_bytes),
        "{minimum_bytes}"
    );
    // Slabs that nothing lives in are kept in reserve.
    drop(room.admit(most / 16 * 15).unwrap());
    rig.shared.budget.give(Holder::Transfer, SMALL_BUDGET / 4);
    drop(background);
}
