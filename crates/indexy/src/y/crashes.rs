//! Crashes and faults at every I/O of a workload, on the simulated disk, for every disk index that
//! keeps its files through [`Storage`](crate::storage::Storage).

use super::{
    conformance::{Entries, Model, del, loading, put, stretch, write},
    contract::{IndexY, Maintained},
};
use crate::{
    error::{Error, Result},
    storage::sim::{Fault, Sim, sites},
    x::Order,
};
use std::collections::BTreeMap;

/// Runs of the workload.
pub(super) const RUNS: u32 = 6;
/// Steps of maintenance after a run, at most.
const STEPS: usize = 20;
/// The largest value: more than one piece, however it is written or read.
const LARGE: usize = 512 << 10;

/// Run `n` of the script: overwrites, new keys, deletes, long keys, large values and a very large
/// one.
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
        let large = LARGE - 20_000 * n as usize;
        run.insert(b"large".to_vec(), Some(vec![n as u8; large]));
    }
    run.into_iter().collect()
}

/// The keys that are removed at once after run `n`.
fn removed(n: u32) -> (Vec<u8>, Option<Vec<u8>>) {
    let from = 100 + n * 10;
    (
        from.to_be_bytes().to_vec(),
        Some((from + 25).to_be_bytes().to_vec()),
    )
}

fn apply(model: &mut Model, run: &Entries) {
    for (key, value) in run {
        match value {
            Some(value) => model.insert(key.clone(), value.clone()),
            None => model.remove(key),
        };
    }
}

/// What there is after each run, the first of them none.
pub(super) fn states(removes_ranges: bool) -> Vec<Model> {
    let mut model = Model::new();
    let mut states = vec![model.clone()];
    for n in 0..RUNS {
        apply(&mut model, &script(n));
        if removes_ranges {
            let (from, to) = removed(n);
            model.retain(|key, _| *key < from || to.as_ref().is_some_and(|to| key >= to));
        }
        states.push(model.clone());
    }
    states
}

pub(super) fn content(y: &dyn IndexY) -> Result<Model> {
    let entries = y.range(b"", None, Order::Ascending)?;
    entries
        .map(|e| e.map(|(k, v)| (k.to_vec(), v.to_vec())))
        .collect()
}

/// Run `n` and what follows it.
fn step(y: &dyn IndexY, n: u32) -> Result<()> {
    write(y, &script(n))?;
    if y.removes_ranges() {
        let (from, to) = removed(n);
        y.remove_range(&from, to.as_deref())?;
    }
    Ok(())
}

fn maintain(y: &dyn IndexY) -> Result<()> {
    for _ in 0..STEPS {
        if y.maintain()? == Maintained::Idle {
            break;
        }
    }
    Ok(())
}

/// Writes the script, durable after every second run. Returns how many runs were durable for sure,
/// and how many may be: maintenance may make all of them durable.
fn play<Y: IndexY>(sim: &Sim, open: &impl Fn(&Sim) -> Result<Y>) -> (usize, usize) {
    let Ok(y) = open(sim) else {
        return (0, 0);
    };
    let (mut durable, mut tried) = (0, 0);
    for n in 0..RUNS {
        if step(&y, n).is_err() {
            return (durable, tried);
        }
        tried = n as usize + 1;
        if maintain(&y).is_err() {
            return (durable, tried);
        }
        if n % 2 == 1 {
            if y.make_durable().is_err() {
                return (durable, tried);
            }
            durable = tried;
        }
    }
    (durable, tried)
}

