//! House rules that a compiler does not check: imports go one way and never in a circle, `unsafe`
//! stays where it belongs, text fits the page, and what is cited exists.
//!
//! `source` reads the crate's modules, `imports` traces names to files; a rule stands beside the
//! bad samples that show that it can fail.

mod circles;
mod citations;
mod imports;
mod source;
mod texts;
mod words;

use source::{Crate, Files, sample};
use std::path::Path;

/// What every folder may import, and `cost`, which is a page of the documentation.
const VOCABULARY: [&str; 8] = [
    "cost", "error", "events", "key", "limits", "poison", "sync", "Error",
];

/// What each folder may import beside the vocabulary and itself: the table in `ARCHITECTURE.md`.
const MAY_IMPORT: [(&str, &[&str]); 9] = [
    ("mem", &[]),
    ("storage", &["mem::aligned"]),
    ("x", &["mem"]),
    (
        "y",
        &[
            "mem::budget",
            "mem::aligned",
            "mem::frames",
            "storage",
            "x::Order",
        ],
    ),
    ("index_y", &["x::Order", "y"]),
    ("wal", &["storage", "mem::budget", "mem::append_buffer"]),
    ("versions", &["x", "y::lsm", "mem"]),
    ("framework", &["x", "y", "wal", "mem", "versions"]),
    (
        "db",
        &["framework", "x", "y", "wal", "mem", "storage", "versions"],
    ),
];

/// Folders that may hold `unsafe`.
const UNSAFE: [&str; 2] = ["mem", "x"];
/// Files elsewhere: the kernel writes into buffers after the call that names them; slices of mapped
/// files, and the handler of their faults.
const UNSAFE_FILES: [&str; 3] = [
    "storage/ring.rs",
    "storage/mapped/segments.rs",
    "storage/mapped/faults.rs",
];

fn product_files() -> Files {
    source::read_files(Path::new("src"))
}

/// The modules of the product: what a build without tests compiles.
fn product() -> Crate {
    let krate = Crate::read(&product_files());
    let files = krate.files().len();
    assert!(files > 50, "only {files} files found");
    krate
}

/// The folder of `src`, or the file in it.
fn room(file: &str) -> &str {
    let first = file.split('/').next().unwrap();
    first.trim_end_matches(".rs")
}

/// Imports that the table does not allow.
fn forbidden_imports(krate: &Crate) -> Vec<String> {
    let mut wrong = Vec::new();
    for (at, module) in krate.modules.iter().enumerate().skip(1) {
        let room = room(&module.file);
        let allowed = match MAY_IMPORT.iter().find(|(name, _)| *name == room) {
            Some((_, allowed)) => *allowed,
            None if VOCABULARY.contains(&room) => &[],
            None => panic!("folder {room} is not in the table"),
        };
        let imports = module.imports.iter().map(|import| &import.path);
        let named = module.named.iter().map(|named| &named.path);
        for path in imports.chain(named) {
            let Some(path) = imports::from_root(krate, at, path) else {
                continue;
            };
            let first = path.split("::").next().unwrap();
            let may = first == room
                || VOCABULARY.contains(&first)
                || allowed
                    .iter()
                    .any(|a| path == *a || path.starts_with(&format!("{a}::")));
            if !may {
                wrong.push(format!("{}: {path}", module.file));
            }
        }
    }
    wrong
}

#[test]
fn imports_go_one_way() {
    let wrong = forbidden_imports(&product());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn forbidden_imports_are_found() {
    let krate = sample(&[
        ("lib.rs", "mod x; mod y; mod key;"),
        (
            "x/mod.rs",
            "mod deep; use crate::mem::Arena; pub struct Order;",
        ),
        (
            "x/deep.rs",
            "use super::Order; fn f() { super::super::y::g() }",
        ),
        ("y.rs", "use crate::x::{Order, Other}; use std::fmt;"),
        ("key.rs", "use crate::limits; use crate::x;"),
    ]);
    assert_eq!(
        forbidden_imports(&krate),
        ["x/deep.rs: y::g", "y.rs: x::Other", "key.rs: x"]
    );
}

/// Files with `unsafe` where none belongs.
fn stray_unsafe(krate: &Crate) -> Vec<&str> {
    let stray = krate.modules.iter().filter(|module| {
        let may =
            UNSAFE.contains(&room(&module.file)) || UNSAFE_FILES.contains(&module.file.as_str());
        !may && module.words.contains("unsafe")
    });
    stray.map(|module| module.file.as_str()).collect()
}

#[test]
fn unsafe_stays_in_its_folders() {
    assert_eq!(stray_unsafe(&product()), [""; 0]);
}

#[test]
fn stray_unsafe_is_found() {
    let block = "fn f() { unsafe { g() } }";
    let krate = sample(&[
        (
            "lib.rs",
            "#![deny(unsafe_op_in_unsafe_fn)] mod mem; mod storage; mod wal;",
        ),
        ("mem.rs", block),
        ("storage/mod.rs", "mod ring; mod buffered;"),
        ("storage/ring.rs", block),
        ("storage/buffered.rs", "// unsafe"),
        ("wal.rs", block),
    ]);
    assert_eq!(stray_unsafe(&krate), ["wal.rs"]);
}
