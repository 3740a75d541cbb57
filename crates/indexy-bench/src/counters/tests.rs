//! The whole workload on small tables, and tables broken on purpose.

use super::{
    state::{Table, write},
    *,
};
use crate::{
    application::testing::{Lossy, check, load, map, open, put, remove, run},
    contender::{IndexyTables, IndexyTransactions, Tables},
};

const CONFIG: Config = Config {
    rows: 1000,
    value_bytes: 20,
    at_once: 4,
    reads: 20,
    zipf: Some(0.9),
};

fn runs_consistently<T: Tables>(config: Config, tables: &T, each: u32) {
    let counters = Counters::new(config);
    assert_eq!(load(&counters, tables), config.rows);
    assert_eq!(check(&counters, tables).unwrap(), config.rows);
    let counted = run(&counters, tables, each).unwrap();
    let (updates, reads) = (
        counted["counters_update_succeeded"],
        counted["counters_read_succeeded"],
    );
    assert_eq!(updates + reads, f64::from(2 * each));
    let part = reads / f64::from(2 * each);
    assert!(
        (part - f64::from(config.reads) / 100.0).abs() < 0.05,
        "{part}"
    );
    assert_eq!(check(&counters, tables).unwrap(), config.rows);
}

#[test]
fn a_map_stays_consistent_by_any_shape() {
    for config in [
        CONFIG,
        Config {
            zipf: None,
            at_once: 1,
            reads: 50,
            ..CONFIG
        },
        Config {
            rows: 130,
            value_bytes: LEAST_VALUE_BYTES,
            at_once: MOST_ROWS_AT_ONCE,
            reads: 0,
            zipf: Some(1.5),
        },
    ] {
        runs_consistently(config, &map(&Counters::new(config)), 1500);
    }
}

#[test]
fn locks_and_transactions_lose_no_update() {
    let dir = tempfile::tempdir().unwrap();
    let tables: IndexyTables = open(&Counters::new(CONFIG), dir.path(), "art-lsm");
    runs_consistently(CONFIG, &tables, 4000);
    tables.close().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let tables: IndexyTransactions = open(&Counters::new(CONFIG), dir.path(), "bplus-bplus");
    runs_consistently(CONFIG, &tables, 4000);
    tables.close().unwrap();
}

#[test]
fn each_condition_fails_when_it_is_broken() {
    let key = 77_u64.to_be_bytes();
    let mut more = Vec::new();
    write(&mut more, 1_000_000, CONFIG.value_bytes);
    for (harm, expected) in [
        (None, "row 77 is missing"),
        (Some(more), "together"),
        (Some(vec![1; 20]), "never written so"),
    ] {
        let counters = Counters::new(CONFIG);
        let tables = map(&counters);
        load(&counters, &tables);
        run(&counters, &tables, 500).unwrap();
        match harm {
            None => remove(&tables, Table, &key),
            Some(row) => put(&tables, Table, &key, &row),
        }
        let said = check(&counters, &tables).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn an_engine_that_loses_a_write_is_found_out() {
    let counters = Counters::new(CONFIG);
    let tables = map(&counters);
    load(&counters, &tables);
    let lossy = Lossy::over(tables, Table, 40..60);
    run(&counters, &lossy, 500).unwrap();
    check(&counters, &lossy).unwrap_err();
}
