//! The invariants of Index X, one by one.

use super::{Make, world::World};
use crate::x::{Chunk, Cut, IndexX, Load, Lookup, Order, Put, ScanLimits, XStats};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

fn state<X: IndexX>(x: &X, key: &[u8]) -> Lookup<Vec<u8>> {
    x.get(key, <[u8]>::to_vec)
}

fn number(n: u64) -> Vec<u8> {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec()
}

pub(super) fn i1_an_entry_wins_and_only_a_mount_asks_y<X: IndexX>(make: Make<X>) {
    let complete = make(false);
    assert_eq!(state(&complete, b"k"), Lookup::Absent);
    let mut world = World::new(make(true));
    world.y.insert(b"k".to_vec(), b"old".to_vec());
    world.truth.insert(b"k".to_vec(), b"old".to_vec());
    assert!(matches!(state(&world.x, b"k"), Lookup::AskY(_)));
    world.put(b"k", b"new");
    assert_eq!(state(&world.x, b"k"), Lookup::Found(b"new".to_vec()));
    world.remove(b"k");
    assert_eq!(state(&world.x, b"k"), Lookup::Deleted);
    world.check_all();
}

pub(super) fn i2_a_write_during_a_run_stays_dirty<X: IndexX>(make: Make<X>) {
    let mut world = World::new(make(false));
    world.put(b"k", b"v1");
    world.begin_run(&[], None);
    world.put(b"k", b"v2");
    world.acknowledge();
    assert_eq!(world.x.stats().dirty, 1);
    assert_eq!(world.cut_all().dropped, 0);
    world.check(b"k");
    world.flush();
    assert_eq!(world.y[&b"k"[..]], b"v2");
    world.check_all();
}

pub(super) fn i2_a_failed_run_is_dirty_again<X: IndexX>(make: Make<X>) {
    let mut world = World::new(make(false));
    for n in 0..500 {
        world.put(&number(n), b"v");
    }
    world.begin_run(&[], None);
    assert_eq!(world.x.stats().dirty, 0);
    world.fail(100);
    assert_eq!(world.x.stats().dirty, 500);
    assert_eq!(world.cut_all().dropped, 0);
    world.flush();
    assert_eq!(world.y, world.truth);
    world.check_all();
}

pub(super) fn i3_a_reader_does_not_install_what_was_overwritten_and_released<X: IndexX>(
    make: Make<X>,
) {
    for others in [0, 1, 1000] {
        let mut world = World::new(make(false));
        for n in 0..others {
            world.put(&number(n), b"other");
        }
        world.put(b"k", b"v1");
        world.flush();
        world.cut_all();
        let Some(load) = world.begin_load(b"k") else {
            panic!("Y is asked for what was cut");
        };
        assert_eq!(load.value, b"v1");
        world.put(b"k", b"v2");
        world.flush();
        world.cut_all();
        assert_eq!(world.finish_load(&load), Load::Raced);
        world.check(b"k");
        world.check_all();
    }
}

pub(super) fn i3_a_reader_does_not_install_what_was_deleted<X: IndexX>(make: Make<X>) {
    for others in [0, 1, 1000] {
        let mut world = World::new(make(false));
        for n in 0..others {
            world.put(&number(n), b"other");
        }
        world.put(b"k", b"v1");
        world.flush();
        world.cut_all();
        let Some(load) = world.begin_load(b"k") else {
            panic!("Y is asked for what was cut");
        };
        world.remove(b"k");
        world.flush();
        assert_eq!(world.x.stats().tombstones, 0, "Y has the delete");
        assert_eq!(world.finish_load(&load), Load::Raced);
        world.check(b"k");
        world.check_all();
    }
}

