//! Damaged and missing files, and a device that is full: the right answer or a typed error, never
//! wrong data, never a panic.

use super::tests::{OnDisk, numbered};
use super::*;
use crate::y::conformance::{self, Model, Store, put, settle};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use std::{collections::BTreeMap, fs, process::Command};
use tempfile::TempDir;

const KEYS: u64 = 600;

/// A tree with several runs and levels, and all of its files.
struct Damaged {
    store: OnDisk,
    model: Model,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.clone(), fs::read(&path).unwrap()))
        .collect()
}

impl Damaged {
    fn new() -> Self {
        let store = OnDisk::new();
        let mut model = Model::new();
        let y = store.open();
        conformance::write_both(&y, &mut model, &numbered(0, KEYS, &[1; 50]));
        settle(&y);
        for n in 2u8..5 {
            let run: conformance::Entries = (0..KEYS)
                .filter(|i| i % u64::from(n) == 0)
                .map(|i| (i.to_be_bytes().to_vec(), (i % 7 != 0).then(|| vec![n; 40])))
                .collect();
            conformance::write_both(&y, &mut model, &run);
        }
        assert!(y.run_count() >= 3, "{}", y.run_count());
        conformance::check(&y, &model);
        drop(y);
        let files = files(&store.path());
        Self {
            store,
            model,
            files,
        }
    }

    fn named(&self, part: &str) -> Vec<&PathBuf> {
        let name = |path: &&PathBuf| path.file_name().unwrap().to_string_lossy().contains(part);
        self.files.keys().filter(name).collect()
    }

    /// Does `harm` to the files, opens and reads everything, and puts the files back. Returns the
    /// errors met.
    fn after(&self, read_only: bool, harm: impl FnOnce()) -> Vec<Error> {
        // A new cache each time, so that nothing is remembered.
        let shared = Arc::new(RocksShared::new(0));
        harm();
        let opened = RocksY::open(&self.store.path(), &shared, read_only);
        let errors = match opened {
            Ok(y) => self.read_all(&y),
            Err(e) => vec![e],
        };
        for path in files(&self.store.path()).keys() {
            fs::remove_file(path).unwrap();
        }
        for (path, bytes) in &self.files {
            fs::write(path, bytes).unwrap();
        }
        errors
    }

    /// Panics where an answer is wrong.
    fn read_all(&self, y: &RocksY) -> Vec<Error> {
        let mut errors = Vec::new();
        for i in 0..KEYS + 10 {
            let key = i.to_be_bytes();
            let right = self.model.get(&key[..]).map(|v| &v[..]);
            match y.get(&key) {
                Ok(value) => assert_eq!(value.as_deref(), right),
                Err(e) => errors.push(e),
            }
            match y.multi_get(&[&key, b"no such key"]) {
                Ok(values) => assert_eq!(values[0].as_deref(), right),
                Err(e) => errors.push(e),
            }
        }
        for order in [Order::Ascending, Order::Descending] {
            let mut expected: Vec<_> = self.model.iter().collect();
            if order == Order::Descending {
                expected.reverse();
            }
            let mut expected = expected.into_iter();
            for entry in y.range(b"", None, order).unwrap() {
                match entry {
                    Ok((key, value)) => {
                        let (k, v) = expected.next().expect("no more than there is");
                        assert_eq!((&key[..], &value[..]), (&k[..], &v[..]));
                    }
                    Err(e) => {
                        errors.push(e);
                        expected = vec![].into_iter();
                    }
                }
            }
            assert_eq!(expected.next(), None);
        }
        match y.verify() {
            Ok(n) => assert_eq!(n, self.model.len() as u64),
            Err(e) => errors.push(e),
        }
        errors
    }
}

fn assert_corrupt(errors: &[Error], what: &str) {
    assert!(!errors.is_empty(), "{what}: not detected");
    for e in errors {
        assert!(matches!(e, Error::Corrupt { .. }), "{what}: {e:?}");
    }
}

