//! The crate's modules as their tokens declare them: which files make the product, what each module
//! defines, imports and names by path.
//!
//! Everything under a `cfg` that only tests satisfy is left out. A file is test-only if every
//! `mod` that declares it is left out; its name does not matter.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// File contents by path below `src`.
pub type Files = BTreeMap<String, String>;

/// One name that a `use` binds.
#[derive(Debug, Clone)]
pub struct Import {
    /// As written, one segment each; the last is `*` for a glob.
    pub path: Vec<String>,
    /// The name it binds here: differs from the last segment after `as`.
    pub name: String,
    /// `pub use` of any visibility.
    pub reexport: bool,
    pub line: usize,
}

/// A path in code, outside `use`.
#[derive(Debug, Clone)]
pub struct Named {
    pub path: Vec<String>,
    pub line: usize,
}

#[derive(Debug, Default)]
pub struct Module {
    /// Segments below the crate's root.
    pub path: Vec<String>,
    /// Path below `src`.
    pub file: String,
    pub parent: Option<usize>,
    pub children: BTreeMap<String, usize>,
    /// Items defined here.
    pub defines: BTreeSet<String>,
    pub imports: Vec<Import>,
    pub named: Vec<Named>,
    /// Every identifier outside `use`.
    pub words: BTreeSet<String>,
    /// Lines of documentation of public items, and of the module if it is public itself.
    pub public_docs: Vec<(usize, String)>,
    /// Product tokens, one line of text for each source line, without comments.
    pub code: BTreeMap<usize, String>,
    public: bool,
}

/// The modules of a crate, the root first.
#[derive(Debug, Default)]
pub struct Crate {
    pub modules: Vec<Module>,
}

/// Every `.rs` file below `root`.
pub fn read_files(root: &Path) -> Files {
    let mut todo = vec![root.to_path_buf()];
    let mut files = Files::new();
    while let Some(at) = todo.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let below = path.strip_prefix(root).unwrap().to_str().unwrap();
                files.insert(below.to_string(), std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    files
}

impl Crate {
    /// The product's modules, from `lib.rs` on, or `main.rs` where there is no library.
    pub fn read(files: &Files) -> Self {
        let root = if files.contains_key("lib.rs") {
            "lib.rs"
        } else {
            "main.rs"
        };
        let mut this = Self::default();
        this.modules.push(Module {
            file: root.into(),
            public: true,
            ..Module::default()
        });
        this.read_file(files, 0, "");
        this
    }

    /// The files of the product.
    pub fn files(&self) -> BTreeSet<&str> {
        self.modules.iter().map(|m| m.file.as_str()).collect()
    }

    /// Reads the file of module `at`, whose children lie in `folder`.
    fn read_file(&mut self, files: &Files, at: usize, folder: &str) {
        let file = self.modules[at].file.clone();
        let text = files.get(&file).unwrap_or_else(|| panic!("no file {file}"));
        let tokens: TokenStream = text.parse().unwrap_or_else(|e| panic!("{file}: {e}"));
        Reader {
            files,
            krate: self,
            at,
            folder: folder.to_string(),
        }
        .read(&trees(tokens), Place::Module);
    }
}

fn trees(tokens: TokenStream) -> Vec<TokenTree> {
    tokens.into_iter().collect()
}

fn line_of(token: &TokenTree) -> usize {
    token.span().start().line
}

fn is_punct(token: Option<&TokenTree>, c: char) -> bool {
    matches!(token, Some(TokenTree::Punct(p)) if p.as_char() == c)
}

fn is_word(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(i)) if i == word)
}

fn is_group(token: Option<&TokenTree>, delimiter: Delimiter) -> bool {
    matches!(token, Some(TokenTree::Group(g)) if g.delimiter() == delimiter)
}

