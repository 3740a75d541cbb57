//! When the files of tables go.

use super::{disk::*, *};
use crate::storage::sim::{Fault, Sim};

fn with(sim: &Sim, versions: &Sims, keys: Range<u32>) -> Arc<Fake> {
    let entries = keys
        .map(|i| (i.to_be_bytes().to_vec(), Some(vec![1])))
        .collect();
    store(sim, versions, &entries).unwrap()
}

fn add(sim: &Sim, versions: &Sims, keys: Range<u32>) {
    let table = with(sim, versions, keys);
    assert!(versions.update(|v| Some(v.with_run(&[table]))));
}

#[test]
fn a_file_goes_when_neither_readers_nor_the_durable_version_need_it() {
    let sim = Sim::default();
    let versions = open(&sim).unwrap();
    add(&sim, &versions, 0..10);
    versions.commit().unwrap();
    let reader = versions.current().clone();
    versions.update(|v| Some(v.without_range(b"", None)));
    versions.reap().unwrap();
    assert_eq!(files(&sim), [1], "the durable version has it");
    versions.commit().unwrap();
    assert_eq!(files(&sim), [1], "a reader has it");
    assert!(!versions.release().unwrap());
    drop(reader);
    assert_eq!(files(&sim), [1], "readers remove nothing");
    versions.reap().unwrap();
    assert!(files(&sim).is_empty());
    assert!(versions.release().unwrap());
}

#[test]
fn a_table_that_is_never_published_goes() {
    let sim = Sim::default();
    let versions = open(&sim).unwrap();
    let table = with(&sim, &versions, 0..10);
    versions.reap().unwrap();
    assert_eq!(files(&sim), [1]);
    drop(table);
    versions.reap().unwrap();
    assert!(files(&sim).is_empty());
    assert!(!versions.update(|_| None));
}

#[test]
fn a_file_that_could_not_be_removed_counts() {
    let sim = Sim::default();
    let versions = open(&sim).unwrap();
    let log = versions.disk_bytes();
    let table = with(&sim, &versions, 0..10);
    let bytes = table.facts.bytes();
    assert_eq!(
        versions.disk_bytes(),
        log + bytes,
        "it need not be in a version"
    );
    drop(table);
    sim.fail_at(sim.ios() + 1, Fault::Eio, false);
    assert!(versions.reap().is_err());
    assert_eq!((files(&sim), versions.disk_bytes()), (vec![1], log + bytes));
    versions.reap().unwrap();
    assert_eq!((files(&sim), versions.disk_bytes()), (vec![], log));
}

/// A commit whose write failed may be durable all the same: both versions' files stay.
#[test]
fn l1_the_files_of_a_doubtful_commit_stay() {
    let sim = Sim::default();
    let versions = open(&sim).unwrap();
    add(&sim, &versions, 0..10);
    versions.commit().unwrap();
    versions.update(|v| Some(v.without_range(b"", None)));
    add(&sim, &versions, 5..15);
    // Sync of the table, its directory (two I/Os), and then the write.
    sim.fail_at(sim.ios() + 4, Fault::ShortWrite, true);
    assert!(matches!(
        versions.commit(),
        Err(Error::Io { op: "write", .. })
    ));
    sim.heal();
    versions.update(|v| Some(v.without_range(b"", None)));
    versions.reap().unwrap();
    assert_eq!(files(&sim), [1, 2]);
    versions.commit().unwrap();
    assert!(files(&sim).is_empty());
}

/// A record that a process wrote and never synced is there for the next process, and gone after a
/// power loss: the next one makes it durable before it removes the files of the version before.
#[test]
fn l1_what_an_open_finds_is_durable_before_files_go() {
    let sim = Sim::default();
    let versions = open(&sim).unwrap();
    add(&sim, &versions, 0..10);
    versions.commit().unwrap();
    versions.update(|v| Some(v.without_range(b"", None)));
    add(&sim, &versions, 5..20);
    // The process ends behind the writes of superblock and record: before the table's sync, two
    // I/Os for its directory, and those.
    sim.fail_at(sim.ios() + 6, Fault::PowerLoss, true);
    assert!(matches!(versions.commit(), Err(Error::Poisoned { .. })));
    sim.heal();
    drop(versions);
    let versions = open(&sim).unwrap();
    assert_eq!(content(&versions.current()).len(), 15);
    assert_eq!(files(&sim), [2]);
    for seed in 0..40 {
        let again = open(&sim.crash(seed)).unwrap();
        assert_eq!(content(&again.current()).len(), 15, "{seed}");
    }
}

