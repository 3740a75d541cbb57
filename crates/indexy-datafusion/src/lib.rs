#![forbid(unsafe_code)]
//! SQL over the tables of [`indexy_table`], by Apache DataFusion: analytical queries beside those
//! who write.
//!
//! [`SqlDb`] answers queries; it has an example. Each query sees one moment of the whole database.
//!
//! # What is pushed down to the tables
//!
//! - **Filters** that compare a column with constants (`=`, `<`, `<=`, `>`, `>=`, `BETWEEN`, `IN`,
//!   `IS NULL`, `IS NOT NULL`, `LIKE 'text%'`, bools) become bounds of the primary key or of an
//!   index, as far as they are about its first columns. `EXPLAIN` shows which.
//! - **Columns**: only those that are asked for are decoded. An index that has them all is read
//!   without its rows.
//! - **Limits**, where all filters are bounds.
//! - **Orders**: of the primary key or of the index that is read, both ways. `min` and `max` of a
//!   column that an index begins with are its ends.
//!
//! A scan of a large table is divided among the processors where the first column of the key that
//! is not fixed is a whole number or a timestamp, evenly by its values.
//!
//! # Memory
//!
//! The tables are read in batches of 8192 rows, or 16 MiB of text and bytes; four of them at most
//! are held for each part of a scan. What joins, groups and sorts hold has its own limit:
//! [`SqlOptions::memory_bytes`].
//!
//! # What it does not do
//!
//! It writes nothing: `INSERT` and all other statements that change something are
//! [`Error::ReadOnly`]. A join reads both of its sides; it does not look rows up one by one.
//!
//! The types of columns are those of the record batches of [`indexy_table`]: a timestamp is in
//! microseconds, UTC.

mod access;
mod catalog;
mod condition;
mod db;
mod error;
mod extremes;
mod literal;
mod paths;
mod provider;
mod scan;
mod split;
mod stream;
mod table;

pub use datafusion;
pub use db::{DEFAULT_MEMORY_BYTES, SqlDb, SqlOptions};
pub use error::{Error, Result};
