//! The conformance suite on real files, with levels of real size and with tiny ones (so that small
//! tests reach all levels), and what is special about this engine.

use super::{manifest, tree::TABLE_BYTES, *};
use crate::{
    error::{Error, Result},
    x::Order,
    y::{
        conformance::{self, Entries, Model, Store, conformance_tests, put},
        contract::{IndexY, Maintained},
    },
};
use lsm_tree::compaction::PullDown;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};
use tempfile::TempDir;

mod damage;
mod full_disk;

/// A tree in a temporary directory.
pub(super) struct OnDisk {
    dir: TempDir,
    shared: Arc<LsmShared>,
    table_bytes: u64,
}

impl OnDisk {
    pub(super) fn new() -> Self {
        Self {
            dir: temporary(),
            // Past the page cache, with a buffer for reads that are made together.
            shared: Arc::new(LsmShared::new(4 << 20, true)),
            table_bytes: TABLE_BYTES,
        }
    }

    /// With levels that a few KiB fill, and next to no cache; read through the system's.
    pub(super) fn tiny() -> Self {
        Self {
            shared: Arc::new(LsmShared::new(0, false)),
            table_bytes: 4 << 10,
            ..Self::new()
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    fn open_at(&self, path: &Path) -> LsmY {
        let mut y = LsmY::open(path, &self.shared, false).unwrap();
        y.table_bytes = self.table_bytes;
        y
    }

    pub(super) fn open_read_only(&self) -> Result<LsmY> {
        LsmY::open(&self.path(), &self.shared, true)
    }
}

impl Store for OnDisk {
    type Y = LsmY;
    fn open(&self) -> LsmY {
        self.open_at(&self.path())
    }
    fn open_copy(&self, dir: &Path) -> LsmY {
        self.open_at(dir)
    }
    fn copy_dir(&self) -> PathBuf {
        self.dir.path().join("copy")
    }
    fn dir(&self) -> Option<PathBuf> {
        Some(self.path())
    }
    fn open_read_only(&self, dir: &Path) -> Option<Result<LsmY>> {
        Some(LsmY::open(dir, &self.shared, true))
    }
}

mod suite {
    use super::*;
    conformance_tests!(OnDisk::new());
}

mod suite_with_tiny_levels {
    use super::*;
    conformance_tests!(OnDisk::tiny());
}

/// In memory where the system offers it: these tests sync thousands of times.
fn temporary() -> TempDir {
    TempDir::new_in("/dev/shm")
        .or_else(|_| TempDir::new())
        .unwrap()
}

/// Every file below `dir` with its bytes.
pub(super) fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => drop(found.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    found
}

/// A run of random keys below `keys`, some of them deletes.
pub(super) fn random_run(rng: &mut StdRng, keys: u64, n: usize, value: &[u8]) -> Entries {
    let run: BTreeMap<_, _> = (0..n)
        .map(|_| {
            let value = (!rng.random_bool(0.2)).then(|| value.to_vec());
            (rng.random_range(0..keys).to_be_bytes().to_vec(), value)
        })
        .collect();
    run.into_iter().collect()
}

#[test]
fn all_levels_fill_and_agree_with_a_model() {
    let store = OnDisk::tiny();
    let mut rng = StdRng::seed_from_u64(11);
    let mut model = Model::new();
    let mut y = store.open();
    let mut most_runs = 0;
    for round in 0u32..200 {
        let run = random_run(&mut rng, 40_000, 800, &[round as u8; 40]);
        conformance::write_both(&y, &mut model, &run);
        conformance::settle(&y);
        most_runs = most_runs.max(y.run_count() - y.snapshot().level0.runs);
        assert!(!y.congested());
        if round % 40 == 39 {
            conformance::check(&y, &model);
            drop(y);
            y = store.open();
        }
    }
    assert!(most_runs >= 3, "{most_runs} levels");
    conformance::check(&y, &model);
}

#[test]
fn compaction_never_gives_up_on_level_0() {
    // Tables of one key: the engine finds no partner for any of them.
    let store = OnDisk::tiny();
    let mut y = store.open();
    y.table_bytes = 16;
    let mut rng = StdRng::seed_from_u64(12);
    let mut model = Model::new();
    for round in 0u32..60 {
        let run = random_run(&mut rng, 40_000, 300, &round.to_be_bytes());
        conformance::write_both(&y, &mut model, &run);
        conformance::settle(&y);
        assert!(!y.congested(), "round {round}");
    }
    conformance::check(&y, &model);
}

#[test]
fn read_only_reads_all_and_writes_nothing() {
    let store = OnDisk::new();
    let missing = store.open_read_only();
    assert!(matches!(missing, Err(Error::NoDatabase { .. })));
    assert!(!store.path().exists());
    let mut model = Model::new();
    {
        let y = store.open();
        for n in 0u8..7 {
            let entries = (0u32..500).map(|i| put(&(i * 3).to_be_bytes(), &[n; 40]));
            conformance::write_both(&y, &mut model, &entries.collect());
            y.maintain().unwrap();
        }
    }
    // What a crash leaves.
    fs::write(store.path().join("tables/999"), b"half a table").unwrap();
    fs::write(store.path().join("v77777"), b"half a version").unwrap();
    fs::write(store.path().join(".tmpAbCdEf"), b"").unwrap();
    let before = files(&store.path());
    let changed = || fs::metadata(store.path()).unwrap().modified().unwrap();
    let changed_before = changed();
    {
        let y = store.open_read_only().unwrap();
        conformance::check(&y, &model);
        assert!(matches!(
            conformance::write(&y, &vec![put(b"a", b"")]),
            Err(Error::ReadOnly)
        ));
        assert!(matches!(y.maintain(), Err(Error::ReadOnly)));
        y.make_durable().unwrap();
    }
    assert_eq!(files(&store.path()), before);
    assert_eq!(changed(), changed_before);
    // A writing open removes it.
    let y = store.open();
    conformance::check(&y, &model);
    assert!(!files(&store.path()).keys().any(|p| {
        [".tmpAbCdEf", "v77777", "999"].contains(&p.file_name().unwrap().to_str().unwrap())
    }));
}

#[test]
fn i4_failed_runs_leave_no_files() {
    let store = OnDisk::new();
    let y = store.open();
    let mut model = Model::new();
    conformance::write_both(&y, &mut model, &vec![put(b"a", b"1")]);
    let before = files(&store.path());
    let entries: Entries = (0u32..20_000)
        .map(|i| put(&i.to_be_bytes(), &[7; 100]))
        .collect();
    let fail = || {
        y.write_run(&mut conformance::ListRun {
            entries: &entries,
            fail_at: Some(19_000),
            before_publish: &mut || Ok(()),
        })
    };
    assert!(fail().is_err());
    assert_eq!(files(&store.path()), before);
    // While a scan is open, an old snapshot may need any file: the next maintenance cleans up.
    let mut scan = y.range(b"", None, Order::Ascending).unwrap();
    conformance::write_both(&y, &mut model, &vec![put(b"b", b"2")]);
    assert!(fail().is_err());
    assert!(scan.next().unwrap().is_ok());
    drop(scan);
    conformance::settle(&y);
    let tables = files(&store.path().join(manifest::TABLES)).len();
    assert_eq!(tables, y.snapshot().tables().count());
    conformance::check(&y, &model);
}

#[test]
fn version_files_do_not_pile_up() {
    let store = OnDisk::new();
    let y = store.open();
    for n in 0u32..30 {
        conformance::write(&y, &vec![put(&n.to_be_bytes(), b"v")]).unwrap();
        let versions = files(&store.path())
            .keys()
            .filter(|p| p.file_name().unwrap().to_str().unwrap().starts_with('v'))
            .count();
        assert_eq!(versions, 1);
    }
}

#[test]
fn i7_the_cache_keeps_its_size_and_can_change_it() {
    let store = OnDisk::new();
    let y = store.open();
    let entries = (0u32..200_000).map(|i| put(&i.to_be_bytes(), &[1; 100]));
    conformance::write(&y, &entries.collect()).unwrap();
    let mut rng = StdRng::seed_from_u64(5);
    for bytes in [1 << 20, 8 << 20, 0, 2 << 20] {
        store.shared.set_memory(bytes);
        assert!(store.shared.memory_bytes() <= bytes.max(512 << 10));
        for _ in 0..2000 {
            let key = rng.random_range(0u32..200_000).to_be_bytes();
            assert!(y.get(&key).unwrap().is_some());
        }
    }
}

#[test]
fn filters_are_used_while_they_fit() {
    let shared = LsmShared::new(4 << 20, false);
    let of = |mib: usize| mib << 20;
    shared.account_filters(0, of(1));
    assert!(shared.filters_fit(of(1), of(1)));
    shared.account_filters(of(1), of(10));
    // The newest tenth still fits, the rest does not.
    assert!(shared.filters_fit(of(1), of(10)));
    assert!(!shared.filters_fit(of(10), of(10)));
    // Another tree takes its share.
    shared.account_filters(0, of(30));
    assert!(!shared.filters_fit(of(1), of(10)));
    shared.account_filters(of(30), 0);
    assert!(shared.filters_fit(of(1), of(10)));
}

/// Closing does not wait for a merge; what it leaves is as if it had not been begun.
#[test]
fn i4_an_interrupted_compaction_changes_nothing() {
    let store = OnDisk::tiny();
    let (mut rng, mut model) = (StdRng::seed_from_u64(5), Model::new());
    let y = store.open();
    for _ in 0..4 {
        let run = random_run(&mut rng, 4_000, 800, &[7; 40]);
        conformance::write_both(&y, &mut model, &run);
    }
    let before = y.snapshot();
    y.interrupt();
    assert_eq!(y.maintain().unwrap(), Maintained::Idle);
    // As if it had come in the middle of one.
    let merge = Arc::new(PullDown(0, 6));
    y.compact(y.writable().unwrap(), merge).unwrap();
    assert_eq!(y.snapshot().level0, before.level0);
    drop(before);
    conformance::check(&y, &model);
    drop(y);
    let y = store.open();
    conformance::check(&y, &model);
    let merge = Arc::new(PullDown(0, 6));
    y.compact(y.writable().unwrap(), merge).unwrap();
    assert_eq!(y.snapshot().level0.runs, 0, "opened again, it merges");
    conformance::check(&y, &model);
}

/// Replaced tables are removed when their last reader goes: until then nobody else may have the
/// directory.
#[test]
fn files_are_released_when_nobody_reads_what_was_replaced() {
    let store = OnDisk::tiny();
    let (mut rng, mut model) = (StdRng::seed_from_u64(6), Model::new());
    let y = store.open();
    for _ in 0..4 {
        let run = random_run(&mut rng, 4_000, 800, &[7; 40]);
        conformance::write_both(&y, &mut model, &run);
    }
    assert!(!y.settled(), "level 0 is merged when writers rest");
    let reader = y.snapshot();
    let merge = Arc::new(PullDown(0, 6));
    y.compact(y.writable().unwrap(), merge).unwrap();
    assert!(!y.release_files());
    drop(reader);
    assert!(y.release_files());
    let tables = fs::read_dir(store.path().join(manifest::TABLES)).unwrap();
    assert_eq!(tables.count(), y.snapshot().tables().count());
    conformance::check(&y, &model);
}
