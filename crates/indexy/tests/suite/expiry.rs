//! Trees whose entries expire: edges, crashes by reopening, snapshots, transactions, and the space
//! that comes back. What every call says is in `tests/expiry_model.rs`.
//!
//! `INDEXY_EXPIRY_MS` sets for how long threads run.

use crate::{
    pairs,
    places::fast_dir,
    support::{Random, StopAtDrop, assert_sound, open, setting},
};
use indexy::{
    Change, Clock, Db, Error, Expires, Key, MergeOperator, Options, Tree, TreeOptions, Ttl,
    error::ErrorKind,
};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

const SECOND: Duration = Duration::from_secs(1);

/// Milliseconds since 1970.
#[derive(Debug)]
struct ByHand(AtomicU64);

impl ByHand {
    fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(1_000_000)))
    }

    fn pass(&self, ms: u64) {
        self.0.fetch_add(ms, SeqCst);
    }

    fn read(&self) -> u64 {
        self.0.load(SeqCst)
    }
}

impl Clock for ByHand {
    fn now(&self) -> SystemTime {
        moment(self.read())
    }
}

fn moment(at: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(at)
}

fn expiring(db: &Db) -> Tree {
    db.tree_with("t", TreeOptions::new().ttl(Ttl::PerEntry))
        .unwrap()
}

fn options(clock: &Arc<ByHand>) -> Options {
    Options::new(2 << 20).clock(clock.clone())
}

/// A new database with each pair of this file's share.
fn with_pairs(number: usize, test: impl Fn(&Path, &Options, &Arc<ByHand>)) {
    for pair in pairs::chosen(number, 4) {
        println!("{}", pairs::name(pair));
        let (dir, clock) = (fast_dir(), ByHand::new());
        test(dir.path(), &pairs::options(pair, options(&clock)), &clock);
    }
}

#[test]
fn mistakes_are_told_and_nothing_is_written() {
    let (dir, clock) = (fast_dir(), ByHand::new());
    let db = open(dir.path(), &options(&clock));
    let (plain, tree) = (db.tree("plain").unwrap(), expiring(&db));
    let no_expiry = |error: Error| {
        assert!(
            matches!(&error, Error::NoExpiry { name } if name == "plain"),
            "{error}"
        );
        assert_eq!(error.kind(), ErrorKind::Caller);
    };
    no_expiry(plain.insert_with_ttl("k", "v", SECOND).unwrap_err());
    no_expiry(plain.insert_until("k", "v", Expires::Never).unwrap_err());
    no_expiry(plain.expires_at("k").unwrap_err());
    let zero = tree.insert_with_ttl("k", "v", Duration::ZERO).unwrap_err();
    assert!(matches!(zero, Error::ZeroTtl));
    let mut batch = db.batch();
    batch.insert(&tree, "other", "v");
    batch.insert_with_ttl(&plain, "k", "v", SECOND);
    no_expiry(batch.commit().unwrap_err());
    let mut tx = db.begin().unwrap();
    no_expiry(tx.insert_with_ttl(&plain, "k", "v", SECOND).unwrap_err());
    assert!(matches!(
        tx.insert_with_ttl(&tree, "k", "v", Duration::ZERO),
        Err(Error::ZeroTtl)
    ));
    assert!(tx.is_empty() && plain.is_empty().unwrap() && tree.is_empty().unwrap());

    let ttl = |ttl| TreeOptions::new().ttl(ttl);
    let refused = db.tree_with("plain", ttl(Ttl::PerEntry)).unwrap_err();
    assert!(matches!(refused, Error::TreeMismatch { .. }), "{refused}");
    for options in [
        ttl(Ttl::Default(Duration::ZERO)),
        ttl(Ttl::PerEntry).resident(true),
    ] {
        let refused = db.tree_with("new", options).unwrap_err();
        assert!(
            matches!(refused, Error::InvalidOption { option: "ttl", .. }),
            "{refused}"
        );
    }
    assert_eq!(db.tree_names(), ["plain", "t"]);
}

