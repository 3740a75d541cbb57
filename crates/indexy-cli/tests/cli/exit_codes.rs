//! 0 done, 1 failed or not there, 2 wrong usage.

use crate::Place;

#[test]
fn of_single_keys() {
    let place = Place::new();
    place.run(&["put", "db", "a", "1"]).succeeds().prints("");
    place.run(&["get", "db", "a"]).succeeds().prints("1\n");
    place
        .run(&["get", "db", "b"])
        .exits(1)
        .says("key not found: b")
        .prints("");
    place.run(&["put", "db", "a", "2"]).succeeds();
    place.run(&["get", "db", "a"]).succeeds().prints("2\n");
    place.run(&["del", "db", "a"]).succeeds();
    place
        .run(&["del", "db", "a"])
        .exits(1)
        .says("key not found: a");
    place.run(&["del", "db", "-f", "a"]).succeeds();
    place.run(&["put", "db", "x", ""]).succeeds();
    place
        .run(&["del", "db", "x", "y"])
        .exits(1)
        .says("key not found: y");
    place
        .run(&["scan", "db", "--count"])
        .succeeds()
        .prints("0\n");
}

#[test]
fn of_wrong_usage() {
    let place = Place::with_records("a\t1\n");
    let wrong: [&[&str]; 15] = [
        &[],
        &["frobnicate"],
        &["get"],
        &["get", "db"],
        &["get", "db", "a", "b"],
        &["get", "db", "a", "--no-such-flag"],
        &["scan", "db", "--limit", "many"],
        &["scan", "db", "--budget", "64X"],
        &["load", "db", "--durability", "perhaps"],
        &["load", "db", "--format", "xml"],
        &["load", "db", "--index-x", "rbtree"],
        &["convert", "db", "--index-y", "lsm"],
        &["convert", "db", "new"],
        &["convert", "db", "new", "--index-y", "cuckoo"],
        &["load", "db", "--key-field", "a", "--value-field", "a"],
    ];
    for args in wrong {
        let ran = place.run(args).exits(2);
        assert_eq!(ran.stdout(), "", "{args:?}");
        assert!(!ran.stderr().is_empty(), "{args:?}");
    }
    place
        .run(&["scan", "db", "--revers"])
        .exits(2)
        .says("--reverse");
}

#[test]
fn of_an_empty_load() {
    let place = Place::new();
    place.run(&["load", "db"]).succeeds();
    place.run(&["scan", "db"]).succeeds().prints("");
    place
        .run(&["load", "db", "absent.tsv"])
        .exits(1)
        .says("cannot open absent.tsv");
    place
        .run(&["load", "db", "."])
        .exits(1)
        .says("is a directory");
}