/// Of a tree that was mounted from the start, and of one that became it.
pub(super) fn i3_a_restamp_refuses_what_was_read_before<X: IndexX>(make: Make<X>) {
    for from_the_start in [true, false] {
        let mut world = World::new(make(from_the_start));
        match from_the_start {
            true => _ = world.y.insert(b"k".to_vec(), b"v".to_vec()),
            false => {
                world.put(b"k", b"v");
                world.flush();
                world.cut_all();
            }
        }
        let Some(load) = world.begin_load(b"k") else {
            panic!("Y is asked");
        };
        world.x.restamp(&[], None);
        world.y.clear();
        world.truth.clear();
        assert_eq!(world.finish_load(&load), Load::Raced);
        world.check(b"k");
        world.check_all();
    }
}

pub(super) fn i3_ordinary_writes_do_not_starve_a_load<X: IndexX>(make: Make<X>) {
    let mut world = World::new(make(true));
    world.y.insert(b"k".to_vec(), b"v".to_vec());
    world.truth.insert(b"k".to_vec(), b"v".to_vec());
    let load = world.begin_load(b"k");
    for n in 0..1000 {
        world.put(&number(n), b"other");
    }
    world.flush();
    assert_eq!(
        load.map(|load| world.finish_load(&load)),
        Some(Load::Loaded)
    );
    assert_eq!(state(&world.x, b"k"), Lookup::Found(b"v".to_vec()));
    world.check_all();
}

pub(super) fn i3_stamps_survive_splits<X: IndexX>(make: Make<X>) {
    let mut world = World::new(make(true));
    let keys: Vec<_> = (0..400).map(number).collect();
    for key in &keys {
        world.y.insert(key.clone(), b"v1".to_vec());
        world.truth.insert(key.clone(), b"v1".to_vec());
    }
    let loads: Vec<_> = keys
        .iter()
        .filter_map(|key| world.begin_load(key))
        .collect();
    assert_eq!(loads.len(), keys.len());
    for n in 0..3000 {
        world.put(&number(1_000_000 + n), b"other");
    }
    for key in keys.iter().step_by(2) {
        world.put(key, b"v2");
    }
    world.flush();
    world.cut_all();
    for load in &loads {
        assert_eq!(world.finish_load(load), Load::Raced);
        world.check(&load.key);
    }
    world.check_all();
}

pub(super) fn i4_a_cut_keeps_what_is_dirty_or_in_flight<X: IndexX>(make: Make<X>) {
    let mut world = World::new(make(false));
    for n in 0..1000 {
        world.put(&number(n), b"v");
    }
    let all = Cut {
        unclean: 1000,
        ..Cut::default()
    };
    assert_eq!(world.cut_all(), all, "dirty");
    world.begin_run(&[], None);
    assert_eq!(world.cut_all(), all, "in flight");
    for n in 0..1000 {
        world.check(&number(n));
    }
    world.acknowledge();
    let before = world.x.stats();
    let cut = world.cut_all();
    assert_eq!((cut.dropped, cut.unclean), (1000, 0));
    assert_eq!(before.bytes - world.x.stats().bytes, cut.freed_bytes);
    for n in 0..1000 {
        assert!(matches!(state(&world.x, &number(n)), Lookup::AskY(_)));
        world.check(&number(n));
    }
    world.check_all();
}

pub(super) fn i8_a_refused_commit_changes_nothing<X: IndexX>(make: Make<X>) {
    let mut world = World::new(make(false));
    for n in 0..300 {
        world.put(&number(n), b"v");
    }
    let before = world.x.stats();
    for n in 0..600 {
        let value = (n % 2 == 0).then_some(&b"refused"[..]);
        let put = world.x.put(&number(n), value, || Err(n));
        if value.is_some() || n < 300 {
            assert_eq!(put, Err(n));
        } else {
            assert_eq!(put, Ok(Put::Nothing));
        }
    }
    let after = world.x.stats();
    assert_eq!((before.keys, before.dirty), (after.keys, after.dirty));
    for n in 0..600 {
        world.check(&number(n));
    }
    world.check_all();
}

