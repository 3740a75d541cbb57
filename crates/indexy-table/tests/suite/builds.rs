//! A unique index that is being built: two rows may have one key for a while.

use crate::support::{assert_sound, open};
use indexy::Db;
use indexy_table::{Error, Index, Schema, Table, Tables, Type};

fn table(db: &Db) -> Table {
    let schema = Schema::new("t")
        .column("id", Type::U64)
        .column("name", Type::Text)
        .column("n", Type::I64);
    let tables = Tables::open(db).unwrap();
    tables.create_table(schema.primary_key(["id"])).unwrap()
}

/// Makes the catalogue say of the only index that it has the state `to`, not `from`.
fn set_state(db: &Db, from: &str, to: &str) {
    let catalogue = db.tree("indexy.tables").unwrap();
    let bytes = catalogue.get("tt").unwrap().unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let number_key = catalogue.prefix("g").next().unwrap().unwrap().0;
    let bytes = catalogue.get(&number_key).unwrap().unwrap();
    let generation = u64::from_le_bytes(bytes[..].try_into().unwrap());
    let stated = |generation: u64| format!("\"generation\":{generation},");
    let changed = text
        .replace(&stated(generation), &stated(generation + 100))
        .replace(&format!("\"{from}\""), &format!("\"{to}\""));
    assert_ne!(changed, text);
    let mut batch = db.batch();
    batch.insert(&catalogue, "tt", changed);
    batch.insert(&catalogue, &number_key, (generation + 100).to_le_bytes());
    batch.commit().unwrap();
}

/// The row 5 was there before the index and is not brought in; the row 0, of the same name, came
/// later. Then `then` happens, and the rows that are left are all in the index.
fn between_two(then: impl FnOnce(&Table)) {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let table = table(&db);
    table.insert((5u64, "name", 1)).unwrap();
    let index = Index::on(["name"]).unique().include(["n"]);
    table.create_index("by_name", index).unwrap();
    set_state(&db, "ready", "building");
    let entries = db.tree(db.tree_names().last().unwrap()).unwrap();
    entries.pop_first().unwrap().unwrap();
    table.insert((0u64, "name", 2)).unwrap();
    then(&table);
    set_state(&db, "building", "ready");
    assert_sound(&table);
    let again = table.insert((7u64, "name", 3));
    assert!(
        matches!(again, Err(Error::DuplicateKey { .. })),
        "{again:?}"
    );
}

#[test]
fn i14_a_row_that_goes_leaves_the_entry_of_a_later_one() {
    between_two(|table| assert!(table.delete(5u64).unwrap()));
}

#[test]
fn i14_a_row_that_gets_another_key_leaves_the_entry_of_a_later_one() {
    between_two(|table| assert!(table.update(5u64, [("name", "other")]).unwrap()));
}

#[test]
fn i14_a_row_that_keeps_its_key_does_not_replace_the_entry_of_a_later_one() {
    between_two(|table| {
        for changed in [
            table.update(5u64, [("n", 9)]),
            table.update(5u64, [("id", 9)]),
            table.upsert((5u64, "name", 7)),
        ] {
            assert!(
                matches!(changed, Err(Error::DuplicateKey { .. })),
                "{changed:?}"
            );
        }
        assert!(table.delete(5u64).unwrap());
    });
}

/// The same beside a build. Whether it fails is a matter of time; rows and entries are equal.
#[test]
fn i14_a_build_loses_no_entry_of_a_duplicate_that_comes_and_goes() {
    const ROWS: u64 = 6000;
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let table = table(&db);
    let tables = Tables::open(&db).unwrap();
    tables
        .transact(|tx| {
            let mut table = table.within(tx)?;
            (1..=ROWS).try_for_each(|id| table.insert((id, format!("n{id}"), 0)))
        })
        .unwrap();
    let last = format!("n{ROWS}");
    let built = std::thread::scope(|s| {
        let index = Index::on(["name"]).unique();
        let builder = s.spawn(|| table.create_index("by_name", index));
        let named = || table.schema().unwrap().indexes().count() > 0;
        while !named() && !builder.is_finished() {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
        // One of both refuses if the build came here before.
        let came = table.insert((0u64, &last[..], 0));
        let refused = matches!(came, Err(Error::DuplicateKey { .. }));
        assert!(refused || came.is_ok(), "{came:?}");
        table.delete(ROWS).unwrap();
        builder.join().unwrap()
    });
    let duplicate = matches!(built, Err(Error::DuplicateKey { .. }));
    assert!(duplicate || built.is_ok(), "{built:?}");
    assert_sound(&table);
    if built.is_ok() && table.get(0u64).unwrap().is_some() {
        let again = table.insert((ROWS + 7, &last[..], 0));
        assert!(
            matches!(again, Err(Error::DuplicateKey { .. })),
            "{again:?}"
        );
    }
}

/// `create_table` says that a table is there as the schema has it: with all indexes, to be read.
#[test]
fn a_table_with_an_index_that_is_being_built_is_not_there_yet() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let table = table(&db);
    table.insert((5u64, "name", 1)).unwrap();
    table.create_index("by_name", Index::on(["name"])).unwrap();
    let schema = table.schema().unwrap();
    set_state(&db, "ready", "building");
    let tables = Tables::open(&db).unwrap();
    let asked = tables.create_table(schema.clone()).unwrap_err();
    assert!(
        matches!(&asked, Error::IndexNotReady { index, .. } if index == "by_name"),
        "{asked}"
    );
    assert_eq!(asked.kind(), indexy::error::ErrorKind::Retry);
    set_state(&db, "building", "ready");
    tables.create_table(schema).unwrap();
}
