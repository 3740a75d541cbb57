//! "Never wrong data": whatever bytes of whatever file are changed, a read gives the right answer
//! or `Corrupt`.

use super::*;

/// What is in the damaged tree.
struct Damaged {
    store: OnDisk,
    model: Model,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

/// What became of a change.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Outcome {
    /// Everything read was right.
    Harmless,
    /// Some read said `Corrupt`; the others were right.
    Detected,
}

impl Damaged {
    fn new() -> Self {
        let store = OnDisk::tiny();
        let mut model = Model::new();
        {
            let y = store.open();
            let mut rng = StdRng::seed_from_u64(21);
            for n in 0u8..12 {
                let run = random_run(&mut rng, 400, 150, &[n; 30]);
                conformance::write_both(&y, &mut model, &run);
                if n < 9 {
                    conformance::settle(&y);
                }
            }
            assert!(y.run_count() >= 3 && y.snapshot().level0.runs >= 2);
        }
        let files = files(&store.path());
        Self {
            store,
            model,
            files,
        }
    }

    /// Puts `bytes` in the place of `file`, reads everything, and puts the file back.
    fn try_with(&self, file: &Path, bytes: &[u8], writable: bool) -> Outcome {
        // A new cache each time, so that nothing is remembered. Read through the system's cache and
        // past it, in turn.
        let direct = bytes.len().is_multiple_of(2) != writable;
        let shared = Arc::new(LsmShared::new(0, direct));
        fs::write(file, bytes).unwrap();
        let opened = LsmY::open(&self.store.path(), &shared, !writable);
        let outcome = match opened {
            Ok(y) => self.read_all(&y),
            Err(e) => expect_corrupt(&e),
        };
        if writable {
            // Opening for writing may have removed or added files.
            for path in files(&self.store.path()).keys() {
                fs::remove_file(path).unwrap();
            }
            for (path, bytes) in &self.files {
                fs::write(path, bytes).unwrap();
            }
        } else {
            fs::write(file, &self.files[file]).unwrap();
        }
        outcome
    }

    fn read_all(&self, y: &LsmY) -> Outcome {
        let mut outcome = Outcome::Harmless;
        let mut note = |e: &Error| outcome = expect_corrupt(e);
        for i in 0u64..410 {
            let key = i.to_be_bytes();
            match y.get(&key) {
                Ok(value) => {
                    assert_eq!(value.as_deref(), self.model.get(&key[..]).map(|v| &v[..]));
                }
                Err(e) => note(&e),
            }
        }
        let keys: Vec<_> = (0u64..410).map(u64::to_be_bytes).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|k| &k[..]).collect();
        match y.multi_get(&keys) {
            Ok(values) => {
                let expected = keys.iter().map(|k| self.model.get(*k).map(|v| &v[..]));
                assert!(values.iter().map(|v| v.as_deref()).eq(expected));
            }
            Err(e) => note(&e),
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
                        note(&e);
                        expected = vec![].into_iter();
                    }
                }
            }
            assert_eq!(expected.next(), None);
        }
        match y.verify() {
            Ok(n) => assert_eq!(n, self.model.len() as u64),
            Err(e) => note(&e),
        }
        outcome
    }
}

fn expect_corrupt(e: &Error) -> Outcome {
    assert!(
        matches!(e, Error::Corrupt { .. } | Error::FormatVersion { .. }),
        "{e:?}"
    );
    Outcome::Detected
}

#[test]
fn every_changed_byte_is_detected() {
    let damaged = Damaged::new();
    let mut rng = StdRng::seed_from_u64(22);
    for (path, bytes) in &damaged.files {
        let small = bytes.len() <= 64;
        let tries = if small { bytes.len() } else { 60 };
        for i in 0..tries {
            let at = if small {
                i
            } else {
                rng.random_range(0..bytes.len())
            };
            let mut changed = bytes.clone();
            changed[at] ^= *[1u8, 0x80, 0xff, 0x10].choose(&mut rng).unwrap();
            let outcome = damaged.try_with(path, &changed, rng.random_bool(0.2));
            assert_eq!(outcome, Outcome::Detected, "{} byte {at}", path.display());
        }
    }
}

