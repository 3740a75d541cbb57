//! What a table takes: of the file, of memory, in reads; and what its footer says.

use super::*;
use crate::{error::Error, y::pool::TABLE_PAGES};

#[test]
fn the_footer_says_what_the_version_log_says() {
    for seed in 20..26 {
        let (_, storage) = sim();
        let (meta, file) = write(&storage, &odd(seed, 50)).unwrap();
        assert_eq!(TableMeta::read(&file).unwrap(), meta);
        let mut encoded = Vec::new();
        meta.encode(&mut encoded);
        encoded.push(9);
        assert_eq!(TableMeta::decode(&encoded), Ok((meta, encoded.len() - 1)));
    }
}

#[test]
fn counts_and_bounds_are_those_of_the_entries() {
    let model = odd(31, 500);
    let (_, storage) = sim();
    let (meta, _) = write(&storage, &model).unwrap();
    let deletes = model.values().filter(|v| v.is_none()).count();
    assert_eq!(
        (meta.entries, meta.deletes),
        (model.len() as u64, deletes as u64)
    );
    assert_eq!(
        Some((&meta.min, &meta.max)).map(|(a, b)| (a.to_vec(), b.to_vec())),
        {
            let first = model.first_key_value().unwrap().0.clone();
            Some((first, model.last_key_value().unwrap().0.clone()))
        }
    );
    assert!(model.keys().all(|key| meta.spans(key)) && !meta.spans(&[0xff; 700]));
    let bytes: usize = model
        .iter()
        .map(|(k, v)| k.len() + v.as_ref().map_or(0, Vec::len))
        .sum();
    let told = (meta.near_bytes + meta.far_bytes) as usize;
    // The first bytes of a far key are in its leaf, too.
    assert!(
        told >= bytes && told <= bytes + 512 * model.len(),
        "{told}, {bytes}"
    );
    assert!(
        meta.file_bytes() as usize <= bytes * 11 / 10 + 64 * 4096,
        "{meta:?}"
    );
}

#[test]
fn few_leaves_have_no_filter_and_memory_is_small() {
    let (_, storage) = sim();
    let small = table(&storage, &plain(100));
    assert!(small.meta().segments.is_empty());
    assert!(small.memory_bytes() < 1024, "{}", small.memory_bytes());
    let (_, storage) = sim();
    let large = table(&storage, &plain(100_000));
    assert!(!large.meta().segments.is_empty());
    assert!(large.memory_bytes() < 2048, "{}", large.memory_bytes());
}

#[test]
fn a_writer_takes_no_more_memory_for_a_larger_table() {
    let (_, storage) = sim();
    let mut writer = TableWriter::new(&storage, dir(), NUMBER, TableOptions::default()).unwrap();
    let value = vec![3; 5 << 20];
    for i in 0..150_000u64 {
        writer.add(&i.to_be_bytes(), Some(&[9; 20])).unwrap();
    }
    writer.add(&[0xff; 9], Some(&value)).unwrap();
    let memory = writer.memory_bytes();
    assert!(memory > 512 << 10 && memory < 1200 << 10, "{memory}");
    let (meta, file) = writer.finish().unwrap().unwrap();
    let table = Table::of_file(file, meta, &pool(POOL_BYTES)).unwrap();
    assert_eq!(get(&table, &[0xff; 9]).unwrap(), Some(Some(value)));
}

/// Leaves that are packed well are many, and separators may be as long as keys are alike.
#[test]
fn many_leaves_with_long_separators_take_bounded_memory() {
    for codec in codecs() {
        for alike in [20, 1000] {
            let (_, storage) = sim();
            let options = TableOptions {
                codec,
                ..TableOptions::default()
            };
            let mut writer = TableWriter::new(&storage, dir(), NUMBER, options).unwrap();
            let key = |i: u64| {
                let group = (i / alike).to_be_bytes();
                [&group[..], &[9; 480], &i.to_be_bytes()].concat()
            };
            let mut most = 0;
            for i in 0..30_000 {
                writer.add(&key(i), Some(&[7; 400])).unwrap();
                most = most.max(writer.memory_bytes());
            }
            assert!(most < 2 << 20, "{codec:?}, {alike}: {most}");
            let (meta, file) = writer.finish().unwrap().unwrap();
            assert!(meta.height > 2);
            let table = Table::of_file(file, meta, &pool(POOL_BYTES)).unwrap();
            assert_eq!(table.verify().unwrap(), 30_000);
            for i in (0..30_000).step_by(97) {
                assert_eq!(get(&table, &key(i)).unwrap(), Some(Some(vec![7; 400])));
            }
            let (from, to) = (key(10_000), key(10_500));
            let part = streamed(&table, &from, Some(&to), 0).unwrap();
            assert_eq!(part.len(), 500);
        }
    }
}

