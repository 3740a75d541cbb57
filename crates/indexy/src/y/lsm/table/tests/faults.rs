//! Faults of the storage while a table is written, read and copied.

use super::*;
use crate::storage::sim::Fault;

#[test]
fn a_write_that_fails_leaves_no_file() {
    let model = odd(9, 500);
    let (sim, storage) = sim();
    write(&storage, &model).unwrap();
    let ios = sim.ios();
    assert!(ios > 10, "{ios}");
    for fault in [
        Fault::Eio,
        Fault::Full,
        Fault::ShortWrite,
        Fault::NoDescriptors,
    ] {
        for at in 1..=ios {
            let (sim, storage) = super::sim();
            sim.fail_at(at, fault, false);
            let written = write(&storage, &model);
            if sim.faults() == 0 {
                assert!(written.is_ok());
                continue;
            }
            assert!(written.is_err(), "{fault:?} at {at} went unnoticed");
            assert!(sim.contents().is_empty(), "{fault:?} at {at} left a file");
        }
    }
}

#[test]
fn a_writer_that_is_dropped_leaves_no_file() {
    let (sim, storage) = sim();
    let mut writer = TableWriter::new(&storage, dir(), NUMBER, TableOptions::default()).unwrap();
    for (key, value) in odd(2, 200) {
        writer.add(&key, value.as_deref()).unwrap();
        assert_eq!(sim.contents().len(), 1);
    }
    drop(writer);
    assert!(sim.contents().is_empty());
}

#[test]
fn a_file_in_the_way_is_not_touched() {
    let (sim, storage) = sim();
    sim.tamper(&path(), vec![1, 2, 3]);
    assert!(TableWriter::new(&storage, dir(), NUMBER, TableOptions::default()).is_err());
    assert_eq!(sim.contents().get(&path()), Some(&vec![1, 2, 3]));
}

#[test]
fn a_read_that_fails_is_an_error_and_the_next_one_is_right() {
    let model = odd(4, 200);
    let (sim, storage) = sim();
    let table = table(&storage, &model);
    let all = part(&model, &[], None);
    for at in 1..60 {
        sim.fail_at(sim.ios() + at, Fault::Eio, false);
        if let Ok(found) = streamed(&table, &[], None, 32 << 10) {
            assert_eq!((found, sim.faults()), (all.clone(), 0));
        }
        sim.fail_at(sim.ios() + at, Fault::Eio, false);
        for (key, value) in &model {
            if let Ok(found) = get(&table, key) {
                assert_eq!(found.as_ref(), Some(value));
            }
        }
    }
    sim.heal();
    for (key, value) in &model {
        assert_eq!(get(&table, key).unwrap().as_ref(), Some(value));
    }
    assert_eq!(table.verify().unwrap(), model.len() as u64);
}

#[test]
fn a_copy_is_the_same_table_or_not_there() {
    let model = odd(6, 300);
    let (sim, storage) = sim();
    let table = table(&storage, &model);
    let dest = Path::new("copy");
    let before = sim.ios();
    table.copy_to(&*storage, dest).unwrap();
    let ios = sim.ios() - before;
    let files = sim.contents();
    assert_eq!(files.get(Path::new("copy/7")), files.get(&path()));
    let copy = Table::open(&*storage, dest, table.meta().clone(), &pool(POOL_BYTES)).unwrap();
    assert_eq!(copy.verify().unwrap(), model.len() as u64);
    drop(copy);
    for at in 1..=ios {
        storage.remove(Path::new("copy/7")).ok();
        sim.fail_at(sim.ios() + at, Fault::Eio, false);
        assert!(table.copy_to(&*storage, dest).is_err(), "I/O {at}");
        sim.heal();
        assert_eq!(sim.contents().len(), 1, "I/O {at} left a file");
    }
}

/// What is written beside a power failure is not durable: that is the caller's. But a sync of the
/// file that `finish` gave makes all of it durable.
#[test]
fn a_synced_table_survives_power_loss() {
    let model = odd(8, 200);
    let (sim, storage) = sim();
    let (meta, file) = write(&storage, &model).unwrap();
    file.sync().unwrap();
    storage.sync_dir(dir()).unwrap();
    for seed in 0..8 {
        let after: Arc<dyn Storage> = Arc::new(sim.crash(seed));
        let table = Table::open(&*after, dir(), meta.clone(), &pool(POOL_BYTES)).unwrap();
        assert_eq!(table.verify().unwrap(), model.len() as u64);
    }
}
