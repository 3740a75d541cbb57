//! Ranges of a scan.

use crate::Place;

#[test]
fn ranges() {
    let place = Place::with_records("a\t0\nb1\t1\nb2\t2\nb3\t3\nc\t4\n");
    let cases: [(&[&str], &str); 13] = [
        (&["--prefix", "b"], "b1\nb2\nb3\n"),
        (&["--from", "b2"], "b2\nb3\nc\n"),
        (&["--to", "b2"], "a\nb1\n"),
        (&["--from", "b1", "--to", "b3"], "b1\nb2\n"),
        (&["--prefix", "b", "--from", "b2"], "b2\nb3\n"),
        (&["--prefix", "b", "--to", "b2"], "b1\n"),
        (&["--reverse"], "c\nb3\nb2\nb1\na\n"),
        (&["--prefix", "b", "--reverse", "--limit", "2"], "b3\nb2\n"),
        (&["--limit", "0"], ""),
        (&["-n", "1"], "a\n"),
        (&["--from", "c", "--to", "a"], ""),
        (&["--from", "b", "--to", "b"], ""),
        (&["--prefix", "", "--from", ""], "a\nb1\nb2\nb3\nc\n"),
    ];
    for (args, expected) in cases {
        let keys = [&["scan", "db", "--keys"], args].concat();
        place.run(&keys).succeeds().prints(expected);
        let count = [&["scan", "db", "--count"], args].concat();
        place
            .run(&count)
            .succeeds()
            .prints(&format!("{}\n", expected.lines().count()));
    }
    place
        .run(&["scan", "db", "-n", "1", "-f", "jsonl"])
        .succeeds()
        .prints("{\"key\":\"a\",\"value\":\"0\"}\n");
}

#[test]
fn keys_that_look_like_negative_numbers() {
    let place = Place::with_records("-1\t1\n-5\t5\n7\t7\n");
    place
        .run(&["scan", "db", "--keys", "--from", "-2", "--to", "-6"])
        .succeeds()
        .prints("-5\n");
    place
        .run(&["remove-range", "db", "--from", "-5", "--to", "-6", "--yes"])
        .succeeds();
    place.run(&["compact", "db", "--from", "-1"]).succeeds();
    place
        .run(&["scan", "db", "--keys"])
        .succeeds()
        .prints("-1\n7\n");
}
