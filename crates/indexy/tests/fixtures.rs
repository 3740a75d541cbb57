//! Databases that earlier builds wrote open in this one: a stored database for each format version
//! and pair.
//!
//! `INDEXY_MAKE_FIXTURES=1 cargo test -p indexy --test fixtures make` writes those that are not
//! there. A stored database is never made anew: a new format version gets folders of its own.

use indexy::{
    Clock, Compression, Db, Durability, Error, Expires, IndexXKind, IndexYKind, MergeOperator,
    Options, Tree, TreeOptions, Ttl,
};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const MAKE: &str = "INDEXY_MAKE_FIXTURES";
/// Format version (of the files that it is about, if not of all) and pair.
const PAGED: IndexYKind = IndexYKind::BPlus { page_bytes: 4096 };
const FIXTURES: [(&str, IndexXKind, IndexYKind); 6] = [
    ("v1-bplus-bplus", IndexXKind::BPlus, PAGED),
    ("v2-art-lsm", IndexXKind::Art, IndexYKind::Lsm),
    ("v2-bplus-bplus", IndexXKind::BPlus, PAGED),
    ("tables2-art-lsm", IndexXKind::Art, IndexYKind::Lsm),
    (PACKED, IndexXKind::Art, IndexYKind::Lsm),
    ("pages3-bplus-bplus", IndexXKind::BPlus, PAGED),
];
/// Its tree is compressed.
const PACKED: &str = "tables3-art-lsm";
/// Has LSM trees of a format that is refused.
const REFUSED: &str = "v1-art-lsm";
/// Has a tree whose entries expire.
const EXPIRING: &str = "manifest2-art-lsm";
/// Have logs in which merges wait.
const MERGING: [(&str, IndexXKind, IndexYKind); 2] = [
    ("wal4-art-lsm", IndexXKind::Art, IndexYKind::Lsm),
    ("wal4-bplus-bplus", IndexXKind::BPlus, PAGED),
];
/// What all of them may take together.
const LIMIT_BYTES: u64 = 1400 << 10;

/// Entries that are in Y: written, and flushed.
const FLUSHED: u32 = 400;
/// Entries that are in the log only.
const LOGGED: u32 = 60;

fn options() -> Options {
    Options::new(4 << 20).durability(Durability::Sync)
}

fn stored(name: &str) -> PathBuf {
    Path::new("tests/fixtures").join(name)
}

fn value(i: u32, round: u8) -> Vec<u8> {
    let mut value = vec![round; 3 + i as usize % 20];
    value[0] = i as u8;
    value
}

/// Keys of every kind: fixed and variable lengths, the empty one, a long one, a large value.
fn flushed() -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut all = BTreeMap::new();
    for i in 0..FLUSHED {
        all.insert(i.to_be_bytes().to_vec(), value(i, 1));
        all.insert(format!("name/{i}").into_bytes(), value(i, 2));
    }
    all.insert(vec![], b"empty".to_vec());
    all.insert(vec![0xfe; 3000], b"long".to_vec());
    all.insert(b"large".to_vec(), vec![7; 9000]);
    all
}

/// What tree `t` holds in the end: after the flush some keys were overwritten, some removed and
/// some added.
fn expected() -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut all = flushed();
    for i in 0..LOGGED {
        all.insert((i * 5).to_be_bytes().to_vec(), value(i, 3));
        all.remove(format!("name/{}", i * 3).as_bytes());
        all.insert(format!("new/{i}").into_bytes(), value(i, 4));
    }
    all
}

