//! What is cleaned ahead of need, by each kind of pre-cleaning. The cleaner runs here for one step
//! at a time, on the thread of the test.

use super::*;
use crate::framework::{
    clean::cleaner::Cleaner,
    counters::{self, read},
    policies::Precleaning,
    signal::Stop,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

const SMALL_BUDGET: usize = 4 << 20;
/// More than a pass is due after; with their values a third of the budget.
const KEYS: u16 = 4000;
const VALUE_BYTES: usize = 300;
/// Less than a run takes.
const REGION_BYTES: u64 = 8 << 10;
const PRECLEANINGS: [Precleaning; 3] = [
    Precleaning::CheckBack,
    Precleaning::Oldest,
    Precleaning::Off,
];

/// Runs `test` once for each kind of Index X, with `keys` dirty keys in many regions.
fn each(precleaning: Precleaning, keys: u16, test: impl Fn(&Arc<Rig>, &Joined, &MemoryY)) {
    let policies = Policies {
        precleaning,
        ..Policies::default()
    };
    let manifest = Manifest {
        policies,
        ..Manifest::default()
    };
    for kind in X_KINDS {
        let (sim, none) = (Sim::default(), BTreeMap::new());
        let rig = Rig::open(kind, SMALL_BUDGET, sim, none, manifest);
        let (tree, y) = rig.tree(TREE);
        for n in 0..keys {
            put(&tree, &n.to_be_bytes(), &[7; VALUE_BYTES]);
        }
        tree.choose_regions_of(REGION_BYTES);
        let low = rig.shared.room.watermarks().low;
        assert!(rig.shared.budget.used() < low, "memory is not short");
        test(&rig, &tree, &y);
    }
}

/// One step of a cleaner that has just begun: what was written so far makes a pass due, unless
/// there is something more urgent.
fn one_step(rig: &Arc<Rig>) {
    let stop = Stop::new(rig.shared.poison.clone());
    // A step lists the trees when it begins, and again when it comes to the log.
    let end = stop.clone();
    *rig.after_listing.lock() = Some(Box::new(move |rig: &Rig| {
        *rig.after_listing.lock() = Some(Box::new(move |_: &Rig| end.set()));
    }));
    rig.shared.wake_cleaner.notify();
    let cleaner = Cleaner {
        stop,
        shared: rig.shared.clone(),
        host: rig.clone(),
    };
    cleaner.run();
}

/// Keys cleaned so far: by check-back, and by age.
fn cleaned(rig: &Rig) -> (u64, u64) {
    let counters = &rig.shared.counters;
    (
        read(&counters.cleaned_by_check_back),
        read(&counters.cleaned_by_age),
    )
}

fn is_half_clean(tree: &Joined) -> bool {
    tree.x.stats().dirty * 2 <= usize::from(KEYS)
}

#[test]
fn a_pass_cleans_what_went_quiet_or_what_is_oldest_or_nothing() {
    for precleaning in PRECLEANINGS {
        each(precleaning, KEYS, |rig, tree, y| {
            one_step(rig);
            let first = cleaned(rig);
            one_step(rig);
            let second = cleaned(rig);
            let all = y.contents().len() as u64;
            match precleaning {
                Precleaning::CheckBack => {
                    assert_eq!(first, (0, 0), "all was written since the last pass");
                    assert!(second.0 > 0 && second.1 == 0, "{second:?}");
                    assert_eq!(all, second.0);
                }
                Precleaning::Oldest => {
                    assert!(first.1 > 0 && second.1 > first.1, "{first:?} {second:?}");
                    assert_eq!((second.0, all), (0, second.1));
                }
                Precleaning::Off => {
                    assert_eq!((first, second, all), ((0, 0), (0, 0), 0));
                    assert_eq!(tree.x.stats().dirty, usize::from(KEYS));
                }
            }
        });
    }
}

#[test]
fn a_pass_after_a_release_keeps_ahead_of_the_next_one_unless_it_is_off() {
    for precleaning in PRECLEANINGS {
        each(precleaning, KEYS, |rig, tree, y| {
            counters::add(&rig.shared.counters.released_bytes, 1);
            one_step(rig);
            match precleaning {
                Precleaning::Off => assert_eq!(y.contents().len(), 0),
                _ => assert!(is_half_clean(tree), "{:?}", tree.x.stats()),
            }
        });
    }
}

/// What a release waits for is cleaned by all; with `Off`, no more than that.
#[test]
fn what_a_release_asks_for_is_cleaned_by_every_kind() {
    for precleaning in PRECLEANINGS {
        each(precleaning, KEYS, |rig, tree, _| {
            rig.shared.clean_request.ask();
            one_step(rig);
            assert!(!rig.shared.clean_request.is_pending(), "it was answered");
            let (runs, by_age) = (read(&rig.shared.counters.runs), cleaned(rig).1);
            match precleaning {
                Precleaning::Off => assert!(runs == 1 && by_age > 0, "{by_age} in {runs} runs"),
                _ => assert!(runs > 1, "{precleaning:?}"),
            }
            assert!(tree.x.stats().dirty > 0, "{precleaning:?}");
        });
    }
}

/// The conformance of pre-cleaning: what counts as clean is what Y has, and nothing is lost.
#[test]
fn i2_every_kind_writes_what_is_and_calls_clean_what_y_has() {
    const FEW: u16 = 1000;
    for precleaning in PRECLEANINGS {
        each(precleaning, FEW, |rig, tree, y| {
            let mut random = StdRng::seed_from_u64(7);
            let first = (0..FEW).map(|n| (n.to_be_bytes().to_vec(), vec![7; VALUE_BYTES]));
            let mut expected: BTreeMap<Vec<u8>, Vec<u8>> = first.collect();
            for round in 0..12u8 {
                for _ in 0..200 {
                    let key = random.random_range(0..FEW).to_be_bytes();
                    if random.random_range(0..8) == 0 {
                        remove(tree, &key);
                        expected.remove(&key[..]);
                    } else {
                        let value = vec![round; random.random_range(1..VALUE_BYTES)];
                        put(tree, &key, &value);
                        expected.insert(key.to_vec(), value);
                    }
                }
                if round % 4 == 1 {
                    rig.shared.clean_request.ask();
                }
                one_step(rig);
                assert_clean_means_equal(tree);
                if round % 3 == 2 {
                    let freed = cut(tree).freed_bytes as u64;
                    counters::add(&rig.shared.counters.released_bytes, freed);
                }
                assert_all(tree, FEW, &expected);
            }
            rig.flush().unwrap();
            assert!(y.contents() == expected, "{precleaning:?}");
            put(tree, &[0, 0], b"in the log");
            expected.insert(vec![0, 0], b"in the log".to_vec());
            rig.log().sync().unwrap();
            let rig = rig.crash(7);
            assert_all(&rig.trees()[0], FEW, &expected);
        });
    }
}

fn assert_all(tree: &Joined, keys: u16, expected: &BTreeMap<Vec<u8>, Vec<u8>>) {
    for key in (0..keys).map(u16::to_be_bytes) {
        assert_eq!(get(tree, &key).as_ref(), expected.get(&key[..]), "{key:?}");
    }
}
