//! Counters: read-modify-writes of several rows of one table.
//!
//! A transaction draws some different rows by Zipf, reads all of them, and writes each with its
//! count one higher. Some transactions only read one row. With one row a transaction, half of which
//! read, it is YCSB's workload F where a read-modify-write is atomic.
//!
//! Isolation is the driver's unless the engine isolates: a lock for each stripe of the rows that a
//! transaction writes, taken in ascending order. A read takes none.

mod application;
mod state;
mod transactions;

#[cfg(test)]
mod tests;

pub use state::{Config, Counters, LEAST_VALUE_BYTES, MOST_ROWS_AT_ONCE};
pub use transactions::Transaction;
