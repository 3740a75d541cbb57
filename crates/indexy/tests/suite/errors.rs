//! Every typed error of the API, and that nothing happened when it came.

use crate::support::{MIB, child, child_argument, open, wait};
use indexy::{
    Db, Durability, Error, IndexYKind, Options, Tree, TreeOptions,
    limits::{
        MAX_KEY_BYTES, MAX_MEMORY_BUDGET_BYTES, MAX_TREE_NAME_BYTES, MAX_VALUE_BYTES,
        MIN_MEMORY_BUDGET_BYTES,
    },
};
use std::{path::Path, time::Duration};

fn options() -> Options {
    Options::new(4 * MIB)
}

fn database() -> (tempfile::TempDir, Db, Tree) {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &options());
    let tree = db.tree("t").unwrap();
    (dir, db, tree)
}

macro_rules! assert_err {
    ($result:expr, $pattern:pat $(if $guard:expr)?) => {
        match $result {
            Err($pattern) $(if $guard)? => {}
            other => panic!("expected {}, got {other:?}", stringify!($pattern)),
        }
    };
}

#[test]
fn keys_over_the_limit() {
    let (_dir, db, tree) = database();
    let key = vec![7; MAX_KEY_BYTES + 1];
    let refused = |result: indexy::Result<()>| {
        assert_err!(
            result,
            Error::KeyTooLong { len, limit }
                if len == MAX_KEY_BYTES + 1 && limit == MAX_KEY_BYTES
        );
    };
    refused(tree.insert(&key, b"v"));
    refused(tree.get(&key).map(|_| ()));
    refused(tree.get_with(&key, |_| ()).map(|_| ()));
    refused(tree.contains_key(&key).map(|_| ()));
    refused(tree.multi_get([&key]).map(|_| ()));
    refused(tree.remove(&key));
    refused(tree.take(&key).map(|_| ()));
    refused(
        tree.compare_and_swap(&key, None::<&[u8]>, Some(b"v"))
            .map(|_| ()),
    );
    refused(tree.update(&key, |_| Some(vec![])).map(|_| ()));
    let mut batch = db.batch();
    batch.insert(&tree, b"innocent", b"v");
    batch.insert(&tree, &key, b"v");
    refused(batch.commit());
    assert!(tree.is_empty().unwrap(), "nothing was written");
    tree.insert(&key[1..], b"longest").unwrap();
    assert_eq!(tree.get(&key[1..]).unwrap().unwrap(), b"longest");
}

#[test]
fn values_over_the_limit() {
    let (_dir, db, tree) = database();
    let value = vec![0; MAX_VALUE_BYTES + 1];
    let refused = |result: indexy::Result<()>| {
        assert_err!(
            result,
            Error::ValueTooLong { len, limit }
                if len == MAX_VALUE_BYTES + 1 && limit == MAX_VALUE_BYTES
        );
    };
    refused(tree.insert(b"k", &value));
    refused(
        tree.compare_and_swap(b"k", None::<&[u8]>, Some(&value))
            .map(|_| ()),
    );
    refused(tree.update(b"k", |_| Some(value.clone())).map(|_| ()));
    let mut batch = db.batch();
    batch.insert(&tree, b"k", &value);
    refused(batch.commit());
    assert!(tree.is_empty().unwrap());
}

#[test]
fn ends_of_ranges_have_no_limit() {
    let (_dir, _db, tree) = database();
    let longest = vec![b'k'; MAX_KEY_BYTES];
    tree.insert(&longest, b"1").unwrap();
    tree.insert(b"l", b"2").unwrap();
    let long = vec![b'k'; 200_000];
    assert_eq!(tree.range(&long[..]..).count(), 1, "only `l` comes after");
    assert_eq!(tree.range(..&long[..]).count(), 1);
    assert_eq!(tree.range(..=&long[..]).count(), 1);
    assert_eq!(tree.range(&longest[..]..).count(), 2);
    assert_eq!(tree.range(..=&longest[..]).rev().count(), 1);
    assert_eq!(tree.prefix(&long).count(), 0);
    assert_eq!(tree.prefix(&longest).count(), 1);
    tree.remove_range(..&long[..]).unwrap();
    assert_eq!(tree.len().unwrap(), 1);
}

