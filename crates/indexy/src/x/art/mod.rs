//! Index X as an adaptive radix tree (ART) whose children are ranges and whose leaves hold many
//! keys.
//!
//! Source: IndeXY II-A, II-D; `docs/decisions/0001-ranges-and-packed-leaves.md`. Search, insert
//! and growth are those of ART; mounts and stamps sit on ranges.
//!
//! Keeps: I1 (`search`), I3 (every place that takes a `tick`); what both kinds of tree keep the
//! same way is in `x/walk/`.
//!
//! | file | what |
//! |---|---|
//! | `symbol`, `parent` | what selects a child; what a child hangs on |
//! | `inner/` | the nodes, and all unsafe code |
//! | `search`, `place` | going down, and where that ends |
//! | `reshape`, `split` | growing and splitting |
//! | `shrink`, `merge`, `relocate` | giving memory back |
//! | `leaf_sizes`, `tally` | walks over leaves and over all blocks |
//! | `structure` | how these are put together |

mod inner;
mod leaf_sizes;
mod merge;
mod parent;
mod place;
mod relocate;
mod reshape;
mod search;
mod shrink;
mod split;
mod structure;
mod symbol;
mod tally;

use super::tree::Tree;

/// The tree.
pub(crate) type Art = Tree<Radix>;

/// The structure of [`Art`].
#[derive(Clone, Copy)]
pub(crate) struct Radix;
