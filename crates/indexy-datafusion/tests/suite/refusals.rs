//! What a query is told that cannot be answered.

use crate::support::Fixture;
use indexy_datafusion::{Error, SqlOptions};
use indexy_table::{Schema, Type};

fn table(it: &Fixture) {
    let schema = Schema::new("t").column("id", Type::I64);
    let table = it.tables.create_table(schema.primary_key(["id"])).unwrap();
    table.insert(1i64).unwrap();
}

#[test]
fn what_would_change_something_is_refused() {
    let it = Fixture::new();
    table(&it);
    for sql in [
        "INSERT INTO t VALUES (2)",
        "DELETE FROM t",
        "UPDATE t SET id = 2",
        "CREATE TABLE u AS SELECT * FROM t",
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE EXTERNAL TABLE f STORED AS CSV LOCATION '/etc/passwd'",
        "DROP TABLE t",
        "COPY t TO '/tmp/indexy-datafusion-refused.csv'",
        "SET datafusion.execution.batch_size = 1",
        "EXPLAIN INSERT INTO t VALUES (2)",
    ] {
        let refused = it.try_query(sql).unwrap_err();
        assert!(
            matches!(refused, Error::ReadOnly { .. }),
            "{sql}: {refused}"
        );
    }
    assert!(it.text("SELECT count(*) FROM t").contains("| 1 "));
}

#[test]
fn mistakes_are_named() {
    let it = Fixture::new();
    table(&it);
    let says = |sql: &str, text: &str| {
        let error = it.try_query(sql).unwrap_err();
        assert!(matches!(error, Error::Query(_)), "{sql}: {error:?}");
        assert!(error.to_string().contains(text), "{sql}: {error}");
    };
    says("SELEC 1", "SELEC");
    says("SELECT * FROM absent", "absent");
    says("SELECT absent FROM t", "absent");
    says("SELECT 1; SELECT 2", "single");
    says("SELECT 1 / 0", "zero");
}

#[test]
fn a_query_that_needs_too_much_memory_fails() {
    let it = Fixture::with(&SqlOptions::new().memory_bytes(1 << 10));
    table(&it);
    let sql = "SELECT a.value, count(*) FROM generate_series(1, 100000) a GROUP BY a.value";
    let error = it.try_query(sql).unwrap_err();
    assert!(error.to_string().contains("xhausted"), "{error}");
}

/// Damage of the tables is not an error of the query.
#[test]
fn a_table_that_was_dropped_since_is_an_error_of_the_tables() {
    let it = Fixture::new();
    table(&it);
    let before = it.db.snapshot().unwrap();
    it.tables.drop_table("t").unwrap();
    let found = it.wait(it.sql.query_at("SELECT * FROM t", &before));
    assert!(matches!(found, Err(Error::Table(_))), "{found:?}");
}
