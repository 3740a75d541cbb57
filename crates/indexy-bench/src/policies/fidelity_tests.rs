//! The model of memory against a database: the same trace, the same policy, about as many entries.
//!
//! The database runs its threads, so that its hit ratio varies by some tenths of a point from run
//! to run. It has leaves, holes in slabs, sizes of regions that are stale, and releases that end
//! some thousand reads after they began; the model has none of these. They agree within
//! [`POINTS`] points, and within one where there is a second chance (`docs/lab/policies.md`).

use super::{Access, ENTRY_BYTES, Memory, Policy, Settings, Size, Trace, replay::replay, trace};
use indexy::{Db, Durability, Options, TreeOptions, replay::SAMPLED_ONE_IN};

const POINTS: f64 = 6.0;
const SIZE: Size = Size {
    keys: 300_000,
    accesses: 600_000,
    seed: 1,
};
const TRACE: &str = "zipf-0.7";
const POLICIES: [&str; 4] = ["density", "coldest+plain", "region-lru", "region-fifo"];
/// Little, so that both release often.
const BUDGET: usize = 2 << 20;
const LEAST_RELEASES: u64 = 2;

/// Hits of 100 reads in the second half, and how many entries memory held then, on average.
fn measured(trace: &Trace, policy: &super::Ours) -> (f64, u64) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new(BUDGET)
        .durability(Durability::None)
        .release(policy.release)
        .second_chance(policy.second_chance)
        .precleaning(policy.precleaning);
    let db = Db::open(dir.path(), options).unwrap();
    let admission = TreeOptions::new().admission(policy.admission);
    let tree = db.tree_with("trace", admission).unwrap();
    let entries = (0..u64::from(trace.keys)).map(|key| (key.to_be_bytes(), key.to_le_bytes()));
    tree.load_sorted(entries).unwrap();
    let (mut held, mut looks, mut before) = (0, 0, db.stats());
    for (index, (key, access)) in trace.iter().enumerate() {
        if index == trace.len() / 2 {
            before = db.stats();
        }
        let key = u64::from(key).to_be_bytes();
        match access {
            Access::Write => tree.insert(key, [0; 8]).unwrap(),
            _ => assert!(tree.get_with(key, |_| ()).unwrap().is_some()),
        }
        if index % 1000 == 0 && index >= trace.len() / 2 {
            held += db.stats().x_keys;
            looks += 1;
        }
    }
    let after = db.stats();
    let releases = after.releases - before.releases;
    assert!(releases >= LEAST_RELEASES, "{releases} releases");
    let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
    (hits as f64 * 100.0 / (hits + misses) as f64, held / looks)
}

fn modelled(trace: &Trace, policy: super::Ours, entries: u64) -> f64 {
    let settings = Settings {
        // It holds between its low mark and its high one, which is 226 where the low one is 212.
        bytes: entries * ENTRY_BYTES * 226 / 219,
        entry_bytes: ENTRY_BYTES,
        region_divisor: None,
        sampled_one_in: SAMPLED_ONE_IN,
        seed: 1,
    };
    let mut memory = Memory::new(trace.keys, policy, settings);
    let counts = replay(trace, &mut memory);
    assert!(memory.releases() >= LEAST_RELEASES);
    counts.percent()
}

#[test]
fn the_model_hits_as_often_as_a_database() {
    let trace = trace::make(TRACE, &SIZE).unwrap();
    let mut wrong = Vec::new();
    for policy in POLICIES {
        let Policy::Ours(ours) = Policy::parse(policy).unwrap() else {
            panic!("{policy} is not ours")
        };
        let (measured, entries) = measured(&trace, &ours);
        let modelled = modelled(&trace, ours, entries);
        let line =
            format!("{policy}: measured {measured:.1}, modelled {modelled:.1}, {entries} entries");
        println!("{line}");
        if (measured - modelled).abs() > POINTS {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
