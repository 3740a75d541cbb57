//! A table is read at one moment, whatever becomes of it meanwhile.

use crate::support::{StopAtDrop, open, people, rows};
use indexy_table::{Column, Error, Query, Tables, Type};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

#[test]
fn names_and_schemas_are_read_beside_changes() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let tables = Tables::open(&db).unwrap();
    let people = people(&db);
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        let changes = s.spawn(|| {
            let _stop = StopAtDrop(&stop);
            for n in 0..100 {
                let column = Column::new(Type::I64).nullable();
                people.add_column(&format!("c{n}"), column).unwrap();
            }
        });
        let mut seen = 0;
        while !stop.load(Relaxed) {
            assert_eq!(tables.names().unwrap(), ["people"]);
            let columns = people.schema().unwrap().columns().count();
            assert!(columns >= seen, "{columns} columns, {seen} before");
            seen = columns;
        }
        changes.join().unwrap();
    });
}

#[test]
fn a_snapshot_reads_the_table_whose_index_was_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let people = people(&db);
    people.insert((1u64, "Ada", "London", 36)).unwrap();
    let snapshot = db.snapshot().unwrap();
    people.drop_index("by_name").unwrap();
    let before = people.at(&snapshot).unwrap();
    assert!(before.get(1u64).unwrap().is_some());
    for query in [Query::all(), Query::index("by_city").prefix("London")] {
        assert_eq!(rows(before.scan(&query)).len(), 1, "{query:?}");
    }
    let gone = before.scan(&Query::index("by_name")).unwrap_err();
    let dropped = matches!(gone, Error::Db(indexy::Error::TreeDropped { .. }));
    assert!(dropped, "{gone}");
    let unknown = people.scan(&Query::index("by_name")).unwrap_err();
    assert!(matches!(unknown, Error::UnknownIndex { .. }), "{unknown}");
    // Who writes does not do so without an index that the definition names.
    people.insert((2u64, "Ada", "Paris", 1)).unwrap();
}
