//! Damaged files and files of another version: `verify` fails and names them.

use crate::Place;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A database with a table, a log that is needed, and a manifest.
fn damaged_place() -> Place {
    let records: String = (0..3000).map(|i| format!("key{i}\tvalue{i}\n")).collect();
    let place = Place::with_records(&records);
    place.run(&["verify", "db"]).succeeds();
    place
}

/// The files below `dir`, largest first.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push(path);
        }
    }
    all.sort_by_key(|path| std::cmp::Reverse(fs::metadata(path).unwrap().len()));
    all
}

/// `verify` while byte `at` of `file` is another one; then the file is put right.
#[track_caller]
fn verify_with(place: &Place, file: &Path, at: usize, change: u8) {
    let whole = fs::read(file).unwrap();
    let mut damaged = whole.clone();
    damaged[at] ^= change;
    fs::write(file, damaged).unwrap();
    let ran = place.run(&["verify", "db"]).exits(1);
    let name = file.file_name().unwrap().to_str().unwrap();
    let told = ran.stderr() + &ran.stdout();
    assert!(
        told.contains(name),
        "{} is not named: {}",
        file.display(),
        ran.all()
    );
    fs::write(file, whole).unwrap();
    place.run(&["verify", "db"]).succeeds();
}

#[test]
fn of_a_table_is_found() {
    let place = damaged_place();
    let table = &files(&place.path("db/trees"))[0];
    let len = fs::metadata(table).unwrap().len() as usize;
    for at in [10, len / 3, len / 2] {
        verify_with(&place, table, at, 4);
    }
}

#[test]
fn of_a_page_is_found() {
    let records: String = (0..3000).map(|i| format!("key{i}\tvalue{i}\n")).collect();
    let place = Place::new();
    place
        .run_with_input(
            &["load", "db", "-q", "--index-y", "bplus"],
            records.as_bytes(),
        )
        .succeeds();
    let pages = &files(&place.path("db/trees"))[0];
    verify_with(&place, pages, 20_000, 4);
}

#[test]
fn of_the_log_is_found() {
    let place = damaged_place();
    let log = &files(&place.path("db/log"))[0];
    for at in [0, 20, 40] {
        verify_with(&place, log, at, 1);
    }
}

#[test]
fn of_the_manifest_is_found() {
    let place = damaged_place();
    let manifest = place.path("db/MANIFEST");
    let len = fs::metadata(&manifest).unwrap().len() as usize;
    for at in [0, 17, len / 2, len - 1] {
        verify_with(&place, &manifest, at, 8);
    }
}

#[test]
fn another_format_version_is_named() {
    let place = damaged_place();
    let manifest = place.path("db/MANIFEST");
    let mut bytes = fs::read(&manifest).unwrap();
    bytes[8] = 9;
    fs::write(&manifest, bytes).unwrap();
    for args in [
        &["verify", "db"][..],
        &["get", "db", "key1"],
        &["put", "db", "k", "v"],
    ] {
        place
            .run(args)
            .exits(1)
            .says("MANIFEST")
            .says("format version 9")
            .prints("");
    }
}

#[test]
fn what_to_do_is_said_and_what_can_be_read_is_written() {
    let records: String = (0..3000)
        .map(|i| format!("key{i:05}\tvalue {i}\n"))
        .collect();
    let place = Place::with_records(&records);
    let mut tables = fs::read_dir(place.path("db/trees/1/tables")).unwrap();
    let table = tables.next().unwrap().unwrap().path();
    let mut bytes = fs::read(&table).unwrap();
    // A page in the middle: there are records before it.
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(table, bytes).unwrap();
    let ran = place.run(&["verify", "db"]).exits(1).says("indexy salvage");
    let counted = "DAMAGED  default: records not counted (0 in memory, 1 damaged place on disk)";
    assert!(ran.stdout().contains(counted), "{}", ran.all());
    for command in ["dump", "scan"] {
        let ran = place.run(&[command, "db"]).exits(1);
        let lines = ran.stdout().lines().count();
        assert!((1..3000).contains(&lines), "{command}: {lines}");
        assert!(records.starts_with(&ran.stdout()), "{command}");
    }
}
