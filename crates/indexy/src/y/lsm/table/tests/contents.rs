//! What is in a table: by gets, streams and chunks, all the same.

use super::*;
use crate::y::lsm::table::{Descent, Step, load_together};

fn assert_same(table: &Table, model: &Model, seed: u64) {
    for (key, value) in model {
        assert_eq!(get(table, key).unwrap().as_ref(), Some(value), "{key:?}");
    }
    let mut random = random(seed);
    let keys: Vec<&Vec<u8>> = model.keys().collect();
    let some = |random: &mut StdRng| {
        let mut key = keys[random.random_range(0..keys.len())].clone();
        match random.random_range(0..4) {
            0 => key.push(0),
            1 => {
                key.pop();
            }
            2 => key = bytes(random, 6),
            _ => {}
        }
        key
    };
    for _ in 0..200 {
        let key = some(&mut random);
        assert_eq!(
            get(table, &key).unwrap(),
            model.get(&key).cloned(),
            "{key:?}"
        );
    }
    let all = part(model, &[], None);
    assert_eq!(streamed(table, &[], None, 256 << 10).unwrap(), all);
    assert_eq!(chunked(table, &[], None, Order::Ascending).unwrap(), all);
    for _ in 0..20 {
        let (from, to) = (some(&mut random), some(&mut random));
        let to = random.random_bool(0.8).then_some(&*to);
        let mut expected = part(model, &from, to);
        assert_eq!(streamed(table, &from, to, 32 << 10).unwrap(), expected);
        assert_eq!(
            chunked(table, &from, to, Order::Ascending).unwrap(),
            expected
        );
        expected.reverse();
        assert_eq!(
            chunked(table, &from, to, Order::Descending).unwrap(),
            expected
        );
    }
}

#[test]
fn a_table_has_what_was_added_whatever_its_shape() {
    for seed in 0..12 {
        let model = odd(seed, [1, 2, 9, 60, 300, 1500][seed as usize % 6]);
        for codec in codecs() {
            let (_, storage) = sim();
            let table = table_as(&storage, &model, codec);
            let entries = table.verify().unwrap();
            assert_eq!(entries, model.len() as u64, "seed {seed}, {codec:?}");
            assert_same(&table, &model, seed);
        }
    }
}

#[test]
fn a_table_of_several_levels_and_segments() {
    let model = plain(200_000);
    let (_, storage) = sim();
    let table = table(&storage, &model);
    let meta = table.meta();
    assert!(meta.height >= 3 && meta.segments.len() == 4, "{meta:?}");
    assert_eq!(table.verify().unwrap(), 200_000);
    let all = part(&model, &[], None);
    assert_eq!(streamed(&table, &[], None, 256 << 10).unwrap(), all);
    for i in (0..200_000).step_by(997) {
        let key = (i * 3u64).to_be_bytes();
        assert_eq!(
            get(&table, &key).unwrap(),
            Some(Some(i.to_le_bytes().to_vec()))
        );
        let absent = (i * 3 + 1).to_be_bytes();
        assert_eq!(get(&table, &absent).unwrap(), None);
    }
}

/// Goes down as `multi_get` does: pages that are missing are read by themselves, then it goes on.
fn descended(table: &Table, key: &[u8], filter: FilterUse) -> (Option<Option<Vec<u8>>>, usize) {
    let mut reads = 0;
    let mut descent: Descent = table.descent(key, hash_of(key), filter);
    loop {
        match table.descend(key, &mut descent).unwrap() {
            Step::Missing(page) => {
                reads += 1;
                assert!(reads < 10, "it goes round in circles");
                load_together(&[(table, page)]).unwrap();
            }
            Step::Denied => return (None, reads),
            Step::Said(found) => {
                let found = table.value_of(found).unwrap();
                return (found.map(|v| v.map(|v| v.to_vec())), reads);
            }
        }
    }
}

#[test]
fn a_descent_names_the_pages_that_it_needs() {
    let model = plain(20_000);
    let (_, storage) = sim();
    let (meta, file) = write(&storage, &model).unwrap();
    let cold =
        |meta: &TableMeta| Table::of_file(Arc::clone(&file), meta.clone(), &pool(POOL_BYTES));
    let key = 300u64.to_be_bytes();
    let there = model.get(&key[..]).cloned();
    let levels = usize::from(meta.height);
    let table = cold(&meta).unwrap();
    assert_eq!(
        descended(&table, &key, FilterUse::First(u32::MAX)),
        (there.clone(), levels + 1)
    );
    assert_eq!(
        descended(&table, &key, FilterUse::First(u32::MAX)),
        (there.clone(), 0)
    );
    assert_eq!(
        descended(&table, &key, FilterUse::Never),
        (there.clone(), 0)
    );
    let table = cold(&meta).unwrap();
    assert_eq!(
        descended(&table, &key, FilterUse::First(0)),
        (there, levels)
    );
    // The filter denies most absent keys, and its page is all that is read for them.
    let denied = (0..1000u64)
        .map(|i| (i * 3 + 1).to_be_bytes())
        .filter(|key| {
            let (said, reads) = descended(&cold(&meta).unwrap(), key, FilterUse::First(u32::MAX));
            assert_eq!(said, None);
            reads == 1
        });
    assert!(denied.count() > 980);
}

