//! Salvage of databases with flipped, zeroed, cut and missing files: what comes out was written, is
//! the newest as far as the report says so, and nothing is missing that the report does not tell.

use crate::{
    pairs::{self, Pair},
    places::fast_dir,
    support::{MIB, Random, assert_sound, open, setting},
};
use indexy::{Db, Doubtful, Durability, IndexYKind, Options, SalvageReport, Tree, TreeOptions};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::{Path, PathBuf},
};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(pair: Pair) -> Options {
    let options = Options::new(2 * MIB).durability(Durability::Sync);
    pairs::options(pair, options)
}

/// What a tree held, and every version that any key ever had.
#[derive(Default)]
struct Written {
    newest: Model,
    ever: HashMap<Vec<u8>, HashSet<Vec<u8>>>,
}

impl Written {
    fn put(&mut self, tree: &Tree, key: &[u8], value: &[u8]) {
        tree.insert(key, value).unwrap();
        self.newest.insert(key.to_vec(), value.to_vec());
        let ever = self.ever.entry(key.to_vec()).or_default();
        ever.insert(value.to_vec());
    }

    fn remove(&mut self, tree: &Tree, key: &[u8]) {
        tree.remove(key).unwrap();
        self.newest.remove(key);
    }
}

fn content(tree: &Tree) -> Model {
    let entries = tree
        .iter()
        .map(|e| e.map(|(k, v)| (k.to_vec(), v.to_vec())));
    entries.collect::<Result<_, _>>().unwrap()
}

/// Overwrites, removals, removed ranges, loads, long values; some of it in the log only.
fn build(path: &Path, pair: Pair) -> Written {
    let db = open(path, &options(pair));
    let tree = db.tree("t").unwrap();
    let (mut random, mut all) = (Random(3), Written::default());
    for round in 0..6u64 {
        for _ in 0..2500 {
            let key = (random.below(9000) * 3).to_be_bytes();
            match random.below(12) {
                0 => all.remove(&tree, &key),
                1 if random.one_in(30) => all.put(&tree, &key, &vec![round as u8; 9000]),
                n => all.put(
                    &tree,
                    &key,
                    &vec![round as u8 * 16 + n as u8; 20 + n as usize],
                ),
            }
        }
        let from = (random.below(8000) * 3).to_be_bytes().to_vec();
        let to = [&from[..6], &[0xff, 0xff]].concat();
        tree.remove_range(from.clone()..to.clone()).unwrap();
        all.newest.retain(|key, _| *key < from || *key >= to);
        if pair.1 != IndexYKind::RocksDb {
            let load: Vec<_> = (0..300u64)
                .map(|n| {
                    (
                        (1_000_000 + round * 1000 + n).to_be_bytes(),
                        vec![round as u8; 40],
                    )
                })
                .collect();
            tree.load_sorted(load.iter().map(|(k, v)| (k, v))).unwrap();
            for (key, value) in load {
                all.newest.insert(key.to_vec(), value.clone());
                all.ever.entry(key.to_vec()).or_default().insert(value);
            }
        }
        if round < 5 {
            db.flush().unwrap();
        }
    }
    // Not closed: the last round is in the log.
    all
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let (mut todo, mut files) = (vec![dir.to_path_buf()], Vec::new());
    while let Some(at) = todo.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => todo.push(path),
                false => files.push(path.strip_prefix(dir).unwrap().to_path_buf()),
            }
        }
    }
    files.sort();
    files
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let dest = to.join(&file);
        std::fs::create_dir_all(dest.parent().unwrap()).unwrap();
        std::fs::copy(from.join(&file), dest).unwrap();
    }
}

#[derive(Debug, Clone, Copy)]
enum Damage {
    Flip,
    Zero,
    Cut,
    Missing,
}

const KINDS: [Damage; 4] = [Damage::Flip, Damage::Zero, Damage::Cut, Damage::Missing];

