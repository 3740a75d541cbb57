//! Random queries have the answers that DataFusion gives over the same rows in its own memory.
//!
//! `INDEXY_SQL_SEED` and `INDEXY_SQL_CASES` repeat a run, or make it longer.

use crate::support::Fixture;
use datafusion::{
    arrow::util::pretty::pretty_format_batches,
    datasource::MemTable,
    prelude::{SessionConfig, SessionContext},
};
use indexy_datafusion::{SqlOptions, datafusion};
use indexy_table::{Column, Index, Query, Schema, Timestamp, Type, Value};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use std::{num::NonZeroUsize, sync::Arc};

const ROWS: i64 = 400;
const COLUMNS: [(&str, Type); 7] = [
    ("i", Type::I32),
    ("u", Type::U64),
    ("f", Type::F64),
    ("s", Type::Text),
    ("y", Type::Bytes),
    ("b", Type::Bool),
    ("t", Type::Timestamp),
];

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

fn schema() -> Schema {
    let mut schema = Schema::new("t")
        .column("id", Type::I64)
        .column("k", Type::Text);
    for (name, ty) in COLUMNS {
        schema = schema.column(name, Column::new(ty).nullable());
    }
    schema
        .primary_key(["k", "id"])
        .index("by_i", Index::on(["i", "s"]))
        .index("by_u", Index::on(["u", "id"]).unique())
        .index("by_f", Index::on(["f", "b", "t"]))
        .index("by_s", Index::on(["s"]).include(["i", "f"]))
        .index("by_y", Index::on(["y", "u"]))
        .index("by_b", Index::on(["b", "t"]).include(["s", "y", "u"]))
        .index("by_t", Index::on(["t"]))
}

const TEXTS: [&str; 9] = ["", "a", "ab", "a\0b", "b", "é", "a_", "a%", "a\u{10ffff}"];
const BYTES: [&[u8]; 5] = [b"", b"\0", b"\0\x01", b"\xff", b"\xff\xff"];
const FLOATS: [f64; 8] = [
    0.0,
    -0.0,
    1.5,
    -1.5,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MIN_POSITIVE,
];

fn value(random: &mut StdRng, ty: Type) -> Value {
    match ty {
        Type::I32 => [i32::MIN, -1, 0, 1, 2, 3, i32::MAX]
            .choose(random)
            .copied()
            .into(),
        Type::U64 => [0, 1, 2, 3, u64::MAX].choose(random).copied().into(),
        Type::F64 => FLOATS.choose(random).copied().into(),
        Type::Text => TEXTS.choose(random).copied().into(),
        Type::Bytes => BYTES.choose(random).copied().into(),
        Type::Bool => random.random_bool(0.5).into(),
        _ => Timestamp(random.random_range(-3..3) * 500_000).into(),
    }
}

/// A constant in SQL.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::F64(v) if !v.is_finite() => format!("CAST('{v}' AS DOUBLE)"),
        Value::F64(v) => format!("{v:?}"),
        Value::Text(v) => format!("'{v}'"),
        Value::Bytes(v) => {
            let digits: String = v.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("X'{digits}'")
        }
        Value::Timestamp(v) => format!("to_timestamp_micros({})", v.0),
        other => other.to_string(),
    }
}

/// A column and a constant for it, which seldom is NULL.
fn pair(random: &mut StdRng) -> (&'static str, String) {
    match random.random_range(0..9) {
        0 => ("id", random.random_range(-1..=ROWS).to_string()),
        1 => ("k", literal(&value(random, Type::Text))),
        at => {
            let (name, ty) = COLUMNS[at - 2];
            match random.random_bool(0.03) {
                true => (name, "NULL".into()),
                false => (name, literal(&value(random, ty))),
            }
        }
    }
}

fn condition(random: &mut StdRng, depth: u32) -> String {
    let (column, one) = pair(random);
    let mut same = || loop {
        let (other, value) = pair(random);
        if other == column {
            return value;
        }
    };
    let (two, three, four, five) = (same(), same(), same(), same());
    let not = ["", "NOT "]
        .choose_weighted(random, |not| 5 - not.len())
        .unwrap();
    match random.random_range(0..12) {
        0 => format!("{column} IS {not}NULL"),
        1 => format!("{column} {not}BETWEEN {one} AND {two}"),
        2 => format!("{column} {not}IN ({one}, {two})"),
        3 => format!("{column} {not}IN ({one}, {two}, {three}, {four}, {five})"),
        4 => format!("{one} < {column}"),
        5 => format!(
            "s {not}LIKE '{}%'",
            ["a", "a_", "é", ""].choose(random).unwrap()
        ),
        6 => format!("{not}b"),
        7 if depth > 0 => {
            let (a, b) = (condition(random, depth - 1), condition(random, depth - 1));
            format!("{not}(({a}) OR ({b}))")
        }
        8 if depth > 0 => {
            let (a, b) = (condition(random, depth - 1), condition(random, depth - 1));
            format!("{not}(({a}) AND ({b}))")
        }
        _ => {
            let operator = ["=", "=", "<", "<=", ">", ">=", "<>"]
                .choose(random)
                .unwrap();
            format!("{column} {operator} {one}")
        }
    }
}

