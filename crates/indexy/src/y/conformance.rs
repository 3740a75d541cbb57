//! What every Index Y must do: one function a behaviour. [`conformance_tests`] makes a `#[test]` of each.
//!
//! An implementer writes a [`Store`] (where one Y lives, across reopens) and calls the macro with an expression that
//! makes a fresh one:
//!
//! ```ignore
//! mod conformance {
//!     use super::*;
//!     indexy::index_y::conformance::conformance_tests!(OnDisk::new());
//! }
//! ```
//!
//! Behaviours panic when the Y under test does not have them. The other functions are for tests of one's own.
//! Compiled for tests and with the cargo feature `testing`.

#![forbid(unsafe_code)]

use super::{IndexY, RunEntry, RunSource};
use crate::{
    error::{Error, Result},
    limits::MAX_KEY_BYTES,
    x::Order,
};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
        mpsc,
    },
    time::Duration,
};

/// A place where one Y lives, across reopens. One test has one store.
pub trait Store {
    /// The implementation under test.
    type Y: IndexY;
    /// Opens it; the first time creates it. The one opened before was dropped.
    fn open(&self) -> Self::Y;
    /// Opens another one, in the directory of a copy.
    fn open_copy(&self, dir: &Path) -> Self::Y;
    /// An absent directory for a copy; the same at every call.
    fn copy_dir(&self) -> PathBuf;

    /// The directory with the files of [`Store::open`]. `None`, for a Y without files, leaves out the behaviours that
    /// look at them.
    fn dir(&self) -> Option<PathBuf> {
        None
    }

    /// Opens the Y in `dir` read-only. `None` leaves out the behaviours of a Y opened so.
    fn open_read_only(&self, _dir: &Path) -> Option<Result<Self::Y>> {
        None
    }
}

/// What a Y should hold.
pub type Model = BTreeMap<Vec<u8>, Vec<u8>>;
/// A sorted run, or what a scan gave: keys and values, `None` for a delete.
pub type Entries = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// A run from a list, with a call before publication and an optional end with an error.
pub struct ListRun<'a> {
    /// The entries, ascending.
    pub entries: &'a Entries,
    /// Fails instead of giving the entry of this number.
    pub fail_at: Option<usize>,
    /// What [`RunSource::before_publish`] does.
    pub before_publish: &'a mut dyn FnMut() -> Result<()>,
}

impl RunSource for ListRun<'_> {
    fn drain(&mut self, sink: &mut dyn FnMut(RunEntry<'_>) -> Result<()>) -> Result<()> {
        for (i, (key, value)) in self.entries.iter().enumerate() {
            if self.fail_at == Some(i) {
                return Err(Error::Closed);
            }
            sink((key, value.as_deref()))?;
        }
        match self.fail_at {
            Some(at) if at >= self.entries.len() => Err(Error::Closed),
            _ => Ok(()),
        }
    }

    fn before_publish(&mut self) -> Result<()> {
        (self.before_publish)()
    }
}

/// Writes `entries` (ascending) as one run.
pub fn write(y: &dyn IndexY, entries: &Entries) -> Result<()> {
    y.write_run(&mut ListRun {
        entries,
        fail_at: None,
        before_publish: &mut || Ok(()),
    })
}

/// Writes a run and the model.
pub fn write_both(y: &dyn IndexY, model: &mut Model, entries: &Entries) {
    write(y, entries).expect("run");
    for (key, value) in entries {
        match value {
            Some(value) => model.insert(key.clone(), value.clone()),
            None => model.remove(key),
        };
    }
}

/// An entry of a run: `key` gets `value`.
pub fn put(key: &[u8], value: &[u8]) -> (Vec<u8>, Option<Vec<u8>>) {
    (key.to_vec(), Some(value.to_vec()))
}

/// An entry of a run: `key` is deleted.
pub fn del(key: &[u8]) -> (Vec<u8>, Option<Vec<u8>>) {
    (key.to_vec(), None)
}

