//! What the closure of `update` may do, and what it gets for the rest.

use crate::{
    places::fast_dir,
    support::{MIB, assert_sound, open},
};
use indexy::{Db, Error, IndexYKind, Options, Tree, error::ErrorKind};
use std::{panic::AssertUnwindSafe, sync::mpsc, time::Duration};

fn database(y: IndexYKind) -> (tempfile::TempDir, Db, Tree) {
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(4 * MIB).index_y(y));
    let tree = db.tree("t").unwrap();
    for i in 0u32..2000 {
        tree.insert(i.to_be_bytes(), i.to_le_bytes()).unwrap();
    }
    (dir, db, tree)
}

/// Runs `test` and fails when it hangs.
fn in_time(test: impl FnOnce() + Send + 'static) {
    let (done, finished) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        done.send(()).unwrap();
    });
    match finished.recv_timeout(Duration::from_secs(60)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        _ => thread.join().unwrap(),
    }
}

fn reentrant<T: std::fmt::Debug>(result: Result<T, Error>) {
    match result {
        Err(error @ Error::Reentrant) => assert_eq!(error.kind(), ErrorKind::Caller),
        other => panic!("{other:?}"),
    }
}

#[test]
fn writes_to_its_own_database_are_refused_and_reads_work() {
    for y in [IndexYKind::Lsm, IndexYKind::BPlus { page_bytes: 4096 }] {
        in_time(move || {
            let (dir, db, tree) = database(y);
            let other = db.tree("other").unwrap();
            other.insert(b"k", b"v").unwrap();
            let key = 7u32.to_be_bytes();
            let mut ran = false;
            let new = tree.update(key, |old| {
                ran = true;
                for tree in [&tree, &other] {
                    for key in [&key[..], b"another"] {
                        reentrant(tree.insert(key, b"x"));
                        reentrant(tree.remove(key));
                        reentrant(tree.take(key));
                        reentrant(tree.compare_and_swap(key, None::<&[u8]>, Some("x")));
                        reentrant(tree.update(key, |_| unreachable!()));
                        let mut batch = db.batch();
                        batch.insert(tree, key, b"x");
                        reentrant(batch.commit());
                    }
                    // It finds something to remove.
                    reentrant(tree.remove_range::<&[u8]>(..));
                }
                reentrant(db.flush());
                reentrant(db.close());
                reentrant(db.drop_tree("other"));
                reentrant(db.tree("new"));
                reentrant(db.verify());
                reentrant(db.checkpoint(dir.path().join("copy")));
                // Reads are consistent with what the closure was given.
                assert_eq!(tree.get(key).unwrap().as_deref(), old);
                assert_eq!(tree.get_with(key, <[u8]>::to_vec).unwrap().as_deref(), old);
                assert_eq!(tree.multi_get([key]).unwrap()[0].as_deref(), old);
                assert!(other.contains_key(b"k").unwrap());
                assert_eq!(tree.range(key..).next().unwrap().unwrap().1, old.unwrap());
                assert!(db.stats().trees == 2);
                Some(b"new".to_vec())
            });
            assert!(ran);
            assert_eq!(new.unwrap().unwrap(), b"new");
            assert_eq!(tree.get(key).unwrap().unwrap(), b"new");
            assert!(other.get(b"another").unwrap().is_none());
            // Afterwards everything is as before.
            tree.insert(key, b"x").unwrap();
            db.flush().unwrap();
            assert_sound(&db);
        });
    }
}

#[test]
fn another_database_may_be_written_and_updated_inside() {
    in_time(|| {
        let (_dir, _db, tree) = database(IndexYKind::Lsm);
        let (_other_dir, other_db, other) = database(IndexYKind::Lsm);
        tree.update(b"a", |_| {
            other.insert(b"b", b"1").unwrap();
            other_db.flush().unwrap();
            other
                .update(b"b", |old| {
                    // Both are being updated.
                    reentrant(tree.insert(b"c", b"1"));
                    reentrant(other.insert(b"c", b"1"));
                    old.map(<[u8]>::to_vec)
                })
                .unwrap();
            reentrant(tree.insert(b"c", b"1"));
            other.insert(b"c", b"2").unwrap();
            None
        })
        .unwrap();
        tree.insert(b"c", b"3").unwrap();
    });
}

#[test]
fn a_panic_inside_lets_everything_go() {
    in_time(|| {
        let (_dir, db, tree) = database(IndexYKind::Lsm);
        let key = 7u32.to_be_bytes();
        for _ in 0..3 {
            let caught = std::panic::catch_unwind(AssertUnwindSafe(|| {
                let _ = tree.update(key, |_| panic!("on purpose"));
            }));
            assert!(caught.is_err());
        }
        assert_eq!(tree.get(key).unwrap().unwrap(), 7u32.to_le_bytes());
        // Neither this thread nor another one is held up.
        tree.insert(key, b"x").unwrap();
        std::thread::scope(|s| {
            s.spawn(|| tree.insert(key, b"y").unwrap());
        });
        assert_eq!(tree.get(key).unwrap().unwrap(), b"y");
        db.close().unwrap();
    });
}
