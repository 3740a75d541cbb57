//! TATP: four tables of a telephone network's home location register, seven transactions.
//!
//! Source: Telecom Application Transaction Processing Benchmark (IBM, 2009). Tables, population,
//! mix and the non-uniform draw of subscribers are the description's; subscribers may be drawn by
//! Zipf instead. Five of the transactions fail now and then, as the description wants: the row is
//! not there, or is there already.
//!
//! Differs: GET_NEW_DESTINATION finds a row in 14.8 of 100 cases in a fresh database, and in up to
//! 20.5 later, because the forwardings that a run adds end at any time. That is what the
//! description's population and predicate make; its text says 23.9.
//!
//! Isolation is the driver's unless the engine isolates: a lock of the subscriber's stripe, since
//! each transaction concerns one subscriber. Behind it the driver knows each subscriber's location,
//! and compares every read of it. Every few thousand transactions a thread holds the conditions
//! against one subscriber.

mod application;
mod check;
mod kinds;
mod load;
mod population;
mod schema;
mod transactions;

#[cfg(test)]
mod tests;

pub use kinds::Transaction;
pub use population::{Config, Tatp};
pub use schema::{Table, names};
