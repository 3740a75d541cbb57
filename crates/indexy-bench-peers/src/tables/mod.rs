//! Engines with several tables: what TPC-C needs of the seam in `indexy-bench`.
//!
//! One file per engine, tuned as its contender with one table is; a header says what several tables
//! add. The two log-structured engines have all tables in one key space (`prefix.rs`), the two
//! copy-on-write B+ trees have a tree per table and write a batch in one transaction (`writes.rs`);
//! SQLite isolates transactions itself. Not here: bf-tree, which has no batch over several keys and
//! no scan backwards.

mod fjall;
mod fjall_transactions;
mod lmdb;
mod prefix;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocks;
#[cfg(feature = "rocksdb")]
mod rocks_transactions;
mod sqlite;
mod writes;

pub use fjall::FjallTables;
pub use fjall_transactions::FjallTransactions;
pub use lmdb::LmdbTables;
pub use redb::RedbTables;
#[cfg(feature = "rocksdb")]
pub use rocks::RocksTables;
#[cfg(feature = "rocksdb")]
pub use rocks_transactions::RocksTransactions;
pub use sqlite::SqliteTables;

#[cfg(test)]
mod tests;
