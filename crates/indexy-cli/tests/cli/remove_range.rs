//! `remove-range`: what it removes, and that it asks.

use crate::Place;
use std::process::{Command, Stdio};

const RECORDS: &str = "a\t1\nab\t2\nabc\t3\nb\t4\nc\t5\n";

fn left(place: &Place) -> String {
    place.run(&["scan", "db", "--keys"]).succeeds().stdout()
}

#[test]
fn what_fits_all_bounds_is_removed() {
    for (bounds, expected) in [
        (&["--prefix", "ab"][..], "a\nb\nc\n"),
        (&["--from", "b"], "a\nab\nabc\n"),
        (&["--to", "ab"], "ab\nabc\nb\nc\n"),
        (&["--from", "ab", "--to", "c"], "a\nc\n"),
        (
            &["--prefix", "a", "--from", "ab", "--to", "abc"],
            "a\nabc\nb\nc\n",
        ),
        // Nothing fits.
        (&["--from", "c", "--to", "a"], "a\nab\nabc\nb\nc\n"),
        (&["--hex", "--prefix", "6162"], "a\nb\nc\n"),
    ] {
        let place = Place::with_records(RECORDS);
        let args = [&["remove-range", "db", "--yes"][..], bounds].concat();
        place.run(&args).succeeds();
        assert_eq!(left(&place), expected, "{bounds:?}");
        place.run(&["verify", "db"]).succeeds();
    }
}

#[test]
fn without_a_bound_or_a_confirmation_nothing_is_removed() {
    let place = Place::with_records(RECORDS);
    place
        .run(&["remove-range", "db", "--yes"])
        .exits(2)
        .says("--prefix");
    place
        .run(&["remove-range", "db", "--from", "a"])
        .exits(2)
        .says("--yes");
    place
        .run_with_input(&["remove-range", "db", "--from", "a"], b"yes\n")
        .exits(2);
    // Of nothing there is nothing to ask.
    place
        .run(&["remove-range", "db", "--from", "c", "--to", "b"])
        .succeeds()
        .prints("the range has no key\n");
    assert_eq!(left(&place).lines().count(), 5);
}

/// `script` runs a command on a terminal of its own.
#[test]
fn on_a_terminal_it_asks() {
    for (answer, code, keys) in [("y\n", 0, 2), ("n\n", 1, 5), ("\n", 1, 5)] {
        let place = Place::with_records(RECORDS);
        let program = format!(
            "{} remove-range db --prefix a",
            env!("CARGO_BIN_EXE_indexy")
        );
        let child = Command::new("script")
            .args(["-qec", &program, "/dev/null"])
            .current_dir(place.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else {
            // A machine without `script`.
            return;
        };
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, answer.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains("remove 3 records"), "{said}");
        assert_eq!(left(&place).lines().count(), keys, "{said}");
        drop(input);
    }
}
