//! `compact`: space on disk comes back, and nothing else changes.

use crate::{Place, Ran};

const KEYS: usize = 20_000;

/// A record of every key, with values of their own for each `turn`.
fn records(turn: usize) -> String {
    (0..KEYS)
        .map(|n| format!("key{n:06}\t{turn}-{:0100}\n", n * 7919 + turn))
        .collect()
}

/// Loaded twice: half of what lies on disk was overwritten.
fn overwritten(kind: &str) -> Place {
    let place = Place::new();
    for turn in 0..2 {
        let args = ["load", "db", "-q", "--index-y", kind];
        place
            .run_with_input(&args, records(turn).as_bytes())
            .succeeds();
    }
    place
}

/// Bytes of the files of all trees.
fn on_disk(place: &Place) -> u64 {
    let mut bytes = 0;
    let mut todo = vec![place.path("db/trees")];
    while let Some(at) = todo.pop() {
        for entry in at.read_dir().unwrap() {
            let entry = entry.unwrap();
            match entry.metadata().unwrap() {
                meta if meta.is_dir() => todo.push(entry.path()),
                meta => bytes += meta.len(),
            }
        }
    }
    bytes
}

#[track_caller]
fn compact(place: &Place, bounds: &[&str]) -> Ran {
    place.run(&[&["compact", "db"][..], bounds].concat())
}

#[test]
fn what_was_overwritten_takes_no_more_space() {
    for kind in ["lsm", "bplus"] {
        let place = overwritten(kind);
        let before = on_disk(&place);
        let said = compact(&place, &[]).succeeds().stdout();
        assert!(said.contains(" on disk, ") && said.ends_with(" before\n"));
        let after = on_disk(&place);
        assert!(
            after < before - before / 10,
            "{kind}: {after} of {before}: {said}"
        );
        place.run(&["scan", "db"]).succeeds().prints(&records(1));
        place.run(&["verify", "db"]).succeeds();
        // Once more there is nothing to do.
        compact(&place, &[]).succeeds();
        assert_eq!(on_disk(&place), after, "{kind}");
    }
}

#[test]
fn a_range_may_be_compacted_and_one_without_keys_is_left_alone() {
    let place = overwritten("lsm");
    let before = on_disk(&place);
    compact(&place, &["--from", "b", "--to", "a"])
        .succeeds()
        .prints("the range has no key\n");
    assert_eq!(on_disk(&place), before);
    compact(&place, &["--from", "key000000", "--to", "key005000"]).succeeds();
    let after = on_disk(&place);
    assert!(after < before, "{after} of {before}");
    place.run(&["scan", "db"]).succeeds().prints(&records(1));
}

#[test]
fn what_cannot_be_compacted_is_refused() {
    let place = Place::with_records("a\t1\n");
    place.run(&["compact"]).exits(2);
    place.run(&["compact", "db", "b"]).exits(2);
    place.run(&["compact", "db", "--prefix", "a"]).exits(2);
    compact(&place, &["--hex", "--from", "x"]).exits(2);
    compact(&place, &["--tree", "orders"])
        .exits(1)
        .says("orders");
    place
        .run(&["compact", "nowhere"])
        .exits(1)
        .says("no such directory: nowhere");
    place.run(&["scan", "db"]).succeeds().prints("a\t1\n");
}