fn damage(path: &Path, how: Damage, random: &mut Random) {
    let mut bytes = std::fs::read(path).unwrap();
    let len = bytes.len() as u64;
    match how {
        Damage::Missing => return std::fs::remove_file(path).unwrap(),
        Damage::Cut => bytes.truncate(random.below(len) as usize),
        Damage::Flip => {
            for _ in 0..3 {
                let at = random.below(len) as usize;
                bytes[at..].iter_mut().take(1).for_each(|b| *b ^= 0x10);
            }
        }
        Damage::Zero => {
            let at = random.below(len) as usize & !4095;
            let end = bytes.len().min(at + 8192);
            bytes[at..end].fill(0);
        }
    }
    std::fs::write(path, bytes).unwrap();
}

fn salvage(src: &Path, dest: &Path, pair: Pair, doubtful: Doubtful) -> (SalvageReport, Model) {
    let _ = std::fs::remove_dir_all(dest);
    let to = options(pair).durability(Durability::Buffered { interval_ms: 1000 });
    let report = Db::salvage(src, dest, to, doubtful).unwrap();
    let db = open(dest, &options(pair));
    assert_sound(&db);
    let found = match db.tree_names().first() {
        Some(name) => content(&db.tree(name).unwrap()),
        None => Model::new(),
    };
    let entries = report.trees.first().map_or(0, |tree| tree.entries);
    assert_eq!(entries, found.len() as u64);
    (report, found)
}

/// `cut`: the last records of the log may be gone, as after a loss of power.
fn check(all: &Written, report: &SalvageReport, found: &Model, cut: bool, what: &str) {
    let tree = report.trees.first();
    let unsure = cut || tree.is_none_or(|tree| tree.may_be_older);
    for (key, value) in found {
        let ever = all.ever.get(key);
        assert!(
            ever.is_some_and(|ever| ever.contains(value)),
            "{what}: invented"
        );
        let newest = all.newest.get(key) == Some(value);
        assert!(newest || unsure, "{what}: {key:?} is an older version");
    }
    let doubtful = tree.map_or(0, |tree| tree.doubtful);
    let mut missing = 0;
    for key in all.newest.keys().filter(|key| !found.contains_key(*key)) {
        let is_told = report.losses.iter().any(|loss| {
            let from = loss.from.as_ref().is_some_and(|from| from <= key);
            from && loss.to.as_ref().is_none_or(|to| key < to)
        });
        missing += u64::from(!is_told);
    }
    assert!(
        missing <= doubtful || unsure,
        "{what}: {missing} missing, {doubtful} doubtful"
    );
    if report.is_whole() && !cut {
        assert!(*found == all.newest, "{what}: it says that nothing is lost");
    }
}

/// Half of the kinds of damage for each file; `INDEXY_SALVAGE_ALL=1`: all.
#[test]
fn what_is_salvaged_was_written_and_what_is_missing_is_told() {
    for pair in pairs::chosen(0, 1) {
        if pair.1 == IndexYKind::RocksDb {
            continue;
        }
        let dir = fast_dir();
        let (src, image, dest) = ["src", "image", "dest"].map(|n| dir.path().join(n)).into();
        let all = build(&src, pair);
        let (report, found) = salvage(&src, &dest, pair, Doubtful::LeaveOut);
        assert!(
            report.is_whole() && found == all.newest,
            "{pair:?}: {report:?}"
        );
        let mut random = Random(11);
        let (mut lost, mut saved) = (0, 0);
        let all_kinds = setting("INDEXY_SALVAGE_ALL", 0) > 0;
        for (turn, file) in files(&src)
            .into_iter()
            .filter(|file| *file != *"LOCK")
            .enumerate()
        {
            for (n, how) in KINDS.into_iter().enumerate() {
                if !all_kinds && (turn + n) % 2 == 0 {
                    continue;
                }
                let _ = std::fs::remove_dir_all(&image);
                copy(&src, &image);
                if std::fs::metadata(image.join(&file)).unwrap().len() == 0 {
                    continue;
                }
                damage(&image.join(&file), how, &mut random);
                let what = format!("{} {how:?} {}", pairs::name(pair), file.display());
                let before = files(&image);
                let (report, found) = salvage(&image, &dest, pair, Doubtful::LeaveOut);
                check(&all, &report, &found, file.starts_with("log"), &what);
                lost += u64::from(!report.is_whole());
                saved += u64::from(found.len() > all.newest.len() / 2);
                let (taken, more) = salvage(&image, &dest, pair, Doubtful::Take);
                assert!(
                    more.len() >= found.len() && taken.lost == report.lost,
                    "{what}"
                );
                for (key, value) in &more {
                    assert!(all.ever[key].contains(value), "{what}: invented");
                }
                assert_eq!(files(&image), before, "{what}: the source is as it was");
            }
        }
        assert!(lost > 4 && saved > 4, "{pair:?}: {lost} {saved}");
    }
}

