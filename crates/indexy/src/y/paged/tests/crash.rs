//! Crashes and faults at every I/O, on the simulated disk.

use super::*;
use crate::{
    storage::sim::{Fault, Sim},
    y::{
        conformance::{Entries, Model, check, del, put, write},
        crashes::{self, RUNS, content, script, states},
    },
};

const DIR: &str = "/tree";

pub(super) fn open_sim(sim: &Sim, page_bytes: u32) -> Result<PagedY> {
    let storage: Arc<dyn Storage> = Arc::new(sim.clone());
    PagedY::open(
        &storage,
        Path::new(DIR),
        page_bytes,
        &PageCache::new(0),
        1,
        false,
    )
}

fn open_small(sim: &Sim) -> Result<PagedY> {
    open_sim(sim, 4096)
}

#[test]
fn after_a_crash_at_any_io_it_is_a_durable_version() {
    crashes::after_a_crash_at_any_io(open_small);
}

/// A device that is full, or fills up, while ranges go: nothing has changed, no page is lost, and
/// it works when there is room.
#[test]
fn a_removal_that_meets_a_full_device_changes_nothing() {
    let removed = |y: &PagedY| y.remove_range(&50u32.to_be_bytes(), Some(&390u32.to_be_bytes()));
    let ready = |sim: &Sim| {
        let y = open_small(sim).unwrap();
        (0..4).for_each(|n| write(&y, &script(n)).unwrap());
        y.make_durable().unwrap();
        y
    };
    let ios = {
        let sim = Sim::default();
        let y = ready(&sim);
        let before = sim.ios();
        removed(&y).unwrap();
        sim.ios() - before
    };
    assert!(ios > 2, "{ios}");
    let mut struck = 0;
    for (at, fault) in (1..=ios).flat_map(|at| [(at, Fault::Full), (at, Fault::ShortFull)]) {
        let sim = Sim::default();
        let y = ready(&sim);
        let model = content(&y).unwrap();
        let busy = y.space.lock().busy_pages();
        sim.fail_at(sim.ios() + at, fault, true);
        let full = removed(&y);
        sim.heal();
        if full.is_ok() {
            continue;
        }
        struck += 1;
        assert!(matches!(full, Err(Error::OutOfSpace { .. })), "{full:?}");
        check(&y, &model);
        assert_eq!(y.space.lock().busy_pages(), busy, "I/O {at}");
        removed(&y).unwrap();
        y.make_durable().unwrap();
        let range = 50u32.to_be_bytes().to_vec()..390u32.to_be_bytes().to_vec();
        let model: Model = model
            .into_iter()
            .filter(|(key, _)| !range.contains(key))
            .collect();
        check(&y, &model);
        drop(y);
        check(&open_small(&sim).unwrap(), &model);
    }
    assert!(struck > 0);
}

#[test]
fn i8_a_load_is_whole_after_a_crash() {
    crashes::i8_a_load_is_whole_after_a_crash(open_small);
}

#[test]
fn a_load_that_fails_leaves_nothing() {
    crashes::a_load_that_fails_leaves_nothing(open_small);
}

#[test]
fn i4_after_a_fault_at_any_io_nothing_is_half_done() {
    crashes::after_a_fault_at_any_io(open_small);
}

#[test]
fn a_failed_sync_is_not_tried_again() {
    let sim = Sim::default();
    let y = open_sim(&sim, 4096).unwrap();
    write(&y, &script(0)).unwrap();
    sim.fail_at(sim.ios() + 1, Fault::FailedSync, false);
    assert!(matches!(y.make_durable(), Err(Error::Poisoned { .. })));
    sim.heal();
    assert!(matches!(y.make_durable(), Err(Error::Poisoned { .. })));
    assert!(write(&y, &script(1)).is_err());
    assert!(content(&y).unwrap() == states(false)[1], "reads go on");
}

/// A sync fails in a process that ends, and what it left in memory counts as written. The next one
/// goes on from there, and the power fails at any I/O: what is found then is whole.
#[test]
fn i6_what_a_failed_sync_left_is_not_built_on() {
    let ready = || {
        let sim = Sim::default();
        let y = open_small(&sim).unwrap();
        for n in 0..3 {
            y.make_durable().unwrap();
            write(&y, &script(n)).unwrap();
        }
        (sim, y)
    };
    let ios = {
        let (sim, y) = ready();
        let before = sim.ios();
        y.make_durable().unwrap();
        sim.ios() - before
    };
    // A commit ends with a sync, the first copy, a sync, and the second copy.
    for failed in [ios - 3, ios - 1] {
        for at in 1.. {
            let (sim, y) = ready();
            sim.fail_at(sim.ios() + failed, Fault::FailedSync, false);
            assert!(matches!(y.make_durable(), Err(Error::Poisoned { .. })));
            assert_eq!(sim.faults(), 1);
            drop(y);
            sim.heal();
            let mut right = states(false)[2..=3].to_vec();
            sim.fail_at(sim.ios() + at, Fault::PowerLoss, true);
            let done = go_on(&sim, &mut right).is_ok();
            for seed in 0..16 {
                let name = format!("sync {failed}, I/O {at}.{seed}");
                let y = open_small(&sim.crash(seed)).unwrap_or_else(|e| panic!("{name}: {e}"));
                y.verify().unwrap_or_else(|e| panic!("{name}: {e}"));
                assert!(right.contains(&content(&y).unwrap()), "{name}");
            }
            if done {
                break;
            }
        }
    }
}

/// A life of the next process. Adds to `right` what a crash may leave of it.
fn go_on(sim: &Sim, right: &mut Vec<Model>) -> Result<()> {
    let y = open_small(sim)?;
    write(&y, &script(3))?;
    right.push(content(&y)?);
    y.make_durable()?;
    write(&y, &script(4))
}

/// Space is reused: the file does not grow with the number of runs.
#[test]
fn free_pages_are_reused() {
    let sim = Sim::default();
    let y = open_sim(&sim, 4096).unwrap();
    let mut grown = 0;
    for round in 0..60 {
        write(&y, &script(round % RUNS)).unwrap();
        y.make_durable().unwrap();
        if round == 12 {
            grown = y.disk_bytes();
        }
    }
    assert!(y.disk_bytes() <= 2 * grown, "{grown} {}", y.disk_bytes());
    let everything: Entries = content(&y).unwrap().keys().map(|k| del(k)).collect();
    write(&y, &everything).unwrap();
    y.make_durable().unwrap();
    check(&y, &Model::new());
    assert!(y.is_empty().unwrap());
    // The map's part and its list are left.
    assert_eq!(y.space.lock().busy_pages(), 2);
}

/// Whatever is called on a tree that gave its files away, and its drop, leave them alone.
#[test]
fn a_released_tree_writes_nothing() {
    let sim = Sim::default();
    let y = open_sim(&sim, 4096).unwrap();
    write(&y, &vec![put(b"a", b"1")]).unwrap();
    assert!(y.release_files());
    let before = sim.contents();
    assert!(matches!(
        write(&y, &vec![put(b"a", b"2")]),
        Err(Error::Closed)
    ));
    assert!(matches!(y.make_durable(), Err(Error::Closed)));
    assert!(y.release_files());
    drop(y);
    assert!(sim.contents() == before);
    let next = open_sim(&sim, 4096).unwrap();
    assert_eq!(next.get(b"a").unwrap().unwrap(), *b"1");
}
