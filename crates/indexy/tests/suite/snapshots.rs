//! I10 to I13 through the API: what a snapshot sees stays as it was, whatever is written, cleaned,
//! released, loaded and removed meanwhile.

use crate::{
    pairs,
    places::fast_dir,
    support::{MIB, Random, StopAtDrop, assert_sound, open},
};
use indexy::{Db, Durability, Error, Key, Options, Snapshot, Tree, Value};
use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::{Duration, Instant},
};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Everything that can be asked of a snapshot, against what was there when it was made. An error if
/// it is given up meanwhile: cleaning also keeps what it overwrites.
fn check(
    snapshot: &Snapshot,
    tree: &Tree,
    model: &Model,
    random: &mut Random,
) -> indexy::Result<()> {
    let wanted: Vec<(Vec<u8>, Vec<u8>)> = model.clone().into_iter().collect();
    let plain = |(key, value): (Key, Value)| (key.to_vec(), value.to_vec());
    let all: Vec<_> = snapshot.iter(tree).collect::<indexy::Result<_>>()?;
    let all: Vec<_> = all.into_iter().map(plain).collect();
    assert!(all == wanted, "{} entries, not {}", all.len(), wanted.len());
    let back: Vec<_> = snapshot.iter(tree).rev().collect::<indexy::Result<_>>()?;
    let back: Vec<_> = back.into_iter().rev().map(plain).collect();
    assert!(
        back == wanted,
        "from the end: {} entries, not {}",
        back.len(),
        wanted.len()
    );
    let asked: Vec<[u8; 3]> = (0..50).map(|_| key(random.below(KEYS))).collect();
    let found = snapshot.multi_get(tree, &asked)?;
    for (key, found) in asked.iter().zip(found) {
        let wanted = model.get(&key[..]).map(Vec::as_slice);
        assert_eq!(found.as_deref(), wanted, "multi_get {key:?}");
        assert_eq!(snapshot.get(tree, key)?.as_deref(), wanted, "{key:?}");
    }
    let (a, b) = (key(random.below(KEYS)), key(random.below(KEYS)));
    let (a, b) = (a.min(b), a.max(b));
    let part = model.range::<[u8], _>((Bound::Included(&a[..]), Bound::Excluded(&b[..])));
    let found: Vec<_> = snapshot.range(tree, a..b).collect::<indexy::Result<_>>()?;
    assert!(
        found
            .iter()
            .map(|(key, _)| &key[..])
            .eq(part.map(|(key, _)| &key[..]))
    );
    assert_eq!(snapshot.len(tree)?, wanted.len() as u64);
    let ends = |entry: Option<(Key, Value)>| entry.map(|(key, _)| key.to_vec());
    assert_eq!(ends(snapshot.first(tree)?).as_ref(), model.keys().next());
    assert_eq!(
        ends(snapshot.last(tree)?).as_ref(),
        model.keys().next_back()
    );
    Ok(())
}

const KEYS: u64 = 3000;

fn key(n: u64) -> [u8; 3] {
    let [.., a, b] = (n as u16).to_be_bytes();
    [b'k', a, b]
}

/// One write of any kind, in the tree and in its model.
fn write(db: &Db, tree: &Tree, model: &mut Model, random: &mut Random) {
    let k = key(random.below(KEYS));
    let value = vec![random.next() as u8; random.below(400) as usize];
    match random.below(40) {
        0..=20 => {
            tree.insert(k, &value).unwrap();
            model.insert(k.to_vec(), value);
        }
        21..=27 => {
            tree.remove(k).unwrap();
            model.remove(&k[..]);
        }
        28 => assert_eq!(
            tree.take(k).unwrap().as_deref(),
            model.remove(&k[..]).as_deref()
        ),
        29 => {
            tree.update(k, |_| Some(value.clone())).unwrap();
            model.insert(k.to_vec(), value);
        }
        30..=33 => {
            let mut batch = db.batch();
            for _ in 0..random.below(20) {
                let k = key(random.below(KEYS));
                if random.one_in(3) {
                    batch.remove(tree, k);
                    model.remove(&k[..]);
                } else {
                    batch.insert(tree, k, &value);
                    model.insert(k.to_vec(), value.clone());
                }
            }
            batch.commit().unwrap();
        }
        34 if random.one_in(4) => {
            let end = key((u64::from(k[1]) * 256 + u64::from(k[2]) + 100).min(KEYS));
            tree.remove_range(k..end.max(k)).unwrap();
            model.retain(|key, _| key[..] < k[..] || key[..] >= end.max(k)[..]);
        }
        35 if random.one_in(20) => db.flush().unwrap(),
        37 if random.one_in(10) => drop(tree.release(k..).unwrap()),
        // Past X.
        36 if random.one_in(20) => {
            let value = vec![3; 600_000];
            tree.insert(k, &value).unwrap();
            model.insert(k.to_vec(), value);
        }
        // What is read is loaded.
        _ => assert_eq!(
            tree.get(k).unwrap().as_deref(),
            model.get(&k[..]).map(Vec::as_slice)
        ),
    }
}

