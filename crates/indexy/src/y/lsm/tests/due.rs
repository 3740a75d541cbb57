//! When merges are due: what reads pay for them, and what an earlier process put off.

use super::*;
use crate::y::contract::Maintained;

fn run(keys: impl Iterator<Item = u64>, value: &[u8]) -> Entries {
    keys.map(|key| put(&key.to_be_bytes(), value)).collect()
}

/// What reads pay after maintenance has looked counts when it looks again at the same version.
#[test]
fn what_reads_pay_later_is_seen() {
    let sim = Sim::default();
    let y = open_busy(&sim, TINY);
    for n in 0..4u8 {
        write(&y, &run(0..200, &[n; 30])).unwrap();
    }
    for _ in 0..3 {
        assert_eq!(y.maintain().unwrap(), Maintained::Idle);
    }
    assert_eq!(y.run_count(), 4);
    y.versions.current().partitions()[0].reads().waste(1000);
    assert_eq!(y.maintain().unwrap(), Maintained::More);
    assert_eq!(y.run_count(), 1);
}

/// Deletes that reads have passed over, in each partition.
fn skipped(y: &LsmY) -> Vec<u64> {
    let version = y.version();
    let partitions = version.partitions().iter();
    partitions.map(|p| p.reads().skipped()).collect()
}

/// A scan counts the deletes that it passes over where they lie, until a merge is worth it.
#[test]
fn deletes_that_scans_pass_over_make_a_merge_due() {
    let sim = Sim::default();
    let y = open_busy(&sim, Sizes::default());
    write(&y, &run(0..20_000, &[1; 8])).unwrap();
    let deleted = (0..20_000u64).step_by(10);
    let deletes: Entries = deleted.map(|key| del(&key.to_be_bytes())).collect();
    write(&y, &deletes).unwrap();
    let middle = 10_000u64.to_be_bytes();
    assert!(y.change(|version| Some(version.cut(&middle))));
    let count = |from: &[u8], order| {
        let entries = y.range(from, None, order).unwrap();
        entries.map(Result::unwrap).count()
    };
    // One that is left early, and one of the second partition alone.
    let first = y.range(b"", None, Order::Ascending).unwrap().take(5);
    assert_eq!(first.map(Result::unwrap).count(), 5);
    assert_eq!(skipped(&y), [1, 0]);
    assert_eq!(count(&middle, Order::Descending), 9000);
    assert_eq!(skipped(&y), [1, 1000]);
    let orders = [Order::Ascending, Order::Descending].repeat(5);
    for (order, n) in orders.into_iter().zip(1..) {
        assert_eq!(count(b"", order), 18_000);
        assert_eq!(skipped(&y), [1 + n * 1000, 1000 + n * 1000], "{order:?}");
    }
    // A merge passes over some 11,000 entries, each in the time of two deletes.
    assert_eq!(y.maintain().unwrap(), Maintained::Idle);
    for _ in 0..20 {
        count(b"", Order::Ascending);
    }
    assert_eq!(y.maintain().unwrap(), Maintained::More);
    settle(&y);
    assert_eq!(y.run_count(), 1);
    assert_eq!(count(b"", Order::Ascending), 18_000);
    assert!(skipped(&y).iter().all(|deletes| *deletes == 0));
}

/// Gets count the blocks of layers that they look into in vain, one at a time and many at once,
/// until a merge is worth it.
#[test]
fn blocks_that_gets_look_into_in_vain_make_a_merge_due() {
    let keys: Vec<_> = (0..20u64).map(|n| (n * 400 + 1).to_be_bytes()).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    for at_once in [1, 10] {
        let sim = Sim::default();
        let y = open_busy(&sim, Sizes::default());
        write(&y, &run(0..10_000, &[1; 8])).unwrap();
        // Of all keys, and too few for a filter.
        write(&y, &run((0..10_000).step_by(1000), &[2; 8])).unwrap();
        let get = |keys: &[&[u8]]| match keys {
            [key] => assert_eq!(y.get(key).unwrap().unwrap(), [1; 8]),
            many => assert!(y.multi_get(many).unwrap().iter().all(Option::is_some)),
        };
        let wasted = || y.version().partitions()[0].reads().wasted();
        keys.chunks(at_once).for_each(get);
        assert_eq!(wasted(), 20, "{at_once} at once");
        // A merge costs as much as 20.02 blocks.
        assert_eq!(y.maintain().unwrap(), Maintained::Idle);
        get(&keys[..at_once]);
        assert_eq!(wasted(), 20 + at_once as u64);
        assert_eq!(y.maintain().unwrap(), Maintained::More);
        assert_eq!(y.run_count(), 1);
        keys.chunks(at_once).for_each(get);
        assert_eq!(wasted(), 0, "{at_once} at once");
    }
}

/// What was put off when the tree was closed, or its process ended, is done after the next open,
/// though nobody writes: who has not written yet rests.
#[test]
fn merges_that_were_put_off_are_done_after_an_open() {
    let sim = Sim::default();
    let y = open_busy(&sim, TINY);
    for n in 0..4u8 {
        write(&y, &run(0..200, &[n; 30])).unwrap();
    }
    y.make_durable().unwrap();
    assert_eq!(y.maintain().unwrap(), Maintained::Idle);
    let ended = sim.crash(1);
    drop(y);
    for sim in [sim, ended] {
        let y = open_busy(&sim, TINY);
        assert_eq!(y.run_count(), 4);
        assert!(!y.settled());
        assert_eq!(y.maintain().unwrap(), Maintained::More);
        settle(&y);
        assert_eq!(y.run_count(), 1);
        assert!(y.settled());
        let newest = |key: u64| (key.to_be_bytes().to_vec(), vec![3; 30]);
        check(&y, &(0..200).map(newest).collect());
    }
}

/// What reads have paid towards a merge is known to the next process after a clean close, unless it
/// is less than a sync is worth.
#[test]
fn what_reads_have_paid_is_known_after_an_open() {
    let sim = Sim::default();
    let wasted = |y: &LsmY| y.version().partitions()[0].reads().wasted();
    let look = |y: &LsmY, times: u64| {
        let keys = (0..times).map(|n| (n * 400 + 1).to_be_bytes());
        keys.for_each(|key| assert_eq!(y.get(&key).unwrap().unwrap(), [1; 8]));
    };
    let y = open_busy(&sim, Sizes::default());
    write(&y, &run(0..60_000, &[1; 8])).unwrap();
    write(&y, &run((0..60_000).step_by(6000), &[2; 8])).unwrap();
    // A merge costs as much as 120.02 blocks.
    look(&y, 80);
    drop(y);
    for _ in 0..3 {
        let y = open_busy(&sim, Sizes::default());
        assert_eq!((wasted(&y), y.run_count()), (80, 2));
        look(&y, 40);
        assert_eq!(y.maintain().unwrap(), Maintained::Idle);
        y.verify().unwrap();
    }
    let sim = sim.crash(1);
    let y = open_busy(&sim, Sizes::default());
    look(&y, 41);
    assert_eq!(y.maintain().unwrap(), Maintained::More);
    assert_eq!((wasted(&y), y.run_count()), (0, 1));
    drop(y);
    let y = open_busy(&sim, Sizes::default());
    assert_eq!((wasted(&y), y.run_count()), (0, 1));
    y.verify().unwrap();
}
