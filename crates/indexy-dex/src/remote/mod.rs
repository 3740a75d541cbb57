//! The memory pool: regions, the verbs that reach them, and the transports.
//!
//! | transport | verbs | calls |
//! |---|---|---|
//! | [`Model`] | the same process; a virtual clock adds latency and bandwidth | the same, with a queue for the server's threads |
//! | [`shm`] | reads: another process's memory, mapped | a Unix socket |
//! | [`tcp`] | frames on a socket | the same |
//!
//! | | writes, swaps | who is fenced |
//! |---|---|---|
//! | [`Model`] | the same process | an endpoint made by [`Model::attach`] |
//! | [`shm`] | the Unix socket: the mapping is for reading alone | [`shm::Shm::connect_as`] |
//! | [`tcp`] | as reads | [`tcp::Tcp::connect_as`] |
//!
//! [`Fabric`] is the seam for networks of other crates: `crates/indexy-dex-ucx` has one.
//!
//! A connection is authenticated by a shared secret in both directions. It is not encrypted.

mod contract;
mod counts;
mod endpoint;
mod fabric;
mod holder;
mod keys;
#[allow(unsafe_code, reason = "maps memory")]
mod mapping;
mod model;
mod region;
mod session;
pub mod shm;
mod socket;
mod status;
pub mod tcp;

pub use contract::{Handler, MAX_WORDS, Part, RemoteMemory};
pub use counts::{Counters, Counts};
pub use endpoint::Endpoint;
pub use fabric::{Fabric, Visitor};
pub(crate) use holder::{read_versioned, swap_lock, take_lock, wait_for_holder};
pub use model::{Latency, Model};
pub use region::{
    BYTES_OFFSET, Lent, MAGIC, NEXT_FREE_OFFSET, NODES_OFFSET, ROOT_OFFSET, Region, TABLE_OFFSET,
};
pub(crate) use region::{LOCKS, LOCKS_OFFSET};
pub use socket::{auth::Secret, server::Serving};
pub use status::{PoolStatus, SessionStatus};