/// Everything that a scan gives.
pub fn scan(y: &dyn IndexY, from: &[u8], to: Option<&[u8]>, order: Order) -> Entries {
    let iter = y.range(from, to, order).expect("range");
    iter.map(|entry| entry.expect("entry"))
        .map(|(k, v)| (k.to_vec(), Some(v.to_vec())))
        .collect()
}

/// Compares everything that `y` says with `model`.
pub fn check(y: &dyn IndexY, model: &Model) {
    let expected: Entries = model
        .iter()
        .map(|(k, v)| (k.clone(), Some(v.clone())))
        .collect();
    assert!(
        scan(y, b"", None, Order::Ascending) == expected,
        "ascending"
    );
    let mut reversed = expected;
    reversed.reverse();
    assert!(
        scan(y, b"", None, Order::Descending) == reversed,
        "descending"
    );
    for (key, value) in model {
        assert_eq!(y.get(key).expect("get").as_deref(), Some(&value[..]));
    }
    let keys: Vec<&[u8]> = model.keys().map(|k| &k[..]).collect();
    for some in keys.chunks(100) {
        let values = y.multi_get(some).expect("multi_get");
        for (key, value) in some.iter().zip(values) {
            assert_eq!(value.as_deref(), model.get(*key).map(|v| &v[..]));
        }
    }
    assert_eq!(y.verify().expect("verify"), model.len() as u64);
    if !model.is_empty() {
        assert!(!y.is_empty().expect("is_empty"));
    }
}

/// Calls `maintain` until there is nothing to do.
pub fn settle(y: &dyn IndexY) {
    for _ in 0..1000 {
        if y.maintain().expect("maintain") == super::Maintained::Idle {
            return;
        }
    }
    panic!("maintenance does not come to rest");
}

/// A new Y holds nothing, also after a reopen.
pub fn starts_empty<S: Store>(store: &S) {
    let y = store.open();
    assert!(y.is_empty().unwrap());
    assert_eq!(y.approximate_len(), 0);
    assert_eq!(y.get(b"").unwrap(), None);
    assert_eq!(y.get(b"a").unwrap(), None);
    assert_eq!(y.multi_get(&[]).unwrap(), vec![]);
    check(&y, &Model::new());
    settle(&y);
    drop(y);
    check(&store.open(), &Model::new());
}

/// A run without entries publishes and leaves everything as it was.
pub fn an_empty_run_changes_nothing<S: Store>(store: &S) {
    let y = store.open();
    let mut published = false;
    let result = y.write_run(&mut ListRun {
        entries: &vec![],
        fail_at: None,
        before_publish: &mut || {
            published = true;
            Ok(())
        },
    });
    result.unwrap();
    assert!(published);
    assert!(y.is_empty().unwrap());
    assert_eq!(y.run_count(), 0);
    drop(y);
    check(&store.open(), &Model::new());
}

/// The value of the last acknowledged run is the answer, deletes included.
pub fn the_newest_run_wins<S: Store>(store: &S) {
    let y = store.open();
    let mut model = Model::new();
    write_both(
        &y,
        &mut model,
        &vec![put(b"a", b"1"), put(b"b", b"1"), put(b"c", b"1")],
    );
    write_both(
        &y,
        &mut model,
        &vec![put(b"b", b"2"), del(b"c"), put(b"d", b"2")],
    );
    check(&y, &model);
    assert_eq!(y.get(b"c").unwrap(), None);
    write_both(&y, &mut model, &vec![del(b"a"), put(b"c", b"3")]);
    check(&y, &model);
    settle(&y);
    check(&y, &model);
}

/// I2: what is written after a reopen wins over what was there before, round after round.
pub fn i2_overwrites_after_reopen_win<S: Store>(store: &S) {
    let mut model = Model::new();
    for round in 0u32..8 {
        let y = store.open();
        check(&y, &model);
        // Several runs a round, so that a counter restarting at zero would be behind.
        for step in 0..=round {
            let value = format!("{round}.{step}");
            let mut entries: Entries = (0u32..50)
                .map(|i| put(&i.to_be_bytes(), value.as_bytes()))
                .collect();
            entries.push(match round % 2 {
                0 => put(b"x", value.as_bytes()),
                _ => del(b"x"),
            });
            write_both(&y, &mut model, &entries);
            check(&y, &model);
        }
        if round % 3 == 2 {
            settle(&y);
        }
        y.make_durable().unwrap();
    }
    check(&store.open(), &model);
}

