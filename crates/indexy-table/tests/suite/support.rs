//! What several files of this suite need.

use indexy::{Db, Durability, Options};
use indexy_table::{Column, Index, Query, Record, Result, Schema, Table, Tables, Type, Value};
use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// A number from the environment.
pub fn setting(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
}

/// Raises a flag at the end of a scope, also when a check in it fails: threads that wait for it
/// come to an end.
pub struct StopAtDrop<'a>(pub &'a AtomicBool);

impl Drop for StopAtDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

pub fn options() -> Options {
    Options::new(8 << 20).durability(Durability::Buffered { interval_ms: 5 })
}

pub fn open(path: &Path) -> Db {
    Db::open(path, options()).unwrap()
}

/// People: `id`, `name` (unique, may be NULL), `city` (may be NULL), `age`.
pub fn people_schema() -> Schema {
    Schema::new("people")
        .column("id", Type::U64)
        .column("name", Column::new(Type::Text).nullable())
        .column("city", Column::new(Type::Text).nullable())
        .column("age", Type::I64)
        .primary_key(["id"])
        .index("by_name", Index::on(["name"]).unique())
        .index("by_city", Index::on(["city", "age"]).include(["name"]))
}

pub fn people(db: &Db) -> Table {
    let tables = Tables::open(db).unwrap();
    tables.create_table(people_schema()).unwrap()
}

pub fn rows(found: Result<impl Iterator<Item = Result<Record>>>) -> Vec<Vec<Value>> {
    let rows = found.unwrap().map(|row| row.map(Record::into_values));
    rows.collect::<Result<_>>().unwrap()
}

pub fn scan(table: &Table, query: &Query) -> Vec<Vec<Value>> {
    rows(table.scan(query))
}

/// First column of each row, as a number.
pub fn ids(table: &Table, query: &Query) -> Vec<u64> {
    let rows = scan(table, query).into_iter();
    rows.map(|row| match row[0] {
        Value::U64(id) => id,
        ref other => panic!("{other} is no id"),
    })
    .collect()
}

pub fn assert_sound(table: &Table) {
    let report = table.verify().unwrap();
    assert!(report.is_ok(), "{report:?}");
    for (index, entries) in &report.indexes {
        assert_eq!(*entries, report.rows, "{index}");
    }
}
