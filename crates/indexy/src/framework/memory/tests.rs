//! Ends of a wait that no database comes to at will.

use super::{
    Watermarks,
    room::{Holdings, Room, WaitLimits},
};
use crate::{
    error::Error,
    mem::{
        Freed, Memory,
        budget::{Budget, Holder},
    },
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

const BUDGET: usize = 4 << 20;
const LIMITS: WaitLimits = WaitLimits {
    stall: Duration::from_secs(20),
    crowded_out: Duration::from_secs(20),
    too_large: Duration::from_millis(200),
};

/// Resident trees, and beside them what is never released: nodes that hold nothing.
struct Stub {
    memory: Arc<Memory>,
    resident: usize,
    beside: usize,
    /// So often images were asked for.
    asked: AtomicUsize,
    /// So often snapshots were to be given up.
    given_up: AtomicUsize,
}

impl Holdings for Stub {
    fn x_bytes(&self) -> usize {
        self.resident + self.beside
    }
    fn resident_bytes(&self) -> usize {
        self.resident
    }
    fn y_bytes(&self) -> usize {
        0
    }
    fn when_freed(&self) -> Freed {
        self.memory.when_freed()
    }
    fn spill_images(&self) {
        self.asked.fetch_add(1, SeqCst);
    }
    fn give_up_images(&self) {
        self.given_up.fetch_add(1, SeqCst);
    }
}

fn full_room(beside: usize) -> (Room, Arc<Stub>) {
    let full = Watermarks::of(BUDGET).ceiling;
    let budget = Arc::new(Budget::new(BUDGET));
    budget.take(Holder::Arena, full);
    room_beside(budget, full - beside, beside)
}

fn room_beside(budget: Arc<Budget>, resident: usize, beside: usize) -> (Room, Arc<Stub>) {
    let stub = Arc::new(Stub {
        memory: Memory::new(budget.clone()),
        resident,
        beside,
        asked: AtomicUsize::new(0),
        given_up: AtomicUsize::new(0),
    });
    let room = Room::new(budget, Arc::default(), Arc::default(), LIMITS);
    let held: Arc<dyn Holdings> = stub.clone();
    room.watch(Arc::downgrade(&held));
    (room, stub)
}

/// What other trees hold is more than next to nothing, and does not come free all the same.
#[test]
fn resident_trees_are_told_of_where_nothing_else_is_released() {
    for beside in [0, BUDGET / 20] {
        let (room, _stub) = full_room(beside);
        let start = Instant::now();
        let error = room.admit(100).map(drop).unwrap_err();
        assert!(
            matches!(error, Error::ResidentTreesTooLarge { .. }),
            "{error}"
        );
        assert!(start.elapsed() < LIMITS.stall / 4, "{:?}", start.elapsed());
    }
}

/// A writer that waits has images go to disk, not only when it has given up.
#[test]
fn images_are_asked_for_during_a_wait() {
    let (room, stub) = full_room(BUDGET / 20);
    let _ = room.admit(100).map(drop);
    assert!(stub.asked.load(SeqCst) > 0);
    assert_eq!(stub.given_up.load(SeqCst), 0, "after a fifth of a second");
}

/// Where nothing is resident, a wait is long: snapshots do not outlast it.
#[test]
fn snapshots_are_given_up_during_a_long_wait() {
    let (room, stub) = full_room(Watermarks::of(BUDGET).ceiling);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| room.admit(100).map(drop));
        let deadline = Instant::now() + LIMITS.stall / 2;
        while stub.given_up.load(SeqCst) < 2 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        room.begin_closing();
        assert!(matches!(writer.join().unwrap(), Err(Error::Closed)));
    });
    assert!(stub.given_up.load(SeqCst) >= 2);
    assert!(stub.asked.load(SeqCst) > 10);
}

/// I7: what X has lent to filters of Y is X's own. A writer waits for it, and a large one is not
/// told that it will never fit.
#[test]
fn i7_what_is_lent_is_waited_for() {
    let (full, lent) = (Watermarks::of(BUDGET).ceiling, BUDGET / 4);
    let budget = Arc::new(Budget::new(BUDGET));
    budget.take(Holder::Arena, full - lent);
    let (room, _stub) = room_beside(budget, full - lent, 0);
    let most = room.most_at_once();
    room.budget.take(Holder::IndexY, lent);
    room.lend_to_y(lent);
    assert_eq!(room.most_at_once(), most);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| room.admit(100).map(drop));
        std::thread::sleep(LIMITS.too_large / 2);
        room.budget.give(Holder::IndexY, lent);
        room.lend_to_y(0);
        room.announce_freed();
        writer.join().unwrap().unwrap();
    });
}

/// What makes X smaller waits for buffers that fill the rest of the budget, and not for long.
#[test]
fn a_removal_waits_for_what_comes_free_by_itself() {
    let (room, _stub) = full_room(0);
    let rest = BUDGET - Watermarks::of(BUDGET).ceiling;
    assert!(room.await_room_to_shrink(rest / 2).unwrap());
    room.budget.take(Holder::Transfer, rest);
    assert!(!room.await_room_to_shrink(1).unwrap());
    std::thread::scope(|scope| {
        let removal = scope.spawn(|| room.await_room_to_shrink(1));
        std::thread::sleep(LIMITS.too_large / 10);
        room.budget.give(Holder::Transfer, rest);
        assert!(removal.join().unwrap().unwrap());
    });
    room.budget.take(Holder::Transfer, rest);
    room.begin_closing();
    assert!(matches!(room.await_room_to_shrink(1), Err(Error::Closed)));
}