/// `::` starts at `i`.
fn is_separator(tokens: &[TokenTree], i: usize) -> bool {
    matches!(tokens.get(i), Some(TokenTree::Punct(p))
        if p.as_char() == ':' && p.spacing() == Spacing::Joint)
        && is_punct(tokens.get(i + 1), ':')
}

/// Where the tokens stand that are being read.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Directly in a module.
    Module,
    /// In the braces of a public enum or trait: variants and methods are as public as it is.
    Public,
    Inside,
}

struct Reader<'a> {
    files: &'a Files,
    krate: &'a mut Crate,
    at: usize,
    folder: String,
}

/// What stands before the item that comes next.
#[derive(Default)]
struct Before {
    docs: Vec<(usize, String)>,
    path: Option<String>,
    /// `pub` of any kind, and whether it is bare.
    visible: Option<bool>,
}

impl Reader<'_> {
    fn module(&mut self) -> &mut Module {
        &mut self.krate.modules[self.at]
    }

    fn read(&mut self, tokens: &[TokenTree], place: Place) {
        let mut before = Before::default();
        let mut i = 0;
        while let Some(token) = tokens.get(i) {
            if is_punct(Some(token), '#') {
                i = self.attribute(tokens, i, &mut before);
                continue;
            }
            self.keep_docs(tokens, i, place, &mut before);
            match token {
                TokenTree::Ident(word) => {
                    let word = word.to_string();
                    i = self.word(&word, tokens, i, place, &mut before);
                }
                TokenTree::Group(group) => {
                    self.write(token, open(group.delimiter()));
                    let inner = trees(group.stream());
                    let public = place == Place::Module
                        && group.delimiter() == Delimiter::Brace
                        && opens_public(tokens, i);
                    let inside = if public { Place::Public } else { Place::Inside };
                    self.read(&inner, inside);
                    let end = group.span_close().start().line;
                    self.write_at(end, close(group.delimiter()));
                    i += 1;
                }
                other => {
                    self.write(other, &other.to_string());
                    i += 1;
                }
            }
        }
    }

    fn write(&mut self, token: &TokenTree, text: &str) {
        self.write_at(line_of(token), text);
    }

    fn write_at(&mut self, line: usize, text: &str) {
        let code = self.module().code.entry(line).or_default();
        code.push_str(text);
        code.push(' ');
    }

    /// Takes the attribute at `i`, and what it removes; returns what follows.
    fn attribute(&mut self, tokens: &[TokenTree], i: usize, before: &mut Before) -> usize {
        let inner = is_punct(tokens.get(i + 1), '!');
        let at = i + 1 + usize::from(inner);
        let Some(TokenTree::Group(group)) = tokens.get(at) else {
            return i + 1;
        };
        let body = trees(group.stream());
        if is_word(body.first(), "doc") && is_punct(body.get(1), '=') {
            let text = body.get(2).map(ToString::to_string).unwrap_or_default();
            let doc = (line_of(&tokens[i]), text);
            if !inner {
                before.docs.push(doc);
            } else if self.module().public {
                self.module().public_docs.push(doc);
            }
        } else if is_word(body.first(), "path") {
            let text = body.get(2).map(ToString::to_string).unwrap_or_default();
            before.path = Some(text.trim_matches('"').to_string());
        } else if is_word(body.first(), "cfg")
            && !inner
            && let Some(TokenTree::Group(condition)) = body.get(1)
            && holds_in_product(&trees(condition.stream())) == Some(false)
        {
            *before = Before::default();
            return after_item(tokens, at + 1);
        }
        at + 1
    }

    /// Documentation belongs to what follows it: kept if that is public.
    fn keep_docs(&mut self, tokens: &[TokenTree], i: usize, place: Place, before: &mut Before) {
        if before.docs.is_empty() {
            return;
        }
        let bare =
            is_word(tokens.get(i), "pub") && !is_group(tokens.get(i + 1), Delimiter::Parenthesis);
        let docs = std::mem::take(&mut before.docs);
        if bare || place == Place::Public {
            self.module().public_docs.extend(docs);
        }
    }

    /// Takes the identifier at `i`; returns what follows what it begins.
    fn word(
        &mut self,
        word: &str,
        tokens: &[TokenTree],
        i: usize,
        place: Place,
        before: &mut Before,
    ) -> usize {
        const DEFINE: [&str; 9] = [
            "struct",
            "enum",
            "union",
            "trait",
            "fn",
            "const",
            "static",
            "type",
            "macro_rules",
        ];
        self.write(&tokens[i], word);
        match word {
            "pub" => {
                let limited = is_group(tokens.get(i + 1), Delimiter::Parenthesis);
                before.visible = Some(!limited);
                return i + 1 + usize::from(limited);
            }
            "use" if !is_punct(tokens.get(i + 1), '<') => {
                let end = after_item(tokens, i);
                let line = line_of(&tokens[i]);
                let mut names = Vec::new();
                use_tree(&tokens[i + 1..end], &mut Vec::new(), &mut names);
                let reexport = before.visible.take().is_some();
                for (path, name) in names {
                    self.module().imports.push(Import {
                        path,
                        name,
                        reexport,
                        line,
                    });
                }
                return end;
            }
            "mod" if place == Place::Module => {
                let public = before.visible.take() == Some(true);
                return self.submodule(tokens, i, public, before.path.take());
            }
            _ => {}
        }
        before.visible = None;
        if place == Place::Module && DEFINE.contains(&word) {
            let skip = usize::from(is_punct(tokens.get(i + 1), '!'));
            if let Some(TokenTree::Ident(name)) = tokens.get(i + 1 + skip) {
                let name = name.to_string();
                self.module().defines.insert(name);
            }
        }
        self.module().words.insert(word.to_string());
        self.path(word, tokens, i)
    }

    /// Takes the path that starts with `word` at `i`, if one does.
    fn path(&mut self, word: &str, tokens: &[TokenTree], i: usize) -> usize {
        let mut path = vec![word.to_string()];
        let mut next = i + 1;
        while is_separator(tokens, next) {
            let Some(TokenTree::Ident(segment)) = tokens.get(next + 2) else {
                break;
            };
            path.push(segment.to_string());
            self.write(&tokens[next], "::");
            self.write(&tokens[next + 2], &segment.to_string());
            next += 3;
        }
        let continues = i >= 2 && is_separator(tokens, i - 2);
        let member = i >= 1 && is_punct(tokens.get(i - 1), '.');
        if path.len() > 1 && !continues && !member {
            let line = line_of(&tokens[i]);
            self.module().named.push(Named { path, line });
        }
        next
    }

    /// Takes `mod name;` or `mod name { .. }` at `i`.
    fn submodule(
        &mut self,
        tokens: &[TokenTree],
        i: usize,
        public: bool,
        path: Option<String>,
    ) -> usize {
        let Some(TokenTree::Ident(name)) = tokens.get(i + 1) else {
            return i + 1;
        };
        let name = name.to_string();
        let child = self.krate.modules.len();
        let parent = &mut self.krate.modules[self.at];
        parent.children.insert(name.clone(), child);
        let mut module = Module {
            path: [parent.path.clone(), vec![name.clone()]].concat(),
            file: parent.file.clone(),
            parent: Some(self.at),
            public: public && parent.public,
            ..Module::default()
        };
        let folder = format!("{}{name}/", self.folder);
        if let Some(TokenTree::Group(body)) = tokens.get(i + 2) {
            self.krate.modules.push(module);
            let mut reader = Reader {
                files: self.files,
                krate: self.krate,
                at: child,
                folder,
            };
            reader.read(&trees(body.stream()), Place::Module);
            return i + 3;
        }
        let beside = module.file.rsplit_once('/').map_or("", |(dir, _)| dir);
        let candidates = match path {
            Some(path) => vec![format!("{beside}/{path}")],
            None => vec![
                format!("{}{name}.rs", self.folder),
                format!("{folder}mod.rs"),
            ],
        };
        let file = candidates
            .iter()
            .find(|file| self.files.contains_key(*file))
            .unwrap_or_else(|| panic!("no file for mod {name} in {}", module.file));
        module.file = file.clone();
        self.krate.modules.push(module);
        self.krate.read_file(self.files, child, &folder);
        i + 3
    }
}

