//! Every policy of release and pre-cleaning keeps the budget, and no answer depends on it.

use crate::{
    pairs,
    places::fast_dir,
    policy_choice::{self, PRECLEANINGS, RELEASES},
    support::{MIB, Random, assert_sound, open},
};
use indexy::{Db, Durability, Options, Precleaning, Release, Stats, Tree};
use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

const BUDGET: usize = 4 * MIB;
const KEYS: u64 = 40_000;
const VALUE_BYTES: usize = 200;
/// Longest that the background takes for what is due.
const PATIENCE: Duration = Duration::from_secs(60);

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
fn every_choice_of_a_campaign_is_that_of_some_number() {
    let all: HashSet<_> = (0..10_000).map(policy_choice::chosen).collect();
    assert_eq!(all.len(), 6 * 3 * 2 * 4 * 2);
}

#[test]
fn counters_say_who_asked_for_what() {
    let options = |precleaning| {
        Options::new(BUDGET)
            .durability(Durability::None)
            .release(Release::Lru)
            .precleaning(precleaning)
    };
    for precleaning in PRECLEANINGS {
        let stats = run(options(precleaning));
        if precleaning != Precleaning::CheckBack {
            assert_eq!(stats.cleaned_by_check_back, 0, "{stats:?}");
            // What a release needs is cleaned all the same.
            assert!(stats.cleaned_by_age > 0, "{stats:?}");
        }
        assert_eq!(stats.cleaned_for_log, 0, "there is no log: {stats:?}");
        let [single, wholes @ ..] = stats.released_by_level;
        assert!(single > 0, "{stats:?}");
        assert_eq!(wholes, [0; 3], "LRU has none: {stats:?}");
        let known = stats.cleaned_by_check_back + stats.cleaned_by_age;
        assert!(known <= stats.cleaned_keys, "{stats:?}");
        // Most reads are of few keys: some of them are spared.
        assert!(stats.spared_keys > 0, "{stats:?}");
    }
}

/// Ascending keys of a range, each for the first time.
fn load(tree: &Tree, keys: std::ops::Range<u64>) {
    for n in keys {
        tree.insert(n.to_be_bytes(), value(n, 0)).unwrap();
    }
}

/// Does `work` until `done`, which it must be in the end.
fn until(db: &Db, done: impl Fn(&Stats) -> bool, mut work: impl FnMut()) -> Stats {
    let limit = Instant::now() + PATIENCE;
    loop {
        let stats = db.stats();
        if done(&stats) {
            return stats;
        }
        assert!(Instant::now() < limit, "{stats:?}");
        work();
    }
}

#[test]
fn what_went_quiet_is_cleaned_by_check_back() {
    let dir = fast_dir();
    let db = open(
        dir.path(),
        &Options::new(BUDGET).durability(Durability::None),
    );
    let tree = db.tree("t").unwrap();
    load(&tree, 0..KEYS);
    db.flush().unwrap();
    let stats = db.stats();
    assert_eq!(stats.cleaned_keys, KEYS, "each once: {stats:?}");
    // These are dirty, and quiet from here on: all writes are of one key.
    load(&tree, KEYS..KEYS + 5000);
    let before = db.stats().cleaned_by_check_back;
    until(
        &db,
        |stats| stats.cleaned_by_check_back > before,
        || (0..1000).for_each(|n| tree.insert(b"hot", value(n, 0)).unwrap()),
    );
    assert_sound(&db);
}

#[test]
fn what_keeps_the_log_from_being_cut_is_cleaned_for_it() {
    let dir = fast_dir();
    // Far more memory than data.
    let options = Options::new(16 * BUDGET)
        .durability(Durability::Buffered { interval_ms: 20 })
        .log_limit_bytes(MIB as u64);
    let db = open(dir.path(), &options);
    let tree = db.tree("t").unwrap();
    load(&tree, 0..KEYS);
    let wait = || std::thread::sleep(Duration::from_millis(5));
    until(&db, |stats| stats.cleaned_for_log > 0, wait);
    db.flush().unwrap();
    let stats = db.stats();
    assert_eq!(stats.cleaned_keys, KEYS, "each once: {stats:?}");
    assert!(stats.cleaned_for_log <= KEYS, "{stats:?}");
    let others = stats.cleaned_by_check_back + stats.cleaned_by_age;
    assert_eq!(others, 0, "memory is not short: {stats:?}");
}

/// A smaller budget: most of memory goes at once, and where nothing was read its parts are alike.
#[test]
fn algorithm_1_releases_regions_as_wholes_and_says_so() {
    let dir = fast_dir();
    let options = Options::new(4 * BUDGET).durability(Durability::None);
    let db = open(dir.path(), &options);
    let tree = db.tree("t").unwrap();
    load(&tree, 0..KEYS);
    db.flush().unwrap();
    assert_eq!(db.stats().released_by_level, [0; 4]);
    db.set_memory_budget(BUDGET).unwrap();
    let wait = || std::thread::sleep(Duration::from_millis(5));
    let wholes = |stats: &Stats| stats.released_by_level.iter().skip(1).sum::<u64>();
    let stats = until(&db, |stats| wholes(stats) > 0, wait);
    assert!(stats.released_regions > wholes(&stats));
}
