//! Which pairs of indexes the tests of the whole API run with.
//!
//! `INDEXY_TEST_PAIRS`: `sample` (the default) gives each test the default pair, and shares a few
//! others, among which is every X and every Y (with every size of pages), out among the tests of a
//! file; `all` gives each test every pair that is compiled in; a name such as `art-rocksdb` gives
//! each test that pair, and several names with commas between them those.

use indexy::{Access, Db, Error, IndexXKind, IndexYKind, Options, TreeOptions};

/// An Index X and an Index Y.
pub type Pair = (IndexXKind, IndexYKind);

/// What a database is made of when nobody asks for anything else.
pub const DEFAULT: Pair = (IndexXKind::Art, IndexYKind::Lsm);

const X: [IndexXKind; 3] = [IndexXKind::Art, IndexXKind::BPlus, IndexXKind::None];
/// Databases whose trees have it read by the byte, which others cannot.
const BY_BYTE: IndexYKind = IndexYKind::BPlus { page_bytes: 8192 };

const Y: [IndexYKind; 5] = [
    IndexYKind::Lsm,
    IndexYKind::BPlus { page_bytes: 4096 },
    BY_BYTE,
    IndexYKind::BPlus { page_bytes: 16384 },
    IndexYKind::RocksDb,
];

/// Experimental ones: each once.
const RADIX: [Pair; 2] = [
    (IndexXKind::Radix, IndexYKind::BPlus { page_bytes: 4096 }),
    (IndexXKind::RadixLeaves, BY_BYTE),
];

/// Trees whose X is a write buffer.
#[allow(dead_code, reason = "not every binary asks")]
pub fn keeps_nothing((x, _): Pair) -> bool {
    matches!(
        x,
        IndexXKind::None | IndexXKind::Radix | IndexXKind::RadixLeaves
    )
}

pub fn name((x, y): Pair) -> String {
    format!("{x}-{y}")
}

/// Pages of 8 KiB are read by the byte, so that every test meets that way of access, too.
pub fn options((x, y): Pair, options: Options) -> Options {
    let options = options.index_x(x).index_y(y);
    match y {
        BY_BYTE => options.access(Access::Byte),
        _ => options,
    }
}

/// The pair of the second tree of a database whose first one has `pair`: another one, so that one
/// log, one budget and one batch serve both. Beside the default pair it is the same, so that there
/// are databases of one pair too.
#[allow(dead_code, reason = "not every binary makes several trees")]
pub fn second(pair: Pair) -> TreeOptions {
    let (x, y) = second_pair(pair);
    TreeOptions::new().index_x(x).index_y(y)
}

/// The same as a pair.
#[allow(dead_code, reason = "not every binary makes several trees")]
pub fn second_pair(pair: Pair) -> Pair {
    let paged = |page_bytes| IndexYKind::BPlus { page_bytes };
    match pair {
        DEFAULT => DEFAULT,
        // Without any Index X the budget is divided in another way: it stays so.
        (IndexXKind::Radix, _) => (IndexXKind::None, paged(4096)),
        (IndexXKind::RadixLeaves, _) => (IndexXKind::Radix, paged(8192)),
        (IndexXKind::None, BY_BYTE) => (IndexXKind::None, paged(4096)),
        (IndexXKind::Art, BY_BYTE) => (IndexXKind::BPlus, paged(4096)),
        (_, BY_BYTE) => (IndexXKind::Art, paged(16384)),
        (IndexXKind::None, IndexYKind::Lsm) => (IndexXKind::None, paged(8192)),
        (IndexXKind::None, _) => (IndexXKind::None, IndexYKind::Lsm),
        (IndexXKind::Art, IndexYKind::BPlus { .. }) => (IndexXKind::BPlus, IndexYKind::Lsm),
        (IndexXKind::Art, _) => (IndexXKind::BPlus, paged(4096)),
        (_, IndexYKind::BPlus { .. }) => (IndexXKind::Art, IndexYKind::Lsm),
        _ => (IndexXKind::Art, paged(4096)),
    }
}

/// The pair of that name.
#[allow(dead_code, reason = "not every binary starts children")]
pub fn named(text: &str) -> Pair {
    let mut every = pairs();
    let found = every.find(|pair| name(*pair) == text);
    found.unwrap_or_else(|| panic!("no pair {text}"))
}

/// The pairs of test number `number` of the `of` tests that share them.
pub fn chosen(number: usize, of: usize) -> Vec<Pair> {
    let there: Vec<Pair> = pairs().filter(|pair| is_compiled_in(*pair)).collect();
    let asked = std::env::var("INDEXY_TEST_PAIRS").unwrap_or_default();
    let chosen: Vec<Pair> = match asked.as_str() {
        "" | "sample" => share(&sample(&there), number, of),
        "all" => there,
        names => {
            let wanted = |pair: &Pair| names.split(',').any(|text| name(*pair) == text);
            there.into_iter().filter(wanted).collect()
        }
    };
    assert!(
        !chosen.is_empty(),
        "INDEXY_TEST_PAIRS={asked}: no such pair"
    );
    chosen
}

fn pairs() -> impl Iterator<Item = Pair> {
    let all = X.iter().flat_map(|x| Y.iter().map(|y| (*x, *y)));
    all.chain(RADIX)
}

/// Every Y once, with one X and the other in turn, and an LSM tree alone.
fn sample(there: &[Pair]) -> Vec<Pair> {
    let in_memory = [IndexXKind::Art, IndexXKind::BPlus];
    let turn = |(i, y): (usize, &IndexYKind)| (in_memory[i % in_memory.len()], *y);
    let turns = Y.iter().enumerate().map(turn);
    let alone = std::iter::once((IndexXKind::None, IndexYKind::Lsm));
    turns
        .chain(alone)
        .chain(RADIX.into_iter().take(1))
        .filter(|pair| there.contains(pair))
        .collect()
}

/// The default pair and a part of the others, at least one.
fn share(sample: &[Pair], number: usize, of: usize) -> Vec<Pair> {
    let others: Vec<Pair> = sample.iter().copied().filter(|p| *p != DEFAULT).collect();
    let mine = others.iter().skip(number % of).step_by(of).copied();
    let mut mine: Vec<Pair> = std::iter::once(DEFAULT).chain(mine).collect();
    if mine.len() == 1 {
        mine.push(others[number % others.len()]);
    }
    mine
}

fn is_compiled_in(pair: Pair) -> bool {
    let dir = tempfile::tempdir().unwrap();
    match Db::open(dir.path(), options(pair, Options::new(2 << 20))) {
        Ok(_) => true,
        Err(Error::Unsupported { .. }) => false,
        Err(e) => panic!("{}: {e}", name(pair)),
    }
}
