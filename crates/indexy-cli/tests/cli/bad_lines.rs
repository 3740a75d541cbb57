//! A malformed line ends the load with its number, or is skipped and counted.

use crate::Place;

#[test]
fn the_load_stops_at_a_malformed_line_and_keeps_what_came_before() {
    let place = Place::new();
    place.write("in.tsv", "a\t1\nb\t2\nno tab\nc\t3\n");
    place
        .run(&["load", "db", "in.tsv"])
        .exits(1)
        .says("in.tsv, line 3: no tab")
        .says("2 records loaded before that");
    place.run(&["scan", "db"]).succeeds().prints("a\t1\nb\t2\n");
}

#[test]
fn with_sync_durability_too() {
    let place = Place::new();
    place
        .run_with_input(
            &["load", "db", "--durability", "sync"],
            b"a\t1\nb\t2\nno tab\nc\t3\n",
        )
        .exits(1)
        .says("standard input, line 3");
    place.run(&["scan", "db"]).succeeds().prints("a\t1\nb\t2\n");
}

#[test]
fn malformed_lines_are_skipped_and_counted() {
    let place = Place::new();
    let mut input = String::from("a\t1\n");
    (0..50).for_each(|_| input.push_str("no tab\n"));
    input.push_str("b\t2\n\nc\t3");
    let ran = place
        .run_with_input(&["load", "db", "--skip-bad"], input.as_bytes())
        .succeeds();
    assert!(ran.stdout().contains("loaded 3 records"), "{}", ran.all());
    assert!(
        ran.stdout().contains("skipped 51 malformed lines"),
        "{}",
        ran.all()
    );
    assert!(
        ran.stderr().contains("skipped line 2: no tab"),
        "{}",
        ran.all()
    );
    assert!(
        ran.stderr().lines().count() < 20,
        "each bad line was named: {}",
        ran.all()
    );
    place
        .run(&["scan", "db", "--count"])
        .succeeds()
        .prints("3\n");
}

#[test]
fn a_key_over_the_limit_is_a_malformed_line() {
    let place = Place::new();
    let long = "k".repeat(65_535);
    let input = format!("a\t1\n{long}\tx\n{}\ty\n", &long[1..]);
    place
        .run_with_input(&["load", "db"], input.as_bytes())
        .exits(1)
        .says("line 2: key of 65535 bytes is over the limit of 65534");
    place
        .run_with_input(&["load", "db", "--skip-bad"], input.as_bytes())
        .succeeds();
    place
        .run(&["scan", "db", "--count"])
        .succeeds()
        .prints("2\n");
}

#[test]
fn malformed_json_and_hex_name_their_line() {
    let place = Place::new();
    place
        .run_with_input(
            &["load", "db", "-f", "jsonl"],
            b"{\"key\":\"a\",\"value\":1}\n\n{\"key\":\"b\"\n",
        )
        .exits(1)
        .says("line 3: EOF while parsing an object");
    place
        .run_with_input(&["load", "db", "--hex"], b"61\t6g\n")
        .exits(1)
        .says("line 1: \"6g\" is not hex");
    place
        .run_with_input(&["load", "db", "-e"], b"a\\q\tb\n")
        .exits(1)
        .says("line 1: unknown escape \\q");
    place.run(&["scan", "db"]).succeeds().prints("a\t1\n");
}

#[test]
fn a_file_of_keys_taken_for_tsv_is_explained() {
    let place = Place::new();
    place
        .run_with_input(&["load", "db"], b"just a key\n")
        .exits(1)
        .says("--format lines");
}
