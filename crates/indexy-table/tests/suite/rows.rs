//! Single rows: what is refused, and that what is refused changes nothing.

use crate::support::{assert_sound, open, people, scan};
use indexy::Isolation;
use indexy_table::{Error, PRIMARY, Query, Schema, Tables, Timestamp, Type, Value};

const NULL: Option<&str> = None;

#[test]
fn rows_of_all_types_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let types = [
        (Type::Bool, Value::from(true)),
        (Type::I32, (-5i32).into()),
        (Type::I64, i64::MIN.into()),
        (Type::U64, u64::MAX.into()),
        (Type::F64, (-0.25).into()),
        (Type::Text, "a\0b\u{1}".into()),
        (Type::Bytes, Value::from(&[0, 1, 255])),
        (Type::Timestamp, Timestamp(-1).into()),
    ];
    // Each type in the key, and in the row.
    for (at, (ty, value)) in types.iter().enumerate() {
        let mut schema = Schema::new(format!("t{at}")).column("key", *ty);
        for (column, (ty, _)) in types.iter().enumerate() {
            schema = schema.column(format!("c{column}"), *ty);
        }
        let tables = Tables::open(&db).unwrap();
        let table = tables.create_table(schema.primary_key(["key"])).unwrap();
        let row = std::iter::once(value).chain(types.iter().map(|(_, value)| value));
        let row: Vec<Value> = row.cloned().collect();
        table.insert(row.clone()).unwrap();
        let found = table.get(value.clone()).unwrap().unwrap();
        assert_eq!(found.into_values(), row);
        assert_eq!(scan(&table, &Query::all()), [row]);
    }
}

#[test]
fn what_does_not_fit_is_a_typed_error_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let people = people(&db);
    people.insert((1u64, "Ada", "London", 36)).unwrap();
    let before = scan(&people, &Query::all());

    let count = people.insert((2u64, "Alan")).unwrap_err();
    assert!(matches!(
        count,
        Error::WrongCount {
            expected: 4,
            found: 2,
            ..
        }
    ));
    let wrong = people.insert((2u64, "Alan", 7, 41)).unwrap_err();
    assert!(matches!(wrong, Error::WrongType { ref column, .. } if column == "city"));
    let negative = people.insert((-1, "Alan", NULL, 41)).unwrap_err();
    assert!(matches!(negative, Error::WrongType { ref column, .. } if column == "id"));
    let null = people
        .insert((2u64, "Alan", NULL, None::<i64>))
        .unwrap_err();
    assert!(matches!(null, Error::NotNull { ref column, .. } if column == "age"));
    let unknown = people.insert_named([("town", "Paris")]).unwrap_err();
    assert!(matches!(unknown, Error::UnknownColumn { ref column, .. } if column == "town"));
    let missing = people.insert_named([("id", 2)]).unwrap_err();
    assert!(matches!(missing, Error::NotNull { ref column, .. } if column == "age"));
    let primary = people.insert((1u64, "Eve", NULL, 1)).unwrap_err();
    assert!(matches!(primary, Error::DuplicateKey { ref index, .. } if index == PRIMARY));
    let name = people.insert((2u64, "Ada", NULL, 1)).unwrap_err();
    assert!(matches!(name, Error::DuplicateKey { ref index, .. } if index == "by_name"));
    let update = people.update(1u64, [("age", "old")]).unwrap_err();
    assert!(matches!(update, Error::WrongType { .. }));
    let key = people.get("one").unwrap_err();
    assert!(matches!(key, Error::WrongType { .. }));
    let long = people
        .insert((2u64, "x".repeat(70_000), NULL, 1))
        .unwrap_err();
    assert!(matches!(long, Error::KeyTooLong { .. }));

    assert_eq!(scan(&people, &Query::all()), before);
    assert_sound(&people);
}

#[test]
fn a_row_over_the_limit_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let schema = Schema::new("files")
        .column("id", Type::U64)
        .column("data", Type::Bytes);
    let tables = Tables::open(&db).unwrap();
    let files = tables.create_table(schema.primary_key(["id"])).unwrap();
    let limit = db.batch().limit();
    files.insert((1u64, vec![7; limit / 2])).unwrap();
    let large = files.insert((2u64, vec![7; limit])).unwrap_err();
    assert!(matches!(large, Error::RowTooLarge { .. }), "{large}");
    // Two that fit alone, and not together.
    let both = tables.transact(|tx| {
        files.within(tx)?.insert((3u64, vec![7; limit / 2]))?;
        files.within(tx)?.insert((4u64, vec![7; limit / 2]))
    });
    let Err(Error::Db(indexy::Error::BatchTooLarge { .. })) = both else {
        panic!("{both:?}");
    };
    assert_eq!(
        scan(&files, &Query::all().columns(["id"])),
        [[Value::U64(1)]]
    );
}

