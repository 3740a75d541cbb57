//! Tables that change while they live.

use crate::support::{assert_sound, open, people, people_schema, rows, scan};
use indexy_table::{Column, Error, Index, Query, Schema, Tables, Type, Value};

#[test]
fn a_column_that_is_added_has_its_default_in_older_rows() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let people = people(&db);
    people.insert((1u64, "Ada", "London", 36)).unwrap();
    let before = db.snapshot().unwrap();
    people
        .add_column("email", Column::new(Type::Text).default("none"))
        .unwrap();
    people
        .add_column("height", Column::new(Type::I32).nullable())
        .unwrap();
    people
        .insert((2u64, "Alan", "London", 41, "alan@example.org", 180))
        .unwrap();

    let expected = [Value::from("none"), Value::Null];
    assert_eq!(people.get(1u64).unwrap().unwrap().values()[4..], expected);
    assert_eq!(
        people
            .at(&before)
            .unwrap()
            .get(1u64)
            .unwrap()
            .unwrap()
            .values()
            .len(),
        4
    );
    // An index over a column that older rows do not have.
    people
        .create_index("by_email", Index::on(["email"]).include(["height"]))
        .unwrap();
    let none = Query::index("by_email")
        .prefix("none")
        .columns(["id", "height"]);
    assert_eq!(scan(&people, &none), [[Value::U64(1), Value::Null]]);
    // An old row that is written again has the columns.
    people.update(1u64, [("height", 165)]).unwrap();
    assert_eq!(scan(&people, &none), [[Value::U64(1), Value::I32(165)]]);
    assert_sound(&people);

    drop((people, before));
    db.close().unwrap();
    let db = open(dir.path());
    let people = Tables::open(&db).unwrap().table("people").unwrap();
    assert_eq!(scan(&people, &none), [[Value::U64(1), Value::I32(165)]]);
    assert_eq!(people.schema().unwrap().columns().count(), 6);
}

#[test]
fn changes_that_cannot_work_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let people = people(&open(dir.path()));
    let refused = |result: Result<(), Error>| match result {
        Err(Error::InvalidSchema { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    let reason = refused(people.add_column("height", Type::I32));
    assert!(reason.contains("older rows"), "{reason}");
    refused(people.add_column("age", Column::new(Type::I32).nullable()));
    refused(people.add_column("height", Column::new(Type::I32).default("tall")));
    refused(people.add_column("", Column::new(Type::I32).nullable()));
    refused(people.create_index("by_height", Index::on(["height"])));
    refused(people.create_index("by_name", Index::on(["age"])));
    refused(people.create_index("i", Index::on(["age", "age"])));
    refused(people.create_index("i", Index::on(Vec::<String>::new())));
    let unknown = people.drop_index("by_height").unwrap_err();
    assert!(matches!(unknown, Error::UnknownIndex { .. }));
    let fits = Tables::open(people.db()).unwrap();
    fits.create_table(people_schema()).unwrap();
}

#[test]
fn a_unique_index_over_duplicates_is_not_built() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let people = people(&db);
    for id in 0..300u64 {
        people
            .insert((id, format!("{id}"), "Rome", (id % 299) as i64))
            .unwrap();
    }
    let trees = db.tree_names();
    let refused = people
        .create_index("by_age", Index::on(["age"]).unique())
        .unwrap_err();
    assert!(matches!(refused, Error::DuplicateKey { ref index, .. } if index == "by_age"));
    assert_eq!(db.tree_names(), trees);
    let gone = people.scan(&Query::index("by_age")).unwrap_err();
    assert!(matches!(gone, Error::UnknownIndex { .. }));
    people.insert((300u64, "300", "Rome", 0)).unwrap();
    people.delete(300u64).unwrap();
    people.delete(299u64).unwrap();
    people
        .create_index("by_age", Index::on(["age"]).unique())
        .unwrap();
    assert_sound(&people);
    assert!(people.insert((299u64, "299", "Rome", 0)).is_err());
}

/// A transaction that began before an index did does not commit without it.
#[test]
fn i14_a_transaction_from_before_an_index_conflicts() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let people = people(&db);
    let mut tx = db.begin().unwrap();
    tx.isolation(indexy::Isolation::Snapshot);
    people
        .within(&mut tx)
        .unwrap()
        .insert((1u64, "Ada", "London", 36))
        .unwrap();
    people.create_index("by_age", Index::on(["age"])).unwrap();
    assert!(tx.commit().unwrap_err().is_retryable());
    people.insert((1u64, "Ada", "London", 36)).unwrap();
    assert_sound(&people);
    // Nor after the table is dropped.
    let mut tx = db.begin().unwrap();
    people.within(&mut tx).unwrap().delete(1u64).unwrap();
    Tables::open(&db).unwrap().drop_table("people").unwrap();
    assert!(tx.commit().is_err());
}

