//! Every engine with tables is a map per table, and the workloads of transactions on it are
//! consistent, TPC-C with the other tables in it and apart.

use super::*;
use crate::registry;
use indexy_bench::{
    applications::Config,
    contender::{
        BTreeTables, Durability, Focus, Others, Setup, Storage, TableBatch, TableSetup, Tables,
    },
    harness::{Emitter, Event, Phase, TableStep, Work},
    measure::PhaseResult,
    suite::{Plan, Step, TablesRun, tables_plan},
    tatp,
    tpcc::{self, Mix, Scale},
    voter,
};
use std::path::Path;

const BUDGET: u64 = 32 << 20;
const NAMES: [&str; 3] = ["one", "other", "empty"];

fn open<T: Tables>(path: &Path) -> T {
    let setup = Setup {
        path: path.to_path_buf(),
        budget: BUDGET,
        durability: Durability::None,
        threads: 2,
        records: 0,
        key_bytes: 3,
        value_bytes: 8,
        page_bytes: 0,
        focus: Focus::Mixed,
        variant: String::new(),
        cold: None,
    };
    T::open(&TableSetup {
        setup: &setup,
        names: &NAMES,
    })
    .unwrap()
}

/// All that the seam shows of a range of a table.
fn shown<T: Tables>(tables: &T, table: usize, from: &[u8], to: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut entries = Vec::new();
    let see = |key: &[u8], value: &[u8]| {
        entries.push((key.to_vec(), value.to_vec()));
        true
    };
    tables.scan(table, from, to, see).unwrap();
    let last = tables
        .last(table, from, to, |key, value| (key.to_vec(), value.to_vec()))
        .unwrap();
    assert_eq!(last.as_ref(), entries.last());
    for (key, value) in &entries {
        let found = tables.get(table, key, <[u8]>::to_vec).unwrap();
        assert_eq!(found.as_ref(), Some(value));
    }
    let mut first = Vec::new();
    let stop = |key: &[u8], value: &[u8]| {
        first.push((key.to_vec(), value.to_vec()));
        false
    };
    tables.scan(table, from, to, stop).unwrap();
    assert_eq!(first, entries[..entries.len().min(1)]);
    entries
}

fn same<T: Tables>(tables: &T, map: &BTreeTables) {
    for table in 0..NAMES.len() {
        for (from, to) in [
            (&[0][..], &[0xff, 0xff][..]),
            (&[3], &[5]),
            (&[3, 7], &[3, 8]),
            (&[4, 0, 0], &[4, 0, 0, 0]),
            (&[0xf0], &[0xf1]),
        ] {
            assert_eq!(shown(tables, table, from, to), shown(map, table, from, to));
        }
        assert!(tables.get(table, &[9, 9, 9, 9], |_| ()).unwrap().is_none());
    }
}

/// Keys of two bytes, so that later batches overwrite and remove; the same ones in two tables.
fn fill<T: Tables>(tables: &T, round: u8) {
    for a in 0..8 {
        let mut batch = tables.batch();
        for b in 0..40_u8 {
            let key = [a, b.wrapping_mul(7)];
            batch.put(0, &key, &[round, a, b]);
            batch.put(1, &key, &[]);
            if (a ^ b ^ round).is_multiple_of(3) {
                batch.remove(0, &key);
            }
            if b % 5 == round {
                batch.remove(1, &key);
                batch.put(1, &key, &[round]);
            }
        }
        batch.commit().unwrap();
    }
    let mut dropped = tables.batch();
    dropped.put(2, &[1], &[1]);
    dropped.remove(0, &[1, 0]);
    drop(dropped);
    tables.batch().commit().unwrap();
}

fn is_a_map_per_table<T: Tables>() {
    let directory = tempfile::tempdir().unwrap();
    let map: BTreeTables = open(Path::new(""));
    let tables: T = open(directory.path());
    for round in 0..3 {
        fill(&tables, round);
        fill(&map, round);
        same(&tables, &map);
    }
    tables.settle().unwrap();
    same(&tables, &map);
    tables.close().unwrap();
    let again: T = open(directory.path());
    same(&again, &map);
    again.close().unwrap();
}

