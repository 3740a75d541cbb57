//! What can go wrong, by who acts next.

use crate::address::Address;
use std::io;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the pool or of the tree.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller's options do not fit.
    #[error("{0}")]
    Options(String),
    /// Another compute server owns the key: ask it, or read the table again.
    #[error("key {key} is not owned here since epoch {epoch}")]
    NotOwner {
        /// The key that was asked for.
        key: u64,
        /// The epoch of the table that says so.
        epoch: u64,
    },
    /// The region has no room for another node.
    #[error("the region of memory server {server} is full")]
    PoolFull {
        /// The memory server.
        server: u16,
    },
    /// The connection failed or took too long. A write, a swap or a call may have happened.
    #[error("memory server {server} is lost: {source}")]
    Lost {
        /// The memory server.
        server: u16,
        /// What the connection said.
        source: io::Error,
    },
    /// The memory server does not do what was asked.
    #[error("memory server {server} refuses: {what}")]
    Refused {
        /// The memory server.
        server: u16,
        /// Why.
        what: &'static str,
    },
    /// The pool holds what no compute server of this version writes.
    #[error("damaged data at {address}: {what}")]
    Corrupt {
        /// The node or the block.
        address: Address,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A shared node stays locked: its holder may be dead.
    #[error("shared node {address} stays locked")]
    Locked {
        /// The node.
        address: Address,
    },
    /// A compute server that is gone left a shared node or the table of owners locked. The next
    /// operation ends the lock.
    #[error("{address} was left locked by a compute server that is gone")]
    LeftLocked {
        /// The node or the table.
        address: Address,
    },
    /// This compute server was replaced, or its session ended: what is in its cache is void. It
    /// may connect again, as a new session, and open the tree again.
    #[error("the session of owner {owner} is over: {what}")]
    Fenced {
        /// The compute server.
        owner: u16,
        /// How it ended.
        what: &'static str,
    },
    /// The owner's lease runs: it cannot be replaced before it lapses. Ask again.
    #[error("the lease of {who} runs for another {for_ms} ms")]
    Alive {
        /// The owner or the session.
        who: String,
        /// Until the lease lapses, if it is not renewed.
        for_ms: u64,
    },
    /// The operation met a conflict too often: the cache may be too small for the threads.
    #[error("no progress after {attempts} attempts")]
    NoProgress {
        /// How often it started again.
        attempts: u32,
    },
    /// A system call of this machine failed.
    #[error("{what}: {source}")]
    System {
        /// The call.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn corrupt(address: Address, what: &'static str) -> Self {
        Self::Corrupt { address, what }
    }

    pub(crate) fn system(what: &'static str) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |errno| Self::System {
            what,
            source: errno.into(),
        }
    }
}
