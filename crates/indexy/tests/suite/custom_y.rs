//! An Index Y from outside: it works with all that a database does, and what cannot work says why.

use crate::{
    places::fast_dir,
    support::{MIB, assert_sound, open},
};
use indexy::{
    Db, Error, IndexXKind, IndexYKind, Key, Options, Result, TreeOptions, Value,
    index_y::{
        Capabilities, IndexY, IndexYFactory, IndexYShared, Maintained, Order, RunSource, YIter,
    },
    limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES},
};
use std::{
    collections::BTreeMap,
    ops::Bound,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A map in memory, written to one file as a whole. Slow, and right.
pub struct FileY {
    dir: PathBuf,
    read_only: bool,
    map: Mutex<Arc<Map>>,
    /// The directory is the next owner's.
    released: AtomicBool,
    /// Calls of `get`.
    gets: Arc<AtomicUsize>,
}

const FILE: &str = "map";

fn save(dir: &Path, map: &Map) -> Result<()> {
    let mut bytes = Vec::new();
    for (key, value) in map {
        for part in [key, value] {
            bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
            bytes.extend_from_slice(part);
        }
    }
    let next = dir.join("next");
    std::fs::create_dir_all(dir)
        .and_then(|()| std::fs::write(&next, bytes))
        .and_then(|()| std::fs::rename(&next, dir.join(FILE)))
        .map_err(|e| Error::io("write", dir, e))
}

fn load(dir: &Path) -> Result<Map> {
    let path = dir.join(FILE);
    let bytes = std::fs::read(&path).map_err(|e| Error::io("read", &path, e))?;
    let (mut rest, mut parts) = (&bytes[..], Vec::new());
    while let Some((len, tail)) = rest.split_first_chunk::<4>() {
        let (part, tail) = tail
            .split_at_checked(u32::from_le_bytes(*len) as usize)
            .ok_or_else(|| Error::corrupt(&path, 0, "cut short"))?;
        parts.push(part.to_vec());
        rest = tail;
    }
    Ok(parts
        .chunks(2)
        .map(|p| (p[0].clone(), p[1].clone()))
        .collect())
}

impl FileY {
    pub fn open(dir: &Path, read_only: bool) -> Result<Self> {
        if !read_only && !dir.join(FILE).exists() {
            save(dir, &Map::new())?;
        }
        Ok(Self {
            dir: dir.into(),
            read_only,
            map: Mutex::new(Arc::new(load(dir)?)),
            released: AtomicBool::new(false),
            gets: Arc::default(),
        })
    }

    fn map(&self) -> Arc<Map> {
        self.map.lock().unwrap().clone()
    }
}

impl Drop for FileY {
    fn drop(&mut self) {
        // A tree that was dropped has no directory any more.
        if !self.read_only && !self.released.load(SeqCst) && self.dir.exists() {
            let _ = save(&self.dir, &self.map());
        }
    }
}

impl IndexY for FileY {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_key_bytes: MAX_KEY_BYTES,
            max_value_bytes: MAX_VALUE_BYTES,
            preferred_run_bytes: 64 << 10,
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.gets.fetch_add(1, SeqCst);
        Ok(self.map().get(key).map(|v| Value::new(v)))
    }

    fn range(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<YIter<'_>> {
        if to.is_some_and(|to| to <= from) {
            return Ok(Box::new(std::iter::empty()));
        }
        let (map, to) = (self.map(), to.map_or(Bound::Unbounded, Bound::Excluded));
        let entries = map.range::<[u8], _>((Bound::Included(from), to));
        let copied = entries.map(|(k, v)| Ok((Key::new(k), Value::new(v))));
        let mut all: Vec<_> = copied.collect();
        if order == Order::Descending {
            all.reverse();
        }
        Ok(Box::new(all.into_iter()))
    }

    fn write_run(&self, source: &mut dyn RunSource) -> Result<()> {
        let mut next = Map::clone(&self.map());
        source.drain(&mut |(key, value)| {
            match value {
                Some(value) => next.insert(key.to_vec(), value.to_vec()),
                None => next.remove(key),
            };
            Ok(())
        })?;
        source.before_publish()?;
        *self.map.lock().unwrap() = Arc::new(next);
        Ok(())
    }

    fn make_durable(&self) -> Result<()> {
        save(&self.dir, &self.map())
    }

    fn maintain(&self) -> Result<Maintained> {
        Ok(Maintained::Idle)
    }

    fn congested(&self) -> bool {
        false
    }

    fn is_empty(&self) -> Result<bool> {
        Ok(self.map().is_empty())
    }

    fn approximate_len(&self) -> u64 {
        self.map().len() as u64
    }

    fn memory_bytes(&self) -> usize {
        4096
    }

    fn disk_bytes(&self) -> u64 {
        std::fs::metadata(self.dir.join(FILE)).map_or(0, |m| m.len())
    }

    fn run_count(&self) -> usize {
        usize::from(!self.map().is_empty())
    }

    fn verify(&self) -> Result<u64> {
        Ok(self.approximate_len())
    }

    fn release_files(&self) -> bool {
        let saved = self.read_only || !self.dir.exists() || self.make_durable().is_ok();
        self.released.store(saved, SeqCst);
        saved
    }

    fn copy_to(&self, dest: &Path) -> Result<()> {
        save(dest, &self.map())
    }
}