#[test]
fn a_read_needs_no_free_frame() {
    let model = odd(3, 400);
    let (_, storage) = sim();
    let (meta, file) = write(&storage, &model).unwrap();
    let few = pool(0);
    let table = Table::of_file(file, meta, &few).unwrap();
    let held: Vec<_> = std::iter::from_fn(|| few.frames.take()).collect();
    for (key, value) in &model {
        assert_eq!(get(&table, key).unwrap().as_ref(), Some(value));
    }
    drop(held);
    assert_same(&table, &model, 3);
}

#[test]
fn t1_keys_that_do_not_ascend_are_refused() {
    for second in [&b"a"[..], b"", b"A"] {
        let (sim, storage) = sim();
        let options = TableOptions::default();
        let mut writer = TableWriter::new(&storage, dir(), NUMBER, options).unwrap();
        writer.add(b"a", None).unwrap();
        assert!(writer.add(second, None).is_err());
        drop(writer);
        assert!(sim.contents().is_empty());
    }
}

#[test]
fn nothing_added_is_no_table() {
    let (sim, storage) = sim();
    let writer = TableWriter::new(&storage, dir(), NUMBER, TableOptions::default()).unwrap();
    assert!(writer.finish().unwrap().is_none());
    assert!(sim.contents().is_empty());
}

#[test]
fn pages_of_many_tables_come_together() {
    let folder = tempfile::tempdir().unwrap();
    for real in [false, true] {
        let storage: Arc<dyn Storage> = match real {
            true => Arc::new(crate::storage::Direct),
            false => sim().1,
        };
        let cache = pool(POOL_BYTES);
        let model = plain(4_000);
        let open = |number| {
            let options = TableOptions::default();
            let mut writer = TableWriter::new(&storage, folder.path(), number, options).unwrap();
            for (key, value) in &model {
                writer.add(key, value.as_deref()).unwrap();
            }
            let (meta, file) = writer.finish().unwrap().unwrap();
            Table::of_file(file, meta, &cache).unwrap()
        };
        let tables: Vec<Table> = (0..5).map(open).collect();
        let key = 2_100u64.to_be_bytes();
        let before = cache.reads.load(std::sync::atomic::Ordering::Relaxed);
        let mut ways: Vec<(usize, Descent)> = (0..5)
            .map(|i| {
                (
                    i,
                    tables[i].descent(&key, hash_of(&key), FilterUse::First(u32::MAX)),
                )
            })
            .collect();
        let mut rounds = 0;
        while !ways.is_empty() {
            let mut missing = Vec::new();
            ways.retain_mut(
                |(i, descent)| match tables[*i].descend(&key, descent).unwrap() {
                    Step::Missing(page) => {
                        missing.push((&tables[*i], page));
                        true
                    }
                    Step::Denied => panic!("a filter denies a key that is there"),
                    Step::Said(found) => {
                        let value = tables[*i].value_of(found).unwrap().unwrap().unwrap();
                        assert_eq!(*value, 700u64.to_le_bytes());
                        false
                    }
                },
            );
            load_together(&missing).unwrap();
            rounds += 1;
        }
        let levels = u64::from(tables[0].meta().height);
        let reads = cache.reads.load(std::sync::atomic::Ordering::Relaxed) - before;
        assert_eq!((rounds, reads), (levels + 2, 5 * (levels + 1)));
    }
}

#[test]
fn an_estimate_is_near_what_is_there() {
    let (_, storage) = sim();
    let model = plain(100_000);
    let table = table(&storage, &model);
    let mut random = random(1);
    for _ in 0..200 {
        let (a, b) = (
            random.random_range(0..330_000u64),
            random.random_range(0..330_000u64),
        );
        let (from, to) = (a.to_be_bytes(), b.to_be_bytes());
        let to = random.random_bool(0.9).then_some(&to[..]);
        let there = part(&model, &from, to).len() as u64;
        let (entries, bytes) = table.estimate(&from, to).unwrap();
        assert!(entries.abs_diff(there) <= 5_000, "{entries} of {there}");
        let by_entries = table.meta().file_bytes() * entries / 100_000;
        assert!(bytes.abs_diff(by_entries) <= 100, "{bytes}, {by_entries}");
    }
    assert_eq!(table.estimate(&[], None).unwrap().0, 100_000);
    assert_eq!(table.estimate(&[0xff], None).unwrap(), (0, 0));
}

/// Also where no segment of the filter begins: long values fill a table with few keys.
#[test]
fn a_middle_halves_what_is_there() {
    for bytes in [8, 1500, 70_000] {
        let (_, storage) = sim();
        let count = if bytes > 10_000 { 60 } else { 3000 };
        let model: Model = (0..count)
            .map(|i: u64| (i.to_be_bytes().to_vec(), Some(vec![7; bytes])))
            .collect();
        let table = table(&storage, &model);
        let (mut from, mut to) = (Vec::new(), None::<Vec<u8>>);
        for round in 0..20 {
            let there = part(&model, &from, to.as_deref()).len();
            let Some(middle) = table.middle(&from, to.as_deref()).unwrap() else {
                assert!(there < 3, "{there} of {bytes} bytes have no middle");
                break;
            };
            let below = part(&model, &from, Some(&middle)).len();
            let share = below as f64 / there as f64;
            assert!(
                (0.1..=0.9).contains(&share) || there < 10,
                "{below} of {there}"
            );
            if round % 2 == 0 {
                to = Some(middle.to_vec());
            } else {
                from = middle.to_vec();
            }
        }
        assert!(part(&model, &from, to.as_deref()).len() < 3);
    }
}
