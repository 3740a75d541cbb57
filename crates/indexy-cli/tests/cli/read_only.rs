//! Commands that read leave the directory as it is.

use crate::Place;
use std::{collections::BTreeMap, fs, path::Path};

fn contents(dir: &Path, into: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            contents(&path, into);
        } else {
            into.insert(path.display().to_string(), fs::read(&path).unwrap());
        }
    }
}

#[test]
fn reading_writes_nothing() {
    let records: String = (0..5000).map(|i| format!("k{i}\tv{i}\n")).collect();
    let place = Place::with_records(&records);
    place.run(&["del", "db", "k17"]).succeeds();
    let mut before = BTreeMap::new();
    contents(&place.path("db"), &mut before);
    for args in [
        &["get", "db", "k1"][..],
        &["scan", "db"],
        &["stats", "db"],
        &["verify", "db"],
        &["dump", "db"],
    ] {
        place.run(args).succeeds();
    }
    let mut after = BTreeMap::new();
    contents(&place.path("db"), &mut after);
    assert!(
        before == after,
        "{:?} became {:?}",
        before.keys(),
        after.keys()
    );
}