#[test]
fn trailers_and_contents_are_checked_byte_by_byte() {
    let damaged = Damaged::new();
    let newest = damaged
        .files
        .keys()
        .rfind(|p| p.parent().unwrap().ends_with("tables"));
    let path = newest.unwrap();
    let bytes = &damaged.files[path];
    for at in bytes.len() - 340..bytes.len() {
        for flip in [1u8, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            assert_eq!(
                damaged.try_with(path, &changed, false),
                Outcome::Detected,
                "byte {at}"
            );
        }
    }
}

#[test]
fn cut_and_grown_files_are_detected() {
    let damaged = Damaged::new();
    let mut rng = StdRng::seed_from_u64(23);
    for (path, bytes) in &damaged.files {
        let mut lens = vec![0, 1, bytes.len() - 1, bytes.len() / 2];
        lens.extend((0..5).map(|_| rng.random_range(0..bytes.len())));
        for len in lens {
            let outcome = damaged.try_with(path, &bytes[..len], rng.random_bool(0.3));
            assert_eq!(
                outcome,
                Outcome::Detected,
                "{} cut to {len}",
                path.display()
            );
        }
        for more in [1, 38, 5000] {
            let mut grown = bytes.clone();
            grown.extend(vec![0u8; more]);
            let outcome = damaged.try_with(path, &grown, false);
            assert_eq!(outcome, Outcome::Detected, "{} and {more}", path.display());
        }
    }
}

#[test]
fn files_that_are_missing_or_swapped_are_detected() {
    let damaged = Damaged::new();
    let paths: Vec<_> = damaged.files.keys().collect();
    for path in &paths {
        fs::remove_file(path).unwrap();
        let shared = Arc::new(LsmShared::new(0, false));
        for read_only in [true, false] {
            let opened = LsmY::open(&damaged.store.path(), &shared, read_only);
            assert_eq!(
                expect_corrupt(&opened.err().expect("an error")),
                Outcome::Detected
            );
        }
        fs::write(path, &damaged.files[*path]).unwrap();
    }
    // A whole table in the place of another: every block in it is sound.
    let tables: Vec<_> = paths
        .iter()
        .filter(|p| p.parent().unwrap().ends_with("tables"))
        .collect();
    for pair in tables.windows(2) {
        let outcome = damaged.try_with(pair[0], &damaged.files[*pair[1]], false);
        assert_eq!(outcome, Outcome::Detected);
    }
}

#[test]
fn a_damaged_table_stops_its_compaction_and_nothing_else() {
    let damaged = Damaged::new();
    let table = damaged
        .files
        .keys()
        .rfind(|p| p.parent().unwrap().ends_with("tables"));
    let path = table.unwrap();
    let mut bytes = damaged.files[path].clone();
    bytes[100] ^= 1;
    fs::write(path, bytes).unwrap();
    let y = damaged.store.open();
    let mut model = damaged.model.clone();
    for i in 0u64..8 {
        let entries = vec![put(&(1000 + i).to_be_bytes(), b"later")];
        conformance::write_both(&y, &mut model, &entries);
    }
    // Reads have paid for it.
    y.snapshot().schedule.waste(u64::MAX >> 1);
    let failed = (0..20).find_map(|_| y.maintain().err());
    let failed = failed.expect("the compaction of level 0 meets the damage");
    assert!(matches!(failed, Error::Corrupt { .. }), "{failed:?}");
    // Runs still come in, and what is not in the damaged block is read.
    conformance::write_both(&y, &mut model, &vec![put(b"x", b"y")]);
    assert_eq!(y.get(b"x").unwrap().as_deref(), Some(&b"y"[..]));
    assert_eq!(
        y.get(&1003u64.to_be_bytes()).unwrap().as_deref(),
        Some(&b"later"[..])
    );
    let wrong = model.iter().filter(|(k, v)| match y.get(k) {
        Ok(value) => value.as_deref() != Some(&v[..]),
        Err(e) => expect_corrupt(&e) != Outcome::Detected,
    });
    assert_eq!(wrong.count(), 0);
    assert!(matches!(y.verify(), Err(Error::Corrupt { .. })));
}
