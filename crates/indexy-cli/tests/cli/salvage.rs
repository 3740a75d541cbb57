//! `salvage`: what can be read of a damaged database, in a new one.

use crate::{Place, is_empty, send};
use serde_json::Value;
use std::{
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

/// A command that has not begun by then does not.
const LONGEST_START: Duration = Duration::from_secs(30);

fn records() -> String {
    (0..3000)
        .map(|i| format!("key{i:05}\tvalue of some length {i}\n"))
        .collect()
}

#[test]
fn a_sound_database_comes_out_whole() {
    let place = Place::with_records(&records());
    let ran = place.run(&["salvage", "db", "new"]).succeeds();
    assert!(ran.stdout().contains("nothing is missing"), "{}", ran.all());
    place.run(&["scan", "new", "--count"]).prints("3000\n");
    place.run(&["verify", "new"]).succeeds();
    place.run(&["salvage", "db", "new"]).exits(1);
    let long = format!("a/b/{}", "x".repeat(300));
    for (src, dest) in [
        ("absent", "other"),
        ("absent", "a/b/c"),
        ("db", "a/b/.."),
        ("db", &long),
    ] {
        place.run(&["salvage", src, dest]).exits(1);
        assert!(!place.path("other").exists() && !place.path("a").exists());
    }
}

#[test]
fn what_is_lost_is_told() {
    let place = Place::with_records(&records());
    place.damage_a_table();
    let ran = place.run(&["salvage", "db", "new"]).exits(1);
    assert!(ran.all().contains("keys from"), "{}", ran.all());
    let ran = place.run(&["salvage", "db", "again", "--json"]).exits(1);
    let json: Value = serde_json::from_str(&ran.stdout()).unwrap();
    assert_eq!(
        (json["whole"].as_bool(), json["lost"].as_u64()),
        (Some(false), Some(1))
    );
    let entries = json["trees"][0]["entries"].as_u64().unwrap();
    assert!((2000..3000).contains(&entries), "{entries}");
    place.run(&["verify", "again"]).succeeds();
}

#[test]
fn an_empty_directory_is_filled() {
    let place = Place::with_records(&records());
    std::fs::create_dir(place.path("new")).unwrap();
    place.run(&["salvage", "db", "new"]).succeeds();
    assert!(!place.path("new/.unfinished").exists());
    place.run(&["scan", "new", "--count"]).prints("3000\n");
    place
        .run(&["salvage", "db", "db/new"])
        .exits(1)
        .says("is inside of");
    place.run(&["salvage", "db", "not/there/new"]).succeeds();
    place.run(&["verify", "not/there/new"]).succeeds();
    place.run(&["salvage", "db", "other/."]).succeeds();
    place.run(&["checkpoint", "db", "third/./"]).succeeds();
    place.run(&["verify", "other"]).succeeds();
    place.run(&["verify", "third"]).succeeds();
}

/// It is not called something that may be removed.
#[test]
fn the_source_may_be_called_unfinished() {
    let place = Place::with_records(&records());
    std::fs::rename(place.path("db"), place.path("db.unfinished")).unwrap();
    std::fs::create_dir(place.path("new")).unwrap();
    let refused = |command: &[&str]| {
        place
            .run(command)
            .exits(1)
            .says("would be written; give another DEST");
    };
    refused(&["salvage", "db.unfinished", "db"]);
    refused(&["checkpoint", "db.unfinished", "db"]);
    refused(&["convert", "db.unfinished", "db", "--index-x", "bplus"]);
    let inside = place.path("new/.unfinished");
    std::fs::rename(place.path("db.unfinished"), &inside).unwrap();
    refused(&["salvage", "new/.unfinished", "new"]);
    place.run(&["salvage", "new/.unfinished", "db"]).succeeds();
    place.run(&["verify", "new/.unfinished"]).succeeds();
}

#[test]
fn a_failed_one_leaves_nothing() {
    let place = Place::with_records(&records());
    let mut little = place.command_with_little_room(16, "salvage db new");
    let ran = crate::Ran(little.output().unwrap());
    ran.exits(1).prints("");
    assert!(!place.path("new").exists() && !place.path("new.unfinished").exists());
    std::fs::create_dir(place.path("new")).unwrap();
    let ran = crate::Ran(little.output().unwrap());
    ran.exits(1);
    assert!(is_empty(&place.path("new")));
    place.run(&["salvage", "db", "new"]).succeeds();
}

#[test]
fn an_interrupted_one_leaves_nothing() {
    let place = Place::with_records(&records());
    let mut tables = std::fs::read_dir(place.path("db/trees/1/tables")).unwrap();
    let table = tables.next().unwrap().unwrap().path();
    // Whoever reads it waits.
    std::fs::remove_file(&table).unwrap();
    let made = Command::new("mkfifo").arg(&table).status().unwrap();
    assert!(made.success());
    let mut child = place
        .command_for_signals(&["salvage", "db", "new"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !place.path("new.unfinished/MANIFEST").exists() && start.elapsed() < LONGEST_START {
        assert_eq!(child.try_wait().unwrap(), None);
        sleep(Duration::from_millis(10));
    }
    send(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!place.path("new").exists() && !place.path("new.unfinished").exists());
}
