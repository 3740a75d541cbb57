//! A database opened read-only: all of it is there, and not a byte is written.

use crate::support::{MIB, assert_sound, fingerprint, open};
use indexy::{Db, Error, Options};

fn options() -> Options {
    Options::new(4 * MIB)
}

#[test]
fn reads_everything_and_writes_no_byte() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &options());
    let tree = db.tree("t").unwrap();
    for i in 0..20_000u32 {
        tree.insert(i.to_be_bytes(), [i as u8; 100]).unwrap();
    }
    db.flush().unwrap();
    // A part that only the log has.
    for i in 19_000..21_000u32 {
        tree.insert(i.to_be_bytes(), b"logged").unwrap();
    }
    db.sync().unwrap();
    drop((db, tree));
    let before = fingerprint(dir.path());
    let db = open(dir.path(), &options().read_only(true));
    let tree = db.tree("t").unwrap();
    assert!(db.stats().log_bytes > 2000);
    assert_eq!(tree.len().unwrap(), 21_000);
    for i in (0..21_000u32).step_by(13) {
        let value = tree.get(i.to_be_bytes()).unwrap().unwrap();
        if i < 19_000 {
            assert_eq!(value, [i as u8; 100]);
        } else {
            assert_eq!(value, b"logged");
        }
    }
    assert_sound(&db);
    refuses_writes(&db);
    let copy = tempfile::tempdir().unwrap();
    db.checkpoint(copy.path()).unwrap();
    db.close().unwrap();
    drop((db, tree));
    assert!(fingerprint(dir.path()) == before, "something was written");
    let copy = open(copy.path(), &options());
    assert_eq!(copy.tree("t").unwrap().len().unwrap(), 21_000);
}

fn refuses_writes(db: &Db) {
    let tree = db.tree("t").unwrap();
    let refused = |result: indexy::Result<()>| {
        assert!(matches!(result, Err(Error::ReadOnly)), "{result:?}");
    };
    refused(tree.insert(b"k", b"v"));
    refused(tree.remove(b"k"));
    refused(tree.take(b"k").map(|_| ()));
    refused(tree.update(b"k", |_| None).map(|_| ()));
    refused(
        tree.compare_and_swap(b"k", None::<&[u8]>, Some(b"v"))
            .map(|_| ()),
    );
    refused(tree.remove_range::<&[u8]>(..));
    refused(db.flush());
    refused(db.drop_tree("t"));
    let mut batch = db.batch();
    batch.insert(&tree, b"k", b"v");
    refused(batch.commit());
    assert!(matches!(db.tree("new"), Err(Error::NoSuchTree { .. })));
}

#[test]
fn a_log_that_does_not_fit_is_a_typed_error() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &Options::new(64 * MIB));
    let tree = db.tree("t").unwrap();
    for i in 0..10_000u32 {
        tree.insert(i.to_be_bytes(), [i as u8; 1000]).unwrap();
    }
    db.sync().unwrap();
    drop((db, tree));
    let before = fingerprint(dir.path());
    let start = std::time::Instant::now();
    match Db::open(dir.path(), Options::new(2 * MIB).read_only(true)) {
        Err(Error::BudgetTooSmall { minimum_bytes, .. }) => assert!(minimum_bytes > 2 * MIB),
        other => panic!("{other:?}"),
    }
    assert!(start.elapsed().as_secs() < 30);
    let db = open(dir.path(), &Options::new(64 * MIB).read_only(true));
    assert_eq!(db.tree("t").unwrap().len().unwrap(), 10_000);
    drop(db);
    assert!(fingerprint(dir.path()) == before);
}