/// Each of several damaged pages counts, and reading goes on behind them.
#[test]
fn verify_counts_every_damaged_page() {
    for pair in pairs::chosen(0, 1) {
        if pair.1 == IndexYKind::RocksDb {
            continue;
        }
        let dir = fast_dir();
        let db = open(dir.path(), &options(pair));
        let tree = db.tree("t").unwrap();
        tree.load_sorted((0..50_000u64).map(|n| (n.to_be_bytes(), [7; 30])))
            .unwrap();
        db.close().unwrap();
        drop((tree, db));
        let trees = dir.path().join("trees/1");
        let largest = files(&trees)
            .into_iter()
            .max_by_key(|file| std::fs::metadata(trees.join(file)).unwrap().len())
            .unwrap();
        let path = trees.join(largest);
        let mut bytes = std::fs::read(&path).unwrap();
        // Leaves, a good way behind the first pages.
        for page in [9usize, 14, 23, 31] {
            bytes[page * 16384 + 5000] ^= 1;
        }
        std::fs::write(&path, bytes).unwrap();
        let db = open(dir.path(), &options(pair).read_only(true));
        let report = db.verify().unwrap();
        assert_eq!(report.trees[0].damaged, 4, "{pair:?}: {report:?}");
        assert_eq!(report.trees[0].problems.len(), 4);
    }
}

/// What was written since the last flush is lost with the log.
#[test]
fn a_log_that_is_gone_is_told() {
    let dir = fast_dir();
    let (src, dest) = (dir.path().join("src"), dir.path().join("dest"));
    let options = Options::new(2 * MIB).durability(Durability::Sync);
    let db = open(&src, &options);
    db.tree("t").unwrap().insert("key", "value").unwrap();
    drop(db);
    std::fs::remove_dir_all(src.join("log")).unwrap();
    let report = Db::salvage(&src, &dest, options, Doubtful::LeaveOut).unwrap();
    assert!(!report.is_whole() && report.losses[0].path.ends_with("log"));
    assert!(report.trees[0].may_be_older);
}

#[test]
fn what_cannot_be_a_source_or_a_destination_is_refused() {
    use indexy::Error;
    let dir = fast_dir();
    let (src, dest) = (dir.path().join("src"), dir.path().join("dest"));
    let options = Options::new(2 * MIB);
    let none = Db::salvage(&src, &dest, options.clone(), Doubtful::LeaveOut);
    assert!(matches!(none, Err(Error::NoDatabase { .. })));
    let db = open(&src, &options);
    let locked = Db::salvage(&src, &dest, options.clone(), Doubtful::LeaveOut);
    assert!(matches!(locked, Err(Error::Locked { .. })));
    db.close().unwrap();
    let full = Db::salvage(&src, dir.path(), options.clone(), Doubtful::LeaveOut);
    assert!(matches!(full, Err(Error::DestinationNotEmpty { .. })));
    let inside = Db::salvage(&src, src.join("new"), options.clone(), Doubtful::LeaveOut);
    assert!(matches!(inside, Err(Error::DestinationNotEmpty { .. })));
    let empty = Db::salvage(&src, &dest, options, Doubtful::LeaveOut).unwrap();
    assert!(empty.is_whole() && empty.trees.is_empty());
}

