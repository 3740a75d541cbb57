//! Reads that nobody waits for at once: who joins whom, what pushes back, and what ends them.

use super::*;
use crate::{
    error::Error,
    framework::{
        fetch::{
            fetcher,
            queue::{Fetches, MOST_FETCHERS, MOST_WAITING, Pushed},
            slot::Slot,
        },
        worker::Background,
    },
    mem::budget::Holder,
    y::memory::{Op, Point},
};
use std::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    task::{Poll, Wake, Waker},
};

/// Longest that a thread waits for another one.
const PATIENCE: Duration = Duration::from_secs(30);

/// With the threads of a database that is open read-only: nothing moves by itself.
fn start(rig: &Arc<Rig>) -> Arc<Background> {
    let host: Arc<dyn Host> = rig.clone();
    Arc::new(Background::start(&rig.shared, &host, true).unwrap())
}

fn key(n: usize) -> [u8; 2] {
    (n as u16).to_be_bytes()
}

/// `keys` keys, in Y alone. The value is the key.
fn fill(tree: &Joined, keys: usize) {
    for n in 0..keys {
        put(tree, &key(n), &key(n));
    }
    clean(tree);
    assert!(cut(tree).dropped > 0);
}

fn value(n: usize) -> Option<Value> {
    Some(Value::new(&key(n)))
}

fn held(rig: &Rig) -> usize {
    rig.shared.budget.held(Holder::Fetches)
}

