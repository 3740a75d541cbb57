//! What merges leave, and what they give back.

use super::*;
use crate::y::{
    contract::{KeyRange, Maintained},
    lsm::{
        compact::Step,
        version::TableFile,
        write::{Level, MOST_TABLE_PAGES, Output},
    },
};
use crashes::content;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn run(keys: impl Iterator<Item = u64>, value: &[u8]) -> Entries {
    keys.map(|key| put(&key.to_be_bytes(), value)).collect()
}

/// Bytes of the files of tables.
fn table_bytes(sim: &Sim) -> usize {
    let files = sim.contents();
    let tables = files
        .iter()
        .filter(|(path, _)| path.parent() != Some(Path::new(DIR)));
    tables.map(|(_, bytes)| bytes.len()).sum()
}

/// Ascending runs overlap nothing: they are never written again.
#[test]
fn what_is_loaded_in_order_is_written_once() {
    let sim = Sim::default();
    let y = open_sim(&sim).unwrap();
    for n in 0..20u64 {
        write(&y, &run(n * 500..(n + 1) * 500, &[7; 16])).unwrap();
    }
    y.make_durable().unwrap();
    let tables: Vec<u64> = y.versions.current().tables().into_keys().collect();
    settle(&y);
    let after: Vec<u64> = y.versions.current().tables().into_keys().collect();
    assert_eq!(tables, after);
    assert!(y.versions.current().partitions().len() > 3);
    assert_eq!(y.run_count(), 1);
}

/// Two tables would be two layers of like size again, to be merged again.
#[test]
fn layers_that_are_merged_become_one() {
    let sim = Sim::default();
    let sizes = Sizes {
        table_bytes: 64 << 10,
        ..TINY
    };
    let y = open_busy(&sim, sizes);
    let mut model = Model::new();
    for n in 0..4 {
        let keys = (0..800).filter(|key| key % 4 == n);
        write_both(&y, &mut model, &run(keys, &[n as u8; 120]));
    }
    let layers = |y: &LsmY| y.version().partitions()[0].layers.clone();
    let bytes: u64 = layers(&y).iter().map(|table| table.facts().bytes()).sum();
    assert_eq!(layers(&y).len(), 3);
    assert!(bytes > sizes.table_bytes, "{bytes}");
    assert!(y.do_step(&y.version(), Step::Minor(0, 0..3)).unwrap());
    assert_eq!(layers(&y).len(), 1);
    assert_eq!(content(&y).unwrap(), model);
}

/// A table has keys on both sides of what is loaded, and none there: still nothing lies over it.
#[test]
fn what_is_loaded_into_a_gap_is_written_once() {
    let sim = Sim::default();
    let y = open_sim(&sim).unwrap();
    let mut model = Model::new();
    let ends = (0..10u64).chain(1_000_000..1_000_010);
    write_both(&y, &mut model, &run(ends, &[1; 16]));
    let mut load = y.begin_load().unwrap().unwrap();
    for key in 1000..30_000u64 {
        load.add(&key.to_be_bytes(), &[2; 40]).unwrap();
        model.insert(key.to_be_bytes().to_vec(), vec![2; 40]);
    }
    load.seal().unwrap();
    load.publish().unwrap();
    assert_eq!(y.run_count(), 1);
    assert!(!y.is_congested());
    let tables: Vec<u64> = y.versions.current().tables().into_keys().collect();
    assert!(tables.len() > 40);
    settle(&y);
    assert_eq!(content(&y).unwrap(), model);
    let after: Vec<u64> = y.versions.current().tables().into_keys().collect();
    assert_eq!(tables, after);
    drop(y);
    let y = open_sim(&sim).unwrap();
    assert_eq!((content(&y).unwrap(), y.run_count()), (model, 1));
}

/// What copies a directory may leave out empty folders.
#[test]
fn a_copy_without_the_folder_of_tables_is_written() {
    let store = OnDisk::new();
    drop(store.open());
    std::fs::remove_dir(store.dir.path().join("tree/tables")).unwrap();
    let y = store.open();
    write(&y, &run(0..10, &[1; 16])).unwrap();
    y.make_durable().unwrap();
    drop(y);
    assert_eq!(content(&store.open()).unwrap().len(), 10);
}

/// Space of what was overwritten and removed comes back.
#[test]
fn overwritten_and_removed_keys_take_no_space() {
    let sim = Sim::default();
    let y = open_sim(&sim).unwrap();
    write(&y, &run(0..4000, &[1; 40])).unwrap();
    y.make_durable().unwrap();
    let once = y.disk_bytes();
    for n in 0..6 {
        write(&y, &run(0..4000, &[n; 40])).unwrap();
        settle(&y);
    }
    y.make_durable().unwrap();
    settle(&y);
    let now = y.disk_bytes();
    assert!(now < once + once / 2, "{once} once, {now} now");
    let all: Entries = (0..4000u64).map(|key| del(&key.to_be_bytes())).collect();
    write(&y, &all).unwrap();
    settle(&y);
    y.make_durable().unwrap();
    y.maintain().unwrap();
    assert!(y.is_empty().unwrap());
    assert_eq!(table_bytes(&sim), 0);
    assert!(
        y.disk_bytes() < 512 << 10,
        "{}: the version log",
        y.disk_bytes()
    );
}

