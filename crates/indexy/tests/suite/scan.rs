//! Scans beside writers (I9), and scans left open.

use crate::{
    places::fast_dir,
    support::{MIB, Random, StopAtDrop, open},
};
use indexy::{Options, Tree};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

fn options() -> Options {
    Options::new(2 * MIB)
}

const KEYS: u64 = 20_000;

fn key(i: u64) -> [u8; 8] {
    i.to_be_bytes()
}

/// Every third key is always there, every third comes and goes, every third is never there.
fn set_up(tree: &Tree) {
    for i in (0..KEYS).step_by(3) {
        tree.insert(key(i), [1; 100]).unwrap();
    }
}

fn check(keys: &[u64]) {
    assert!(keys.is_sorted_by(|a, b| a < b), "in order and once");
    assert!(keys.iter().all(|k| k % 3 != 2), "absent all the while");
    let stable = keys.iter().filter(|k| *k % 3 == 0).count() as u64;
    assert_eq!(stable, KEYS.div_ceil(3), "there all the while");
}

fn number((key, value): (indexy::Key, indexy::Value)) -> u64 {
    assert_eq!(value.len(), 100);
    u64::from_be_bytes(key[..].try_into().unwrap())
}

#[test]
fn i9_under_writers_cleaning_and_release() {
    let dir = fast_dir();
    let db = open(dir.path(), &options());
    let tree = db.tree("t").unwrap();
    set_up(&tree);
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        for w in 0..2 {
            let (tree, done) = (&tree, &done);
            s.spawn(move || {
                let mut random = Random(w);
                while !done.load(SeqCst) {
                    let i = random.below(KEYS / 3) * 3;
                    tree.insert(key(i), [random.next() as u8; 100]).unwrap();
                    tree.insert(key(i + 1), [2; 100]).unwrap();
                    tree.remove(key(random.below(KEYS / 3) * 3 + 1)).unwrap();
                }
            });
        }
        s.spawn(|| {
            while !done.load(SeqCst) {
                db.flush().unwrap();
            }
        });
        let _stop = StopAtDrop(&done);
        for round in 0..25 {
            let mut random = Random(100 + round);
            let mut scan = tree.iter().map(|e| number(e.unwrap()));
            match round % 3 {
                0 => check(&scan.collect::<Vec<_>>()),
                1 => {
                    let mut keys: Vec<_> = scan.rev().collect();
                    keys.reverse();
                    check(&keys);
                }
                _ => {
                    let (mut low, mut high) = (vec![], vec![]);
                    loop {
                        let next = if random.one_in(2) {
                            scan.next().map(|k| low.push(k))
                        } else {
                            scan.next_back().map(|k| high.push(k))
                        };
                        if next.is_none() {
                            break;
                        }
                    }
                    high.reverse();
                    low.extend(high);
                    check(&low);
                }
            }
        }
    });
}

#[test]
fn scans_left_open_pin_nothing() {
    let dir = fast_dir();
    let db = open(dir.path(), &options());
    let tree = db.tree("t").unwrap();
    set_up(&tree);
    let mut open_scans: Vec<_> = (0..50)
        .map(|i| {
            let mut scan = tree.range(key(i)..);
            let back = i % 2 == 1;
            if back {
                scan.next_back().unwrap().unwrap();
            } else {
                scan.next().unwrap().unwrap();
            }
            scan
        })
        .collect();
    // Everything is written away, compacted and written again several times over.
    for round in 0..4u8 {
        for i in (0..KEYS).step_by(3) {
            tree.insert(key(i), [round; 100]).unwrap();
        }
        db.flush().unwrap();
        let stats = db.stats();
        assert!(
            stats.memory_used_bytes <= stats.memory_budget_bytes,
            "{stats:?}"
        );
    }
    for scan in &mut open_scans {
        let rest: Vec<_> = scan.map(|e| e.unwrap()).collect();
        assert!(rest.len() as u64 >= KEYS / 3 - 50);
        let values = rest.iter().filter(|(_, v)| v[0] == 3).count();
        assert!(values > rest.len() / 2, "they go on with what is newest");
    }
}