/// Until it holds, within [`PATIENCE`].
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let limit = std::time::Instant::now() + PATIENCE;
    while !holds() {
        assert!(std::time::Instant::now() < limit, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn keys_of_many_callers_are_read_together_and_once() {
    Rig::each(|rig, tree, y| {
        fill(tree, 100);
        let background = start(rig);
        let pause = y.pause(Point::GetStart);
        let first = background.fetch(tree, &key(0)).unwrap();
        pause.wait_reached();
        let before = (y.reads(), y.calls());
        // These wait until the only fetcher is free.
        let many: Vec<Arc<Slot>> = (0..60)
            .map(|n| background.fetch(tree, &key(n % 20)).unwrap())
            .collect();
        assert!(!first.is_answered() && !many[0].is_answered());
        pause.resume();
        assert_eq!(first.wait().unwrap(), value(0));
        for (n, slot) in many.iter().enumerate() {
            assert_eq!(slot.wait().unwrap(), value(n % 20));
        }
        // That of the first one, which is in X afterwards, and each other key once: all of these
        // by four calls: of two keys, of four, of eight, and of the rest.
        assert_eq!(y.reads() - before.0, 20);
        assert_eq!(y.calls() - before.1, 4);
        eventually("all is given back", || held(rig) == 0);
        assert_eq!(get(tree, &key(7)), some(&key(7)));
        assert_eq!(y.reads() - before.0, 20, "it was loaded");
    });
}

#[test]
fn i7_a_queue_that_is_full_sends_callers_away() {
    Rig::each(|rig, tree, y| {
        fill(tree, 10);
        let background = start(rig);
        // As many fetchers as may come take a batch each, and stop.
        let pauses: Vec<_> = (0..MOST_FETCHERS)
            .map(|_| y.pause(Point::GetStart))
            .collect();
        let mut waiting = vec![background.fetch(tree, &key(0)).unwrap()];
        while let Some(slot) = background.fetch(tree, &key(waiting.len() % 10)) {
            waiting.push(slot);
            assert!(waiting.len() < 3 * MOST_WAITING);
            assert!(held(rig) <= BUDGET / 64);
        }
        drop(pauses);
        for (n, slot) in waiting.iter().enumerate() {
            assert_eq!(slot.wait().unwrap(), value(n % 10));
        }
        eventually("all is given back", || held(rig) == 0);
        assert!(background.fetch(tree, &key(1)).is_some());
    });
}

#[test]
fn i7_long_keys_wait_within_their_part_of_the_budget() {
    let rig = Rig::with_budget(XKind::Art, 1 << 20);
    let (tree, y) = rig.tree(TREE);
    fill(&tree, 10);
    let background = start(&rig);
    let pause = y.pause(Point::GetStart);
    let first = background.fetch(&tree, &key(0)).unwrap();
    pause.wait_reached();
    let long = [7; 10_000];
    let second = background.fetch(&tree, &long).unwrap();
    assert!(background.fetch(&tree, &long).is_none());
    assert!(background.fetch(&tree, &[7; 20_000]).is_none());
    assert!(held(&rig) <= (1 << 20) / 64);
    pause.resume();
    assert_eq!(first.wait().unwrap(), value(0));
    assert_eq!(second.wait().unwrap(), None);
}

#[test]
fn the_end_of_the_threads_ends_every_wait() {
    Rig::each(|rig, tree, y| {
        fill(tree, 10);
        let background = start(rig);
        let pause = y.pause(Point::GetStart);
        let in_flight = background.fetch(tree, &key(0)).unwrap();
        pause.wait_reached();
        let waiting: Vec<_> = (0..10)
            .map(|n| background.fetch(tree, &key(n)).unwrap())
            .collect();
        std::thread::scope(|s| {
            let ending = s.spawn(|| background.stop());
            // Y hangs still.
            for slot in waiting {
                assert!(matches!(slot.wait(), Err(Error::Closed)));
            }
            assert!(!ending.is_finished());
            pause.resume();
            ending.join().unwrap();
        });
        assert_eq!(in_flight.wait().unwrap(), value(0));
        assert!(background.fetch(tree, &key(1)).is_none());
        assert_eq!(held(rig), 0);
    });
}

#[test]
fn a_read_that_fails_fails_no_other_callers() {
    Rig::each(|rig, tree, y| {
        fill(tree, 10);
        let background = start(rig);
        let pause = y.pause(Point::GetStart);
        let first = background.fetch(tree, &key(0)).unwrap();
        pause.wait_reached();
        let others: Vec<_> = (1..10)
            .map(|n| background.fetch(tree, &key(n)).unwrap())
            .collect();
        // The first one's read and its repetition; then all of the others' at once.
        for _ in 0..3 {
            y.fail(Op::Get, 0, 0, Error::Closed);
        }
        pause.resume();
        assert!(first.wait().is_err());
        for (n, slot) in others.iter().enumerate() {
            assert_eq!(slot.wait().unwrap(), value(n + 1));
        }
    });
}

#[test]
fn i3_a_fetch_does_not_bring_back_what_was_overwritten() {
    Rig::each(|rig, tree, y| {
        put_away(tree, b"k", b"v1");
        let background = start(rig);
        let pause = y.pause(Point::GetEnd);
        let slot = background.fetch(tree, b"k").unwrap();
        pause.wait_reached();
        put(tree, b"k", b"v2");
        clean(tree);
        cut(tree);
        pause.resume();
        let found = slot.wait().unwrap().unwrap();
        assert!([&b"v1"[..], b"v2"].contains(&&*found));
        assert_eq!(get(tree, b"k"), some(b"v2"));
        assert_clean_means_equal(tree);
    });
}

/// A task that owns the threads of the database, as one that holds a handle does.
struct Owner {
    background: Mutex<Option<Arc<Background>>>,
    woken: AtomicUsize,
}

impl Wake for Owner {
    fn wake(self: Arc<Self>) {
        drop(self.background.lock().take());
        self.woken.fetch_add(1, SeqCst);
    }
}

#[test]
fn the_thread_that_answers_may_drop_the_last_owner_of_all_threads() {
    Rig::each(|rig, tree, y| {
        fill(tree, 10);
        let background = start(rig);
        let pause = y.pause(Point::GetStart);
        let slot = background.fetch(tree, &key(3)).unwrap();
        pause.wait_reached();
        let owner = Arc::new(Owner {
            background: Mutex::new(Some(background)),
            woken: AtomicUsize::new(0),
        });
        let waker = Waker::from(owner.clone());
        assert!(slot.poll(&waker).is_pending());
        // A waker that is asked for again replaces itself.
        assert!(slot.poll(&waker).is_pending());
        pause.resume();
        eventually("the thread ends itself", || owner.woken.load(SeqCst) == 1);
        let Poll::Ready(found) = slot.poll(&waker) else {
            panic!("it was woken");
        };
        assert_eq!(found.unwrap(), value(3));
    });
}

struct Panicking;

impl Wake for Panicking {
    fn wake(self: Arc<Self>) {
        panic!("a caller's fault");
    }
}

#[test]
fn a_waker_that_panics_harms_nobody() {
    Rig::each(|rig, tree, y| {
        fill(tree, 10);
        let background = start(rig);
        let pause = y.pause(Point::GetStart);
        let slot = background.fetch(tree, &key(3)).unwrap();
        pause.wait_reached();
        assert!(slot.poll(&Waker::from(Arc::new(Panicking))).is_pending());
        pause.resume();
        assert_eq!(slot.wait().unwrap(), value(3));
        let next = background.fetch(tree, &key(4)).unwrap();
        assert_eq!(next.wait().unwrap(), value(4));
        assert!(rig.shared.poison.check().is_ok());
    });
}

/// No thread is to be had, and the caller who serves the queue instead has found it empty.
#[test]
fn what_comes_when_a_stand_in_leaves_is_read() {
    Rig::each(|rig, tree, _| {
        fill(tree, 2);
        let fetches = Fetches::new(Arc::clone(&rig.shared.budget));
        let push = |n| match fetches.push(tree, &key(n)) {
            Pushed::Queued { slot, start } => (slot, start),
            Pushed::Full => panic!("there is room"),
        };
        assert!(push(0).1);
        let mut stand_in = fetches.enter();
        assert_eq!(stand_in.next_or_leave().map(|batch| batch.len()), Some(1));
        assert!(stand_in.next_or_leave().is_none());
        let (slot, start) = push(1);
        drop(stand_in);
        if start {
            fetcher::stand_in(&fetches, || false);
        }
        assert_eq!(slot.wait().unwrap(), value(1));
    });
}

/// A waker may run anything, and so may ask for one more thread while the threads are joined.
#[test]
fn a_waker_that_wants_a_thread_does_not_keep_the_database_from_ending() {
    struct Asks {
        background: Arc<Background>,
        last: Arc<Slot>,
    }
    impl Wake for Asks {
        fn wake(self: Arc<Self>) {
            // Until the end has begun, which answers what is not served.
            eventually("the queue is closed", || self.last.is_answered());
            std::thread::sleep(Duration::from_millis(20));
            let _ = self.background.build_filters();
        }
    }
    Rig::each(|rig, tree, y| {
        fill(tree, 4);
        let background = start(rig);
        let pause = y.pause(Point::GetStart);
        let first = background.fetch(tree, &key(0)).unwrap();
        pause.wait_reached();
        let last = background.fetch(tree, &key(1)).unwrap();
        let asks = Arc::new(Asks {
            background: background.clone(),
            last,
        });
        assert!(matches!(first.poll(&Waker::from(asks)), Poll::Pending));
        let ending = background.clone();
        let (ended, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            ending.stop();
            ended.send(()).unwrap();
        });
        pause.resume();
        told.recv_timeout(PATIENCE).expect("it ends");
    });
}
