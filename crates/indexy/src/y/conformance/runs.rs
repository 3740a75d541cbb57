//! Behaviours of runs: when one is visible, what a failed one leaves, and who goes on beside one.

use super::{Entries, ListRun, Model, Store, check, put, settle, write, write_both};
use crate::{error::Error, x::Order, y::IndexY};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
        mpsc,
    },
    time::Duration,
};

/// I5: `before_publish` is called once, after the last entry and before any reader sees one; if it
/// fails, nothing appears.
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
        // Nothing is visible when `before_publish` was not reached.
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