pub(super) fn removals_leave_tombstones_only_where_y_may_know_the_key<X: IndexX>(make: Make<X>) {
    let mut world = World::new(make(false));
    world.put(b"fresh", b"v");
    world.remove(b"fresh");
    world.remove(b"never");
    assert_eq!(world.x.stats().keys, 0);
    world.put(b"cleaned", b"v");
    world.flush();
    world.remove(b"cleaned");
    assert_eq!((world.x.stats().keys, world.x.stats().tombstones), (1, 1));
    assert_eq!(world.x.put(b"cleaned", None, || Err(())), Ok(Put::Nothing));
    world.flush();
    assert_eq!((world.x.stats().keys, world.y.len()), (0, 0));
    let mut world = World::new(make(true));
    world.put(b"k", b"v");
    world.remove(b"k");
    world.remove(b"other");
    assert_eq!(world.x.stats().tombstones, 2);
    world.check_all();
}

pub(super) fn evict_makes_y_decide<X: IndexX>(make: Make<X>) {
    let mut world = World::new(make(false));
    for n in 0..200 {
        world.put(&number(n), b"v");
    }
    world.write_past(&number(7), b"in y");
    world.write_past(b"new", b"in y");
    world.write_past(&[], b"in y");
    for key in [number(7), b"new".to_vec(), vec![]] {
        assert!(matches!(state(&world.x, &key), Lookup::AskY(_)));
        world.check(&key);
    }
    for n in 0..200 {
        world.check(&number(n));
    }
    world.check_all();
}

pub(super) fn second_chance_spares_what_was_read<X: IndexX>(make: Make<X>) {
    let mut world = World::new(make(false));
    for n in 0..2000 {
        world.put(&number(n), b"v");
    }
    world.flush();
    world.x.track_references(true);
    for n in 0..100 {
        world.check(&number(n));
    }
    let cut = world.x.cut(&[], None, world.acked, true, usize::MAX);
    assert_eq!((cut.dropped, cut.spared), (1900, 100));
    let again = world.x.cut(&[], None, world.acked, true, usize::MAX);
    assert_eq!(
        (again.dropped, again.spared),
        (cut.spared, 0),
        "the bit counts once"
    );
    assert_eq!(world.x.stats().keys, 0);
    world.check_all();
}

/// What was loaded goes with the next cut, unless it was read again.
pub(super) fn second_chance_spares_what_was_read_after_it_was_loaded<X: IndexX>(make: Make<X>) {
    let mut world = World::new(make(false));
    for n in 0..500 {
        world.put(&number(n), b"v");
    }
    world.flush();
    world.x.track_references(true);
    world.x.cut(&[], None, world.acked, false, usize::MAX);
    for n in 0..100 {
        world.check(&number(n));
    }
    // Half of them are read again.
    for n in 0..50 {
        world.check(&number(n));
    }
    assert_eq!(world.x.stats().keys, 100);
    let cut = world.x.cut(&[], None, world.acked, true, usize::MAX);
    assert_eq!((cut.dropped, cut.spared), (50, 50));
    world.x.cut(&[], None, world.acked, true, usize::MAX);
    assert_eq!(world.x.stats().keys, 0, "the bit counts once");
    world.check_all();
}

pub(super) fn scans_cover_what_they_say<X: IndexX>(make: Make<X>) {
    let mut world = World::new(make(false));
    for n in 0..3000 {
        world.put(&number(n), b"v");
    }
    world.flush();
    let third = u64::MAX / 3;
    let (a, b) = (third.to_be_bytes(), (2 * third).to_be_bytes());
    world.x.cut(&a, Some(&b), world.acked, false, usize::MAX);
    let limits = ScanLimits {
        bytes: usize::MAX,
        entries: 100,
        leaves: usize::MAX,
        leaves_if_mounted: usize::MAX,
    };
    for order in [Order::Ascending, Order::Descending] {
        world.check_scan(&[], None, order, limits);
        world.check_scan(&a, Some(&b), order, limits);
        world.check_scan(&b, Some(&a), order, limits);
        world.check_scan(&a, Some(&a), order, limits);
        world.check_scan(&[], Some(&[]), order, limits);
    }
    let mut chunk = Chunk::default();
    let unlimited = ScanLimits {
        entries: usize::MAX,
        ..limits
    };
    world
        .x
        .scan(&[], None, Order::Ascending, unlimited, &mut chunk);
    assert!(chunk.resume.is_none() && !chunk.mounted.is_empty());
    let mut stopped = 0;
    let flow = world.x.leaves(&[], None, &mut |_| {
        stopped += 1;
        ControlFlow::Break(())
    });
    assert!(flow.is_break() && stopped == 1);
    world.check_all();
}

