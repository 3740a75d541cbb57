//! V5: what was removed stays removed.

use super::*;

fn run(number: u64, keys: Range<u32>) -> Arc<Fake> {
    let entries = keys.map(|i| (i.to_be_bytes().to_vec(), Some(vec![number as u8])));
    table(number, entries.collect())
}

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

#[test]
fn v5_a_table_over_a_removed_gap_keeps_its_neighbours_apart() {
    let version = Version::empty(1 << 30).with_run(&[run(1, 0..100)]);
    let version = version.without_range(&key(40), Some(&key(60)));
    assert_eq!(version.partitions().len(), 3);
    // However often neighbours are looked at.
    let version = version.without_range(&key(45), Some(&key(46)));
    let version = version.without_range(&key(200), None);
    assert_eq!(content(&version).len(), 80);
    assert!(version.partitions().len() <= 5);
    assert_eq!(get(&version, &key(50)), None);
    // What is written there is no layer over anything.
    let version = version.with_run(&[run(2, 50..52)]);
    assert_eq!(version.totals().depth, 1);
    assert_eq!(content(&version).len(), 82);
}

#[test]
fn v5_a_merge_puts_nothing_into_what_was_cleared_meanwhile() {
    let version = Version::empty(1 << 30).with_run(&[run(1, 0..100)]);
    let version = version.with_run(&[run(2, 30..70)]);
    let inputs = Inputs::of(&version, 0..1, true, |p| 0..p.layers.len()).unwrap();
    let output = merge(&inputs, 1000).remove(0);
    let version = version.without_range(&key(40), Some(&key(60)));
    let version = version.with_run(&[run(3, 55..80)]);
    let version = version.with_merge(&inputs, &[table(9, output)]).unwrap();
    let content = content(&version);
    assert_eq!(content.len(), 85);
    assert_eq!(content[&key(55)[..]], [3]);
    assert_eq!(content[&key(79)[..]], [3]);
    assert_eq!(content[&key(35)[..]], [2]);
    assert_eq!(get(&version, &key(50)), None);
    // The old tables are of no use any more.
    assert_eq!(version.tables().into_keys().collect::<Vec<_>>(), [3, 9]);
}

/// A gap closes as soon as no table lies over it.
#[test]
fn neighbours_of_a_gap_are_joined_when_they_are_rewritten() {
    let mut version = Version::empty(1 << 30).with_run(&[run(1, 0..100)]);
    version = version.without_range(&key(40), Some(&key(60)));
    let mut number = 2;
    while let Some(at) = version.partitions().iter().position(|p| {
        let mut tables = p.tables();
        tables.any(|t| t.facts.number == 1)
    }) {
        let inputs = Inputs::of(&version, at..at + 1, true, |p| 0..p.layers.len()).unwrap();
        let output = merge(&inputs, 1000).remove(0);
        version = version
            .with_merge(&inputs, &[table(number, output)])
            .unwrap();
        number += 1;
    }
    assert_eq!(version.partitions().len(), 1);
    assert_eq!(content(&version).len(), 80);
    let version = version.without_range(b"", None);
    assert!(version.is_empty());
    assert_eq!(version.partitions().len(), 1);
}

#[test]
fn a_merge_whose_inputs_are_gone_is_in_vain() {
    let version = Version::empty(1 << 30).with_run(&[run(1, 0..100)]);
    let version = version.with_run(&[run(2, 30..70)]);
    let all = |p: &Partition<Fake>| 0..p.layers.len();
    let inputs = Inputs::of(&version, 0..1, true, all).unwrap();
    let layers = Inputs::of(&version, 0..1, false, all).unwrap();
    let (one, two) = (
        merge(&inputs, 1000).remove(0),
        merge(&layers, 1000).remove(0),
    );
    // Another merge took a layer of it.
    let other = version.with_merge(&layers, &[table(8, two)]).unwrap();
    assert!(
        other
            .with_merge(&inputs, &[table(9, one.clone())])
            .is_none()
    );
    // Removed altogether: nothing is put in place, and nothing comes back.
    let cleared = version.without_range(b"", None);
    let after = cleared.with_merge(&inputs, &[table(9, one)]).unwrap();
    assert!(after.is_empty());
}

