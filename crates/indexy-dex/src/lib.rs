//! A B+ tree whose nodes lie in the memory of other machines, after DEX ("Scalable Range Indexing
//! on Disaggregated Memory").
//!
//! Memory servers hold the nodes and have few cores. Compute servers run the operations and have
//! little memory. Between them are verbs: read, write, compare-and-swap, call. Every verb and byte
//! is counted.
//!
//! A pool is one [`remote::Region`] for each memory server, reached over a transport of [`remote`].
//! [`Tree::format`] or [`BulkLoad`] makes a tree in it, and each compute server opens it with
//! [`Tree::open`]. A range moves by [`Tree::release`] and [`Tree::adopt_table`];
//! [`partition::plan`] says which one should. The ranges of a compute server that is gone go to
//! another one by [`Tree::take_over`].
//!
//! [`ByteTree`] is the same for keys and values of any length.
//!
//! Nothing is durable: see the README.

#![deny(unsafe_code)]

pub mod address;
pub mod baselines;
mod cache;
pub mod error;
mod lock_word;
pub mod node;
pub mod offload;
pub mod partition;
mod random;
pub mod remote;
pub mod tree;
mod wait;

pub use address::Address;
pub use error::{Error, Result};
pub use tree::{BulkLoad, ByteTree, Loaded, MAX_VALUE_BYTES, Options, Tree, Values};

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
