//! Keys and values that are not text: --hex, --escaped, --raw.

use crate::Place;
use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

#[test]
fn hex_in_and_out() {
    let place = Place::new();
    place.run(&["put", "db", "--hex", "00ff", "0A"]).succeeds();
    place
        .run(&["get", "db", "--hex", "00FF"])
        .succeeds()
        .prints("0a\n");
    place
        .run(&["scan", "db", "--hex", "--prefix", "00"])
        .succeeds()
        .prints("00ff\t0a\n");
    place
        .run(&["scan", "db", "--hex", "--from", "01"])
        .succeeds()
        .prints("");
    place
        .run(&["dump", "db", "--hex"])
        .succeeds()
        .prints("00ff\t0a\n");
    place.run(&["del", "db", "--hex", "00ff"]).succeeds();
    place
        .run(&["get", "db", "--hex", "00ff"])
        .exits(1)
        .says("key not found: 00ff");
    place
        .run(&["get", "db", "--hex", "0"])
        .exits(2)
        .says("KEY \"0\"");
    place
        .run(&["put", "db", "--hex", "00", "zz"])
        .exits(2)
        .says("VALUE \"zz\"");
}

#[test]
fn escapes_are_shown_and_read_on_request() {
    let place = Place::new();
    place
        .run(&["put", "db", "-e", "a\\x00\\t", "1\\n2\\\\"])
        .succeeds();
    place
        .run(&["scan", "db"])
        .succeeds()
        .prints("a\\x00\\t\t1\\n2\\\\\n");
    place
        .run(&["get", "db", "-e", "a\\x00\\t"])
        .succeeds()
        .prints("1\\n2\\\\\n");
    place
        .run(&["get", "db", "-e", "--raw", "a\\x00\\t"])
        .succeeds()
        .prints("1\n2\\");
    place
        .run(&["get", "db", "a\\x00\\t"])
        .exits(1)
        .says("key not found: a\\\\x00\\\\t");
    place.run(&["get", "db", "-e", "\\x0"]).exits(2);
}

#[test]
fn arguments_are_bytes() {
    let place = Place::new();
    let key = OsStr::from_bytes(b"\xff\xfe");
    place
        .run(&[
            OsStr::new("put"),
            OsStr::new("db"),
            key,
            OsStr::from_bytes(b"\x80"),
        ])
        .succeeds();
    place
        .run(&[OsStr::new("get"), OsStr::new("db"), key])
        .succeeds()
        .prints("\\x80\n");
    place.run(&["put", "db", "", ""]).succeeds();
    place.run(&["get", "db", ""]).succeeds().prints("\n");
    place.run(&["put", "db", "temperature", "-5"]).succeeds();
    place
        .run(&["put", "db", "--", "--key", "--value"])
        .succeeds();
    place
        .run(&["get", "db", "--", "--key"])
        .succeeds()
        .prints("--value\n");
}

#[test]
fn values_from_files() {
    let place = Place::new();
    let value: Vec<u8> = (0..=255).collect();
    place.write("value", &value);
    place
        .run(&["put", "db", "a", "--value-file", "value"])
        .succeeds();
    place
        .run_with_input(&["put", "db", "b", "--value-file", "-"], &value)
        .succeeds();
    for key in ["a", "b"] {
        let ran = place.run(&["get", "db", "--raw", key]).succeeds();
        assert_eq!(ran.0.stdout, value);
    }
    place
        .run(&["put", "db", "a", "--value-file", "absent"])
        .exits(1)
        .says("absent");
    place.run(&["put", "db", "a"]).exits(2);
}

#[test]
fn lines_that_end_in_cr_lf() {
    let place = Place::new();
    place
        .run_with_input(&["load", "kept"], b"a\t1\r\nb\t2\r\n")
        .succeeds()
        .says("--crlf");
    place
        .run(&["scan", "kept"])
        .succeeds()
        .prints("a\t1\\r\nb\t2\\r\n");
    place
        .run_with_input(&["load", "dropped", "--crlf"], b"a\t1\r\nb\t2\r\n")
        .succeeds();
    place
        .run(&["scan", "dropped"])
        .succeeds()
        .prints("a\t1\nb\t2\n");
}
