//! A B+ tree whose nodes lie in the memory of other machines, after DEX ("Scalable Range Indexing
//! on Disaggregated Memory").
//!
//! Memory servers hold the nodes and have few cores. Compute servers run the operations and have
//! little memory. Between them are verbs: read, write, compare-and-swap, call. Every verb and byte
//! is counted.

pub mod address;
pub mod baselines;
mod cache;
pub mod error;
pub mod node;
pub mod offload;
pub mod partition;
mod random;
pub mod remote;
pub mod tree;
mod wait;

pub use address::Address;
pub use error::{Error, Result};
pub use tree::{BulkLoad, Options, Tree};