#[test]
fn a_cold_far_value_is_one_read_and_a_hit_none() {
    let (sim, storage) = sim();
    let mut model = plain(3000);
    let value = vec![5; 65_536];
    model.insert(b"zz".to_vec(), Some(value.clone()));
    let (meta, file) = write(&storage, &model).unwrap();
    let table = Table::of_file(file, meta.clone(), &pool(POOL_BYTES)).unwrap();
    let before = sim.ios();
    assert_eq!(get(&table, b"zz").unwrap(), Some(Some(value.clone())));
    // The filter, the levels, the value.
    assert_eq!(sim.ios() - before, u64::from(meta.height) + 2);
    let before = sim.ios();
    assert_eq!(get(&table, b"zz").unwrap(), Some(Some(value)));
    assert_eq!(sim.ios() - before, 1);
    let before = sim.ios();
    get(&table, &model.last_key_value().unwrap().0[..1]).unwrap();
    assert!(sim.ios() - before <= 1);
}

#[test]
fn a_stream_reads_large_pieces_once() {
    let (sim, storage) = sim();
    let model = plain(100_000);
    let table = table(&storage, &model);
    for (read_bytes, pages) in [(256 << 10, 64), (32 << 10, 8), (0, 8), (1 << 30, 64)] {
        let before = sim.ios();
        assert_eq!(
            streamed(&table, &[], None, read_bytes).unwrap().len(),
            model.len()
        );
        let reads = sim.ios() - before;
        let least = table.meta().pages / pages;
        assert!(
            reads >= least && reads <= least * 5 / 4 + 12,
            "{reads}, {least}"
        );
    }
    // A part costs what it has, not what the table has.
    let before = sim.ios();
    let from = 150_000u64.to_be_bytes();
    let to = 150_300u64.to_be_bytes();
    assert_eq!(
        streamed(&table, &from, Some(&to), 256 << 10).unwrap().len(),
        100
    );
    assert!(sim.ios() - before <= 4);
}

/// A table that is too long is refused by its writer, not by whoever opens it.
#[test]
fn the_longest_table_can_be_opened_and_a_longer_one_is_not_written() {
    let dir = tempfile::TempDir::new().unwrap();
    let storage: Arc<dyn Storage> = Arc::new(crate::storage::Buffered);
    let model = plain(2_000);
    let written = |left: u64, value: &[u8]| {
        let options = TableOptions::default();
        let mut writer = TableWriter::new(&storage, dir.path(), NUMBER, options)?;
        for (key, value) in &model {
            writer.add(key, value.as_deref())?;
        }
        // The file ends in a hole of 64 GiB.
        writer.skip(TABLE_PAGES - left - writer.bytes() / 4096);
        writer.add(&[0xff; 9], Some(value))?;
        writer.finish()
    };
    let pages = |value: &[u8]| {
        let (meta, file) = written(200, value).unwrap().unwrap();
        assert_eq!(TableMeta::read(&file).unwrap(), meta);
        let table = Table::of_file(file, meta.clone(), &pool(POOL_BYTES)).unwrap();
        assert_eq!(get(&table, &[0xff; 9]).unwrap().unwrap().unwrap(), value);
        storage.remove(&dir.path().join(file_name(NUMBER))).unwrap();
        200 - (TABLE_PAGES - meta.pages)
    };
    for value in [vec![3; 8], vec![4; 10_000], vec![5; 600_000]] {
        let pages = pages(&value);
        let (meta, _) = written(pages, &value).unwrap().unwrap();
        assert_eq!(meta.pages, TABLE_PAGES);
        storage.remove(&dir.path().join(file_name(NUMBER))).unwrap();
        for less in [1, 2, 3, pages - 1] {
            let refused = written(pages - less, &value).map(drop);
            assert!(matches!(refused, Err(Error::Unsupported { .. })));
            assert!(storage.list(dir.path()).unwrap().is_empty());
        }
    }
}

/// Inner pages, of which each serves a few leaves here, are not driven out by leaves that hardly
/// anybody asks for again.
#[test]
fn inner_pages_stay_while_leaves_come_and_go() {
    let (_, storage) = sim();
    let mut writer = TableWriter::new(&storage, dir(), NUMBER, TableOptions::default()).unwrap();
    // Few keys fit in a leaf, and few separators in an inner page.
    let key = |i: u64| [&(i / 20).to_be_bytes()[..], &[9; 480], &i.to_be_bytes()].concat();
    const KEYS: u64 = 30_000;
    for i in 0..KEYS {
        writer.add(&key(i), Some(&[7; 400])).unwrap();
    }
    let (meta, file) = writer.finish().unwrap().unwrap();
    let pool = pool(4000 << 10);
    let table = Table::of_file(file, meta, &pool).unwrap();
    let mut random = random(3);
    let mut reads = |gets: u64| {
        let before = pool.reads.load(std::sync::atomic::Ordering::Relaxed);
        for _ in 0..gets {
            let i = random.random_range(0..KEYS);
            assert!(get(&table, &key(i)).unwrap().is_some());
        }
        let reads = pool.reads.load(std::sync::atomic::Ordering::Relaxed) - before;
        reads as f64 / gets as f64
    };
    reads(5000);
    let each = reads(20_000);
    // 1.05 if they stayed no longer than leaves.
    assert!(each < 0.98, "{each} reads a get");
}
