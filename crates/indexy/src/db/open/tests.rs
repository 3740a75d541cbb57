//! A process dies at any I/O, the system lives on, and the power fails only when the next process
//! has gone to work: nothing that it was told is taken back. And what a new database is made of.

use crate::{
    db::{Db, Durability, Options},
    error::{Error, Result},
    storage::{
        Buffered, Storage, StorageFile,
        sim::{Fault, Sim},
    },
};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

const SEEDS: u64 = 4;

/// Log and manifest are on `sim`, trees in the real directory.
fn open(sim: &Sim, dir: &Path) -> Result<Db> {
    let options = Options::new(4 << 20)
        .durability(Durability::Sync)
        .min_segment_bytes(4 << 10)
        .log_limit_bytes(32 << 10);
    Db::open_on(Arc::new(sim.clone()), dir, options)
}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn contents(db: &Db) -> BTreeMap<String, Entries> {
    let entries = |name: &String| {
        let all = db.tree(name).unwrap().iter().map(|entry| {
            let (key, value) = entry.unwrap();
            (key.to_vec(), value.to_vec())
        });
        (name.clone(), all.collect())
    };
    db.tree_names().iter().map(entries).collect()
}

/// Goes through all this with a death at I/O `at` of `operation`; whether it came to that.
fn dies(operation: fn(&Db) -> Result<()>, at: u64, seed: u64) -> bool {
    let name = format!("I/O {at}.{seed}");
    let dir = tempfile::tempdir().unwrap();
    let sim = Sim::default();
    std::fs::create_dir(dir.path().join("trees")).unwrap();
    sim.tamper(&dir.path().join("LOCK"), vec![]);
    let db = open(&sim, dir.path()).unwrap();
    for tree in ["a", "b"] {
        let tree = db.tree(tree).unwrap();
        for i in 0..12u8 {
            tree.insert([i], [i; 900]).unwrap();
        }
    }
    sim.fail_at(sim.ios() + at, Fault::PowerLoss, true);
    let _ = operation(&db);
    let died = sim.faults() > 0;
    drop(db);
    sim.heal();
    let db = open(&sim, dir.path()).unwrap_or_else(|e| panic!("{name}: {e}"));
    for tree in db.tree_names() {
        db.tree(&tree).unwrap().insert("after", "that").unwrap();
    }
    let (told, after) = (contents(&db), sim.crash(seed));
    drop(db);
    let db = open(&after, dir.path()).unwrap_or_else(|e| panic!("{name}, after: {e}"));
    assert!(contents(&db) == told, "{name}");
    died
}

fn dies_everywhere(operation: fn(&Db) -> Result<()>) {
    let died = |at: &u64| {
        (0..SEEDS)
            .filter(|seed| dies(operation, *at, *seed))
            .count()
            > 0
    };
    assert!((1..).take_while(died).count() > 5);
}

#[test]
fn i6_a_truncation_that_is_not_durable_is_not_built_on() {
    dies_everywhere(Db::flush);
}

#[test]
fn a_drop_that_is_not_durable_is_not_built_on() {
    dies_everywhere(|db| db.drop_tree("b"));
}

#[test]
fn a_tree_whose_making_is_not_durable_is_not_built_on() {
    dies_everywhere(|db| db.tree("c").map(drop));
}

/// What is done to names, in order.
#[derive(Default)]
struct Named(Mutex<Vec<(&'static str, PathBuf)>>);

impl Named {
    fn add(&self, what: &'static str, path: &Path) {
        self.0.lock().push((what, path.to_path_buf()));
    }
}

impl Storage for Named {
    fn create(&self, path: &Path) -> Result<Arc<dyn StorageFile>> {
        Buffered.create(path)
    }

    fn open(&self, path: &Path, write: bool) -> Result<Arc<dyn StorageFile>> {
        Buffered.open(path, write)
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        Buffered.list(dir)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Buffered.exists(path)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.add("create", dir);
        Buffered.create_dir_all(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.add("rename", to);
        Buffered.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        Buffered.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.add("sync", dir);
        Buffered.sync_dir(dir)
    }
}

#[test]
fn the_folders_of_a_new_database_are_durable_before_its_manifest() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let named = Arc::new(Named::default());
    drop(Db::open_on(named.clone(), &path, Options::new(4 << 20)).unwrap());
    let done = named.0.lock();
    let at = |what, name: &str| {
        let path = path.join(name);
        let found = done.iter().position(|done| *done == (what, path.clone()));
        found.unwrap_or_else(|| panic!("{what} {name}: {done:?}"))
    };
    let manifest = at("rename", "MANIFEST");
    let synced = done[..manifest]
        .iter()
        .rposition(|done| *done == ("sync", path.clone()));
    let folders = at("create", "log").max(at("create", "trees"));
    assert!(synced.is_some_and(|synced| folders < synced), "{done:?}");
}

/// Where nothing can have been logged, no log is missing.
#[test]
fn a_folder_of_the_log_that_is_missing_is_made_only_where_no_tree_was() {
    let dir = tempfile::tempdir().unwrap();
    let (options, log) = (Options::new(4 << 20), dir.path().join("log"));
    drop(Db::open(dir.path(), options.clone()).unwrap());
    std::fs::remove_dir_all(&log).unwrap();
    let db = Db::open(dir.path(), options.clone()).unwrap();
    db.tree("t").unwrap();
    drop(db);
    std::fs::remove_dir_all(&log).unwrap();
    assert!(Db::open(dir.path(), options).is_err());
    assert!(!log.exists());
}

/// Whatever piece of it a device has lost.
#[test]
fn a_zeroed_piece_of_the_manifest_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new(4 << 20);
    let db = Db::open(dir.path(), options.clone()).unwrap();
    // Names that take several pieces.
    let names: Vec<String> = (0..12)
        .map(|n| format!("{n} {}", "\"".repeat(200)))
        .collect();
    for name in &names {
        db.tree(name).unwrap();
    }
    db.close().unwrap();
    let manifest = dir.path().join("MANIFEST");
    let whole = std::fs::read(&manifest).unwrap();
    assert!(whole.len() > 4096, "{}", whole.len());
    for piece in [512, 4096, whole.len()] {
        for from in (0..whole.len()).step_by(piece) {
            let to = whole.len().min(from + piece);
            let mut damaged = whole.clone();
            damaged[from..to].fill(0);
            std::fs::write(&manifest, &damaged).unwrap();
            for read_only in [true, false] {
                let options = options.clone().read_only(read_only);
                match Db::open(dir.path(), options).map(drop) {
                    Err(Error::Corrupt { path, offset, .. }) => {
                        assert_eq!(path, manifest, "{from}..{to}");
                        assert!(offset < whole.len() as u64, "{from}..{to}: {offset}");
                    }
                    other => panic!("{from}..{to}: {other:?}"),
                }
            }
            assert!(std::fs::read(&manifest).unwrap() == damaged, "{from}..{to}");
        }
    }
    std::fs::write(&manifest, &whole).unwrap();
    let db = Db::open(dir.path(), options).unwrap();
    assert_eq!(db.tree_names(), names);
}
