//! Inserts into a table with two indexes, point queries, and ranges of 100 rows by an index: tables
//! against SQLite `WITHOUT ROWID`, both without a sync for each transaction (`Buffered`, and WAL
//! with `synchronous=NORMAL`). Every insert is a transaction. One thread; the two take turns, and
//! the medians of the rounds are printed.
//!
//!     cargo run --release --example measure [rows] [memory in MiB] [rounds]

use indexy::{Db, Options};
use indexy_table::{Index, Query, Schema, Table, Tables, Type};
use indexy_table_sqlite_test::Random;
use rusqlite::Connection;
use std::{path::Path, time::Instant};

/// Rows of a range.
const RANGE: u64 = 100;

type Row = (u64, String, String, i64, String);

/// The row `id`; ids are spread, so that inserts come in no order.
fn row(id: u64) -> Row {
    let spread = id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 1;
    let city = format!("city {}", spread % 1000);
    (
        spread,
        format!("name {spread}"),
        city,
        (spread % 90) as i64,
        "x".repeat(100),
    )
}

trait Engine {
    fn insert(&self, row: Row);
    /// The row of a primary key; false if there is none.
    fn by_key(&self, id: u64) -> bool;
    /// All columns of the row with a unique name.
    fn by_name(&self, name: &str) -> bool;
    /// Rows from (city, age) on: number found.
    fn range(&self, city: &str, age: i64) -> usize;
    /// The same, of columns that the index has.
    fn covered(&self, city: &str, age: i64) -> usize;
}

struct Ours {
    _db: Db,
    table: Table,
}

impl Ours {
    fn open(path: &Path, memory: usize) -> Self {
        let db = Db::open(path, Options::new(memory)).expect("it opens");
        let schema = Schema::new("people")
            .column("id", Type::U64)
            .column("name", Type::Text)
            .column("city", Type::Text)
            .column("age", Type::I64)
            .column("about", Type::Text)
            .primary_key(["id"])
            .index("by_name", Index::on(["name"]).unique())
            .index("by_city", Index::on(["city", "age"]));
        let table = Tables::open(&db).and_then(|tables| tables.create_table(schema));
        let table = table.expect("a table");
        Self { _db: db, table }
    }

    fn count(&self, query: &Query) -> usize {
        let rows = self.table.scan(query).expect("a query");
        rows.fold(0, |found, row| {
            std::hint::black_box(row.expect("a row"));
            found + 1
        })
    }
}

impl Engine for Ours {
    fn insert(&self, row: Row) {
        self.table.insert(row).expect("it is inserted");
    }
    fn by_key(&self, id: u64) -> bool {
        self.table.get(id).expect("it is read").is_some()
    }
    fn by_name(&self, name: &str) -> bool {
        self.count(&Query::index("by_name").prefix(name)) == 1
    }
    fn range(&self, city: &str, age: i64) -> usize {
        self.count(&Query::index("by_city").from((city, age)).limit(RANGE))
    }
    fn covered(&self, city: &str, age: i64) -> usize {
        let query = Query::index("by_city").from((city, age)).limit(RANGE);
        self.count(&query.columns(["id", "city", "age"]))
    }
}

struct Theirs(Connection);

impl Theirs {
    fn open(path: &Path, memory: usize) -> Self {
        let connection = Connection::open(path.join("sqlite")).expect("it opens");
        let pragmas = format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -{};
             CREATE TABLE people (id INTEGER NOT NULL, name TEXT NOT NULL, city TEXT NOT NULL,
             age INTEGER NOT NULL, about TEXT NOT NULL, PRIMARY KEY (id)) WITHOUT ROWID;
             CREATE UNIQUE INDEX by_name ON people (name);
             CREATE INDEX by_city ON people (city, age);",
            memory >> 10
        );
        connection.execute_batch(&pragmas).expect("a table");
        Self(connection)
    }

    fn count(&self, sql: &str, parameters: impl rusqlite::Params, columns: usize) -> usize {
        let mut statement = self.0.prepare_cached(sql).expect("a query");
        let mut rows = statement.query(parameters).expect("it runs");
        let mut found = 0;
        while let Some(row) = rows.next().expect("a row") {
            // As values of the caller's, like ours.
            for at in 0..columns {
                std::hint::black_box(row.get::<_, rusqlite::types::Value>(at).expect("a column"));
            }
            found += 1;
        }
        found
    }
}

