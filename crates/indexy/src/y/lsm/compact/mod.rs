//! Compaction: what to merge, and the merge.
//!
//! Source: `docs/decisions/0011-late-compaction.md`.
//!
//! - `policy.rs`: a pure function of the shape of a tree. `shape.rs`: that shape, of a version.
//! - `merge.rs`: sorted inputs into one output.
//!
//! Not here: who calls it, and the tables (the tree).

mod merge;
mod policy;
mod shape;

#[cfg(test)]
mod tests;

pub(crate) use merge::{Deletes, MergeInput, MergeOutput, Merged, merge};
pub(crate) use policy::{Effort, Limits, Shape, Step, next};
pub(crate) use shape::{Known, shape_of};
