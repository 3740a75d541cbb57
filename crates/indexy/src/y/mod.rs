//! The contract of Index Y: the part of a tree that is on disk.
//!
//! Source: IndeXY II-A, II-D; design 2.3, 3, 5.1.
//!
//! What an implementer has to know, threads and crashes included, is the text of `crate::index_y`, which makes
//! this contract public. Here are the contract and the implementations of this crate.

#![forbid(unsafe_code)]

#[cfg(any(test, feature = "testing"))]
pub mod conformance;
mod contract;
mod factory;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod fuzzing;
pub(crate) mod lsm;
pub(crate) mod paged;
#[cfg(feature = "rocksdb")]
pub(crate) mod rocks;

#[cfg(test)]
pub(crate) mod memory;

pub use contract::{Capabilities, IndexY, Maintained, RunEntry, RunSource, YIter};
pub use factory::{IndexYFactory, IndexYShared};
