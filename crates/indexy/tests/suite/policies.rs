//! Every policy of release and pre-cleaning keeps the budget, and no answer depends on it.

use crate::{
    pairs,
    places::fast_dir,
    support::{MIB, Random, assert_sound, open},
};
use indexy::{Durability, Options, Precleaning, Release, Stats, Tree};

const BUDGET: usize = 4 * MIB;
const KEYS: u64 = 40_000;
const VALUE_BYTES: usize = 200;

const RELEASES: [Release; 6] = [
    Release::AccessDensity,
    Release::Coldest,
    Release::Clock,
    Release::Lru,
    Release::Fifo,
    Release::Random,
];

const PRECLEANINGS: [Precleaning; 3] = [
    Precleaning::CheckBack,
    Precleaning::Oldest,
    Precleaning::Off,
];

fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

fn value(n: u64, version: u64) -> Vec<u8> {
    let mut value = vec![n as u8; VALUE_BYTES];
    value[..8].copy_from_slice(&version.to_be_bytes());
    value
}

/// Twice the budget, then writes, reads and scans, most of them of the same few keys.
fn work(tree: &Tree, random: &mut Random) {
    let mut versions = vec![0; KEYS as usize];
    for n in 0..KEYS {
        tree.insert(key(n), value(n, 0)).unwrap();
    }
    for i in 0..60_000 {
        let n = match random.below(10) {
            0 => random.below(KEYS),
            _ => random.below(KEYS / 20),
        };
        let version = &mut versions[n as usize];
        match random.below(4) {
            0 => {
                *version += 1;
                tree.insert(key(n), value(n, *version)).unwrap();
            }
            1 if i % 100 == 0 => {
                let entries = tree.range(key(n)..).take(100);
                let first = entries.map(Result::unwrap).next().unwrap();
                assert_eq!(first.1, value(n, *version));
            }
            _ => assert_eq!(tree.get(key(n)).unwrap().unwrap(), value(n, *version)),
        }
    }
}

fn run(options: Options) -> Stats {
    let dir = fast_dir();
    let db = open(dir.path(), &options);
    let tree = db.tree("t").unwrap();
    work(&tree, &mut Random(3));
    let stats = db.stats();
    assert!(stats.memory_used_bytes <= BUDGET as u64, "{stats:?}");
    assert!(stats.releases > 0 && stats.released_keys > 0, "{stats:?}");
    assert_sound(&db);
    stats
}

#[test]
fn answers_and_budget_do_not_depend_on_the_policy() {
    for (i, &release) in RELEASES.iter().enumerate() {
        for pair in pairs::chosen(i, RELEASES.len()) {
            let options = Options::new(BUDGET)
                .durability(Durability::Buffered { interval_ms: 20 })
                .release(release)
                .second_chance(i % 2 == 0)
                .precleaning(PRECLEANINGS[i % PRECLEANINGS.len()]);
            let stats = run(pairs::options(pair, options));
            if i % 2 != 0 {
                assert_eq!(stats.spared_keys, 0, "{release:?}");
            }
        }
    }
}

#[test]
fn counters_say_who_asked_for_what() {
    let options = |precleaning| {
        Options::new(BUDGET)
            .durability(Durability::None)
            .precleaning(precleaning)
    };
    let off = run(options(Precleaning::Off));
    assert_eq!(off.cleaned_by_check_back, 0);
    // What a release needs is cleaned all the same.
    assert!(off.cleaned_by_age > 0);
    let check_back = run(options(Precleaning::CheckBack));
    assert!(check_back.cleaned_by_check_back + check_back.cleaned_by_age > 0);
    let known = check_back.cleaned_by_check_back + check_back.cleaned_by_age;
    assert!(known <= check_back.cleaned_keys);
    // Most reads are of few keys: some of them are spared.
    assert!(check_back.spared_keys > 0);
}