#[test]
fn i10_a_snapshot_stays_as_it_was() {
    // With hardly any memory for images, all of them go to disk; without disk, snapshots are given
    // up.
    let limits = [(64 << 10, u64::MAX), (2 * MIB, 0)];
    for (pair, (memory, disk)) in pairs::chosen(0, 3)
        .into_iter()
        .flat_map(|pair| limits.map(|l| (pair, l)))
    {
        println!("{} {memory}", pairs::name(pair));
        let dir = fast_dir();
        let options = Options::new(4 * MIB)
            .snapshot_memory_bytes(memory)
            .snapshot_disk_bytes(disk);
        let db = open(dir.path(), &pairs::options(pair, options));
        let tree = db.tree("t").unwrap();
        let mut random = Random(pairs::name(pair).len() as u64);
        let mut model = Model::new();
        let mut open: Vec<(Snapshot, Model)> = Vec::new();
        let (mut checks, mut spilled) = (0, false);
        for step in 0..6000 {
            write(&db, &tree, &mut model, &mut random);
            spilled |= step % 10 == 0 && db.stats().snapshot_disk_bytes > 0;
            if step % 150 == 0 && open.len() < 4 {
                open.push((db.snapshot().unwrap(), model.clone()));
            }
            if step % 97 == 0 && !open.is_empty() {
                let at = random.below(open.len() as u64) as usize;
                let (snapshot, then) = &open[at];
                match check(snapshot, &tree, then, &mut random) {
                    Ok(()) => checks += 1,
                    Err(Error::SnapshotTooOld) if disk == 0 => drop(open.remove(at)),
                    Err(error) => panic!("{error}"),
                }
            }
            if random.one_in(400) && !open.is_empty() {
                open.remove(random.below(open.len() as u64) as usize);
            }
        }
        assert!(checks > 40, "{checks}");
        assert_eq!(spilled, disk > 0);
        drop(open);
        assert_sound(&db);
    }
}

/// Each round overwrites keys that are in Y alone: blind writes leave markers, and cleaning
/// resolves them.
#[test]
fn i12_overwritten_cold_keys_are_read_before_they_go() {
    for pair in pairs::chosen(1, 3) {
        let dir = fast_dir();
        let options = Options::new(8 * MIB).snapshot_memory_bytes(4 * MIB);
        let db = open(dir.path(), &pairs::options(pair, options));
        let tree = db.tree("t").unwrap();
        let fill = |tree: &Tree, round: u8| {
            for n in 0..10_000u32 {
                tree.insert(n.to_be_bytes(), [round; 20]).unwrap();
            }
        };
        fill(&tree, 0);
        db.flush().unwrap();
        // A new handle begins with nothing in X.
        drop((tree, db));
        let db = open(
            dir.path(),
            &pairs::options(pair, Options::new(8 * MIB).snapshot_memory_bytes(4 * MIB)),
        );
        let tree = db.tree("t").unwrap();
        let before = db.snapshot().unwrap();
        fill(&tree, 1);
        let check = |round: u8, snapshot: &Snapshot| {
            for n in (0..10_000u32).step_by(7) {
                let found = snapshot.get(&tree, n.to_be_bytes()).unwrap().unwrap();
                assert_eq!(found, [round; 20], "{n}");
            }
            assert!(
                snapshot
                    .iter(&tree)
                    .all(|entry| entry.unwrap().1 == [round; 20])
            );
        };
        check(0, &before);
        db.flush().unwrap();
        check(0, &before);
        let between = db.snapshot().unwrap();
        tree.clear().unwrap();
        check(0, &before);
        check(1, &between);
        assert!(tree.is_empty().unwrap());
        db.flush().unwrap();
        check(1, &between);
    }
}

