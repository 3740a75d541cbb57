//! How a tree is stored is an option that the database remembers and that can be changed.

use crate::{
    places::fast_dir,
    support::{MIB, assert_sound, open},
};
use indexy::{Compression, Db, Error, IndexYKind, Options, Tree, TreeOptions};

fn key(i: u32) -> String {
    format!("customer/{:08}", i.wrapping_mul(7919) % 100_000)
}

fn value(i: u32, round: u32) -> String {
    format!(
        "{{\"id\":{i},\"round\":{round},\"city\":\"city number {}\"}}",
        i % 61
    )
}

fn fill(db: &Db, tree: &Tree, round: u32) {
    for i in 0..20_000 {
        tree.insert(key(i), value(i, round)).unwrap();
    }
    db.flush().unwrap();
    tree.compact::<&str>(..).unwrap();
}

#[track_caller]
fn check(tree: &Tree, round: u32) {
    for i in (0..20_000).step_by(7) {
        let found = tree.get(key(i)).unwrap().unwrap();
        assert_eq!(found, value(i, round).as_bytes());
    }
    assert_eq!(tree.len().unwrap(), 20_000);
}

fn packed() -> TreeOptions {
    TreeOptions::new().compression(Compression::Lz4)
}

#[test]
fn a_compressed_tree_is_smaller_and_stays_so() {
    let dir = fast_dir();
    let options = Options::new(4 * MIB).index_y(IndexYKind::Lsm);
    let db = open(dir.path(), &options);
    let plain = db.tree("plain").unwrap();
    let tree = db.tree_with("packed", packed()).unwrap();
    assert_eq!(plain.compression(), Compression::None);
    assert_eq!(tree.compression(), Compression::Lz4);
    fill(&db, &plain, 1);
    fill(&db, &tree, 1);
    let bytes = |tree: &Tree| tree.stats().y_bytes_on_disk;
    assert!(bytes(&tree) * 3 < bytes(&plain) * 2, "{}", bytes(&tree));
    check(&tree, 1);
    drop((plain, tree));
    db.close().unwrap();

    // Nobody needs to say it again.
    let db = open(dir.path(), &options);
    let (plain, tree) = (db.tree("plain").unwrap(), db.tree("packed").unwrap());
    assert_eq!(tree.compression(), Compression::Lz4);
    check(&tree, 1);
    fill(&db, &tree, 2);
    assert!(bytes(&tree) * 3 < bytes(&plain) * 2, "{}", bytes(&tree));
    check(&tree, 2);
    assert_sound(&db);
}

#[test]
fn the_option_can_be_changed_at_any_time() {
    let dir = fast_dir();
    let options = Options::new(4 * MIB).index_y(IndexYKind::Lsm);
    let db = open(dir.path(), &options);
    let tree = db.tree("t").unwrap();
    fill(&db, &tree, 1);
    let before = tree.stats().y_bytes_on_disk;
    db.tree_with("t", packed()).unwrap();
    assert_eq!(tree.compression(), Compression::Lz4);
    check(&tree, 1);
    fill(&db, &tree, 2);
    let after = tree.stats().y_bytes_on_disk;
    assert!(after * 3 < before * 2, "{after} of {before}");
    drop(tree);
    db.close().unwrap();

    // A reader changes nothing.
    let db = Db::open(dir.path(), options.clone().read_only(true)).unwrap();
    let none = TreeOptions::new().compression(Compression::None);
    let refused = db.tree_with("t", none.clone());
    assert!(matches!(refused, Err(Error::ReadOnly)));
    check(&db.tree_with("t", packed()).unwrap(), 2);
    drop(db);
    let db = open(dir.path(), &options);
    let tree = db.tree_with("t", none).unwrap();
    assert_eq!(tree.compression(), Compression::None);
    check(&tree, 2);
    fill(&db, &tree, 3);
    assert!(tree.stats().y_bytes_on_disk * 2 > before);
    check(&tree, 3);
    assert_sound(&db);
}

#[test]
fn what_cannot_be_had_is_unsupported_and_makes_no_tree() {
    let dir = fast_dir();
    let db = open(dir.path(), &Options::new(4 * MIB));
    let paged = packed().index_y(IndexYKind::BPlus { page_bytes: 4096 });
    let mut wrong = vec![paged];
    if !cfg!(feature = "zstd") {
        wrong.push(TreeOptions::new().compression(Compression::Zstd));
    }
    for options in wrong {
        let refused = db.tree_with("t", options);
        assert!(matches!(refused, Err(Error::Unsupported { .. })));
        assert!(db.tree_names().is_empty());
    }
    // Nor does it change one.
    let kind = IndexYKind::BPlus { page_bytes: 4096 };
    db.tree_with("t", TreeOptions::new().index_y(kind)).unwrap();
    let refused = db.tree_with("t", packed());
    assert!(matches!(refused, Err(Error::Unsupported { .. })));
    assert_eq!(db.tree("t").unwrap().compression(), Compression::None);
}
