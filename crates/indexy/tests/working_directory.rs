//! A database stays where it was opened, wherever the process goes meanwhile. Alone in its program,
//! because a working directory is that of the whole process.

use indexy::{Db, Options};

#[test]
fn a_relative_path_means_what_it_meant_at_the_open() {
    let root = tempfile::tempdir().unwrap();
    let (here, there) = (root.path().join("here"), root.path().join("there"));
    let options = || Options::new(4 << 20).log_limit_bytes(1 << 20);
    for dir in [&here, &there] {
        std::fs::create_dir(dir).unwrap();
        let db = Db::open(dir.join("db"), options()).unwrap();
        let name = dir.file_name().unwrap().to_str().unwrap();
        db.tree(name).unwrap().insert("k", name).unwrap();
        db.close().unwrap();
    }
    std::env::set_current_dir(&here).unwrap();
    let db = Db::open("db", options()).unwrap();
    std::env::set_current_dir(&there).unwrap();
    let tree = db.tree("here").unwrap();
    // Segments and manifests are made anew meanwhile.
    for i in 0..40_000u32 {
        tree.insert(i.to_be_bytes(), [7; 100]).unwrap();
    }
    db.tree("another").unwrap().insert("k", "v").unwrap();
    db.flush().unwrap();
    db.checkpoint("copy").unwrap();
    db.close().unwrap();
    let db = Db::open(here.join("db"), options()).unwrap();
    assert_eq!(db.tree("here").unwrap().len().unwrap(), 40_001);
    assert_eq!(db.tree("another").unwrap().len().unwrap(), 1);
    drop(db);
    let db = Db::open(there.join("copy"), options()).unwrap();
    assert_eq!(db.tree("here").unwrap().len().unwrap(), 40_001);
    drop(db);
    let db = Db::open(there.join("db"), options()).unwrap();
    assert_eq!(db.tree_names(), ["there"]);
    assert_eq!(
        db.tree("there").unwrap().get("k").unwrap().unwrap(),
        *b"there"
    );
    std::env::set_current_dir("/").unwrap();
}
