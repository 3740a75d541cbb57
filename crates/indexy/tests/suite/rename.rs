//! Renaming trees: live handles, reopening, refusals, races with creations, and faults of the
//! manifest.

use crate::{
    places::fast_dir,
    support::{MIB, assert_sound, child, child_argument, open, shim, tell, wait},
};
use indexy::{Db, Durability, Error, IndexXKind, IndexYKind, Options, Tree, TreeOptions};
use std::{path::Path, sync::Barrier, time::Duration};

fn options() -> Options {
    Options::new(4 * MIB).durability(Durability::Sync)
}

fn get(tree: &Tree, key: &str) -> Option<Vec<u8>> {
    tree.get(key).unwrap().map(|value| value.to_vec())
}

#[test]
fn handles_go_on_working() {
    let dir = fast_dir();
    let db = open(dir.path(), &options());
    let tree = db.tree("old").unwrap();
    for n in 0..5000u32 {
        tree.insert(n.to_be_bytes(), [7; 200]).unwrap();
    }
    db.flush().unwrap();
    let mut range = tree.iter();
    range.next().unwrap().unwrap();
    let mut batch = db.batch();
    batch.insert(&tree, "batched", "1");

    db.rename_tree("old", "new").unwrap();

    assert_eq!(db.tree_names(), ["new"]);
    tree.insert("by the old handle", "2").unwrap();
    batch.commit().unwrap();
    assert_eq!(range.map(Result::unwrap).count(), 4999 + 2);
    let renamed = db.tree("new").unwrap();
    assert_eq!((tree.name(), renamed.name()), ("old", "new"));
    assert_eq!(get(&renamed, "batched"), Some(b"1".to_vec()));
    renamed.insert("by the new handle", "3").unwrap();
    assert_eq!(get(&tree, "by the new handle"), Some(b"3".to_vec()));
    // The old name is free: it is another tree.
    let other = db.tree("old").unwrap();
    assert!(other.is_empty().unwrap());
    other.insert("k", "other").unwrap();
    assert_eq!(get(&tree, "k"), None);
    assert_eq!(db.tree_names(), ["new", "old"]);
    let report = db.verify().unwrap();
    assert!(
        report.is_ok() && report.trees[0].name == "new",
        "{report:?}"
    );

    // Handles follow the tree, not the name: also when it is dropped, whose error has its last
    // name.
    db.drop_tree("new").unwrap();
    match tree.get("batched") {
        Err(Error::TreeDropped { name }) => assert_eq!(name, "new"),
        other => panic!("{other:?}"),
    }
    assert_eq!(get(&other, "k"), Some(b"other".to_vec()));
}

#[test]
fn the_name_and_all_records_survive() {
    for close in [true, false] {
        let dir = fast_dir();
        let db = open(dir.path(), &options());
        let pair = TreeOptions::new()
            .index_x(IndexXKind::BPlus)
            .index_y(IndexYKind::BPlus { page_bytes: 8192 });
        let tree = db.tree_with("old", pair).unwrap();
        tree.insert("before", "1").unwrap();
        db.rename_tree("old", "a").unwrap();
        tree.insert("between", "2").unwrap();
        db.rename_tree("a", "b").unwrap();
        tree.insert("after", "3").unwrap();
        db.tree("old").unwrap().insert("before", "another").unwrap();
        let copy = fast_dir();
        db.checkpoint(copy.path()).unwrap();
        if close {
            db.close().unwrap();
        }
        drop((tree, db));
        for path in [dir.path(), copy.path()] {
            let db = open(path, &options());
            assert_eq!(db.tree_names(), ["b", "old"]);
            let tree = db.tree("b").unwrap();
            assert_eq!(tree.pair().0, IndexXKind::BPlus);
            for (key, value) in [("before", "1"), ("between", "2"), ("after", "3")] {
                assert_eq!(get(&tree, key), Some(value.into()), "close: {close}");
            }
            let other = db.tree("old").unwrap();
            assert_eq!(get(&other, "before"), Some(b"another".to_vec()));
            assert_sound(&db);
        }
    }
}

#[test]
fn what_cannot_be_renamed() {
    let dir = fast_dir();
    let db = open(dir.path(), &options());
    for name in ["a", "b"] {
        db.tree(name).unwrap().insert("k", name).unwrap();
    }
    let long = "x".repeat(256);
    for (new, len) in [("", 0), (long.as_str(), 256)] {
        match db.rename_tree("a", new) {
            Err(Error::InvalidTreeName { len: found }) => assert_eq!(found, len),
            other => panic!("{other:?}"),
        }
    }
    match db.rename_tree("c", "d") {
        Err(Error::NoSuchTree { name }) => assert_eq!(name, "c"),
        other => panic!("{other:?}"),
    }
    for old in ["a", "b"] {
        match db.rename_tree(old, if old == "a" { "b" } else { "a" }) {
            Err(Error::TreeExists { name }) => assert_ne!(name, old),
            other => panic!("{other:?}"),
        }
    }
    db.rename_tree("a", "a").unwrap();
    // The longest name, and one that is no name for a file.
    db.rename_tree("a", &long[1..]).unwrap();
    db.rename_tree(&long[1..], "../a/\0").unwrap();
    assert_eq!(db.tree_names(), ["../a/\0", "b"]);
    db.close().unwrap();
    assert!(matches!(db.rename_tree("b", "c"), Err(Error::Closed)));
    drop(db);

    let db = Db::open(dir.path(), options().read_only(true)).unwrap();
    assert!(matches!(db.rename_tree("b", "c"), Err(Error::ReadOnly)));
    assert_eq!(db.tree_names(), ["../a/\0", "b"]);
}