/// Deletes hide what older runs put, through maintenance and a reopen, and a deleted key can come back.
pub fn deletes_hide_and_go_away<S: Store>(store: &S) {
    let y = store.open();
    let mut model = Model::new();
    let keys: Vec<Vec<u8>> = (0u32..2000).map(|i| i.to_be_bytes().to_vec()).collect();
    write_both(&y, &mut model, &keys.iter().map(|k| put(k, b"v")).collect());
    write_both(
        &y,
        &mut model,
        &keys.iter().step_by(2).map(|k| del(k)).collect(),
    );
    check(&y, &model);
    write_both(&y, &mut model, &keys.iter().map(|k| del(k)).collect());
    check(&y, &model);
    settle(&y);
    check(&y, &model);
    drop(y);
    let y = store.open();
    check(&y, &model);
    write_both(&y, &mut model, &vec![put(&keys[7], b"back")]);
    check(&y, &model);
}

/// The empty key and keys of zeros are keys like any other.
pub fn empty_and_zero_keys<S: Store>(store: &S) {
    let y = store.open();
    let mut model = Model::new();
    let keys: Vec<Vec<u8>> = vec![
        vec![],
        vec![0],
        vec![0, 0],
        vec![0, 0, 0],
        vec![0, 0, 1],
        vec![0, 1],
        vec![0, 1, 0],
        vec![1],
        vec![1, 0],
        vec![255],
    ];
    for (i, key) in keys.iter().enumerate() {
        write_both(&y, &mut model, &vec![put(key, &[i as u8])]);
        check(&y, &model);
    }
    for from in &keys {
        for to in keys.iter().map(Some).chain([None]) {
            check_range(&y, &model, from, to.map(|t| &t[..]));
        }
    }
    write_both(&y, &mut model, &vec![del(b""), del(&[0, 0])]);
    check(&y, &model);
    settle(&y);
    drop(y);
    let y = store.open();
    check(&y, &model);
    write_both(
        &y,
        &mut model,
        &keys.iter().map(|k| put(k, b"again")).collect(),
    );
    check(&y, &model);
}

/// Keys of `max_key_bytes` work, and so do ends of ranges that are one byte longer.
pub fn longest_keys<S: Store>(store: &S) {
    let y = store.open();
    let max = y.capabilities().max_key_bytes;
    assert!(max <= MAX_KEY_BYTES);
    let mut model = Model::new();
    let zeros = vec![0; max];
    let mut almost = zeros.clone();
    almost[max - 1] = 1;
    let ones = vec![0xff; max];
    write_both(
        &y,
        &mut model,
        &vec![put(&zeros, b"0"), put(&almost, b"1"), put(&ones, b"f")],
    );
    check(&y, &model);
    // Range ends may be one byte longer than a key.
    for key in [&zeros, &almost, &ones] {
        let mut next = key.clone();
        next.push(0);
        check_range(&y, &model, key, Some(&next));
        check_range(&y, &model, &next, None);
    }
    let mut common: Entries = (0u8..20)
        .map(|i| {
            let mut key = vec![7; max];
            key[max - 1] = i;
            put(&key, &[i; 100])
        })
        .collect();
    write_both(&y, &mut model, &common);
    check(&y, &model);
    common.truncate(10);
    write_both(
        &y,
        &mut model,
        &common.iter().map(|(k, _)| del(k)).collect(),
    );
    settle(&y);
    drop(y);
    check(&store.open(), &model);
}