#[test]
fn make() {
    if std::env::var_os(MAKE).is_none() {
        return;
    }
    for (name, x, y) in FIXTURES {
        let dir = stored(name);
        if dir.exists() {
            continue;
        }
        let db = Db::open(&dir, options().index_x(x).index_y(y)).unwrap();
        let compression = match name {
            PACKED => Compression::Lz4,
            _ => Compression::None,
        };
        let how = TreeOptions::new().compression(compression);
        let tree = db.tree_with("t", how).unwrap();
        for (key, value) in flushed() {
            tree.insert(key, value).unwrap();
        }
        let kept = TreeOptions::new().index_x(x).index_y(y).resident(true);
        db.tree_with("resident", kept)
            .unwrap()
            .insert("k", "v")
            .unwrap();
        db.tree("dropped").unwrap().insert("k", "v").unwrap();
        db.flush().unwrap();
        db.drop_tree("dropped").unwrap();
        let mut batch = db.batch();
        for i in 0..LOGGED {
            batch.insert(&tree, (i * 5).to_be_bytes(), value(i, 3));
            batch.remove(&tree, format!("name/{}", i * 3));
        }
        batch.commit().unwrap();
        for i in 0..LOGGED {
            tree.insert(format!("new/{i}"), value(i, 4)).unwrap();
        }
        // Not closed: the last records stay in the log.
        db.sync().unwrap();
        drop((tree, db));
    }
}

/// In the year 2100.
fn late() -> Expires {
    Expires::At(UNIX_EPOCH + Duration::from_secs(4_102_444_800))
}

/// What the stored tree with expiry holds, on disk and in the log; other entries have expired.
fn lasting() -> [(&'static str, Expires); 4] {
    [
        ("disk/late", late()),
        ("disk/never", Expires::Never),
        ("log/late", late()),
        ("log/never", Expires::Never),
    ]
}

#[test]
fn make_expiring() {
    let dir = stored(EXPIRING);
    if std::env::var_os(MAKE).is_none() || dir.exists() {
        return;
    }
    let db = Db::open(&dir, options()).unwrap();
    let ttl = Ttl::Default(Duration::from_secs(3600));
    let tree = db.tree_with("t", TreeOptions::new().ttl(ttl)).unwrap();
    for part in ["disk", "log"] {
        for (key, expires) in lasting().iter().filter(|(key, _)| key.starts_with(part)) {
            tree.insert_until(key, "v", *expires).unwrap();
        }
        tree.insert(format!("{part}/an hour"), "v").unwrap();
        if part == "disk" {
            db.flush().unwrap();
        }
    }
    db.sync().unwrap();
}

/// It is 2099.
#[derive(Debug)]
struct Later;

impl Clock for Later {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(4_070_908_800)
    }
}

#[test]
fn a_stored_tree_keeps_its_moments() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    copy(&stored(EXPIRING), &path);
    for read_only in [true, false] {
        let later = options().clock(Arc::new(Later));
        let db = Db::open(&path, later.read_only(read_only)).unwrap();
        let tree = db.tree("t").unwrap();
        assert_eq!(tree.ttl(), Some(Ttl::Default(Duration::from_secs(3600))));
        for (key, expires) in lasting() {
            assert_eq!(tree.get(key).unwrap().unwrap(), b"v");
            assert_eq!(tree.expires_at(key).unwrap(), Some(expires));
        }
        assert_eq!(tree.len().unwrap(), 4);
        assert!(db.verify().unwrap().is_ok());
    }
}