#[test]
fn budgets_below_the_minimum() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let small = MIN_MEMORY_BUDGET_BYTES - 1;
    assert_err!(
        Db::open(&path, Options::new(small)),
        Error::BudgetTooSmall { budget_bytes, minimum_bytes: MIN_MEMORY_BUDGET_BYTES }
            if budget_bytes == small
    );
    assert!(!path.exists(), "nothing was made");
    let db = Db::open(&path, Options::new(MIN_MEMORY_BUDGET_BYTES)).unwrap();
    assert_err!(db.set_memory_budget(small), Error::BudgetTooSmall { .. });
    assert_eq!(
        db.stats().memory_budget_bytes,
        MIN_MEMORY_BUDGET_BYTES as u64
    );
    db.tree("t").unwrap().insert(b"k", b"v").unwrap();
}

/// More than any machine has is taken for what the machine has, and what no number can hold is
/// refused.
#[test]
fn budgets_above_all_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    assert_err!(
        Db::open(&path, Options::new(usize::MAX)),
        Error::InvalidOption { option, .. } if option == "memory_budget_bytes"
    );
    assert!(!path.exists(), "nothing was made");
    for pair in [IndexYKind::Lsm, IndexYKind::BPlus { page_bytes: 4096 }] {
        let options = Options::new(MAX_MEMORY_BUDGET_BYTES).index_y(pair);
        let db = Db::open(&path, options).unwrap();
        let tree = db.tree(&pair.to_string()).unwrap();
        tree.insert(b"k", b"v").unwrap();
        assert_err!(
            db.set_memory_budget(usize::MAX),
            Error::InvalidOption { .. }
        );
        db.set_memory_budget(MAX_MEMORY_BUDGET_BYTES).unwrap();
        assert_eq!(tree.get(b"k").unwrap().unwrap(), *b"v");
        db.close().unwrap();
    }
}

#[test]
fn options_that_cannot_work() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let zero = options().durability(Durability::Buffered { interval_ms: 0 });
    assert_err!(
        Db::open(&path, zero),
        Error::InvalidOption { option, .. } if option == "durability"
    );
    let paged = IndexYKind::BPlus { page_bytes: 5000 };
    assert_err!(
        Db::open(&path, options().index_y(paged)),
        Error::Unsupported { .. }
    );
    assert!(!path.exists());
    let db = Db::open(&path, options()).unwrap();
    let unsupported = TreeOptions::new().index_y(paged);
    assert_err!(db.tree_with("t", unsupported), Error::Unsupported { .. });
    assert_eq!(db.tree_names(), [] as [String; 0]);
}

#[test]
fn names_of_trees() {
    let (dir, db, _tree) = database();
    assert_err!(db.tree(""), Error::InvalidTreeName { len: 0 });
    let long = "n".repeat(MAX_TREE_NAME_BYTES + 1);
    assert_err!(db.tree(&long), Error::InvalidTreeName { len } if len == MAX_TREE_NAME_BYTES + 1);
    let odd = [
        "../../escape",
        "/etc/passwd",
        "a\0b",
        "ü 漢字 🜂",
        &long[1..],
        ".",
    ];
    for name in odd {
        db.tree(name).unwrap().insert(b"k", name).unwrap();
    }
    assert!(!dir.path().parent().unwrap().join("escape").exists());
    db.close().unwrap();
    let db = open(dir.path(), &options());
    for name in odd {
        assert_eq!(
            db.tree(name).unwrap().get(b"k").unwrap().unwrap(),
            name.as_bytes()
        );
    }
    assert_eq!(db.tree_names().len(), odd.len() + 1);
}