fn open(delimiter: Delimiter) -> &'static str {
    match delimiter {
        Delimiter::Parenthesis => "(",
        Delimiter::Brace => "{",
        Delimiter::Bracket => "[",
        Delimiter::None => "",
    }
}

fn close(delimiter: Delimiter) -> &'static str {
    match delimiter {
        Delimiter::Parenthesis => ")",
        Delimiter::Brace => "}",
        Delimiter::Bracket => "]",
        Delimiter::None => "",
    }
}

/// Whether the braces at `i` are those of a `pub enum` or `pub trait`.
fn opens_public(tokens: &[TokenTree], i: usize) -> bool {
    let start = (0..i)
        .rev()
        .find(|&k| is_punct(tokens.get(k), ';') || is_group(tokens.get(k), Delimiter::Brace))
        .map_or(0, |k| k + 1);
    let item = &tokens[start..i];
    let public = item.iter().enumerate().any(|(k, token)| {
        is_word(Some(token), "pub") && !is_group(item.get(k + 1), Delimiter::Parenthesis)
    });
    let kind = |word| item.iter().any(|token| is_word(Some(token), word));
    public && (kind("enum") || kind("trait"))
}

/// Whether a `cfg` condition holds in a build of the product; `None` if that depends on the build.
fn holds_in_product(condition: &[TokenTree]) -> Option<bool> {
    let Some(TokenTree::Ident(word)) = condition.first() else {
        return None;
    };
    let parts = || -> Vec<Option<bool>> {
        let Some(TokenTree::Group(group)) = condition.get(1) else {
            return Vec::new();
        };
        trees(group.stream())
            .split(|token| is_punct(Some(token), ','))
            .filter(|part| !part.is_empty())
            .map(holds_in_product)
            .collect()
    };
    match word.to_string().as_str() {
        "test" | "doctest" => Some(false),
        "feature" => {
            let testing = condition
                .last()
                .is_some_and(|token| token.to_string() == "\"testing\"");
            testing.then_some(false)
        }
        "not" => parts().first().copied().flatten().map(|holds| !holds),
        "all" => match parts() {
            parts if parts.contains(&Some(false)) => Some(false),
            parts if parts.contains(&None) => None,
            _ => Some(true),
        },
        "any" => match parts() {
            parts if parts.contains(&Some(true)) => Some(true),
            parts if parts.contains(&None) => None,
            _ => Some(false),
        },
        _ => None,
    }
}

