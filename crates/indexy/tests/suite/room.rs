//! Room in memory: a budget that shrinks at run time, and reads that find none (I7).

use crate::{
    pairs,
    places::fast_dir,
    support::{MIB, assert_sound, open, side_by_side},
};
use indexy::{Durability, IndexXKind, IndexYKind, Options, Tree, TreeOptions};
use std::time::{Duration, Instant};

fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

fn value(n: u64) -> Vec<u8> {
    vec![n as u8; 100 + (n % 50) as usize]
}

fn fill(tree: &Tree, keys: u64) {
    for n in 0..keys {
        tree.insert(key(n), value(n)).unwrap();
    }
}

fn check(tree: &Tree, keys: impl Iterator<Item = u64>) {
    for n in keys {
        assert_eq!(
            tree.get(key(n)).unwrap().as_deref(),
            Some(&value(n)[..]),
            "{n}"
        );
    }
}

#[test]
fn i7_a_smaller_budget_is_reached_soon() {
    const KEYS: u64 = 180_000;
    side_by_side(["art-lsm", "bplus-bplus:4096"], |pair| {
        shrink(pairs::named(pair), KEYS);
    });
}

fn shrink(pair: pairs::Pair, keys: u64) {
    // Buffers keep the size that they got at open: less than a sixth is refused.
    let (large, small) = (64 * MIB, 12 * MIB);
    let dir = fast_dir();
    let db = open(dir.path(), &pairs::options(pair, Options::new(large)));
    let tree = db.tree("t").unwrap();
    fill(&tree, keys);
    let before = db.stats().memory_used_bytes;
    assert!(
        before > 3 * small as u64,
        "{before} bytes are nothing to shrink"
    );
    db.set_memory_budget(small).unwrap();
    // Some seconds on a machine with nothing else to do; in steps, so that a time in which the
    // whole process does not run does not count.
    let reached = (0..8000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        db.stats().memory_used_bytes <= small as u64
    });
    assert!(reached, "{} bytes", db.stats().memory_used_bytes);
    // It stays there, whatever is read and written.
    for n in (0..keys).step_by(30) {
        check(&tree, [n].into_iter());
        tree.insert(key(n), value(n)).unwrap();
        if n % 300 == 0 {
            let used = db.stats().memory_used_bytes;
            assert!(used <= small as u64, "{used} bytes");
        }
    }
    check(&tree, (1..keys).step_by(7));
    assert_sound(&db);
    // And up again: X takes more than the small budget could ever hold.
    db.set_memory_budget(large).unwrap();
    check(&tree, (0..keys).filter(|n| n % 3 != 0));
    let x_bytes = db.stats().x_bytes;
    assert!(x_bytes > small as u64, "{x_bytes} bytes");
    db.close().unwrap();
}

/// A resident tree has all the room: what is read from Y is right, and not kept.
#[test]
fn i7_a_cold_read_without_room_is_answered_uncached() {
    const COLD: u64 = 20_000;
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(8 * MIB));
    let cold = db.tree("cold").unwrap();
    fill(&cold, COLD);
    db.flush().unwrap();
    let resident = db
        .tree_with("resident", TreeOptions::new().resident(true))
        .unwrap();
    let mut n = 0u64;
    let refused = loop {
        match resident.insert(n.to_be_bytes(), [7; 200]) {
            Ok(()) => n += 1,
            Err(error) => break error,
        }
    };
    assert!(
        matches!(refused, indexy::Error::ResidentTreesTooLarge { .. }),
        "{refused}"
    );
    let before = db.stats();
    for _ in 0..2 {
        check(&cold, (0..COLD).step_by(7));
        let keys: Vec<_> = (0..64).map(|n| key(n * 100)).collect();
        for (n, found) in cold.multi_get(&keys).unwrap().iter().enumerate() {
            assert_eq!(found.as_deref(), Some(&value(n as u64 * 100)[..]));
        }
    }
    let after = db.stats();
    let uncached = after.uncached_reads - before.uncached_reads;
    let reads = after.y_reads - before.y_reads;
    // Many find what a release of this very tree has just freed.
    assert!(uncached > 0, "{uncached} of {reads} reads of Y");
    assert!(reads > COLD / 7, "{reads}");
    assert!(after.memory_used_bytes <= 8 * MIB as u64);
    assert_eq!(resident.len().unwrap(), n);
    assert_sound(&db);
}

