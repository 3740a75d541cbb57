//! Leaves: the entries of a range, in key order, in one block.
//!
//! Every kind of tree has these leaves: heads in order, and behind them the entries, slotted or of
//! one size (`docs/decisions/0016-heads-and-leaf-forms.md`). A leaf stays at one place of its tree
//! for its whole life: its range and the depth of its suffixes never change. To change them, new
//! leaves are built and the old one becomes obsolete. So a leaf that is not obsolete is in the
//! tree, or was when all of that was cleared, and a reader that reached it need not look at its
//! parent again.
//!
//! Threads: readers read optimistically ([`LeafSeen`]). A writer holds the latch
//! ([`LeafLatched`]) for one edit, and the parent's latch too when it replaces the leaf.
//!
//! | file | what |
//! |---|---|
//! | `handles` | a leaf, seen at a version, or latched |
//! | `layout` | the bytes |
//! | `read`, `edit` | finding and reading entries; changes in place |
//! | `build` | building a leaf out of entries of others |
//! | `replace` | what takes the place of a leaf: larger, smaller, a part, two in one |
//! | `relocate` | moving large blocks |
//! | `stable` | a leaf that does not change meanwhile: latched, or a validated copy |
//! | `lookup` | optimistic reads |
//! | `check` | what must be true of a leaf |
//! | `mask` | sets of entries |

mod build;
mod check;
mod edit;
mod handles;
mod layout;
mod lookup;
mod mask;
mod read;
mod relocate;
mod replace;
mod stable;

pub(crate) use build::{Builder, Contents, Spare};
pub(crate) use handles::{LeafLatched, LeafRef, LeafSeen};
pub(crate) use layout::Bit;
pub(crate) use lookup::{FETCHED_AT_ONCE, Measured, ValueCopy};
pub(crate) use mask::{mask, ones};
pub(crate) use replace::Room;
pub(crate) use stable::{LeafBuffer, StableLeaf};
