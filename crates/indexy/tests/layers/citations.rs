//! Every path, decision and section that code and documents cite exists.
//!
//! Read are Markdown outside code fences, and comments in Rust. A path is cited from the
//! repository's root (`docs/design.md#limits`), or in backticks by its last parts
//! (`wal/segment.rs`). Links of Markdown are relative to their document.

use crate::texts::{Text, fenced};
use std::collections::{BTreeMap, BTreeSet};

/// Folders whose citations are not yet repaired. Empty when they are.
const KNOWN: &[&str] = &[];

/// Where a path from the root starts.
const ROOTS: [&str; 6] = ["docs/", "crates/", "examples/", "fuzz/", ".ci/", ".github/"];
/// Folders of a database's directory.
const IN_A_DATABASE: [&str; 4] = ["images/", "incoming/", "log/", "trees/N/"];
/// The name that stands for one of the reader's choice.
const PLACEHOLDER: &str = "/foo";
/// What a path in backticks ends with.
const ENDINGS: [&str; 4] = [".rs", ".md", ".toml", "/"];

/// The repository as citations see it.
struct Library {
    paths: Vec<String>,
    /// Headings of each Markdown document, as links name them.
    headings: BTreeMap<String, Vec<String>>,
    /// Names of functions that begin with the number of an invariant: the tests that break it.
    tests: BTreeSet<String>,
}

impl Library {
    fn of(paths: Vec<String>, texts: &[Text]) -> Self {
        let documents = texts.iter().filter(|text| text.is_markdown());
        let headings = documents.map(|text| (text.path.clone(), headings(&text.text)));
        let sources = texts.iter().filter(|text| !text.is_markdown());
        let tests = sources.flat_map(|text| text.text.split("fn ").skip(1).filter_map(test_name));
        Self {
            headings: headings.collect(),
            tests: tests.map(String::from).collect(),
            paths,
        }
    }

    /// A file or folder has this path from the root on.
    fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let folder = format!("{path}/");
        let mut paths = self.paths.iter();
        path.is_empty() || paths.any(|known| known == path || known.starts_with(&folder))
    }

    /// The path of some file or folder ends with these parts.
    fn has_ending(&self, parts: &str) -> bool {
        let (file, folder) = match parts.strip_suffix('/') {
            Some(folder) => (None, folder),
            None => (Some(format!("/{parts}")), parts),
        };
        let within = format!("/{folder}/");
        self.paths.iter().any(|known| {
            let known = format!("/{known}");
            file.as_ref().is_some_and(|file| known.ends_with(file)) || known.contains(&within)
        })
    }

    /// `document` has the section `anchor`.
    fn has_section(&self, document: &str, anchor: &str) -> bool {
        let headings = self.headings.get(document);
        headings.is_some_and(|headings| headings.iter().any(|heading| heading == anchor))
    }

    fn has_decision(&self, number: &str) -> bool {
        let start = format!("docs/decisions/{number}-");
        self.paths.iter().any(|path| path.starts_with(&start))
    }

    /// `path#section` from the root on; what is wrong with it, if anything.
    fn check_path(&self, cited: &str) -> Option<String> {
        let (path, anchor) = cited.split_once('#').unwrap_or((cited, ""));
        if !self.has(path) {
            return Some(format!("no {path}"));
        }
        let found = anchor.is_empty() || self.has_section(path, anchor);
        (!found).then(|| format!("no section #{anchor} in {path}"))
    }
}

/// The anchors of a document's headings.
fn headings(markdown: &str) -> Vec<String> {
    let code = fenced(markdown, |_| true);
    let lines = markdown.lines().enumerate();
    lines
        .filter(|(at, line)| line.starts_with('#') && !code.contains(at))
        .map(|(_, line)| anchor(line.trim_start_matches('#').trim()))
        .collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    let lower = kept.flat_map(char::to_lowercase);
    lower.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Lines with prose in them, each with its number: comments, or Markdown outside fences.
fn prose(text: &Text) -> Vec<(usize, &str)> {
    let lines = (1..).zip(text.text.lines());
    if text.is_markdown() {
        let code = fenced(&text.text, |_| true);
        return lines.filter(|(at, _)| !code.contains(&(at - 1))).collect();
    }
    let comment = |(at, line): (usize, &'_ str)| {
        let line = line.trim_start();
        let start = if line.starts_with("//") {
            Some(0)
        } else {
            line.find(" // ")
        };
        start.map(|start| (at, start, line.len()))
    };
    lines
        .filter_map(|(at, line)| {
            comment((at, line)).map(|(at, start, _)| (at, &line.trim_start()[start..]))
        })
        .collect()
}

/// Everything that `text` cites and the library does not have.
fn missing(text: &Text, library: &Library) -> Vec<String> {
    let mut wrong = Vec::new();
    for (at, line) in prose(text) {
        let mut found: Vec<String> = Vec::new();
        if text.is_markdown() {
            found.extend(links(line).filter_map(|link| check_link(text, link, library)));
        }
        found.extend(paths_from_root(line).filter_map(|path| library.check_path(path)));
        let quoted = quoted_paths(line).filter(|path| !library.has_ending(path));
        found.extend(quoted.map(|path| format!("no `{path}`")));
        let tests = line.split('`').skip(1).step_by(2);
        let tests = tests.filter(|word| test_name(word) == Some(word));
        let lost = tests.filter(|name| !library.tests.contains(*name));
        found.extend(lost.map(|name| format!("no test {name}")));
        let decisions = numbers_after(line, "decision ").chain(numbers_after(line, "decisions "));
        let decisions = decisions.filter(|number| !library.has_decision(number));
        found.extend(decisions.map(|number| format!("no decision {number}")));
        let sections = numbers_after(line, "design ");
        found.extend(sections.map(|number| format!("design {number}: cite docs/design.md#..")));
        found.sort();
        found.dedup();
        wrong.extend(
            found
                .into_iter()
                .map(|what| format!("{}:{at}: {what}", text.path)),
        );
    }
    wrong
}

/// Targets of `[..](target)`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1);
    targets.filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
}

