//! The whole workload on small databases, and databases broken on purpose.

use super::{
    schema::{self, CallForwarding, Subscriber, number},
    *,
};
use crate::{
    application::{
        Application as _,
        testing::{Lossy, SEED, check, dump, load, map, open, put, remove, row, run},
    },
    contender::{BTreeTables, IndexyTables, IndexyTransactions, Tables},
};

const CONFIG: Config = Config {
    subscribers: 1200,
    zipf: None,
};

fn loaded() -> (Tatp, BTreeTables) {
    let tatp = Tatp::new(CONFIG, SEED);
    let tables = map(&tatp);
    load(&tatp, &tables);
    (tatp, tables)
}

fn runs_consistently<T: Tables>(tatp: &Tatp, tables: &T, each: u32) {
    let rows = load(tatp, tables);
    assert_eq!(check(tatp, tables).unwrap(), rows);
    let counted = run(tatp, tables, each).unwrap();
    let all = f64::from(2 * each);
    let location = counted["update_location_succeeded"] / all;
    assert!((0.12..0.16).contains(&location), "{location}");
    assert!(counted["get_new_destination_succeeded"] > 0.0);
    check(tatp, tables).unwrap();
}

#[test]
fn a_map_stays_consistent_by_the_mix_and_by_any_skew() {
    for zipf in [None, Some(0.5), Some(1.5)] {
        let tatp = Tatp::new(Config { zipf, ..CONFIG }, SEED);
        runs_consistently(&tatp, &map(&tatp), 30_000);
    }
}

#[test]
fn pairs_of_ours_stay_consistent_and_transactions_without_locks() {
    std::thread::scope(|scope| {
        for variant in ["art-lsm", "none-bplus"] {
            scope.spawn(move || {
                let dir = tempfile::tempdir().unwrap();
                let tatp = Tatp::new(CONFIG, SEED);
                let tables: IndexyTables = open(&tatp, dir.path(), variant);
                runs_consistently(&tatp, &tables, 6000);
                tables.close().unwrap();
            });
        }
        scope.spawn(|| {
            let dir = tempfile::tempdir().unwrap();
            // Few subscribers are popular: transactions meet.
            let zipf = Some(1.5);
            let tatp = Tatp::new(Config { zipf, ..CONFIG }, SEED);
            let tables: IndexyTransactions = open(&tatp, dir.path(), "art-lsm");
            runs_consistently(&tatp, &tables, 6000);
            tables.close().unwrap();
        });
    });
}

#[test]
fn the_population_is_the_descriptions_whoever_loads_what_when() {
    let (tatp, tables) = loaded();
    let other = Tatp::new(CONFIG, SEED);
    let backwards = map(&other);
    for unit in (0..other.units()).rev() {
        other.load(&backwards, unit).unwrap();
    }
    let entries = dump(&tatp, &tables);
    assert!(entries == dump(&other, &backwards));
    let of = |table: Table| entries.iter().filter(|e| e.0 == table as usize).count();
    assert_eq!(of(Table::Subscriber), 1200);
    assert_eq!(of(Table::SubscriberByNumber), 1200);
    // 2.5 a subscriber, and 1.5 for each facility.
    for (table, expected) in [
        (Table::AccessInfo, 3000),
        (Table::SpecialFacility, 3000),
        (Table::CallForwarding, 4500),
    ] {
        let found = of(table);
        let share = found as f64 / f64::from(expected);
        assert!((0.93..1.07).contains(&share), "{table:?}: {found}");
    }
    let close = |found: u64, estimate: u64| {
        let share = found as f64 / estimate as f64;
        assert!((0.95..1.05).contains(&share), "{found} against {estimate}");
    };
    close(entries.len() as u64, CONFIG.entries());
    let bytes: usize = entries.iter().map(|e| e.1.len() + e.2.len()).sum();
    close(bytes as u64, CONFIG.bytes());
}