/// A range is removed without a read of its leaves.
#[test]
fn a_removed_range_is_gone_at_once() {
    let sim = Sim::default();
    let y = open_sim(&sim).unwrap();
    let mut model = Model::new();
    for n in 0..4u64 {
        write_both(
            &y,
            &mut model,
            &run((0..6000).skip(n as usize).step_by(3), &[n as u8; 30]),
        );
    }
    y.make_durable().unwrap();
    let before = sim.ios();
    let (from, to) = (1000u64.to_be_bytes(), 5000u64.to_be_bytes());
    y.remove_range(&from, Some(&to)).unwrap();
    // Inner pages are read, to weigh what is left. Nothing is written.
    assert!(sim.ios() < before + 60, "{} I/Os", sim.ios() - before);
    model.retain(|key, _| **key < from[..] || **key >= to[..]);
    check(&y, &model);
    // What comes behind it is not removed.
    write_both(&y, &mut model, &run(2000..2100, &[9; 30]));
    check(&y, &model);
    settle(&y);
    check(&y, &model);
    drop(y);
    let y = open_sim(&sim).unwrap();
    check(&y, &model);
    y.remove_range(b"", None).unwrap();
    y.make_durable().unwrap();
    settle(&y);
    assert!(y.is_empty().unwrap());
    assert_eq!(table_bytes(&sim), 0);
}

/// Readers meet the version before it and the one behind it, and none between.
#[test]
fn the_ranges_of_a_removal_go_in_one_version() {
    let sim = Sim::default();
    let y = open_sim(&sim).unwrap();
    let mut model = Model::new();
    write_both(&y, &mut model, &run(0..6000, &[1; 40]));
    let ends = (0..300u64).map(|i| [i * 20, i * 20 + 5].map(u64::to_be_bytes));
    let ends: Vec<_> = ends.collect();
    let ranges: Vec<KeyRange<'_>> = ends.iter().map(|[f, t]| (&f[..], Some(&t[..]))).collect();
    let before = y.version();
    let done = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = vec![Arc::clone(&before)];
            while !done.load(Relaxed) {
                let now = y.version();
                if seen.last().is_none_or(|last| !Arc::ptr_eq(last, &now)) {
                    seen.push(now);
                }
            }
            seen
        });
        let published = y.begin_removal(&ranges).and_then(|ready| ready.publish());
        done.store(true, Relaxed);
        published.unwrap();
        reader.join().unwrap()
    });
    assert!(seen.len() <= 2, "{} versions", seen.len());
    let inside = |key: &[u8]| {
        ranges
            .iter()
            .any(|(from, to)| key >= *from && to.is_some_and(|to| key < to))
    };
    model.retain(|key, _| !inside(key));
    check(&y, &model);
    y.make_durable().unwrap();
    drop(y);
    check(&open_sim(&sim).unwrap(), &model);
}

/// Nothing of a removal that was made ready can fail, and the files are not released before it is
/// published or dropped.
#[test]
fn a_removal_that_is_ready_keeps_the_files() {
    let sim = Sim::default();
    let y = open_sim(&sim).unwrap();
    write(&y, &run(0..100, &[1; 40])).unwrap();
    let removal = y.begin_removal(&[(b"", None)]).unwrap();
    assert!(!y.release_files());
    removal.publish().unwrap();
    assert!(y.is_empty().unwrap());
    assert!(y.release_files());
    let refused = y.begin_removal(&[(b"", None)]).map(drop);
    assert!(matches!(refused, Err(Error::Closed)));
}

/// Readers go on in the version that they began with, whatever is merged and removed.
#[test]
fn a_range_outlives_merges_and_removals() {
    let sim = Sim::default();
    let y = open_sim(&sim).unwrap();
    let mut model = Model::new();
    for n in 0..5u8 {
        write_both(
            &y,
            &mut model,
            &run((0..3000).skip(n as usize).step_by(2), &[n; 30]),
        );
    }
    y.make_durable().unwrap();
    let mut open = y.range(b"", None, Order::Ascending).unwrap();
    let first = open.next().unwrap().unwrap();
    settle(&y);
    y.remove_range(b"", None).unwrap();
    y.make_durable().unwrap();
    y.maintain().unwrap();
    let rest: Model = open
        .map(|e| e.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap())
        .collect();
    assert_eq!(rest.len() + 1, model.len());
    assert_eq!(
        model.get(&first.0.to_vec()).map(|v| &v[..]),
        Some(&*first.1)
    );
    assert!(rest.iter().all(|(k, v)| model.get(k) == Some(v)));
    y.maintain().unwrap();
    assert!(sim.contents().len() < 6, "its files are gone");
    assert!(content(&y).unwrap().is_empty());
}

