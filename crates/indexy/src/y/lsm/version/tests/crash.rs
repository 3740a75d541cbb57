//! Power loss and faults at every I/O.

use super::{disk::*, *};
use crate::storage::sim::{Fault, Sim, sites};

const STEPS: usize = 24;

/// Makes the steps of the script, durable after every second one, and closes. Returns how many
/// steps were durable for sure, and how many may be.
fn play(sim: &Sim) -> (usize, usize) {
    let Ok(versions) = open(sim) else {
        return (0, 0);
    };
    let (mut durable, mut tried) = (0, 0);
    for n in 0..STEPS {
        if step(sim, &versions, n).is_err() {
            return (durable, tried);
        }
        if n % 2 == 1 {
            tried = n + 1;
            if versions.commit().is_err() {
                return (durable, tried);
            }
            durable = tried;
        }
    }
    // The close says so in a record of its own.
    versions.current().partitions()[0].reads().waste(100);
    let _ = versions.close();
    (durable, tried)
}

#[test]
fn l1_after_a_crash_at_any_io_it_is_a_durable_version() {
    let states = states(STEPS);
    let whole = Sim::default();
    assert_eq!(play(&whole), (STEPS, STEPS));
    let ios = whole.ios();
    assert!(ios > 150, "{ios}");
    let log = &whole.contents()[&Path::new(DIR).join("versions")];
    assert!(log[40] > 1, "it was never rewritten");
    let (mut old, mut new) = (0, 0);
    for at in sites(ios) {
        let sim = Sim::default();
        sim.fail_at(at, Fault::PowerLoss, true);
        let (durable, tried) = play(&sim);
        for seed in 0..6 {
            let disk = sim.crash(at * 31 + seed);
            let name = format!("I/O {at}.{seed}");
            match open_as(&disk, OWNER, true) {
                // What the crash tore is no damage.
                Ok(reader) => reader.verify().unwrap_or_else(|e| panic!("{name}: {e}")),
                Err(Error::NoDatabase { .. }) => {}
                Err(e) => panic!("{name}: {e}"),
            }
            let versions = open(&disk).unwrap_or_else(|e| panic!("{name}: {e}"));
            let found = content(&versions.current());
            assert!(
                found == states[durable] || found == states[tried],
                "{name}: neither {durable} nor {tried}"
            );
            if states[durable] != states[tried] {
                old += usize::from(found == states[durable]);
                new += usize::from(found == states[tried]);
            }
            versions.verify().unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(files(&disk), listed(&versions), "{name}: orphans");
            second_life(&disk, versions, found, seed, &name);
        }
    }
    println!("{ios} I/Os, {old} times the old version, {new} times the new one");
    assert!(old > 30 && new > 3, "{old} {new}");
}

/// A sync that failed left a superblock in the system's memory alone, where the next process finds
/// it: that one writes it again before it writes over the other one.
#[test]
fn a_superblock_that_no_sync_has_reached_is_written_again() {
    let log = |sim: &Sim| sim.contents()[&Path::new(DIR).join("versions")].clone();
    for steps in 1..5 {
        let sim = Sim::default();
        let versions = open(&sim).unwrap();
        for n in 0..steps {
            step(&sim, &versions, n).unwrap();
            versions.commit().unwrap();
        }
        let before = log(&sim);
        versions.update(|v| Some(v.cut(b"150")));
        sim.fail_at(sim.ios() + 1, Fault::FailedSync, true);
        assert!(matches!(versions.commit(), Err(Error::Poisoned { .. })));
        sim.heal();
        drop(versions);
        let written = log(&sim);
        let places = [0..4096, 8192..8192 + 4096];
        let changed = places
            .into_iter()
            .find(|place| before[place.clone()] != written[place.clone()]);
        let place = changed.unwrap();
        let versions = open(&sim).unwrap();
        for seed in 0..40 {
            let found = &log(&sim.crash(seed))[place.clone()];
            assert!(*found != before[place.clone()], "{steps}.{seed}");
        }
        step(&sim, &versions, steps).unwrap();
        versions.commit().unwrap();
        for seed in 0..40 {
            let reader = open_as(&sim.crash(seed), OWNER, true).unwrap();
            let verified = reader.verify();
            verified.unwrap_or_else(|e| panic!("{steps}.{seed}: {e}"));
        }
    }
}

