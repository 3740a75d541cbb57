//! Reads by locator: what they cost, and readers beside runs.

use super::*;
use crate::y::{
    GotAt, Locator, Reach,
    conformance::{Entries, Store, put, write},
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    time::{Duration, Instant},
};

const KEYS: u32 = 20_000;

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

fn locator(y: &PagedY, n: u32) -> Locator {
    y.locate(&key(n), Reach::Key).unwrap().at.unwrap().0
}

fn reads(y: &PagedY) -> u64 {
    y.pages.pool.reads.load(Relaxed)
}

fn found(got: GotAt) -> Vec<u8> {
    match got {
        GotAt::Found(value) | GotAt::Moved(value, _) => value.into(),
        GotAt::Stale | GotAt::NotThere => panic!("{got:?}"),
    }
}

/// A value in its leaf costs no page but that; a large one costs no leaf at all.
#[test]
fn a_locator_leads_past_all_other_pages() {
    let store = OnDisk::new(4096, 0);
    let y = store.open();
    let large = vec![7; 20_000];
    let all: Entries = (0..KEYS)
        .map(|n| match n % 100 {
            0 => put(&key(n), &large),
            _ => put(&key(n), &n.to_le_bytes()),
        })
        .collect();
    write(&y, &all).unwrap();
    let (near, far) = (locator(&y, 4321), locator(&y, 8800));
    // Eight frames: none of what the locators were made from is left.
    for n in (1..KEYS).step_by(130) {
        y.get(&key(n)).unwrap();
    }
    let before = reads(&y);
    assert_eq!(found(y.get_at(&key(8800), &far).unwrap()), large);
    assert_eq!(reads(&y), before);
    let got = y.get_at(&key(4321), &near).unwrap();
    assert_eq!(reads(&y), before + 1);
    let GotAt::Moved(value, near) = got else {
        panic!("{got:?}");
    };
    assert_eq!(&value[..], 4321u32.to_le_bytes());
    let got = y.get_at(&key(4321), &near).unwrap();
    assert!(matches!(got, GotAt::Found(_)), "{got:?}");
    assert_eq!(reads(&y), before + 1);
    // Another key of the leaf, by the locator of a place; a large one; and one that is not there.
    let place = y.locate(&key(4321), Reach::Place).unwrap().at.unwrap().0;
    let by_place = |n| y.get_at(&key(n), &place).unwrap();
    assert_eq!(found(by_place(4322)), 4322u32.to_le_bytes());
    assert_eq!(found(by_place(4300)), large);
    assert!(matches!(by_place(1), GotAt::NotThere));
}

/// A run makes stale what it rewrites, and next to nothing else.
#[test]
fn what_a_run_leaves_alone_stays_where_it_is() {
    let store = OnDisk::new(4096, 4 << 20);
    let y = store.open();
    let all: Entries = (0..KEYS).map(|n| put(&key(n), &n.to_le_bytes())).collect();
    write(&y, &all).unwrap();
    let locators: Vec<Locator> = (0..KEYS).map(|n| locator(&y, n)).collect();
    write(&y, &vec![put(&key(77), b"new")]).unwrap();
    let stale = |n: &u32| {
        let got = y.get_at(&key(*n), &locators[*n as usize]).unwrap();
        matches!(got, GotAt::Stale)
    };
    assert!(stale(&77));
    let stale = (0..KEYS).filter(stale).count();
    // Its leaf, and leaves that share a turn with that or with an inner page.
    assert!((2..2000).contains(&stale), "{stale}");
}

/// Reads some keys again and again, each by the locator that it had last.
struct Reader<'y> {
    y: &'y PagedY,
    rng: StdRng,
    known: HashMap<u32, Locator>,
}

impl Reader<'_> {
    fn read_one(&mut self, acknowledged: &[AtomicU64]) {
        let n = self.rng.random_range(0..KEYS / 10) * 10;
        let floor = acknowledged[n as usize].load(SeqCst);
        let got = match self.known.get(&n) {
            Some(locator) => self.y.get_at(&key(n), locator).unwrap(),
            None => GotAt::Stale,
        };
        let value = match got {
            GotAt::Found(value) => value,
            GotAt::Moved(value, locator) => {
                self.known.insert(n, locator);
                value
            }
            GotAt::Stale | GotAt::NotThere => {
                let located = self.y.locate(&key(n), Reach::Key).unwrap();
                match located.at {
                    Some((locator, _)) => self.known.insert(n, locator),
                    None => self.known.remove(&n),
                };
                located.value.expect("never removed")
            }
        };
        let round = u64::from_le_bytes(value[..8].try_into().unwrap());
        assert!(round >= floor, "{n}: {round} after {floor}");
        assert!(value[8..].iter().all(|b| *b == n as u8));
    }
}

/// Four readers, each with locators of its own, beside a writer, commits and a pool that changes.
#[test]
fn readers_by_locator_beside_runs_and_commits() {
    const TIME: Duration = Duration::from_secs(4);
    let store = OnDisk::new(4096, 512 << 10);
    let y = store.open();
    let value = |n: u32, round: u64| {
        let mut value = vec![n as u8; if n.is_multiple_of(50) { 5_000 } else { 60 }];
        value[..8].copy_from_slice(&round.to_le_bytes());
        value
    };
    let all: Entries = (0..KEYS).map(|n| put(&key(n), &value(n, 0))).collect();
    write(&y, &all).unwrap();
    let acknowledged: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let (stop, by_locator) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (y, stop, acknowledged, by_locator) = (&y, &stop, &acknowledged, &by_locator);
            scope.spawn(move || {
                let mut reader = Reader {
                    y,
                    rng: StdRng::seed_from_u64(seed),
                    known: HashMap::new(),
                };
                while !stop.load(SeqCst) {
                    reader.read_one(acknowledged);
                    by_locator.fetch_add(1, Relaxed);
                }
            });
        }
        scope.spawn(|| {
            let mut step = 0;
            while !stop.load(SeqCst) {
                y.maintain().unwrap();
                y.make_durable().unwrap();
                step += 1;
                store.shared.set_memory((step % 3) * (400 << 10));
            }
        });
        let mut rng = StdRng::seed_from_u64(99);
        let start = Instant::now();
        let mut round = 0;
        while start.elapsed() < TIME {
            round += 1;
            let from = rng.random_range(0..KEYS - 400);
            let keys: Vec<u32> = (from..from + 400)
                .step_by(rng.random_range(1..20))
                .collect();
            let run = keys.iter().map(|n| put(&key(*n), &value(*n, round)));
            write(&y, &run.collect()).unwrap();
            for n in keys {
                acknowledged[n as usize].store(round, SeqCst);
            }
        }
        stop.store(true, SeqCst);
    });
    assert!(by_locator.load(SeqCst) > 0);
    assert_eq!(y.verify().unwrap(), u64::from(KEYS));
}
