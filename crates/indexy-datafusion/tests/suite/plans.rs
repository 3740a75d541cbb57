//! Which index a query reads, and between which bounds.

use crate::support::Fixture;
use indexy_datafusion::SqlOptions;
use indexy_table::{Column, Index, Schema, Timestamp, Type};
use std::num::NonZeroUsize;

const DAY_MICROS: i64 = 86_400_000_000;

fn people() -> Fixture {
    let it = Fixture::new();
    let schema = Schema::new("people")
        .column("id", Type::U64)
        .column("name", Type::Text)
        .column("city", Column::new(Type::Text).nullable())
        .column("age", Column::new(Type::I32).nullable())
        .column("since", Type::Timestamp)
        .primary_key(["id"])
        .index("by_city", Index::on(["city", "age"]))
        .index("by_name", Index::on(["name"]).unique())
        .index("by_since", Index::on(["since"]).include(["age"]));
    let people = it.tables.create_table(schema).unwrap();
    for id in 0..200u64 {
        let city = (!id.is_multiple_of(10)).then(|| format!("city {}", id % 10));
        let age = (!id.is_multiple_of(7)).then_some((id % 70) as i32);
        let since = Timestamp(id as i64 * DAY_MICROS);
        let row = (id, format!("name {id}"), city, age, since);
        people.insert(row).unwrap();
    }
    it
}

#[test]
fn filters_become_bounds() {
    let it = people();
    let is = |filter: &str, scan: &str| {
        let sql = format!("SELECT * FROM people WHERE {filter}");
        assert_eq!(it.scans(&sql), format!("table=people, by={scan}"), "{sql}");
        assert!(!it.plans(&sql, "FilterExec"), "{sql}");
    };
    is("id = 5", "primary key, id=5");
    is("5 < id AND id <= 9", "primary key, id>5, id<=9");
    is("id > 5 AND id > 7", "primary key, id>7");
    is("id IN (7, 5)", "primary key, id=5.. (2 ranges)");
    is("id IN (5, 7, 1, 9, 22)", "primary key, id=1.. (5 ranges)");
    is("name = 'name 1'", "by_name, look up rows, name=\"name 1\"");
    let city = "by_city, look up rows, city=";
    is(
        "age > 30 AND city = 'city 3'",
        &format!("{city}\"city 3\", age>30"),
    );
    is(
        "age < 30 AND city = 'x'",
        &format!("{city}\"x\", age>NULL, age<30"),
    );
    is(
        "city IS NULL AND age IS NULL",
        &format!("{city}NULL, age=NULL"),
    );
    let days = "by_since, look up rows, since>=2678400000000 us, since<=3024000000000 us";
    let between = "TIMESTAMP '1970-02-01' AND TIMESTAMP '1970-02-05'";
    is(&format!("since BETWEEN {between}"), days);
    let rest = "SELECT * FROM people WHERE city = 'city 3' AND name LIKE '%5'";
    assert_eq!(
        it.scans(rest),
        "table=people, by=by_city, look up rows, city=\"city 3\""
    );
    assert!(it.plans(rest, "FilterExec"));
}

#[test]
fn an_index_that_has_all_columns_is_read_alone() {
    let it = people();
    let ages = "SELECT id, age FROM people WHERE city = 'city 3' AND age > 30";
    let scan = "table=people, by=by_city, covering, city=\"city 3\", age>30";
    assert_eq!(it.scans(ages), scan);
    let names = "SELECT name FROM people WHERE name LIKE 'name 1%'";
    let scan = "table=people, by=by_name, covering, name>=\"name 1\", name<\"name 2\"";
    assert_eq!(it.scans(names), scan);
    let age = "SELECT age FROM people WHERE since = '1970-02-01T00:00:00Z'";
    let scan = "table=people, by=by_since, covering, since=2678400000000 us";
    assert_eq!(it.scans(age), scan);
}

