//! Compaction: what to merge, and the merge.
//!
//! - `policy.rs`: a pure function of the shape of a tree. `shape.rs`: that shape, of a version.
//! - `merge.rs`: many sorted inputs into one output.
//!
//! Not here: who calls it, and the tables (the tree).

mod merge;