/// A merge beside damage puts all into one table, as far as a table can be opened again.
#[test]
fn a_merge_into_one_table_ends_it_in_time() {
    let store = OnDisk::new();
    let y = store.open();
    let mut output = Output::new(&y, u64::MAX, Level::Layer);
    for key in 0..3u8 {
        output.add(&[key], Some(&[key; 100])).unwrap();
        output.skip(MOST_TABLE_PAGES);
    }
    output.add(&[9], Some(&[9; 100_000])).unwrap();
    let tables = output.finish().unwrap();
    assert_eq!(tables.len(), 4);
    y.change(|version| Some(version.with_run(&tables)));
    y.make_durable().unwrap();
    drop((tables, y));
    let y = store.open();
    assert_eq!(y.get(&[9]).unwrap().unwrap(), [9; 100_000]);
    assert_eq!(y.get(&[1]).unwrap().unwrap(), [1; 100]);
}

/// I7: what is known of each table of a load is counted before the load is published.
#[test]
fn the_tables_of_a_load_are_counted() {
    let sim = Sim::default();
    let y = open_sim(&sim).unwrap();
    let before = y.memory_bytes();
    for publishes in [false, true] {
        let mut load = y.begin_load().unwrap().unwrap();
        for key in 0..20_000u64 {
            load.add(&key.to_be_bytes(), &[7; 40]).unwrap();
        }
        let written = y.memory_bytes() - before;
        load.seal().unwrap();
        let sealed = y.memory_bytes() - before;
        // Some 40 tables.
        assert!(written > 40 * 150, "{written}");
        assert!(sealed > written, "{written}, {sealed}");
        if publishes {
            load.publish().unwrap();
            // Partitions take some, too.
            assert!(y.memory_bytes() - before >= sealed);
        } else {
            drop(load);
            assert_eq!(y.memory_bytes(), before);
        }
        assert_eq!(y.load_bytes.load(Relaxed), 0);
    }
}

/// A partition with far more than a step may merge is cut first, also where its tables have no
/// segments of a filter to cut at.
#[test]
fn no_step_merges_more_than_its_part() {
    for bytes in [100, 1500] {
        let sim = Sim::default();
        // Runs of one table each; the first is the base, over which eight layers are too many.
        let sizes = Sizes {
            table_bytes: 1 << 20,
            ..TINY
        };
        let y = open_busy(&sim, sizes);
        let mut model = Model::new();
        for n in 0..9u64 {
            let keys = (n..800 * 9).step_by(9 * bytes / 100);
            write_both(&y, &mut model, &run(keys, &vec![n as u8; bytes]));
        }
        y.make_durable().unwrap();
        let mut known: Vec<u64> = y.versions.current().tables().into_keys().collect();
        let mut most = 0;
        while y.maintain().unwrap() != Maintained::Idle {
            let version = y.versions.current();
            let tables = version.tables();
            let new = tables.iter().filter(|(number, _)| !known.contains(number));
            most = most.max(new.map(|(_, table)| table.facts().bytes()).sum());
            known = tables.into_keys().collect();
        }
        assert!(most > 0, "nothing was merged");
        assert!(most <= 8 * TINY.partition_bytes, "{most} of {bytes}");
        assert_eq!(content(&y).unwrap(), model);
    }
}

/// A range is removed while its partition is merged. What is left is to be merged: whoever compacts
/// goes on.
#[test]
fn a_merge_in_vain_is_followed_by_another_one() {
    let sim = Sim::default();
    let y = open_sim(&sim).unwrap();
    write(&y, &vec![put(b"a", b"1"), put(b"m", b"1")]).unwrap();
    write(&y, &vec![put(b"n", b"2"), put(b"z", b"2")]).unwrap();
    let version = y.version();
    assert_eq!(version.partitions().len(), 1);
    y.remove_range(b"n", None).unwrap();
    assert!(y.do_step(&version, Step::Major(0..1)).unwrap());
    assert_eq!(y.get(b"m").unwrap().unwrap(), *b"1");
    assert!(y.get(b"z").unwrap().is_none());
}

/// Long keys where segments of the filter begin: the version log keeps them, and what it is given
/// it takes again at the next open.
#[test]
fn a_table_ends_before_the_log_would_keep_too_much_of_it() {
    let sim = Sim::default();
    let y = open_sim(&sim).unwrap();
    let mut output = Output::new(&y, u64::MAX, Level::Layer);
    let long = |group: u32, n: u8| [&group.to_be_bytes()[..], &[255; 60_000], &[n]].concat();
    for group in 0..150u32 {
        for n in 0..60_000u32 {
            let key = [group.to_be_bytes(), n.to_be_bytes()].concat();
            output.add(&key, None).unwrap();
        }
        (0..16).for_each(|n| output.add(&long(group, n), Some(b"v")).unwrap());
    }
    let tables = output.finish().unwrap();
    assert!(tables.len() > 1, "{}", tables.len());
    y.change(|version| Some(version.with_run(&tables)));
    y.make_durable().unwrap();
    drop((tables, y));
    let y = open_sim(&sim).unwrap();
    assert_eq!(y.get(&long(149, 15)).unwrap().unwrap(), *b"v");
}