/// Threads write pairs of keys by batches, always the same number in both, while others begin
/// snapshots and look.
#[test]
fn i11_a_snapshot_sees_all_of_a_batch_or_nothing() {
    for pair in pairs::chosen(2, 3) {
        let dir = fast_dir();
        let db = open(dir.path(), &pairs::options(pair, Options::new(4 * MIB)));
        let (left, right) = (
            db.tree("l").unwrap(),
            db.tree_with("r", pairs::second(pair)).unwrap(),
        );
        let stop = AtomicBool::new(false);
        std::thread::scope(|s| {
            for thread in 0..2u64 {
                let (db, left, right, stop) = (&db, &left, &right, &stop);
                s.spawn(move || {
                    let mut random = Random(thread);
                    while !stop.load(SeqCst) {
                        let mut batch = db.batch();
                        let number = random.next().to_be_bytes();
                        for _ in 0..=random.below(30) {
                            let key = key(random.below(200));
                            batch.insert(left, key, number);
                            batch.insert(right, key, number);
                        }
                        batch.commit().unwrap();
                    }
                });
            }
            let _stop = StopAtDrop(&stop);
            let until = Instant::now() + Duration::from_secs(3);
            let mut differences = 0;
            while Instant::now() < until {
                let snapshot = db.snapshot().unwrap();
                let entries =
                    |tree| -> Vec<_> { snapshot.iter(tree).map(Result::unwrap).collect() };
                assert!(entries(&left) == entries(&right));
                for n in 0..50 {
                    let k = key(n);
                    assert_eq!(
                        snapshot.get(&left, k).unwrap(),
                        snapshot.get(&right, k).unwrap()
                    );
                    differences += usize::from(left.get(k).unwrap() != right.get(k).unwrap());
                }
            }
            // Without snapshots something else is seen, or the test tests nothing.
            assert!(differences > 0);
        });
    }
}

/// One thread counts two keys up, one after the other, and keeps the first one ahead; a snapshot
/// sees them so. Single writes: nothing but the watch keeps them apart.
#[test]
fn i10_single_writes_are_seen_in_order() {
    let dir = fast_dir();
    let db = open(
        dir.path(),
        &Options::new(4 * MIB).durability(Durability::None),
    );
    let tree = db.tree("t").unwrap();
    let stop = AtomicBool::new(false);
    let number = |value: Option<Value>| {
        value.map_or(0, |value| u64::from_be_bytes(value[..].try_into().unwrap()))
    };
    std::thread::scope(|s| {
        for thread in 0..2u8 {
            let (tree, stop) = (&tree, &stop);
            s.spawn(move || {
                for n in 1u64.. {
                    tree.insert([thread, 0], n.to_be_bytes()).unwrap();
                    tree.insert([thread, 1], n.to_be_bytes()).unwrap();
                    if stop.load(SeqCst) {
                        break;
                    }
                }
            });
        }
        let _stop = StopAtDrop(&stop);
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until {
            let seen = [tree.get([0, 0]).unwrap(), tree.get([1, 0]).unwrap()];
            let snapshot = db.snapshot().unwrap();
            for (thread, seen) in (0..2u8).zip(seen) {
                // The second one first: time passes between the two reads.
                let second = number(snapshot.get(&tree, [thread, 1]).unwrap());
                let first = number(snapshot.get(&tree, [thread, 0]).unwrap());
                assert!(first == second || first == second + 1, "{first} {second}");
                // What somebody has read is in a snapshot that begins later.
                assert!(first >= number(seen));
                let again = number(snapshot.get(&tree, [thread, 0]).unwrap());
                assert_eq!(first, again);
            }
        }
    });
}

#[test]
fn past_its_memory_a_snapshot_without_disk_is_given_up_and_writers_go_on() {
    for pair in pairs::chosen(0, 1) {
        let dir = fast_dir();
        let options = Options::new(4 * MIB).snapshot_disk_bytes(0);
        let db = open(dir.path(), &pairs::options(pair, options));
        let tree = db.tree("t").unwrap();
        let fill = |round: u8| {
            for n in 0..40_000u32 {
                tree.insert(n.to_be_bytes(), [round; 100]).unwrap();
            }
        };
        fill(0);
        let old = db.snapshot().unwrap();
        fill(1);
        assert!(matches!(old.get(&tree, [0; 4]), Err(Error::SnapshotTooOld)));
        assert!(matches!(
            old.iter(&tree).next(),
            Some(Err(Error::SnapshotTooOld))
        ));
        let young = db.snapshot().unwrap();
        tree.insert([0; 4], "new").unwrap();
        assert_eq!(young.get(&tree, [0; 4]).unwrap().unwrap(), [1; 100]);
        assert_sound(&db);
    }
}

