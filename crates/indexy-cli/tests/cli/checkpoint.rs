//! A checkpoint opens by itself and only goes where nothing is.

use crate::{Place, is_empty, send};
use std::{
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

/// A command that has not begun by then does not.
const LONGEST_START: Duration = Duration::from_secs(30);

#[test]
fn a_checkpoint_holds_what_the_database_held() {
    let place = Place::with_records("a\t1\nb\t2\n");
    place.run(&["checkpoint", "db", "copy"]).succeeds();
    place.run(&["put", "db", "c", "3"]).succeeds();
    place
        .run(&["scan", "copy"])
        .succeeds()
        .prints("a\t1\nb\t2\n");
    place.run(&["verify", "copy"]).succeeds();
    std::fs::create_dir(place.path("empty")).unwrap();
    place.run(&["checkpoint", "db", "empty"]).succeeds();
    place
        .run(&["scan", "empty", "--count"])
        .succeeds()
        .prints("3\n");
}

#[test]
fn a_directory_with_something_in_it_is_refused() {
    let place = Place::with_records("a\t1\n");
    std::fs::create_dir(place.path("full")).unwrap();
    place.write("full/precious", "x");
    place
        .run(&["checkpoint", "db", "full"])
        .exits(1)
        .says("exists and is not empty");
    assert_eq!(std::fs::read(place.path("full/precious")).unwrap(), b"x");
    assert_eq!(place.path("full").read_dir().unwrap().count(), 1);
}

#[test]
fn of_nothing_there_is_none() {
    let place = Place::new();
    place
        .run(&["checkpoint", "db", "copy"])
        .exits(1)
        .says("no such directory: db");
    assert!(is_empty(place.0.path()));
}

#[test]
fn none_is_made_inside_of_the_database() {
    let place = Place::with_records("a\t1\n");
    for inside in ["db", "db/copy", "db/log/copy"] {
        place.run(&["checkpoint", "db", inside]).exits(1);
    }
    assert!(!place.path("db/copy").exists());
    place.run(&["verify", "db"]).succeeds();
}

#[test]
fn who_reads_does_not_stand_in_the_way() {
    let place = Place::with_records("a\t1\n");
    let lock = std::fs::File::open(place.path("db/LOCK")).unwrap();
    lock.lock_shared().unwrap();
    place.run(&["put", "db", "b", "2"]).exits(1);
    place.run(&["checkpoint", "db", "copy"]).succeeds();
    drop(lock);
    place.run(&["scan", "copy"]).succeeds().prints("a\t1\n");
}

/// Whole, or not there at all.
#[test]
fn an_interrupted_one_leaves_nothing() {
    let records: String = (0..20_000).map(|i| format!("key{i:06}\t{i}\n")).collect();
    let place = Place::with_records(&records);
    let copy = place.path("copy");
    for (there, lock) in [(false, false), (true, false), (true, true)] {
        if there {
            std::fs::create_dir(&copy).unwrap();
        }
        if lock {
            place.write("copy/LOCK", "");
        }
        let unfinished = match there {
            true => copy.join(".unfinished"),
            false => place.path("copy.unfinished"),
        };
        let mut child = place
            .command_for_signals(&["checkpoint", "db", "copy"])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        while !unfinished.join("LOCK").exists() && child.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(1));
        }
        if child.try_wait().unwrap().is_none() {
            send(&child, "-INT");
        }
        let code = child.wait().unwrap().code();
        assert!(!unfinished.exists());
        match code {
            Some(130) if there => {
                assert_eq!(copy.read_dir().unwrap().count(), usize::from(lock));
                std::fs::remove_dir_all(&copy).unwrap();
            }
            Some(130) => assert!(!copy.exists()),
            code => {
                assert_eq!(code, Some(0));
                place.run(&["verify", "copy"]).succeeds();
                std::fs::remove_dir_all(&copy).unwrap();
            }
        }
    }
}

/// The copy reads from a pipe that nobody writes to.
#[test]
fn one_that_waits_is_interrupted() {
    let place = Place::with_records("a\t1\n");
    std::fs::create_dir(place.path("copy")).unwrap();
    place.write("copy/LOCK", "");
    // A database that is only read is copied file by file.
    let lock = std::fs::File::open(place.path("db/LOCK")).unwrap();
    lock.lock_shared().unwrap();
    let made = Command::new("mkfifo").arg(place.path("db/log/0")).status();
    assert!(made.unwrap().success());
    let mut child = place
        .command_for_signals(&["checkpoint", "db", "copy"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let log = place.path("copy/.unfinished/log");
    let start = Instant::now();
    while !log.exists() && start.elapsed() < LONGEST_START {
        assert_eq!(child.try_wait().unwrap(), None);
        sleep(Duration::from_millis(5));
    }
    sleep(Duration::from_millis(300));
    // Beside what was there, nothing but what is not whole.
    assert_eq!(place.path("copy").read_dir().unwrap().count(), 2);
    send(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(place.path("copy").read_dir().unwrap().count(), 1);
}

#[test]
fn a_lock_file_alone_is_nothing() {
    let place = Place::with_records("a\t1\n");
    std::fs::create_dir(place.path("copy")).unwrap();
    place.write("copy/LOCK", "");
    let lock = std::fs::File::open(place.path("copy/LOCK")).unwrap();
    lock.lock().unwrap();
    place
        .run(&["checkpoint", "db", "copy"])
        .exits(1)
        .says("copy is in use by another process");
    assert_eq!(place.path("copy").read_dir().unwrap().count(), 1);
    drop(lock);
    place.run(&["checkpoint", "db", "copy"]).succeeds();
    assert!(!place.path("copy/.unfinished").exists());
    place.run(&["verify", "copy"]).succeeds();
}
