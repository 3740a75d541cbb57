//! Many times more data than memory: what the database says it uses, and what the process takes, stay within the budget (I7).
//!
//! In a process of its own, whose resident memory is watched all the while. `INDEXY_BUDGET_TIMES` (default 20) is the size
//! of the data in budgets.

use crate::support::{
    MIB, Random, StopAtDrop, assert_sound, child, child_argument, open, setting, wait,
};
use indexy::{Db, Options, Tree};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    time::Duration,
};

const BUDGET: usize = 16 * MIB;
/// Design 2.3, I7: budget * 1.10 + 32 MiB.
const ALLOWED: u64 = BUDGET as u64 / 100 * 110 + (32 << 20);

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        * 1024
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
    let Some(path) = child_argument() else {
        return;
    };
    let watch = Watch {
        before: resident_bytes(),
        resident: AtomicU64::new(0),
        used: AtomicU64::new(0),
        done: AtomicBool::new(false),
    };
    let db = open(path.as_ref(), &Options::new(BUDGET));
    let tree = db.tree("t").unwrap();
    let keys = setting("INDEXY_BUDGET_TIMES", 20) * BUDGET as u64 / 258;
    std::thread::scope(|s| {
        s.spawn(|| watch.run(&db));
        // Also when a check fails: the watcher would keep the process forever.
        let _stop = StopAtDrop(&watch.done);
        work(&db, &tree, keys, &watch);
    });
    println!("{:?}", db.stats());
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
fn i7_twenty_times_the_budget() {
    let dir = tempfile::tempdir().unwrap();
    let running = child("budget::watched_child", dir.path().to_str().unwrap()).spawn();
    assert!(wait(running.unwrap(), Duration::from_secs(900)));
}
