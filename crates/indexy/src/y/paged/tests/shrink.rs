//! The file gives free space at its end back, and loses nothing by it.

use super::crash::open_sim;
use super::*;
use crate::{
    storage::sim::{Fault, Sim, sites},
    y::conformance::{Entries, Model, check, del, put, write},
};

const FILE: &str = "/tree/pages";

fn key(i: u32) -> [u8; 4] {
    i.wrapping_mul(0x9e37_79b1).to_be_bytes()
}

fn sorted(mut run: Entries) -> Entries {
    run.sort();
    run
}

fn length(sim: &Sim) -> usize {
    sim.contents()[Path::new(FILE)].len()
}

/// Writes 1500 keys, then removes all but those below `left`, which are written again.
fn play(sim: &Sim, left: u32) -> Result<()> {
    let y = open_sim(sim, 4096)?;
    write(
        &y,
        &sorted((0..1500).map(|i| put(&key(i), &[7; 300])).collect()),
    )?;
    y.make_durable()?;
    y.maintain()?;
    write(&y, &sorted((left..1500).map(|i| del(&key(i))).collect()))?;
    for round in 0..5 {
        y.make_durable()?;
        y.maintain()?;
        if round == 1 {
            // What is left moves to the front.
            write(
                &y,
                &sorted((0..left).map(|i| put(&key(i), &[7; 300])).collect()),
            )?;
        }
    }
    y.make_durable()
}

fn model(left: u32) -> Model {
    (0..left).map(|i| (key(i).to_vec(), vec![7; 300])).collect()
}

#[test]
fn an_emptied_tree_takes_next_to_nothing() {
    let sim = Sim::default();
    play(&sim, 0).unwrap();
    assert!(length(&sim) <= 128 << 10, "{}", length(&sim));
    let y = open_sim(&sim, 4096).unwrap();
    assert!(y.disk_bytes() <= 128 << 10);
    y.verify().unwrap();
    // And it grows again.
    let run: Entries = sorted((0..500).map(|i| put(&key(i), &[7; 300])).collect());
    write(&y, &run).unwrap();
    y.make_durable().unwrap();
    drop(y);
    check(&open_sim(&sim, 4096).unwrap(), &model(500));
}

#[test]
fn a_crash_at_any_io_of_a_cut_loses_nothing() {
    const LEFT: u32 = 40;
    let whole = Sim::default();
    play(&whole, LEFT).unwrap();
    assert!(length(&whole) <= 256 << 10, "{}", length(&whole));
    let (before, after) = (model(1500), model(LEFT));
    for at in sites(whole.ios()) {
        let sim = Sim::default();
        sim.fail_at(at, Fault::PowerLoss, true);
        let _ = play(&sim, LEFT);
        for seed in 0..3 {
            let disk = sim.crash(at * 31 + seed);
            let y = open_sim(&disk, 4096).unwrap();
            let found = crate::y::crashes::content(&y).unwrap();
            let known = found.is_empty() || found == before || found == after;
            assert!(known, "I/O {at}.{seed}: {} entries", found.len());
            assert_eq!(y.verify().unwrap(), found.len() as u64, "I/O {at}.{seed}");
            write(&y, &vec![put(b"more", &[1; 90_000])]).unwrap();
            y.make_durable().unwrap();
            y.maintain().unwrap();
            y.verify().unwrap();
        }
    }
}

/// A sorted load takes pages and writes them under no lock of writers.
#[test]
fn the_file_is_not_cut_while_a_load_is_under_way() {
    let sim = Sim::default();
    let y = open_sim(&sim, 4096).unwrap();
    let all = sorted((0..1500).map(|i| put(&key(i), &[7; 300])).collect());
    write(&y, &all).unwrap();
    y.make_durable().unwrap();
    let none = all.iter().map(|(key, _)| del(key));
    write(&y, &none.collect()).unwrap();
    let rest = || {
        for _ in 0..5 {
            y.make_durable().unwrap();
            y.maintain().unwrap();
        }
    };
    let before = length(&sim);
    let mut load = y.begin_load().unwrap().unwrap();
    rest();
    load.add(b"a", &[1; 9000]).unwrap();
    rest();
    assert!(length(&sim) >= before, "{before}, {}", length(&sim));
    load.add(b"b", &[2; 9000]).unwrap();
    load.seal().unwrap();
    load.publish().unwrap();
    rest();
    assert!(length(&sim) < before, "{before}, {}", length(&sim));
    let model = [
        (b"a".to_vec(), vec![1; 9000]),
        (b"b".to_vec(), vec![2; 9000]),
    ];
    check(&y, &Model::from(model));
}

/// File systems that copy on write need room to cut a file off.
#[test]
fn a_full_device_puts_the_cut_off() {
    for reopens in [false, true] {
        let sim = Sim::default();
        let mut y = open_sim(&sim, 4096).unwrap();
        let all = sorted((0..1500).map(|i| put(&key(i), &[7; 300])).collect());
        write(&y, &all).unwrap();
        y.make_durable().unwrap();
        y.remove_range(&[], None).unwrap();
        for n in 0..4 {
            // The map goes to the front.
            y.make_durable().unwrap();
            write(&y, &vec![put(&key(n), &[7; 300])]).unwrap();
        }
        y.make_durable().unwrap();
        let before = length(&sim);
        sim.fail_at(sim.ios() + 1, Fault::Full, true);
        y.maintain().unwrap();
        assert!(sim.faults() > 0 && length(&sim) == before);
        y.maintain().unwrap();
        sim.heal();
        if reopens {
            y.make_durable().unwrap();
            drop(y);
            y = open_sim(&sim, 4096).unwrap();
        }
        y.maintain().unwrap();
        assert!(length(&sim) < before / 2, "{before}, {}", length(&sim));
        assert_eq!(length(&sim) as u64, y.disk_bytes());
        write(&y, &all).unwrap();
        y.make_durable().unwrap();
        drop(y);
        check(&open_sim(&sim, 4096).unwrap(), &model(1500));
    }
}