#[test]
fn the_shares_of_the_mix_and_of_success_are_the_descriptions() {
    let shares: u32 = Transaction::ALL.iter().map(|kind| kind.share()).sum();
    assert_eq!(shares, 100);
    let (tatp, tables) = loaded();
    run(&tatp, &tables, 40_000).unwrap();
    let outcomes = tatp.known.outcomes();
    for kind in Transaction::ALL {
        let (tried, succeeded) = outcomes.of(kind);
        let share = tried as f64 / 80_000.0 * 100.0;
        assert!(
            (share - f64::from(kind.share())).abs() < 0.6,
            "{kind:?}: {share}"
        );
        let (least, most) = kind.success();
        let success = succeeded as f64 / tried as f64;
        let slack = 0.05;
        assert!(
            (least - slack..=most + slack).contains(&success),
            "{kind:?}: {success}"
        );
    }
}

/// What a check says of a database that `harm` harmed.
fn complaint(harm: impl FnOnce(&BTreeTables)) -> String {
    let (tatp, tables) = loaded();
    run(&tatp, &tables, 500).unwrap();
    check(&tatp, &tables).unwrap();
    harm(&tables);
    check(&tatp, &tables).unwrap_err().to_string()
}

/// The first key of subscriber 7 in `table`.
fn first_key(tables: &BTreeTables, table: Table) -> Vec<u8> {
    let mut found = None;
    let see = |key: &[u8], _: &[u8]| {
        found = Some(key.to_vec());
        false
    };
    let (from, to) = (schema::subscriber(7), schema::subscriber(9));
    tables.scan(table as usize, &from, &to, see).unwrap();
    found.unwrap()
}

#[test]
fn each_condition_fails_when_it_is_broken() {
    let said = complaint(|tables| {
        let key = schema::subscriber(7);
        let bytes = row(tables, Table::Subscriber, &key).unwrap();
        let mut subscriber = Subscriber::read(&bytes).unwrap();
        subscriber.vlr_location ^= 1;
        put(
            tables,
            Table::Subscriber,
            &key,
            subscriber.write(&mut vec![]),
        );
    });
    assert!(said.contains("subscriber 7: VLR_LOCATION"), "{said}");

    let said = complaint(|tables| {
        let key = first_key(tables, Table::CallForwarding);
        remove(tables, Table::CallForwarding, &key);
    });
    assert!(said.contains("call forwardings are there"), "{said}");

    let said = complaint(|tables| {
        // Moved to a time at which none starts.
        let key = first_key(tables, Table::CallForwarding);
        let bytes = row(tables, Table::CallForwarding, &key).unwrap();
        assert!(CallForwarding::read(&bytes).is_some());
        remove(tables, Table::CallForwarding, &key);
        let moved = [&key[..5], &[23]].concat();
        put(tables, Table::CallForwarding, &moved, &bytes);
    });
    assert!(said.contains("starts at no such time"), "{said}");

    let said = complaint(|tables| {
        put(tables, Table::SubscriberByNumber, &number(7), &[0, 0, 0, 8]);
    });
    assert!(said.contains("subscriber 7: its number"), "{said}");

    let said = complaint(|tables| {
        for kind in 1..=4 {
            remove(tables, Table::AccessInfo, &schema::of_type(7, kind));
        }
    });
    assert!(said.contains("access_info has 0 rows of it"), "{said}");

    let said = complaint(|tables| put(tables, Table::AccessInfo, &schema::of_type(7, 1), &[1]));
    assert!(said.contains("was never written"), "{said}");
}

#[test]
fn an_engine_that_finds_too_little_is_found_out_by_the_shares() {
    let (tatp, tables) = loaded();
    // Each subscriber keeps one.
    let mut last = Vec::new();
    for (table, key, _) in dump(&tatp, &tables) {
        if table == Table::AccessInfo as usize {
            if key[..4] == last[..] {
                remove(&tables, Table::AccessInfo, &key);
            }
            last = key[..4].to_vec();
        }
    }
    run(&tatp, &tables, 5000).unwrap();
    let said = check(&tatp, &tables).unwrap_err().to_string();
    assert!(said.contains("get_access_data: "), "{said}");
}

#[test]
fn an_engine_that_loses_a_write_is_found_out() {
    for table in [Table::Subscriber, Table::CallForwarding] {
        let (tatp, tables) = loaded();
        let lossy = Lossy::over(tables, table, 10..30);
        let verdict = run(&tatp, &lossy, 3000).and_then(|_| check(&tatp, &lossy));
        let said = verdict.unwrap_err().to_string();
        assert!(said.starts_with("subscriber "), "{said}");
    }
}
