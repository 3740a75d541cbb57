//! A node: 1 KiB, 128 words, the same in the pool and in a cache. Source: DEX section 3.
//!
//! Keys of eight bytes have this layout; keys of any length that of `bytes/`. A tree has nodes of
//! one layout, which its kind of keys names ([`TreeKey`]).
//!
//! | word | field | rule |
//! |---|---|---|
//! | 0 | version | odd: locked by a compute server; grows with every write to the pool; `lock_word.rs` |
//! | 1 | address | its own |
//! | 2 | kind | magic (32 bits), layout (8; here 0), entries (16), level (8) |
//! | 3, 4 | low, high | the fences: every key in the node or below lies in low..=high |
//! | 5 to 7 | | zero |
//! | 8 to 65 | keys | ascending; a leaf's entries, or an inner node's separators |
//! | 66 to 124 | values | a leaf's values, or an inner node's children, one more than separators |
//!
//! Child `i` of an inner node covers the keys from separator `i - 1` (or low) to just below
//! separator `i` (or to high). A child word is an address, or, in a cache alone, the number of a
//! frame with the top bit set ([`SWIZZLED`]).
//!
//! The functions work on [`Words`]: a copy ([`Image`]) or memory that other threads write
//! ([`View`]). Counts that are read are clamped to what a node can hold, so a torn read gives a
//! wrong answer and never an access outside. Whoever reads a [`View`] without a latch validates.

mod bytes;
mod check;
mod fixed;
mod inner;
mod layout;
mod leaf;
#[cfg(test)]
mod tests;
mod tree_key;
mod trim;

pub use bytes::{Bytes, MAX_INLINE_BYTES, Stored};
pub use check::check;
pub use inner::{
    Route, at_slot, child, insert_child, new_inner, remove_child, route, set_child, slot_of,
    split_inner,
};
pub use layout::{
    ADDRESS, CAPACITY, HIGH, Image, LOW, MAX_LEVEL, NODE_BYTES, NODE_WORDS, SWIZZLED, VERSION,
    View, Words, address, count, covers, high, is_full, key, layout, level, low, reset, set_fences,
};
pub(crate) use leaf::value_word;
pub use leaf::{Change, Edit, apply, entries, find, is_sparse, merge, new_leaf, split_leaf, value};
pub use tree_key::TreeKey;
pub use trim::trim;
