//! Ctrl-C, input that breaks off and a full device during a load: the database is consistent, the
//! user knows how far it came, if anybody does.

use crate::{Place, send};
use std::{
    io::{Read as _, Write as _},
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{Command, Stdio},
    time::Duration,
};

#[test]
fn a_signal_stops_the_load_in_good_order() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let place = Place::new();
        let mut child = place
            .command_for_signals(&["load", "db"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The input stays open: the load waits for more when the signal comes.
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"a\t1\nb\t2\nc\t3\nhalf a li").unwrap();
        stdin.flush().unwrap();
        std::thread::sleep(Duration::from_millis(1500));
        send(&child, signal);
        let mut said = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{said}");
        assert!(said.contains("interrupted after line 3"), "{said}");
        assert!(said.contains("3 records loaded"), "{said}");
        drop(stdin);
        place.run(&["verify", "db"]).succeeds();
        place
            .run(&["scan", "db", "--count"])
            .succeeds()
            .prints("3\n");
    }
}

/// As `timeout` does it: to its child, and then to its group.
#[test]
fn a_signal_that_comes_twice_at_once_is_one() {
    let place = Place::new();
    let mut child = place
        .command_for_signals(&["load", "db"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"a\t1\nb\t2\n").unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let id = child.id();
    let twice = format!("kill -TERM {id}; sleep 0.001; kill -TERM {id}");
    let sent = Command::new("sh").args(["-c", &twice]).status().unwrap();
    assert!(sent.success());
    let ran = crate::Ran(child.wait_with_output().unwrap());
    ran.exits(143).says("interrupted after line 2");
    drop(stdin);
    place.run(&["scan", "db", "--count"]).prints("2\n");
}

#[test]
fn a_second_signal_kills() {
    let place = Place::new();
    // Nobody reads what it says: it cannot end in good order.
    let (unread, mut full) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&full, true).unwrap();
    while full.write(&[b'x'; 4096]).is_ok() {}
    while full.write(b"x").is_ok() {}
    rustix::io::ioctl_fionbio(&full, false).unwrap();
    let mut child = place
        .command_for_signals(&["load", "db"])
        .stdin(Stdio::piped())
        .stderr(full)
        .spawn()
        .unwrap();
    let _stdin = child.stdin.take().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    send(&child, "-INT");
    std::thread::sleep(Duration::from_millis(1500));
    assert!(child.try_wait().unwrap().is_none());
    send(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(143));
    drop(unread);
}

#[test]
fn a_signal_that_the_parent_ignores_does_nothing() {
    let place = Place::new();
    let script = format!("trap '' HUP; exec {} load db", env!("CARGO_BIN_EXE_indexy"));
    let mut child = Command::new("sh")
        .args(["-c", &script])
        .current_dir(place.0.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"a\t1\n").unwrap();
    std::thread::sleep(Duration::from_millis(1000));
    send(&child, "-HUP");
    std::thread::sleep(Duration::from_millis(300));
    stdin.write_all(b"b\t2\n").unwrap();
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    place
        .run(&["scan", "db", "--count"])
        .succeeds()
        .prints("2\n");
}

#[test]
fn what_came_before_the_input_broke_off_is_there() {
    let place = Place::new();
    let (mut input, mut far) = UnixStream::pair().unwrap();
    far.write_all(b"a\t1\nb\t2\n").unwrap();
    // The far end goes away with something unread: the reader gets an error behind what it sent.
    input.write_all(b"unread").unwrap();
    drop(far);
    let mut load = place.command(&["load", "db"]);
    let ran = load.stdin(OwnedFd::from(input)).output().unwrap();
    crate::Ran(ran)
        .exits(1)
        .says("cannot read standard input")
        .says("2 records loaded before that");
    place.run(&["scan", "db"]).prints("a\t1\nb\t2\n");
}

#[test]
fn what_may_be_lost_is_not_counted() {
    let place = Place::new();
    let records: String = (0..40_000u64)
        .map(|i| {
            format!(
                "key{}\tvalue of some length\n",
                i.wrapping_mul(0x9e37_79b9) % 99_991
            )
        })
        .collect();
    place.write("records.tsv", records);
    let mut little = place.command_with_little_room(512, "load db records.tsv -q");
    crate::Ran(little.output().unwrap())
        .exits(1)
        .says("may be lost")
        .prints("");
}
