//! Packed leaves: up to 64 entries of a range, in key order, in one block
//! (`docs/decisions/0001-ranges-and-packed-leaves.md`).
//!
//! | file | what |
//! |---|---|
//! | `layout` | the bytes |
//! | `read`, `edit` | the format: reads, and changes in place |
//! | `split` | building a leaf out of entries of others |
//! | `check` | what must be true of a leaf |

mod check;
mod edit;
mod layout;
mod read;
mod split;

pub(super) use layout::{LeafLatched, LeafRef, LeafSeen, MAX_ENTRIES, Packed, StableLeaf};
pub(super) use split::{SplitAt, leaf_bytes};
