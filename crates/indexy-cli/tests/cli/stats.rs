//! Figures for people and for programs.

use crate::Place;

#[test]
fn json_is_one_object() {
    let place = Place::with_records("a\t1\nb\t2\n");
    let out = place
        .run(&["stats", "db", "--json", "--budget", "64M"])
        .succeeds()
        .stdout();
    assert_eq!(out.lines().count(), 1);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["memory_budget_bytes"], 64 << 20);
    assert!(json["memory_used_bytes"].as_u64().unwrap() <= 64 << 20);
    assert_eq!(json["per_tree"][0]["name"], "default");
}

#[test]
fn for_people() {
    let place = Place::with_records("a\t1\nb\t2\n");
    let out = place
        .run(&["stats", "db", "--budget", "64M"])
        .succeeds()
        .stdout();
    assert!(
        out.contains("default") && out.contains("of 64.0 MiB"),
        "{out}"
    );
}
