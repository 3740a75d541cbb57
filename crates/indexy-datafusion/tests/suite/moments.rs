//! A query sees one moment of all tables, beside those who write.

use crate::support::Fixture;
use datafusion::arrow::{array::AsArray, datatypes::Int64Type};
use indexy_datafusion::datafusion;
use indexy_table::{Column, Schema, Type, Value};
use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

const ACCOUNTS: u64 = 50;
const CENTS: i64 = 100;
const QUERIES: usize = 60;

#[test]
fn sums_over_two_tables_are_constant_beside_transfers() {
    let it = Fixture::new();
    let [checking, saving] = ["checking", "saving"].map(|name| {
        let schema = Schema::new(name)
            .column("id", Type::U64)
            .column("cents", Type::I64);
        let table = it.tables.create_table(schema.primary_key(["id"])).unwrap();
        (0..ACCOUNTS).for_each(|id| table.insert((id, CENTS)).unwrap());
        table
    });
    let done = AtomicBool::new(false);
    thread::scope(|threads| {
        for start in 0..2u64 {
            let (it, done, checking, saving) = (&it, &done, &checking, &saving);
            threads.spawn(move || {
                let mut at = start;
                while !done.load(Relaxed) {
                    at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let (from, to) = ((at >> 33) % ACCOUNTS, (at >> 40) % ACCOUNTS);
                    let moved = it.tables.transact(|tx| {
                        for (table, id, by) in [(checking, from, -1), (saving, to, 1)] {
                            let mut table = table.within(tx)?;
                            let row = table.get(id)?;
                            let Some(Value::I64(cents)) =
                                row.as_ref().and_then(|row| row.get("cents"))
                            else {
                                panic!("an account is gone");
                            };
                            table.update(id, [("cents", cents + by)])?;
                        }
                        Ok(())
                    });
                    moved.unwrap();
                }
            });
        }
        let sql = "SELECT (SELECT sum(cents) FROM checking) + (SELECT sum(cents) FROM saving)";
        for _ in 0..QUERIES {
            let answer = it.query(sql);
            let sum = answer[0].column(0).as_primitive::<Int64Type>().value(0);
            assert_eq!(sum, 2 * ACCOUNTS as i64 * CENTS);
        }
        done.store(true, Relaxed);
    });
    let moved = it.text("SELECT count(*) > 0 FROM checking WHERE cents <> 100");
    assert!(moved.contains("true"), "nothing was moved");
}

#[test]
fn tables_and_columns_appear_with_the_next_query() {
    let it = Fixture::new();
    assert!(it.try_query("SELECT * FROM t").is_err());
    let schema = Schema::new("t").column("id", Type::U64);
    let table = it.tables.create_table(schema.primary_key(["id"])).unwrap();
    table.insert(1u64).unwrap();
    let before = it.db.snapshot().unwrap();
    let count = async |sql: &str| {
        let found = it.sql.query_at(sql, &before).await?;
        Ok::<_, indexy_datafusion::Error>(found.count().await?)
    };
    table
        .add_column("note", Column::new(Type::Text).default("none"))
        .unwrap();
    table.insert((2u64, "new")).unwrap();
    assert!(it.text("SELECT note FROM t WHERE id = 1").contains("none"));
    assert!(it.text("SHOW TABLES").contains("| t "));
    assert_eq!(it.wait(count("SELECT * FROM t")).unwrap(), 1);
    assert!(it.wait(count("SELECT note FROM t")).is_err());
}

#[test]
fn a_frame_that_is_collected_late_sees_its_moment() {
    let it = Fixture::new();
    let schema = Schema::new("t").column("id", Type::U64);
    let table = it.tables.create_table(schema.primary_key(["id"])).unwrap();
    table.insert(1u64).unwrap();
    let frame = it.wait(it.sql.query("SELECT * FROM t")).unwrap();
    table.insert(2u64).unwrap();
    table.delete(1u64).unwrap();
    let batches = it.wait(frame.collect()).unwrap();
    let ids = batches[0]
        .column(0)
        .as_primitive::<datafusion::arrow::datatypes::UInt64Type>();
    assert_eq!(ids.values(), &[1]);
}