/// After a loss of power at any I/O, what is found is what was there after some run from the last
/// durable one on; and life goes on.
pub(super) fn after_a_crash_at_any_io<Y: IndexY>(open: impl Fn(&Sim) -> Result<Y>) {
    let whole = Sim::default();
    assert_eq!(play(&whole, &open), (RUNS as usize, RUNS as usize));
    let states = states(open(&Sim::default()).unwrap().removes_ranges());
    let ios = whole.ios();
    assert!(ios > 40, "{ios}");
    for at in sites(ios) {
        let sim = Sim::default();
        sim.fail_at(at, Fault::PowerLoss, true);
        let (durable, tried) = play(&sim, &open);
        for seed in 0..4 {
            let disk = sim.crash(at * 31 + seed);
            let y = open(&disk).unwrap_or_else(|e| panic!("I/O {at}.{seed}: {e}"));
            let found = content(&y).unwrap_or_else(|e| panic!("I/O {at}.{seed}: {e}"));
            // A run, and the range that is removed after it, are two steps.
            let mut between = states[durable.max(1) - 1..tried]
                .iter()
                .zip(durable.max(1) as u32 - 1..);
            let halfway = between.any(|(before, n)| {
                let mut model = before.clone();
                apply(&mut model, &script(n));
                found == model
            });
            assert!(
                states[durable..=tried].contains(&found) || halfway,
                "I/O {at}.{seed}: not from {durable} to {tried}"
            );
            assert_eq!(y.verify().unwrap(), found.len() as u64, "I/O {at}.{seed}");
            // Over a second crash.
            let mut model = found;
            let more = vec![del(&8u32.to_be_bytes()), put(b"more", &[1; 5000])];
            write(&y, &more).unwrap();
            y.make_durable().unwrap();
            apply(&mut model, &more);
            drop(y);
            let again = content(&open(&disk.crash(seed)).unwrap()).unwrap();
            assert!(again == model, "I/O {at}.{seed}: the second time");
        }
    }
}

/// After a fault at any I/O nothing is half done: what failed is repeated, or the tree is poisoned
/// and reads go on.
pub(super) fn after_a_fault_at_any_io<Y: IndexY>(open: impl Fn(&Sim) -> Result<Y>) {
    let whole = Sim::default();
    play(&whole, &open);
    let faults = [
        Fault::Eio,
        Fault::Full,
        Fault::ShortWrite,
        Fault::ShortFull,
        Fault::FailedSync,
    ];
    for fault in faults {
        Sim::hit_each(whole.ios(), |sim, at| {
            let y = open(sim).unwrap();
            sim.fail_at(at.max(sim.ios() + 1), fault, false);
            go_through(sim, &y, &format!("{fault:?} at {at}"));
        });
    }
}

fn go_through(sim: &Sim, y: &dyn IndexY, what: &str) {
    let mut model = Model::new();
    for n in 0..RUNS {
        let mut outcome = write(y, &script(n));
        if outcome.is_err() {
            sim.heal();
            assert!(content(y).unwrap() == model, "{what}");
            outcome = write(y, &script(n));
        }
        match outcome {
            Ok(()) => apply(&mut model, &script(n)),
            Err(Error::Poisoned { .. }) => break,
            Err(e) => panic!("{what}: {e}"),
        }
        assert!(
            maintain(y).is_ok() || content(y).unwrap() == model,
            "{what}"
        );
        if n % 2 == 1 && y.make_durable().is_err() {
            sim.heal();
            match y.make_durable() {
                Ok(()) | Err(Error::Poisoned { .. }) => {}
                Err(e) => panic!("{what}: {e}"),
            }
        }
    }
    sim.heal();
    assert!(content(y).unwrap() == model, "{what}");
    assert_eq!(y.verify().unwrap(), model.len() as u64, "{what}");
}

// --- loads ------------------------------------------------------------------------------------

/// What is loaded: keys behind those of the script, values of every size.
fn loaded() -> Model {
    stretch(0x3000_0000, 900)
}