/// It meets the tree that is gone before it could conflict.
#[test]
fn a_transaction_that_meets_a_dropped_index_is_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    let people = people(&open(dir.path()));
    let mut attempts = 0;
    let tables = Tables::open(people.db()).unwrap();
    tables
        .transact(|tx| {
            attempts += 1;
            let mut mine = people.within(tx)?;
            match attempts {
                // Met by the call, which looks whether the name is free.
                1 => people.drop_index("by_name")?,
                // Met by the commit.
                2 => people.drop_index("by_city")?,
                _ => {}
            }
            let done = mine.insert((1u64, "Ada", "London", 36));
            assert_eq!(done.as_ref().is_err_and(Error::is_retryable), attempts == 1);
            done
        })
        .unwrap();
    assert_eq!(attempts, 3);
    assert_sound(&people);
}

#[test]
fn a_dropped_table_is_gone_and_its_name_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let old = people(&db);
    old.insert((1u64, "Ada", "London", 36)).unwrap();
    let tables = Tables::open(&db).unwrap();
    tables.drop_table("people").unwrap();
    assert_eq!(db.tree_names(), ["indexy.tables"]);
    let unknown = |error: Option<Error>| matches!(error, Some(Error::UnknownTable { .. }));
    assert!(unknown(tables.drop_table("people").err()));
    assert!(unknown(tables.table("people").err()));
    // Another one with the same name is another one.
    let schema = Schema::new("people")
        .column("id", Type::Text)
        .primary_key(["id"]);
    let new = tables.create_table(schema).unwrap();
    new.insert("Ada").unwrap();
    assert!(unknown(old.get(1u64).err()));
    assert!(unknown(old.insert((1u64, "Ada", "London", 36)).err()));
    assert!(unknown(old.scan(&Query::all()).err()));
    let schema = new.schema().unwrap();
    let trees = db.tree_names();
    assert!(unknown(
        old.add_column("note", Column::new(Type::I64).default(0))
            .err()
    ));
    assert!(unknown(
        old.create_index("by_age", Index::on(["age"])).err()
    ));
    assert!(unknown(old.drop_index("by_city").err()));
    assert_eq!(new.schema().unwrap(), schema);
    assert_eq!(db.tree_names(), trees);
    assert_eq!(rows(new.scan(&Query::all())), [["Ada".into()]]);
}

/// What a crash leaves in the middle of a build: an index that is not ready, with some entries.
#[test]
fn a_build_that_a_crash_ended_is_taken_back() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let people = people(&db);
    for id in 0..50u64 {
        people.insert((id, format!("{id}"), "Rome", 1)).unwrap();
    }
    let trees = db.tree_names();
    people.create_index("by_age", Index::on(["age"])).unwrap();
    let half = db.tree(db.tree_names().last().unwrap()).unwrap();
    half.pop_first().unwrap();
    let catalogue = db.tree("indexy.tables").unwrap();
    let definition = catalogue.get("tpeople").unwrap().unwrap();
    let definition = String::from_utf8(definition.to_vec()).unwrap();
    let (before, state) = definition.rsplit_once("\"ready\"").unwrap();
    catalogue
        .insert("tpeople", format!("{before}\"building\"{state}"))
        .unwrap();
    drop(people);
    db.close().unwrap();

    let db = open(dir.path());
    assert_eq!(db.tree_names().len(), trees.len() + 1);
    let people = Tables::open(&db).unwrap().table("people").unwrap();
    assert_eq!(db.tree_names(), trees);
    let gone = people.scan(&Query::index("by_age")).unwrap_err();
    assert!(matches!(gone, Error::UnknownIndex { .. }));
    people.create_index("by_age", Index::on(["age"])).unwrap();
    assert_sound(&people);
}

/// While an index is built, nobody reads it, and nobody drops it.
#[test]
fn an_index_that_is_not_ready_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let people = people(&open(dir.path()));
    for id in 0..2000u64 {
        people.insert((id, format!("{id}"), "Rome", 1)).unwrap();
    }
    let by_age = Query::index("by_age").columns(["id"]);
    std::thread::scope(|s| {
        let builder = s.spawn(|| people.create_index("by_age", Index::on(["age"])));
        while !builder.is_finished() {
            match people.scan(&by_age) {
                Ok(rows) => assert_eq!(rows.count(), 2000),
                Err(Error::IndexNotReady { .. }) => {
                    // Whoever asks for the table with it is not told that it is there.
                    let schema = people_schema().index("by_age", Index::on(["age"]));
                    let asked = Tables::open(people.db()).unwrap().create_table(schema);
                    match asked {
                        Ok(_) => assert_eq!(people.scan(&by_age).unwrap().count(), 2000),
                        Err(Error::IndexNotReady { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                    let refused = people.drop_index("by_age");
                    assert!(
                        !matches!(refused, Err(Error::UnknownIndex { .. })),
                        "{refused:?}"
                    );
                    if refused.is_ok() {
                        break;
                    }
                }
                Err(error) => assert!(matches!(error, Error::UnknownIndex { .. }), "{error}"),
            }
        }
        builder.join().unwrap().unwrap();
    });
    assert_sound(&people);
}
