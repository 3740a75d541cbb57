//! Leaves that are taken in whole: so many that inner pages come and go, and places that are no
//! leaf's.

use super::*;
use crate::{
    error::Error,
    storage::sim::Sim,
    y::{
        conformance::{Entries, Model, check, del, put, write},
        contract::SortedLoad,
        paged::{tests::crash::open_sim, write::Load},
    },
};

/// More leaves than the path of a run holds at a time.
#[test]
fn many_leaves_are_taken_in() {
    const COUNT: u64 = 1_400_000;
    let sim = Sim::default();
    let y = open_sim(&sim, 4096).unwrap();
    let mut beside = Model::new();
    for round in 0..2u64 {
        let mut load = y.begin_load().unwrap().unwrap();
        for n in 0..COUNT {
            let key = (n + round * 2 * COUNT).to_be_bytes();
            load.add(&key, &n.to_le_bytes()).unwrap();
        }
        load.seal().unwrap();
        load.publish().unwrap();
        let entries = COUNT * (round + 1) + beside.len() as u64;
        assert_eq!(y.verify().unwrap(), entries);
        for n in (0..COUNT).step_by(9973) {
            let found = y.get(&(n + round * 2 * COUNT).to_be_bytes()).unwrap();
            assert_eq!(found.unwrap(), n.to_le_bytes());
        }
        // The second load goes between the first one and these.
        let run: Entries = (0..2000u64)
            .map(|n| put(&(n + 9 * COUNT).to_be_bytes(), &[1]))
            .collect();
        write(&y, &run).unwrap();
        beside.extend(run.into_iter().map(|(k, v)| (k, v.unwrap())));
    }
}

/// Where leaves were emptied their bounds stay; a load over them lies on both sides.
#[test]
fn a_load_over_the_bounds_of_leaves_that_went() {
    let key = |n: u32| n.to_be_bytes().to_vec();
    for (from, to) in [(5000, 15_000), (1, 19_999), (7777, 7900), (0, 20_000)] {
        for long in [0usize, 700] {
            let sim = Sim::default();
            let y = open_sim(&sim, 4096).unwrap();
            let mut model = Model::new();
            let more = |n: u32| if n.is_multiple_of(5) { long } else { 0 };
            let name = |n: u32| [key(n), vec![7; more(n)]].concat();
            let run: Entries = (0..20_000).map(|n| put(&name(n), &[n as u8; 9])).collect();
            write(&y, &run).unwrap();
            model.extend(run.into_iter().map(|(k, v)| (k, v.unwrap())));
            let gone: Entries = (from..to).map(|n| del(&name(n))).collect();
            write(&y, &gone).unwrap();
            gone.iter().for_each(|(key, _)| drop(model.remove(key)));
            let mut load = y.begin_load().unwrap().unwrap();
            for n in from..to {
                let len = if n % 300 == 0 { 6000 } else { 12 };
                load.add(&name(n), &vec![n as u8; len]).unwrap();
                model.insert(name(n), vec![n as u8; len]);
            }
            load.seal().unwrap();
            load.publish().unwrap();
            check(&y, &model);
            // Runs go on over what was taken in.
            let run: Entries = (0..20_000)
                .step_by(3)
                .map(|n| put(&name(n), b"new"))
                .collect();
            write(&y, &run).unwrap();
            model.extend(run.into_iter().map(|(k, v)| (k, v.unwrap())));
            check(&y, &model);
            y.make_durable().unwrap();
            drop(y);
            check(&open_sim(&sim, 4096).unwrap(), &model);
        }
    }
}

/// I7: large values take many pages, and a file with holes gives them one by one.
#[test]
fn a_load_holds_few_bytes_for_a_page() {
    const COUNT: u32 = 20_000;
    let sim = Sim::default();
    let y = open_sim(&sim, 4096).unwrap();
    // Every other page is free, in the front of the file.
    let run = |n: u32| put(&n.to_be_bytes(), &[1; 3000]);
    write(&y, &(0..COUNT).map(run).collect()).unwrap();
    let gone = (0..COUNT).step_by(2).map(|n| del(&n.to_be_bytes()));
    write(&y, &gone.collect()).unwrap();
    y.make_durable().unwrap();
    y.maintain().unwrap();
    let key = |n: u32| [&[1; 500][..], &n.to_be_bytes(), &[2; 400][..]].concat();
    let counted = || y.load_bytes.load(Relaxed);
    for publishes in [false, true] {
        let mut load = Load::begin(&y).unwrap();
        for n in 0..COUNT {
            load.add(&key(n), &[n as u8; 1100]).unwrap();
            let (uncounted, held) = load.held();
            assert!(uncounted < 8, "{uncounted} pages after {n} entries");
            assert_eq!(held, counted());
        }
        load.seal().unwrap();
        // Each entry has two extents; bits, and the numbers of pages of separators.
        let pages = y.space.lock().end() as usize;
        assert!(pages > 2 * COUNT as usize);
        let held = counted();
        assert!((pages / 16..pages * 2).contains(&held), "{held} of {pages}");
        let free = y.space.lock().free_pages();
        if publishes {
            Box::new(load).publish().unwrap();
            assert_eq!(y.get(&key(77)).unwrap().unwrap(), [77; 1100]);
            assert_eq!(y.verify().unwrap(), u64::from(COUNT / 2 + COUNT));
        } else {
            drop(load);
            let freed = y.space.lock().free_pages() - free;
            assert!(freed > 2 * u64::from(COUNT), "{freed}");
        }
        assert_eq!(counted(), 0);
    }
}

/// The system tells one sync of a file of what was lost: those of a load and of a commit do not
/// overlap.
#[test]
fn i5_a_load_is_not_synced_beside_a_commit() {
    let sim = Sim::default();
    let y = open_sim(&sim, 4096).unwrap();
    let mut load = y.begin_load().unwrap().unwrap();
    load.add(b"key", b"value").unwrap();
    let committing = y.committed.lock();
    std::thread::scope(|scope| {
        let sealed = scope.spawn(|| load.seal());
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert!(!sealed.is_finished());
        // What the commit's sync was told of.
        y.poison.set(&"lost");
        drop(committing);
        assert!(matches!(
            sealed.join().unwrap(),
            Err(Error::Poisoned { .. })
        ));
    });
}