/// So does a superblock of a close, or one that was to mend a damaged place, whose sync failed; and
/// there is a whole one at any time.
#[test]
fn a_superblock_that_only_memory_has_is_not_the_only_one() {
    let places = [None, Some(0), Some(8192)];
    for (commits, damaged) in [4, 5]
        .into_iter()
        .flat_map(|n| places.map(|place| (n, place)))
    {
        for at in 1.. {
            let sim = left_in_memory(commits, damaged);
            let versions = open(&sim).unwrap();
            let mut right = vec![content(&versions.current())];
            sim.fail_at(sim.ios() + at, Fault::PowerLoss, true);
            let done = (commits..commits + 3).all(|n| {
                step(&sim, &versions, n).is_ok() && {
                    right.push(content(&versions.current()));
                    versions.commit().is_ok()
                }
            });
            for seed in 0..40 {
                let name = format!("{commits} {damaged:?}, I/O {at}.{seed}");
                let found = open(&sim.crash(seed)).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert!(right.contains(&content(&found.current())), "{name}");
                found.verify().unwrap_or_else(|e| panic!("{name}: {e}"));
            }
            if done {
                break;
            }
        }
    }
}

/// A log whose last sync has failed: that of a close, or of an open that found the place `damaged`.
fn left_in_memory(commits: usize, damaged: Option<usize>) -> Sim {
    let sim = Sim::default();
    let versions = open(&sim).unwrap();
    for n in 0..commits {
        step(&sim, &versions, n).unwrap();
        versions.commit().unwrap();
    }
    match damaged {
        None => {
            sim.fail_at(sim.ios() + 1, Fault::FailedSync, false);
            assert!(matches!(versions.close(), Err(Error::Poisoned { .. })));
        }
        Some(place) => {
            versions.close().unwrap();
            let path = Path::new(DIR).join("versions");
            let mut bytes = sim.contents()[&path].clone();
            bytes[place] ^= 1;
            sim.tamper(&path, bytes);
            // An open syncs the folder first.
            sim.fail_at(sim.ios() + 3, Fault::FailedSync, false);
            assert!(open(&sim).is_err());
        }
    }
    assert_eq!(sim.faults(), 1);
    sim.heal();
    sim
}

/// Life goes on, over a second crash, at the end or at some I/O before.
fn second_life(disk: &Sim, versions: Sims, mut model: Model, seed: u64, name: &str) {
    let run: Entries = [(b"000".to_vec(), None), (b"more".to_vec(), Some(vec![1]))].into();
    let before = model.clone();
    apply(&mut model, &run);
    if seed % 2 == 1 {
        disk.fail_at(disk.ios() + 1 + seed * 2, Fault::PowerLoss, true);
    }
    let stored = store(disk, &versions, &run);
    let written = stored.and_then(|table| {
        versions.update(|v| Some(v.with_run(&[table])));
        versions.commit()
    });
    drop(versions);
    let after = disk.crash(seed);
    let versions = open(&after).unwrap_or_else(|e| panic!("{name}, again: {e}"));
    let again = content(&versions.current());
    assert!(
        again == model || (written.is_err() && again == before),
        "{name}, again"
    );
    assert_eq!(files(&after), listed(&versions), "{name}, again: orphans");
}

/// A process dies at any I/O, and the system lives on: what the next process finds, and adds to, is
/// there after a loss of power.
#[test]
fn l1_what_a_dead_process_has_left_is_durable_before_files_go() {
    let whole = Sim::default();
    play(&whole);
    for at in 1..=whole.ios() {
        let sim = Sim::default();
        sim.fail_at(at, Fault::PowerLoss, true);
        play(&sim);
        sim.heal();
        let versions = open(&sim).unwrap();
        let mut model = content(&versions.current());
        let run: Entries = [(b"more".to_vec(), Some(vec![1]))].into();
        apply(&mut model, &run);
        let table = store(&sim, &versions, &run).unwrap();
        versions.update(|v| Some(v.with_run(&[table])));
        versions.commit().unwrap();
        for seed in 0..6 {
            let disk = sim.crash(at * 31 + seed);
            let found = open(&disk).unwrap_or_else(|e| panic!("I/O {at}.{seed}: {e}"));
            assert!(content(&found.current()) == model, "I/O {at}.{seed}");
        }
    }
}