/// A query, and whether its rows come in one order only.
fn query(random: &mut StdRng) -> (String, bool) {
    let all = ["id", "k", "i", "u", "f", "s", "y", "b", "t"];
    let conditions = random.random_range(0..4);
    let conditions: Vec<_> = (0..conditions).map(|_| condition(random, 1)).collect();
    let filter = match conditions.is_empty() {
        true => String::new(),
        false => format!(" WHERE {}", conditions.join(" AND ")),
    };
    let count = random.random_range(1..=4);
    let columns: Vec<_> = all.choose_multiple(random, count).copied().collect();
    match random.random_range(0..6) {
        0 => (
            format!("SELECT count(*), min(i), max(s), sum(u % 7) FROM t{filter}"),
            true,
        ),
        1 => {
            let by = columns[0];
            (
                format!("SELECT {by}, count(*) FROM t{filter} GROUP BY {by}"),
                false,
            )
        }
        2 => (
            format!("SELECT {} FROM t{filter}", columns.join(", ")),
            false,
        ),
        _ => {
            let count = random.random_range(0..=3);
            let direction = *["", " DESC"].choose(random).unwrap();
            let mut order: Vec<_> = all.choose_multiple(random, count).copied().collect();
            let ordered_by = [&["i", "s"][..], &["f", "b"], &["b", "t"], &["k"], &["t"]];
            if random.random_bool(0.5) {
                order = ordered_by.choose(random).unwrap().to_vec();
            }
            order.extend(["k", "id"]);
            let order: Vec<_> = order.iter().map(|by| format!("{by}{direction}")).collect();
            let (columns, order) = (columns.join(", "), order.join(", "));
            let limit = match random.random_bool(0.6) {
                true => format!(" LIMIT {}", random.random_range(0..20)),
                false => String::new(),
            };
            (
                format!("SELECT {columns} FROM t{filter} ORDER BY {order}{limit}"),
                true,
            )
        }
    }
}

/// What DataFusion says over its own copy of the table.
fn memory(it: &Fixture) -> SessionContext {
    let table = it.tables.table("t").unwrap();
    let batches = table.batches(&Query::all(), 64).unwrap();
    let schema = batches.schema();
    let batches: Vec<_> = batches.collect::<Result<_, _>>().unwrap();
    let mut config = SessionConfig::new();
    config.options_mut().sql_parser.default_null_ordering = "nulls_min".into();
    let context = SessionContext::new_with_config(config);
    let table = MemTable::try_new(schema, vec![batches]).unwrap();
    context.register_table("t", Arc::new(table)).unwrap();
    context
}

#[test]
fn random_queries_have_the_answers_of_datafusion() {
    let seed = from_environment("INDEXY_SQL_SEED", 1);
    let cases = from_environment("INDEXY_SQL_CASES", 400);
    let mut random = StdRng::seed_from_u64(seed);
    let it = Fixture::with(&SqlOptions::new().threads(NonZeroUsize::new(2).unwrap()));
    let table = it.tables.create_table(schema()).unwrap();
    for id in 0..ROWS {
        let key = TEXTS.choose(&mut random).copied();
        let mut row: Vec<Value> = vec![id.into(), key.into()];
        for (_, ty) in COLUMNS {
            let null = random.random_bool(0.2);
            row.push(if null {
                Value::Null
            } else {
                value(&mut random, ty)
            });
        }
        table.insert(row).unwrap();
    }
    let memory = memory(&it);
    let mut indexes = 0;
    for case in 0..cases {
        let (sql, ordered) = query(&mut random);
        let expected = it.wait(async { memory.sql(&sql).await?.collect().await });
        let found = it.try_query(&sql);
        let (expected, found) = match (expected, found) {
            (Ok(expected), Ok(found)) => (expected, found),
            (Err(_), Err(_)) => continue,
            (expected, found) => panic!("case {case}: {sql}\n{expected:?}\n{found:?}"),
        };
        let lines = |batches: &[_]| {
            let text = pretty_format_batches(batches).unwrap().to_string();
            let mut lines: Vec<_> = text.lines().skip(3).map(str::to_owned).collect();
            if !ordered {
                lines.sort();
            }
            lines
        };
        let scans = || it.scans(&sql);
        assert_eq!(
            lines(&found),
            lines(&expected),
            "case {case}: {sql}\n{}",
            scans()
        );
        if case < 100 && !scans().contains("by=primary key") {
            indexes += 1;
        }
    }
    assert!(indexes > 10, "only {indexes} of 100 queries read an index");
}