/// A key over `max_key_bytes` is `KeyTooLong`, and the Y goes on.
pub fn too_long_a_key_is_refused<S: Store>(store: &S) {
    let y = store.open();
    let mut model = Model::new();
    write_both(&y, &mut model, &vec![put(b"a", b"1")]);
    let long = vec![7; y.capabilities().max_key_bytes + 1];
    let refused = write(&y, &vec![put(&long, b"")]);
    assert!(
        matches!(refused, Err(Error::KeyTooLong { .. })),
        "{refused:?}"
    );
    check(&y, &model);
    write_both(&y, &mut model, &vec![put(b"b", b"2")]);
    check(&y, &model);
}

/// Values of 0 bytes and of 16 MiB.
pub fn empty_and_large_values<S: Store>(store: &S) {
    let y = store.open();
    let mut model = Model::new();
    let large = |seed: u8, n: usize| -> Vec<u8> {
        (0..n).map(|i| (i as u8).wrapping_mul(31) ^ seed).collect()
    };
    write_both(
        &y,
        &mut model,
        &vec![
            put(b"a", b""),
            put(b"b", &large(1, 16 << 20)),
            put(b"c", &large(2, 5000)),
            put(b"d", &large(3, 1 << 20)),
        ],
    );
    check(&y, &model);
    write_both(
        &y,
        &mut model,
        &vec![put(b"b", &large(4, 15 << 20)), put(b"c", b"")],
    );
    check(&y, &model);
    settle(&y);
    drop(y);
    let y = store.open();
    check(&y, &model);
    write_both(&y, &mut model, &vec![put(b"b", b"small"), del(b"d")]);
    settle(&y);
    check(&y, &model);
}

fn check_range(y: &dyn IndexY, model: &Model, from: &[u8], to: Option<&[u8]>) {
    let expected: Entries = model
        .iter()
        .filter(|(k, _)| &k[..] >= from && to.is_none_or(|to| &k[..] < to))
        .map(|(k, v)| (k.clone(), Some(v.clone())))
        .collect();
    assert!(
        scan(y, from, to, Order::Ascending) == expected,
        "{from:?}..{to:?}"
    );
    let reversed: Entries = expected.into_iter().rev().collect();
    assert!(
        scan(y, from, to, Order::Descending) == reversed,
        "{to:?}..{from:?}"
    );
}

/// Ranges with any two ends, inverted and empty ones too, in both orders.
pub fn ranges_of_every_shape<S: Store>(store: &S) {
    let y = store.open();
    let mut model = Model::new();
    let mut rng = StdRng::seed_from_u64(1);
    let key = |rng: &mut StdRng| -> Vec<u8> {
        let len = rng.random_range(0..5);
        (0..len).map(|_| rng.random_range(0..4)).collect()
    };
    for round in 0u32..12 {
        let mut run = BTreeMap::new();
        for _ in 0..150 {
            let value = (!rng.random_bool(0.25)).then(|| round.to_be_bytes().to_vec());
            run.insert(key(&mut rng), value);
        }
        write_both(&y, &mut model, &run.into_iter().collect());
        if round % 4 == 3 {
            settle(&y);
        }
        for _ in 0..200 {
            let (from, to) = (key(&mut rng), key(&mut rng));
            // Inverted and empty ranges among them.
            check_range(&y, &model, &from, Some(&to));
            check_range(&y, &model, &from, None);
        }
    }
    check(&y, &model);
    // An iterator may be dropped anywhere.
    for order in [Order::Ascending, Order::Descending] {
        assert!(
            y.range(b"", None, order)
                .unwrap()
                .take(3)
                .all(|e| e.is_ok())
        );
    }
}

