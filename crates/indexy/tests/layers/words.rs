//! Text that is read once: width, length and names of files, names of constants, and what the
//! public documentation may speak of.

use crate::{
    source::Crate,
    texts::{Text, fenced},
};

/// Columns of a line of prose or code.
const WIDTH: usize = 100;
const MAX_LINES: usize = 800;

/// Folders whose lines are not yet wrapped. Empty when they are.
const WIDE: &[&str] = &[];

/// The numbers of lines that are too wide. Excepted: rows of tables in Markdown and in
/// documentation comments, output in fences marked `text`, and a line that is one word (an
/// address), its marker aside.
fn wide_lines(text: &Text) -> Vec<usize> {
    let markdown = text.is_markdown();
    let output = if markdown {
        fenced(&text.text, |info| info == "text")
    } else {
        Vec::new()
    };
    let lines = text.text.lines().enumerate();
    lines
        .filter(|(at, line)| {
            let prose = line.trim_start();
            let documented = prose.strip_prefix("//!").or(prose.strip_prefix("///"));
            let row = match documented {
                Some(row) => row.trim_start().starts_with('|'),
                None => markdown && prose.starts_with('|'),
            };
            let marker = |word: &&str| !["-", "*", ">", "//", "///", "//!"].contains(word);
            let one_word = line.split_whitespace().filter(marker).count() == 1;
            line.chars().count() > WIDTH && !row && !one_word && !output.contains(at)
        })
        .map(|(at, _)| at + 1)
        .collect()
}

#[test]
fn lines_fit_the_page() {
    let mut wrong = Vec::new();
    for text in crate::texts::all() {
        if !WIDE.iter().any(|folder| text.path.starts_with(folder)) {
            let wide = wide_lines(&text);
            wrong.extend(wide.iter().map(|line| format!("{}:{line}", text.path)));
        }
    }
    let list = wrong.join("\n");
    assert!(wrong.is_empty(), "wider than {WIDTH} columns:\n{list}");
}

#[test]
fn wide_lines_are_found() {
    let word = "x".repeat(WIDTH);
    let prose = format!(
        "a {word}\n{word}\n| a {word} |\n```text\na {word}\n```\n```\na {word}\n```\n\
         //! | a {word} |\n/// a {word}\n"
    );
    let text = |path: &str| Text {
        path: path.into(),
        text: prose.clone(),
    };
    assert_eq!(wide_lines(&text("a.md")), [1, 8, 11]);
    assert_eq!(wide_lines(&text("a.rs")), [1, 3, 5, 8, 11]);
}

/// Files of the product that are longer than anyone reads, tests at their end not counted.
fn long_files(files: &crate::source::Files, krate: &Crate) -> Vec<String> {
    let long = krate.files().into_iter().filter(|&file| {
        let own = files[file].split("#[cfg(test)]\nmod ").next().unwrap();
        own.lines().count() > MAX_LINES
    });
    long.map(String::from).collect()
}

#[test]
fn files_stay_readable() {
    let files = crate::product_files();
    assert_eq!(long_files(&files, &Crate::read(&files)), [""; 0]);
}

#[test]
fn long_files_are_found() {
    let lines = "//\n".repeat(MAX_LINES);
    let tested = format!("{lines}#[cfg(test)]\nmod tests {{\n}}\n");
    let long = format!("{lines}\n\n");
    let files: crate::source::Files = [
        ("lib.rs", "mod a; mod b; #[cfg(test)] mod c;"),
        ("a.rs", &*tested),
        ("b.rs", &*long),
        ("c.rs", &*long),
    ]
    .map(|(path, text)| (path.to_string(), text.to_string()))
    .into();
    assert_eq!(long_files(&files, &Crate::read(&files)), ["b.rs"]);
}

/// Names that say nothing about what a file holds.
fn vague_names(krate: &Crate) -> Vec<&str> {
    const VAGUE: [&str; 7] = [
        "utils", "util", "common", "helpers", "helper", "manager", "misc",
    ];
    let parts = |file: &str| {
        file.trim_end_matches(".rs")
            .split('/')
            .any(|part| VAGUE.contains(&part))
    };
    krate
        .files()
        .into_iter()
        .filter(|file| parts(file))
        .collect()
}

#[test]
fn file_names_are_nouns_of_the_design() {
    assert_eq!(vague_names(&crate::product()), [""; 0]);
}

#[test]
fn vague_names_are_found() {
    let krate = crate::source::sample(&[
        ("lib.rs", "mod common; mod commons;"),
        ("common/mod.rs", "mod a;"),
        ("common/a.rs", ""),
        ("commons.rs", ""),
    ]);
    assert_eq!(vague_names(&krate), ["common/a.rs", "common/mod.rs"]);
}