/// Tombstones stand for removed keys that Y has; where it is not asked, nobody needs to see them.
pub(super) fn dead_stretches_show_nothing<X: IndexX>(make: Make<X>) {
    let mut world = World::new(make(false));
    for n in 0..5000 {
        world.put(&number(n), b"v");
    }
    world.flush();
    let mut keys: Vec<_> = world.truth.keys().cloned().collect();
    let last = keys.pop().unwrap();
    // All but one in the middle and the last one.
    let alone = keys.remove(2000);
    keys.iter().for_each(|key| world.remove(key));
    let limits = ScanLimits {
        bytes: usize::MAX,
        entries: 1,
        leaves: usize::MAX,
        leaves_if_mounted: usize::MAX,
    };
    let mut chunk = Chunk::default();
    for (from, order, found) in [
        (&[][..], Order::Ascending, &alone),
        (&crate::key::successor(&alone)[..], Order::Ascending, &last),
        (&[], Order::Descending, &last),
    ] {
        world.x.scan(from, None, order, limits, &mut chunk);
        assert_eq!(chunk.entries.len(), 1);
        assert_eq!(&chunk.entries[0].key[..], &found[..]);
    }
    world
        .x
        .scan(&[], Some(&last), Order::Descending, limits, &mut chunk);
    assert_eq!(&chunk.entries[0].key[..], &alone[..]);
    // A mounted range shows them: they hide what Y has.
    let mounted = World::new(make(true));
    let put = mounted.x.put(&alone, None, || Ok::<(), ()>(()));
    assert_eq!(put, Ok(Put::Applied));
    mounted
        .x
        .scan(&[], None, Order::Ascending, limits, &mut chunk);
    assert!(chunk.entries[0].value.is_none());
    world.put(&number(77), b"again");
    for order in [Order::Ascending, Order::Descending] {
        world.check_scan(&[], None, order, limits);
        world.check_scan(&alone, Some(&last), order, limits);
    }
    world.flush();
    world.check_all();
    assert_eq!(world.x.stats().keys, 3);
}

/// Whatever is there, and beside readers and a cutter.
pub(super) fn clear_drops_everything<X: IndexX>(make: Make<X>) {
    let mut world = World::new(make(false));
    for round in 0..20u64 {
        for n in 0..3000 {
            world.put(&number(n), if n % 50 == 0 { &[7; 2000] } else { b"v" });
        }
        world.flush();
        let third = (u64::MAX / 3).to_be_bytes();
        world.x.cut(&third, None, world.acked, false, 20_000);
        for n in 0..500 {
            world.put(&number(3 * n + round), b"w");
            world.remove(&number(3 * n + 1));
        }
        let (x, acked, end) = (&world.x, world.acked, AtomicBool::new(false));
        std::thread::scope(|s| {
            s.spawn(|| {
                while !end.load(Relaxed) {
                    x.cut(&[], None, acked, true, 2000);
                }
            });
            s.spawn(|| {
                let mut n = 0;
                while !end.load(Relaxed) {
                    n += 1;
                    if let Lookup::Found(len) = x.get(&number(n % 3000), <[u8]>::len) {
                        assert!(len == 1 || len == 2000);
                    }
                }
            });
            std::thread::yield_now();
            x.clear();
            assert_eq!(x.get(&number(0), <[u8]>::len), Lookup::Absent);
            x.take_apart(usize::MAX);
            end.store(true, Relaxed);
        });
        assert_eq!(x.stats(), XStats::default());
        x.verify(true).unwrap();
        world = World::new(world.x);
    }
}