/// Two renames to one name, and a creation of it: one of the three has it.
#[test]
fn a_name_is_given_once() {
    let dir = fast_dir();
    let db = open(dir.path(), &options());
    for round in 0..20 {
        for name in ["a", "b"] {
            db.tree(name).unwrap().insert("is", name).unwrap();
        }
        let start = Barrier::new(3);
        let (a, b) = std::thread::scope(|s| {
            let rename = |name: &'static str| {
                let (db, start) = (&db, &start);
                s.spawn(move || {
                    start.wait();
                    match db.rename_tree(name, "c") {
                        Ok(()) => true,
                        Err(Error::TreeExists { .. }) => false,
                        Err(error) => panic!("{error:?}"),
                    }
                })
            };
            let (a, b) = (rename("a"), rename("b"));
            start.wait();
            db.tree("c").unwrap();
            (a.join().unwrap(), b.join().unwrap())
        });
        assert!(!(a && b), "round {round}");
        let is = get(&db.tree("c").unwrap(), "is");
        let expected = match (a, b) {
            (true, _) => Some(b"a".to_vec()),
            (_, true) => Some(b"b".to_vec()),
            _ => None,
        };
        assert_eq!(is, expected, "round {round}");
        let mut names = db.tree_names();
        names.sort();
        let expected = match (a, b) {
            (true, _) => vec!["b", "c"],
            (_, true) => vec!["a", "c"],
            _ => vec!["a", "b", "c"],
        };
        assert_eq!(names, expected, "round {round}");
        db.drop_tree("c").unwrap();
    }
}

/// Writers of a tree go on while it is renamed back and forth; nothing of theirs is lost.
#[test]
fn renaming_under_load() {
    let dir = fast_dir();
    let options = options().durability(Durability::Buffered { interval_ms: 5 });
    let db = open(dir.path(), &options);
    let tree = db.tree("a").unwrap();
    std::thread::scope(|s| {
        for t in 0..2u8 {
            let tree = &tree;
            s.spawn(move || {
                for n in 0..20_000u32 {
                    let key = [&[t][..], &n.to_be_bytes()].concat();
                    tree.insert(key, [t; 300]).unwrap();
                }
            });
        }
        for _ in 0..50 {
            db.rename_tree("a", "b").unwrap();
            assert_eq!(db.tree_names(), ["b"]);
            db.rename_tree("b", "a").unwrap();
        }
    });
    db.rename_tree("a", "z").unwrap();
    drop((tree, db));
    let db = open(dir.path(), &options);
    assert_eq!(db.tree_names(), ["z"]);
    assert_eq!(db.tree("z").unwrap().len().unwrap(), 40_000);
    assert_sound(&db);
}

/// A full device leaves the old name and may be tried again; a device that fails poisons, and the
/// next open finds one of the two names with every record.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn faults_of_the_manifest() {
    let dir = fast_dir();
    let shim = shim(dir.path());
    let child = child("rename::faulty_child", "faults")
        .env("LD_PRELOAD", &shim)
        .spawn();
    assert!(wait(child.unwrap(), Duration::from_secs(120)), "see above");
}

#[test]
fn faulty_child() {
    if child_argument().is_none() {
        return;
    }
    for (op, kind) in [
        ("create", "enospc"),
        ("create", "eio"),
        ("write", "enospc"),
        ("write", "eio"),
        ("sync", "eio"),
        ("rename", "enospc"),
        ("rename", "eio"),
    ] {
        let dir = fast_dir();
        fault(dir.path(), op, kind);
    }
}

fn fault(dir: &Path, op: &str, kind: &str) {
    let what = format!("{op} {kind}");
    let db = open(dir, &options());
    let tree = db.tree("old").unwrap();
    tree.insert("k", "v").unwrap();
    tell(&format!("arm/{op}/{kind}/0/once//MANIFEST"));
    let failed = db.rename_tree("old", "new").unwrap_err();
    tell("disarm");
    assert_eq!(get(&tree, "k"), Some(b"v".to_vec()), "{what}");
    assert_eq!(db.tree_names(), ["old"], "{what}");
    let again = db.rename_tree("old", "new");
    match failed {
        Error::OutOfSpace { .. } if kind == "enospc" => {
            again.unwrap();
            assert_eq!(db.tree_names(), ["new"], "{what}");
            tree.insert("k", "v").unwrap();
        }
        Error::Io { .. } if kind == "eio" => {
            assert!(
                matches!(again, Err(Error::Poisoned { .. })),
                "{what}: {again:?}"
            );
        }
        other => panic!("{what}: {other:?}"),
    }
    drop((tree, db));
    let db = open(dir, &options());
    let names = db.tree_names();
    assert!(names == ["old"] || names == ["new"], "{what}: {names:?}");
    assert_eq!(get(&db.tree(&names[0]).unwrap(), "k"), Some(b"v".to_vec()));
    assert_sound(&db);
}
