//! What an operation costs, and what an entry takes. Ignored by default; run in release mode:
//! `cargo test --release -p indexy --lib x::bptree::bench -- --ignored --nocapture --test-threads 1`.

use super::BPlus;
use crate::{
    mem::{Memory, budget::Budget},
    x::{Chunk, IndexX, Lookup, Order, ScanLimits},
};
use std::{sync::Arc, time::Instant};

fn count() -> u64 {
    let given = std::env::var("KEYS").ok().and_then(|n| n.parse().ok());
    given.unwrap_or(10_000_000)
}

fn empty() -> BPlus {
    BPlus::new(Memory::new(Arc::new(Budget::new(8 << 30))), false)
}

fn spread(n: u64) -> [u8; 8] {
    let mut z = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (z ^ (z >> 27)).to_be_bytes()
}

fn report(what: &str, n: u64, since: Instant) {
    let took = since.elapsed();
    let rate = n as f64 / took.as_secs_f64() / 1e6;
    println!(
        "{what:28} {rate:8.2} M/s  {:8.1} ns",
        took.as_nanos() as f64 / n as f64
    );
}

fn insert_all<K: AsRef<[u8]>>(tree: &BPlus, what: &str, n: u64, key: impl Fn(u64) -> K) {
    let since = Instant::now();
    for i in 0..n {
        let put = tree.put(key(i).as_ref(), Some(&i.to_le_bytes()), || Ok::<(), ()>(()));
        assert!(put.is_ok());
    }
    report(what, n, since);
    let stats = tree.stats();
    println!(
        "{:28} {:8.2} B/key in blocks, {:8.2} in slabs",
        "",
        stats.bytes as f64 / n as f64,
        tree.memory.slab_bytes() as f64 / n as f64
    );
}

fn get_all<K: AsRef<[u8]>>(tree: &BPlus, what: &str, n: u64, key: impl Fn(u64) -> K) {
    let since = Instant::now();
    let mut sum = 0;
    for i in 0..n {
        let i = i.wrapping_mul(7_368_787) % n;
        let got = tree.get(key(i).as_ref(), |v| v.first().copied());
        assert!(matches!(got, Lookup::Found(_)));
        sum += 1;
    }
    assert_eq!(sum, n);
    report(what, n, since);
}

fn scan_all(tree: &BPlus, n: u64) {
    let since = Instant::now();
    let limits = ScanLimits {
        bytes: 256 << 10,
        entries: 4096,
        leaves: 4096,
    };
    let mut chunk = Chunk::default();
    let (mut from, mut seen) = (Vec::new(), 0);
    loop {
        tree.scan(&from, None, Order::Ascending, limits, &mut chunk);
        seen += chunk.entries.len() as u64;
        match chunk.resume.take() {
            Some(resume) => from = resume,
            None => break,
        }
    }
    assert_eq!(seen, n);
    report("scan", n, since);
}

#[test]
#[ignore = "measures"]
fn random_keys() {
    let (tree, n) = (empty(), count());
    insert_all(&tree, "insert random", n, spread);
    get_all(&tree, "get random", n, spread);
    let since = Instant::now();
    for i in 0..n {
        let absent = tree.get(&spread(i + (1 << 40)), |_| ());
        assert_eq!(absent, Lookup::Absent);
    }
    report("get absent", n, since);
    insert_all(&tree, "overwrite random", n, spread);
    scan_all(&tree, n);
}

/// Nothing else in the process: for a profile.
#[test]
#[ignore = "measures"]
fn random_inserts() {
    insert_all(&empty(), "insert random", count(), spread);
}

#[test]
#[ignore = "measures"]
fn ascending_keys() {
    let (tree, n) = (empty(), count());
    insert_all(&tree, "insert ascending", n, u64::to_be_bytes);
    get_all(&tree, "get (dense)", n, u64::to_be_bytes);
    scan_all(&tree, n);
}

#[test]
#[ignore = "measures"]
fn long_keys() {
    let (tree, n) = (empty(), count() / 4);
    let key = |i: u64| {
        let h = u64::from_be_bytes(spread(i));
        format!(
            "https://example.org/{:04}/articles/{:03}/{i:08}",
            h % 5000,
            h % 997
        )
    };
    insert_all(&tree, "insert 44-byte keys", n, key);
    get_all(&tree, "get 44-byte keys", n, key);
    scan_all(&tree, n);
}

#[test]
#[ignore = "measures"]
fn two_threads() {
    let (tree, n) = (empty(), count());
    let since = Instant::now();
    std::thread::scope(|scope| {
        for t in 0..2 {
            let tree = &tree;
            scope.spawn(move || {
                for i in (t..n).step_by(2) {
                    let put = tree.put(&spread(i), Some(&i.to_le_bytes()), || Ok::<(), ()>(()));
                    assert!(put.is_ok());
                }
            });
        }
    });
    report("insert random, 2 threads", n, since);
    let since = Instant::now();
    std::thread::scope(|scope| {
        for t in 0..2 {
            let tree = &tree;
            scope.spawn(move || {
                for i in (t..n).step_by(2) {
                    assert!(matches!(tree.get(&spread(i), |_| ()), Lookup::Found(())));
                }
            });
        }
    });
    report("get random, 2 threads", n, since);
}

/// 24 bytes, the first four of them in common, as YCSB's keys.
fn user(i: u64) -> [u8; 24] {
    let mut key = *b"user00000000000000000000";
    let mut left = u64::from_be_bytes(spread(i));
    for digit in key[4..].iter_mut().rev() {
        *digit += (left % 10) as u8;
        left /= 10;
    }
    key
}

#[test]
#[ignore = "measures"]
fn string_keys() {
    let (tree, n) = (empty(), count() / 2);
    insert_all(&tree, "insert 24-byte strings", n, user);
    get_all(&tree, "get 24-byte strings", n, user);
}

/// The peer: an ordered map of the standard library, with keys and values in its nodes.
#[test]
#[ignore = "measures"]
fn random_keys_in_a_btree_map() {
    in_a_btree_map("8 bytes", count(), spread);
}

/// The same with strings: in its nodes, and as an owner of strings would have them.
#[test]
#[ignore = "measures"]
fn string_keys_in_a_btree_map() {
    in_a_btree_map("24 bytes", count() / 2, user);
    in_a_btree_map("boxed strings", count() / 2, |i| Box::<[u8]>::from(user(i)));
}

fn in_a_btree_map<K: Ord>(what: &str, n: u64, key: impl Fn(u64) -> K) {
    let mut map = std::collections::BTreeMap::new();
    let since = Instant::now();
    for i in 0..n {
        map.insert(key(i), i.to_le_bytes());
    }
    report(&format!("BTreeMap insert {what}"), n, since);
    let since = Instant::now();
    for i in 0..n {
        let i = i.wrapping_mul(7_368_787) % n;
        assert!(map.contains_key(&key(i)));
    }
    report(&format!("BTreeMap get {what}"), n, since);
}
