//! A forked child has a copy of the handles and none of the threads: dropping them does nothing to
//! the parent's files and lock, and ends.

use crate::{
    places::fast_dir,
    support::{MIB, assert_sound, child, child_argument, open, wait},
};
use indexy::{Db, Durability, Error, IndexYKind, Options};
use std::time::Duration;

/// A child that hangs is ended by its alarm, which is no exit.
const ALARM_S: u32 = 20;

/// In a process of its own, so that no other test's thread holds a lock when it forks.
#[test]
fn a_forked_child_leaves_the_database_to_its_parent() {
    for y in ["lsm", "bplus"] {
        let started = child("forked::forking_process", y).spawn().unwrap();
        assert!(wait(started, Duration::from_secs(120)), "{y}");
    }
}

#[test]
fn forking_process() {
    let Some(y) = child_argument() else {
        return;
    };
    let y = match y.as_str() {
        "lsm" => IndexYKind::Lsm,
        _ => IndexYKind::BPlus { page_bytes: 4096 },
    };
    for durability in [Durability::default(), Durability::None, Durability::Sync] {
        let options = Options::new(4 * MIB).index_y(y).durability(durability);
        let dir = fast_dir();
        let db = open(dir.path(), &options);
        let (tree, gone) = (db.tree("t").unwrap(), db.tree("gone").unwrap());
        for i in 0u32..3000 {
            tree.insert(i.to_be_bytes(), [1; 100]).unwrap();
            gone.insert(i.to_be_bytes(), [1; 100]).unwrap();
        }
        db.flush().unwrap();
        tree.insert(b"late", b"1").unwrap();
        db.drop_tree("gone").unwrap();
        let mut batch = db.batch();
        batch.insert(&tree, b"k", b"v");
        let mut range = tree.iter();
        range.next().unwrap().unwrap();
        // SAFETY: the child uses what it inherits, and nothing that another thread may have locked.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            // SAFETY: sets a timer.
            unsafe { libc::alarm(ALARM_S) };
            let refused =
                |result: indexy::Result<()>| matches!(result, Err(Error::Unsupported { .. }));
            let good = refused(db.flush())
                // What it logs never reaches the parent's file.
                && (durability != Durability::Sync || refused(tree.insert(b"child", b"1")))
                && refused(db.close())
                && refused(db.drop_tree("t"))
                && matches!(
                    Db::open(dir.path(), options.clone()),
                    Err(Error::Locked {
                        this_process: false,
                        ..
                    })
                );
            drop((range, batch, gone, tree, db));
            // SAFETY: ends the child at once, without what the test's process does at its end.
            unsafe { libc::_exit(if good { 7 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: `status` is written to.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        assert!(libc::WIFEXITED(status), "the child hangs");
        assert_eq!(libc::WEXITSTATUS(status), 7);
        // The lock is still the parent's, and so is all else.
        assert!(matches!(
            Db::open(dir.path(), options.clone()),
            Err(Error::Locked {
                this_process: true,
                ..
            })
        ));
        for i in 0u32..3000 {
            tree.insert(i.to_be_bytes(), [2; 100]).unwrap();
        }
        batch.commit().unwrap();
        assert_sound(&db);
        db.close().unwrap();
        drop((range, gone, tree, db));
        let db = open(dir.path(), &options);
        assert_sound(&db);
        assert_eq!(db.tree("t").unwrap().len().unwrap(), 3002);
    }
}
