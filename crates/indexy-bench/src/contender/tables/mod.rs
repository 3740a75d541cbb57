//! The seam to an engine that has several named ordered tables and writes to several of them as
//! one.
//!
//! A workload of transactions ([`crate::tpcc`]) reads table by table and collects its writes in a
//! [`TableBatch`]; dropping the batch is the rollback. Isolation is the caller's: no transaction
//! here reads while another one commits what it reads; unless the engine's own transactions isolate
//! ([`Tables::isolates`]). Not here: contenders with one table
//! (`contender/contract.rs`).

mod btreemap;
mod contract;
mod indexy;
mod placed;
mod transactions;

pub use btreemap::BTreeTables;
pub use contract::{TableBatch, TableSetup, Tables};
pub use indexy::IndexyTables;
pub use placed::{Others, Placed, Placement};
pub use transactions::IndexyTransactions;