/// What is left after a fault goes on as if nothing had been, unless a sync failed.
#[test]
fn after_a_fault_at_any_io_nothing_is_lost_and_no_space_either() {
    let states = states(STEPS);
    let whole = Sim::default();
    play(&whole);
    let faults = [
        Fault::Eio,
        Fault::Full,
        Fault::ShortWrite,
        Fault::ShortFull,
        Fault::FailedSync,
        Fault::NoDescriptors,
    ];
    for fault in faults {
        let mut poisoned = 0;
        Sim::hit_each(whole.ios(), |sim, at| {
            let name = format!("{fault:?} at {at}");
            let versions = open(sim).unwrap();
            sim.fail_at(at.max(sim.ios() + 1), fault, false);
            let mut dead = false;
            for n in 0..STEPS {
                if step(sim, &versions, n).is_err() {
                    sim.heal();
                    step(sim, &versions, n).unwrap();
                }
                if n % 2 == 1 && versions.commit().is_err() {
                    sim.heal();
                    match versions.commit() {
                        Ok(()) => {}
                        Err(Error::Poisoned { .. }) => dead = true,
                        Err(e) => panic!("{name}: {e}"),
                    }
                }
                let bytes = (versions.disk_bytes(), versions.counted_bytes());
                assert_eq!(bytes.0, bytes.1, "{name}: step {n}");
                if dead {
                    break;
                }
                let now = content(&versions.current());
                assert!(now == states[n + 1], "{name}: step {n}");
            }
            sim.heal();
            poisoned += usize::from(dead);
            if dead {
                // Whatever is there now is a version that was to be durable.
                let found = content(&open(&sim.crash(at)).unwrap().current());
                assert!(states.contains(&found), "{name}");
                return;
            }
            assert!(versions.release().unwrap(), "{name}");
            assert_eq!(files(sim), listed(&versions), "{name}: space was lost");
            drop(versions);
            let versions = open(&sim.crash(at)).unwrap();
            assert!(content(&versions.current()) == states[STEPS], "{name}");
        });
        let syncs = matches!(fault, Fault::FailedSync | Fault::Eio | Fault::ShortWrite);
        assert_eq!(poisoned > 0, syncs, "{fault:?}: {poisoned}");
    }
}

/// A device that stays full: the old version is durable, and all space is given back.
#[test]
fn a_full_device_gives_back_what_was_not_committed() {
    let sim = Sim::default();
    let versions = open(&sim).unwrap();
    for n in 0..3 {
        step(&sim, &versions, n).unwrap();
    }
    versions.commit().unwrap();
    let before = content(&versions.current());
    let run = store(&sim, &versions, &[(b"a".to_vec(), None)].into()).unwrap();
    let bytes = |sim: &Sim| sim.contents().values().map(Vec::len).sum::<usize>();
    let log = |sim: &Sim| sim.contents()[&Path::new(DIR).join("versions")].len();
    let (all, log_bytes) = (bytes(&sim), log(&sim));
    sim.fail_at(sim.ios() + 1, Fault::ShortFull, true);
    versions.update(|v| Some(v.with_run(std::slice::from_ref(&run))));
    assert!(matches!(versions.commit(), Err(Error::OutOfSpace { .. })));
    sim.heal();
    versions.verify().unwrap();
    assert!(log(&sim) <= log_bytes + 48_000 && bytes(&sim) <= all + 48_000);
    let crashed = open(&sim.crash(3)).unwrap();
    let found = content(&crashed.current());
    assert!(found == before || found == content(&versions.current()));
    versions.commit().unwrap();
    assert!(open(&sim.crash(4)).unwrap().verify().is_ok());
}

/// The log is written anew now and then, and stays small.
#[test]
fn the_log_does_not_grow_with_the_number_of_commits() {
    let sim = Sim::default();
    let mut versions = open(&sim).unwrap();
    let mut most = 0;
    for n in 0..120 {
        step(&sim, &versions, n % STEPS).unwrap();
        versions.commit().unwrap();
        versions.verify().unwrap();
        most = most.max(sim.contents()[&Path::new(DIR).join("versions")].len());
        let all: usize = sim.contents().values().map(Vec::len).sum();
        assert_eq!(versions.disk_bytes(), all as u64, "commit {n}");
        if n % 17 == 0 {
            let before = content(&versions.current());
            drop(versions);
            versions = open(&sim).unwrap();
            assert!(content(&versions.current()) == before);
        }
    }
    assert!(most < 6 << 20, "{most}");
}