/// The end of the item, field or statement that starts at `i`, its attributes included.
fn after_item(tokens: &[TokenTree], mut i: usize) -> usize {
    while is_punct(tokens.get(i), '#') {
        i += 2;
    }
    let mut start = i;
    if is_word(tokens.get(start), "pub") {
        start += 1;
        start += usize::from(is_group(tokens.get(start), Delimiter::Parenthesis));
    }
    // These end with a semicolon, whatever braces they hold.
    let word = |word| is_word(tokens.get(start), word);
    let constant = word("const") && is_punct(tokens.get(start + 2), ':');
    let to_semicolon = constant || word("use") || word("static") || word("let") || word("type");
    while let Some(token) = tokens.get(i) {
        i += 1;
        let ends = match token {
            TokenTree::Punct(p) if p.as_char() == ';' => true,
            TokenTree::Punct(p) if p.as_char() == ',' => !to_semicolon,
            TokenTree::Group(g) => g.delimiter() == Delimiter::Brace && !to_semicolon,
            _ => false,
        };
        if ends {
            break;
        }
    }
    i
}

/// Takes a tree of imports apart: each path with the name that it binds.
fn use_tree(
    tokens: &[TokenTree],
    prefix: &mut Vec<String>,
    names: &mut Vec<(Vec<String>, String)>,
) {
    for part in tokens.split(|token| is_punct(Some(token), ',') || is_punct(Some(token), ';')) {
        let depth = prefix.len();
        let mut rename = None;
        let mut binds = false;
        let mut i = 0;
        while let Some(token) = part.get(i) {
            match token {
                TokenTree::Ident(word) if word == "as" => {
                    rename = part.get(i + 1).map(ToString::to_string);
                    i += 1;
                }
                // `{self, ..}` names the module before the braces.
                TokenTree::Ident(word) if word == "self" && depth > 0 => binds = true,
                TokenTree::Ident(word) => {
                    prefix.push(word.to_string());
                    binds = true;
                }
                TokenTree::Punct(p) if p.as_char() == '*' => {
                    prefix.push("*".into());
                    binds = true;
                }
                TokenTree::Group(group) => {
                    use_tree(&trees(group.stream()), prefix, names);
                    binds = false;
                }
                _ => {}
            }
            i += 1;
        }
        if let (true, Some(last)) = (binds, prefix.last()) {
            names.push((prefix.clone(), rename.unwrap_or_else(|| last.clone())));
        }
        prefix.truncate(depth);
    }
}