/// Random runs with reopens (by a plain drop) and maintenance in between, against a `BTreeMap`.
pub fn random_runs_match_a_model<S: Store>(store: &S) {
    let mut rng = StdRng::seed_from_u64(2);
    let mut model = Model::new();
    let mut y = store.open();
    for round in 0u32..60 {
        let mut run = BTreeMap::new();
        for _ in 0..rng.random_range(1..400) {
            let key = rng.random_range(0u64..3000).to_be_bytes();
            let len = *[0usize, 8, 8, 40, 300, 6000].choose(&mut rng).unwrap();
            let value = (!rng.random_bool(0.3)).then(|| vec![round as u8; len]);
            run.insert(key.to_vec(), value);
        }
        write_both(&y, &mut model, &run.into_iter().collect());
        match rng.random_range(0..6) {
            0 => {
                drop(y);
                y = store.open();
            }
            1 | 2 => drop(y.maintain().unwrap()),
            _ => {}
        }
        for _ in 0..50 {
            let key = rng.random_range(0u64..3100).to_be_bytes();
            assert_eq!(
                y.get(&key).unwrap().as_deref(),
                model.get(&key[..]).map(|v| &v[..]),
                "round {round}"
            );
        }
        if round % 10 == 9 {
            check(&y, &model);
        }
    }
    settle(&y);
    check(&y, &model);
}

/// `multi_get` answers in the order asked, with duplicates and absent keys.
pub fn multi_get_answers_in_order<S: Store>(store: &S) {
    let y = store.open();
    let mut model = Model::new();
    let entries = (0u32..3000).map(|i| put(&(i * 2).to_be_bytes(), &i.to_le_bytes()));
    write_both(&y, &mut model, &entries.collect());
    let mut rng = StdRng::seed_from_u64(3);
    for n in [1usize, 2, 3, 64, 1000] {
        let keys: Vec<Vec<u8>> = (0..n)
            .map(|_| rng.random_range(0u32..6000).to_be_bytes().to_vec())
            .chain([vec![], vec![0]])
            .collect();
        // Duplicates too.
        let asked: Vec<&[u8]> = keys.iter().chain(&keys).map(|k| &k[..]).collect();
        let values = y.multi_get(&asked).unwrap();
        assert_eq!(values.len(), asked.len());
        for (key, value) in asked.iter().zip(values) {
            assert_eq!(value.as_deref(), model.get(*key).map(|v| &v[..]));
        }
    }
}

/// I5: `before_publish` is called once, after the last entry and before any reader sees one; if it fails, nothing appears.
pub fn i5_before_publish_comes_last_and_before_readers<S: Store>(store: &S) {
    let y = store.open();
    let mut model = Model::new();
    write_both(&y, &mut model, &vec![put(b"a", b"old")]);
    let entries = vec![put(b"a", b"new"), put(b"b", b"new")];
    let mut calls = 0;
    let mut seen = None;
    y.write_run(&mut ListRun {
        entries: &entries,
        fail_at: None,
        before_publish: &mut || {
            calls += 1;
            seen = Some(y.get(b"a").unwrap().map(|v| v.to_vec()));
            Ok(())
        },
    })
    .unwrap();
    assert_eq!((calls, seen), (1, Some(Some(b"old".to_vec()))));
    assert_eq!(y.get(b"a").unwrap().as_deref(), Some(&b"new"[..]));
    // A log that fails: nothing of the run may become visible.
    let refused = y.write_run(&mut ListRun {
        entries: &vec![put(b"a", b"never"), put(b"c", b"never")],
        fail_at: None,
        before_publish: &mut || Err(Error::Closed),
    });
    assert!(matches!(refused, Err(Error::Closed)));
    model.extend([
        (b"a".to_vec(), b"new".to_vec()),
        (b"b".to_vec(), b"new".to_vec()),
    ]);
    check(&y, &model);
    drop(y);
    check(&store.open(), &model);
}

/// I4: a source that fails anywhere leaves the Y as it was, and the run can be written again.
pub fn i4_a_failed_source_leaves_what_was<S: Store>(store: &S) {
    let y = store.open();
    let mut model = Model::new();
    let entries: Entries = (0u32..5000)
        .map(|i| put(&i.to_be_bytes(), &[1; 100]))
        .collect();
    write_both(&y, &mut model, &entries);
    let newer: Entries = (0u32..5000)
        .map(|i| put(&i.to_be_bytes(), &[2; 100]))
        .collect();
    for at in [0, 1, 2500, 4999, 5000] {
        let failed = y.write_run(&mut ListRun {
            entries: &newer,
            fail_at: Some(at),
            before_publish: &mut || panic!("not reached"),
        });
        assert!(matches!(failed, Err(Error::Closed)));
        // The contract allows a part to be visible; ours show none.
        check(&y, &model);
    }
    write_both(&y, &mut model, &newer);
    check(&y, &model);
    settle(&y);
    drop(y);
    check(&store.open(), &model);
}

