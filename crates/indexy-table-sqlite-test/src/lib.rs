//! Random schemas, rows and queries, for tables of `indexy-table` and of SQLite alike.
//!
//! Where the two differ by intent, nothing is generated: numbers above `i64::MAX` and NaN, which
//! SQLite does not have. A bound below NULL, which SQL leaves out, is said in SQL as it is meant.

mod queries;
mod random;
mod schemas;
mod sqlite;

pub use queries::{Asked, query};
pub use random::Random;
pub use schemas::{Tabled, index, row, schema, value};
pub use sqlite::Sqlite;
