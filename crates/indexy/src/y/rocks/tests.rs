//! The conformance suite, and what is special about this engine.

use super::*;
use crate::y::conformance::{self, Entries, Model, Store, conformance_tests, del, put, settle};
use std::fs;
use tempfile::TempDir;

/// A tree in a temporary directory.
pub(super) struct OnDisk {
    dir: TempDir,
    pub(super) shared: Arc<RocksShared>,
}

impl OnDisk {
    pub(super) fn new() -> Self {
        Self::with_cache(4 << 20)
    }

    pub(super) fn with_cache(bytes: usize) -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            shared: Arc::new(RocksShared::new(bytes)),
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    pub(super) fn try_open(&self) -> Result<RocksY> {
        RocksY::open(&self.path(), &self.shared, false)
    }

    pub(super) fn open_read_only(&self) -> Result<RocksY> {
        RocksY::open(&self.path(), &self.shared, true)
    }
}

impl Store for OnDisk {
    type Y = RocksY;

    fn open(&self) -> RocksY {
        self.try_open().unwrap()
    }

    fn open_copy(&self, dir: &Path) -> RocksY {
        RocksY::open(dir, &self.shared, false).unwrap()
    }

    fn copy_dir(&self) -> PathBuf {
        self.dir.path().join("copy")
    }

    fn dir(&self) -> Option<PathBuf> {
        Some(self.path())
    }

    fn open_read_only(&self, dir: &Path) -> Option<Result<RocksY>> {
        Some(RocksY::open(dir, &self.shared, true))
    }
}

conformance_tests!(OnDisk::new());

mod no_cache {
    //! The same with next to no cache: every block is read and given up.
    use super::OnDisk;
    use crate::y::conformance::conformance_tests;
    conformance_tests!(OnDisk::with_cache(0));
}

/// `n` entries from `first`, as wide as a small block.
pub(super) fn numbered(first: u64, n: u64, value: &[u8]) -> Entries {
    (first..first + n)
        .map(|i| put(&i.to_be_bytes(), value))
        .collect()
}

/// Everything in a directory: names, bytes, times of change.
fn picture(dir: &Path) -> Vec<(PathBuf, Vec<u8>, std::time::SystemTime)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::metadata(&path).unwrap();
        let bytes = match meta.is_dir() {
            true => {
                all.extend(picture(&path));
                Vec::new()
            }
            false => fs::read(&path).unwrap(),
        };
        all.push((path, bytes, meta.modified().unwrap()));
    }
    all.sort();
    all
}

#[test]
fn read_only_writes_nothing() {
    let store = OnDisk::new();
    assert!(matches!(
        store.open_read_only(),
        Err(Error::NoDatabase { .. })
    ));
    assert!(!store.path().exists());
    let mut model = Model::new();
    let y = store.open();
    for round in 0..6 {
        conformance::write_both(
            &y,
            &mut model,
            &numbered(round * 7, 300, &[round as u8; 40]),
        );
    }
    settle(&y);
    drop(y);
    let before = picture(&store.path());
    let one = store.open_read_only().unwrap();
    let two = store.open_read_only().unwrap();
    for y in [&one, &two] {
        conformance::check(y, &model);
        let refused = conformance::write(y, &vec![put(b"a", b"1")]);
        assert!(matches!(refused, Err(Error::ReadOnly)), "{refused:?}");
        assert!(y.maintain().is_err());
    }
    assert!(one.release_files());
    drop((one, two));
    assert!(picture(&store.path()) == before, "the directory changed");
    // And the check sees changes: opening for writing makes some.
    drop(store.open());
    assert!(picture(&store.path()) != before);
}

#[test]
fn released_files_can_be_opened_again_at_once() {
    let store = OnDisk::new();
    let y = store.open();
    let mut model = Model::new();
    conformance::write_both(&y, &mut model, &numbered(0, 1000, b"v"));
    let mut open = y.range(b"", None, Order::Ascending).unwrap();
    open.next().unwrap().unwrap();
    assert!(!y.release_files(), "an iterator is open");
    assert_eq!(open.by_ref().filter(Result::is_ok).count(), 999);
    drop(open);
    assert!(y.release_files());
    assert!(matches!(y.get(b"a"), Err(Error::Closed)));
    // RocksDB's own lock is free although `y` lives.
    let again = store.open();
    conformance::check(&again, &model);
    drop(again);
    drop(y);
    conformance::check(&store.open(), &model);
}

#[test]
fn i2_overwrites_and_deletes_win_after_reopen_and_compaction() {
    let store = OnDisk::new();
    let mut model = Model::new();
    for round in 0u8..10 {
        let y = store.open();
        let mut run = numbered(0, 2000, &[round; 30]);
        for (i, entry) in run.iter_mut().enumerate() {
            if i % 10 == round as usize {
                entry.1 = None;
            }
        }
        conformance::write_both(&y, &mut model, &run);
        if round % 2 == 1 {
            settle(&y);
        }
        conformance::check(&y, &model);
        drop(y);
        conformance::check(&store.open(), &model);
    }
    let y = store.open();
    let engine = y.engine().unwrap();
    engine.db.compact_range(None::<&[u8]>, None::<&[u8]>);
    drop(engine);
    assert_eq!(y.run_count(), 1);
    conformance::check(&y, &model);
    drop(y);
    conformance::check(&store.open(), &model);
}

/// A run longer than one table: all of its tables arrive together.
#[test]
fn a_long_run_is_several_tables() {
    let store = OnDisk::new();
    let y = store.open();
    let mut model = Model::new();
    conformance::write_both(&y, &mut model, &numbered(0, 500, &[1; 100]));
    conformance::write_both(&y, &mut model, &numbered(0, 700, &[7; 100_000]));
    assert!(fs::read_dir(store.path().join("incoming")).unwrap().count() == 0);
    conformance::check(&y, &model);
    settle(&y);
    conformance::check(&y, &model);
    drop(y);
    conformance::check(&store.open(), &model);
}

#[test]
fn compaction_keeps_level_0_short_by_itself() {
    let store = OnDisk::new();
    let y = store.open();
    let mut model = Model::new();
    for round in 0..40u64 {
        let run: Entries = (0..200)
            .map(|i| put(&(i * 40 + round).to_be_bytes(), &[round as u8; 50]))
            .collect();
        conformance::write_both(&y, &mut model, &run);
        while y.congested() {
            assert!(y.maintain().is_ok());
        }
    }
    settle(&y);
    assert!(!y.congested());
    assert!(y.run_count() < 8, "{}", y.run_count());
    conformance::check(&y, &model);
}

/// What a crash leaves of a run in the making is no part of the tree, and goes.
#[test]
fn leftovers_of_a_run_go_at_the_next_open() {
    let store = OnDisk::new();
    let y = store.open();
    let mut model = Model::new();
    conformance::write_both(&y, &mut model, &vec![put(b"a", b"1"), del(b"b")]);
    drop(y);
    let incoming = store.path().join("incoming");
    fs::write(incoming.join("0.run"), b"half a table").unwrap();
    drop(store.open_read_only().unwrap());
    assert!(incoming.join("0.run").exists());
    let y = store.open();
    assert!(!incoming.join("0.run").exists());
    conformance::check(&y, &model);
    conformance::write_both(&y, &mut model, &vec![put(b"c", b"2")]);
    conformance::check(&y, &model);
}