/// Other entries are written while what was there is taken apart, in steps, by two threads.
pub(super) fn what_was_cleared_is_taken_apart_beside_writers<X: IndexX>(make: Make<X>) {
    let mut world = World::new(make(false));
    for round in 0..10u64 {
        for n in 0..3000 {
            world.put(&number(n), if n % 50 == 0 { &[7; 2000] } else { b"v" });
        }
        world.flush();
        world
            .x
            .cut(&number(round), None, world.acked, false, 20_000);
        let before = world.x.stats().bytes;
        world.x.clear();
        world.truth.clear();
        world.y.clear();
        let freed = AtomicUsize::new(0);
        std::thread::scope(|s| {
            let World { x, truth, .. } = &mut world;
            let (x, freed) = (&*x, &freed);
            for _ in 0..2 {
                s.spawn(move || {
                    loop {
                        match x.take_apart(3000) {
                            0 => break,
                            bytes => freed.fetch_add(bytes, Relaxed),
                        };
                    }
                });
            }
            for n in 0..500 {
                let (key, value) = (number(2 * n + round), [b'w'; 30]);
                let put = x.put_over(&key, Some(&value), |_| Ok::<(), ()>(()));
                assert_eq!(put, Ok(Put::Applied));
                truth.insert(key, value.to_vec());
            }
        });
        assert_eq!(world.x.take_apart(usize::MAX), 0);
        // An X may take all apart when it is cleared.
        let freed = freed.load(Relaxed);
        assert!(freed == before || freed == 0, "{freed} of {before}");
        assert_eq!(world.x.stats().keys, 500);
        world.x.verify(true).unwrap();
        world.check_all();
        world.x.clear();
        world.x.verify(true).unwrap();
        assert_eq!(world.x.stats(), XStats::default());
        world = World::new(world.x);
    }
}

/// A walk over the keys shows what lives in memory, in order, and changes no reference bit.
pub(super) fn keys_are_those_that_live_in_memory<X: IndexX>(make: Make<X>) {
    let mut world = World::new(make(false));
    for n in 0..2000 {
        world.put(&number(n), &vec![b'v'; n as usize % 40]);
    }
    let long = [number(3), vec![b'x'; 500]].concat();
    world.put(&long, b"long");
    world.flush();
    for n in (0..2000).step_by(7) {
        world.remove(&number(n));
    }
    world.x.track_references(true);
    let (from, to) = (number(1), number(2));
    let (from, to) = (from.clone().min(to.clone()), from.max(to));
    for (from, to) in [
        (&[][..], None),
        (&from, Some(&to[..])),
        (&from, None),
        (&to, Some(&from)),
    ] {
        let mut expected = world.truth.clone();
        expected
            .retain(|key, _| *key != long && key[..] >= *from && to.is_none_or(|to| key[..] < *to));
        let mut seen = Vec::new();
        let flow = world.x.keys(from, to, 100, &mut |entry| {
            assert!(!entry.referenced);
            seen.push((entry.key.to_vec(), entry.value_bytes));
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
        let expected: Vec<_> = expected.into_iter().map(|(k, v)| (k, v.len())).collect();
        assert!(seen == expected, "{} of {}", seen.len(), expected.len());
    }
    world.check(&long);
    world.check(&number(1));
    let mut referenced = Vec::new();
    let _ = world.x.keys(&[], None, usize::MAX, &mut |entry| {
        referenced.extend(entry.referenced.then(|| entry.key.to_vec()));
        ControlFlow::Continue(())
    });
    let mut read = vec![long, number(1)];
    read.sort();
    assert_eq!(referenced, read);
    world.check_all();
}