/// Constants that divide and are named as if they were a part.
fn parts_that_divide(krate: &Crate) -> Vec<String> {
    let mut found = Vec::new();
    for module in &krate.modules {
        for (line, code) in &module.code {
            let divides = code.split('/').skip(1).any(|divisor| {
                let constant = divisor.split_whitespace().find(|word| {
                    *word != "::" && !word.starts_with(|c: char| c.is_ascii_lowercase())
                });
                constant.is_some_and(|name| name.ends_with("_PART"))
            });
            if divides {
                found.push(format!("{}:{line}", module.file));
            }
        }
    }
    found
}

/// Folders whose constants are not yet named so. Empty when they are.
const PARTS: &[&str] = &[];

#[test]
fn constants_that_divide_say_so() {
    let mut wrong = parts_that_divide(&crate::product());
    wrong.retain(|place| !PARTS.iter().any(|folder| place.starts_with(folder)));
    assert_eq!(wrong, [""; 0], "name them _DIVISOR");
}

#[test]
fn parts_that_divide_are_found() {
    let code = "fn f() {\n a / MOST_PART;\n b / super::MOST_PART;\n c * MOST_PART;\n d / 2;\n}";
    let krate = crate::source::sample(&[("lib.rs", code)]);
    assert_eq!(parts_that_divide(&krate), ["lib.rs:2", "lib.rs:3"]);
}

/// A document of the repository that is written for users.
const USERS_DOCUMENT: &str = "docs/adding-an-index.md";

/// Lines of public documentation that cite a document that users do not have.
fn internal_citations(krate: &Crate) -> Vec<String> {
    let mut found = Vec::new();
    for module in &krate.modules {
        for (line, doc) in &module.public_docs {
            let cites = [
                "docs/",
                "design.md",
                "decision 0",
                "ARCHITECTURE",
                "IndeXY I",
            ];
            let doc = doc.replace(USERS_DOCUMENT, "");
            let words = doc.split(|c: char| !c.is_alphanumeric());
            let invariant = words.into_iter().any(|word| {
                word.len() == 2 && word.starts_with('I') && word.ends_with(char::is_numeric)
            });
            let section = doc.match_indices("design ").any(|(at, word)| {
                let rest = &doc[at + word.len()..];
                rest.starts_with(|c: char| c.is_ascii_digit())
            });
            if section || invariant || cites.iter().any(|cite| doc.contains(cite)) {
                found.push(format!("{}:{line}: {}", module.file, doc.trim()));
            }
        }
    }
    found
}

/// Files whose public documentation still cites. Empty when none does.
const CITING: &[&str] = &[];

#[test]
fn public_documentation_stands_alone() {
    let mut wrong = internal_citations(&crate::product());
    wrong.retain(|place| !CITING.iter().any(|folder| place.starts_with(folder)));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn citations_in_public_documentation_are_found() {
    let krate = crate::source::sample(&[
        (
            "lib.rs",
            "//! design 2.4\n//! docs/adding-an-index.md\npub mod a;\nmod b;
             /// decision 0001\npub struct S {\n/// docs/x.md\npub f: u8,\n/// docs/x.md\ng: u8 }
             /// I3\npub fn f() {}\n/// docs/y.md\npub(crate) struct T;
             pub enum E {\n/// design 3\nA,\n}",
        ),
        ("a.rs", "//! see docs/b.md"),
        ("b.rs", "//! see docs/b.md"),
    ]);
    let lines: Vec<String> = internal_citations(&krate)
        .iter()
        .map(|found| found.rsplit_once(": ").unwrap().0.to_string())
        .collect();
    assert_eq!(
        lines,
        [
            "lib.rs:1",
            "lib.rs:5",
            "lib.rs:7",
            "lib.rs:11",
            "lib.rs:16",
            "a.rs:1"
        ]
    );
}

/// Constants of the product that change under test: limits are injected instead.
fn values_that_tests_change(krate: &Crate) -> Vec<String> {
    let mut found = Vec::new();
    for module in &krate.modules {
        for (line, code) in &module.code {
            if code.contains("cfg ! ( test )") {
                found.push(format!("{}:{line}", module.file));
            }
        }
    }
    found
}

/// Folders that still do. Empty when none does.
const CHANGED: &[&str] = &[];

#[test]
fn tests_run_the_product_as_it_is() {
    let mut wrong = values_that_tests_change(&crate::product());
    wrong.retain(|place| !CHANGED.iter().any(|folder| place.starts_with(folder)));
    assert_eq!(wrong, [""; 0], "inject the limit");
}

#[test]
fn values_that_tests_change_are_found() {
    let code = "const N: usize = if cfg!(test) { 1 } else { 2 };\nconst M: bool = cfg!(unix);";
    let krate = crate::source::sample(&[("lib.rs", code)]);
    assert_eq!(values_that_tests_change(&krate), ["lib.rs:1"]);
}