/// A resident tree that fills the budget can be made smaller, and then takes more again.
#[test]
fn a_resident_tree_that_is_full_can_be_emptied() {
    for index_y in [IndexYKind::Lsm, IndexYKind::BPlus { page_bytes: 4096 }] {
        let dir = fast_dir();
        let db = open(dir.path(), &Options::new(2 * MIB).index_y(index_y));
        let options = TreeOptions::new().resident(true);
        let tree = db.tree_with("resident", options).unwrap();
        let full = (0u64..)
            .find(|n| tree.insert(n.to_be_bytes(), [7; 100]).is_err())
            .unwrap();
        for n in 0..full / 2 {
            match n % 2 {
                0 => tree.remove(n.to_be_bytes()).unwrap(),
                _ => assert!(tree.take(n.to_be_bytes()).unwrap().is_some()),
            }
        }
        db.flush().unwrap();
        assert_eq!(tree.len().unwrap(), full - full / 2);
        assert!(db.stats().memory_used_bytes <= 2 * MIB as u64);
        let grown = (0..full / 4).try_for_each(|n| tree.insert(n.to_be_bytes(), [8; 100]));
        assert!(grown.is_ok(), "{index_y}: {grown:?}");
        assert_sound(&db);
    }
}

/// Scans that are left open hold a small part of the budget, however many there are, and keep
/// nobody from writing.
#[test]
fn i7_many_open_scans_leave_room() {
    // Of a tree that is mostly in Y, and of one that is wholly in X.
    for (resident, keys) in [(false, 10_000), (true, 2_500)] {
        many_open_scans(resident, keys);
    }
}

fn many_open_scans(resident: bool, keys: u64) {
    const SCANS: usize = 1500;
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(2 * MIB));
    let options = TreeOptions::new().resident(resident);
    let tree = db.tree_with("t", options).unwrap();
    fill(&tree, keys);
    let mut scans: Vec<_> = (0..SCANS).map(|_| tree.iter()).collect();
    let mut last = None;
    for round in 0..40 {
        for (n, scan) in scans.iter_mut().enumerate() {
            let (key, _) = match n % 2 {
                0 => scan.next().unwrap().unwrap(),
                _ => scan.next_back().unwrap().unwrap(),
            };
            if n == 0 {
                assert!(last.is_none_or(|last| last < key), "{round}");
                last = Some(key);
            }
        }
        tree.insert(key(round), value(round)).unwrap();
        let used = db.stats().memory_used_bytes;
        assert!(used <= 2 * MIB as u64, "{used} bytes");
    }
    let rest: Vec<_> = scans.swap_remove(SCANS - 2).map(Result::unwrap).collect();
    assert_eq!(rest.len() as u64, keys - 40);
    assert!(rest.is_sorted_by(|a, b| a.0 < b.0));
}

/// What an LSM tree holds in memory does not grow with its keys, however long they are.
#[test]
fn i7_long_keys_on_disk_leave_room() {
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(2 * MIB));
    let tree = db.tree("t").unwrap();
    let long = |n: u64| [&key(n)[..], &[7; 8000]].concat();
    (0..2000).for_each(|n| tree.insert(long(n), value(n)).unwrap());
    db.flush().unwrap();
    let used = db.stats().memory_in_use_bytes;
    assert!(used < 2 * MIB as u64, "{used}");
    for n in (0..2000).step_by(7) {
        assert_eq!(tree.get(long(n)).unwrap().as_deref(), Some(&value(n)[..]));
    }
    assert_eq!(tree.len().unwrap(), 2000);
    assert_sound(&db);
}

/// Nothing of a resident tree can be released. Entries that change their size leave holes in what
/// it holds, which are all the room that its writers have: they get it, instead of waiting for a
/// release.
#[test]
fn i7_the_holes_of_a_resident_tree_are_room() {
    const ROUNDS: u64 = 10;
    for index_x in [IndexXKind::Art, IndexXKind::BPlus] {
        let dir = fast_dir();
        // No log, whose buffers come and go.
        let options = Options::new(16 * MIB)
            .durability(Durability::None)
            .index_x(index_x);
        let db = open(dir.path(), &options);
        let resident = TreeOptions::new().resident(true);
        let tree = db.tree_with("resident", resident).unwrap();
        let mut keys = 0;
        while db.stats().x_bytes < 16 * MIB as u64 * 45 / 100 {
            tree.insert(key(keys), [1; 100]).unwrap();
            keys += 1;
        }
        for round in 0..ROUNDS {
            let bytes = 20 + round * 37 % 11 * 18;
            for n in 0..keys / 4 {
                let any = (round * keys + n).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
                tree.insert(key(any % keys), vec![2; (bytes + n % 7) as usize])
                    .unwrap();
            }
        }
        let stats = db.stats();
        let stalled = stats.stall_micros;
        assert!(stalled < 10_000_000, "{index_x:?}: {stalled} us");
        assert_eq!(tree.len().unwrap(), keys);
        assert_sound(&db);
    }
}

