//! Bits of every file of a database are flipped, one at a time: what is read is right, or a typed
//! error. Never wrong data, a panic or a hang.
//!
//! `INDEXY_FLIPS` (default 2) flips a file, at places drawn from `INDEXY_FLIP_SEED`, and always the
//! first and the last byte.

use crate::{
    pairs::{self, Pair},
    places::fast_dir,
    support::{MIB, Random, child, child_argument, open, setting, wait},
};
use indexy::{Batch, Db, Error, IndexXKind, IndexYKind, Options};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

fn options(pair: Pair) -> Options {
    pairs::options(pair, Options::new(2 * MIB))
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// What the tree `t` holds; the other one is small.
fn model() -> Model {
    let entry = |i: u64| {
        let key = i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec();
        let value = vec![i as u8; (i % 90) as usize];
        (key, value)
    };
    (0..6000).filter(|i| i % 11 != 3).map(entry).collect()
}

fn make(path: &Path, options: &Options) {
    let db = open(path, options);
    let (tree, other) = (db.tree("t").unwrap(), db.tree("other").unwrap());
    let model = model();
    let old = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
    for i in 0..6000 {
        tree.insert(old(i), b"older").unwrap();
    }
    db.flush().unwrap();
    for (n, (key, value)) in model.iter().enumerate() {
        tree.insert(key, value).unwrap();
        // In several tables, and the last part in the log alone.
        if n % 2000 == 1999 {
            db.flush().unwrap();
        }
    }
    for i in (0..6000).filter(|i| i % 11 == 3) {
        tree.remove(old(i)).unwrap();
    }
    let mut batch: Batch = db.batch();
    batch.insert(&other, b"k", b"v");
    batch.insert(&other, b"large", vec![5; 100_000]);
    batch.commit().unwrap();
    db.sync().unwrap();
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push(path);
        }
    }
    all.sort();
    all
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in files(from) {
        let dest = to.join(file.strip_prefix(from).unwrap());
        std::fs::create_dir_all(dest.parent().unwrap()).unwrap();
        std::fs::copy(file, dest).unwrap();
    }
}

/// Damage is told as damage, or as what it makes the bytes look like.
fn typed(error: &Error) -> bool {
    matches!(
        error,
        Error::Corrupt { .. }
            | Error::FormatVersion { .. }
            | Error::Poisoned { .. }
            | Error::Io { .. }
    )
}

/// Reads everything there is; true if damage was reported.
fn read_all(db: &Db, model: &Model) -> Result<bool, String> {
    let mut reported = false;
    let tree = match db.tree("t") {
        Ok(tree) => tree,
        Err(e) if typed(&e) => return Ok(true),
        Err(e) => return Err(format!("tree: {e:?}")),
    };
    let mut expected = model.iter();
    for entry in tree.iter() {
        match entry {
            Ok((key, value)) => {
                if expected.next() != Some((&key.to_vec(), &value.to_vec())) {
                    return Err(format!("scan: wrong at {key:?}"));
                }
            }
            Err(e) if typed(&e) => {
                reported = true;
                break;
            }
            Err(e) => return Err(format!("scan: {e:?}")),
        }
    }
    if !reported && expected.next().is_some() {
        return Err("scan: ends early".into());
    }
    let absent: Vec<u8> = b"not there".to_vec();
    for (key, value) in model
        .iter()
        .map(|(k, v)| (k, Some(v)))
        .chain([(&absent, None)])
    {
        match tree.get(key) {
            Ok(found) if found.as_deref() == value.map(|v| &v[..]) => {}
            Err(e) if typed(&e) => reported = true,
            other => return Err(format!("get {key:?}: {other:?}")),
        }
    }
    let keys: Vec<_> = model.keys().step_by(31).collect();
    match tree.multi_get(&keys) {
        Ok(found) => {
            let same = keys
                .iter()
                .zip(&found)
                .all(|(k, v)| v.as_deref() == model.get(*k).map(|v| &v[..]));
            if !same {
                return Err("multi_get: wrong".into());
            }
        }
        Err(e) if typed(&e) => reported = true,
        Err(e) => return Err(format!("multi_get: {e:?}")),
    }
    Ok(reported)
}

/// Whether every byte of the file `name` of a database says something. Page files have free pages,
/// tables have gaps behind long values, and where there are two superblocks, one replaces the
/// other.
fn every_byte_counts(pair: Pair, name: &Path) -> bool {
    name.starts_with("trees") && matches!(pair.1, IndexYKind::RocksDb)
}