/// Bytes that no read looks at (properties, padding) may change unseen.
#[test]
fn a_changed_byte_of_a_table_is_found_or_harmless() {
    let damaged = Damaged::new();
    let mut rng = StdRng::seed_from_u64(5);
    let (mut found, mut named) = (0, 0);
    for path in damaged.named(".sst") {
        for _ in 0..40 {
            let mut bytes = damaged.files[path].clone();
            let at = rng.random_range(0..bytes.len());
            bytes[at] ^= *[1u8, 0x80, 0xff, 0x10].choose(&mut rng).unwrap();
            let errors = damaged.after(rng.random_bool(0.7), || fs::write(path, &bytes).unwrap());
            for e in &errors {
                let Error::Corrupt { path: file, .. } = e else {
                    panic!("byte {at}: {e:?}");
                };
                named += usize::from(file == path);
            }
            found += usize::from(!errors.is_empty());
        }
    }
    assert!(found >= 80, "{found} of 160 found");
    assert!(named > 0, "no error names the file");
}

#[test]
fn a_cut_or_missing_table_is_found() {
    let damaged = Damaged::new();
    for path in damaged.named(".sst") {
        let bytes = &damaged.files[path];
        for read_only in [false, true] {
            let errors = damaged.after(read_only, || fs::remove_file(path).unwrap());
            assert_corrupt(&errors, "missing");
            for len in [0, 1, bytes.len() / 2, bytes.len() - 1] {
                let errors = damaged.after(read_only, || fs::write(path, &bytes[..len]).unwrap());
                assert_corrupt(&errors, "cut");
            }
        }
    }
    // And a table in the place of another.
    let tables = damaged.named(".sst");
    let other = &damaged.files[tables[1]];
    let errors = damaged.after(true, || fs::write(tables[0], other).unwrap());
    assert_corrupt(&errors, "swapped");
}

#[test]
fn a_damaged_or_missing_manifest_is_found() {
    let damaged = Damaged::new();
    let current = damaged.named("CURRENT")[0];
    let manifest = damaged.named("MANIFEST")[0];
    for read_only in [false, true] {
        for path in [current, manifest] {
            let errors = damaged.after(read_only, || fs::remove_file(path).unwrap());
            assert_corrupt(&errors, "missing");
            let errors = damaged.after(read_only, || fs::write(path, b"").unwrap());
            assert_corrupt(&errors, "empty");
        }
    }
    let mut rng = StdRng::seed_from_u64(6);
    for path in [current, manifest] {
        let bytes = &damaged.files[path];
        for _ in 0..150 {
            let at = rng.random_range(0..bytes.len());
            let mut changed = bytes.clone();
            changed[at] ^= *[1u8, 0x80, 0xff, 0x10].choose(&mut rng).unwrap();
            let errors = damaged.after(true, || fs::write(path, &changed).unwrap());
            assert_corrupt(&errors, &format!("{} byte {at}", path.display()));
        }
        for _ in 0..50 {
            let len = rng.random_range(0..bytes.len());
            let errors = damaged.after(true, || fs::write(path, &bytes[..len]).unwrap());
            assert_corrupt(&errors, &format!("{} cut at {len}", path.display()));
        }
    }
}

/// A creation that was cut short by a crash is begun anew; nothing was acknowledged in it.
#[test]
fn a_creation_cut_short_is_begun_anew() {
    let store = OnDisk::new();
    fs::create_dir_all(store.path()).unwrap();
    fs::write(store.path().join("MANIFEST-000001"), b"half").unwrap();
    fs::write(store.path().join("000001.dbtmp"), b"MANIF").unwrap();
    fs::write(store.path().join("LOCK"), b"").unwrap();
    let y = store.open();
    let mut model = Model::new();
    conformance::write_both(&y, &mut model, &vec![put(b"a", b"1")]);
    drop(y);
    conformance::check(&store.open(), &model);
}

/// A run that cannot be written is an error, and leaves a tree that takes the next one.
#[test]
fn i4_a_run_that_cannot_be_written_costs_nothing_else() {
    let store = OnDisk::new();
    let y = store.open();
    let mut model = Model::new();
    // A file where the folder of runs would be.
    let incoming = store.path().join("incoming");
    fs::write(&incoming, b"").unwrap();
    let refused = conformance::write(&y, &vec![put(b"a", b"1")]);
    assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
    conformance::check(&y, &model);
    fs::remove_file(&incoming).unwrap();
    conformance::write_both(&y, &mut model, &vec![put(b"a", b"2")]);
    conformance::check(&y, &model);
}

