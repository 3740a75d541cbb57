//! Disk indexes: the contract, and the implementations of this crate.
//!
//! The text for implementers is that of `crate::index_y`, which makes the contract public.

#![forbid(unsafe_code)]

mod compression;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
mod contract;
mod factory;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod fuzzing;
pub(crate) mod line_filter;
pub(crate) mod lsm;
pub(crate) mod page;
pub(crate) mod paged;
pub(crate) mod pool;
#[cfg(feature = "rocksdb")]
pub(crate) mod rocks;
pub(crate) mod salvaged;
pub(crate) mod tolerant;

#[cfg(test)]
mod crashes;
#[cfg(test)]
mod large_values;
#[cfg(test)]
pub(crate) mod memory;
#[cfg(test)]
pub(crate) mod removed_range;

pub use compression::Compression;
pub use contract::{
    Capabilities, GotAt, IndexY, KeyRange, Located, Locator, Maintained, RangeRemoval, Reach,
    RunEntry, RunSource, SortedLoad, YIter,
};
pub use factory::{IndexYFactory, IndexYShared};
pub use lsm::LsmFactory;