/// A sorted load into a range in which keys were removed, on disk and in memory.
#[test]
fn a_snapshot_does_not_see_a_sorted_load() {
    for pair in pairs::chosen(2, 3) {
        let dir = fast_dir();
        let options = Options::new(4 * MIB).snapshot_memory_bytes(64 << 10);
        let db = open(dir.path(), &pairs::options(pair, options));
        let tree = db.tree("t").unwrap();
        let key = |n: u32| n.to_be_bytes();
        for n in 0..3000 {
            tree.insert(key(n), "old").unwrap();
        }
        db.flush().unwrap();
        let first = db.snapshot().unwrap();
        for n in (1000..2000).rev() {
            tree.remove(key(n)).unwrap();
        }
        let second = db.snapshot().unwrap();
        let mut tx = db.begin().unwrap();
        assert_eq!(tx.range(&tree, key(1990)..key(2010)).count(), 10);
        let loaded = (1000..2000).map(|n| (key(n), "loaded"));
        match tree.load_sorted(loaded) {
            Err(Error::Unsupported { .. }) => continue,
            loaded => assert_eq!(loaded.unwrap(), 1000),
        }
        tx.insert(&tree, key(5), "mine").unwrap();
        assert!(matches!(tx.commit(), Err(Error::Conflict { .. })));
        // Of some, two images more.
        for n in (900..2100).step_by(3) {
            tree.insert(key(n), "new").unwrap();
        }
        let third = db.snapshot().unwrap();
        tree.clear().unwrap();
        let expected = |n: u32, which: u32| match which {
            1 => Some("old"),
            2 if (1000..2000).contains(&n) => None,
            3 if (900..2100).contains(&n) && n.is_multiple_of(3) => Some("new"),
            3 if (1000..2000).contains(&n) => Some("loaded"),
            _ => Some("old"),
        };
        for _ in 0..2 {
            for (snapshot, which) in [(&first, 1), (&second, 2), (&third, 3)] {
                let value = |n: u32| expected(n, which).map(str::as_bytes);
                for n in 0..3000 {
                    let found = snapshot.get(&tree, key(n)).unwrap();
                    assert_eq!(found.as_deref(), value(n), "{n} at {which}");
                }
                let entries: Vec<_> = (0..3000)
                    .filter_map(|n| Some((key(n), value(n)?)))
                    .collect();
                let found: Vec<_> = snapshot.iter(&tree).map(Result::unwrap).collect();
                let plain = found.iter().map(|(key, value)| (&**key, &**value));
                assert!(plain.eq(entries.iter().map(|(key, value)| (&key[..], *value))));
                let back = snapshot.iter(&tree).rev().map(|entry| entry.unwrap().0);
                assert!(back.eq(entries.iter().rev().map(|(key, _)| *key)));
            }
            for n in 0..4000 {
                tree.insert(key(n), [7; 50]).unwrap();
            }
            db.flush().unwrap();
        }
        assert_sound(&db);
    }
}

#[test]
fn handles_of_a_snapshot() {
    let (one, other) = (fast_dir(), fast_dir());
    let db = open(one.path(), &Options::new(4 * MIB));
    let foreign = open(other.path(), &Options::new(4 * MIB))
        .tree("t")
        .unwrap();
    let tree = db.tree("t").unwrap();
    let snapshot = db.snapshot().unwrap();
    assert!(matches!(
        snapshot.get(&foreign, "k"),
        Err(Error::ForeignTree)
    ));
    assert!(matches!(
        snapshot.iter(&foreign).next(),
        Some(Err(Error::ForeignTree))
    ));
    // A tree that comes later is empty, one that goes is gone.
    let later = db.tree("later").unwrap();
    later.insert("k", "v").unwrap();
    assert_eq!(snapshot.get(&later, "k").unwrap(), None);
    db.drop_tree("later").unwrap();
    assert!(matches!(
        snapshot.get(&later, "k"),
        Err(Error::TreeDropped { .. })
    ));
    // A scan keeps its snapshot.
    tree.insert("k", "v").unwrap();
    let scan = db.snapshot().unwrap().iter(&tree);
    tree.remove("k").unwrap();
    assert_eq!(scan.count(), 1);
    // From another thread, after every other handle is gone.
    drop((db, tree, later));
    assert!(matches!(
        Db::open(one.path(), Options::new(4 * MIB)),
        Err(Error::Locked { .. })
    ));
    std::thread::spawn(move || drop(snapshot)).join().unwrap();
    let db = open(one.path(), &Options::new(4 * MIB));
    let snapshot = db.snapshot().unwrap();
    let tree = db.tree("t").unwrap();
    db.close().unwrap();
    assert!(matches!(snapshot.get(&tree, "k"), Err(Error::Closed)));
    assert!(matches!(db.snapshot(), Err(Error::Closed)));
}
