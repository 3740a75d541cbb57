//! Index X as a B+ tree in memory.
//!
//! Source: IndeXY II-A, III-A; IOMemTable (heads, hints, optimistic latches);
//! `docs/decisions/0004-bptree-as-index-x.md`. Slotted leaves and inner nodes of a size chosen at
//! build time, with prefix truncation in each node, the shortest separators, a leaf layout without
//! slots for entries of one size, and out-of-line blocks for what is large.
//!
//! A node's range never changes: splits and joins make new nodes. So a reader that holds a node
//! which is not obsolete is in the right place, whatever happened above it. Links between siblings
//! are not needed: every split, join and cut would have to keep them right, under a third latch.
//! The bounds of a range, the fence keys of the literature, are not stored: they are the nearest
//! separators on the way down. Scans go down once per leaf, from the end of the range before, and
//! hold nothing between two leaves.
//!
//! Keeps: I1 (`search`), I3 (every place that takes a `tick`); what both kinds of tree keep the
//! same way is in `x/walk/`.
//!
//! | file | what |
//! |---|---|
//! | `inner/`, `parent` | the nodes, what hangs on what, and all unsafe code |
//! | `search`, `path`, `place` | going down, and where that ends |
//! | `reshape` | growing and splitting |
//! | `shrink`, `merge`, `relocate` | giving memory back |
//! | `tally` | walks over leaves and over all blocks |
//! | `structure` | how these are put together |

mod inner;
mod merge;
mod parent;
mod path;
mod place;
mod relocate;
mod reshape;
mod search;
mod shrink;
mod structure;
mod tally;
#[cfg(test)]
mod tests;

use super::tree::Tree;

/// The tree.
pub(crate) type BPlus = Tree<Balanced>;

/// The structure of [`BPlus`].
#[derive(Clone, Copy)]
pub(crate) struct Balanced;