/// A crate of the given files.
pub fn sample(files: &[(&str, &str)]) -> Crate {
    let files = files
        .iter()
        .map(|(path, text)| (path.to_string(), text.to_string()))
        .collect();
    Crate::read(&files)
}

fn imports_of(code: &str) -> Vec<String> {
    let krate = sample(&[("lib.rs", code)]);
    let paths = krate.modules[0].imports.iter();
    paths.map(|import| import.path.join("::")).collect()
}

#[test]
fn import_trees_are_taken_apart() {
    let code = "use crate::{\n error::{self, Error, Result as R},\n mem::budget::Holder,\n x,\n};";
    let expected = [
        "crate::error",
        "crate::error::Error",
        "crate::error::Result",
        "crate::mem::budget::Holder",
        "crate::x",
    ];
    assert_eq!(imports_of(code), expected);
    assert_eq!(
        imports_of("use self::a; pub use b::*;"),
        ["self::a", "b::*"]
    );
}

#[test]
fn paths_in_code_and_macros_are_found() {
    let code = "fn f() { let a = crate::key::next(k); assert!(super::b::C == a.d); }";
    let krate = sample(&[("lib.rs", code)]);
    let named = krate.modules[0].named.iter();
    let paths: Vec<String> = named.map(|named| named.path.join("::")).collect();
    assert_eq!(paths, ["crate::key::next", "super::b::C"]);
}

#[test]
fn what_only_tests_see_is_left_out() {
    let krate = sample(&[
        (
            "lib.rs",
            "mod a; #[cfg(test)] mod t; #[cfg(any(test, feature = \"testing\"))] pub mod c;
             #[cfg(not(test))] mod b; #[cfg(feature = \"rocksdb\")] mod r;
             #[cfg(test)] use crate::t::X; struct S { #[cfg(test)] n: crate::t::N, m: u8 }
             #[cfg(test)] #[path = \"elsewhere.rs\"] mod e;",
        ),
        ("a/mod.rs", "mod inner;"),
        ("a/inner.rs", ""),
        ("b.rs", ""),
        ("r.rs", ""),
        ("t.rs", ""),
        ("c.rs", ""),
        ("elsewhere.rs", ""),
    ]);
    let files: Vec<&str> = krate.files().into_iter().collect();
    assert_eq!(files, ["a/inner.rs", "a/mod.rs", "b.rs", "lib.rs", "r.rs"]);
    assert!(krate.modules[0].imports.is_empty() && krate.modules[0].named.is_empty());
}
