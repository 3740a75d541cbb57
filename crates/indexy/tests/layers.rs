//! House rules that a compiler does not check: imports go one way (the table in `ARCHITECTURE.md`), `unsafe` stays where
//! it belongs, files stay readable.

use std::path::{Path, PathBuf};

const VOCABULARY: [&str; 8] = [
    "cost", "error", "events", "key", "limits", "poison", "sync", "Error",
];

/// What each folder may import beside the vocabulary and itself.
const MAY_IMPORT: [(&str, &[&str]); 8] = [
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
    ("framework", &["x", "y", "wal", "mem"]),
    ("db", &["framework", "x", "y", "wal", "mem", "storage"]),
];

/// Folders that may hold `unsafe`.
const UNSAFE: [&str; 2] = ["mem", "x"];
/// The one file elsewhere: the kernel writes into buffers after the call that names them.
const UNSAFE_FILE: &str = "storage/ring.rs";
const MAX_LINES: usize = 800;

struct File {
    /// Below `src`.
    path: PathBuf,
    /// Without tests and comments.
    code: String,
    lines: usize,
}

impl File {
    fn folder(&self) -> String {
        let first = self.path.components().next().unwrap();
        let name = first.as_os_str().to_str().unwrap();
        name.trim_end_matches(".rs").to_string()
    }
}

/// Files that are compiled for tests only.
fn is_test(path: &Path) -> bool {
    const TEST_ONLY: [&str; 6] = [
        "conformance",
        "fuzzing",
        "tests",
        "measure",
        "bench",
        "model",
    ];
    path.components().any(|part| {
        let name = part.as_os_str().to_str().unwrap().trim_end_matches(".rs");
        TEST_ONLY.contains(&name) || name.ends_with("_tests")
    }) || ["y/memory.rs", "storage/sim.rs"]
        .iter()
        .any(|p| path == Path::new(p))
}

fn sources() -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut todo = vec![root.clone()];
    let mut files = Vec::new();
    while let Some(at) = todo.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
                continue;
            }
            let relative = path.strip_prefix(&root).unwrap().to_path_buf();
            if relative.extension().is_none_or(|e| e != "rs") || is_test(&relative) {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let own = text.split("#[cfg(test)]\nmod ").next().unwrap();
            let code = own
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
                .map(|line| format!("{line}\n"))
                .collect();
            files.push(File {
                path: relative,
                code,
                lines: own.lines().count(),
            });
        }
    }
    assert!(files.len() > 50, "only {} files found", files.len());
    files
}

/// Every path that starts with `crate::` in `code`, trees of imports taken apart.
fn crate_paths(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let flat: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    for (at, _) in flat.match_indices("crate::") {
        // `pub(crate)::..` is no such path, `$crate::` neither.
        expand(&flat[at + "crate::".len()..], "", &mut paths);
    }
    paths
}

/// Takes the import tree at the start of `text` apart; returns what follows it.
fn expand<'a>(text: &'a str, prefix: &str, paths: &mut Vec<String>) -> &'a str {
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = expand(rest, prefix, paths);
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None => return rest.strip_prefix('}').unwrap_or(rest),
            }
        }
    }
    let end = text
        .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '*'))
        .unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let path = format!("{prefix}{name}");
    match rest.strip_prefix("::") {
        Some(rest) => expand(rest, &format!("{path}::"), paths),
        None => {
            if !name.is_empty() {
                paths.push(path);
            }
            rest
        }
    }
}

#[test]
fn import_trees_are_taken_apart() {
    let code = "use crate::{\n    error::{Error, Result},\n    mem::budget::Holder,\n    x,\n};\nlet a = crate::key::successor(k);";
    let expected = [
        "error::Error",
        "error::Result",
        "mem::budget::Holder",
        "x",
        "key::successor",
    ];
    assert_eq!(crate_paths(code), expected);
}

#[test]
fn imports_go_one_way() {
    let mut wrong = Vec::new();
    for file in sources() {
        let folder = file.folder();
        if folder == "lib" {
            continue;
        }
        let allowed = match MAY_IMPORT.iter().find(|(name, _)| *name == folder) {
            Some((_, allowed)) => *allowed,
            None if VOCABULARY.contains(&&*folder) => &[],
            None => panic!("folder {folder} is not in the table"),
        };
        for path in crate_paths(&file.code) {
            let first = path.split("::").next().unwrap();
            let may = first == folder
                || VOCABULARY.contains(&first)
                || allowed
                    .iter()
                    .any(|a| path == *a || path.starts_with(&format!("{a}::")));
            if !may {
                wrong.push(format!("{}: {path}", file.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn unsafe_stays_in_its_folders() {
    for file in sources() {
        let code = file
            .code
            .replace("unsafe_code", "")
            .replace("unsafe_op_in", "");
        let word = |w: &str| {
            code.split(|c: char| !(c.is_alphanumeric() || c == '_'))
                .any(|t| t == w)
        };
        let may = UNSAFE.contains(&&*file.folder()) || file.path == Path::new(UNSAFE_FILE);
        assert!(may || !word("unsafe"), "{}: unsafe", file.path.display());
    }
}

#[test]
fn files_stay_readable() {
    for file in sources() {
        assert!(
            file.lines <= MAX_LINES,
            "{}: {} lines",
            file.path.display(),
            file.lines
        );
    }
}

#[test]
fn file_names_are_nouns_of_the_design() {
    for file in sources() {
        let name = file.path.file_stem().unwrap().to_str().unwrap();
        let vague = [
            "utils", "util", "common", "helpers", "helper", "manager", "misc",
        ];
        assert!(!vague.contains(&name), "{}", file.path.display());
    }
}
