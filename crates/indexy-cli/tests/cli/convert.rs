//! `convert`: the same records under another pair, or nothing at all.

use crate::{Place, send};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

/// Every file below `dir`, but for the lock.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(at) = todo.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else {
                all.insert(path.clone(), fs::read(path).unwrap());
            }
        }
    }
    all
}

/// Names in the directory of the test.
fn names(place: &Place) -> Vec<String> {
    let entries = fs::read_dir(place.0.path()).unwrap();
    let mut names: Vec<String> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// `n` records, more than a small budget holds.
fn many(n: u32) -> String {
    (0..n)
        .map(|i| {
            format!(
                "{:08x}\t{i} {}\n",
                i.wrapping_mul(0x9E37_79B1),
                "x".repeat(80)
            )
        })
        .collect()
}

fn index_of(place: &Place, db: &str, tree: &str) -> String {
    let json = place.run(&["stats", db, "--json"]).succeeds().stdout();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let trees = json["per_tree"].as_array().unwrap();
    let tree = trees.iter().find(|t| t["name"] == tree).unwrap();
    format!(
        "{}-{}",
        tree["index_x"].as_str().unwrap(),
        tree["index_y"].as_str().unwrap()
    )
}

#[test]
fn every_record_of_every_tree_moves_to_the_new_pair() {
    let place = Place::new();
    let records = many(40_000);
    let load = ["load", "db", "-q", "--budget", "8M"];
    place.run_with_input(&load, records.as_bytes()).succeeds();
    let small = ["put", "db", "--tree", "näme", "--hex", "00ff", ""];
    place.run(&small).succeeds();
    place
        .run_with_input(
            &[
                "load",
                "db",
                "-q",
                "--tree",
                "paged",
                "--index-y",
                "bplus:8K",
            ],
            b"k\tv\n",
        )
        .succeeds();
    let before = files(&place.path("db"));
    let ran = place
        .run(&[
            "convert",
            "db",
            "new",
            "--index-x",
            "bplus",
            "--index-y",
            "bplus:4K",
            "--budget",
            "8M",
        ])
        .succeeds();
    let said = ran.stdout();
    assert!(
        said.contains("default: art + lsm -> bplus + bplus:4096, 40,000 records"),
        "{said}"
    );
    assert!(
        said.contains("converted 40,002 records of 3 trees to new"),
        "{said}"
    );
    assert!(files(&place.path("db")) == before, "SRC was changed");
    assert_eq!(names(&place), ["db", "new"]);
    for tree in ["default", "näme", "paged"] {
        assert_eq!(index_of(&place, "new", tree), "bplus-bplus:4096");
        let dump = |db| {
            place
                .run(&["dump", db, "--hex", "--tree", tree])
                .succeeds()
                .stdout()
        };
        assert_eq!(dump("db"), dump("new"), "{tree}");
    }
    place.run(&["verify", "new"]).succeeds();
    // And back.
    let back = [
        "convert",
        "new",
        "back",
        "--index-x",
        "art",
        "--index-y",
        "lsm",
        "-q",
    ];
    place.run(&back).succeeds().prints("");
    assert_eq!(index_of(&place, "back", "default"), "art-lsm");
    let count = ["scan", "back", "--count"];
    place.run(&count).succeeds().prints("40000\n");
}

#[test]
fn named_trees_alone_change() {
    let place = Place::with_records("a\t1\nb\t2\n");
    for tree in ["x", "y"] {
        place
            .run(&["put", "db", "--tree", tree, "k", "v"])
            .succeeds();
    }
    place
        .run(&[
            "convert",
            "db",
            "new",
            "--index-y",
            "bplus",
            "--tree",
            "x",
            "--tree",
            "y",
        ])
        .succeeds();
    assert_eq!(index_of(&place, "new", "default"), "art-lsm");
    assert_eq!(index_of(&place, "new", "x"), "art-bplus:4096");
    assert_eq!(index_of(&place, "new", "y"), "art-bplus:4096");
    place
        .run(&["scan", "new"])
        .succeeds()
        .prints("a\t1\nb\t2\n");
    place
        .run(&[
            "convert",
            "db",
            "other",
            "--index-y",
            "bplus",
            "--tree",
            "z",
        ])
        .exits(1)
        .says("no tree named \"z\"; there is \"default\", \"x\", \"y\"");
    assert_eq!(names(&place), ["db", "new"]);
}

#[test]
fn what_cannot_be_a_destination_is_refused() {
    let place = Place::with_records("a\t1\n");
    let before = files(&place.path("db"));
    fs::create_dir(place.path("empty")).unwrap();
    place.write("file", "precious");
    let convert = |dest: &str| place.run(&["convert", "db", dest, "--index-y", "bplus"]);
    for dest in ["db", "./db", "empty/../db"] {
        convert(dest).exits(1).says("SRC and DEST are the same");
    }
    convert("empty").exits(1).says("empty exists");
    convert("file").exits(1).says("file exists");
    convert("db/inside").exits(1).says("is inside of db");
    convert("absent/new")
        .exits(1)
        .says("cannot write to absent");
    assert!(files(&place.path("db")) == before);
    assert_eq!(fs::read(place.path("file")).unwrap(), b"precious");
    assert_eq!(names(&place), ["db", "empty", "file"]);
}

#[test]
fn what_cannot_be_a_source_leaves_nothing() {
    let place = Place::new();
    let convert = |src: &str| place.run(&["convert", src, "new", "--index-y", "bplus"]);
    convert("absent").exits(1).says("no such directory: absent");
    fs::create_dir(place.path("other")).unwrap();
    convert("other").exits(1).says("other is not a database");
    place.write("file", "x");
    convert("file").exits(1).says("file is a file");
    assert_eq!(names(&place), ["file", "other"]);
}

#[test]
fn budgets_are_for_both() {
    let place = Place::with_records("a\t1\n");
    let convert = |budget: &str| {
        place.run(&[
            "convert",
            "db",
            "new",
            "--index-y",
            "bplus",
            "--budget",
            budget,
        ])
    };
    convert("3M").exits(1).says("two databases are open");
    assert_eq!(names(&place), ["db"]);
    convert("4M").succeeds();
}

#[test]
fn what_a_killed_conversion_left_is_named_and_kept() {
    let place = Place::with_records("a\t1\n");
    fs::create_dir(place.path("new.unfinished")).unwrap();
    place.write("new.unfinished/MANIFEST", "half");
    place
        .run(&["convert", "db", "new", "--index-y", "bplus"])
        .exits(1)
        .says("new.unfinished exists");
    assert!(place.path("new.unfinished/MANIFEST").exists());
    assert!(!place.path("new").exists());
}

#[test]
fn a_signal_leaves_nothing() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let place = Place::with_records(&many(60_000));
        let child = place
            .command_for_signals(&[
                "convert",
                "db",
                "new",
                "--index-y",
                "bplus",
                "--budget",
                "4M",
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Once the new database's folder is there, the conversion has begun; it takes a good while
        // longer.
        let start = Instant::now();
        while !place.path("new.unfinished/trees/1").exists() {
            assert!(start.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
        send(&child, signal);
        let ran = crate::Ran(child.wait_with_output().unwrap());
        ran.exits(code).says("interrupted; nothing was converted");
        assert_eq!(names(&place), ["db"]);
        place.run(&["verify", "db"]).succeeds();
    }
}
