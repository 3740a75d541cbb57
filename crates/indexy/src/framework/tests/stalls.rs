//! Writers that find no room wait for it, not for ever, and go on when there is some (I7).

use super::*;
use crate::{
    error::Error,
    framework::{background::Background, counters, shared::STALL_LIMIT, transfer::Pick},
    mem::budget::Holder,
    y::memory::Point,
};
use std::{
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::Instant,
};

const SMALL_BUDGET: usize = 4 << 20;
/// What nobody is admitted for (what a cut builds before it frees, retired blocks) may for a moment be this much more.
const MOST: usize = SMALL_BUDGET + SMALL_BUDGET / 32;
const VALUE: [u8; 200] = [7; 200];
const WRITERS: u64 = 4;

fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

/// As `Tree::insert` does it.
fn write(rig: &Rig, tree: &Joined, n: u64) -> Result<()> {
    let _admitted = rig.shared.admit(VALUE.len() + 100)?;
    let _room = rig.log().admit(VALUE.len() + 100)?;
    tree.put(&key(n), Some(&VALUE)).map(|_| ())
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
        let trees: Arc<dyn Trees> = rig.clone();
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
                assert!(u128::from(waited_ms) >= STALL_LIMIT.as_millis());
                assert!(
                    waited >= STALL_LIMIT && waited < 10 * STALL_LIMIT,
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
        assert!(stalled >= u128::from(WRITERS) * STALL_LIMIT.as_micros());
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
        rig.shared.begin_closing();
        let (error, waited) = writer.join().unwrap();
        assert!(matches!(error, Error::Closed), "{error}");
        assert!(waited < STALL_LIMIT, "{waited:?}");
    });
}

/// Writers fill holes faster than the releaser looks: they look themselves.
#[test]
fn i7_who_fills_holes_sees_that_what_lives_has_reached_its_limit() {
    const ROOM: usize = 256 << 10;
    let rig = Rig::with_budget(XKind::Art, 4 * SMALL_BUDGET);
    let (tree, _) = rig.tree(TREE);
    let trees: Arc<dyn Trees> = rig.clone();
    let shared = &rig.shared;
    shared.watch(&trees);
    let marks = shared.watermarks();
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
            .cut(&[at], Some(&[at + 1]), tree.acked(), false, usize::MAX);
    }
    rig.memory.collect();
    // Slabs that still go back do not take it below the mark.
    let fill = marks.hard.midpoint(marks.ceiling) - shared.budget.used();
    shared.budget.take(Holder::Scans, fill);
    let x_bytes = || tree.x.stats().bytes;
    let before = x_bytes();
    shared.set_live_limit(shared.live() + ROOM);
    while shared.admit_load(VALUE.len()).is_some() {
        assert!(x_bytes() < before + 2 * ROOM, "nobody looked");
        put();
    }
    assert!(x_bytes() >= before + ROOM / 2, "too early");
    assert!(shared.budget.used() < marks.ceiling, "the test needs holes");
    shared.set_live_limit(usize::MAX);
    assert!(shared.admit_load(VALUE.len()).is_some());
    shared.budget.give(Holder::Scans, fill);
}
