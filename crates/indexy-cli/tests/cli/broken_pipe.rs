//! A reader that goes away is no failure and no noise.

use crate::Place;
use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::Stdio,
};

#[test]
fn the_end_of_the_reader_is_quiet() {
    let records: String = (0..50_000)
        .map(|i| format!("key{i:06}\tvalue of some length {i}\n"))
        .collect();
    let place = Place::with_records(&records);
    for command in ["scan", "dump"] {
        let mut child = place
            .command(&[command, "db"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::with_capacity(64, child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "key000000\tvalue of some length 0\n");
        let mut said = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert_eq!(said, "");
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn a_full_device_is_a_failure() {
    let place = Place::with_records("a\t1\n");
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = place
        .command(&["scan", "db"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write to standard output"));
}

#[test]
fn a_verdict_does_not_depend_on_the_reader() {
    let records: String = (0..3000)
        .map(|i| format!("key{i:05}\tvalue {i}\n"))
        .collect();
    let place = Place::with_records(&records);
    let code = |args: &[&str]| {
        let mut child = place
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        child.wait().unwrap().code()
    };
    assert_eq!(code(&["verify", "db"]), Some(0));
    place.damage_a_table();
    for args in [
        &["verify", "db"][..],
        &["verify", "db", "--json"],
        &["salvage", "db", "new"],
        &["salvage", "db", "again", "--json"],
    ] {
        assert_eq!(code(args), Some(1), "{args:?}");
    }
}
