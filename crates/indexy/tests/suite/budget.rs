//! Many times more data than memory: what the database says it uses, and what the process takes,
//! stay within the budget (I7).
//!
//! In a process of its own, whose resident memory is watched all the while. `INDEXY_BUDGET_TIMES`
//! is the size of the data in budgets (default 10 for the first pair, 4 for the others);
//! `INDEXY_BUDGET_SEED` says under which policies.

use crate::{
    pairs::{self, Pair},
    places::fast_dir,
    policy_choice,
    support::{
        MIB, Random, StopAtDrop, assert_sound, child, child_argument, open, setting, side_by_side,
        wait,
    },
};
use indexy::{Db, IndexYKind, Options, Tree, TreeOptions};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    time::Duration,
};

const BUDGET: usize = 16 * MIB;
/// Design 2.3, I7: budget * 1.10 + 32 MiB.
const ALLOWED: u64 = BUDGET as u64 / 100 * 110 + (32 << 20);

/// Without files: what is looked at in a mapped file is the device's.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let of = |name: &str| {
        let line = status.lines().find(|l| l.starts_with(name)).unwrap();
        let kib = line.split_whitespace().nth(1).unwrap();
        kib.parse::<u64>().unwrap() * 1024
    };
    of("VmRSS:") - of("RssFile:") - of("RssShmem:")
}

fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

fn value(n: u64, version: u8) -> Vec<u8> {
    let len = 100 + n % 300;
    (0..len).map(|i| (n + i) as u8 ^ version).collect()
}

/// The most seen so far of what is watched.
struct Watch {
    before: u64,
    resident: AtomicU64,
    used: AtomicU64,
    done: AtomicBool,
}

