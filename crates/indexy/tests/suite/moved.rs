//! The directory of an open database is renamed, removed or replaced: the old owner leaves the next
//! one's files alone, and says what happened.

use crate::{
    pairs::{self, Pair},
    places::fast_dir,
    support::{MIB, assert_sound, fingerprint, open},
};
use indexy::{Db, Durability, Error, IndexXKind, IndexYKind, Options, Tree};

const PAIRS: [Pair; 4] = [
    (IndexXKind::Art, IndexYKind::Lsm),
    (IndexXKind::Art, IndexYKind::BPlus { page_bytes: 4096 }),
    (IndexXKind::BPlus, IndexYKind::BPlus { page_bytes: 16384 }),
    (IndexXKind::None, IndexYKind::Lsm),
];

fn options(pair: Pair, durability: Durability) -> Options {
    let options = Options::new(4 * MIB).log_limit_bytes(1 << 20);
    pairs::options(pair, options.durability(durability))
}

fn fill(tree: &Tree, value: u8, keys: u32) {
    for i in 0..keys {
        tree.insert(i.to_be_bytes(), [value; 200]).unwrap();
    }
}

fn check(tree: &Tree, value: u8, keys: u32) {
    for i in 0..keys {
        let found = tree.get(i.to_be_bytes()).unwrap();
        assert_eq!(found.unwrap_or_else(|| panic!("{i}")), [value; 200]);
    }
}

/// What the old owner gets from now on: once what happened, then that it is poisoned by it.
fn assert_moved<T: std::fmt::Debug>(result: Result<T, Error>) {
    match result {
        Err(Error::DirectoryMoved { .. }) => {}
        Err(Error::Poisoned { cause }) if cause.contains("renamed, removed or replaced") => {}
        other => panic!("{other:?}"),
    }
}

/// Everything that writes, with the directory no longer its own.
fn old_owner_tries_everything(db: &Db) {
    let tree = db.tree("t").unwrap();
    // Until the log needs another file, and the memory more room.
    let mut refused = None;
    for i in 0u32..50_000 {
        if let Err(error) = tree.insert(i.to_be_bytes(), [9; 200]) {
            refused = Some(error);
            break;
        }
    }
    if let Some(error) = refused {
        assert_moved(Err::<(), _>(error));
    }
    assert_moved(db.flush());
    assert_moved(db.tree("another"));
    assert_moved(db.drop_tree("t"));
    assert_moved(tree.insert(b"k", b"v"));
    let copies = fast_dir();
    assert_moved(db.checkpoint(copies.path().join("copy")));
    // Reads go on.
    assert!(tree.get(0u32.to_be_bytes()).unwrap().is_some());
}

#[test]
fn the_next_database_at_the_old_path_stays_whole() {
    for (n, pair) in PAIRS.into_iter().enumerate() {
        let durability = [Durability::Sync, Durability::None][n % 2];
        for close in [false, true] {
            let dir = fast_dir();
            let (here, there) = (dir.path().join("here"), dir.path().join("there"));
            let options = options(pair, Durability::default());
            let db = open(&here, &options);
            let tree = db.tree("t").unwrap();
            for version in 1..=3 {
                fill(&tree, version, 4000);
                db.flush().unwrap();
            }
            // In the log alone, durable.
            fill(&tree, 4, 100);
            db.sync().unwrap();
            // Pins files of an older state.
            let mut scan = tree.iter();
            scan.next().unwrap().unwrap();
            std::fs::rename(&here, &there).unwrap();

            let next = open(&here, &options.clone().durability(durability));
            let next_tree = next.tree("t").unwrap();
            fill(&next_tree, 7, 4000);
            next.flush().unwrap();
            // Closed, nothing of its own changes its files; open, its own threads are at work too.
            let before = close.then(|| {
                next.close().unwrap();
                fingerprint(&here)
            });
            old_owner_tries_everything(&db);
            if close {
                assert_moved(db.close());
            }
            drop((scan, tree, db));
            let next = match before {
                Some(before) => {
                    assert!(fingerprint(&here) == before, "{pair:?}: a file changed");
                    open(&here, &options)
                }
                None => next,
            };
            assert_sound(&next);
            let next_tree = next.tree("t").unwrap();
            check(&next_tree, 7, 4000);
            fill(&next_tree, 8, 2000);
            next.close().unwrap();
            drop((next, next_tree));

            let next = open(&here, &options);
            assert_sound(&next);
            check(&next.tree("t").unwrap(), 8, 2000);
            // What was acknowledged is where the directory is now.
            let moved = open(&there, &options);
            assert_sound(&moved);
            let tree = moved.tree("t").unwrap();
            for i in 0u32..4000 {
                let found = tree.get(i.to_be_bytes()).unwrap().unwrap();
                let oldest = if i < 100 { 4 } else { 3 };
                assert!(
                    found[0] == 9 || found[0] == oldest,
                    "{pair:?} {i}: {found:?}"
                );
            }
        }
    }
}

#[test]
fn a_directory_that_is_removed_is_not_made_again() {
    for pair in PAIRS {
        let dir = fast_dir();
        let here = dir.path().join("here");
        let db = open(&here, &options(pair, Durability::default()));
        let tree = db.tree("t").unwrap();
        fill(&tree, 1, 1000);
        db.flush().unwrap();
        // At once: a thread that meets a directory without its files, and with its lock, reports
        // that.
        let gone = dir.path().join("gone");
        std::fs::rename(&here, &gone).unwrap();
        // A compaction may put another file there meanwhile.
        while std::fs::remove_dir_all(&gone).is_err() {}
        assert_moved(db.flush());
        drop((tree, db));
        assert!(!here.exists(), "{pair:?}");
        // And it is free.
        open(&here, &options(pair, Durability::default()));
    }
}

/// Who removes the lock file lets a second owner in: the first one notices.
#[test]
fn a_lock_file_that_is_removed_ends_writing() {
    let dir = fast_dir();
    let options = options(PAIRS[0], Durability::default());
    let db = open(dir.path(), &options);
    fill(&db.tree("t").unwrap(), 1, 1000);
    std::fs::remove_file(dir.path().join("LOCK")).unwrap();
    assert_moved(db.flush());
    drop(db);
    check(&open(dir.path(), &options).tree("t").unwrap(), 1, 1000);
}
