//! What reads cost.

use super::*;
use std::sync::atomic::Ordering::Relaxed;

/// A key that is only in the base costs one read of the device when inner pages are in frames.
#[test]
fn a_cold_get_is_one_read() {
    let store = OnDisk {
        // Not enough for the filters, which say nothing of keys that are there.
        cache: PageCache::new(800 << 10),
        ..OnDisk::new()
    };
    let y = store.open();
    let keys = 400_000u64;
    let entries: Entries = (0..keys)
        .map(|key| put(&(key * 3).to_be_bytes(), &[7; 8]))
        .collect();
    write(&y, &entries).unwrap();
    settle(&y);
    let mut at = 1u64;
    let mut next = || {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (at >> 33) % keys * 3
    };
    // Inner pages come in.
    for _ in 0..2000 {
        assert!(y.get(&next().to_be_bytes()).unwrap().is_some());
    }
    let before = y.pool.reads.load(Relaxed);
    for _ in 0..2000 {
        assert!(y.get(&next().to_be_bytes()).unwrap().is_some());
    }
    let reads = y.pool.reads.load(Relaxed) - before;
    assert!(reads <= 2040, "{reads} reads for 2000 gets");
}

/// Filters that fit deny absent keys without a read.
#[test]
fn absent_keys_cost_nothing_where_filters_fit() {
    let store = OnDisk::new();
    let y = store.open();
    let entries: Entries = (0..300_000u64)
        .map(|key| put(&(key * 2).to_be_bytes(), &[7; 8]))
        .collect();
    write(&y, &entries).unwrap();
    settle(&y);
    let absent = |n: u64| (n.wrapping_mul(0x9e37_79b9) % 300_000 * 2 + 1).to_be_bytes();
    for n in 0..20_000 {
        assert!(y.get(&absent(n)).unwrap().is_none());
    }
    let before = y.pool.reads.load(Relaxed);
    for n in 0..10_000 {
        assert!(y.get(&absent(n * 7 + 1)).unwrap().is_none());
    }
    let reads = y.pool.reads.load(Relaxed) - before;
    assert!(reads < 400, "{reads} reads for 10,000 absent keys");
}