impl Watch {
    fn run(&self, db: &Db) {
        while !self.done.load(SeqCst) {
            self.resident
                .fetch_max(resident_bytes() - self.before, SeqCst);
            let stats = db.stats();
            self.used.fetch_max(stats.memory_used_bytes, SeqCst);
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn check(&self, after: &str) {
        let (resident, used) = (self.resident.load(SeqCst), self.used.load(SeqCst));
        println!(
            "{after}: resident {} KiB, used {} KiB at most",
            resident >> 10,
            used >> 10
        );
        assert!(used <= BUDGET as u64, "{after}: {used} bytes are used");
        assert!(
            resident <= ALLOWED,
            "{after}: {resident} bytes are resident"
        );
    }
}

#[test]
fn watched_child() {
    let Some(argument) = child_argument() else {
        return;
    };
    let mut parts = argument.splitn(4, ' ');
    let [pair, times, policies, path] = [(); 4].map(|()| parts.next().unwrap());
    let policies = policy_choice::chosen(policies.parse().unwrap());
    println!("{policies:?}");
    let options = pairs::options(pairs::named(pair), Options::new(BUDGET));
    let watch = Watch {
        before: resident_bytes(),
        resident: AtomicU64::new(0),
        used: AtomicU64::new(0),
        done: AtomicBool::new(false),
    };
    let db = open(path.as_ref(), &policies.options(options));
    let tree = policies.open_tree(&db, "t", TreeOptions::new());
    let keys = times.parse::<u64>().unwrap() * BUDGET as u64 / 258;
    std::thread::scope(|s| {
        s.spawn(|| watch.run(&db));
        // Also when a check fails: the watcher would keep the process forever.
        let _stop = StopAtDrop(&watch.done);
        work(&db, &tree, keys, &watch);
    });
    println!("{:?}", db.stats());
    let open = resident_bytes();
    let in_progress = tree.iter();
    db.close().unwrap();
    let (closed, used) = (resident_bytes(), db.stats().memory_used_bytes);
    println!(
        "closed: resident {} KiB less, used {} KiB",
        (open >> 10).saturating_sub(closed >> 10),
        used >> 10
    );
    assert!(closed + BUDGET as u64 / 2 <= open, "memory is kept");
    assert!(used <= BUDGET as u64 / 4, "{used} bytes are used");
    drop(in_progress);
}

fn work(db: &Db, tree: &Tree, keys: u64, watch: &Watch) {
    std::thread::scope(|s| {
        for half in 0..2 {
            s.spawn(move || {
                for n in (half..keys).step_by(2) {
                    tree.insert(key(n), value(n, 1)).unwrap();
                }
            });
        }
    });
    watch.check("load");
    let mut left_open: Vec<_> = (0..20).map(|n| tree.range(&key(n)[..]..)).collect();
    left_open
        .iter_mut()
        .for_each(|scan| drop(scan.next().unwrap().unwrap()));
    let mut random = Random(1);
    for _ in 0..keys / 8 {
        let n = random.below(keys);
        let found = tree.get(key(n)).unwrap().unwrap();
        assert!(found == value(n, 1));
        assert_eq!(tree.get(n.to_le_bytes()).unwrap(), None);
    }
    watch.check("gets");
    for _ in 0..keys / 64 / 64 {
        let ns: Vec<u64> = (0..64).map(|_| random.below(keys)).collect();
        let found = tree.multi_get(ns.iter().map(|&n| key(n))).unwrap();
        assert!(
            ns.iter()
                .zip(found)
                .all(|(&n, v)| v.unwrap() == value(n, 1))
        );
    }
    watch.check("multi_get");
    assert_eq!(tree.len().unwrap(), keys);
    assert_eq!(tree.iter().rev().take(1000).count(), 1000);
    watch.check("scans");
    for n in (0..keys).step_by(5) {
        match n % 2 {
            0 => tree.insert(key(n), value(n, 2)).unwrap(),
            _ => tree.remove(key(n)).unwrap(),
        }
    }
    watch.check("overwriting");
    for scan in &mut left_open {
        assert!(scan.by_ref().take(100).all(|e| e.is_ok()));
    }
    db.flush().unwrap();
    assert_sound(db);
    for n in (0..keys).step_by(997) {
        let expected = match (n % 5, n % 2) {
            (0, 0) => Some(value(n, 2)),
            (0, _) => None,
            _ => Some(value(n, 1)),
        };
        assert!(tree.get(key(n)).unwrap().as_deref() == expected.as_deref());
    }
    watch.check("the end");
}

#[test]
fn i7_ten_times_the_budget() {
    // Each in its own process. The first one at length: what is beyond memory already is there in a
    // few budgets.
    side_by_side(pairs::chosen(0, 1).into_iter().enumerate(), |(n, pair)| {
        let times = setting("INDEXY_BUDGET_TIMES", if n == 0 { 10 } else { 4 });
        watch(pair, times, setting("INDEXY_BUDGET_SEED", 0) + n as u64);
    });
}

/// `policies`: their number.
fn watch(pair: Pair, times: u64, policies: u64) {
    let dir = fast_dir();
    let (pair, path) = (pairs::name(pair), dir.path().display());
    let argument = format!("{pair} {times} {policies} {path}");
    println!("{argument}");
    let running = child("budget::watched_child", &argument).spawn();
    assert!(wait(running.unwrap(), Duration::from_secs(3600)));
}

const SMALL_BUDGET: usize = 2 * MIB;

/// Trees of every size of pages and one of another kind, in the smallest budget: their pools share
/// what one would have.
#[test]
fn mixed_child() {
    let Some(path) = child_argument() else {
        return;
    };
    let before = resident_bytes();
    let db = open(path.as_ref(), &Options::new(SMALL_BUDGET));
    let kinds = [4096, 8192, 16384].map(|page_bytes| IndexYKind::BPlus { page_bytes });
    let kinds = kinds.into_iter().chain([IndexYKind::Lsm]);
    let trees: Vec<Tree> = kinds
        .map(|y| {
            let options = TreeOptions::new().index_y(y);
            db.tree_with(&y.to_string(), options).unwrap()
        })
        .collect();
    let keys = 4 * SMALL_BUDGET as u64 / 258;
    let mut resident = 0;
    let mut check = |n: u64| {
        if n.is_multiple_of(64) {
            resident = resident.max(resident_bytes() - before);
            let used = db.stats().memory_used_bytes;
            assert!(used <= SMALL_BUDGET as u64, "{used} bytes are used");
        }
    };
    for n in 0..keys {
        for tree in &trees {
            let inserted = tree.insert(key(n), value(n, 1));
            inserted.unwrap_or_else(|e| panic!("{e}: {:?}", db.stats()));
        }
        check(n);
    }
    db.flush().unwrap();
    let mut random = Random(1);
    for i in 0..keys {
        let n = random.below(keys);
        let tree = &trees[i as usize % trees.len()];
        assert!(tree.get(key(n)).unwrap().unwrap() == value(n, 1));
        check(i);
    }
    for tree in &trees {
        assert_eq!(tree.len().unwrap(), keys);
        check(0);
    }
    println!("resident {} KiB at most", resident >> 10);
    let allowed = SMALL_BUDGET as u64 / 100 * 110 + (32 << 20);
    assert!(resident <= allowed, "{resident} bytes are resident");
    assert_sound(&db);
}

#[test]
fn i7_pools_of_all_sizes_in_the_smallest_budget() {
    let dir = fast_dir();
    let running = child("budget::mixed_child", dir.path().to_str().unwrap()).spawn();
    assert!(wait(running.unwrap(), Duration::from_secs(300)));
}