/// Counts what it was asked for, and refuses where told to.
#[derive(Default)]
pub struct Files {
    shares: AtomicUsize,
    /// Calls of `get` of all that were opened.
    pub gets: Arc<AtomicUsize>,
    /// What `share` and `set_memory` said last.
    cache_bytes: Arc<AtomicUsize>,
    refuses: bool,
    work_bytes: usize,
    /// Its caches do not shrink.
    keeps: bool,
}

impl IndexYFactory for Files {
    fn share(&self, cache_bytes: usize) -> Result<Arc<dyn IndexYShared>> {
        if self.refuses {
            return Err(Error::Unsupported {
                what: "sharing".into(),
            });
        }
        self.shares.fetch_add(1, SeqCst);
        self.cache_bytes.store(cache_bytes, SeqCst);
        Ok(Arc::new(FilesShared {
            gets: self.gets.clone(),
            cache_bytes: self.cache_bytes.clone(),
            keeps: self.keeps,
        }))
    }

    fn work_bytes(&self) -> usize {
        self.work_bytes
    }
}

struct FilesShared {
    gets: Arc<AtomicUsize>,
    cache_bytes: Arc<AtomicUsize>,
    keeps: bool,
}

impl IndexYShared for FilesShared {
    fn open(&self, dir: &Path, read_only: bool) -> Result<Arc<dyn IndexY>> {
        let mut y = FileY::open(dir, read_only)?;
        y.gets = self.gets.clone();
        Ok(Arc::new(y))
    }

    fn memory_bytes(&self) -> usize {
        self.cache_bytes.load(SeqCst)
    }

    fn set_memory(&self, cache_bytes: usize) {
        let held = if self.keeps { self.memory_bytes() } else { 0 };
        self.cache_bytes.store(cache_bytes.max(held), SeqCst);
    }
}

fn file() -> IndexYKind {
    IndexYKind::custom("file").unwrap()
}

pub fn options_with(factory: &Arc<Files>) -> Options {
    let options = Options::new(4 * MIB).index_y(file());
    options.register_index_y("file", factory.clone()).unwrap()
}

fn options() -> Options {
    options_with(&Arc::default())
}

fn fill(db: &Db, name: &str, keys: u32) {
    let tree = db.tree(name).unwrap();
    for i in 0..keys {
        tree.insert(i.to_be_bytes(), [i as u8; 50]).unwrap();
    }
}

fn check(db: &Db, name: &str, keys: u32) {
    let tree = db.tree(name).unwrap();
    for i in (0..keys).step_by(7) {
        assert_eq!(tree.get(i.to_be_bytes()).unwrap().unwrap(), [i as u8; 50]);
    }
    let len = tree.iter().inspect(|e| assert!(e.is_ok())).count();
    assert_eq!(len as u64, u64::from(keys));
    assert_sound(db);
}

