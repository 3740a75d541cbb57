//! TPC-C: nine tables, five transactions, five of the consistency conditions.
//!
//! Source: TPC Benchmark C, revision 5.11; IndeXY III-F. The rows, random values, initial
//! population, the profiles of the transactions and the share of the mix are the specification's.
//! What is left out: terminals with their key and think times (each thread goes on at once, so that
//! rates are those of the engine and no official tpmC), a home warehouse per thread (each
//! transaction draws one), the queue of deferred deliveries (they run at once, one batch per
//! district) and the 60-day space rules.
//!
//! Isolation is the driver's (`state.rs`): locks on warehouses, districts and stripes of stock,
//! taken in one order before the first read. A transaction's writes are one atomic batch; a
//! rollback drops it. The driver knows each district's next order and each sum of payments, and
//! checks every read of them against that. Not here: what it shares with other workloads
//! (`application/`), threads, clocks and results
//! (`harness/tables.rs`), which jobs there are (`suite/tables.rs`).

mod application;
mod check;
mod config;
mod load;
mod random;
mod rows;
mod scale;
mod schema;
mod state;
mod transactions;

pub use application::Tpcc;
pub use check::{Condition, check_district, check_warehouse};
pub use config::{Config, Mix, Transaction};
pub use load::Loader;
pub use random::Constants;
pub use scale::{CUSTOMERS, DISTRICTS, ITEMS, Scale};
pub use schema::{TABLES, Table, names};
pub use state::State;
pub use transactions::{Ended, Transactions};

#[cfg(test)]
pub(crate) mod tests;
