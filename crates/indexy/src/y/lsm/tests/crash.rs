//! Crashes and faults at every I/O, on the simulated disk.

use super::*;
use crate::storage::sim::Fault;
use crashes::{content, script};

#[test]
fn after_a_crash_at_any_io_it_is_a_durable_version() {
    crashes::after_a_crash_at_any_io(open_sim);
    crashes::after_a_crash_at_any_io(open_sim_packed);
}

#[test]
fn i4_after_a_fault_at_any_io_nothing_is_half_done() {
    crashes::after_a_fault_at_any_io(open_sim);
    crashes::after_a_fault_at_any_io(open_sim_packed);
}

#[test]
fn i8_a_load_is_whole_after_a_crash() {
    crashes::i8_a_load_is_whole_after_a_crash(open_sim);
}

#[test]
fn a_load_that_fails_leaves_nothing() {
    crashes::a_load_that_fails_leaves_nothing(open_sim);
}

#[test]
fn a_failed_sync_is_not_tried_again() {
    let sim = Sim::default();
    let y = open_sim(&sim).unwrap();
    write(&y, &script(0)).unwrap();
    sim.fail_at(sim.ios() + 1, Fault::FailedSync, false);
    assert!(matches!(y.make_durable(), Err(Error::Poisoned { .. })));
    sim.heal();
    assert!(matches!(y.make_durable(), Err(Error::Poisoned { .. })));
    assert!(write(&y, &script(1)).is_err());
    assert_eq!(
        content(&y).unwrap().len() as u64,
        y.verify().unwrap(),
        "reads go on"
    );
}

/// Whatever is called on a tree that gave its files away, and its drop, leave them alone.
#[test]
fn a_released_tree_writes_nothing() {
    let sim = Sim::default();
    let y = open_sim(&sim).unwrap();
    write(&y, &vec![put(b"a", b"1")]).unwrap();
    assert!(y.release_files());
    let before = sim.contents();
    let more = write(&y, &vec![put(b"a", b"2")]);
    assert!(matches!(more, Err(Error::Closed)));
    assert!(matches!(y.maintain(), Err(Error::Closed)));
    assert!(y.make_durable().is_ok(), "nothing is left to do");
    assert!(y.release_files());
    drop(y);
    assert!(sim.contents() == before);
    assert_eq!(open_sim(&sim).unwrap().get(b"a").unwrap().unwrap(), *b"1");
}

/// A device that fills up during a merge: the merge's files go, and later it goes on.
#[test]
fn a_full_device_in_a_merge_gives_the_space_back() {
    let whole = {
        let sim = Sim::default();
        let y = open_sim(&sim).unwrap();
        (0..3).for_each(|n| write(&y, &script(n)).unwrap());
        y.make_durable().unwrap();
        let before = sim.ios();
        settle(&y);
        before..sim.ios()
    };
    assert!(whole.end - whole.start > 10, "{whole:?}");
    for at in whole {
        let sim = Sim::default();
        let y = open_sim(&sim).unwrap();
        (0..3).for_each(|n| write(&y, &script(n)).unwrap());
        y.make_durable().unwrap();
        let model = content(&y).unwrap();
        sim.fail_at(at + 1, Fault::Full, true);
        let failed = (0..50).any(|_| y.maintain().is_err());
        sim.heal();
        if failed && y.versions.writable().is_ok() {
            // What was merged before the fault stays; what was being written is gone. (Before the
            // next open, which removes whatever no version has.)
            y.make_durable().unwrap();
            y.versions.reap().unwrap();
            let lies_there: usize = sim.contents().values().map(Vec::len).sum();
            assert_eq!(lies_there as u64, y.versions.disk_bytes(), "I/O {at}");
        }
        if y.versions.writable().is_ok() {
            settle(&y);
        }
        check(&y, &model);
    }
}
