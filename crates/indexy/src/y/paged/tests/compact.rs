//! Compaction gives the holes of the file back, and loses nothing by it.

use super::crash::open_sim;
use super::*;
use crate::{
    storage::sim::{Fault, Sim},
    y::{
        conformance::{Entries, Model, check, del, put, write, write_both},
        contract::Maintained,
        paged::{
            file::{bits::Bits, space::Space},
            write::Output,
        },
    },
};
use std::sync::atomic::AtomicBool;

const FILE: &str = "/tree/pages";

fn length(sim: &Sim) -> usize {
    sim.contents()[Path::new(FILE)].len()
}

fn key(i: u32) -> [u8; 4] {
    i.wrapping_mul(0x9e37_79b1).to_be_bytes()
}

/// Most values lie in leaves, some in extents, of one piece or of several; some keys, too.
fn entry(i: u32, n: u8) -> (Vec<u8>, Option<Vec<u8>>) {
    let len = match i % 97 {
        0 => 9000 + i as usize,
        1 if i < 200 => 700_000,
        _ => 60 + i as usize % 200,
    };
    let mut key = key(i).to_vec();
    if i % 50 == 7 {
        key.resize(2500, 1);
    }
    (key, Some(vec![n; len]))
}

fn run(keys: impl Iterator<Item = u32>, n: u8) -> Entries {
    let mut run: Entries = keys.map(|i| entry(i, n)).collect();
    run.sort();
    run
}

/// The keys, in runs that go over all of them.
fn load(y: &PagedY, model: &mut Model, keys: u32, n: u8) {
    for part in 0..6 {
        write_both(y, model, &run((part..keys).step_by(6), n));
        y.make_durable().unwrap();
        y.maintain().unwrap();
    }
}

fn compact(y: &PagedY) -> Result<u32> {
    for step in 0..1000 {
        if y.compact(b"", None)? == Maintained::Idle {
            return Ok(step);
        }
    }
    panic!("it does not end");
}

#[test]
fn what_is_loaded_twice_takes_the_place_of_one_load() {
    for page_bytes in [4096, 16384] {
        let sim = Sim::default();
        let y = open_sim(&sim, page_bytes).unwrap();
        let mut model = Model::new();
        load(&y, &mut model, 6000, 1);
        let once = length(&sim);
        load(&y, &mut model, 6000, 2);
        let twice = length(&sim);
        compact(&y).unwrap();
        let after = length(&sim);
        println!("pages of {page_bytes}: {once} once, {twice} twice, {after} compacted");
        assert!(after * 10 <= once * 11, "{once}, {twice}, {after}");
        assert_eq!(y.disk_bytes(), after as u64);
        check(&y, &model);
        assert_eq!(compact(&y).unwrap(), 0, "nothing is left to do");
        assert_eq!(length(&sim), after);
        // Half of all leaves.
        let half: Entries = run((0..6000).filter(|i| i / 2 % 2 == 0), 0)
            .into_iter()
            .map(|(key, _)| del(&key))
            .collect();
        write_both(&y, &mut model, &half);
        compact(&y).unwrap();
        let left = length(&sim);
        println!("pages of {page_bytes}: {left} with half of the keys");
        assert!(left * 100 <= after * 75, "{after}, {left}");
        check(&y, &model);
        drop(y);
        let y = open_sim(&sim, page_bytes).unwrap();
        check(&y, &model);
        y.remove_range(b"", None).unwrap();
        compact(&y).unwrap();
        assert!(length(&sim) <= 256 << 10, "{} for nothing", length(&sim));
        load(&y, &mut Model::new(), 500, 3);
    }
}

/// Runs and readers between the steps, and a reader that stays.
#[test]
fn i9_what_is_read_and_written_between_two_steps_stays() {
    let sim = Sim::default();
    let y = open_sim(&sim, 4096).unwrap();
    let mut model = Model::new();
    load(&y, &mut model, 8000, 1);
    load(&y, &mut model, 8000, 2);
    let before = length(&sim);
    let mut open = y.range(b"", None, Order::Ascending).unwrap();
    let first = open.next().unwrap().unwrap().0;
    let mut round = 0;
    for steps in 0.. {
        assert!(steps < 2000, "it does not end");
        let step = y.compact(b"", None).unwrap();
        if round < 40 {
            round += 1;
            let keys = (round * 31..8000).step_by(397);
            write_both(&y, &mut model, &run(keys, round as u8));
        } else if step == Maintained::Idle {
            break;
        }
    }
    check(&y, &model);
    let rest = open.map(|entry| entry.unwrap().0.to_vec());
    let all: Vec<Vec<u8>> = std::iter::once(first.to_vec()).chain(rest).collect();
    assert!(
        all.iter().eq(model.keys()),
        "keys that were there all the time"
    );
    compact(&y).unwrap();
    // The reader is gone, and with it what only it kept.
    assert!(length(&sim) < before, "{before}, {}", length(&sim));
    y.verify().unwrap();
}