#[test]
fn long_lives_and_short_ones_are_defined() {
    let (dir, clock) = (fast_dir(), ByHand::new());
    let tree = expiring(&open(dir.path(), &options(&clock)));
    tree.insert_with_ttl("ever", "v", Duration::MAX).unwrap();
    tree.insert_with_ttl("short", "v", Duration::from_nanos(1))
        .unwrap();
    tree.insert_until("past", "v", Expires::At(moment(5)))
        .unwrap();
    tree.insert_until("before 1970", "v", Expires::At(UNIX_EPOCH - SECOND))
        .unwrap();
    assert_eq!(tree.expires_at("ever").unwrap(), Some(Expires::Never));
    let next = Expires::At(moment(clock.read() + 1));
    assert_eq!(tree.expires_at("short").unwrap(), Some(next));
    assert_eq!(tree.len().unwrap(), 2);
    clock.pass(1);
    assert_eq!(
        tree.iter().map(|e| e.unwrap().0).collect::<Vec<_>>(),
        [Key::from("ever")]
    );
}

#[test]
fn the_default_is_remembered_and_may_change() {
    let (dir, clock) = (fast_dir(), ByHand::new());
    let options = options(&clock);
    let db = open(dir.path(), &options);
    let ttl = |seconds| TreeOptions::new().ttl(Ttl::Default(SECOND * seconds));
    let tree = db.tree_with("t", ttl(1)).unwrap();
    tree.insert("a", "v").unwrap();
    let same = db.tree_with("t", ttl(10)).unwrap();
    tree.insert("b", "v").unwrap();
    assert_eq!(tree.ttl(), same.ttl());
    drop((tree, same, db));
    let db = open(dir.path(), &options);
    let tree = db.tree("t").unwrap();
    assert_eq!(tree.ttl(), Some(Ttl::Default(SECOND * 10)));
    clock.pass(1000);
    assert_eq!(tree.len().unwrap(), 1);
    tree.insert("c", "v").unwrap();
    clock.pass(9000);
    assert_eq!(
        tree.iter().map(|e| e.unwrap().0).collect::<Vec<_>>(),
        [Key::from("c")]
    );
    drop((tree, db));
    let db = open(dir.path(), &options.read_only(true));
    assert!(matches!(db.tree_with("t", ttl(7)), Err(Error::ReadOnly)));
    let tree = db.tree("t").unwrap();
    assert!(tree.contains_key("c").unwrap() && !tree.contains_key("b").unwrap());
}

/// An older version that lives on must not appear where a newer one has expired, wherever both are.
#[test]
fn what_expires_does_not_bring_back_what_it_replaced() {
    with_pairs(0, |path, options, clock| {
        let db = open(path, options);
        let tree = expiring(&db);
        let all = || (0..200u32).map(u32::to_be_bytes);
        let gone = |tree: &Tree, at: &str| {
            for key in all() {
                assert_eq!(tree.get(key).unwrap(), None, "{at}");
            }
            assert!(tree.is_empty().unwrap() && tree.len().unwrap() == 0, "{at}");
        };
        // The new version reaches the disk, or dies in memory; Y has the old one in both cases.
        for reaches_disk in [true, false] {
            all().for_each(|key| tree.insert(key, "old").unwrap());
            db.flush().unwrap();
            tree.release::<&[u8]>(..).unwrap();
            all().for_each(|key| tree.insert_with_ttl(key, "new", SECOND).unwrap());
            if reaches_disk {
                db.flush().unwrap();
            }
            clock.pass(1000);
            gone(&tree, "at once");
            db.flush().unwrap();
            gone(&tree, "flushed");
            tree.release::<&[u8]>(..).unwrap();
            gone(&tree, "released");
            assert_sound(&db);
            tree.compact::<&[u8]>(..).unwrap();
            gone(&tree, "compacted");
            assert_eq!(tree.stats().y_keys, 0);
        }
        drop((tree, db));
        // A clock that goes back brings nothing back that was dropped.
        clock.0.store(5, SeqCst);
        let db = open(path, options);
        gone(&expiring(&db), "reopened");
        assert_sound(&db);
    });
}

