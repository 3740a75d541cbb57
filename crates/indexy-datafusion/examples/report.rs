//! A report in SQL beside a thread that writes: transfers between accounts, whose sum is constant.
//!
//!     cargo run --release --example report

use indexy::{Db, Options};
use indexy_datafusion::{SqlDb, datafusion::arrow::util::pretty::pretty_format_batches};
use indexy_table::{Row, Tables};
use std::{
    error::Error,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

const ACCOUNTS: u64 = 1000;
const REPORTS: usize = 5;
const REPORT: &str = "SELECT city, count(*) AS accounts, sum(cents) AS cents
     FROM accounts GROUP BY city
     UNION ALL SELECT 'all', count(*), sum(cents) FROM accounts
     ORDER BY city";

#[derive(Row, Clone)]
#[row(table = "accounts")]
struct Account {
    #[row(primary_key)]
    id: u64,
    #[row(index)]
    city: String,
    cents: i64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::temp_dir().join(format!("indexy-report-{}", std::process::id()));
    let db = Db::open(&dir, Options::new(64 << 20))?;
    let tables = Tables::open(&db)?;
    let accounts = tables.create_table(Account::schema())?;
    let cities = ["London", "Paris", "Rome"];
    for id in 0..ACCOUNTS {
        let city = cities[id as usize % cities.len()].into();
        accounts.insert(&Account {
            id,
            city,
            cents: 100,
        })?;
    }
    let done = AtomicBool::new(false);
    let reported = thread::scope(|threads| {
        let writer = threads.spawn(|| {
            let mut transfers = 0u64;
            while !done.load(Relaxed) {
                let (from, to) = (transfers * 7 % ACCOUNTS, transfers * 13 % ACCOUNTS);
                tables.transact(|tx| {
                    let mut accounts = accounts.within(tx)?;
                    for (id, by) in [(from, -1), (to, 1)] {
                        if let Some(row) = accounts.get(id)? {
                            let account: Account = row.to()?;
                            accounts.update(id, [("cents", account.cents + by)])?;
                        }
                    }
                    Ok(())
                })?;
                transfers += 1;
            }
            Ok::<u64, indexy_table::Error>(transfers)
        });
        let reported = report(&tables);
        done.store(true, Relaxed);
        let transfers = writer.join().map_err(|_| "the writer panicked")??;
        println!("{transfers} transfers meanwhile");
        reported
    });
    db.close()?;
    std::fs::remove_dir_all(dir)?;
    reported
}

fn report(tables: &Tables) -> Result<(), Box<dyn Error>> {
    let sql = SqlDb::new(tables)?;
    let runtime = tokio::runtime::Runtime::new()?;
    for _ in 0..REPORTS {
        let frame = runtime.block_on(sql.query(REPORT))?;
        let batches = runtime.block_on(frame.collect())?;
        println!("{}", pretty_format_batches(&batches)?);
    }
    Ok(())
}