/// A call that fails in the middle of its entries leaves none of them in the transaction.
#[test]
fn i14_a_failed_call_in_a_transaction_leaves_no_part_of_a_row() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let people = people(&db);
    let tables = Tables::open(&db).unwrap();
    people.insert((1u64, "Ada", "London", 36)).unwrap();
    let limit = db.batch().limit();
    tables
        .transact(|tx| {
            let mut people = people.within(tx)?;
            people.insert((2u64, "Alan", "London", 41))?;
            // A duplicate after the row was written down, a key that is too long after that.
            assert!(people.insert((3u64, "Ada", "Rome", 1)).is_err());
            assert!(
                people
                    .insert((3u64, "x".repeat(70_000), "Rome", 1))
                    .is_err()
            );
            assert!(people.upsert((2u64, "Ada", "Rome", 1)).is_err());
            assert!(people.update(2u64, [("name", "Ada")]).is_err());
            assert!(people.insert((3u64, "Eve", "x".repeat(limit), 1)).is_err());
            Ok(())
        })
        .unwrap();
    assert_sound(&people);
    assert_eq!(scan(&people, &Query::all()).len(), 2);
    assert!(people.get(3u64).unwrap().is_none());
}

#[test]
fn null_equals_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let people = people(&open(dir.path()));
    for id in 0..4u64 {
        people.insert((id, NULL, NULL, 1)).unwrap();
    }
    let unnamed = Query::index("by_name").prefix(Value::Null).columns(["id"]);
    assert_eq!(scan(&people, &unnamed).len(), 4);
    people.update(2u64, [("name", "Ada")]).unwrap();
    assert!(people.update(3u64, [("name", "Ada")]).is_err());
    people.update(2u64, [("name", NULL)]).unwrap();
    people.update(3u64, [("name", "Ada")]).unwrap();
    assert_eq!(scan(&people, &unnamed).len(), 3);
    assert_sound(&people);
}

#[test]
fn a_key_may_change_and_a_unique_value_may_move() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let people = people(&db);
    people.insert((1u64, "Ada", "London", 36)).unwrap();
    people.insert((2u64, "Alan", "London", 41)).unwrap();
    assert!(people.update(1u64, [("id", 3)]).unwrap());
    assert!(people.get(1u64).unwrap().is_none());
    let taken = people.update(3u64, [("id", 2)]).unwrap_err();
    assert!(matches!(taken, Error::DuplicateKey { ref index, .. } if index == PRIMARY));
    // In one transaction a unique value goes from one row to another.
    let tables = Tables::open(&db).unwrap();
    tables
        .transact(|tx| {
            let mut people = people.within(tx)?;
            people.delete(3u64)?;
            people.update(2u64, [("name", "Ada")])
        })
        .unwrap();
    assert_sound(&people);
    let ada = Query::index("by_name").prefix("Ada").columns(["id"]);
    assert_eq!(scan(&people, &ada), [[Value::U64(2)]]);
}

/// Both look, both find nothing: one of them conflicts, under snapshot isolation, too.
#[test]
fn uniqueness_is_kept_under_both_isolations() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path());
        let people = people(&db);
        let (mut one, mut two) = (db.begin().unwrap(), db.begin().unwrap());
        for (tx, id) in [(&mut one, 1u64), (&mut two, 2)] {
            tx.isolation(isolation);
            people
                .within(tx)
                .unwrap()
                .insert((id, "Ada", NULL, 1))
                .unwrap();
        }
        one.commit().unwrap();
        assert!(two.commit().unwrap_err().is_retryable(), "{isolation:?}");
        // One frees a name that the other one takes.
        let (mut one, mut two) = (db.begin().unwrap(), db.begin().unwrap());
        for tx in [&mut one, &mut two] {
            tx.isolation(isolation);
        }
        people.within(&mut one).unwrap().delete(1u64).unwrap();
        let taken = people
            .within(&mut two)
            .unwrap()
            .insert((3u64, "Ada", NULL, 1));
        assert!(matches!(taken, Err(Error::DuplicateKey { .. })));
        one.commit().unwrap();
        people.insert((3u64, "Ada", NULL, 1)).unwrap();
        assert_sound(&people);
    }
}

#[test]
fn a_transaction_of_another_database_is_refused() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (db, other) = (open(one.path()), open(two.path()));
    let people = people(&db);
    let mut tx = other.begin().unwrap();
    let refused = people.within(&mut tx).err();
    assert!(matches!(
        refused,
        Some(Error::Db(indexy::Error::ForeignTree))
    ));
    let refused = people.at(&other.snapshot().unwrap()).err();
    assert!(matches!(
        refused,
        Some(Error::Db(indexy::Error::ForeignTree))
    ));
}

/// A retryable error from inside a table's call makes `transact` begin anew.
#[test]
fn conflicts_are_retried() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let people = people(&db);
    people.insert((1u64, "Ada", NULL, 1)).unwrap();
    let mut attempts = 0;
    Tables::open(&db)
        .unwrap()
        .transact(|tx| {
            attempts += 1;
            let mut mine = people.within(tx)?;
            let row = mine.get(1u64)?.unwrap().into_values();
            if attempts == 1 {
                people.update(1u64, [("age", 2)])?;
            }
            mine.insert((2u64, NULL, NULL, row[3].clone()))
        })
        .unwrap();
    assert_eq!(attempts, 2);
    assert_eq!(
        people.get(2u64).unwrap().unwrap().get("age"),
        Some(&2i64.into())
    );
}