/// Long stretches go as ranges: what lives between two of them stays, wherever it is.
#[test]
fn a_sweep_takes_nothing_that_lives() {
    with_pairs(2, |path, options, clock| {
        let db = open(path, options);
        let tree = expiring(&db);
        let key = |n: u32| n.to_be_bytes();
        let lives = |n: u32| n % 700 == 3 || n % 2000 > 1995;
        for n in 0..5000 {
            match lives(n) {
                true => tree.insert(key(n), "lives").unwrap(),
                false => tree.insert_with_ttl(key(n), "dies", SECOND).unwrap(),
            }
        }
        db.flush().unwrap();
        tree.release::<&[u8]>(..).unwrap();
        clock.pass(1000);
        // In memory alone, above what is about to go.
        let written = [10, 1400, 2500];
        for n in written {
            tree.insert(key(n), "lives").unwrap();
        }
        let expected: Vec<u32> = (0..5000)
            .filter(|n| lives(*n) || written.contains(n))
            .collect();
        let check = || {
            let found = tree.iter().map(|e| e.unwrap().0);
            let expected = expected.iter().map(|n| Key::new(&key(*n)));
            assert!(found.eq(expected));
        };
        check();
        tree.compact::<&[u8]>(..).unwrap();
        check();
        tree.release::<&[u8]>(..).unwrap();
        check();
        assert_eq!(tree.stats().y_keys, expected.len() as u64);
        assert_sound(&db);
    });
}

