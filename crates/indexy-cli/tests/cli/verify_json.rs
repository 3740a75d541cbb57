//! `verify --json`: one object, whatever the verdict.

use crate::Place;
use serde_json::Value;
use std::path::Path;

fn verdict(place: &Place, db: &str, code: i32) -> Value {
    let ran = place.run(&["verify", db, "--json"]).exits(code);
    let out = ran.stdout();
    assert_eq!(out.lines().count(), 1, "{}", ran.all());
    serde_json::from_str(&out).unwrap()
}

#[test]
fn a_sound_database() {
    let place = Place::with_records("a\t1\nb\t2\n");
    let json = verdict(&place, "db", 0);
    assert_eq!(json["ok"], true);
    assert_eq!(json["trees"][0]["name"], "default");
    assert_eq!(json["trees"][0]["entries"], 2);
    assert_eq!(json["trees"][0]["problems"], serde_json::json!([]));
    assert!(json["seconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn one_that_cannot_be_opened() {
    let place = Place::new();
    let json = verdict(&place, "absent", 1);
    assert_eq!(json["ok"], false);
    let error = json["error"].as_str().unwrap();
    assert!(error.contains("no such directory"), "{error}");
}

#[test]
fn a_damaged_one() {
    let records: String = (0..2000)
        .map(|i| format!("key{i:05}\tvalue of some length {i}\n"))
        .collect();
    let place = Place::with_records(&records);
    flip(&place.path("db/trees"));
    let json = verdict(&place, "db", 1);
    assert_eq!(json["ok"], false, "{json}");
    let problems = json["trees"][0]["problems"].as_array();
    let told = problems.is_some_and(|p| !p.is_empty()) || json["error"].is_string();
    assert!(told, "{json}");
}

/// Flips a byte in the middle of the largest file below `dir`.
fn flip(dir: &Path) {
    let mut files = Vec::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(at) = todo.pop() {
        for entry in at.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else {
                files.push((path.metadata().unwrap().len(), path));
            }
        }
    }
    let (_, largest) = files.into_iter().max().unwrap();
    let mut bytes = std::fs::read(&largest).unwrap();
    let middle = bytes.len() / 4;
    bytes[middle] ^= 0x40;
    std::fs::write(&largest, bytes).unwrap();
}