/// Opens a damaged copy, reads, verifies, writes. If every byte of what is damaged `counts`, the
/// damage must be noticed.
fn attempt(path: &Path, options: Options, model: &Model, counts: bool) -> Result<(), String> {
    let read_only = options == options.clone().read_only(true);
    let db = match Db::open(path, options) {
        Ok(db) => db,
        Err(e) if typed(&e) => return Ok(()),
        Err(e) => return Err(format!("open: {e:?}")),
    };
    // Before the reads have filled X, and without a word about what is damaged.
    let sound = match db.verify() {
        Ok(report) => report.is_ok(),
        Err(e) if typed(&e) => false,
        Err(e) => return Err(format!("verify: {e:?}")),
    };
    if counts && sound {
        return Err("verify: nothing noticed".into());
    }
    let reported = read_all(&db, model)?;
    if reported && sound {
        return Err("verify: all is well, but reads fail".into());
    }
    if !read_only && let Ok(tree) = db.tree("t") {
        for step in [tree.insert(b"new", b"v"), db.flush(), db.close()] {
            match step {
                Ok(()) => {}
                Err(e) if typed(&e) => {}
                Err(e) => return Err(format!("write: {e:?}")),
            }
        }
    }
    Ok(())
}

#[test]
fn flipping_child() {
    let Some(argument) = child_argument() else {
        return;
    };
    let (pair, root) = argument.split_once(' ').unwrap();
    let pair = pairs::named(pair);
    let options = options(pair);
    let root = Path::new(root);
    let (whole, damaged) = (root.join("whole"), root.join("damaged"));
    let model = model();
    let mut random = Random(setting("INDEXY_FLIP_SEED", 1));
    for file in files(&whole) {
        let name = file.strip_prefix(&whole).unwrap().to_path_buf();
        let bytes = std::fs::read(&file).unwrap();
        if bytes.is_empty() {
            continue;
        }
        let len = bytes.len() as u64;
        let mut places = vec![0, len - 1];
        places.extend((0..setting("INDEXY_FLIPS", 2)).map(|_| random.below(len)));
        for at in places {
            let bit = random.below(8);
            let _ = std::fs::remove_dir_all(&damaged);
            copy(&whole, &damaged);
            let mut bytes = bytes.clone();
            bytes[at as usize] ^= 1 << bit;
            std::fs::write(damaged.join(&name), &bytes).unwrap();
            let counts = every_byte_counts(pair, &name);
            let what = format!(
                "{}: bit {bit} of byte {at} of {} ({len} bytes)",
                pairs::name(pair),
                name.display()
            );
            for options in [options.clone().read_only(true), options.clone()] {
                let result =
                    std::panic::catch_unwind(|| attempt(&damaged, options, &model, counts));
                match result {
                    Ok(Ok(())) => {}
                    Ok(Err(wrong)) => panic!("{what}: {wrong}"),
                    Err(_) => panic!("{what}: a panic"),
                }
            }
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_is_noticed_or_harmless() {
    for pair in pairs::chosen(0, 1) {
        let dir = fast_dir();
        make(&dir.path().join("whole"), &options(pair));
        let argument = format!("{} {}", pairs::name(pair), dir.path().display());
        let flips = child("flip::flipping_child", &argument).spawn();
        let limit = 120 + 20 * setting("INDEXY_FLIPS", 2);
        assert!(
            wait(flips.unwrap(), Duration::from_secs(limit)),
            "see above"
        );
    }
}

#[test]
fn a_file_cut_short_is_noticed_or_harmless() {
    pairs::chosen(0, 1).into_iter().for_each(cut_files);
}

fn cut_files(pair: Pair) {
    let options = options(pair);
    let dir = fast_dir();
    let (whole, damaged) = (dir.path().join("whole"), dir.path().join("damaged"));
    make(&whole, &options);
    let model = model();
    for file in files(&whole) {
        let name = file.strip_prefix(&whole).unwrap().to_path_buf();
        let len = std::fs::metadata(&file).unwrap().len();
        if len == 0 {
            continue;
        }
        for cut in [0, len / 2, len - 1] {
            // A log that ends in the middle is a torn tail where nothing says that it was durable:
            // not here, where it was closed; but without its last byte only that mark is torn.
            let _ = std::fs::remove_dir_all(&damaged);
            copy(&whole, &damaged);
            let path = damaged.join(&name);
            let file = std::fs::File::options().write(true).open(path).unwrap();
            file.set_len(cut).unwrap();
            let what = format!(
                "{}: {} cut to {cut} of {len} bytes",
                pairs::name(pair),
                name.display()
            );
            if let Err(wrong) = attempt(
                &damaged,
                options.clone(),
                &model,
                every_byte_counts(pair, &name),
            ) {
                panic!("{what}: {wrong}");
            }
        }
    }
}

/// Bytes behind the end: of a file that is written at its end, as a crash leaves them, or of one
/// that never has any.
#[test]
fn a_file_that_has_grown_is_noticed_or_harmless() {
    pairs::chosen(1, 2).into_iter().for_each(grow_files);
}

fn grow_files(pair: Pair) {
    let dir = fast_dir();
    let (whole, damaged) = (dir.path().join("whole"), dir.path().join("damaged"));
    make(&whole, &options(pair));
    let model = model();
    for file in files(&whole) {
        let name = file.strip_prefix(&whole).unwrap().to_path_buf();
        for more in [1, 20_000] {
            let _ = std::fs::remove_dir_all(&damaged);
            copy(&whole, &damaged);
            let path = damaged.join(&name);
            let mut bytes = std::fs::read(&path).unwrap();
            bytes.extend((0..more).map(|i: u32| (i * 7) as u8));
            std::fs::write(path, &bytes).unwrap();
            if let Err(wrong) = attempt(&damaged, options(pair), &model, false) {
                let pair = pairs::name(pair);
                panic!("{pair}: {more} bytes behind {}: {wrong}", name.display());
            }
        }
    }
}

/// The pages of one tree in the place of another's: of the same database, or of another one with
/// the same history.
#[test]
fn a_page_file_of_another_tree_is_noticed() {
    let pair = (IndexXKind::BPlus, IndexYKind::BPlus { page_bytes: 4096 });
    let dir = fast_dir();
    let path = |name: &str| dir.path().join(name);
    let (whole, twin, damaged) = (path("whole"), path("twin"), path("damaged"));
    for to in [&whole, &twin] {
        make(to, &options(pair));
    }
    let pages = |of: &Path, tree: u32| of.join(format!("trees/{tree}/pages"));
    for from in [pages(&whole, 2), pages(&twin, 1)] {
        let _ = std::fs::remove_dir_all(&damaged);
        copy(&whole, &damaged);
        std::fs::copy(&from, pages(&damaged, 1)).unwrap();
        match Db::open(&damaged, options(pair)).map(|_| ()) {
            Err(Error::Corrupt { path, .. }) => assert_eq!(path, pages(&damaged, 1)),
            other => panic!("{}: {other:?}", from.display()),
        }
    }
}

/// A merge that meets a damaged page leaves it alone. The handle goes on, and says so.
#[test]
fn a_merge_that_meets_damage_ends_nothing() {
    for x in [IndexXKind::Art, IndexXKind::BPlus] {
        let pair = (x, IndexYKind::Lsm);
        let dir = fast_dir();
        let path = dir.path().join("db");
        make(&path, &options(pair));
        {
            let db = open(&path, &options(pair));
            db.tree("t").unwrap().compact::<&[u8]>(..).unwrap();
            db.close().unwrap();
        }
        // The largest file is the table of all entries; its third page is a leaf.
        let length = |file: &PathBuf| std::fs::metadata(file).unwrap().len();
        let tables = files(&path).into_iter();
        let tables = tables.filter(|file| file.parent().is_some_and(|p| p.ends_with("tables")));
        let table = tables.max_by_key(length).unwrap();
        let mut bytes = std::fs::read(&table).unwrap();
        bytes[2 * 4096 + 777] ^= 1;
        std::fs::write(&table, bytes).unwrap();

        let db = open(&path, &options(pair));
        let tree = db.tree("t").unwrap();
        let mut model = model();
        for (i, (key, value)) in model.iter_mut().enumerate() {
            if i % 3 == 0 {
                value.push(1);
                tree.insert(key, &value).unwrap();
            }
        }
        for _ in 0..2 {
            let compacted = tree.compact::<&[u8]>(..);
            assert!(
                matches!(compacted, Err(Error::Corrupt { .. })),
                "{compacted:?}"
            );
            tree.insert("more", "and more").unwrap();
            db.flush().unwrap();
        }
        assert_eq!((db.stats().y_damaged, tree.stats().y_damaged), (1, 1));
        let mut lost = 0;
        for (key, value) in &model {
            match tree.get(key) {
                Ok(found) => assert_eq!(found.as_deref(), Some(&value[..])),
                Err(Error::Corrupt { path, .. }) => {
                    assert_eq!(path, table);
                    lost += 1;
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert!((1..300).contains(&lost), "{lost} keys of one page");
        let found: u64 = db
            .verify()
            .unwrap()
            .trees
            .iter()
            .map(|tree| tree.damaged)
            .sum();
        assert_eq!(found, 1);
        db.sync().unwrap();
        db.close().unwrap();
    }
}

/// However few entries the tree has: the database opens, other trees are as they were, and reads of
/// the tree say what is damaged.
#[test]
fn a_damaged_small_tree_keeps_nobody_out() {
    let options = options((IndexXKind::Art, IndexYKind::Lsm));
    let dir = fast_dir();
    let path = dir.path().join("db");
    let db = open(&path, &options);
    for name in ["damaged", "whole"] {
        let tree = db.tree(name).unwrap();
        for n in 0..100u8 {
            tree.insert([n], [n; 30]).unwrap();
        }
    }
    db.close().unwrap();
    drop(db);
    let tables = files(&path).into_iter();
    let tables = tables.filter(|file| file.parent().is_some_and(|p| p.ends_with("tables")));
    let table = tables.min().unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[4096 + 777] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    for read_only in [true, false] {
        let db = open(&path, &options.clone().read_only(read_only));
        let (damaged, whole) = (db.tree("damaged").unwrap(), db.tree("whole").unwrap());
        assert_eq!(whole.len().unwrap(), 100);
        match damaged.get([7]) {
            Err(Error::Corrupt { path, .. }) => assert_eq!(path, table),
            other => panic!("{other:?}"),
        }
    }
}
