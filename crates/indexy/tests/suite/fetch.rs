//! `Tree::try_get`: tickets for what is on disk, while others write, release, drop and close.

use crate::{
    pairs,
    places::fast_dir,
    support::{MIB, Random, StopAtDrop, assert_sound, open},
};
use indexy::{Error, Fetch, IndexXKind, Options, Ticket, Tree, Value};
use std::{
    collections::VecDeque,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(60);

fn key(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

fn fill(tree: &Tree, keys: u64) {
    for n in 0..keys {
        tree.insert(key(n), [n as u8; 100]).unwrap();
    }
    tree.release::<&[u8]>(..).unwrap();
}

fn later(fetch: Fetch) -> Option<Ticket> {
    match fetch {
        Fetch::Later(ticket) => Some(ticket),
        Fetch::Now(_) => None,
    }
}

#[test]
fn what_is_in_memory_is_there_now_and_the_rest_later() {
    for pair in pairs::chosen(0, 2) {
        let dir = fast_dir();
        let db = open(dir.path(), &pairs::options(pair, Options::new(8 * MIB)));
        let tree = db.tree("t").unwrap();
        tree.insert(b"hot", b"1").unwrap();
        if !pairs::keeps_nothing(pair) {
            assert!(matches!(tree.try_get(b"hot").unwrap(), Fetch::Now(Some(v)) if v == b"1"));
            assert!(matches!(tree.try_get(b"none").unwrap(), Fetch::Now(None)));
        }
        fill(&tree, 5000);
        let before = db.stats();
        let tickets: Vec<_> = (0..5100).map(|n| tree.try_get(key(n)).unwrap()).collect();
        for (n, fetch) in tickets.into_iter().enumerate() {
            let expected = (n < 5000).then(|| Value::new(&[n as u8; 100]));
            assert_eq!(fetch.wait().unwrap(), expected, "{n}");
        }
        let after = db.stats();
        // The write buffer beside a radix cache has all of them.
        if !matches!(pair.0, IndexXKind::Radix | IndexXKind::RadixLeaves) {
            assert_eq!(after.misses - before.misses, 5100);
        }
        assert!(after.y_reads - before.y_reads <= 5100);
        assert!(matches!(
            tree.try_get([0; 65_535]),
            Err(Error::KeyTooLong { .. })
        ));
    }
}

#[test]
fn a_dropped_ticket_brings_its_key_into_memory() {
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(8 * MIB));
    let tree = db.tree("t").unwrap();
    fill(&tree, 100);
    drop(later(tree.try_get(key(7)).unwrap()).expect("it was released"));
    let limit = Instant::now() + PATIENCE;
    loop {
        match tree.try_get(key(7)).unwrap() {
            Fetch::Now(value) => break assert_eq!(value.unwrap(), [7; 100]),
            Fetch::Later(_) => assert!(Instant::now() < limit),
        }
    }
}

/// Each key has a number that only grows. A ticket's value is at least what was acknowledged when
/// it was asked for, and at most what was begun when it was answered.
#[test]
fn i3_tickets_beside_writers_and_releases() {
    const KEYS: u64 = 20_000;
    for pair in pairs::chosen(1, 2) {
        let dir = fast_dir();
        let db = open(dir.path(), &pairs::options(pair, Options::new(3 * MIB)));
        let tree = db.tree("t").unwrap();
        let value = |n: u64| [&n.to_be_bytes()[..], &[3; 200]].concat();
        (0..KEYS).for_each(|n| tree.insert(key(n), value(0)).unwrap());
        let [begun, acknowledged] =
            [(); 2].map(|()| (0..KEYS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
        let done = AtomicBool::new(false);
        std::thread::scope(|s| {
            s.spawn(|| {
                let mut random = Random(1);
                while !done.load(SeqCst) {
                    let n = random.below(KEYS) as usize;
                    let next = begun[n].load(SeqCst) + 1;
                    begun[n].store(next, SeqCst);
                    tree.insert(key(n as u64), value(next)).unwrap();
                    acknowledged[n].store(next, SeqCst);
                    if random.one_in(3000) {
                        tree.release::<&[u8]>(..).unwrap();
                    }
                }
            });
            let readers: Vec<_> = (0..3)
                .map(|seed| {
                    let (begun, acknowledged, tree) = (&begun, &acknowledged, &tree);
                    s.spawn(move || {
                        let mut random = Random(seed + 2);
                        let mut under_way = VecDeque::new();
                        for _ in 0..8000 {
                            let n = random.below(KEYS) as usize;
                            let least = acknowledged[n].load(SeqCst);
                            under_way.push_back((n, least, tree.try_get(key(n as u64)).unwrap()));
                            // Some are given up.
                            if random.one_in(10) {
                                under_way.pop_back();
                            }
                            if under_way.len() > 64 {
                                let (n, least, fetch) = under_way.pop_front().unwrap();
                                let found = fetch.wait().unwrap().unwrap();
                                let number = u64::from_be_bytes(found[..8].try_into().unwrap());
                                let most = begun[n].load(SeqCst);
                                assert!(
                                    (least..=most).contains(&number),
                                    "{least} {number} {most}"
                                );
                            }
                        }
                    })
                })
                .collect();
            let stop = StopAtDrop(&done);
            readers.into_iter().for_each(|r| r.join().unwrap());
            drop(stop);
        });
        assert!(db.stats().memory_used_bytes <= 3 * MIB as u64);
        assert!(db.stats().y_reads > 2000, "{}", db.stats().y_reads);
        assert_sound(&db);
    }
}

#[test]
fn tickets_of_a_tree_that_is_dropped_and_of_a_database_that_is_closed_are_answered() {
    for close in [false, true] {
        let dir = fast_dir();
        let db = open(dir.path(), &Options::new(8 * MIB));
        let tree = db.tree("t").unwrap();
        fill(&tree, 2000);
        let ended = AtomicBool::new(false);
        std::thread::scope(|s| {
            let asking = s.spawn(|| {
                let mut tickets = Vec::new();
                for n in (0..2000).cycle() {
                    match tree.try_get(key(n)) {
                        Ok(fetch) => tickets.push(fetch),
                        Err(error) => {
                            assert!(is_end(&error, close), "{error}");
                            break;
                        }
                    }
                    // In memory all is answered: some are to be under way when it ends.
                    if n == 1999 {
                        let _ = tree.release::<&[u8]>(..);
                    }
                    if tickets.len() > 500 {
                        tickets.drain(..).for_each(|fetch| check(fetch, close));
                    }
                }
                assert!(ended.load(SeqCst));
                tickets.into_iter().for_each(|fetch| check(fetch, close));
            });
            std::thread::sleep(Duration::from_millis(30));
            ended.store(true, SeqCst);
            match close {
                true => db.close().unwrap(),
                false => db.drop_tree("t").map(|_| ()).unwrap(),
            }
            asking.join().unwrap();
        });
    }
}

fn is_end(error: &Error, close: bool) -> bool {
    match close {
        true => matches!(error, Error::Closed),
        false => matches!(error, Error::TreeDropped { .. }),
    }
}

fn check(fetch: Fetch, close: bool) {
    match fetch.wait() {
        Ok(value) => assert_eq!(value.unwrap().len(), 100),
        Err(error) => assert!(is_end(&error, close), "{error}"),
    }
}

#[test]
fn a_ticket_holds_the_database_open_and_outlives_its_tree() {
    let dir = fast_dir();
    let ticket = {
        let db = open(dir.path(), &Options::new(8 * MIB));
        let tree = db.tree("t").unwrap();
        fill(&tree, 100);
        later(tree.try_get(key(9)).unwrap()).expect("it was released")
    };
    assert!(matches!(
        indexy::Db::open(dir.path(), Options::new(8 * MIB)),
        Err(Error::Locked { .. })
    ));
    assert_eq!(ticket.wait().unwrap().unwrap(), [9; 100]);
    let db = open(dir.path(), &Options::new(8 * MIB));
    assert_eq!(db.tree("t").unwrap().len().unwrap(), 100);
}