#[test]
fn limits_and_orders_reach_the_scan() {
    let it = people();
    let is = |sql: &str, scan: &str| {
        assert_eq!(it.scans(sql), format!("table=people, by={scan}"), "{sql}");
        assert!(!it.plans(sql, "SortExec"), "{sql}");
    };
    is(
        "SELECT * FROM people WHERE id > 5 LIMIT 3",
        "primary key, id>5, limit=3",
    );
    is(
        "SELECT * FROM people ORDER BY id LIMIT 3",
        "primary key, limit=3",
    );
    let backwards = "primary key, backwards, limit=3";
    is("SELECT * FROM people ORDER BY id DESC LIMIT 3", backwards);
    let oldest = "SELECT id FROM people WHERE city = 'x' AND age < 30 ORDER BY age DESC LIMIT 3";
    let scan = "by_city, covering, city=\"x\", age>NULL, age<30, backwards, limit=3";
    is(oldest, scan);
    let by_city = "SELECT city, age FROM people WHERE city > 'a' ORDER BY city, age";
    is(by_city, "by_city, covering, city>\"a\"");
    // NULL is last here, and first in the index.
    let last = "SELECT id FROM people WHERE city = 'x' ORDER BY age NULLS LAST";
    assert!(it.plans(last, "SortExec"));
    // A residual filter takes some of the rows that a limit would end with.
    let rest = it.scans("SELECT * FROM people WHERE id > 5 AND name LIKE '%5' LIMIT 3");
    assert_eq!(rest, "table=people, by=primary key, id>5");
}

#[test]
fn an_index_in_whose_order_all_columns_are_is_read_without_a_sort() {
    let it = people();
    let sql = "SELECT age, city FROM people ORDER BY city DESC, age DESC LIMIT 2";
    assert_eq!(
        it.scans(sql),
        "table=people, by=by_city, covering, backwards, limit=2"
    );
    let names = "SELECT age FROM people ORDER BY name";
    assert!(it.plans(names, "SortExec"), "{}", it.scans(names));
}

#[test]
fn several_ranges_are_read_backwards() {
    let it = people();
    let sql = "SELECT id FROM people WHERE id IN (1, 5, 3) ORDER BY id DESC";
    let scan = "table=people, by=primary key, id=1.. (3 ranges), backwards";
    assert_eq!(it.scans(sql), scan);
    assert!(!it.plans(sql, "SortExec"));
}

#[test]
fn an_extreme_is_the_end_of_an_index() {
    let it = people();
    let is = |sql: &str, scan: &str, value: &str| {
        assert_eq!(it.scans(sql), format!("table=people, by={scan}"), "{sql}");
        let answer = it.text(sql);
        assert_eq!(
            answer.lines().nth(3).unwrap().trim_matches(['|', ' ']),
            value,
            "{sql}"
        );
    };
    is(
        "SELECT max(id) FROM people",
        "primary key, backwards, limit=1",
        "199",
    );
    is("SELECT min(id) FROM people", "primary key, limit=1", "0");
    let city = "by_city, covering, city>NULL";
    is(
        "SELECT max(city) FROM people",
        &format!("{city}, backwards, limit=1"),
        "city 9",
    );
    is(
        "SELECT min(city) FROM people p",
        &format!("{city}, limit=1"),
        "city 1",
    );
    let age = "by_city, covering, city=\"city 3\", age>NULL, backwards, limit=1";
    is(
        "SELECT max(age) FROM people WHERE city = 'city 3'",
        age,
        "53",
    );
    is(
        "SELECT max(name) FROM people",
        "by_name, covering, backwards, limit=1",
        "name 99",
    );
    let none = it.text("SELECT max(age) FROM people WHERE city = 'x'");
    assert_eq!(none.lines().nth(3).unwrap().trim_matches(['|', ' ']), "");
}

#[test]
fn a_large_scan_is_divided_and_complete() {
    let threads = NonZeroUsize::new(3).unwrap();
    let it = Fixture::with(&SqlOptions::new().threads(threads));
    let schema = Schema::new("t")
        .column("id", Type::I64)
        .column("n", Type::I64);
    let table = it.tables.create_table(schema.primary_key(["id"])).unwrap();
    let rows = 400_000i64;
    for first in (0..rows).step_by(20_000) {
        let insert = |tx: &mut indexy::Transaction| {
            let mut table = table.within(tx)?;
            (first..first + 20_000).try_for_each(|id| table.insert((id - rows / 2, id)))
        };
        it.tables.transact(insert).unwrap();
    }
    let count = it.text("SELECT count(*), sum(id), sum(n), count(DISTINCT id) FROM t");
    let half = rows / 2;
    let cells: Vec<_> = count.lines().nth(3).unwrap().split_whitespace().collect();
    let sum = (rows * (rows - 1) / 2).to_string();
    let (rows, low) = (rows.to_string(), format!("-{half}"));
    assert_eq!(cells, ["|", &rows, "|", &low, "|", &sum, "|", &rows, "|"]);
    assert!(it.plans("SELECT id FROM t ORDER BY id", "SortPreservingMergeExec"));
    assert!(!it.plans("SELECT id FROM t ORDER BY id", "SortExec"));
    let first = it.text("SELECT id FROM t ORDER BY id DESC LIMIT 1");
    assert!(first.contains(&format!("| {} |", half - 1)), "{first}");
}
