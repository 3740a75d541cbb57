//! The command line.

use clap::{Parser, ValueEnum};
use indexy_report::size::parse_size;
use std::{fmt, num::NonZeroUsize, path::PathBuf};

/// Width of the help text; less on a narrower terminal.
const HELP_COLUMNS: usize = 80;

/// One SQL query over the tables of an IndeXY database.
///
/// The database is opened to read; nothing is written to it. The query sees one moment of it.
#[derive(Debug, Parser)]
#[command(
    name = "indexy-sql",
    version,
    max_term_width = HELP_COLUMNS,
    arg_required_else_help = true,
    after_help = "\
Examples:
  indexy-sql shop.db 'SHOW TABLES'
  indexy-sql shop.db 'SELECT city, count(*) FROM people GROUP BY city'
  indexy-sql shop.db --format csv < report.sql > report.csv
  indexy-sql shop.db 'EXPLAIN SELECT * FROM people WHERE id = 5'

Names that are not in quotes are of small letters. NULL sorts before all values.

Exit codes:
  0    done; also when the reader of standard output went away (`| head`)
  1    failed, and standard error says why
  2    wrong usage; nothing was done

Sizes: K, M, G, T are powers of 1024; KB, MB, GB, TB powers of 1000."
)]
pub struct Cli {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub path: PathBuf,
    /// The query; without it, or with -, it is read from standard input
    #[arg(value_name = "SQL")]
    pub statement: Option<String>,
    /// How rows are printed
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "table")]
    pub format: Format,
    /// Memory budget of the database, for instance 64M [default: a quarter of
    /// the memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub budget: Option<u64>,
    /// What joins, groups and sorts may hold [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<u64>,
    /// Parts of the query that run at the same time [default: one for each
    /// processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
}

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people; all rows are held in memory until the last is there
    Table,
    /// Comma-separated values with a line of names; NULL is empty
    Csv,
    /// One JSON object a line; bytes as hexadecimal digits
    Json,
}

/// The command line makes no sense.
#[derive(Debug)]
pub struct Usage(pub &'static str);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Usage {}
