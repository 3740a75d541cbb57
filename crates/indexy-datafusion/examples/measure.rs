//! Measures queries over a table in memory, and inserts beside them; `docs/lab/sql.md` has figures.
//!
//!     cargo run --release --example measure -- ROWS SECONDS

use indexy::{Db, Durability, Options};
use indexy_datafusion::{SqlDb, SqlOptions};
use indexy_table::{Query, Schema, Table, Tables, Type};
use std::{
    error::Error,
    num::NonZeroUsize,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const BATCH: u64 = 1000;
const BUDGET_BYTES: usize = 4 << 30;
const AGGREGATES: [&str; 4] = [
    "SELECT count(*) FROM t",
    "SELECT sum(n) FROM t",
    "SELECT sum(n), avg(x) FROM t WHERE n % 3 = 0",
    "SELECT n % 100 AS g, count(*), sum(x) FROM t GROUP BY g",
];

fn main() -> Outcome {
    let mut args = std::env::args()
        .skip(1)
        .filter_map(|arg| arg.parse::<u64>().ok());
    let rows = args.next().unwrap_or(1_000_000);
    let seconds = Duration::from_secs(args.next().unwrap_or(5));
    let dir = std::env::temp_dir().join(format!("indexy-sql-{}", std::process::id()));
    let options = Options::new(BUDGET_BYTES).durability(Durability::None);
    let db = Db::open(&dir, options)?;
    let measured = measure(&db, rows, seconds);
    db.close()?;
    std::fs::remove_dir_all(dir)?;
    measured
}

fn measure(db: &Db, rows: u64, seconds: Duration) -> Outcome {
    let tables = Tables::open(db)?;
    let schema = Schema::new("t")
        .column("id", Type::U64)
        .column("n", Type::I64)
        .column("x", Type::F64);
    let table = tables.create_table(schema.primary_key(["id"]))?;
    let begun = Instant::now();
    for first in (0..rows).step_by(BATCH as usize) {
        insert(&tables, &table, first)?;
    }
    println!("load: {:.0} rows/s", rate(rows, begun));
    let begun = Instant::now();
    let batches = table.batches(&Query::all().columns(["n"]), 8192)?;
    let mut read = 0;
    for batch in batches {
        read += batch?.num_rows() as u64;
    }
    println!(
        "batches of one column, one thread: {:.2} M rows/s",
        rate(read, begun) / 1e6
    );
    let runtime = Runtime::new()?;
    for threads in [1, 2] {
        let threads = NonZeroUsize::new(threads).ok_or("no threads")?;
        let sql = SqlDb::with_options(&tables, &SqlOptions::new().threads(threads))?;
        for query in AGGREGATES {
            let begun = Instant::now();
            run(&runtime, &sql, query)?;
            println!(
                "{threads} threads: {:.2} M rows/s: {query}",
                rate(rows, begun) / 1e6
            );
        }
    }
    let sql = SqlDb::new(&tables)?;
    let begun = Instant::now();
    for id in 0..1000 {
        let query = format!("SELECT n FROM t WHERE id = {}", id * 7919 % rows);
        run(&runtime, &sql, &query)?;
    }
    println!(
        "a row by its key: {:.0} us",
        begun.elapsed().as_secs_f64() * 1e3
    );
    beside(&tables, &table, rows, seconds, &runtime)
}

/// Inserts alone, and beside aggregates, in turns.
fn beside(
    tables: &Tables,
    table: &Table,
    rows: u64,
    seconds: Duration,
    runtime: &Runtime,
) -> Outcome {
    let mut next = rows;
    for threads in [1, 2, 1, 2] {
        let alone = inserts(tables, table, &mut next, seconds)?;
        let threads = NonZeroUsize::new(threads).ok_or("no threads")?;
        let sql = SqlDb::with_options(tables, &SqlOptions::new().threads(threads))?;
        let (done, scanned) = (AtomicBool::new(false), AtomicU64::new(0));
        let both = thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    match run(runtime, &sql, AGGREGATES[1]) {
                        Ok(_) => scanned.fetch_add(rows, Relaxed),
                        Err(error) => return eprintln!("{error}"),
                    };
                }
            });
            let both = inserts(tables, table, &mut next, seconds);
            done.store(true, Relaxed);
            both
        })?;
        println!(
            "{threads} threads of SQL: inserts {both:.0}/s beside {alone:.0}/s alone ({:.2} x), \
             scans at least {:.2} M rows/s",
            both / alone,
            scanned.load(Relaxed) as f64 / seconds.as_secs_f64() / 1e6
        );
    }
    Ok(())
}

fn run(runtime: &Runtime, sql: &SqlDb, query: &str) -> indexy_datafusion::Result<()> {
    let frame = runtime.block_on(sql.query(query))?;
    runtime.block_on(frame.collect())?;
    Ok(())
}

/// Rows a second.
fn inserts(tables: &Tables, table: &Table, next: &mut u64, seconds: Duration) -> Outcome<f64> {
    let (begun, first) = (Instant::now(), *next);
    while begun.elapsed() < seconds {
        insert(tables, table, *next)?;
        *next += BATCH;
    }
    Ok(rate(*next - first, begun))
}

/// [`BATCH`] rows from `first` on, in one transaction.
fn insert(tables: &Tables, table: &Table, first: u64) -> indexy_table::Result<()> {
    tables.transact(|tx| {
        let mut table = table.within(tx)?;
        (first..first + BATCH).try_for_each(|id| table.insert((id, id as i64, id as f64)))
    })
}

fn rate(count: u64, begun: Instant) -> f64 {
    count as f64 / begun.elapsed().as_secs_f64()
}