const SMALL: u32 = 240;

/// A tree of which most of the file is free, and what is not lies at the end.
fn prepare(sim: &Sim) -> Result<(PagedY, Model)> {
    let y = open_sim(sim, 4096)?;
    let mut model = Model::new();
    let some = |keys: std::ops::Range<u32>| run(keys.filter(|i| i % 97 != 1), 1);
    write_both(&y, &mut model, &some(SMALL..2 * SMALL));
    y.make_durable()?;
    let mut more = some(0..SMALL);
    more.push(put(&[255; 5], &[3; 300_000]));
    write_both(&y, &mut model, &more);
    y.make_durable()?;
    let gone = some(SMALL..2 * SMALL).into_iter().map(|(key, _)| del(&key));
    write_both(&y, &mut model, &gone.collect());
    y.make_durable()?;
    Ok((y, model))
}

/// I/Os of the compaction of what was prepared.
fn ios() -> std::ops::RangeInclusive<u64> {
    let sim = Sim::default();
    let (y, _) = prepare(&sim).unwrap();
    let (from, before) = (sim.ios(), length(&sim));
    assert!(compact(&y).unwrap() > 0);
    let after = length(&sim);
    println!("{before} bytes, {after} compacted");
    assert!(after * 4 < before * 3, "{before}, {after}");
    from + 1..=sim.ios()
}

#[test]
fn i4_a_crash_at_any_io_of_a_compaction_loses_nothing() {
    for at in ios() {
        let sim = Sim::default();
        let (y, model) = prepare(&sim).unwrap();
        sim.fail_at(at, Fault::PowerLoss, true);
        let _ = compact(&y);
        for seed in 0..4 {
            let disk = sim.crash(at * 31 + seed);
            let y = open_sim(&disk, 4096).unwrap();
            check(&y, &model);
            assert_eq!(y.verify().unwrap(), model.len() as u64, "I/O {at}.{seed}");
            // And life goes on.
            compact(&y).unwrap();
            write(&y, &vec![put(b"more", &[1; 90_000])]).unwrap();
            y.make_durable().unwrap();
            y.verify().unwrap();
        }
    }
}

#[test]
fn a_fault_in_a_compaction_leaves_what_there_was() {
    for fault in [Fault::Full, Fault::ShortFull, Fault::Eio, Fault::FailedSync] {
        for at in ios() {
            let sim = Sim::default();
            let (y, model) = prepare(&sim).unwrap();
            sim.fail_at(at, fault, true);
            let failed = compact(&y);
            sim.heal();
            check(&y, &model);
            if failed.is_err() && y.writable().is_ok() {
                compact(&y).unwrap();
                check(&y, &model);
            }
            drop(y);
            check(&open_sim(&sim, 4096).unwrap(), &model);
        }
    }
}

/// A commit between the two reads of an extent that moves.
#[test]
fn i4_extents_move_beside_commits() {
    const EXTENTS: u32 = 48;
    let sim = Sim::default();
    let y = open_sim(&sim, 4096).unwrap();
    let mut model = Model::new();
    let all = |n: u8| -> Entries {
        let values = (0..EXTENTS).map(|i| put(&i.to_be_bytes(), &vec![n; 300_000]));
        values.collect()
    };
    for n in 1..3 {
        write_both(&y, &mut model, &all(n));
        y.make_durable().unwrap();
    }
    let before = length(&sim);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (y, done) = (&y, &done);
        let commits = scope.spawn(move || {
            let mut commits = 0u32;
            while commits < 3 || !done.load(Relaxed) {
                // A version that was published before the step began is made durable beside it.
                y.space.lock().changed = true;
                y.make_durable().unwrap();
                commits += 1;
            }
            commits
        });
        // Between two steps a run comes.
        let ended = (0..60u32).try_for_each(|round| {
            y.compact(b"", None)?;
            let run = vec![put(&[255; 5], &round.to_le_bytes())];
            write(y, &run)
        });
        done.store(true, Relaxed);
        ended.unwrap();
        assert!(commits.join().unwrap() >= 3);
        model.insert(vec![255; 5], 59u32.to_le_bytes().to_vec());
    });
    compact(&y).unwrap();
    assert!(length(&sim) * 3 < before * 2, "{before}, {}", length(&sim));
    assert_eq!(y.verify().unwrap(), model.len() as u64);
    check(&y, &model);
    drop(y);
    check(&open_sim(&sim, 4096).unwrap(), &model);
}

