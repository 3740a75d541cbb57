//! Leaves of the B+ tree: heads, and behind them the entries, slotted or of one size.
//!
//! | file | what |
//! |---|---|
//! | `layout` | the bytes |
//! | `read`, `edit` | the format: reads, and changes in place |
//! | `build` | building a leaf out of entries of others |
//! | `check` | what must be true of a leaf |

mod build;
mod check;
mod edit;
mod layout;
mod read;

pub(super) use build::{Builder, Contents, Shift, Spare};
pub(super) use edit::heap_bytes;
pub(super) use layout::{
    Headed, Kind, LEAF_BYTES, LeafLatched, LeafRef, LeafSeen, MAX_ENTRIES, StableLeaf,
};
