//! What `stats` says of the disk, and that `compact` gives back what holds nothing of use.

use crate::{
    pairs,
    places::fast_dir,
    support::{MIB, assert_sound, open},
};
use indexy::{Compacted, Db, IndexYKind, Options, Tree, TreeOptions, TreeStats};
use std::time::{Duration, Instant};

const KEYS: u64 = 40_000;

fn load(db: &Db, tree: &Tree, value: u8) {
    for n in 0..KEYS {
        // Every key once, in no order.
        let key = n * 7919 % KEYS;
        tree.insert(key.to_be_bytes(), [value; 100]).unwrap();
    }
    db.flush().unwrap();
}

/// Compacts the whole tree; what was told on the way agrees with the answer.
fn compact(tree: &Tree) -> Compacted {
    let mut told = Vec::new();
    let done = tree.compact_with::<&[u8]>(.., |at| told.push(at)).unwrap();
    // After each step, and so after the last one.
    let steps = told.iter().map(|at| at.steps);
    assert!(steps.eq(1..=done.steps), "{done:?}: {told:?}");
    assert!(told.iter().all(|at| at.bytes_before == done.bytes_before));
    assert!(
        told.last()
            .is_none_or(|at| at.bytes_after >= done.bytes_after)
    );
    assert!(tree.stats().y_bytes_on_disk <= done.bytes_after);
    done
}

#[test]
fn what_was_overwritten_and_removed_comes_back() {
    for pair in pairs::chosen(0, 2) {
        let dir = fast_dir();
        let db = open(dir.path(), &pairs::options(pair, Options::new(16 * MIB)));
        let tree = db.tree("t").unwrap();
        load(&db, &tree, 1);
        let once = compact(&tree).bytes_after;
        load(&db, &tree, 2);
        let twice = compact(&tree).bytes_after;
        assert!(twice * 10 <= once * 11, "{pair:?}: {once} and {twice}");
        let stats = tree.stats();
        assert!(
            stats.y_dead_bytes * 10 <= stats.y_bytes_on_disk,
            "{stats:?}"
        );
        for n in 0..KEYS {
            assert_eq!(tree.get(n.to_be_bytes()).unwrap().unwrap(), [2; 100]);
        }
        for n in 0..KEYS {
            tree.remove(n.to_be_bytes()).unwrap();
        }
        db.flush().unwrap();
        let emptied = compact(&tree).bytes_after;
        assert!(emptied <= 1 << 20, "{pair:?}: {emptied}");
        assert_sound(&db);
    }
}

#[test]
fn progress_is_told_while_there_is_work() {
    for y in [IndexYKind::Lsm, IndexYKind::BPlus { page_bytes: 4096 }] {
        let dir = fast_dir();
        let db = open(dir.path(), &Options::new(16 * MIB).index_y(y));
        let tree = db.tree("t").unwrap();
        // More than a step of a paged tree looks at.
        for value in 1..=2u8 {
            for n in 0..10_000u64 {
                let key = n * 7919 % 10_000;
                tree.insert(key.to_be_bytes(), [value; 1000]).unwrap();
            }
            db.flush().unwrap();
        }
        assert!(compact(&tree).steps > 0, "{y}");
        // All was done when the last step was told.
        assert_eq!(compact(&tree).steps, 0, "{y}");
    }
}

#[test]
fn dead_bytes_are_those_of_all_trees() {
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(16 * MIB));
    let kinds = [
        ("lsm", IndexYKind::Lsm),
        ("paged", IndexYKind::BPlus { page_bytes: 4096 }),
    ];
    for (name, kind) in kinds {
        let options = TreeOptions::new().index_y(kind);
        let tree = db.tree_with(name, options).unwrap();
        load(&db, &tree, 1);
        let before = tree.stats().y_bytes_on_disk;
        // What was removed one by one is known when it is merged; a range at once.
        let half = KEYS / 4..KEYS * 3 / 4;
        tree.remove_range(half.start.to_be_bytes()..half.end.to_be_bytes())
            .unwrap();
        db.flush().unwrap();
        let stats = tree.stats();
        let live = stats.y_bytes_on_disk - stats.y_dead_bytes;
        assert!(live * 4 < before * 3, "{name}: {before} before, {stats:?}");
        if name == "paged" {
            // Nobody but `compact` gives its holes back; an LSM tree may merge at once.
            assert!(stats.y_dead_bytes * 4 > before, "{stats:?}");
        }
    }
    let until = Instant::now() + Duration::from_secs(60);
    while db.stats().y_unsettled > 0 {
        assert!(Instant::now() < until, "merges go on");
        std::thread::sleep(Duration::from_millis(50));
    }
    let trees = ["lsm", "paged"].map(|name| db.tree(name).unwrap().stats());
    let all = db.stats();
    let sum = |of: fn(&TreeStats) -> u64| trees.iter().map(of).sum::<u64>();
    assert_eq!(all.y_dead_bytes, sum(|tree| tree.y_dead_bytes));
    assert_eq!(all.y_bytes_on_disk, sum(|tree| tree.y_bytes_on_disk));
}
