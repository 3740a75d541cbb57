//! Transactions: reads and writes of several keys and trees that happen as one.
//!
//! Source: `versions/` has the protocol, and says why it is correct. A transaction reads through a
//! snapshot, with its own writes over it; nothing is locked until it commits. A commit is a batch
//! with a condition: what was read has not been written since (*serializable*), or what is written
//! has not (*snapshot isolation*).
//!
//! - `api` is [`Transaction`], over its `state`: `reads` is what it has read, `writes` what it
//!   writes;
//! - `range` and `overlay` are scans; `commit` is the condition; `retry` runs closures again.
//!
//! Threads: a transaction belongs to one thread at a time. Lock order: the turn
//! (`db/handle/turn.rs`), then what a batch takes.

mod api;
mod commit;
mod overlay;
mod range;
mod reads;
mod retry;
mod state;
#[cfg(test)]
mod tests;
mod writes;

pub use api::{Savepoint, Transaction};
pub use commit::Isolation;
pub use range::{Cursor, TransactionRange};
pub use retry::RetryPolicy;
