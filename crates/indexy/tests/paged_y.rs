//! A database whose Index Y is the paged B+ tree: larger than its budget, reopened, verified, and
//! its pair remembered.

use indexy::{Db, Error, IndexYKind, Options, TreeOptions};

const KEYS: u64 = 200_000;

fn options(page_bytes: u32) -> Options {
    Options::new(6 << 20).index_y(IndexYKind::BPlus { page_bytes })
}

fn key(i: u64) -> [u8; 8] {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

#[test]
fn a_database_over_its_budget_comes_back() {
    std::thread::scope(|scope| {
        for page_bytes in [4096, 8192, 16384] {
            scope.spawn(move || comes_back(page_bytes));
        }
    });
}

fn comes_back(page_bytes: u32) {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), options(page_bytes)).unwrap();
    let tree = db.tree("t").unwrap();
    for i in 0..KEYS {
        tree.insert(key(i), [i as u8; 40]).unwrap();
    }
    for i in (0..KEYS).step_by(3) {
        tree.remove(key(i)).unwrap();
    }
    assert!(db.stats().y_bytes_on_disk > 0);
    db.close().unwrap();

    let db = Db::open(dir.path(), options(page_bytes)).unwrap();
    let tree = db.tree("t").unwrap();
    for i in (0..KEYS).step_by(7) {
        let expected = (i % 3 != 0).then(|| [i as u8; 40].to_vec());
        let found = tree.get(key(i)).unwrap().map(|v| v.to_vec());
        assert_eq!(found, expected, "key {i}");
    }
    assert_eq!(tree.iter().count() as u64, KEYS - KEYS.div_ceil(3));
    db.verify().unwrap();
    let copy = dir.path().join("copy");
    db.checkpoint(&copy).unwrap();
    db.close().unwrap();
    let copied = Db::open(&copy, options(page_bytes)).unwrap();
    let tree = copied.tree("t").unwrap();
    assert_eq!(tree.get(key(1)).unwrap().unwrap(), [1; 40][..]);
}

#[test]
fn the_page_size_is_remembered() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), options(4096)).unwrap();
    db.tree("t").unwrap();
    db.close().unwrap();
    // The database's default is for new trees; one that is there keeps its own.
    let db = Db::open(dir.path(), options(8192)).unwrap();
    db.tree("t").unwrap();
    let asked = TreeOptions::new().index_y(IndexYKind::BPlus { page_bytes: 8192 });
    let other = db.tree_with("t", asked).map(|_| ());
    assert!(
        matches!(other, Err(Error::TreeMismatch { .. })),
        "{other:?}"
    );
    assert!(matches!(
        Db::open(dir.path().join("x"), options(5000)).map(|_| ()),
        Err(Error::Unsupported { .. })
    ));
}