#[test]
fn a_released_tree_writes_and_removes_nothing() {
    let sim = Sim::default();
    let versions = open(&sim).unwrap();
    add(&sim, &versions, 0..10);
    assert!(versions.release().unwrap());
    let before = sim.contents();
    versions.commit().unwrap();
    versions.update(|v| Some(v.without_range(b"", None)));
    assert!(matches!(versions.commit(), Err(Error::Closed)));
    versions.reap().unwrap();
    assert!(versions.release().unwrap());
    versions.close().unwrap();
    drop(versions);
    assert!(sim.contents() == before);
    assert_eq!(content(&open(&sim).unwrap().current()).len(), 10);
}

/// The files may be another owner's as soon as a release has failed: nobody waits any longer.
#[test]
fn a_release_that_fails_ends_writing_all_the_same() {
    let sim = Sim::default();
    let versions = open(&sim).unwrap();
    add(&sim, &versions, 0..10);
    sim.fail_at(sim.ios() + 1, Fault::Full, true);
    assert!(versions.release().is_err());
    sim.heal();
    let before = sim.contents();
    assert!(matches!(versions.commit(), Err(Error::Closed)));
    versions.reap().unwrap();
    versions.close().unwrap();
    drop(versions);
    assert!(sim.contents() == before);
}

#[test]
fn read_only_changes_nothing() {
    let sim = Sim::default();
    assert!(matches!(
        open_as(&sim, 7, true),
        Err(Error::NoDatabase { .. })
    ));
    let versions = open(&sim).unwrap();
    add(&sim, &versions, 0..10);
    versions.commit().unwrap();
    with(&sim, &versions, 0..3);
    drop(versions);
    let before = sim.contents();
    let versions = open_as(&sim, 7, true).unwrap();
    assert_eq!(content(&versions.current()).len(), 10);
    versions.reap().unwrap();
    versions.commit().unwrap();
    versions.close().unwrap();
    assert!(matches!(versions.writable(), Err(Error::ReadOnly)));
    drop(versions);
    assert!(sim.contents() == before);
    let versions = open(&sim).unwrap();
    assert_eq!(files(&sim), [1], "orphans go");
    assert!(versions.new_number() > 2);
}

#[test]
fn a_failed_sync_is_not_tried_again() {
    let sim = Sim::default();
    let versions = open(&sim).unwrap();
    add(&sim, &versions, 0..10);
    sim.fail_at(sim.ios() + 1, Fault::FailedSync, false);
    assert!(matches!(versions.commit(), Err(Error::Poisoned { .. })));
    sim.heal();
    assert!(matches!(versions.commit(), Err(Error::Poisoned { .. })));
    assert!(versions.release().is_err());
    assert_eq!(content(&versions.current()).len(), 10, "reads go on");
}

/// Readers, runs, merges, removals and commits at once: no reader meets a table without its file.
#[test]
fn readers_beside_everything_else_always_have_their_files() {
    let sim = Sim::default();
    let versions = open(&sim).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let looks = Seen::default();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let version = versions.current().clone();
                    let there = files(&sim);
                    for number in version.tables().keys() {
                        assert!(there.contains(number), "table {number}");
                    }
                    looks.add();
                }
            });
        }
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                versions.commit().unwrap();
                versions.reap().unwrap();
            }
        });
        for n in 0..300 {
            step(&sim, &versions, n).unwrap();
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(looks.count() > 50);
    assert!(versions.release().unwrap());
    assert_eq!(files(&sim), listed(&versions));
    assert!(content(&open(&sim).unwrap().current()) == content(&versions.current()));
}

/// A copy lists the same tables.
#[test]
fn a_copy_of_a_version_opens() {
    let sim = Sim::default();
    let versions = open(&sim).unwrap();
    for n in 0..9 {
        step(&sim, &versions, n).unwrap();
    }
    let dest = Sim::default();
    let version = versions.current();
    for (number, table) in version.tables() {
        let path = table_path(Path::new(DIR), number);
        dest.tamper(&path, sim.contents()[&path].clone());
        assert_eq!(table.facts.number, number);
    }
    placement::write_copy(&dest, Path::new(DIR), 7, &version).unwrap();
    let copy = open(&dest.crash(1)).unwrap();
    assert!(content(&copy.current()) == content(&version));
}