#[test]
fn both_ends_meet() {
    let dir = fast_dir();
    let db = open(dir.path(), &options());
    let tree = db.tree("t").unwrap();
    for n in [0u64, 1, 2, 17, 500] {
        tree.remove_range::<&[u8]>(..).unwrap();
        for i in 0..n {
            tree.insert(key(i), b"v").unwrap();
        }
        if n == 17 {
            db.flush().unwrap();
        }
        for taken_first in [0, n / 3, n] {
            let mut scan = tree.iter();
            let mut seen = 0;
            for _ in 0..taken_first {
                seen += u64::from(scan.next().is_some());
            }
            while scan.next_back().is_some() {
                seen += 1;
            }
            assert_eq!(seen, n);
            assert!(scan.next().is_none() && scan.next_back().is_none());
        }
    }
    let range = |a: u64, b: u64| tree.range(key(a)..key(b)).count();
    assert_eq!((range(5, 5), range(9, 5), range(5, 9)), (0, 0, 4));
}

#[test]
fn scans_do_not_fill_x() {
    let dir = fast_dir();
    let db = open(dir.path(), &options());
    let tree = db.tree("t").unwrap();
    set_up(&tree);
    db.close().unwrap();
    let db = open(dir.path(), &options());
    let tree = db.tree("t").unwrap();
    let before = db.stats().x_keys;
    assert_eq!(tree.len().unwrap(), KEYS.div_ceil(3));
    assert_eq!(db.stats().x_keys, before);
}

/// I7: a scan holds a few values at a time, also where one leaf names many large ones.
#[test]
fn i7_open_scans_of_large_values_hold_little() {
    const BUDGET: usize = 16 * MIB;
    for index_x in [indexy::IndexXKind::Art, indexy::IndexXKind::BPlus] {
        let dir = fast_dir();
        let db = open(dir.path(), &Options::new(BUDGET).index_x(index_x));
        let tree = db.tree("t").unwrap();
        for i in 0..100 {
            tree.insert(key(i), vec![i as u8; 60_000]).unwrap();
        }
        let mut scans: Vec<_> = (0..12).map(|_| tree.iter()).collect();
        for (n, scan) in scans.iter_mut().enumerate() {
            let next = if n % 2 == 0 {
                scan.next()
            } else {
                scan.next_back()
            };
            assert_eq!(next.unwrap().unwrap().1.len(), 60_000);
        }
        let used = db.stats().memory_used_bytes as usize;
        assert!(used <= BUDGET, "{index_x}: {used} bytes used");
        for scan in scans {
            assert_eq!(scan.inspect(|e| assert!(e.is_ok())).count(), 99);
        }
    }
}

/// What comes after small entries is a value that is larger than the whole budget: a scan that was
/// left open before it does not hold it, and writers do not wait.
#[test]
fn i7_open_scans_before_a_large_value_do_not_hold_it() {
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(4 * MIB));
    let tree = db.tree("t").unwrap();
    let large = vec![7; 5 * MIB];
    for i in [0, 1, 3, 4] {
        tree.insert(key(i), "small").unwrap();
    }
    tree.insert(key(2), &large).unwrap();
    let snapshot = db.snapshot().unwrap();
    let mut open = [tree.iter(), tree.iter(), snapshot.iter(&tree)];
    for (n, scan) in open.iter_mut().enumerate() {
        let first = match n {
            1 => scan.next_back(),
            _ => scan.next(),
        };
        assert_eq!(first.unwrap().unwrap().1, b"small");
        let stats = db.stats();
        assert!(stats.memory_used_bytes < 4 << 20, "{stats:?}");
    }
    tree.insert(key(5), "room").unwrap();
    let [front, back, of_snapshot] = open;
    let values = |scan: &mut dyn Iterator<Item = indexy::Result<(indexy::Key, indexy::Value)>>| {
        let lengths: Vec<usize> = scan.map(|entry| entry.unwrap().1.len()).collect();
        lengths
    };
    let rest = [5, large.len(), 5, 5];
    assert_eq!(values(&mut { front }), [&rest[..], &[4]].concat());
    assert_eq!(values(&mut back.rev()), [5, large.len(), 5, 5]);
    assert_eq!(values(&mut { of_snapshot }), rest);
}
