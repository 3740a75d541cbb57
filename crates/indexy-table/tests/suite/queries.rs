//! Ranges, prefixes, orders and projections; over snapshots and within transactions.

use crate::support::{ids, open, people, rows, scan};
use indexy_table::{Error, Index, Query, Schema, Tables, Type, Value};

const CITIES: [Option<&str>; 4] = [None, Some(""), Some("Paris"), Some("Parish")];

/// 40 people: in city `id % 4`, `id / 4` years old.
fn filled(db: &indexy::Db) -> indexy_table::Table {
    let people = people(db);
    for id in 0..40u64 {
        let name = format!("name {id}");
        people
            .insert((id, name, CITIES[id as usize % 4], (id / 4) as i64))
            .unwrap();
    }
    people
}

#[test]
fn ranges_and_prefixes_are_exact() {
    let dir = tempfile::tempdir().unwrap();
    let people = filled(&open(dir.path()));
    let by_city = || Query::index("by_city").columns(["id"]);
    let paris = |of: &dyn Fn(u64) -> bool| (0..40).filter(|id| id % 4 == 2 && of(id / 4)).collect();
    let cases: [(Query, Vec<u64>); 13] = [
        (Query::all(), (0..40).collect()),
        (Query::all().prefix(7u64), vec![7]),
        (Query::all().from(37u64), vec![37, 38, 39]),
        (Query::all().after(37u64), vec![38, 39]),
        (Query::all().before(2u64), vec![0, 1]),
        (Query::all().up_to(2u64).rev(), vec![2, 1, 0]),
        (by_city().prefix("Paris"), paris(&|_| true)),
        (
            by_city().prefix("Paris").from(3).before(5),
            paris(&|age| (3..5).contains(&age)),
        ),
        (
            by_city().prefix("Paris").after(3).up_to(5),
            paris(&|age| (4..=5).contains(&age)),
        ),
        (by_city().prefix(("Paris", 3)), vec![14]),
        (by_city().prefix(Value::Null).limit(2), vec![0, 4]),
        (by_city().after("Paris").limit(1), vec![3]),
        (by_city().from("Paris").before("Parish"), paris(&|_| true)),
    ];
    for (query, expected) in cases {
        assert_eq!(ids(&people, &query), expected, "{query:?}");
        let mut reversed = expected;
        reversed.reverse();
        let limited = format!("{query:?}").contains("limit: Some");
        if !limited {
            assert_eq!(ids(&people, &query.clone().rev()), reversed, "{query:?}");
        }
        // The same through rows that are looked up, and within a transaction.
        let whole = query.clone().columns(["id", "name", "age", "city"]);
        let found = rows(people.scan(&whole));
        let tables = Tables::open(people.db()).unwrap();
        let mine = tables
            .transact(|tx| Ok(rows(people.within(tx)?.scan(&whole))))
            .unwrap();
        assert_eq!(found, mine);
        assert!(
            found
                .iter()
                .all(|row| row[1] == format!("name {}", row[0]).into())
        );
    }
}

#[test]
fn empty_and_impossible_bounds_find_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let people = filled(&open(dir.path()));
    for query in [
        Query::all().from(5u64).before(5u64),
        Query::all().from(9u64).up_to(5u64),
        Query::all().after(u64::MAX),
        Query::all().limit(0),
        Query::index("by_city").prefix("Lyon"),
        Query::index("by_city").prefix("Pari"),
        Query::index("by_name").prefix("nobody"),
    ] {
        assert!(scan(&people, &query).is_empty(), "{query:?}");
    }
}

#[test]
fn a_query_that_cannot_be_is_a_typed_error() {
    let dir = tempfile::tempdir().unwrap();
    let people = filled(&open(dir.path()));
    let error = |query: Query| people.scan(&query).unwrap_err();
    let unknown = error(Query::index("by_height"));
    assert!(matches!(unknown, Error::UnknownIndex { ref index, .. } if index == "by_height"));
    let unknown = error(Query::all().columns(["height"]));
    assert!(matches!(unknown, Error::UnknownColumn { ref column, .. } if column == "height"));
    let wrong = error(Query::all().prefix("one"));
    assert!(matches!(wrong, Error::WrongType { .. }));
    let many = error(Query::all().prefix((1u64, 2u64)));
    assert!(matches!(
        many,
        Error::WrongCount {
            expected: 1,
            found: 2,
            ..
        }
    ));
    let many = error(Query::index("by_name").prefix("a").from(1u64));
    assert!(matches!(many, Error::WrongCount { expected: 0, .. }));
}

#[test]
fn a_transaction_sees_its_own_writes_in_every_order() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let people = filled(&db);
    let mut tx = db.begin().unwrap();
    let mut mine = people.within(&mut tx).unwrap();
    mine.delete(2u64).unwrap();
    mine.insert((100u64, "new", "Paris", -1)).unwrap();
    mine.update(6u64, [("city", "Rome")]).unwrap();
    let paris = Query::index("by_city").prefix("Paris");
    let found = rows(mine.scan(&paris.clone().limit(2)));
    assert_eq!(found[0][0], Value::U64(100));
    assert_eq!(found[1][0], Value::U64(10));
    assert_eq!(rows(mine.scan(&paris.clone().rev())).len(), 9);
    assert!(mine.get(2u64).unwrap().is_none());
    // Nobody else sees them.
    assert_eq!(scan(&people, &paris).len(), 10);
    drop(tx);
    assert_eq!(scan(&people, &paris).len(), 10);
}

#[test]
fn a_snapshot_sees_one_moment_through_every_index() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let people = filled(&db);
    let before = people.at(&db.snapshot().unwrap()).unwrap();
    for id in 0..40u64 {
        people.update(id, [("city", "Rome")]).unwrap();
    }
    people.delete(0u64).unwrap();
    let paris = Query::index("by_city").prefix("Paris");
    assert_eq!(rows(before.scan(&paris)).len(), 10);
    assert_eq!(rows(before.scan(&Query::all())).len(), 40);
    assert!(before.get(0u64).unwrap().is_some());
    assert!(scan(&people, &paris).is_empty());
}

/// No row can have a key that is longer than a key may be: a query for it finds none.
#[test]
fn an_equality_with_a_long_value_finds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let tables = Tables::open(&db).unwrap();
    let cases = [
        (
            Type::Text,
            Value::from("a"),
            Value::from("x".repeat(70_000)),
        ),
        (Type::Bytes, vec![1u8].into(), vec![0u8; 40_000].into()),
    ];
    for (ty, short, long) in cases {
        let schema = Schema::new(format!("by_{ty}"))
            .column("key", ty)
            .column("unique", ty)
            .column("other", ty)
            .primary_key(["key"])
            .index("unique", Index::on(["unique"]).unique())
            .index("other", Index::on(["other"]));
        let table = tables.create_table(schema).unwrap();
        table.insert(vec![short; 3]).unwrap();
        let before = table.at(&db.snapshot().unwrap()).unwrap();
        for query in [
            Query::all().prefix(vec![long.clone()]),
            Query::index("unique").prefix(vec![long.clone()]),
            Query::index("other").prefix(vec![long.clone()]),
            Query::index("other").prefix(vec![long.clone(), long.clone()]),
        ] {
            assert!(scan(&table, &query).is_empty());
            assert!(rows(before.scan(&query)).is_empty());
            let mut tx = db.begin().unwrap();
            let mine = table.within(&mut tx).unwrap();
            assert!(rows(mine.scan(&query)).is_empty());
        }
    }
}
