//! The workloads of transactions that there are: which, how large, and their kinds of transactions.

use crate::{counters, tatp, tpcc, voter};
use serde::{Deserialize, Serialize};

/// Which workload, and how large.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "application")]
pub enum Config {
    /// TPC-C.
    Tpcc(tpcc::Config),
    /// TATP.
    Tatp(tatp::Config),
    /// Voter.
    Voter(voter::Config),
    /// Counters.
    Counters(counters::Config),
}

impl Config {
    /// Rows of the loaded database, about.
    pub fn entries(&self) -> u64 {
        match self {
            Self::Tpcc(config) => config.scale.entries(),
            Self::Tatp(config) => config.entries(),
            Self::Voter(config) => config.entries(),
            Self::Counters(config) => config.entries(),
        }
    }

    /// Bytes of keys and values of the loaded database, about.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Tpcc(config) => config.scale.bytes(),
            Self::Tatp(config) => config.bytes(),
            Self::Voter(config) => config.bytes(),
            Self::Counters(config) => config.bytes(),
        }
    }
}

/// A kind of transaction of any workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Of TPC-C.
    Tpcc(tpcc::Transaction),
    /// Of TATP.
    Tatp(tatp::Transaction),
    /// Of Voter.
    Voter(voter::Transaction),
    /// Of Counters.
    Counters(counters::Transaction),
}

const TATP_FROM: usize = tpcc::Transaction::ALL.len();
const VOTER_FROM: usize = TATP_FROM + tatp::Transaction::ALL.len();
const COUNTERS_FROM: usize = VOTER_FROM + voter::Transaction::ALL.len();

impl Kind {
    /// How many kinds there are.
    pub const COUNT: usize = COUNTERS_FROM + counters::Transaction::ALL.len();

    /// Its number among all kinds. Those of TPC-C come first, in their own order.
    pub const fn number(self) -> usize {
        match self {
            Self::Tpcc(transaction) => transaction as usize,
            Self::Tatp(transaction) => TATP_FROM + transaction as usize,
            Self::Voter(transaction) => VOTER_FROM + transaction as usize,
            Self::Counters(transaction) => COUNTERS_FROM + transaction as usize,
        }
    }

    /// All of them, by number.
    pub fn all() -> impl Iterator<Item = Self> {
        let tpcc = tpcc::Transaction::ALL.into_iter().map(Self::Tpcc);
        let tatp = tatp::Transaction::ALL.into_iter().map(Self::Tatp);
        let voter = voter::Transaction::ALL.into_iter().map(Self::Voter);
        let counters = counters::Transaction::ALL.into_iter().map(Self::Counters);
        tpcc.chain(tatp).chain(voter).chain(counters)
    }

    /// As reports spell it. No two kinds have the same name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tpcc(transaction) => transaction.name(),
            Self::Tatp(transaction) => transaction.name(),
            Self::Voter(transaction) => transaction.name(),
            Self::Counters(transaction) => transaction.name(),
        }
    }
}

impl From<tpcc::Transaction> for Kind {
    fn from(transaction: tpcc::Transaction) -> Self {
        Self::Tpcc(transaction)
    }
}

impl From<tatp::Transaction> for Kind {
    fn from(transaction: tatp::Transaction) -> Self {
        Self::Tatp(transaction)
    }
}

impl From<voter::Transaction> for Kind {
    fn from(transaction: voter::Transaction) -> Self {
        Self::Voter(transaction)
    }
}

impl From<counters::Transaction> for Kind {
    fn from(transaction: counters::Transaction) -> Self {
        Self::Counters(transaction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_numbered_in_their_order_and_have_a_name_each() {
        let numbers: Vec<usize> = Kind::all().map(Kind::number).collect();
        assert_eq!(numbers, (0..Kind::COUNT).collect::<Vec<_>>());
        let names: std::collections::BTreeSet<&str> = Kind::all().map(Kind::name).collect();
        assert_eq!(names.len(), Kind::COUNT);
    }
}
