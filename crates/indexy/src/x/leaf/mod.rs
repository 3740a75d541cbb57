//! Leaves: the entries of a range, in key order, in one block.
//!
//! The bytes of a leaf are those of its [format](format::LeafFormat); everything else about leaves
//! is here. A leaf stays at one place of its tree for its whole life: its range and the depth of
//! its suffixes never change. To change them, new leaves are built and the old one becomes
//! obsolete. So a leaf that is not obsolete is in the tree, and a reader that reached it need not
//! look at its parent again.
//!
//! Threads: readers read optimistically ([`LeafSeen`]). A writer holds the latch
//! ([`LeafLatched`]) for one edit, and the parent's latch too when it replaces the leaf.
//!
//! | file | what |
//! |---|---|
//! | `handles` | a leaf, seen at a version, or latched |
//! | `format` | what a format has to provide |
//! | `stable` | a leaf that does not change meanwhile: latched, or a validated copy |
//! | `lookup` | optimistic reads |
//! | `mask` | sets of entries |

mod format;
mod handles;
mod lookup;
mod mask;
mod stable;

pub(crate) use format::{Bit, EntryAt, LeafEdits, LeafFormat};
pub(crate) use handles::{LeafLatched, LeafRef, LeafSeen};
pub(crate) use lookup::{FETCHED_AT_ONCE, Measured};
pub(crate) use mask::{mask, ones};
pub(crate) use stable::{BUFFER_BYTES, LeafBuffer, StableLeaf};