/// An iterator goes on while runs are written and maintained: every key once, in order.
pub fn an_open_iterator_outlives_runs_and_maintenance<S: Store>(store: &S) {
    let y = store.open();
    let mut model = Model::new();
    let entries = |value: u8| -> Entries {
        (0u32..3000)
            .map(|i| put(&i.to_be_bytes(), &[value; 50]))
            .collect()
    };
    write_both(&y, &mut model, &entries(0));
    for order in [Order::Ascending, Order::Descending] {
        let mut iter = y.range(b"", None, order).unwrap();
        let first = iter.next().unwrap().unwrap();
        let value = first.1.to_vec();
        for next in 1..12 {
            write_both(&y, &mut model, &entries(next));
            settle(&y);
        }
        // A snapshot or not: every key once, in order, no value that never was.
        let rest: Vec<_> = iter.map(|e| e.unwrap()).collect();
        assert_eq!(rest.len(), 2999);
        assert!(
            rest.iter()
                .all(|(_, v)| v.len() == 50 && v[0] >= value[0].min(11))
        );
        let sorted = rest.windows(2).all(|w| match order {
            Order::Ascending => w[0].0 < w[1].0,
            Order::Descending => w[0].0 > w[1].0,
        });
        assert!(sorted);
    }
    check(&y, &model);
}

/// Readers see at least the last acknowledged run while one thread writes and one maintains.
pub fn readers_run_beside_a_writer_and_a_maintainer<S: Store>(store: &S) {
    let y = store.open();
    const KEYS: u32 = 2000;
    let round = |n: u64| -> Entries {
        (0..KEYS)
            .map(|i| put(&i.to_be_bytes(), &n.to_be_bytes()))
            .collect()
    };
    write(&y, &round(1)).unwrap();
    let acknowledged = AtomicU64::new(1);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let read = |seed: u64| {
            let mut rng = StdRng::seed_from_u64(seed);
            while !stop.load(SeqCst) {
                let floor = acknowledged.load(SeqCst);
                let key = rng.random_range(0..KEYS).to_be_bytes();
                let value = y.get(&key).unwrap().expect("present throughout");
                assert!(u64::from_be_bytes(value[..].try_into().unwrap()) >= floor);
                let keys: [&[u8]; 2] = [&key, b"absent"];
                let values = y.multi_get(&keys).unwrap();
                let number = |v: &crate::Value| u64::from_be_bytes(v[..].try_into().unwrap());
                assert!(values[0].as_ref().map(number).unwrap() >= floor);
                assert!(values[1].is_none());
                let chunk: Vec<_> = y
                    .range(&key, None, Order::Ascending)
                    .unwrap()
                    .take(20)
                    .collect();
                assert!(
                    chunk
                        .iter()
                        .all(|e| number(&e.as_ref().unwrap().1) >= floor)
                );
            }
        };
        for seed in 0..3 {
            scope.spawn(move || read(seed));
        }
        scope.spawn(|| {
            while !stop.load(SeqCst) {
                y.maintain().unwrap();
            }
        });
        for n in 2..60 {
            write(&y, &round(n)).unwrap();
            acknowledged.store(n, SeqCst);
        }
        stop.store(true, SeqCst);
    });
    assert_eq!(y.verify().unwrap(), u64::from(KEYS));
}

