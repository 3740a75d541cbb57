//! What is dumped is loaded back to the same bytes, in every format.

use crate::Place;
use proptest::{collection::vec, prelude::*};
use std::collections::BTreeMap;

const FORMATS: [(&[&str], &[&str]); 4] = [
    (&[], &[]),
    (&["--hex"], &["--hex"]),
    (&["-f", "jsonl"], &["-f", "jsonl"]),
    (&["-f", "jsonl", "--hex"], &["-f", "jsonl", "--hex"]),
];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn check(records: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let place = Place::new();
    let input: String = records
        .iter()
        .map(|(k, v)| format!("{}\t{}\n", hex(k), hex(v)))
        .collect();
    place
        .run_with_input(&["load", "db", "--hex"], input.as_bytes())
        .succeeds();
    for (n, (dump, load)) in FORMATS.into_iter().enumerate() {
        let dumped = place.run(&[&["dump", "db"], dump].concat()).succeeds();
        let again = format!("db{n}");
        place
            .run_with_input(&[&["load", &again], load].concat(), &dumped.0.stdout)
            .succeeds();
        place
            .run(&["dump", &again, "--hex"])
            .succeeds()
            .prints(&input);
    }
    let shown = place.run(&["scan", "db"]).succeeds();
    place
        .run_with_input(&["load", "shown", "--escaped"], &shown.0.stdout)
        .succeeds();
    place
        .run(&["dump", "shown", "--hex"])
        .succeeds()
        .prints(&input);
}

#[test]
fn awkward_bytes_survive() {
    let awkward: [&[u8]; 16] = [
        b"",
        b"\0",
        b"\t",
        b"\n",
        b"\r",
        b"\r\n",
        b"\\",
        b"\\x41",
        b"\"",
        b"#indexy:escaped",
        b"#indexy:escaped\n",
        b"\xef\xbb\xbfbom",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        "z\u{fc}rich \u{1f980}".as_bytes(),
        "\u{2028}\u{202e}".as_bytes(),
    ];
    let mut records = BTreeMap::new();
    for (n, key) in awkward.iter().enumerate() {
        for (m, value) in awkward.iter().enumerate() {
            records.insert(
                [*key, &[n as u8, m as u8][..m % 3]].concat(),
                value.to_vec(),
            );
        }
    }
    check(&records);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 8,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn any_bytes_survive(
        records in vec((vec(any::<u8>(), 0..40), vec(any::<u8>(), 0..100)), 0..60),
    ) {
        check(&records.into_iter().collect());
    }
}

#[test]
fn text_comes_out_as_it_went_in() {
    let place = Place::new();
    let text = "C:\\new\t\\x41\na\tvalue\twith\ttabs\nz\u{fc}rich\t\u{1f980}\n";
    place
        .run_with_input(&["load", "db"], text.as_bytes())
        .succeeds();
    place.run(&["dump", "db"]).succeeds().prints(text);
}

#[test]
fn keys_alone() {
    let place = Place::new();
    place
        .run_with_input(
            &["load", "db", "-f", "lines"],
            b"b\na\n\nwith\ttab\nno line end",
        )
        .succeeds();
    place
        .run(&["dump", "db", "-f", "lines"])
        .succeeds()
        .prints("\na\nb\nno line end\nwith\\ttab\n");
    place.run(&["get", "db", "b"]).succeeds().prints("\n");
}

#[test]
fn a_large_value_survives() {
    let place = Place::new();
    let value: Vec<u8> = (0..3_000_000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    place
        .run_with_input(&["put", "db", "k", "--value-file", "-"], &value)
        .succeeds();
    let dumped = place.run(&["dump", "db"]).succeeds();
    place
        .run_with_input(&["load", "again"], &dumped.0.stdout)
        .succeeds();
    assert!(
        place
            .run(&["get", "again", "--raw", "k"])
            .succeeds()
            .0
            .stdout
            == value
    );
}
