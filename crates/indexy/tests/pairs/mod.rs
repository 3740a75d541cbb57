//! Which pairs of indexes the tests of the whole API run with.
//!
//! `INDEXY_TEST_PAIRS`: `sample` (the default) gives each test one of the pairs that are compiled in, so that all are seen by some
//! test; `all` gives each test every one; a name such as `art-rocksdb` gives each test that pair.

use indexy::{Db, Error, IndexXKind, IndexYKind, Options};

/// An Index X and an Index Y.
pub type Pair = (IndexXKind, IndexYKind);

const X: [IndexXKind; 3] = [IndexXKind::Art, IndexXKind::BPlus, IndexXKind::None];
const Y: [IndexYKind; 3] = [
    IndexYKind::Lsm,
    IndexYKind::RocksDb,
    IndexYKind::BPlus { page_bytes: 4096 },
];

pub fn name((x, y): Pair) -> String {
    format!("{x}-{y}")
}

pub fn options((x, y): Pair, options: Options) -> Options {
    options.index_x(x).index_y(y)
}

/// The pair of that name.
#[allow(dead_code, reason = "not every binary starts children")]
pub fn named(text: &str) -> Pair {
    let there = compiled_in();
    let found = there.into_iter().find(|pair| name(*pair) == text);
    found.unwrap_or_else(|| panic!("no pair {text}"))
}

/// The pairs of test number `number`.
pub fn chosen(number: usize) -> Vec<Pair> {
    let there = compiled_in();
    let asked = std::env::var("INDEXY_TEST_PAIRS").unwrap_or_default();
    let chosen: Vec<Pair> = match asked.as_str() {
        "" | "sample" => vec![there[number % there.len()]],
        "all" => there,
        pair => there.into_iter().filter(|p| name(*p) == pair).collect(),
    };
    assert!(
        !chosen.is_empty(),
        "INDEXY_TEST_PAIRS={asked}: no such pair"
    );
    chosen
}

/// The pairs that a database opens with.
fn compiled_in() -> Vec<Pair> {
    let pairs = X.iter().flat_map(|x| Y.iter().map(|y| (*x, *y)));
    pairs.filter(|pair| is_compiled_in(*pair)).collect()
}

fn is_compiled_in(pair: Pair) -> bool {
    let dir = tempfile::tempdir().unwrap();
    match Db::open(dir.path(), options(pair, Options::new(2 << 20))) {
        Ok(_) => true,
        Err(Error::Unsupported { .. }) => false,
        Err(e) => panic!("{}: {e}", name(pair)),
    }
}