/// Many gaps in one table: what is left is merged into few partitions again.
#[test]
fn a_merge_of_small_neighbours_closes_the_gaps_between_them() {
    let mut version = Version::empty(1 << 30).with_run(&[run(1, 0..1000)]);
    for gap in 0..50 {
        let (from, to) = (key(gap * 20), key(gap * 20 + 5));
        version = version.without_range(&from, Some(&to));
    }
    let partitions = version.partitions().len();
    assert!(partitions >= 100);
    let inputs = Inputs::of(&version, 0..partitions, true, |p| 0..p.layers.len()).unwrap();
    let output = merge(&inputs, 1000).remove(0);
    let cleared = version.without_range(&key(500), Some(&key(520)));
    let after = version
        .with_merge(&inputs, &[table(2, output.clone())])
        .unwrap();
    assert_eq!((after.partitions().len(), content(&after).len()), (1, 750));
    let after = cleared.with_merge(&inputs, &[table(2, output)]).unwrap();
    assert_eq!(content(&after).len(), 735);
}

/// Partitions that no range touches are the same ones, which the version log knows them by; what is
/// left between ranges is joined where V5 allows it.
#[test]
fn many_ranges_leave_the_rest_as_it_was() {
    let tables = (0..100).map(|n| run(u64::from(n) + 1, n * 40..n * 40 + 40));
    let version = tables.fold(Version::empty(4096 * 100), |version, table| {
        version.with_run(&[table])
    });
    let partitions = version.partitions();
    assert!(partitions.len() > 5, "{}", partitions.len());
    let same = version.without_ranges(&[]);
    let nothing = (&key(9)[..], Some(&key(9)[..]));
    let backwards = (&key(9)[..], Some(&key(3)[..]));
    for same in [same, version.without_ranges(&[nothing, backwards])] {
        let pairs = same.partitions().iter().zip(partitions);
        assert!(pairs.clone().all(|(one, other)| Arc::ptr_eq(one, other)));
        assert_eq!(pairs.len(), same.partitions().len());
    }
    // Of each table of the first half all but its first keys.
    let ends: Vec<_> = (0..50u32)
        .map(|n| (key(n * 40 + 10), key(n * 40 + 40)))
        .collect();
    let ranges: Vec<KeyRange<'_>> = ends.iter().map(|(f, t)| (&f[..], Some(&t[..]))).collect();
    let less = version.without_ranges(&ranges);
    assert_eq!(content(&less).len(), 50 * 10 + 50 * 40);
    let last = less.partitions().iter().rev().zip(partitions.iter().rev());
    let same = last.take_while(|(one, other)| Arc::ptr_eq(one, other));
    assert!(same.count() >= partitions.len() / 2 - 2);
    // The lot in many ranges, which touch each other.
    let ends: Vec<_> = (0..4000u32).map(|n| (key(n), key(n + 1))).collect();
    let ranges: Vec<KeyRange<'_>> = ends.iter().map(|(f, t)| (&f[..], Some(&t[..]))).collect();
    let none = version.without_ranges(&ranges);
    assert!(none.is_empty());
    assert_eq!(none.partitions().len(), 1);
}

/// A prefix that is too long would put keys in a wrong order.
#[test]
fn a_merge_knows_what_its_keys_begin_with() {
    let of = |number, keys: &[&[u8]]| {
        let entries = keys.iter().map(|key| (key.to_vec(), None));
        table(number, entries.collect())
    };
    let version = Version::empty(1 << 30)
        .with_run(&[of(1, &[b"user1", b"user17"])])
        .with_run(&[of(2, &[b"user12", b"user20"])]);
    let prefix = |version: &Version<Fake>, i: usize, major| {
        let inputs = Inputs::of(version, i..i + 1, major, |p| 0..p.layers.len()).unwrap();
        inputs.parts[0].shared_prefix(major)
    };
    assert_eq!(prefix(&version, 0, true), 4);
    assert_eq!(prefix(&version.with_run(&[of(3, &[b"v"])]), 0, true), 0);
    let cut = version.cut(b"user12").cut(b"user13");
    assert_eq!(
        prefix(&cut, 1, true),
        5,
        "the bounds say more than the tables"
    );
    assert_eq!(prefix(&Version::empty(1), 0, true), 0);
}
