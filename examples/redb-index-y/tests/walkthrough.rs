//! The code blocks of `docs/adding-an-index.md` are code of this crate.

/// Lines without indentation, so that an excerpt from inside of an `impl` is found.
fn lines(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty()).collect()
}

#[test]
fn every_block_of_the_walkthrough_is_code_of_this_crate() {
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    let files: Vec<String> = [
        "Cargo.toml",
        "src/lib.rs",
        "src/shared.rs",
        "src/slice.rs",
        "src/engine.rs",
        "src/tree.rs",
        "src/main.rs",
        "tests/conformance.rs",
    ]
    .map(read)
    .into();
    let document = read("../../docs/adding-an-index.md");
    let mut blocks = 0;
    for block in document.split("```").skip(1).step_by(2) {
        let (_language, code) = block.split_once('\n').unwrap();
        // Excerpts of one block are parted by an empty line.
        for excerpt in excerpts(code) {
            let wanted = lines(excerpt);
            let found = files
                .iter()
                .any(|file| lines(file).windows(wanted.len()).any(|at| at == wanted));
            assert!(found, "not code of the example:\n{excerpt}");
            blocks += 1;
        }
    }
    assert!(blocks > 15, "only {blocks} excerpts");
}

/// Parts of a block that stand for themselves: an empty line followed by one that is not indented.
fn excerpts(code: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = code;
    while let Some(at) = rest
        .match_indices("\n\n")
        .map(|(at, _)| at)
        .find(|at| !rest[at + 2..].starts_with([' ', '}']))
    {
        parts.push(&rest[..at]);
        rest = &rest[at + 2..];
    }
    parts.push(rest);
    parts
}