#[test]
fn everything_works_over_it() {
    let dir = fast_dir();
    let db = open(dir.path(), &options());
    fill(&db, "t", 60_000);
    fill(&db, "gone", 100);
    let report = db.verify().unwrap();
    assert!(report.is_ok(), "{report:?}");
    db.flush().unwrap();
    assert_eq!(db.tree("t").unwrap().pair().1.to_string(), "custom:file");
    assert!(db.stats().y_bytes_on_disk > 1_000_000);
    db.drop_tree("gone").unwrap();
    // What the log alone has.
    db.tree("t").unwrap().remove(5u32.to_be_bytes()).unwrap();
    let copy = dir.path().join("copy");
    db.checkpoint(&copy).unwrap();
    db.sync().unwrap();
    drop(db);
    for dir in [dir.path(), &copy] {
        for read_only in [true, false] {
            let db = open(dir, &options().read_only(read_only));
            assert_eq!(db.tree_names(), ["t"]);
            let tree = db.tree("t").unwrap();
            assert_eq!(tree.get(5u32.to_be_bytes()).unwrap(), None);
            assert_eq!(tree.len().unwrap(), 59_999);
            assert_sound(&db);
        }
    }
    let db = open(dir.path(), &options());
    let tree = db.tree("t").unwrap();
    tree.insert(5u32.to_be_bytes(), [5; 50]).unwrap();
    check(&db, "t", 60_000);
    db.close().unwrap();
    check(&open(dir.path(), &options()), "t", 60_000);
}

#[test]
fn a_tree_whose_directory_is_gone_is_not_made_anew() {
    let dir = fast_dir();
    let db = open(dir.path(), &options());
    fill(&db, "t", 100);
    db.close().unwrap();
    drop(db);
    std::fs::remove_dir_all(dir.path().join("trees").join("1")).unwrap();
    for read_only in [false, true] {
        let refused = Db::open(dir.path(), options().read_only(read_only));
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
    }
}

#[test]
fn without_its_factory_the_database_says_what_it_needs_and_stays_as_it_is() {
    let dir = fast_dir();
    let db = open(dir.path(), &options());
    fill(&db, "t", 100);
    db.close().unwrap();
    drop(db);
    // A folder that the next good open would clean away.
    let orphan = dir.path().join("trees").join("77");
    std::fs::create_dir(&orphan).unwrap();
    for read_only in [false, true] {
        let refused = Db::open(dir.path(), Options::new(4 * MIB).read_only(read_only));
        let Err(Error::Unsupported { what }) = refused else {
            panic!("{refused:?}");
        };
        assert!(what.contains("custom:file"), "{what}");
        assert!(what.contains("register_index_y"), "{what}");
    }
    assert!(orphan.exists(), "nothing was written");
    // Asked for without being known: refused as early.
    let fresh = dir.path().join("fresh");
    let asked = Options::new(4 * MIB).index_y(file());
    assert!(matches!(
        Db::open(&fresh, asked),
        Err(Error::Unsupported { .. })
    ));
    assert!(!fresh.exists());
    let db = open(&fresh, &Options::new(4 * MIB));
    let asked = db.tree_with("t", TreeOptions::new().index_y(file()));
    assert!(matches!(asked, Err(Error::Unsupported { .. })), "{asked:?}");
    assert!(db.tree_names().is_empty());
    // And with it all is there.
    check(&open(dir.path(), &options()), "t", 100);
    assert!(!orphan.exists());
}

/// I7: a kind from outside shares the caches' part with ours, is told when the part changes, and is
/// believed.
#[test]
fn i7_it_shares_the_budget_with_the_other_kinds() {
    let dir = fast_dir();
    let files: Arc<Files> = Arc::default();
    let db = open(dir.path(), &options_with(&files).index_y(IndexYKind::Lsm));
    fill(&db, "lsm", 10);
    assert_eq!(files.shares.load(SeqCst), 0, "nobody needed it yet");
    let of_custom = TreeOptions::new().index_y(file());
    db.tree_with("custom", of_custom.clone()).unwrap();
    db.tree_with("custom too", of_custom).unwrap();
    assert_eq!(files.shares.load(SeqCst), 1, "trees share");
    let half = files.cache_bytes.load(SeqCst);
    assert!((100 << 10..400 << 10).contains(&half), "{half}");
    let paged = TreeOptions::new().index_y(IndexYKind::BPlus { page_bytes: 4096 });
    db.tree_with("paged", paged).unwrap();
    let third = files.cache_bytes.load(SeqCst);
    assert_eq!(third, half, "LSM trees and paged ones share their pages");
    db.set_memory_budget(16 * MIB).unwrap();
    let now = files.cache_bytes.load(SeqCst);
    assert!(now > 3 * third && now < 5 * third, "{now}");
    // What it says is what counts, more than its share too.
    let used = db.stats().memory_used_bytes;
    files.cache_bytes.store(now + MIB, SeqCst);
    db.tree_with("another", TreeOptions::new().index_y(file()))
        .unwrap();
    let more = db.stats().memory_used_bytes - used;
    assert!((900 << 10..2 << 20).contains(&more), "{more}");
    check(&db, "lsm", 10);
}

