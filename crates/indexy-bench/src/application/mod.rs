//! What workloads of transactions over several tables have in common: how the harness loads, runs
//! and checks one, and the pieces that their transactions are made of.
//!
//! - [`Application`] is such a workload; `applications.rs` has those that there are.
//! - `access` has the reads and writes of a transaction, `rows` rows as bytes, `random` values,
//!   `trouble` why a step ended.
//!
//! Isolation is the driver's, by locks of each workload, unless the engine's transactions isolate
//! ([`Tables::isolates`]). Not here: threads, clocks and results (`harness/tables.rs`).

pub(crate) mod access;
pub(crate) mod random;
pub(crate) mod rows;
mod table;
#[cfg(test)]
pub(crate) mod testing;
mod trouble;

pub use table::TableId;
pub use trouble::{Done, Trouble};

use crate::{
    contender::{Placement, Tables},
    workload::Rng,
};

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended<K> {
    /// Which it was.
    pub kind: K,
    /// It did what was asked for. Some of each workload do not, as its specification wants.
    pub succeeded: bool,
    /// Bytes of keys and values written.
    pub payload: u64,
}

/// A workload, with what its driver knows of the database.
pub trait Application: Sync {
    /// Its kinds of transactions.
    type Kind: Copy;

    /// Names of the tables, by number.
    fn names(&self) -> Vec<&'static str>;

    /// Which table is under test, and where the others are.
    fn placement(&self) -> Placement<'_>;

    /// Pieces of the initial database.
    fn units(&self) -> usize;

    /// Loads piece `unit` in one batch; returns rows, and bytes of keys and values.
    fn load<T: Tables>(&self, tables: &T, unit: usize) -> Done<(u64, u64)>;

    /// Runs transactions for thread number `thread`.
    fn client<'a, T: Tables>(
        &'a self,
        tables: &'a T,
        thread: u64,
    ) -> impl Client<Kind = Self::Kind> + 'a;

    /// Parts of the check.
    fn parts(&self) -> usize;

    /// Holds the conditions against part `part`, after all clients finished; returns rows seen.
    fn check<T: Tables>(&self, tables: &T, part: usize) -> Done<u64>;
}

/// What one thread runs.
pub trait Client {
    /// Kinds of transactions.
    type Kind;

    /// Runs the next transaction of the mix.
    fn next(&mut self, rng: &mut Rng) -> Done<Ended<Self::Kind>>;

    /// Ends it, so that a check may follow; returns what it counted beside, by name, to be summed
    /// over all threads.
    fn finish(self) -> Vec<(String, f64)>;
}
