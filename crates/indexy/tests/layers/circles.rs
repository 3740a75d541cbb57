//! No file is in a circle of imports with another, and no folder with its neighbours.

use crate::{
    imports::{Edge, edges},
    source::{Crate, read_files},
    texts::repository,
};
use std::collections::{BTreeMap, BTreeSet};

/// Folders whose circles are not yet undone. Empty when they are.
const KNOWN: &[&str] = &[];

type Graph<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Groups of nodes that reach each other, the larger than one.
fn components<'a>(graph: &Graph<'a>) -> Vec<BTreeSet<&'a str>> {
    let reach: BTreeMap<&str, BTreeSet<&'a str>> = graph
        .keys()
        .map(|&start| (start, reachable(graph, start)))
        .collect();
    let mut found: BTreeSet<BTreeSet<&'a str>> = BTreeSet::new();
    for (&node, reached) in &reach {
        let together: BTreeSet<&'a str> = reached
            .iter()
            .copied()
            .filter(|&other| reach.get(other).is_some_and(|back| back.contains(node)))
            .collect();
        if together.len() > 1 {
            found.insert(together);
        }
    }
    found.into_iter().collect()
}

fn reachable<'a>(graph: &Graph<'a>, start: &str) -> BTreeSet<&'a str> {
    let mut todo = vec![start];
    let mut seen = BTreeSet::new();
    while let Some(at) = todo.pop() {
        for &next in graph.get(at).into_iter().flatten() {
            if seen.insert(next) {
                todo.push(next);
            }
        }
    }
    seen
}

/// What lies directly in `folder` and holds `file`: the file itself, or a folder below.
fn entry<'a>(folder: &str, file: &'a str) -> Option<&'a str> {
    let below = file.strip_prefix(folder)?;
    let end = below
        .find('/')
        .map_or(file.len(), |slash| folder.len() + slash);
    let entry = &file[..end];
    // `a.rs` and `a/` are one concept in two places.
    Some(entry.strip_suffix(".rs").unwrap_or(entry))
}

/// Every circle between `nodes` of the files, each with the imports that make it.
fn circles(edges: &[Edge], node: impl for<'a> Fn(&'a str) -> Option<&'a str>) -> Vec<String> {
    let mut graph = Graph::new();
    for edge in edges {
        if let (Some(from), Some(to)) = (node(&edge.from), node(&edge.to))
            && from != to
        {
            graph.entry(from).or_default().insert(to);
        }
    }
    let describe = |circle: BTreeSet<&str>| {
        let within = |file| node(file).filter(|name| circle.contains(name));
        let mut imports: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        for edge in edges {
            if let (Some(from), Some(to)) = (within(&edge.from), within(&edge.to))
                && from != to
            {
                let names = imports.entry((&edge.from, &edge.to)).or_default();
                names.push(format!("{} ({})", edge.path, edge.line));
            }
        }
        let line = |((from, to), names): (_, Vec<String>)| {
            format!("\n    {from} -> {to}: {}", names.join(", "))
        };
        let lines: String = imports.into_iter().map(line).collect();
        let names: Vec<&str> = circle.iter().copied().collect();
        format!("{}{lines}", names.join(" <-> "))
    };
    components(&graph).into_iter().map(describe).collect()
}

/// Circles of files, then of the folders at each level.
fn all_circles(krate: &Crate) -> Vec<String> {
    let edges = edges(krate);
    let mut found = circles(&edges, |file| Some(file));
    let mut folders: BTreeSet<&str> = BTreeSet::from([""]);
    for file in krate.files() {
        folders.extend(file.match_indices('/').map(|(slash, _)| &file[..=slash]));
    }
    for &folder in &folders {
        let at_level = circles(&edges, |file| entry(folder, file)).into_iter();
        // Circles of files alone are reported already.
        let with_folder = at_level.filter(|circle| {
            let mut names = circle.lines().next().unwrap().split(" <-> ");
            names.any(|name| folders.contains(&*format!("{name}/")))
        });
        found.extend(with_folder.map(|circle| format!("in {folder:?}: {circle}")));
    }
    found
}

/// Other crates whose circles are not yet undone. Empty when they are.
const KNOWN_ELSEWHERE: &[&str] = &[];

/// Every crate of the repository but the library.
fn other_crates() -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["crates", "examples"] {
        for entry in std::fs::read_dir(repository().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.join("src").is_dir() && name != "indexy" {
                found.push(format!("{folder}/{name}"));
            }
        }
    }
    assert!(found.len() > 3, "only {found:?}");
    found
}

#[test]
fn no_file_or_folder_of_another_crate_is_in_a_circle() {
    for path in other_crates() {
        let files = read_files(&repository().join(&path).join("src"));
        let found = all_circles(&Crate::read(&files));
        let known = KNOWN_ELSEWHERE.contains(&&*path);
        assert!(known || found.is_empty(), "{path}:\n{}", found.join("\n"));
    }
}

#[test]
fn no_file_or_folder_is_in_a_circle() {
    let found: Vec<String> = all_circles(&crate::product())
        .into_iter()
        .filter(|circle| {
            let files = circle.lines().next().unwrap();
            let files = files.rsplit(": ").next().unwrap();
            !files
                .split(" <-> ")
                .all(|file| KNOWN.iter().any(|known| file.starts_with(known)))
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn circles_of_files_and_folders_are_found() {
    let one_way = [
        ("lib.rs", "mod a; mod b; pub use a::A;"),
        ("a/mod.rs", "mod leaf; pub use leaf::A;"),
        ("a/leaf.rs", "pub struct A;"),
        ("b.rs", "use crate::a::A; pub struct B;"),
    ];
    assert_eq!(all_circles(&crate::source::sample(&one_way)), [""; 0]);

    let mut mutual = one_way;
    mutual[2].1 = "pub struct A; fn f() -> super::super::b::B {}";
    let found = all_circles(&crate::source::sample(&mutual));
    let imports = "\n    a/leaf.rs -> b.rs: super::super::b::B (1)\
                   \n    b.rs -> a/leaf.rs: crate::a::A (1)";
    let expected = [
        format!("a/leaf.rs <-> b.rs{imports}"),
        format!("in \"\": a <-> b{imports}"),
    ];
    assert_eq!(found, expected);

    // The folders are in a circle, no two files are.
    let folders = [
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", "mod one; mod two;"),
        ("a/one.rs", "pub struct One;"),
        ("a/two.rs", "use crate::b::B;"),
        ("b.rs", "use crate::a::one::One; pub struct B;"),
    ];
    let found = all_circles(&crate::source::sample(&folders));
    assert!(
        found.len() == 1 && found[0].starts_with("in \"\": a <-> b"),
        "{found:?}"
    );
}

#[test]
fn a_parent_that_uses_its_child_back_is_a_circle() {
    let krate = crate::source::sample(&[
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "mod child; pub struct P { c: child::C }"),
        ("a/child.rs", "use super::P; pub struct C;"),
    ]);
    let found = all_circles(&krate);
    assert!(found[0].starts_with("a/child.rs <-> a/mod.rs"), "{found:?}");
}
