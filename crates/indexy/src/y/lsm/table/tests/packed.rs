//! Packed leaves: what they save, what they cost to read, and what else a table then is.

use super::*;
use crate::y::lsm::table::load_together;

/// Records as programs write them.
fn records(count: u64) -> Model {
    let record = |i: u64| {
        let key = format!("customer/{:08}", i * 7919 % 100_000_000);
        let (name, city) = (i % 977, i % 61);
        let value = format!(
            "{{\"id\":{i},\"name\":\"customer {name}\",\"city\":\"city number {city}\",\
             \"open\":true}}"
        );
        (key.into_bytes(), Some(value.into_bytes()))
    };
    (0..count).map(record).collect()
}

#[test]
fn packed_leaves_take_less_and_are_one_read() {
    let model = records(20_000);
    let stored = {
        let (_, storage) = sim();
        write(&storage, &model).unwrap().0.file_bytes()
    };
    for codec in codecs().into_iter().skip(1) {
        let (sim, storage) = sim();
        let (meta, file) = write_as(&storage, &model, codec).unwrap();
        let bytes = meta.file_bytes();
        assert!(bytes * 2 < stored, "{codec:?}: {bytes} of {stored}");
        let table = Table::of_file(file, meta, &pool(256 << 10)).unwrap();
        assert_eq!(table.verify().unwrap(), model.len() as u64);
        // The inner pages come into frames, and stay.
        let keys: Vec<&Vec<u8>> = model.keys().step_by(97).collect();
        let ask = |key: &[u8]| table.get(key, hash_of(key), FilterUse::Never).unwrap();
        keys.iter().for_each(|key| drop(ask(key)));
        let before = sim.ios();
        for key in &keys {
            assert_eq!(
                ask(key).unwrap().unwrap()[..],
                model[*key].clone().unwrap()[..]
            );
        }
        let reads = sim.ios() - before;
        assert!(
            reads <= keys.len() as u64 * 11 / 10 + 8,
            "{reads} for {}",
            keys.len()
        );
        // A hit costs none.
        let before = sim.ios();
        assert!(ask(keys[keys.len() - 1]).is_some());
        assert_eq!(sim.ios(), before);
    }
}

#[test]
fn a_stream_of_packed_leaves_reads_large_pieces_once() {
    let model = records(20_000);
    for codec in codecs().into_iter().skip(1) {
        let (sim, storage) = sim();
        let table = table_as(&storage, &model, codec);
        for (read_bytes, pages) in [(256 << 10, 64), (32 << 10, 8)] {
            let before = sim.ios();
            let streamed = streamed(&table, &[], None, read_bytes).unwrap();
            assert_eq!(streamed, part(&model, &[], None));
            let (reads, least) = (sim.ios() - before, table.meta().pages / pages);
            assert!(reads <= least * 3 / 2 + 12, "{reads}, {least}");
        }
    }
}

/// Leaves that do not become smaller stand in pages, behind some that were tried.
#[test]
fn what_does_not_become_smaller_stands_as_it_is() {
    let mut random = random(3);
    let mut model = Model::new();
    for i in 0..4000u32 {
        model.insert(i.to_be_bytes().to_vec(), Some(bytes(&mut random, 300)));
    }
    // And then it pays again.
    for (key, value) in records(20_000) {
        model.insert(key, value);
    }
    let (_, storage) = sim();
    let stored = write(&storage, &model).unwrap().0.file_bytes();
    for codec in codecs().into_iter().skip(1) {
        let (_, storage) = sim();
        let table = table_as(&storage, &model, codec);
        let bytes = table.meta().file_bytes();
        assert!(bytes < stored, "{codec:?}: {bytes} of {stored}");
        assert_eq!(table.verify().unwrap(), model.len() as u64);
        assert_eq!(
            streamed(&table, &[], None, 64 << 10).unwrap(),
            part(&model, &[], None)
        );
    }
}

#[test]
fn packed_leaves_read_together_are_the_same() {
    let model = records(2_000);
    for codec in codecs().into_iter().skip(1) {
        let (sim, storage) = sim();
        let table = table_as(&storage, &model, codec);
        let mut wanted = Vec::new();
        for key in model.keys().step_by(40) {
            let mut descent = table.descent(key, hash_of(key), FilterUse::Never);
            while let crate::y::lsm::table::Step::Missing(page) =
                table.descend(key, &mut descent).unwrap()
            {
                if page > table.meta().pages {
                    wanted.push((&table, page));
                    break;
                }
                load_together(&[(&table, page)]).unwrap();
            }
        }
        assert!(wanted.len() > 5, "{codec:?}");
        load_together(&wanted).unwrap();
        let before = sim.ios();
        for key in model.keys().step_by(40) {
            let found = table.get(key, hash_of(key), FilterUse::Never).unwrap();
            assert_eq!(found.unwrap().unwrap()[..], model[key].clone().unwrap()[..]);
        }
        assert_eq!(sim.ios(), before);
    }
}

/// A table of one leaf is one page, whatever the codec.
#[test]
fn a_leaf_that_is_alone_is_a_page() {
    for codec in codecs() {
        let (_, storage) = sim();
        let table = table_as(&storage, &records(10), codec);
        assert_eq!((table.meta().root, table.meta().height), (1, 1));
        assert_eq!(table.verify().unwrap(), 10);
    }
}

/// Values that are far: read by a get, by a stream and by who checks, and what each costs.
#[test]
fn long_values_take_less_and_are_read_by_fewer_pages() {
    let value = |i: u64| text(i, 3000 + (i as usize % 50) * 400);
    let model: Model = (0..400u64)
        .map(|i| (i.to_be_bytes().to_vec(), Some(value(i))))
        .collect();
    let stored = {
        let (_, storage) = sim();
        write(&storage, &model).unwrap().0.file_bytes()
    };
    for codec in codecs().into_iter().skip(1) {
        let (sim, storage) = sim();
        let table = table_as(&storage, &model, codec);
        let bytes = table.meta().file_bytes();
        assert!(bytes * 2 < stored, "{codec:?}: {bytes} of {stored}");
        assert_eq!(
            table.meta().far_bytes,
            model
                .values()
                .flatten()
                .map(|v| v.len() as u64)
                .sum::<u64>()
        );
        assert_eq!(table.verify().unwrap(), 400);
        for read_bytes in [32 << 10, 256 << 10] {
            let streamed = streamed(&table, &[], None, read_bytes).unwrap();
            assert!(streamed == part(&model, &[], None));
        }
        let ask = |key: &[u8]| table.get(key, hash_of(key), FilterUse::Never).unwrap();
        model.keys().for_each(|key| drop(ask(key)));
        let before = sim.ios();
        for (key, value) in &model {
            assert_eq!(ask(key).unwrap().as_deref(), value.as_deref());
        }
        // The value's read and no other: its leaf is in a frame.
        assert_eq!(sim.ios() - before, 400);
    }
}

/// A table as version 3 wrote it, with leaves packed and long values not, differs by that alone.
#[test]
fn values_that_do_not_become_smaller_stand_as_they_are() {
    let mut random = random(9);
    let model: Model = (0..100u32)
        .map(|i| (i.to_be_bytes().to_vec(), Some(bytes(&mut random, 5000))))
        .chain([(b"long".to_vec(), Some(vec![7; (1 << 20) + 1]))])
        .collect();
    for codec in codecs() {
        let (_, storage) = sim();
        let table = table_as(&storage, &model, codec);
        assert!(table.meta().file_bytes() > table.meta().far_bytes);
        assert!(streamed(&table, &[], None, 64 << 10).unwrap() == part(&model, &[], None));
    }
}
