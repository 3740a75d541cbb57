//! A database in a directory of its own, and queries over it.

use datafusion::arrow::{array::RecordBatch, util::pretty::pretty_format_batches};
use indexy::{Db, Options};
use indexy_datafusion::{Result, SqlDb, SqlOptions, datafusion};
use indexy_table::Tables;
use std::future::Future;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Bytes of the database's memory budget.
const BUDGET_BYTES: usize = 32 << 20;

pub struct Fixture {
    pub sql: SqlDb,
    pub tables: Tables,
    pub db: Db,
    pub runtime: Runtime,
    pub dir: TempDir,
}

impl Fixture {
    pub fn new() -> Self {
        Self::with(&SqlOptions::new())
    }

    pub fn with(options: &SqlOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path(), Options::new(BUDGET_BYTES)).unwrap();
        let tables = Tables::open(&db).unwrap();
        Self {
            sql: SqlDb::with_options(&tables, options).unwrap(),
            tables,
            db,
            runtime: Runtime::new().unwrap(),
            dir,
        }
    }

    pub fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub fn try_query(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        self.wait(async { Ok(self.sql.query(sql).await?.collect().await?) })
    }

    pub fn query(&self, sql: &str) -> Vec<RecordBatch> {
        let answer = self.try_query(sql);
        answer.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The answer as a table of text.
    pub fn text(&self, sql: &str) -> String {
        pretty_format_batches(&self.query(sql)).unwrap().to_string()
    }

    /// The scans of the physical plan, one a line.
    pub fn scans(&self, sql: &str) -> String {
        let plan = self.text(&format!("EXPLAIN FORMAT INDENT {sql}"));
        let lines = plan
            .lines()
            .filter_map(|line| line.split_once("IndexyScan: "));
        let lines: Vec<_> = lines
            .map(|(_, scan)| scan.trim_end_matches(['|', ' ']))
            .collect();
        lines.join("\n")
    }

    /// Whether a name occurs in the physical plan.
    pub fn plans(&self, sql: &str, operator: &str) -> bool {
        let plan = self.text(&format!("EXPLAIN FORMAT INDENT {sql}"));
        let physical = plan.split_once("physical_plan");
        physical.is_some_and(|(_, plan)| plan.contains(operator))
    }
}
