//! Voter: a telephone vote for contestants, and its standings.
//!
//! Source: the benchmark Voter of VoltDB and H-Store. A call has a telephone number, whose first
//! digits are an area code, and names a contestant. It is refused if there is no such contestant
//! (one call of 100), or if the number has voted as often as it may. What the original keeps as
//! views are rows here, written with each vote: the votes of each number, and those of each
//! contestant by state. There are as many area codes as in the original, and each state has as many
//! of them; which ones is made up. Half of an area's calls are for its favourite.
//!
//! Differs: the original asks for the standings by the clock; here they are one transaction of a
//! thousand. Numbers may call by Zipf.
//!
//! Isolation is the driver's unless the engine isolates: a lock of the number's stripe, then one of
//! the contestant's votes in the state. Standings take no lock: no sum may fall from one look of a
//! thread to its next. Every few thousand calls a thread holds one number's votes against their
//! count.

mod application;
mod check;
mod schema;
mod state;
mod transactions;

#[cfg(test)]
mod tests;

pub use schema::{Table, names};
pub use state::{Config, MOST_CONTESTANTS, Voter};
pub use transactions::Transaction;