/// A copy opens as what the original was, and the two have nothing in common from then on.
pub fn copies_open_equal<S: Store>(store: &S) {
    let y = store.open();
    let mut model = Model::new();
    for n in 0u8..6 {
        let entries = (0u32..1000).filter(|i| i % 7 != u32::from(n));
        write_both(
            &y,
            &mut model,
            &entries.map(|i| put(&i.to_be_bytes(), &[n; 30])).collect(),
        );
    }
    let before = model.clone();
    let dir = store.copy_dir();
    y.copy_to(&dir).unwrap();
    // What happens to the original later does not reach the copy, and the other way round.
    write_both(
        &y,
        &mut model,
        &(0u32..1000).map(|i| del(&i.to_be_bytes())).collect(),
    );
    settle(&y);
    let copy = store.open_copy(&dir);
    check(&copy, &before);
    let mut changed = before;
    write_both(&copy, &mut changed, &vec![put(b"only here", b"1")]);
    settle(&copy);
    check(&copy, &changed);
    check(&y, &model);
    drop((y, copy));
    check(&store.open(), &model);
    check(&store.open_copy(&dir), &changed);
}

/// Estimates of entries, bytes and runs are of the right order, and memory is bounded.
pub fn counts_are_near<S: Store>(store: &S) {
    let y = store.open();
    let mut model = Model::new();
    write_both(
        &y,
        &mut model,
        &(0u32..10_000)
            .map(|i| put(&i.to_be_bytes(), &[3; 20]))
            .collect(),
    );
    assert_eq!(y.approximate_len(), 10_000);
    assert!(
        y.disk_bytes() >= 100_000 && y.disk_bytes() < 2_000_000,
        "{}",
        y.disk_bytes()
    );
    assert!(y.memory_bytes() < 16 << 20);
    assert!(y.run_count() >= 1);
    assert!(!y.congested());
    for _ in 0..12 {
        write_both(
            &y,
            &mut model,
            &(0u32..10_000)
                .map(|i| put(&i.to_be_bytes(), &[4; 20]))
                .collect(),
        );
    }
    settle(&y);
    assert!(!y.congested());
    assert!(
        (10_000..=40_000).contains(&y.approximate_len()),
        "{}",
        y.approximate_len()
    );
    assert!(y.run_count() <= 10);
}

/// A thread blocked inside `before_publish` must not keep readers or the maintainer from working.
pub fn a_run_waiting_for_the_log_blocks_nobody<S: Store>(store: &S)
where
    S::Y: 'static,
{
    let y = store.open();
    let mut model = Model::new();
    write_both(&y, &mut model, &vec![put(b"a", b"1")]);
    let (reached, at) = mpsc::channel();
    let (resume, wait) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let writer = &y;
        scope.spawn(move || {
            let entries = vec![put(b"a", b"2"), put(b"z", b"2")];
            writer
                .write_run(&mut ListRun {
                    entries: &entries,
                    fail_at: None,
                    before_publish: &mut || {
                        reached.send(()).unwrap();
                        wait.recv().unwrap();
                        Ok(())
                    },
                })
                .unwrap();
        });
        at.recv_timeout(Duration::from_secs(30)).unwrap();
        check(&y, &model);
        settle(&y);
        check(&y, &model);
        resume.send(()).unwrap();
    });
    model.extend([
        (b"a".to_vec(), b"2".to_vec()),
        (b"z".to_vec(), b"2".to_vec()),
    ]);
    check(&y, &model);
}

/// Every file below `dir` with its bytes.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(at) = todo.pop() {
        for entry in std::fs::read_dir(&at).expect("list") {
            let path = entry.expect("list").path();
            if path.is_dir() {
                todo.push(path);
            } else {
                let bytes = std::fs::read(&path).expect("read");
                files.insert(path.strip_prefix(dir).expect("below").to_path_buf(), bytes);
            }
        }
    }
    files
}