/// I7: what runs take is counted from the start.
#[test]
fn i7_what_runs_take_is_counted() {
    let used = |work_bytes| {
        let dir = fast_dir();
        let files = Files {
            work_bytes,
            ..Files::default()
        };
        let options = Options::new(256 * MIB).register_index_y("file", Arc::new(files));
        open(dir.path(), &options.unwrap())
            .stats()
            .memory_used_bytes
    };
    assert_eq!(used(7 * MIB) - used(6 * MIB), MIB as u64);
}

#[test]
fn a_factory_that_refuses_leaves_the_database_whole() {
    let dir = fast_dir();
    let files = Arc::new(Files {
        refuses: true,
        ..Files::default()
    });
    let db = open(dir.path(), &options_with(&files).index_y(IndexYKind::Lsm));
    fill(&db, "t", 1000);
    let before = db.stats().memory_used_bytes;
    for _ in 0..3 {
        let refused = db.tree_with("custom", TreeOptions::new().index_y(file()));
        assert!(matches!(refused, Err(Error::Unsupported { .. })));
    }
    assert_eq!(db.tree_names(), ["t"]);
    let after = db.stats().memory_used_bytes;
    assert!(after <= before + MIB as u64 / 2, "{before} {after}");
    check(&db, "t", 1000);
}

#[test]
fn another_pair_than_the_remembered_one_is_a_mismatch() {
    let dir = fast_dir();
    let db = open(dir.path(), &options());
    fill(&db, "t", 10);
    let asked = db.tree_with("t", TreeOptions::new().index_y(IndexYKind::Lsm));
    let Err(Error::TreeMismatch { found, asked, .. }) = asked else {
        panic!("{asked:?}");
    };
    assert_eq!((&*found, &*asked), ("art-custom:file", "art-lsm"));
}

#[test]
fn a_later_registration_replaces_an_earlier_one() {
    let (first, second): (Arc<Files>, Arc<Files>) = Default::default();
    let options = options_with(&first);
    assert!(options == options.clone());
    let replaced = options.clone().register_index_y("file", second.clone());
    let replaced = replaced.unwrap();
    assert!(options != replaced);
    assert!(format!("{replaced:?}").contains("file"));
    let dir = fast_dir();
    fill(&open(dir.path(), &replaced), "t", 10);
    assert_eq!(first.shares.load(SeqCst), 0);
    assert_eq!(second.shares.load(SeqCst), 1);
}

/// I7: without a memory index, caches that cannot shrink have most of the budget. What other kinds
/// of disk index come to hold, and snapshots that spill, find room beside them.
#[test]
fn i7_caches_that_cannot_shrink_leave_room_for_writers() {
    let dir = fast_dir();
    let factory = Arc::new(Files {
        keeps: true,
        ..Files::default()
    });
    let options = options_with(&factory).index_x(IndexXKind::None);
    let db = open(dir.path(), &options);
    let tree = db.tree("t").unwrap();
    let keys = 40_000u32;
    let snapshot = db.snapshot().unwrap();
    for i in 0..keys {
        let inserted = tree.insert(i.to_be_bytes(), [i as u8; 100]);
        inserted.unwrap_or_else(|e| panic!("{i}: {e}: {:?}", db.stats()));
    }
    let stats = db.stats();
    assert!(
        stats.memory_used_bytes <= stats.memory_budget_bytes,
        "{stats:?}"
    );
    let held = factory.cache_bytes.load(SeqCst);
    assert!(held > 2 * MIB, "{held}");
    assert_eq!(snapshot.iter(&tree).count(), 0);
    assert_eq!(tree.len().unwrap(), u64::from(keys));
}
