//! Rows that are large: batches are small, and keys that are too long find nothing.

use crate::support::Fixture;
use indexy_table::{Schema, Type};

const ROWS: usize = 40;
/// Text of a batch, about 16 MiB, and room beside it.
const MOST_BYTES: usize = 17 << 20;

/// Short ranges that are read together do not make a large batch.
#[test]
fn many_ranges_of_large_rows_make_several_batches() {
    let it = Fixture::new();
    let schema = Schema::new("t")
        .column("name", Type::Text)
        .column("data", Type::Bytes);
    let table = it
        .tables
        .create_table(schema.primary_key(["name"]))
        .unwrap();
    let names: Vec<String> = (0..ROWS).map(|id| format!("name {id}")).collect();
    for name in &names {
        table.insert((name.as_str(), vec![7; 1 << 20])).unwrap();
    }
    let sql = format!("SELECT * FROM t WHERE name IN ('{}')", names.join("','"));
    let batches = it.query(&sql);
    let sizes = batches.iter().map(|batch| batch.get_array_memory_size());
    let sizes: Vec<usize> = sizes.collect();
    let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    assert_eq!(rows, ROWS);
    assert!(sizes.len() > 1, "{sizes:?}");
    assert!(sizes.iter().all(|&bytes| bytes <= MOST_BYTES), "{sizes:?}");
}

#[test]
fn a_text_that_is_too_long_for_a_key_finds_nothing() {
    let it = Fixture::new();
    let schema = Schema::new("t").column("name", Type::Text);
    let table = it
        .tables
        .create_table(schema.primary_key(["name"]))
        .unwrap();
    table.insert("a").unwrap();
    let long = "x".repeat(70_000);
    let found = it.text(&format!(
        "SELECT count(*) FROM t WHERE name IN ('a', '{long}')"
    ));
    assert!(found.contains("| 1 "), "{found}");
}