/// A step ends within a leaf whose values are large, and the next one goes on behind that.
#[test]
fn a_step_moves_so_much_of_one_leaf_and_no_more() {
    const VALUES: u32 = 64;
    let sim = Sim::default();
    let y = open_sim(&sim, 4096).unwrap();
    let mut model = Model::new();
    for n in 1..3 {
        let values = (0..VALUES).map(|i| put(&i.to_be_bytes(), &vec![n; 1 << 20]));
        write_both(&y, &mut model, &values.collect());
        y.make_durable().unwrap();
        y.maintain().unwrap();
    }
    let before = length(&sim);
    let (first, mut most) = (sim.ios(), 0);
    loop {
        let begin = sim.ios();
        let step = y.compact(b"", None).unwrap();
        most = most.max(sim.ios() - begin);
        if step == Maintained::Idle {
            break;
        }
    }
    let all = sim.ios() - first;
    println!(
        "{before} bytes, {}; {all} I/Os, {most} in a step",
        length(&sim)
    );
    assert!(most * 4 < all, "{most} of {all} in one step");
    assert!(length(&sim) * 10 < before * 6);
    check(&y, &model);
    assert_eq!(y.verify().unwrap(), model.len() as u64);
}

/// Maintenance does not wait for a step of compaction that somebody else has under way.
#[test]
fn maintenance_does_not_wait_for_a_compaction() {
    let sim = Sim::default();
    let y = open_sim(&sim, 4096).unwrap();
    let _step = y.maintaining.lock();
    let (told, done) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| told.send(y.maintain().unwrap()));
        let idle = done.recv_timeout(std::time::Duration::from_secs(20));
        // The scope ends, whatever it was.
        drop(_step);
        assert_eq!(idle, Ok(Maintained::Idle));
    });
}

/// What searches remember changes nothing that they find.
#[test]
fn free_runs_are_found_as_by_a_search_from_the_beginning() {
    const PAGES: u64 = 600;
    let mut random = 7u64;
    let mut below = |limit: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % limit
    };
    for _ in 0..200 {
        let mut busy: Vec<bool> = (0..PAGES).map(|_| below(3) > 0).collect();
        let mut used = Bits::default();
        let pages = (8..PAGES).filter(|page| busy[*page as usize]);
        for page in pages {
            used.set(page, true);
        }
        busy[..8].fill(true);
        busy.push(true);
        used.set(PAGES, true);
        let mut space = Space::new(8, PAGES + 1, used, &[]);
        for _ in 0..120 {
            let (count, end) = (1 + below(9), 9 + below(PAGES - 9));
            let free = |first: &u64| (*first..first + count).all(|page| !busy[page as usize]);
            let wanted = (8..=end.saturating_sub(count)).find(free);
            assert_eq!(space.allocate_run_below(count, end), wanted);
            if let Some(first) = wanted {
                busy[first as usize..(first + count) as usize].fill(true);
            }
            // Those that no version has can be given back.
            if below(20) == 0
                && let Some(first) = wanted
            {
                space.free(first..first + count);
                busy[first as usize..(first + count) as usize].fill(false);
            }
        }
    }
}

/// An extent that makes way for others stays where it is if the file cannot grow.
#[test]
fn an_extent_stays_if_the_file_cannot_grow() {
    let sim = Sim::default();
    let y = open_sim(&sim, 4096).unwrap();
    let value = vec![7; 90_000];
    let mut output = Output::new(&y);
    let far = output.add_extent(&value).unwrap();
    output.flush().unwrap();
    let busy = y.space.lock().busy_pages();
    let taken = output.taken.clone();
    sim.fail_at(sim.ios() + 1, Fault::Full, true);
    let moved = output.move_extent(far, far.first, true).unwrap();
    assert!(moved.is_none());
    assert_eq!(output.taken, taken);
    assert_eq!(y.space.lock().busy_pages(), busy);
    sim.heal();
    let moved = output.move_extent(far, far.first, true).unwrap().unwrap();
    assert_eq!(output.fetch(moved).unwrap(), value);
}