/// A tree of sums and one of lists.
fn merging() -> [(&'static str, TreeOptions); 2] {
    let append = MergeOperator::Append {
        separator: b", ".to_vec(),
        limit: 64,
    };
    [
        (
            "sums",
            TreeOptions::new().merge_operator(MergeOperator::AddU64),
        ),
        ("lists", TreeOptions::new().merge_operator(append)),
    ]
}

/// What is merged into key `i` of the trees of [`merging`], the second time otherwise.
fn operand(i: u64, lists: bool, again: bool) -> Vec<u8> {
    match lists {
        false => (i + 1000 * u64::from(again)).to_be_bytes().to_vec(),
        true => format!("{i}{}", if again { "b" } else { "a" }).into_bytes(),
    }
}

#[test]
fn make_merging() {
    if std::env::var_os(MAKE).is_none() {
        return;
    }
    for (name, x, y) in MERGING {
        let dir = stored(name);
        if dir.exists() {
            continue;
        }
        let db = Db::open(&dir, options().index_x(x).index_y(y)).unwrap();
        for (name, how) in merging() {
            let (tree, lists) = (db.tree_with(name, how).unwrap(), name == "lists");
            for i in 0..60u64 {
                tree.insert(i.to_be_bytes(), operand(i, lists, false))
                    .unwrap();
            }
            db.flush().unwrap();
            tree.release::<&[u8]>(..).unwrap();
            for i in 0..70u64 {
                let (key, again) = (i.to_be_bytes(), operand(i, lists, true));
                tree.merge(key, operand(i, lists, false)).unwrap();
                match i % 7 {
                    // Waits as it is.
                    0 => {}
                    1 => tree.merge(key, again).unwrap(),
                    2 => {
                        tree.get(key).unwrap();
                        tree.merge(key, again).unwrap();
                    }
                    3 => tree.insert(key, again).unwrap(),
                    4 => {
                        tree.remove(key).unwrap();
                        tree.merge(key, again).unwrap();
                    }
                    5 => {
                        let mut batch = db.batch();
                        batch.merge(&tree, key, again);
                        batch.commit().unwrap();
                    }
                    _ => tree.remove_range(key..=key).unwrap(),
                }
            }
        }
        db.sync().unwrap();
    }
}

fn check_merged(db: &Db) {
    for (name, _) in merging() {
        let (tree, lists) = (db.tree(name).unwrap(), name == "lists");
        let mut expected = BTreeMap::new();
        for i in 0..70u64 {
            let (once, again) = (operand(i, lists, false), operand(i, lists, true));
            let parts = match (i % 7, i < 60) {
                (0, true) => vec![&once, &once],
                (0, false) => vec![&once],
                (1 | 2 | 5, true) => vec![&once, &once, &again],
                (1 | 2 | 5, false) => vec![&once, &again],
                (3 | 4, _) => vec![&again],
                _ => continue,
            };
            let sum = |part: &&Vec<u8>| u64::from_be_bytes(part[..].try_into().unwrap());
            let value = match lists {
                false => parts.iter().map(sum).sum::<u64>().to_be_bytes().to_vec(),
                true => parts
                    .into_iter()
                    .map(|p| &p[..])
                    .collect::<Vec<_>>()
                    .join(&b", "[..]),
            };
            expected.insert(i.to_be_bytes().to_vec(), value);
        }
        let all = tree.iter().map(|entry| entry.unwrap());
        let all: BTreeMap<_, _> = all.map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
        assert_eq!(all, expected, "{name}");
    }
    assert!(db.verify().unwrap().is_ok());
}

/// Opened again and again without a close, with and without writes to disk in between.
#[test]
fn merges_of_a_stored_log_count_once() {
    for (name, ..) in MERGING {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        copy(&stored(name), &path);
        let before = files(&path);
        check_merged(&Db::open(&path, options().read_only(true)).unwrap());
        assert!(files(&path) == before, "{name}: a read-only open wrote");
        for life in 0..4 {
            let db = Db::open(&path, options()).unwrap();
            if life % 2 == 1 {
                for (name, _) in merging() {
                    db.tree(name).unwrap().release::<&[u8]>(..).unwrap();
                }
            }
            check_merged(&db);
        }
        let db = Db::open(&path, options()).unwrap();
        db.flush().unwrap();
        check_merged(&db);
        db.close().unwrap();
        check_merged(&Db::open(&path, options().durability(Durability::None)).unwrap());
    }
}

/// Files below `dir`, with their bytes.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(at) = todo.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else {
                let bytes = fs::read(&path).unwrap();
                found.insert(path.strip_prefix(dir).unwrap().to_path_buf(), bytes);
            }
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    for (path, bytes) in files(from) {
        let path = to.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

#[track_caller]
fn check(tree: &Tree, expected: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let all = tree.iter().map(|entry| {
        let (key, value) = entry.unwrap();
        (key.to_vec(), value.to_vec())
    });
    let all: BTreeMap<_, _> = all.collect();
    assert!(all == *expected, "{} entries", all.len());
    for (key, value) in expected {
        assert_eq!(tree.get(key).unwrap().unwrap(), value[..]);
    }
    assert_eq!(tree.get("name/0").unwrap(), None);
}

#[test]
fn stored_databases_open_and_go_on() {
    for (name, x, _) in FIXTURES {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        copy(&stored(name), &path);

        // As they are: nothing is written.
        let before = files(&path);
        let db = Db::open(&path, options().read_only(true)).unwrap();
        check(&db.tree("t").unwrap(), &expected());
        db.verify().unwrap();
        drop(db);
        assert!(files(&path) == before, "{name}: a read-only open wrote");

        // The pair is remembered, whatever the defaults of this database are.
        let other = match x {
            IndexXKind::Art => IndexXKind::BPlus,
            _ => IndexXKind::Art,
        };
        let db = Db::open(&path, options().index_x(other)).unwrap();
        assert_eq!(db.tree_names(), ["t", "resident"], "{name}");
        let tree = db.tree("t").unwrap();
        check(&tree, &expected());
        db.verify().unwrap();
        let mut model = expected();
        for i in 0..1000u32 {
            let key = format!("later/{i}").into_bytes();
            tree.insert(&key, value(i, 9)).unwrap();
            model.insert(key, value(i, 9));
        }
        for i in 0..LOGGED {
            tree.remove(format!("new/{i}")).unwrap();
            model.remove(format!("new/{i}").as_bytes());
        }
        db.flush().unwrap();
        db.verify().unwrap();
        let copied = dir.path().join("copy");
        db.checkpoint(&copied).unwrap();
        drop(tree);
        db.close().unwrap();
        for path in [path, copied] {
            let db = Db::open(path, options()).unwrap();
            check(&db.tree("t").unwrap(), &model);
            let resident = db.tree("resident").unwrap();
            assert_eq!(resident.get("k").unwrap().unwrap(), *b"v");
            db.verify().unwrap();
        }
    }
}

/// A tree of the first LSM engine: the error names the format and says what to do, and nothing is
/// touched.
#[test]
fn what_is_not_supported_any_more_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    copy(&stored(REFUSED), &path);
    let before = files(&path);
    for read_only in [true, false] {
        let refused = Db::open(&path, options().read_only(read_only)).unwrap_err();
        let Error::FormatVersion {
            found: 1,
            supported: 2,
            path: tree,
        } = &refused
        else {
            panic!("{refused:?}");
        };
        assert!(tree.starts_with(&path), "{}", tree.display());
        let way = "`dump` it with the build that wrote it, and `load` it";
        let text = refused.to_string();
        assert!(text.contains(way), "{text}");
        assert!(text.contains(&tree.display().to_string()), "{text}");
    }
    let changed = |name: &PathBuf| files(&path).get(name) != before.get(name);
    let trees = before.keys().filter(|name| name.starts_with("trees"));
    assert_eq!(trees.filter(|name| changed(name)).count(), 0);
}

#[test]
fn stored_databases_are_small() {
    let names = FIXTURES.map(|(name, ..)| name);
    let merging = MERGING.map(|(name, ..)| name);
    let names = names.iter().chain([&EXPIRING]).chain(&merging);
    let sizes = names.map(|name| {
        let files = files(&stored(name));
        assert!(!files.is_empty(), "{name}");
        files.values().map(|bytes| bytes.len() as u64).sum::<u64>()
    });
    let sizes: Vec<u64> = sizes.collect();
    assert!(sizes.iter().sum::<u64>() <= LIMIT_BYTES, "{sizes:?}");
}
