//! The sources and documents of the whole repository.

use std::path::{Path, PathBuf};

/// Folders with sources and documents of ours; beside them, the documents at the root.
const FOLDERS: [&str; 5] = ["crates", "docs", "examples", "fuzz", ".github"];

pub struct Text {
    /// Below the repository's root.
    pub path: String,
    pub text: String,
}

impl Text {
    pub fn is_markdown(&self) -> bool {
        self.path.ends_with(".md")
    }
}

/// From the folder of the package, where cargo runs tests: a path that is compiled in would be that
/// of the clone that filled the target directory.
pub fn repository() -> PathBuf {
    Path::new("../..").canonicalize().unwrap()
}

/// Every file below our folders, and at the root.
pub fn paths() -> Vec<String> {
    let root = repository();
    let mut todo: Vec<PathBuf> = FOLDERS.iter().map(|folder| root.join(folder)).collect();
    todo.push(root.join(".ci"));
    let mut found = Vec::new();
    let mut keep = |path: &Path| {
        let below = path.strip_prefix(&root).unwrap();
        found.push(below.to_str().unwrap().to_string());
    };
    for entry in std::fs::read_dir(&root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            keep(&path);
        }
    }
    while let Some(at) = todo.pop() {
        for entry in std::fs::read_dir(at).into_iter().flatten() {
            let path = entry.unwrap().path();
            if !path.is_dir() {
                keep(&path);
            } else if path.file_name().is_none_or(|name| name != "target") {
                todo.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Every Rust source and Markdown document.
pub fn all() -> Vec<Text> {
    let root = repository();
    let ours = |path: &String| path.ends_with(".rs") || path.ends_with(".md");
    let texts: Vec<Text> = paths()
        .into_iter()
        .filter(ours)
        .map(|path| {
            let text = std::fs::read_to_string(root.join(&path)).unwrap();
            Text { path, text }
        })
        .collect();
    assert!(texts.len() > 100, "only {} texts found", texts.len());
    texts
}

/// Indices of the lines inside code fences whose info string `which` accepts.
pub fn fenced(markdown: &str, which: impl Fn(&str) -> bool) -> Vec<usize> {
    let mut inside = None;
    let mut lines = Vec::new();
    for (at, line) in markdown.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), inside) {
            (Some(info), None) => inside = Some(which(info.trim())),
            (Some(_), Some(_)) => inside = None,
            (None, Some(true)) => lines.push(at),
            _ => {}
        }
    }
    lines
}