/// I6: the files as a killed process leaves them open as of `make_durable` at least: per key, that state or a later one.
/// Nothing is closed or dropped before.
pub fn i6_a_killed_process_keeps_what_was_durable<S: Store>(store: &S) {
    let Some(dir) = store.dir() else { return };
    let y = store.open();
    let run = |n: u8, keys: std::ops::Range<u32>| -> Entries {
        keys.map(|i| put(&i.to_be_bytes(), &[n; 40])).collect()
    };
    write(&y, &run(1, 0..4000)).unwrap();
    y.make_durable().unwrap();
    // Acknowledged, not durable: any part of it may come back.
    write(&y, &run(2, 1000..2000)).unwrap();
    let copy = store.copy_dir();
    for (path, bytes) in files(&dir) {
        let path = copy.join(path);
        std::fs::create_dir_all(path.parent().expect("parent")).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    if let Some(read_only) = store.open_read_only(&copy) {
        let read_only = read_only.expect("read-only after a kill");
        assert_eq!(read_only.verify().unwrap(), 4000);
    }
    let again = store.open_copy(&copy);
    assert_eq!(again.verify().unwrap(), 4000);
    for i in 0u32..4000 {
        let value = again.get(&i.to_be_bytes()).unwrap().expect("was durable");
        let newest = if (1000..2000).contains(&i) { 2 } else { 1 };
        assert!(value == [1; 40] || value == [newest; 40], "key {i}");
    }
    // The log writes again what was not durable.
    write(&again, &run(2, 1000..2000)).unwrap();
    let mut model = Model::new();
    for (key, value) in run(1, 0..4000).into_iter().chain(run(2, 1000..2000)) {
        model.insert(key, value.expect("a value"));
    }
    check(&again, &model);
    check(&y, &model);
}

/// Opened read-only, a Y answers everything and changes no byte of its files; an absent one is an error and stays absent.
pub fn read_only_changes_nothing<S: Store>(store: &S) {
    let Some(dir) = store.dir() else { return };
    if let Some(absent) = store.open_read_only(&store.copy_dir()) {
        assert!(absent.is_err(), "there is nothing to open");
        assert!(!store.copy_dir().exists());
    } else {
        return;
    }
    let mut model = Model::new();
    let y = store.open();
    for n in 0u8..4 {
        let entries = (0u32..3000).step_by(1 + usize::from(n));
        let run = entries.map(|i| put(&i.to_be_bytes(), &[n; 60])).collect();
        write_both(&y, &mut model, &run);
    }
    y.make_durable().unwrap();
    drop(y);
    let before = files(&dir);
    let y = store.open_read_only(&dir).expect("as before").unwrap();
    check(&y, &model);
    assert!(!y.is_empty().unwrap() && y.approximate_len() > 0);
    // A checkpoint of a database that is open read-only.
    y.copy_to(&store.copy_dir()).unwrap();
    drop(y);
    assert!(files(&dir) == before, "a file was changed");
    check(&store.open_copy(&store.copy_dir()), &model);
}

/// Makes a test of every behaviour, each with a fresh store from `$store`. In a module of its own: the tests have
/// the names of the behaviours.
#[macro_export]
#[doc(hidden)]
macro_rules! index_y_conformance_tests {
    ($store:expr) => {
        $crate::index_y::conformance::conformance_tests!($store;
            starts_empty, an_empty_run_changes_nothing, the_newest_run_wins, i2_overwrites_after_reopen_win,
            deletes_hide_and_go_away, empty_and_zero_keys, longest_keys, too_long_a_key_is_refused,
            empty_and_large_values, ranges_of_every_shape, random_runs_match_a_model,
            multi_get_answers_in_order, i5_before_publish_comes_last_and_before_readers,
            i4_a_failed_source_leaves_what_was, an_open_iterator_outlives_runs_and_maintenance,
            readers_run_beside_a_writer_and_a_maintainer, copies_open_equal, counts_are_near,
            a_run_waiting_for_the_log_blocks_nobody, i6_a_killed_process_keeps_what_was_durable,
            read_only_changes_nothing);
    };
    ($store:expr; $($name:ident),+) => {
        $(#[test]
        fn $name() {
            $crate::index_y::conformance::$name(&$store);
        })+
    };
}
#[doc(inline)]
pub use crate::index_y_conformance_tests as conformance_tests;