/// Nobody writes, nobody reads, and no default says when: what expired while the database was
/// closed leaves the disk a while after the open.
#[test]
fn what_expired_while_the_database_was_closed_is_swept() {
    with_pairs(3, |path, options, clock| {
        {
            let db = open(path, options);
            let tree = expiring(&db);
            for n in 0..500u32 {
                let key = n.to_be_bytes();
                match n % 100 {
                    0 => tree.insert(key, "lives").unwrap(),
                    _ => tree.insert_with_ttl(key, "dies", SECOND).unwrap(),
                }
            }
            db.close().unwrap();
        }
        clock.pass(24 * 3_600_000);
        let db = open(path, options);
        let tree = expiring(&db);
        assert_eq!(tree.stats().y_keys, 500);
        clock.pass(10 * 60_000);
        let began = Instant::now();
        while tree.stats().y_keys > 5 {
            assert!(began.elapsed() < Duration::from_secs(60));
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(tree.len().unwrap(), 5);
    });
}

#[test]
fn a_clock_that_goes_back_stands_still() {
    let (dir, clock) = (fast_dir(), ByHand::new());
    let db = open(dir.path(), &options(&clock));
    let tree = expiring(&db);
    tree.insert_with_ttl("k", "v", SECOND).unwrap();
    clock.pass(1000);
    assert!(!tree.contains_key("k").unwrap());
    clock.0.store(0, SeqCst);
    assert!(!tree.contains_key("k").unwrap());
    tree.insert_with_ttl("k", "v", SECOND).unwrap();
    assert!(tree.contains_key("k").unwrap());
    assert!(db.snapshot().unwrap().contains_key(&tree, "k").unwrap());
}

/// A snapshot and a transaction see what they began with, and what they see stays on disk so long.
#[test]
fn i10_a_snapshot_sees_what_expires_beside_it() {
    with_pairs(1, |path, options, clock| {
        let db = open(path, options);
        let tree = expiring(&db);
        let value = vec![7; 100];
        let insert = |n: u32| {
            tree.insert_with_ttl(n.to_be_bytes(), &value, SECOND)
                .unwrap()
        };
        (0..2000).for_each(insert);
        db.flush().unwrap();
        tree.release::<&[u8]>(..).unwrap();
        (2000..3000).for_each(insert);
        let snapshot = db.snapshot().unwrap();
        let tx = db.begin().unwrap();
        clock.pass(1000);
        let later = db.snapshot().unwrap();
        for _ in 0..2 {
            assert!(tree.is_empty().unwrap() && later.is_empty(&tree).unwrap());
            assert_eq!(snapshot.len(&tree).unwrap(), 3000);
            assert_eq!(tx.iter(&tree).count(), 3000);
            for n in [0, 1999, 2000, 2999u32] {
                assert!(snapshot.contains_key(&tree, n.to_be_bytes()).unwrap());
                assert!(tx.contains_key(&tree, n.to_be_bytes()).unwrap());
            }
            // Everything that drops what has expired is called in vain.
            db.flush().unwrap();
            tree.release::<&[u8]>(..).unwrap();
            assert!(tree.first().unwrap().is_none() && tree.pop_last().unwrap().is_none());
            tree.compact::<&[u8]>(..).unwrap();
            assert_eq!(tree.stats().y_keys, 3000);
        }
        // What is written and removed beside it, too.
        tree.insert(5u32.to_be_bytes(), "new").unwrap();
        tree.remove_range(..100u32.to_be_bytes()).unwrap();
        assert_eq!(
            snapshot.get(&tree, 5u32.to_be_bytes()).unwrap().unwrap(),
            value
        );
        assert_eq!(snapshot.len(&tree).unwrap(), 3000);
        drop((snapshot, tx));
        tree.compact::<&[u8]>(..).unwrap();
        assert_eq!(tree.stats().y_keys, 0);
        assert!(later.is_empty(&tree).unwrap());
        assert_sound(&db);
    });
}

/// Without a conflict, `y` could depend on a lease that the other transaction saw to have ended.
#[test]
fn what_a_transaction_read_and_has_expired_is_a_conflict() {
    let (dir, clock) = (fast_dir(), ByHand::new());
    let db = open(dir.path(), &options(&clock));
    let tree = expiring(&db);
    let lease = || {
        tree.insert_with_ttl("lease", "mine", SECOND).unwrap();
        db.begin().unwrap()
    };
    let conflicts = |tx: indexy::Transaction, expected: bool| {
        let committed = tx.commit();
        let conflict = matches!(&committed, Err(Error::Conflict { key, .. }) if *key == b"lease");
        assert_eq!(conflict, expected, "{committed:?}");
        assert_eq!(committed.is_err(), expected, "{committed:?}");
    };
    type Read = fn(&indexy::Transaction, &Tree);
    let reads: [(Read, bool); 6] = [
        (
            |tx, tree| assert!(tx.contains_key(tree, "lease").unwrap()),
            true,
        ),
        (
            |tx, tree| assert!(tx.multi_get(tree, ["lease"]).unwrap()[0].is_some()),
            true,
        ),
        (
            |tx, tree| assert!(tx.range(tree, "l"..).next().is_some()),
            true,
        ),
        (
            |tx, tree| assert!(tx.get_for_update(tree, "lease").unwrap().is_some()),
            true,
        ),
        (
            |tx, tree| assert!(tx.get_untracked(tree, "lease").unwrap().is_some()),
            false,
        ),
        (
            |tx, tree| assert!(tx.get(tree, "absent").unwrap().is_none()),
            false,
        ),
    ];
    for (read, expected) in reads {
        let mut tx = lease();
        read(&tx, &tree);
        tx.insert(&tree, "y", "by the lease").unwrap();
        clock.pass(999);
        conflicts(tx, false);
        let mut tx = lease();
        read(&tx, &tree);
        tx.insert(&tree, "y", "by the lease").unwrap();
        clock.pass(1000);
        conflicts(tx, expected);
    }
    // Snapshot isolation depends on what is written, and on what was read for update.
    for for_update in [false, true] {
        let mut tx = lease();
        tx.isolation(indexy::Isolation::Snapshot);
        match for_update {
            true => drop(tx.get_for_update(&tree, "lease").unwrap()),
            false => drop(tx.get(&tree, "lease").unwrap()),
        }
        tx.insert(&tree, "y", "").unwrap();
        clock.pass(1000);
        conflicts(tx, for_update);
    }
    // One that only reads always commits.
    let tx = lease();
    assert!(tx.contains_key(&tree, "lease").unwrap());
    clock.pass(1000);
    conflicts(tx, false);
}

#[test]
fn the_change_feed_tells_the_moment_and_not_the_end() {
    let (dir, clock) = (fast_dir(), ByHand::new());
    let db = open(dir.path(), &options(&clock));
    let tree = expiring(&db);
    let start = db.newest_change().unwrap();
    tree.insert("never", "v").unwrap();
    let mut batch = db.batch();
    batch.insert_with_ttl(&tree, "soon", "v", SECOND);
    batch.commit().unwrap();
    let expires = Expires::At(moment(clock.read() + 1000));
    clock.pass(2000);
    assert!(!tree.contains_key("soon").unwrap());
    db.flush().unwrap();
    let mut changes = db.changes(start).unwrap();
    let (tree, value) = ("t", &b"v"[..]);
    let never = Change::Insert {
        tree,
        key: b"never",
        value,
    };
    let soon = Change::InsertUntil {
        tree,
        key: b"soon",
        value,
        expires,
    };
    for expected in [never, soon] {
        let set = changes.next().unwrap().unwrap();
        assert_eq!(set.iter().collect::<Vec<_>>(), [expected]);
    }
    assert!(changes.next().is_none());
}

/// A queue, a hundred thousand entries of which have expired: they are walked over once.
#[test]
fn what_has_expired_in_front_is_passed_once() {
    with_pairs(2, |path, options, clock| {
        let db = open(path, options);
        db.set_memory_budget(64 << 20).unwrap();
        let tree = expiring(&db);
        for n in 0..100_000u32 {
            tree.insert_with_ttl(n.to_be_bytes(), "job", SECOND)
                .unwrap();
        }
        for cold in [false, true] {
            let live = 200_000u32 + u32::from(cold);
            tree.insert(live.to_be_bytes(), "job").unwrap();
            if cold {
                tree.release::<&[u8]>(..).unwrap();
            }
            clock.pass(1000);
            let timed = || {
                let from = Instant::now();
                assert!(tree.first().unwrap().is_some());
                from.elapsed()
            };
            let first = timed();
            let later = (0..20).map(|_| timed()).min().unwrap();
            println!("{first:?}, then {later:?}");
            // A walk over that many takes hundreds of microseconds.
            let once = (first / 20).max(Duration::from_micros(20));
            assert!(later < once, "{later:?} after {first:?}");
            assert_eq!(
                tree.pop_first().unwrap().unwrap().0,
                200_000u32.to_be_bytes()
            );
            if !cold {
                tree.insert(200_000u32.to_be_bytes(), "again").unwrap();
                // The stretch lives again where it is written.
                tree.insert(7u32.to_be_bytes(), "again").unwrap();
                assert_eq!(tree.pop_first().unwrap().unwrap().0, 7u32.to_be_bytes());
            }
        }
    });
}

/// Entries in order of time, each of which lives for a second: what they take on disk is bounded,
/// without a call of anybody.
#[test]
fn a_time_series_takes_the_space_of_what_lives() {
    with_pairs(3, |path, options, clock| {
        let db = open(path, options);
        let tree = db
            .tree_with("t", TreeOptions::new().ttl(Ttl::Default(SECOND)))
            .unwrap();
        let value = vec![0xa5; 200];
        let (mut largest, mut n) = (0, 0u64);
        // 1 MiB lives at a time, 24 are written.
        for round in 0..96 {
            for _ in 0..1200 {
                tree.insert(n.to_be_bytes(), &value).unwrap();
                n += 1;
            }
            clock.pass(250);
            if round % 4 == 0 {
                db.flush().unwrap();
                let until = Instant::now() + Duration::from_secs(20);
                while tree.stats().y_bytes_on_disk > 8 << 20 && Instant::now() < until {
                    thread::sleep(Duration::from_millis(20));
                }
                largest = largest.max(tree.stats().y_bytes_on_disk);
            }
        }
        println!("{largest} bytes at most, {:?}", tree.stats());
        assert!(largest <= 8 << 20, "{largest}");
        assert_eq!(tree.len().unwrap(), 3600);
        clock.pass(1000);
        assert!(tree.is_empty().unwrap());
        // Time alone brings the rest back, too.
        db.flush().unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while tree.stats().y_keys > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(20));
        }
        let stats = tree.stats();
        assert_eq!(stats.y_keys, 0, "{stats:?}");
        assert_sound(&db);
    });
}

