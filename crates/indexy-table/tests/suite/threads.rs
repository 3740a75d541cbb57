//! Many threads on one table.

use crate::support::{Random, StopAtDrop, assert_sound, ids, open, people, scan};
use indexy::Isolation;
use indexy_table::{Column, Error, Index, Query, Table, Tables, Type};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

const THREADS: u64 = 4;

/// Random calls on few rows, by which unique keys move about.
fn churn(people: &Table, random: &mut Random) {
    let tables = Tables::open(people.db()).unwrap();
    let isolation = match random.below(2) {
        0 => Isolation::Serializable,
        _ => Isolation::Snapshot,
    };
    let (id, other) = (random.below(40), random.below(40));
    let name = format!("name {}", random.below(30));
    let city = format!("city {}", random.below(5));
    let (what, age) = (random.below(5), random.below(9) as i64);
    let done = tables.transact(|tx| {
        tx.isolation(isolation);
        let mut people = people.within(tx)?;
        match what {
            0 => people.insert((id, &name, &city, age)),
            1 => people.upsert((id, &name, &city, age)).map(drop),
            2 => people
                .update(id, [("city", &city), ("name", &name)])
                .map(drop),
            3 => people.delete(id).map(drop),
            // A name goes from one to another.
            _ => {
                let Some(row) = people.get(other)? else {
                    return Ok(());
                };
                people.delete(other)?;
                let mut row = row.into_values();
                row[0] = id.into();
                people.upsert(row).map(drop)
            }
        }
    });
    match done {
        Ok(()) | Err(Error::DuplicateKey { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn i14_an_index_kept_by_four_threads_equals_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    let people = people(&open(dir.path()));
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        let _stop = StopAtDrop(&stop);
        let checker = s.spawn(|| {
            while !stop.load(Relaxed) {
                let report = people.verify();
                if let Ok(report) = report {
                    assert!(report.is_ok(), "{report:?}");
                }
            }
        });
        let writers = (0..THREADS).map(|thread| {
            let people = &people;
            s.spawn(move || {
                let mut random = Random(thread);
                (0..400).for_each(|_| churn(people, &mut random));
            })
        });
        let writers: Vec<_> = writers.collect();
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        stop.store(true, Relaxed);
        checker.join().unwrap();
        assert!(ended.iter().all(Result::is_ok));
    });
    assert_sound(&people);
    let names = scan(&people, &Query::index("by_name").columns(["name"]));
    assert!(!names.is_empty() && names.windows(2).all(|pair| pair[0] < pair[1]));
}

/// All threads insert the same names: each name goes to one row.
#[test]
fn each_unique_key_is_given_once() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let dir = tempfile::tempdir().unwrap();
        let people = people(&open(dir.path()));
        let tables = Tables::open(people.db()).unwrap();
        let (given, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|s| {
            for thread in 0..THREADS {
                let (people, tables, given, refused) = (&people, &tables, &given, &refused);
                s.spawn(move || {
                    for number in 0..50u64 {
                        let row = (thread * 100 + number, format!("{number}"), "Paris", 1);
                        let done = tables.transact(|tx| {
                            tx.isolation(isolation);
                            people.within(tx)?.insert(row.clone())
                        });
                        match done {
                            Ok(()) => given.fetch_add(1, Relaxed),
                            Err(Error::DuplicateKey { .. }) => refused.fetch_add(1, Relaxed),
                            Err(error) => panic!("{error}"),
                        };
                    }
                });
            }
        });
        assert_eq!(
            (given.into_inner(), refused.into_inner()),
            (50, 150),
            "{isolation:?}"
        );
        assert_sound(&people);
    }
}

/// Indexes are built and dropped, and a column is added, while others write.
#[test]
fn i14_an_index_built_beside_writers_equals_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    let people = people(&open(dir.path()));
    for id in 100..1500u64 {
        people
            .insert((id, format!("old {id}"), "Rome", (id % 7) as i64))
            .unwrap();
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        for thread in 0..2 {
            let (people, stop) = (&people, &stop);
            s.spawn(move || {
                let mut random = Random(thread);
                let mut next = 2000 + thread;
                while !stop.load(Relaxed) {
                    // Old rows move, go and come, so that the build meets them in every state.
                    let id = 100 + random.below(1400);
                    match random.below(4) {
                        0 => drop(
                            people
                                .update(id, [("age", random.below(9) as i64)])
                                .unwrap(),
                        ),
                        1 => drop(people.delete(id).unwrap()),
                        2 => match people.insert((id, format!("old {id}"), "Rome", 3)) {
                            Ok(()) | Err(Error::DuplicateKey { .. }) => {}
                            Err(error) => panic!("{error}"),
                        },
                        _ => {
                            next += 2;
                            people.insert_named([("id", next), ("age", 1)]).unwrap();
                        }
                    }
                }
            });
        }
        let _stop = StopAtDrop(&stop);
        for round in 0..3 {
            people
                .create_index("by_age", Index::on(["age"]).include(["city"]))
                .unwrap();
            let report = people.verify().unwrap();
            assert!(report.is_ok(), "{round}: {report:?}");
            assert_eq!(report.indexes.len(), 3);
            if round < 2 {
                people.drop_index("by_age").unwrap();
            }
        }
    });
    assert_sound(&people);
    people
        .add_column("height", Column::new(Type::I64).nullable())
        .unwrap();
    let by_age = ids(&people, &Query::index("by_age").columns(["id"]));
    assert_eq!(by_age.len(), scan(&people, &Query::all()).len());
}
