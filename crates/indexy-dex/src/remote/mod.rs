//! The memory pool: regions, the verbs that reach them, and the transports.
//!
//! | transport | verbs | calls |
//! |---|---|---|
//! | [`Model`] | the same process; a virtual clock adds latency and bandwidth | the same, with a queue for the server's threads |
//! | [`shm`] | another process's memory, mapped | a Unix socket |
//! | [`tcp`] | frames on a socket | the same |
//!
//! A connection is authenticated by a shared secret in both directions. It is not encrypted.

mod contract;
mod counts;
#[allow(unsafe_code, reason = "the one file that maps memory")]
mod mapping;
mod model;
mod region;
pub mod shm;
mod socket;
pub mod tcp;

pub use contract::{Handler, MAX_WORDS, Part, RemoteMemory};
pub use counts::Counts;
pub use model::{Latency, Model};
pub use region::{
    BYTES_OFFSET, MAGIC, NEXT_FREE_OFFSET, NODES_OFFSET, ROOT_OFFSET, Region, TABLE_OFFSET,
};
pub use socket::auth::Secret;
