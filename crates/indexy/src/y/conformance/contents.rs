//! Behaviours of what is stored: keys and values of every shape, ranges, many gets at once, counts.

use super::{Entries, ListRun, Model, Store, check, del, put, scan, settle, write, write_both};
use crate::{
    error::Error,
    limits::MAX_KEY_BYTES,
    x::Order,
    y::{IndexY, KeyRange},
};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use std::collections::BTreeMap;

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

/// Deletes hide what older runs put, through maintenance and a reopen, and a deleted key can come
/// back.
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

/// Values of 0 bytes and of 16 MiB, or of `max_value_bytes` where that is less.
pub fn empty_and_large_values<S: Store>(store: &S) {
    let y = store.open();
    let max = y.capabilities().max_value_bytes;
    let mut model = Model::new();
    let large = |seed: u8, n: usize| -> Vec<u8> {
        (0..n.min(max))
            .map(|i| (i as u8).wrapping_mul(31) ^ seed)
            .collect()
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

/// Removed ranges are gone, at once and after reopens and maintenance, and what is written into
/// them later is there. A Y that cannot remove ranges refuses to.
pub fn removed_ranges_are_gone<S: Store>(store: &S) {
    let mut y = store.open();
    if !y.removes_ranges() {
        let refused = y.remove_range(b"", None);
        assert!(matches!(refused, Err(Error::Unsupported { .. })));
        return;
    }
    let longest = y.capabilities().max_key_bytes.min(708);
    let mut rng = StdRng::seed_from_u64(4);
    let mut model = Model::new();
    y.remove_range(b"", None).unwrap();
    for round in 0u32..60 {
        let mut run = BTreeMap::new();
        for _ in 0..rng.random_range(1..300) {
            let mut key = rng.random_range(0u64..3000).to_be_bytes().to_vec();
            if key[7] == 7 {
                key.resize(longest, 5);
            }
            let len = *[0usize, 8, 40, 300, 6000].choose(&mut rng).unwrap();
            let value = (!rng.random_bool(0.2)).then(|| vec![round as u8; len]);
            run.insert(key, value);
        }
        write_both(&y, &mut model, &run.into_iter().collect());
        let from = rng.random_range(0u64..3000);
        let width = *[0, 1, 30, 900].choose(&mut rng).unwrap();
        let to = (!rng.random_bool(0.02)).then(|| (from + width).to_be_bytes().to_vec());
        let from = from.to_be_bytes().to_vec();
        y.remove_range(&from, to.as_deref()).unwrap();
        model.retain(|key, _| *key < from || to.as_ref().is_some_and(|to| key >= to));
        match rng.random_range(0..6) {
            0 => {
                drop(y);
                y = store.open();
            }
            1 | 2 => drop(y.maintain().unwrap()),
            3 => y.make_durable().unwrap(),
            _ => {}
        }
        if round % 5 == 4 {
            check(&y, &model);
        }
    }
    settle(&y);
    check(&y, &model);
    y.remove_range(b"", None).unwrap();
    check(&y, &Model::new());
    assert!(y.is_empty().unwrap());
    drop(y);
    check(&store.open(), &Model::new());
}

/// A removal that was made ready and is dropped leaves everything; published, all its ranges are
/// gone.
pub fn a_removal_made_ready_is_shown_at_once<S: Store>(store: &S) {
    let y = store.open();
    if !y.removes_ranges() {
        return;
    }
    let mut model = Model::new();
    let value = |i: u32| vec![i as u8; if i.is_multiple_of(50) { 9000 } else { 90 }];
    let entries = (0u32..2000).map(|i| put(&i.to_be_bytes(), &value(i)));
    write_both(&y, &mut model, &entries.collect());
    let keys = [100u32, 130, 131, 900, 1900].map(u32::to_be_bytes);
    let ranges: [KeyRange<'_>; 3] = [
        (&keys[0], Some(&keys[1])),
        (&keys[2], Some(&keys[3])),
        (&keys[4], None),
    ];
    let before = y.approximate_len();
    for _ in 0..3 {
        drop(y.begin_removal(&ranges).unwrap());
        assert_eq!(y.approximate_len(), before);
        check(&y, &model);
    }
    let removal = y.begin_removal(&ranges).unwrap();
    check(&y, &model);
    removal.publish().unwrap();
    model.retain(|key, _| {
        let inside =
            |(from, to): &KeyRange<'_>| key[..] >= **from && to.is_none_or(|to| key[..] < *to);
        !ranges.iter().any(inside)
    });
    check(&y, &model);
    write_both(&y, &mut model, &vec![put(&keys[0], b"again")]);
    drop(y);
    check(&store.open(), &model);
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

/// The same with values of all lengths.
pub fn multi_get_answers_with_long_values<S: Store>(store: &S) {
    const LENGTHS: [usize; 10] = [0, 8, 900, 1100, 4000, 4090, 5000, 20_000, 70_000, 270_000];
    let y = store.open();
    let mut model = Model::new();
    let mut rng = StdRng::seed_from_u64(5);
    let entries = (0u32..400).map(|i| {
        // Few are very long.
        let lengths = if i % 20 == 0 { 10 } else { 8 };
        let mut value = vec![i as u8; LENGTHS[rng.random_range(0..lengths)]];
        // Some compress and some do not.
        let start = value.len() / 3 * (i as usize % 4);
        rng.fill(value.get_mut(start..).unwrap_or_default());
        put(&i.to_be_bytes(), &value)
    });
    write_both(&y, &mut model, &entries.collect());
    let newer = (0u32..400).step_by(7);
    let newer = newer.map(|i| put(&i.to_be_bytes(), &vec![3; i as usize * 9]));
    write_both(&y, &mut model, &newer.collect());
    for n in [2usize, 5, 70, 300] {
        let keys: Vec<[u8; 4]> = (0..n)
            .map(|_| rng.random_range(0u32..410).to_be_bytes())
            .collect();
        let asked: Vec<&[u8]> = keys.iter().map(|k| &k[..]).collect();
        for (key, value) in asked.iter().zip(y.multi_get(&asked).unwrap()) {
            assert_eq!(value.as_deref(), model.get(*key).map(|v| &v[..]));
        }
    }
}

/// Estimates of entries, bytes and runs are of the right order, and memory is bounded.
pub fn counts_are_near<S: Store>(store: &S) {
    let y = store.open();
    let mut model = Model::new();
    // Values that do not compress.
    let mut rng = StdRng::seed_from_u64(4);
    let mut entries = || -> Entries {
        let entry = |i: u32| put(&i.to_be_bytes(), &rng.random::<[u8; 20]>());
        (0u32..10_000).map(entry).collect()
    };
    write_both(&y, &mut model, &entries());
    assert!(
        (5000..=20_000).contains(&y.approximate_len()),
        "{}",
        y.approximate_len()
    );
    // Until then a run may be in memory only.
    y.make_durable().unwrap();
    assert!(
        y.disk_bytes() >= 100_000 && y.disk_bytes() < 2_000_000,
        "{}",
        y.disk_bytes()
    );
    assert!(y.memory_bytes() < 16 << 20);
    assert!(y.run_count() >= 1);
    assert!(!y.congested());
    for _ in 0..12 {
        write_both(&y, &mut model, &entries());
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