/// The engine is opened anew when it has been marked and is not well, with readers inside or not.
#[test]
fn a_stuck_engine_is_opened_again() {
    let store = OnDisk::new();
    let y = store.open();
    let mut model = Model::new();
    conformance::write_both(&y, &mut model, &numbered(0, 1000, b"v"));
    for _ in 0..3 {
        // What RocksDB answers to writes after this is what it answers after a failure: no.
        y.engine().unwrap().stop_compaction();
        y.suspect.store(true, Relaxed);
        let mut open = y.range(b"", None, Order::Ascending).unwrap();
        open.next().unwrap().unwrap();
        let refused = y.maintain();
        assert!(refused.is_err(), "an iterator holds the old one");
        assert_eq!(open.by_ref().filter(Result::is_ok).count(), 999);
        drop(open);
        conformance::write_both(&y, &mut model, &vec![put(&5u64.to_be_bytes(), b"new")]);
        settle(&y);
        conformance::check(&y, &model);
    }
}

/// A file system of a few MiB in a directory.
struct Mounted(TempDir);

impl Mounted {
    fn new(mib: u64) -> Self {
        let dir = TempDir::new().unwrap();
        let image = dir.path().join("image");
        fs::File::create(&image)
            .unwrap()
            .set_len(mib << 20)
            .unwrap();
        fs::create_dir(dir.path().join("at")).unwrap();
        run(Command::new("mkfs.ext4").arg("-qF").arg(&image));
        run(Command::new("mount")
            .arg("-oloop")
            .arg(&image)
            .arg(dir.path().join("at")));
        Self(dir)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("at")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run(Command::new("umount").arg(self.path()));
    }
}

fn run(command: &mut Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}

#[test]
#[ignore = "mounts a file system: needs root"]
fn a_full_disk_costs_the_run_or_the_step_and_nothing_else() {
    let disk = Mounted::new(24);
    let path = disk.path().join("tree");
    let shared = Arc::new(RocksShared::new(1 << 20));
    let y = RocksY::open(&path, &shared, false).unwrap();
    let mut model = Model::new();
    let mut rng = StdRng::seed_from_u64(31);
    let (mut refused_runs, mut refused_steps) = (0, 0);
    for round in 0u32..30 {
        let mut run: BTreeMap<Vec<u8>, Option<Vec<u8>>> = BTreeMap::new();
        for _ in 0..20_000 {
            let key = rng.random_range(0u64..60_000).to_be_bytes().to_vec();
            run.insert(key, rng.random_bool(0.9).then(|| vec![round as u8; 100]));
        }
        let entries: conformance::Entries = run.into_iter().collect();
        // Ballast that comes and goes fills the device at other points.
        let ballast = disk.path().join("ballast");
        if round % 3 == 1 {
            fs::write(&ballast, vec![0; rng.random_range(1 << 20..16 << 20)]).ok();
        }
        match conformance::write(&y, &entries) {
            Ok(()) => {
                for (key, value) in &entries {
                    match value {
                        Some(value) => model.insert(key.clone(), value.clone()),
                        None => model.remove(key),
                    };
                }
            }
            Err(e) => {
                assert!(matches!(e, Error::OutOfSpace { .. }), "{e:?}");
                refused_runs += 1;
                // Whether it is there or not is open: it is written again, when there is room.
                fs::remove_file(&ballast).ok();
                let again = (0..50).any(|_| {
                    let _ = y.maintain();
                    conformance::write(&y, &entries).is_ok()
                });
                assert!(again, "round {round}: no way out of a full disk");
                for (key, value) in &entries {
                    match value {
                        Some(value) => model.insert(key.clone(), value.clone()),
                        None => model.remove(key),
                    };
                }
            }
        }
        for _ in 0..200 {
            match y.maintain() {
                Ok(Maintained::More) => {}
                Ok(Maintained::Idle) => break,
                Err(e) => {
                    assert!(matches!(e, Error::OutOfSpace { .. }), "{e:?}");
                    refused_steps += 1;
                    fs::remove_file(&ballast).ok();
                }
            }
        }
        fs::remove_file(&ballast).ok();
        if round % 10 == 9 {
            conformance::check(&y, &model);
        }
    }
    println!("{refused_runs} runs and {refused_steps} steps refused");
    assert!(refused_runs > 0);
    drop(y);
    conformance::check(&RocksY::open(&path, &shared, false).unwrap(), &model);
}