/// An entry that was read after it was `began`: its value says when it expires.
fn check(key: &[u8], value: &[u8], began: u64) {
    match value.try_into() {
        Ok(expires) => assert!(u64::from_be_bytes(expires) > began, "{key:?}"),
        Err(_) => assert_eq!(value, b"for ever"),
    }
}

fn scan_while_time_moves(db: &Db, tree: &Tree, clock: &ByHand, of_snapshot: bool) {
    let began = clock.read();
    let snapshot = of_snapshot.then(|| db.snapshot().unwrap());
    let range = match &snapshot {
        Some(snapshot) => snapshot.iter(tree),
        None => tree.iter(),
    };
    let mut lasting = 0;
    for entry in range {
        let (key, value) = entry.unwrap();
        check(&key, &value, began);
        lasting += u64::from(key[7] % 2);
    }
    assert_eq!(lasting, 2000);
    if let Some(snapshot) = snapshot {
        let len = || snapshot.len(tree).unwrap();
        assert_eq!(len(), len());
    }
}

/// Keys that never expire among keys that do, while time moves, memory is released and trees are
/// swept: the former are always there, the latter never after their moment.
#[test]
fn readers_and_writers_while_time_moves() {
    let ms = setting("INDEXY_EXPIRY_MS", 700);
    with_pairs(0, |path, options, clock| {
        let db = open(path, options);
        let tree = expiring(&db);
        let lasting = |n: u64| (n * 2 + 1).to_be_bytes();
        for n in 0..2000 {
            tree.insert(lasting(n), "for ever").unwrap();
        }
        let stop = AtomicBool::new(false);
        let run = |body: &dyn Fn(&mut Random)| {
            let _stop = StopAtDrop(&stop);
            let mut random = Random(7);
            let until = Instant::now() + Duration::from_millis(ms);
            while Instant::now() < until && !stop.load(SeqCst) {
                body(&mut random);
            }
        };
        thread::scope(|s| {
            s.spawn(|| {
                run(&|_| {
                    clock.pass(1);
                    thread::sleep(Duration::from_micros(300));
                })
            });
            s.spawn(|| {
                run(&|random| {
                    let expires = clock.read() + random.below(60);
                    let key = (random.below(20_000) * 2).to_be_bytes();
                    let value = expires.to_be_bytes();
                    tree.insert_until(key, value, Expires::At(moment(expires)))
                        .unwrap();
                })
            });
            s.spawn(|| {
                run(&|random| {
                    let (key, began) = ((random.below(20_000) * 2).to_be_bytes(), clock.read());
                    if let Some(value) = tree.get(key).unwrap() {
                        check(&key, &value, began);
                    }
                    let key = lasting(random.below(2000));
                    assert_eq!(tree.get(key).unwrap().unwrap(), b"for ever");
                })
            });
            s.spawn(|| {
                run(&|random| {
                    let snapshot = random.one_in(4);
                    scan_while_time_moves(&db, &tree, clock, snapshot);
                })
            });
            s.spawn(|| {
                run(&|random| match random.below(3) {
                    0 => drop(tree.release::<&[u8]>(..).unwrap()),
                    1 => drop(tree.compact::<&[u8]>(..).unwrap()),
                    _ => db.flush().unwrap(),
                })
            });
        });
        clock.pass(100);
        assert_eq!(tree.len().unwrap(), 2000);
        tree.compact::<&[u8]>(..).unwrap();
        assert_eq!(tree.len().unwrap(), 2000);
        assert_sound(&db);
    });
}