#[test]
fn a_tree_with_another_pair() {
    let (dir, db, _tree) = database();
    db.tree_with("r", TreeOptions::new().resident(true))
        .unwrap();
    db.tree("r").unwrap();
    for _ in 0..2 {
        let db = Db::clone(&db);
        assert_err!(
            db.tree_with("r", TreeOptions::new().resident(false)),
            Error::TreeMismatch { name, .. } if name == "r"
        );
        assert_err!(
            db.tree_with("t", TreeOptions::new().index_y(IndexYKind::RocksDb)),
            Error::TreeMismatch { .. }
        );
    }
    db.close().unwrap();
    let db = open(dir.path(), &options());
    assert_err!(
        db.tree_with("r", TreeOptions::new().resident(false)),
        Error::TreeMismatch { .. }
    );
    db.tree_with("r", TreeOptions::new().resident(true))
        .unwrap();
}

#[test]
fn no_database() {
    let dir = tempfile::tempdir().unwrap();
    let absent = dir.path().join("absent");
    for path in [&absent, dir.path()] {
        for options in [
            options().create_if_missing(false),
            options().read_only(true),
            options().read_only(true).create_if_missing(true),
        ] {
            assert_err!(Db::open(path, options), Error::NoDatabase { .. });
        }
    }
    assert!(!absent.exists());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_directory_of_somebody_else() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("thesis.txt"), "words").unwrap();
    assert_err!(
        Db::open(dir.path(), options()),
        Error::DestinationNotEmpty { .. }
    );
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    let file = dir.path().join("thesis.txt");
    assert_err!(Db::open(&file, options()), Error::NotADirectory { .. });
    assert_eq!(std::fs::read(&file).unwrap(), b"words");
}

#[test]
fn a_database_without_its_manifest_is_not_made_anew() {
    let (dir, db, tree) = database();
    tree.insert(b"k", b"v").unwrap();
    db.close().unwrap();
    let manifest = dir.path().join("MANIFEST");
    std::fs::rename(&manifest, dir.path().join("kept")).unwrap();
    for options in [options(), options().read_only(true)] {
        assert_err!(Db::open(dir.path(), options), Error::Corrupt { path, .. } if path == manifest);
    }
    std::fs::rename(dir.path().join("kept"), &manifest).unwrap();
    let db = open(dir.path(), &options());
    assert_eq!(db.tree("t").unwrap().get(b"k").unwrap().unwrap(), b"v");
}

#[test]
fn a_tree_without_its_files_is_not_made_anew() {
    let page_bytes = 4096;
    for y in [IndexYKind::Lsm, IndexYKind::BPlus { page_bytes }] {
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path(), &options().index_y(y));
        db.tree("t").unwrap().insert(b"k", b"v").unwrap();
        db.close().unwrap();
        let (files, kept) = (dir.path().join("trees/1"), dir.path().join("kept"));
        std::fs::rename(&files, &kept).unwrap();
        for there in [false, true] {
            if there {
                std::fs::create_dir(&files).unwrap();
            }
            for options in [options(), options().read_only(true)] {
                assert_err!(
                    Db::open(dir.path(), options),
                    Error::Corrupt { path, .. } if path == files
                );
            }
        }
        std::fs::remove_dir(&files).unwrap();
        std::fs::rename(&kept, &files).unwrap();
        let db = open(dir.path(), &options());
        assert_eq!(db.tree("t").unwrap().get(b"k").unwrap().unwrap(), b"v");
    }
}

#[test]
fn a_database_without_its_lock_file_opens() {
    let (dir, db, tree) = database();
    tree.insert(b"k", b"v").unwrap();
    db.close().unwrap();
    std::fs::remove_file(dir.path().join("LOCK")).unwrap();
    let db = open(dir.path(), &options());
    assert_eq!(db.tree("t").unwrap().get(b"k").unwrap().unwrap(), b"v");
}

#[test]
fn checkpoints_go_to_empty_places() {
    let (dir, db, tree) = database();
    tree.insert(b"k", b"v").unwrap();
    let dest = tempfile::tempdir().unwrap();
    std::fs::write(dest.path().join("file"), "x").unwrap();
    for path in [dest.path(), &dest.path().join("file"), dir.path()] {
        assert_err!(db.checkpoint(path), Error::DestinationNotEmpty { .. });
    }
    assert_eq!(std::fs::read_dir(dest.path()).unwrap().count(), 1);
    db.checkpoint(dest.path().join("deep/er")).unwrap();
    std::fs::create_dir(dest.path().join("empty")).unwrap();
    db.checkpoint(dest.path().join("empty")).unwrap();
}

