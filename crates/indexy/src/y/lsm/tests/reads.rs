//! What reads cost.

use super::*;
use crate::y::{
    contract::Maintained, lsm::table::FilterUse, removed_range::pages_of_a_removed_range,
};
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

/// Nothing is read of a removed range, in the partition where it was cut out.
#[test]
fn a_removed_range_is_passed_without_a_read() {
    for store in [OnDisk::new(), OnDisk::tiny()] {
        let pages = pages_of_a_removed_range(&store, |y| y.pool.reads.load(Relaxed));
        assert_eq!(pages, 0);
    }
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

/// Pages that are read for a key that is not there, behind as many to warm up; the first `keys`
/// even ones are. Random from `at` on.
fn pages_an_absent_key(y: &LsmY, keys: u64, at: &mut u64) -> f64 {
    let mut get = || {
        *at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let key = (*at >> 33) % keys * 2 + 1;
        assert!(y.get(&key.to_be_bytes()).unwrap().is_none());
    };
    (0..4000).for_each(|_| get());
    let before = y.pool.reads.load(Relaxed);
    (0..4000).for_each(|_| get());
    (y.pool.reads.load(Relaxed) - before) as f64 / 4000.0
}

/// Pages that are read for an absent key when filters have half of `cache`: of a tree with eight
/// times as many keys in bases as over them, and of the same when it was merged.
fn reads_of_absent_keys(cache: usize) -> [f64; 2] {
    let keys = 400_000u64;
    let store = OnDisk {
        cache: PageCache::new(cache),
        sizes: Sizes {
            quiet: Duration::from_secs(3600),
            ..Sizes::default()
        },
        ..OnDisk::new()
    };
    let y = store.open();
    let run = |skip: u64, step: usize| -> Entries {
        let keys = (skip..keys).step_by(step);
        keys.map(|key| put(&(key * 2).to_be_bytes(), &[7; 8]))
            .collect()
    };
    write(&y, &run(0, 1)).unwrap();
    settle(&y);
    for n in 0..4 {
        write(&y, &run(n, 32)).unwrap();
    }
    let mut at = 1u64;
    let mut reads = || pages_an_absent_key(&y, keys, &mut at);
    let before = reads();
    while y.compact(b"", None).unwrap() == Maintained::More {}
    [before, reads()]
}

/// The less room filters have, the more pages are read, a step at a time, and not all at once when
/// they do not fit any more.
#[test]
fn filters_that_fit_in_part_deny_in_part() {
    let rooms = [3 << 20, 900 << 10, 700 << 10, 500 << 10, 300 << 10];
    let reads = rooms.map(reads_of_absent_keys);
    println!("{reads:.3?} pages an absent key, caches of {rooms:?} bytes");
    let most = [0.03, 0.45, 0.7, 0.9, 1.1].into_iter();
    assert!(
        reads.iter().zip(most).all(|(reads, most)| reads[0] < most),
        "{reads:?}"
    );
    let most = [0.03, 0.1, 0.15, 0.4, 0.8].into_iter();
    assert!(
        reads.iter().zip(most).all(|(reads, most)| reads[1] < most),
        "{reads:?}"
    );
}

/// What is lent to filters beside their part of the pool is theirs, while it is.
#[test]
fn filters_that_borrow_what_they_need_deny_as_if_they_fit() {
    let keys = 400_000u64;
    let store = OnDisk {
        cache: PageCache::new(400 << 10),
        ..OnDisk::new()
    };
    let y = store.open();
    let entries = (0..keys).map(|key| put(&(key * 2).to_be_bytes(), &[7; 8]));
    write(&y, &entries.collect()).unwrap();
    settle(&y);
    let mut at = 1u64;
    let mut reads = || pages_an_absent_key(&y, keys, &mut at);
    let alone = reads();
    let loans = store.cache.loans();
    let [loan] = &loans[..] else {
        panic!("{} loans", loans.len());
    };
    let (needed, absent) = (loan.needed(), loan.take_absent());
    assert_eq!(loan.absent(), 0);
    assert!(needed > 0 && needed < loan.all(), "{loan:?}");
    assert!((4000..16_000).contains(&absent), "{absent} of 8000");
    let memory = store.cache.memory_bytes();
    store.cache.lend(needed);
    // Frames are whole.
    assert!(store.cache.memory_bytes() <= memory + needed + 5000);
    loan.lend(needed);
    let lent = reads();
    assert_eq!(loan.needed(), needed, "a loan changes what is needed");
    loan.lend(0);
    store.cache.lend(0);
    assert_eq!(store.cache.memory_bytes(), memory);
    let again = reads();
    println!("{alone:.3} pages an absent key, {lent:.3} with a loan, {again:.3} after it");
    assert!(lent < 0.2 && alone > 2.0 * lent && again > 2.0 * lent);
    drop((y, loans));
    assert!(store.cache.loans().is_empty());
}

/// Filters of bases say nothing of keys that are there: they are not asked while hardly any other
/// key is looked for.
#[test]
fn keys_that_are_there_do_not_ask_bases() {
    let store = OnDisk::new();
    let y = store.open();
    let keys = 300_000u64;
    let entries = (0..keys).map(|key| put(&(key * 2).to_be_bytes(), &[7; 8]));
    write(&y, &entries.collect()).unwrap();
    settle(&y);
    let key = |n: u64| n.wrapping_mul(0x9e37_79b9) % keys * 2;
    let asks = || {
        y.filter_uses()
            .of(&y.version().partitions()[0].base[0], true)
    };
    assert!(matches!(asks(), FilterUse::First(1..)));
    (0..8000).for_each(|n| drop(y.get(&key(n).to_be_bytes()).unwrap().unwrap()));
    assert_eq!(asks(), FilterUse::Never);
    // Many at a time, too: absent ones come back.
    let absent: Vec<[u8; 8]> = (0..4000).map(|n| (key(n) + 1).to_be_bytes()).collect();
    let absent: Vec<&[u8]> = absent.iter().map(|key| &key[..]).collect();
    assert!(y.multi_get(&absent).unwrap().iter().all(Option::is_none));
    assert!(matches!(asks(), FilterUse::First(1..)));
}