const ALL: &str = "SELECT id, name, city, age, about FROM people";

impl Engine for Theirs {
    fn insert(&self, (id, name, city, age, about): Row) {
        let insert = "INSERT INTO people VALUES (?, ?, ?, ?, ?)";
        let mut statement = self.0.prepare_cached(insert).expect("a statement");
        let done = statement.execute((id as i64, name, city, age, about));
        done.expect("it is inserted");
    }
    fn by_key(&self, id: u64) -> bool {
        self.count(&format!("{ALL} WHERE id = ?"), [id as i64], 5) == 1
    }
    fn by_name(&self, name: &str) -> bool {
        self.count(&format!("{ALL} WHERE name = ?"), [name], 5) == 1
    }
    fn range(&self, city: &str, age: i64) -> usize {
        let order = "WHERE (city, age) >= (?, ?) ORDER BY city, age LIMIT 100";
        self.count(&format!("{ALL} {order}"), (city, age), 5)
    }
    fn covered(&self, city: &str, age: i64) -> usize {
        let order = "WHERE (city, age) >= (?, ?) ORDER BY city, age LIMIT 100";
        self.count(
            &format!("SELECT id, city, age FROM people {order}"),
            (city, age),
            3,
        )
    }
}

/// Thousands of calls a second.
fn rate(count: u64, mut call: impl FnMut(u64)) -> f64 {
    let start = Instant::now();
    (0..count).for_each(&mut call);
    count as f64 / start.elapsed().as_secs_f64() / 1000.0
}

/// Rates of each kind of work; `from`: the first new row.
fn round(engine: &dyn Engine, from: u64, rows: u64, random: &mut Random) -> [f64; 5] {
    let (points, ranges) = (rows.min(100_000), rows.min(100_000) / 20);
    let insert = rate(rows, |at| engine.insert(row(from + at)));
    let all = from + rows;
    let mut any = || row(random.word() % all);
    let keys: Vec<Row> = (0..points).map(|_| any()).collect();
    let of = |at: u64| &keys[at as usize];
    [
        insert,
        rate(points, |at| assert!(engine.by_key(of(at).0))),
        rate(points / 2, |at| assert!(engine.by_name(&of(at).1))),
        rate(ranges, |at| assert!(engine.range(&of(at).2, of(at).3) > 0)),
        rate(ranges, |at| {
            assert!(engine.covered(&of(at).2, of(at).3) > 0)
        }),
    ]
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|word| word.parse().expect("a number"));
    let rows: u64 = arguments.next().unwrap_or(100_000);
    let memory = (arguments.next().unwrap_or(256) as usize) << 20;
    let rounds = arguments.next().unwrap_or(3);
    let dir = tempfile::tempdir().expect("a directory");
    let (ours, theirs) = (Ours::open(dir.path().join("db").as_path(), memory), {
        Theirs::open(dir.path(), memory)
    });
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for at in 0..rounds {
        a.push(round(&ours, at * rows, rows, &mut Random(at)));
        b.push(round(&theirs, at * rows, rows, &mut Random(at)));
    }
    println!(
        "{rows} rows a round, {} MiB, medians of {rounds}, thousands a second",
        memory >> 20
    );
    let works = [
        "insert, 2 indexes",
        "by primary key",
        "by unique index",
        "range of 100",
        "covered",
    ];
    for (at, work) in works.iter().enumerate() {
        let median = |all: &[[f64; 5]]| {
            let mut rates: Vec<f64> = all.iter().map(|round| round[at]).collect();
            rates.sort_by(f64::total_cmp);
            rates[rates.len() / 2]
        };
        let (a, b) = (median(&a), median(&b));
        println!(
            "{work:20} tables {a:9.1}   SQLite {b:9.1}   {:5.2} x",
            a / b
        );
    }
}
