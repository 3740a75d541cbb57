//! `salvage`: what can be read of a damaged database, in a new one.

use crate::Place;
use serde_json::Value;

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
    place.run(&["salvage", "absent", "other"]).exits(1);
}

#[test]
fn what_is_lost_is_told() {
    let place = Place::with_records(&records());
    let tables = place.path("db/trees/1/tables");
    let table = std::fs::read_dir(tables).unwrap().next().unwrap().unwrap();
    let mut bytes = std::fs::read(table.path()).unwrap();
    bytes[4096 + 100] ^= 1;
    std::fs::write(table.path(), bytes).unwrap();
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
