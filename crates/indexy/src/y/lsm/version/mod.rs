//! Versions: which tables have what part of the key space.
//!
//! A [`Version`] is an immutable list of partitions of the key space. A [`Partition`] has a base
//! (tables that do not overlap) and layers (tables that may overlap, newest first). A table may be
//! in several partitions; in each, only the part inside the partition's bounds counts, its *slice*.
//! So a range is removed by cutting partitions at its ends and emptying those between.
//!
//! - `facts.rs`: what a version knows of a table. `partition.rs`, `contents.rs`: the lists.
//!   `paid.rs`: what reads have paid, as the log keeps it.
//! - `edit.rs`, `replace.rs`, `tidy.rs`: pure steps from one version to the next.
//! - `log/`: the file `versions`; `translate.rs`: between that and versions. `files.rs`: what lies
//!   in the directory. `placement.rs`: the tables of a tree that is not open.
//! - `versions.rs`: the current version, commits, the files' lives.
//!
//! Keeps, for every version (`Version::check`):
//! - V1: partitions tile the key space: the first begins with the empty key, each ends where the
//!   next begins, the last has no end.
//! - V2: every table of a partition overlaps it; no table is twice in one partition.
//! - V3: the tables of a base do not overlap each other, and ascend.
//! - V4: for a key, the newest entry is in the first of: layers in order, then the base.
//! - V5: what was removed stays removed: two partitions are joined only if no table of one that is
//!   not in the other, too, reaches over the other's keys (`tidy.rs`).
//!
//! Not here: what is in a table, and what to merge (`compact/`).

mod codec;
mod contents;
mod edit;
mod facts;
mod files;
mod log;
mod paid;
mod partition;
mod placement;
mod replace;
mod tidy;
mod translate;
mod versions;

#[cfg(any(test, feature = "testing"))]
pub(crate) mod fuzzing;
#[cfg(test)]
pub(super) mod tests;

pub(crate) use contents::Version;
pub(crate) use facts::{Estimate, Facts, MAX_EXTRA_BYTES, TableFile};
pub(crate) use files::{TABLES, VERSIONS};
pub(crate) use partition::{Partition, Slice, sum};
pub(crate) use placement::{Placement, read_placement, write_copy};
pub(crate) use replace::{Inputs, Part};
pub(crate) use versions::{Opening, Versions};
