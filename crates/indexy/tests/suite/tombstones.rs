//! Many deletes that are in Index Y and not merged away yet: scans that meet them are right, and
//! come to an end.

use crate::{
    pairs,
    places::fast_dir,
    support::{MIB, assert_sound, open},
};
use indexy::{Db, Options, Tree};
use std::time::{Duration, Instant};

const KEYS: u64 = 300_000;
/// Keys that stay, at the end.
const KEPT: u64 = 10;
/// Skipping a delete costs well under a microsecond; this is for a machine with much else to do.
const SANE: Duration = Duration::from_secs(5);

fn in_time<R>(what: &str, work: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = work();
    let took = start.elapsed();
    println!("{what}: {took:?}");
    assert!(took < SANE, "{what} took {took:?}");
    result
}

fn number(entry: (indexy::Key, indexy::Value)) -> u64 {
    u64::from_be_bytes(entry.0[..].try_into().unwrap())
}

fn some(range: impl Iterator<Item = indexy::Result<(indexy::Key, indexy::Value)>>) -> Vec<u64> {
    range.take(5).map(|e| number(e.unwrap())).collect()
}

/// `KEYS` in Y, and deletes of nearly all of them in a run above.
fn removed(db: &Db) -> Tree {
    let tree = db.tree("t").unwrap();
    for n in 0..KEYS {
        tree.insert(n.to_be_bytes(), b"v").unwrap();
    }
    db.flush().unwrap();
    for n in 0..KEYS - KEPT {
        tree.remove(n.to_be_bytes()).unwrap();
    }
    db.flush().unwrap();
    tree
}

#[test]
fn i9_scans_over_deletes_that_are_not_merged_away() {
    for pair in ["art-lsm", "bplus-lsm", "art-bplus:4096"] {
        let pair = pairs::named(pair);
        println!("{}", pairs::name(pair));
        let dir = fast_dir();
        // So large that nothing goes to Y but by the two flushes, too little for Y to merge.
        let options = pairs::options(pair, Options::new(128 * MIB));
        let db = open(dir.path(), &options);
        drop(removed(&db));
        db.close().unwrap();
        drop(db);
        // Read-only: otherwise an LSM tree merges the two, if it has not done so by now.
        let db = open(dir.path(), &options.clone().read_only(true));
        let tree = db.tree("t").unwrap();
        let first = in_time("first", || tree.first().unwrap().map(number));
        assert_eq!(first, Some(KEYS - KEPT));
        let last = in_time("last", || tree.last().unwrap().map(number));
        assert_eq!(last, Some(KEYS - 1));
        let kept: Vec<u64> = (KEYS - KEPT..KEYS).collect();
        let found = in_time("a short scan", || some(tree.range(7u64.to_be_bytes()..)));
        assert_eq!(found, kept[..5]);
        let end = (KEYS - KEPT + 1).to_be_bytes();
        let found = in_time("a short scan back", || some(tree.range(..end).rev()));
        assert_eq!(found, kept[..1]);
        let middle = 1000u64.to_be_bytes()..(KEYS / 2).to_be_bytes();
        let found = in_time("nothing at all", || some(tree.range(middle)));
        assert_eq!(found, [0; 0]);
        assert_eq!(in_time("len", || tree.len().unwrap()), KEPT);
        assert!(!in_time("is_empty", || tree.is_empty().unwrap()));
        db.close().unwrap();
        drop((db, tree));
        let db = open(dir.path(), &options);
        let tree = db.tree("t").unwrap();
        // What goes on beside: neither writers nor a close wait for such a scan.
        std::thread::scope(|s| {
            let scans = s.spawn(|| (0..5).for_each(|_| assert!(tree.first().unwrap().is_some())));
            in_time("a write and a flush beside scans", || {
                tree.insert(KEYS.to_be_bytes(), b"v").unwrap();
                db.flush().unwrap();
            });
            scans.join().unwrap();
        });
        assert_sound(&db);
        in_time("close", || db.close().unwrap());
    }
}

/// Design 2.2: once Y is empty, its mounts are cleared in passing, and absent keys are answered by
/// X alone.
#[test]
fn mounts_of_an_empty_y_are_cleared() {
    const KEYS: u64 = 60_000;
    let dir = fast_dir();
    // A Y that knows at once that it is empty.
    let options = pairs::options(pairs::named("art-bplus:4096"), Options::new(4 * MIB));
    let db = open(dir.path(), &options);
    let tree = db.tree("t").unwrap();
    let ticks = db.tree("ticks").unwrap();
    for n in 0..KEYS {
        tree.insert(n.to_be_bytes(), [7; 100]).unwrap();
    }
    for n in 0..KEYS {
        tree.remove(n.to_be_bytes()).unwrap();
    }
    db.flush().unwrap();
    assert!(tree.is_empty().unwrap());
    // Passes are due by the number of writes, in whatever tree.
    let cleared = (0..100u64).any(|round| {
        for n in 0..20_000 {
            ticks
                .insert((n % 1000u64).to_be_bytes(), round.to_be_bytes())
                .unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
        let before = db.stats();
        for n in 0..KEYS / 50 {
            assert_eq!(tree.get((n * 50).to_be_bytes()).unwrap(), None);
        }
        let after = db.stats();
        let alone = after.absent_without_io - before.absent_without_io;
        after.y_reads == before.y_reads && alone == KEYS / 50
    });
    assert!(cleared, "{:?}", db.stats());
    tree.insert(b"k", b"v").unwrap();
    assert_eq!(tree.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
    assert_sound(&db);
}
