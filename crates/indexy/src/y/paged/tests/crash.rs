//! Crashes and faults at every I/O, on the simulated disk.

use super::*;
use crate::y::paged::file::extent;
use crate::{
    storage::sim::{Fault, Sim},
    y::conformance::{Entries, Model, check, del, put, write},
};
use std::collections::BTreeMap;

const DIR: &str = "/tree";
const RUNS: u32 = 6;

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

/// Run `n` of the script: overwrites, new keys, deletes, long keys and large values.
pub(super) fn script(n: u32) -> Entries {
    let mut run = BTreeMap::new();
    for i in 0..120u32 {
        let key = (i * 7 + n * 13) % 400;
        let value = vec![n as u8; if i % 40 == 0 { 6000 } else { 60 }];
        run.insert(key.to_be_bytes().to_vec(), Some(value));
    }
    for i in (0..400u32).skip(n as usize).step_by(9) {
        run.insert(i.to_be_bytes().to_vec(), None);
    }
    run.insert(vec![9; 700 + n as usize % 3], Some(vec![n as u8; 10]));
    if n >= 4 {
        // An extent that is written piece by piece.
        let large = 2 * extent::READ_BYTES - 20_000 * n as usize;
        run.insert(b"large".to_vec(), Some(vec![n as u8; large]));
    }
    run.into_iter().collect()
}

fn apply(model: &mut Model, run: &Entries) {
    for (key, value) in run {
        match value {
            Some(value) => model.insert(key.clone(), value.clone()),
            None => model.remove(key),
        };
    }
}

fn models() -> Vec<Model> {
    let mut model = Model::new();
    let mut states = vec![model.clone()];
    for n in 0..RUNS {
        apply(&mut model, &script(n));
        states.push(model.clone());
    }
    states
}

pub(super) fn content(y: &PagedY) -> Result<Model> {
    let entries = y.range(b"", None, Order::Ascending)?;
    entries
        .map(|e| e.map(|(k, v)| (k.to_vec(), v.to_vec())))
        .collect()
}

/// Writes the script, durable after every second run. Returns how many runs were durable for sure,
/// and how many may be.
fn play(sim: &Sim) -> (usize, usize) {
    let Ok(y) = open_sim(sim, 4096) else {
        return (0, 0);
    };
    let (mut durable, mut tried) = (0, 0);
    for n in 0..RUNS {
        if write(&y, &script(n)).is_err() {
            return (durable, tried);
        }
        if n % 2 == 1 {
            tried = n as usize + 1;
            if y.make_durable().is_err() {
                return (durable, tried);
            }
            durable = tried;
        }
    }
    (durable, tried)
}

#[test]
fn after_a_crash_at_any_io_it_is_a_durable_version() {
    let states = models();
    let whole = Sim::default();
    assert_eq!(play(&whole), (RUNS as usize, RUNS as usize));
    let ios = whole.ios();
    assert!(ios > 40, "{ios}");
    for at in 1..=ios {
        let sim = Sim::default();
        sim.fail_at(at, Fault::PowerLoss, true);
        let (durable, tried) = play(&sim);
        for seed in 0..4 {
            let disk = sim.crash(at * 31 + seed);
            let y = open_sim(&disk, 4096).unwrap_or_else(|e| panic!("I/O {at}.{seed}: {e}"));
            let found = content(&y).unwrap_or_else(|e| panic!("I/O {at}.{seed}: {e}"));
            assert!(
                found == states[durable] || found == states[tried],
                "I/O {at}.{seed}: neither {durable} nor {tried}"
            );
            assert_eq!(y.verify().unwrap(), found.len() as u64, "I/O {at}.{seed}");
            // Life goes on, over a second crash.
            let mut model = found;
            let more = vec![del(&8u32.to_be_bytes()), put(b"more", &[1; 5000])];
            write(&y, &more).unwrap();
            y.make_durable().unwrap();
            apply(&mut model, &more);
            let before = y.committed.lock().superblock.generation;
            drop(y);
            let y = open_sim(&disk.crash(seed), 4096).unwrap();
            let again = content(&y).unwrap();
            let generation = y.committed.lock().superblock.generation;
            assert!(
                again == model,
                "I/O {at}.{seed}: {} entries of {} at generation {generation}, before {before}",
                again.len(),
                model.len()
            );
        }
    }
}

#[test]
fn i4_after_a_fault_at_any_io_nothing_is_half_done() {
    let states = models();
    let whole = Sim::default();
    play(&whole);
    for fault in [
        Fault::Eio,
        Fault::Full,
        Fault::ShortWrite,
        Fault::ShortFull,
        Fault::FailedSync,
    ] {
        for at in 1..=whole.ios() {
            let sim = Sim::default();
            let Ok(y) = open_sim(&sim, 4096) else {
                panic!("no fault yet")
            };
            sim.fail_at(at.max(sim.ios() + 1), fault, false);
            let mut written = 0;
            for n in 0..RUNS {
                let mut outcome = write(&y, &script(n));
                if outcome.is_err() {
                    sim.heal();
                    assert!(content(&y).unwrap() == states[written], "{fault:?} at {at}");
                    outcome = write(&y, &script(n));
                }
                match outcome {
                    Ok(()) => written = n as usize + 1,
                    Err(Error::Poisoned { .. }) => break,
                    Err(e) => panic!("{fault:?} at {at}: {e}"),
                }
                if n % 2 == 1 && y.make_durable().is_err() {
                    sim.heal();
                    match y.make_durable() {
                        Ok(()) | Err(Error::Poisoned { .. }) => {}
                        Err(e) => panic!("{fault:?} at {at}: {e}"),
                    }
                }
            }
            sim.heal();
            assert!(content(&y).unwrap() == states[written], "{fault:?} at {at}");
            assert_eq!(y.verify().unwrap(), states[written].len() as u64);
        }
    }
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
    assert!(content(&y).unwrap() == models()[1], "reads go on");
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