#[test]
fn copies_keep_the_moments() {
    let (dir, clock) = (fast_dir(), ByHand::new());
    let db = open(dir.path(), &options(&clock));
    let tree = db
        .tree_with("t", TreeOptions::new().ttl(Ttl::Default(SECOND * 9)))
        .unwrap();
    tree.insert_with_ttl("soon", "v", SECOND).unwrap();
    tree.insert_until("never", "v", Expires::Never).unwrap();
    db.flush().unwrap();
    tree.insert("default", "v").unwrap();
    let moments = |tree: &Tree| {
        ["soon", "never", "default", "absent"].map(|key| tree.expires_at(key).unwrap())
    };
    let expected = moments(&tree);
    let copies = fast_dir();
    let (checkpoint, salvaged) = (copies.path().join("a"), copies.path().join("b"));
    db.checkpoint(&checkpoint).unwrap();
    drop((tree, db));
    let doubtful = indexy::Doubtful::Take;
    Db::salvage(dir.path(), &salvaged, options(&clock), doubtful).unwrap();
    for copy in [checkpoint, salvaged] {
        let db = open(&copy, &options(&clock));
        let tree = db.tree("t").unwrap();
        assert_eq!(moments(&tree), expected);
        assert_eq!(tree.ttl(), Some(Ttl::Default(SECOND * 9)));
    }
}