/// However many trees there are: a batch of at most `Batch::limit` bytes is committed, a larger one
/// is refused at once, and neither stalls.
#[test]
fn i7_a_batch_fits_up_to_its_limit_beside_many_trees() {
    const BUDGET: usize = 2 * MIB;
    for trees in [1, 50, 150, 250] {
        let dir = fast_dir();
        let db = open(dir.path(), &Options::new(BUDGET));
        let trees: Vec<_> = (0..trees)
            .map(|n| db.tree(&format!("t{n}")).unwrap())
            .collect();
        for tree in &trees {
            fill(tree, 20);
        }
        db.flush().unwrap();
        let mut committed = 0;
        for part in [4, 5, 6, 8, 12, 16] {
            let mut batch = db.batch();
            for n in 0..10u64 {
                let tree = &trees[n as usize % trees.len()];
                batch.insert(tree, key(n), vec![n as u8; BUDGET / part / 10 - 100]);
            }
            let bytes = batch.bytes();
            let from = Instant::now();
            match batch.try_commit() {
                Ok(()) => committed = committed.max(bytes),
                Err(rejected) => {
                    let (error, batch) = rejected.into_parts();
                    let indexy::Error::BatchTooLarge { limit, .. } = error else {
                        panic!("{} trees: {error}", trees.len());
                    };
                    assert!(bytes > limit, "{bytes} of {limit}");
                    assert_eq!(batch.len(), 10);
                }
            }
            let waited = from.elapsed();
            assert!(waited < Duration::from_secs(10), "{waited:?}");
        }
        assert!(committed > 0, "nothing fits beside {} trees", trees.len());
        let used = db.stats().memory_used_bytes;
        assert!(used <= BUDGET as u64, "{used}");
    }
}

/// A single value is written whatever its size, in an empty database and over each disk index: it
/// goes through X, or past it.
#[test]
fn i7_no_single_value_stalls_while_x_is_empty() {
    for (budget, index_y) in [2, 3, 9, 16].into_iter().flat_map(|mib| {
        let paged = IndexYKind::BPlus { page_bytes: 4096 };
        [IndexYKind::Lsm, paged].map(|y| (mib * MIB, y))
    }) {
        let dir = fast_dir();
        let db = open(dir.path(), &Options::new(budget).index_y(index_y));
        let tree = db.tree("t").unwrap();
        for (n, percent) in [8, 12, 13, 24, 26, 31, 50, 99].into_iter().enumerate() {
            let bytes = budget / 100 * percent;
            let from = Instant::now();
            tree.insert([n as u8], vec![n as u8; bytes]).unwrap();
            let waited = from.elapsed();
            let what = format!("{percent} % of {budget} over {index_y}: {waited:?}");
            assert!(waited < Duration::from_secs(10), "{what}");
            assert_eq!(tree.get([n as u8]).unwrap().unwrap().len(), bytes);
        }
    }
}

/// Entries of many sizes in slabs of a large budget: what each size keeps of a slab would fill a
/// small one, with next to no keys in memory.
#[test]
fn i7_entries_of_all_sizes_leave_room_in_a_budget_that_is_lowered() {
    side_by_side(["art-lsm", "bplus-bplus:4096"], |pair| {
        lower(pairs::named(pair), (16 * MIB, 2 * MIB));
    });
}

fn lower(pair: pairs::Pair, (large, small): (usize, usize)) {
    const KEYS: u64 = 12_000;
    const WRITES: u64 = 10_000;
    let of_any_size = |n: u64| {
        let least = 16 << (n % 9);
        vec![n as u8; least + (n as usize * 37) % least]
    };
    let dir = fast_dir();
    let db = open(dir.path(), &pairs::options(pair, Options::new(large)));
    let tree = db.tree("t").unwrap();
    for n in 0..KEYS {
        tree.insert(key(n), of_any_size(n)).unwrap();
    }
    db.set_memory_budget(small).unwrap();
    let mut longest = Duration::ZERO;
    for n in (0..WRITES).map(|n| n * 5 % KEYS) {
        let began = Instant::now();
        tree.insert(key(n), of_any_size(n)).unwrap();
        longest = longest.max(began.elapsed());
    }
    assert!(longest < Duration::from_secs(10), "waited for {longest:?}");
    let stats = db.stats();
    assert!(stats.memory_used_bytes <= small as u64, "{stats:?}");
    assert!(stats.x_bytes > small as u64 / 5, "{stats:?}");
    for n in 0..KEYS {
        let found = tree.get(key(n)).unwrap();
        assert_eq!(found.as_deref(), Some(&of_any_size(n)[..]), "{n}");
    }
    assert_sound(&db);
}