fn check_link(text: &Text, link: &str, library: &Library) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
    let mut parts: Vec<&str> = text.path.split('/').collect();
    if !target.is_empty() {
        parts.pop();
        for part in target.split('/') {
            match part {
                "." | "" => {}
                ".." => {
                    parts.pop();
                }
                name => parts.push(name),
            }
        }
    }
    let path = parts.join("/");
    let path = if anchor.is_empty() {
        path
    } else {
        format!("{path}#{anchor}")
    };
    library.check_path(&path)
}

fn is_path_character(c: char) -> bool {
    c.is_alphanumeric() || "_-./#".contains(c)
}

/// Words that start like a path from the root.
fn paths_from_root(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !is_path_character(c) && !"{},*<>~:".contains(c));
    words
        .filter(|word| ROOTS.iter().any(|root| word.starts_with(root)))
        // A pattern stands for several.
        .filter(|word| !word.contains(['{', '*', '<', ':']) && !word.contains(PLACEHOLDER))
        .map(|word| word.trim_end_matches(['.', ',', '-', '/', '>']))
        .filter(|word| word.contains('/'))
}

/// Words in backticks that are a file, or a folder with its slash.
fn quoted_paths(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter(|word| {
        let path = ENDINGS
            .iter()
            .any(|end| word.len() > end.len() && word.ends_with(end));
        let rooted = ROOTS.iter().any(|root| word.starts_with(root));
        let ours = path && !rooted && !IN_A_DATABASE.contains(word);
        ours && !word.starts_with(['/', '.']) && word.chars().all(is_path_character)
    })
}

/// The name at the start of `text`, if it begins with the number of an invariant.
fn test_name(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let name = &text[..end.unwrap_or(text.len())];
    let mut start = name.bytes();
    let numbered = start.next() == Some(b'i')
        && start.next().is_some_and(|digit| digit.is_ascii_digit())
        && start.next() == Some(b'_');
    numbered.then_some(name)
}

/// Numbers that follow `word`, with their dots.
fn numbers_after<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(word).filter_map(move |(at, _)| {
        let rest = &line[at + word.len()..];
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'));
        let number = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
        (!number.is_empty()).then_some(number)
    })
}

#[test]
fn what_is_cited_exists() {
    let texts = crate::texts::all();
    let library = Library::of(crate::texts::paths(), &texts);
    let mut wrong = Vec::new();
    for text in &texts {
        let known = KNOWN.iter().any(|folder| text.path.starts_with(folder));
        // The samples of these tests cite what does not exist.
        if !known && !text.path.contains("tests/layers/") {
            wrong.extend(missing(text, &library));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_missing_is_found() {
    let document = Text {
        path: "docs/design.md".into(),
        text: "# Design\n## Room, and *space*\n```\n# no heading\n```\n".into(),
    };
    let paths = [
        "docs/design.md",
        "docs/decisions/0001-a.md",
        "crates/indexy/src/wal/log.rs",
    ];
    let paths: Vec<String> = paths.map(String::from).into();
    let source = Text {
        path: "crates/indexy/src/wal/log.rs".into(),
        text: "#[test]\nfn i5_kept() {}".into(),
    };
    let library = Library::of(paths, &[document, source]);
    let wrong = |path: &str, line: &str| {
        let text = Text {
            path: path.into(),
            text: line.into(),
        };
        let found = missing(&text, &library).into_iter();
        let what = |found: String| found.split_once(": ").unwrap().1.to_string();
        found.map(what).collect::<Vec<_>>()
    };
    for good in [
        "// docs/design.md#room-and-space, decision 0001 and `wal/log.rs`, `src/wal/`.",
        "let x = 1; // see docs/decisions/.",
        "let a = \"docs/absent.md\";",
        "// `docs/formats/*.md` and `a / b` and design",
        "// kept: `i5_kept`",
    ] {
        assert_eq!(wrong("crates/indexy/src/a.rs", good), [""; 0], "{good}");
    }
    let bad = "// docs/absent.md, `wal/absent.rs`, `absent/`, decision 0009, design 2.3, `i5_lost`";
    let expected = [
        "design 2.3: cite docs/design.md#..",
        "no `absent/`",
        "no `wal/absent.rs`",
        "no decision 0009",
        "no docs/absent.md",
        "no test i5_lost",
    ];
    assert_eq!(wrong("crates/indexy/src/a.rs", bad), expected);
    assert_eq!(
        wrong(
            "docs/a.md",
            "[a](design.md#no-heading) [b](../docs/design.md) [c](b.md)"
        ),
        ["no docs/b.md", "no section #no-heading in docs/design.md"]
    );
}