#[test]
fn every_engine_is_a_map_per_table() {
    #[cfg(feature = "rocksdb")]
    is_a_map_per_table::<RocksTables>();
    #[cfg(feature = "rocksdb")]
    is_a_map_per_table::<RocksTransactions>();
    is_a_map_per_table::<FjallTables>();
    is_a_map_per_table::<FjallTransactions>();
    is_a_map_per_table::<RedbTables>();
    is_a_map_per_table::<LmdbTables>();
    is_a_map_per_table::<SqliteTables>();
}

/// Runs a small workload as the program does; the harness itself fails what is not consistent.
fn run(contender: &str, on: &Config) -> Vec<PhaseResult> {
    let registry = registry();
    let entry = registry.get(contender).unwrap();
    let workload = TablesRun {
        scenario: "small".to_owned(),
        on: on.clone(),
        budget: BUDGET,
        page_bytes: 0,
        durability: Durability::None,
        threads: 2,
        load_seconds: 0.0,
        seconds: 0.5,
        repeats: 1,
        seed: 4,
        x: None,
    };
    let mut plan = Plan::default();
    tables_plan(&workload, &[&entry.about], &mut plan);
    let Some(Step::Run(job)) = plan.steps.pop() else {
        panic!("{contender} takes no part");
    };
    let mut job = *job;
    let (step, on) = (TableStep::Check, on.clone());
    job.phases.extend([
        Phase::new("reopen", 1, Focus::Reads, Work::Reopen),
        Phase::new("again", 2, Focus::Reads, Work::Tables { step, on }),
    ]);
    let directory = tempfile::tempdir().unwrap();
    job.setup.path = directory.path().to_path_buf();
    let mut results = Vec::new();
    let mut emitter = Emitter::new(|event: &Event| {
        if let Event::Phase { result } = event {
            results.push((**result).clone());
        }
    });
    let outcome = entry.run(&job, &mut emitter);
    drop(emitter);
    outcome.unwrap_or_else(|error| panic!("{contender}, {workload:?}: {error}"));
    results
}

fn tpcc(mix: Mix, others: Others) -> Config {
    Config::Tpcc(tpcc::Config {
        scale: Scale {
            warehouses: 2,
            items: 200,
            customers: 30,
        },
        mix,
        others,
    })
}

#[test]
fn every_engine_stays_consistent_whoever_has_the_other_tables() {
    let apart = Others::Apart {
        pair: "art-lsm".to_owned(),
        resident: false,
        share: 0.5,
    };
    let workloads = [
        tpcc(Mix::Standard, Others::Same),
        tpcc(Mix::Paper, Others::Same),
        tpcc(Mix::Standard, apart.clone()),
        tpcc(Mix::Paper, apart),
        Config::Tatp(tatp::Config {
            subscribers: 2000,
            zipf: None,
        }),
        Config::Voter(voter::Config {
            contestants: 6,
            votes_a_phone: 2,
            phones_an_area: 50,
            zipf: Some(0.7),
        }),
    ];
    let registry = registry();
    let peers = registry.with_tables().into_iter().filter(|name| {
        let about = &registry.get(name).unwrap().about;
        about.storage == Storage::Disk && !name.starts_with("indexy") && !name.ends_with("-alone")
    });
    let mut seen = 0;
    for peer in peers {
        for on in &workloads {
            let results = run(peer, on);
            let of = |name: &str| results.iter().find(|p| p.name == name).unwrap();
            assert!(of("run").done > 0, "{peer}");
            // Both checks saw all rows, the second one in what was closed and opened again.
            assert!(of("check").done > 0 && !of("again").partial, "{peer}");
            assert_eq!(of("check").done, of("again").done, "{peer}");
        }
        seen += 1;
    }
    assert!(
        seen >= 5,
        "fjall twice, redb, LMDB, SQLite, and RocksDB where it is built"
    );
}