#[test]
fn another_format_version() {
    let (dir, db, _tree) = database();
    db.close().unwrap();
    let path = dir.path().join("MANIFEST");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8..12].copy_from_slice(&77u32.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[8..16]), &bytes[20..]);
    bytes[16..20].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    for options in [options(), options().read_only(true)] {
        assert_err!(
            Db::open(dir.path(), options),
            Error::FormatVersion { found: 77, path: p, .. } if p == path
        );
    }
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_directory_in_use() {
    let (dir, db, _tree) = database();
    assert_err!(Db::open(dir.path(), options()), Error::Locked { .. });
    assert_err!(
        Db::open(dir.path(), options().read_only(true)),
        Error::Locked { .. }
    );
    let locked = child("errors::in_use_child", dir.path().to_str().unwrap());
    assert!(wait({ locked }.spawn().unwrap(), Duration::from_secs(60)));
    db.close().unwrap();
    // Closed, although handles live.
    let again = open(dir.path(), &options());
    drop(again);
    let readers: Vec<_> = (0..2)
        .map(|_| open(dir.path(), &options().read_only(true)))
        .collect();
    assert_err!(Db::open(dir.path(), options()), Error::Locked { .. });
    drop(readers);
    open(dir.path(), &options());
}

#[test]
fn in_use_child() {
    if let Some(path) = child_argument() {
        assert_err!(Db::open(Path::new(&path), options()), Error::Locked { .. });
    }
}

#[test]
fn dropped_trees() {
    let (dir, db, tree) = database();
    tree.insert(b"k", b"v").unwrap();
    let mut scan = tree.iter();
    let mut batch = db.batch();
    let other = db.tree("other").unwrap();
    batch.insert(&other, b"k", b"v");
    batch.insert(&tree, b"k", b"v");
    db.drop_tree("t").unwrap();
    let dropped = |result: indexy::Result<()>| {
        assert_err!(result, Error::TreeDropped { name } if name == "t");
    };
    dropped(tree.insert(b"k", b"w"));
    dropped(tree.get(b"k").map(|_| ()));
    dropped(tree.multi_get([b"k"]).map(|_| ()));
    dropped(tree.remove(b"k"));
    dropped(tree.take(b"k").map(|_| ()));
    dropped(tree.update(b"k", |_| None).map(|_| ()));
    dropped(
        tree.compare_and_swap(b"k", Some(b"v"), None::<&[u8]>)
            .map(|_| ()),
    );
    dropped(tree.first().map(|_| ()));
    dropped(tree.len().map(|_| ()));
    dropped(tree.remove_range::<&[u8]>(..));
    dropped(scan.try_for_each(|e| e.map(|_| ())));
    drop(scan);
    dropped(batch.commit());
    assert!(other.is_empty().unwrap(), "a batch is whole or not at all");
    assert_err!(db.drop_tree("t"), Error::NoSuchTree { .. });
    assert_eq!(db.tree_names(), ["other"]);
    // The name is free for another tree, which is empty.
    let again = db.tree("t").unwrap();
    assert!(again.is_empty().unwrap());
    again.insert(b"k", b"new").unwrap();
    dropped(tree.get(b"k").map(|_| ()));
    drop((db, other, tree, again));
    let db = open(dir.path(), &options());
    assert_eq!(db.tree("t").unwrap().get(b"k").unwrap().unwrap(), b"new");
    let folders = std::fs::read_dir(dir.path().join("trees")).unwrap().count();
    assert_eq!(folders, 2);
}

