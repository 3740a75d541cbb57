//! What is not a database, not there or in use is refused, and left as it is.

use crate::{Place, is_empty};
use std::{
    io::Write as _,
    process::Stdio,
    time::{Duration, Instant},
};

#[test]
fn a_database_that_is_not_there() {
    let place = Place::new();
    for args in [
        &["get", "db", "a"][..],
        &["del", "db", "a"],
        &["scan", "db"],
        &["stats", "db"],
        &["verify", "db"],
        &["dump", "db"],
        &["rename", "db", "a", "b"],
        &["drop", "db", "a", "--yes"],
        &["remove-range", "db", "--from", "a", "--yes"],
    ] {
        place
            .run(args)
            .exits(1)
            .says("no such directory: db; `indexy load` and `indexy put` create a database");
    }
    assert!(is_empty(place.0.path()));
}

#[test]
fn a_directory_that_is_not_a_database() {
    let place = Place::new();
    std::fs::create_dir(place.path("photos")).unwrap();
    place.write("photos/cat.jpg", "meow");
    for args in [
        &["scan", "photos"][..],
        &["put", "photos", "a", "b"],
        &["load", "photos"],
        &["verify", "photos"],
    ] {
        place.run(args).exits(1).says("photos is not a database");
    }
    assert_eq!(place.path("photos").read_dir().unwrap().count(), 1);
    place.write("file", "");
    place.run(&["scan", "file"]).exits(1).says("file is a file");
    std::fs::create_dir(place.path("empty")).unwrap();
    place
        .run(&["scan", "empty"])
        .exits(1)
        .says("empty is not a database");
    place.run(&["put", "empty", "a", "b"]).succeeds();
}

#[test]
fn a_tree_that_is_not_there() {
    let place = Place::with_records("a\t1\n");
    place
        .run(&["scan", "db", "--tree", "orders"])
        .exits(1)
        .says("no tree named \"orders\"; there is \"default\"");
    place.run(&["del", "db", "a", "--tree", "orders"]).exits(1);
    place
        .run(&["put", "db", "a", "2", "--tree", "orders"])
        .succeeds();
    place
        .run(&["get", "db", "a", "--tree", "orders"])
        .succeeds()
        .prints("2\n");
    place.run(&["get", "db", "a"]).succeeds().prints("1\n");
    place
        .run(&["put", "db", "a", "1", "--tree", ""])
        .exits(2)
        .says("1 to 255 bytes");
}

#[test]
fn a_database_in_use() {
    let place = Place::with_records("a\t1\n");
    let start = Instant::now();
    loop {
        let mut child = place
            .command(&["load", "db", "-q"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let ran = place.run(&["put", "db", "b", "2"]);
        // A slow child finds our lock instead of us its.
        let refused = ran.0.status.code() == Some(1);
        // Fails if the child was refused.
        let _ = child.stdin.take().unwrap().write_all(b"c\t3\n");
        let loaded = child.wait().unwrap().code() == Some(0);
        if refused && loaded {
            ran.says("in use by another process");
            break;
        }
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "the load never took its lock"
        );
    }
    place.run(&["get", "db", "c"]).succeeds().prints("3\n");
}

#[test]
fn a_budget_that_is_too_small() {
    let place = Place::new();
    place
        .run(&["put", "db", "a", "1", "--budget", "1M"])
        .exits(1)
        .says("below the minimum")
        .says("give --budget");
}

#[test]
fn what_is_left_of_a_creation_is_no_obstacle() {
    let place = Place::new();
    for dir in ["db", "db/log", "db/trees"] {
        std::fs::create_dir(place.path(dir)).unwrap();
    }
    place.write("db/MANIFEST.next", "");
    place.run(&["put", "db", "a", "1"]).succeeds();
    place.run(&["get", "db", "a"]).prints("1\n");
}

#[test]
fn wrong_usage_makes_no_database() {
    let place = Place::new();
    let long = "k".repeat(70_000);
    let mut wrong: Vec<Vec<&str>> = vec![
        vec!["put", "db", &long, "1"],
        vec!["put", "db", "a", "1", "--index-y", "bplus:5000"],
        vec!["put", "db", "a", "1", "--tree", ""],
        vec!["load", "db", "--index-y", "bplus:1K"],
        vec!["load", "db", "--index-x", "radix", "--index-y", "lsm"],
        vec!["load", "db", "--index-x", "radix"],
        vec!["put", "db", "a", "1", "--index-x", "radix-leaves"],
        vec!["load", "db", "--key-field", "a", "--value-field", "a_hex"],
        vec!["load", "db", "--value-field", "a", "--key-field", "a_hex"],
    ];
    if !cfg!(feature = "zstd") {
        wrong.push(vec!["put", "db", "a", "1", "--compression", "zstd"]);
    }
    if !cfg!(feature = "rocksdb") {
        wrong.push(vec!["put", "db", "a", "1", "--index-y", "rocksdb"]);
    }
    let file = std::fs::File::create(place.path("long")).unwrap();
    file.set_len((256 << 20) + 1).unwrap();
    wrong.push(vec!["put", "db", "a", "--value-file", "long"]);
    for args in wrong {
        place.run(&args).exits(2);
    }
    assert!(!place.path("db").exists());
}

#[test]
fn a_tree_that_is_there_needs_no_second_index() {
    let place = Place::new();
    let put = ["put", "db", "a", "1", "--index-x", "radix"];
    place
        .run(&[&put[..], &["--index-y", "bplus"]].concat())
        .succeeds();
    place.run(&put).succeeds();
    place.run(&[&put[..], &["--tree", "new"]].concat()).exits(1);
    let stats = place.run(&["stats", "db"]).succeeds();
    assert!(!stats.stdout().contains("new"), "{}", stats.all());
}

#[test]
fn a_lock_file_that_is_gone() {
    let place = Place::with_records("a\t1\n");
    std::fs::remove_file(place.path("db/LOCK")).unwrap();
    place.run(&["get", "db", "a"]).exits(1).says("`touch`");
    place.write("db/LOCK", "");
    place.run(&["get", "db", "a"]).succeeds().prints("1\n");
}
