//! Which file imports which: every name that a file uses is traced to the file that defines it.
//!
//! A re-export is a signpost, not an import, unless its module uses the name itself. Naming a
//! module is none either: what is reached through it counts. Method calls leave no path and are
//! not seen.

use crate::source::Crate;

/// One import, or one path in code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    pub from: String,
    pub to: String,
    pub line: usize,
    /// As written.
    pub path: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Target {
    Module(usize),
    /// An item that this module defines.
    Item(usize),
}

/// Re-exports of re-exports end somewhere.
const DEEPEST: usize = 16;

/// Every edge between two files of the crate.
pub fn edges(krate: &Crate) -> Vec<Edge> {
    let mut edges = Vec::new();
    for (at, module) in krate.modules.iter().enumerate() {
        let imports = module.imports.iter().filter(|import| {
            !import.reexport || (import.name != "*" && module.words.contains(&import.name))
        });
        let imports = imports.map(|import| (&import.path, import.line));
        let named = module.named.iter().map(|named| (&named.path, named.line));
        for (path, line) in imports.chain(named) {
            let Some(to) = defined_in(krate, at, path) else {
                continue;
            };
            let to = &krate.modules[to].file;
            if *to != module.file {
                edges.push(Edge {
                    from: module.file.clone(),
                    to: to.clone(),
                    line,
                    path: path.join("::"),
                });
            }
        }
    }
    edges.sort();
    edges.dedup();
    edges
}

/// The module that defines what `path`, as written in module `at`, stands for. `None`: another
/// crate, or a module.
fn defined_in(krate: &Crate, at: usize, path: &[String]) -> Option<usize> {
    if path.last().is_some_and(|last| last == "*") {
        return match resolve(krate, at, &path[..path.len() - 1], 0)? {
            Target::Module(to) | Target::Item(to) => Some(to),
        };
    }
    match resolve(krate, at, path, 0)? {
        Target::Item(to) => Some(to),
        Target::Module(_) => None,
    }
}

fn resolve(krate: &Crate, at: usize, path: &[String], depth: usize) -> Option<Target> {
    let (first, mut rest) = path.split_first()?;
    let mut target = match first.as_str() {
        "crate" => Target::Module(0),
        "self" => Target::Module(at),
        "super" => Target::Module(krate.modules[at].parent?),
        name => look_up(krate, at, name, depth)?,
    };
    while let (Target::Module(module), Some((name, more))) = (target, rest.split_first()) {
        target = match name.as_str() {
            "super" => Target::Module(krate.modules[module].parent?),
            // What no line defines, a macro does.
            name => look_up(krate, module, name, depth).unwrap_or(Target::Item(module)),
        };
        rest = more;
    }
    Some(target)
}

/// What `name` stands for in module `at`.
fn look_up(krate: &Crate, at: usize, name: &str, depth: usize) -> Option<Target> {
    if depth > DEEPEST {
        return None;
    }
    let module = &krate.modules[at];
    if module.defines.contains(name) {
        return Some(Target::Item(at));
    }
    if let Some(&child) = module.children.get(name) {
        return Some(Target::Module(child));
    }
    let bound = module.imports.iter().find(|import| import.name == name);
    if let Some(import) = bound {
        return resolve(krate, at, &import.path, depth + 1);
    }
    let globs = module.imports.iter().filter(|import| import.name == "*");
    for glob in globs {
        let path = &glob.path[..glob.path.len() - 1];
        if let Some(Target::Module(from)) = resolve(krate, at, path, depth + 1) {
            let found = (from != at).then(|| look_up(krate, from, name, depth + 1));
            if let Some(found) = found.flatten() {
                return Some(found);
            }
        }
    }
    None
}

/// `path` as written in module `at`, from the crate's root on; `None` for a path that does not
/// start with `crate`, `self` or `super`.
pub fn from_root(krate: &Crate, at: usize, path: &[String]) -> Option<String> {
    let mut segments: Vec<&str> = match path.first()?.as_str() {
        "crate" => Vec::new(),
        "self" | "super" => krate.modules[at].path.iter().map(String::as_str).collect(),
        _ => return None,
    };
    for segment in path {
        match segment.as_str() {
            "crate" | "self" => {}
            "super" => {
                segments.pop();
            }
            name => segments.push(name),
        }
    }
    Some(segments.join("::"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::sample;

    fn pairs(krate: &Crate) -> Vec<(String, String)> {
        let edges = edges(krate).into_iter();
        edges.map(|edge| (edge.from, edge.to)).collect()
    }

    fn pair(from: &str, to: &str) -> (String, String) {
        (from.to_string(), to.to_string())
    }

    #[test]
    fn names_are_traced_to_where_they_are_defined() {
        let krate = sample(&[
            ("lib.rs", "mod a; mod b; pub use a::Deep;"),
            (
                "a/mod.rs",
                "mod deep; pub(crate) use deep::*; pub use std::fmt;",
            ),
            ("a/deep.rs", "pub struct Deep; use crate::b::Unit as U;"),
            (
                "b.rs",
                "use super::a; use std::io; pub struct Unit; fn f(d: a::Deep) -> io::Result<()> {}",
            ),
        ]);
        let expected = [pair("a/deep.rs", "b.rs"), pair("b.rs", "a/deep.rs")];
        assert_eq!(pairs(&krate), expected);
    }

    #[test]
    fn a_reexport_is_no_import_unless_it_is_used() {
        let child = ("a/child.rs", "pub struct C;");
        let signpost = [
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod child; pub use child::C;"),
            child,
        ];
        assert!(pairs(&sample(&signpost)).is_empty());
        let used = [
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod child; pub use child::C; fn f(c: C) {}"),
            child,
        ];
        assert_eq!(pairs(&sample(&used)), [pair("a/mod.rs", "a/child.rs")]);
    }
}