/// A run, a load, a run; returns the states that may be found after a crash.
fn load<Y: IndexY>(sim: &Sim, open: &impl Fn(&Sim) -> Result<Y>) -> (Vec<Model>, Result<()>) {
    let mut model = Model::new();
    let mut possible = vec![model.clone()];
    let mut go = || -> Result<()> {
        let y = open(sim)?;
        apply(&mut model, &script(0));
        possible.push(model.clone());
        write(&y, &script(0))?;
        y.make_durable()?;
        possible.remove(0);
        let Some(mut load) = y.begin_load()? else {
            return Ok(());
        };
        for (key, value) in loaded() {
            load.add(&key, &value)?;
        }
        write(&y, &script(0))?;
        maintain(&y)?;
        load.seal()?;
        model.extend(loaded());
        possible.push(model.clone());
        load.publish()?;
        possible.remove(0);
        apply(&mut model, &script(1));
        possible.push(model.clone());
        write(&y, &script(1))?;
        y.make_durable()?;
        possible.remove(0);
        Ok(())
    };
    let played = go();
    (possible, played)
}

/// After a loss of power at any I/O a load is there or not, and there if it was acknowledged.
pub(super) fn i8_a_load_is_whole_after_a_crash<Y: IndexY>(open: impl Fn(&Sim) -> Result<Y>) {
    let whole = Sim::default();
    load(&whole, &open).1.unwrap();
    for at in sites(whole.ios()) {
        let sim = Sim::default();
        sim.fail_at(at, Fault::PowerLoss, true);
        let (possible, _) = load(&sim, &open);
        for seed in 0..4 {
            let disk = sim.crash(at * 31 + seed);
            let y = open(&disk).unwrap_or_else(|e| panic!("I/O {at}.{seed}: {e}"));
            let found = content(&y).unwrap_or_else(|e| panic!("I/O {at}.{seed}: {e}"));
            assert!(possible.contains(&found), "I/O {at}.{seed}");
            assert_eq!(y.verify().unwrap(), found.len() as u64, "I/O {at}.{seed}");
        }
    }
}

/// After a fault at any I/O a load that failed leaves nothing behind once its range was removed,
/// not even space; and another one succeeds, or the tree is poisoned.
pub(super) fn a_load_that_fails_leaves_nothing<Y: IndexY>(open: impl Fn(&Sim) -> Result<Y>) {
    let whole = Sim::default();
    load(&whole, &open).1.unwrap();
    let faults = [Fault::Eio, Fault::Full, Fault::ShortFull, Fault::FailedSync];
    for fault in faults {
        Sim::hit_each(whole.ios(), |sim, at| {
            let what = format!("{fault:?} at {at}");
            let y = open(sim).unwrap();
            let mut model = Model::new();
            write(&y, &script(0)).unwrap();
            apply(&mut model, &script(0));
            y.make_durable().unwrap();
            let entries = loaded();
            let bytes = y.disk_bytes();
            sim.fail_at(at.max(sim.ios() + 1), fault, false);
            let try_it = || -> Result<()> {
                let Some(mut load) = y.begin_load()? else {
                    return Ok(());
                };
                entries.iter().try_for_each(|(k, v)| load.add(k, v))?;
                load.seal()?;
                load.publish()
            };
            let loaded = try_it();
            sim.heal();
            if loaded.is_ok() {
                model.extend(entries.clone());
            } else if y.remove_range(&0x3000_0000u32.to_be_bytes(), None).is_ok() {
                assert_eq!(y.verify().unwrap(), model.len() as u64, "{what}");
                model.retain(|key, _| key[..] < 0x3000_0000u32.to_be_bytes()[..]);
                if y.make_durable().is_ok() {
                    maintain(&y).unwrap();
                    // What a page file has left free is used again.
                    assert!(y.disk_bytes() <= bytes + (1 << 20), "{what}");
                    assert!(content(&y).unwrap() == model, "{what}");
                    let again = loading(&y, &entries).unwrap().publish();
                    again.unwrap_or_else(|e| panic!("{what}: {e}"));
                    model.extend(entries.clone());
                }
            } else {
                return;
            }
            assert!(content(&y).unwrap() == model, "{what}");
            assert_eq!(y.verify().unwrap(), model.len() as u64, "{what}");
        });
    }
}