/// `load_sorted` gives the default, and takes a range of what has expired for empty.
#[test]
fn a_load_goes_over_what_has_expired() {
    with_pairs(1, |path, options, clock| {
        let db = open(path, options);
        let tree = db
            .tree_with("t", TreeOptions::new().ttl(Ttl::Default(SECOND)))
            .unwrap();
        let entries = || (0..100u32).map(|n| (n.to_be_bytes(), "v"));
        match tree.load_sorted(entries()) {
            Err(Error::Unsupported { .. }) => return,
            loaded => assert_eq!(loaded.unwrap(), 100),
        }
        tree.insert(7u32.to_be_bytes(), "in memory").unwrap();
        assert!(matches!(
            tree.load_sorted(entries()),
            Err(Error::RangeNotEmpty { .. })
        ));
        clock.pass(1000);
        assert!(tree.is_empty().unwrap());
        assert_eq!(tree.load_sorted(entries()).unwrap(), 100);
        drop((tree, db));
        let db = open(path, options);
        let tree = db.tree("t").unwrap();
        assert_eq!(tree.len().unwrap(), 100);
        assert_eq!(tree.get(7u32.to_be_bytes()).unwrap().unwrap(), b"v");
        clock.pass(1000);
        assert!(tree.is_empty().unwrap());
        if !pairs::keeps_nothing(tree.pair()) {
            tree.release::<&[u8]>(..).unwrap();
        }
        assert_sound(&db);
    });
}

#[test]
fn entries_that_expire_are_not_merged() {
    let dir = fast_dir();
    let db = Db::open(dir.path(), Options::new(4 << 20)).unwrap();
    let merging = || TreeOptions::new().merge_operator(MergeOperator::AddU64);
    let refused = |result: indexy::Result<Tree>| {
        let Err(error) = result else {
            panic!("a tree has both");
        };
        assert!(
            matches!(
                error,
                Error::InvalidOption {
                    option: "merge_operator",
                    ..
                }
            ),
            "{error:?}"
        );
    };
    refused(db.tree_with("both", merging().ttl(Ttl::PerEntry)));
    assert!(db.tree_names().is_empty());
    db.tree_with("sessions", TreeOptions::new().ttl(Ttl::PerEntry))
        .unwrap();
    refused(db.tree_with("sessions", merging()));
}

/// A batch brings entries with their moments into a transaction, which reads what it writes.
#[test]
fn a_transaction_does_not_see_what_it_wrote_as_expired() {
    let dir = fast_dir();
    let db = Db::open(dir.path(), Options::new(4 << 20)).unwrap();
    let tree = expiring(&db);
    tree.insert("gone", "old").unwrap();
    let mut batch = db.batch();
    batch.insert_until(&tree, "gone", "new", Expires::At(SystemTime::UNIX_EPOCH));
    batch.insert_until(&tree, "there", "new", Expires::Never);
    let mut tx = db.begin().unwrap();
    tx.append(batch).unwrap();
    assert_eq!(tx.get(&tree, "gone").unwrap(), None);
    let both = tx.multi_get(&tree, ["gone", "there"]).unwrap();
    assert_eq!(both, [None, Some("new".into())]);
    assert_eq!(tx.iter(&tree).count(), 1);
    assert_eq!(tx.iter(&tree).rev().count(), 1);
    tx.commit().unwrap();
    assert_eq!(tree.get("gone").unwrap(), None);
    assert_eq!(tree.len().unwrap(), 1);
}

/// A snapshot that still sees what has expired does not make it an entry for others.
#[test]
fn a_report_counts_what_a_scan_shows() {
    with_pairs(2, |path, options, clock| {
        let db = open(path, options);
        let tree = expiring(&db);
        for n in 0..20u8 {
            tree.insert_with_ttl([n], "v", SECOND * (1 + u32::from(n) % 2))
                .unwrap();
        }
        db.flush().unwrap();
        let snapshot = db.snapshot().unwrap();
        clock.pass(1500);
        let report = db.verify().unwrap();
        assert!(report.is_ok(), "{report:?}");
        assert_eq!(report.trees[0].entries, tree.len().unwrap());
        assert_eq!(
            (report.trees[0].entries, snapshot.len(&tree).unwrap()),
            (10, 20)
        );
    });
}