#[test]
fn a_closed_database() {
    let (_dir, db, tree) = database();
    tree.insert(b"k", b"v").unwrap();
    let clone = db.clone();
    let mut scan = tree.iter();
    let mut batch = db.batch();
    batch.insert(&tree, b"k", b"w");
    db.close().unwrap();
    clone.close().unwrap();
    let closed = |result: indexy::Result<()>| assert_err!(result, Error::Closed);
    closed(tree.insert(b"k", b"w"));
    closed(tree.get(b"k").map(|_| ()));
    closed(tree.take(b"k").map(|_| ()));
    closed(tree.len().map(|_| ()));
    closed(scan.try_for_each(|e| e.map(|_| ())));
    drop(scan);
    closed(batch.commit());
    closed(clone.tree("t").map(|_| ()));
    closed(clone.drop_tree("t"));
    closed(clone.flush());
    closed(clone.sync());
    closed(clone.verify().map(|_| ()));
    closed(clone.checkpoint("/nowhere"));
    closed(clone.set_memory_budget(64 * MIB));
    let _ = clone.stats();
    let _ = clone.tree_names();
}

#[test]
fn trees_of_another_database() {
    let (_dir, db, tree) = database();
    let (_other_dir, _other, foreign) = database();
    let mut batch = db.batch();
    batch.insert(&tree, b"k", b"v");
    batch.insert(&foreign, b"k", b"v");
    assert_err!(batch.commit(), Error::ForeignTree);
    assert!(tree.is_empty().unwrap() && foreign.is_empty().unwrap());
}

#[test]
fn batches_over_the_limit() {
    let (_dir, db, tree) = database();
    let fill = |values: usize| {
        let mut batch = db.batch();
        for i in 0..values as u32 {
            batch.insert(&tree, i.to_be_bytes(), vec![1; 1000]);
        }
        batch.commit()
    };
    let limit = match fill(4 * MIB / 1000) {
        Err(Error::BatchTooLarge { bytes, limit }) if bytes > limit => limit,
        other => panic!("{other:?}"),
    };
    assert!(tree.is_empty().unwrap());
    // Just below, over and over: more than the budget in all.
    for _ in 0..10 {
        fill(limit / 1100).unwrap();
    }
    assert_eq!(tree.len().unwrap(), (limit / 1100) as u64);
}

#[test]
fn resident_trees_that_do_not_fit() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &options());
    let resident = db
        .tree_with("resident", TreeOptions::new().resident(true))
        .unwrap();
    let other = db.tree("other").unwrap();
    other.insert(b"k", b"v").unwrap();
    let mut written = 0u32;
    let error = loop {
        assert!(written < 400_000, "forty times the budget fits");
        match resident.insert(written.to_be_bytes(), [7; 100]) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, Error::ResidentTreesTooLarge { .. }),
        "{error:?}"
    );
    assert!(written > 5_000, "only {written} fit");
    // Everything else goes on, and so does the tree once there is room.
    for i in (0..written).step_by(97) {
        assert_eq!(resident.get(i.to_be_bytes()).unwrap().unwrap(), [7; 100]);
    }
    assert_eq!(other.get(b"k").unwrap().unwrap(), b"v");
    db.set_memory_budget(16 * MIB).unwrap();
    for i in written..written + 1000 {
        resident.insert(i.to_be_bytes(), [8; 100]).unwrap();
    }
    other.insert(b"k", b"w").unwrap();
    assert_eq!(resident.len().unwrap(), u64::from(written) + 1000);
}

/// The newest segment of the log: nothing is changed, in no tree either.
#[test]
fn another_format_version_of_the_log() {
    let (dir, db, tree) = database();
    tree.insert("key", "value").unwrap();
    db.sync().unwrap();
    drop((db, tree));
    let log = std::fs::read_dir(dir.path().join("log")).unwrap();
    let newest = log.map(|entry| entry.unwrap().path()).max().unwrap();
    let mut bytes = std::fs::read(&newest).unwrap();
    bytes[8..12].copy_from_slice(&77u32.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..60]);
    bytes[60..64].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(&newest, &bytes).unwrap();
    // What a crash left, and an open would remove.
    let orphan = dir.path().join("trees/99");
    std::fs::create_dir(&orphan).unwrap();
    for options in [options(), options().read_only(true)] {
        assert_err!(
            Db::open(dir.path(), options),
            Error::FormatVersion { found: 77, path: p, .. } if p == newest
        );
    }
    assert!(orphan.exists());
}