/// A newer format is whole: the build that wrote it reads it. And a destination that was not
/// finished is no database.
#[test]
fn a_newer_format_is_refused_and_nothing_is_left() {
    use indexy::Error;
    let dir = fast_dir();
    let (src, dest) = (dir.path().join("src"), dir.path().join("dest"));
    let db = open(&src, &Options::new(2 * MIB));
    let paged = TreeOptions::new().index_y(IndexYKind::BPlus { page_bytes: 4096 });
    for (name, options) in [("a", TreeOptions::new()), ("b", paged)] {
        let tree = db.tree_with(name, options).unwrap();
        tree.insert(b"k", name).unwrap();
    }
    db.close().unwrap();
    let all = files(&src);
    let file = |part: &str| {
        all.iter()
            .find(|path| path.to_string_lossy().contains(part))
    };
    type Seal = fn(&mut [u8]);
    let newer: [(&str, Seal); 3] = [
        ("MANIFEST", |bytes| {
            bytes[8] = 9;
            let sum = crc32c::crc32c_append(crc32c::crc32c(&bytes[8..16]), &bytes[20..]);
            bytes[16..20].copy_from_slice(&sum.to_le_bytes());
        }),
        ("log/", |bytes| {
            bytes[8] = 9;
            let sum = crc32c::crc32c(&bytes[..60]);
            bytes[60..64].copy_from_slice(&sum.to_le_bytes());
        }),
        ("trees/2/", |bytes| {
            for copy in [0, 8 << 10] {
                let bytes = &mut bytes[copy..];
                bytes[8] = 9;
                let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..80]);
                bytes[80..88].copy_from_slice(&sum.to_le_bytes());
            }
        }),
    ];
    let salvage = || Db::salvage(&src, &dest, Options::new(2 * MIB), Doubtful::LeaveOut);
    for (part, seal) in newer {
        let path = src.join(file(part).unwrap());
        let whole = std::fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        seal(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
        let refused = salvage();
        assert!(
            matches!(refused, Err(Error::FormatVersion { found: 9, .. })),
            "{part}: {refused:?}"
        );
        assert!(!dest.exists(), "{part}");
        std::fs::create_dir(&dest).unwrap();
        assert!(salvage().is_err());
        assert_eq!(std::fs::read_dir(&dest).unwrap().count(), 0, "{part}");
        std::fs::remove_dir(&dest).unwrap();
        std::fs::write(&path, whole).unwrap();
    }
    // A version that no checksum vouches for is damage.
    let manifest = src.join("MANIFEST");
    let mut bytes = std::fs::read(&manifest).unwrap();
    bytes[8] = 9;
    std::fs::write(&manifest, bytes).unwrap();
    assert_eq!(salvage().unwrap().trees.len(), 2);
}

/// The pages of one tree in the place of another's: they are not taken for its own.
#[test]
fn the_page_file_of_another_tree_is_a_loss() {
    let dir = fast_dir();
    let (src, dest) = (dir.path().join("src"), dir.path().join("dest"));
    let options = Options::new(2 * MIB).index_y(IndexYKind::BPlus { page_bytes: 4096 });
    let db = open(&src, &options);
    for name in ["a", "b"] {
        let tree = db.tree(name).unwrap();
        (0..100u32).for_each(|n| {
            tree.insert([name.as_bytes(), &n.to_be_bytes()].concat(), name)
                .unwrap()
        });
    }
    db.close().unwrap();
    drop(db);
    let pages = |tree: u32| src.join(format!("trees/{tree}/pages"));
    std::fs::copy(pages(2), pages(1)).unwrap();
    let report = Db::salvage(&src, &dest, options.clone(), Doubtful::Take).unwrap();
    assert!(!report.is_whole());
    assert!(
        report
            .losses
            .iter()
            .any(|loss| loss.tree.as_deref() == Some("a")),
        "{report:?}"
    );
    let db = open(&dest, &options);
    assert!(
        !content(&db.tree("a").unwrap())
            .keys()
            .any(|key| key.starts_with(b"b"))
    );
    assert_eq!(db.tree("b").unwrap().len().unwrap(), 100);
}
