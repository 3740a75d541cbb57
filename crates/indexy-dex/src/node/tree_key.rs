//! What a tree needs to know of its keys: their order, and how nodes hold them.

use super::{
    inner::Route,
    layout::{Image, Words},
    leaf::{Change, Edit},
};
use crate::{address::Address, error::Result};

pub(super) mod sealed {
    pub trait Sealed {}
}

/// The keys of a tree: `u64`, or [`Bytes`](super::Bytes). There is a least key and a greatest one,
/// and between them each has one before and one after it. So fences include both ends.
///
/// Functions that read a node take any words: see the module's header.
pub trait TreeKey: sealed::Sealed + Copy + Ord + std::fmt::Debug + Send + Sync + 'static {
    /// What a leaf has for a key.
    type Value: Copy + PartialEq + std::fmt::Debug + Send + Sync;
    /// The byte of a node that says how it holds keys; the same in all nodes of a tree.
    const LAYOUT: u8;
    /// The least key.
    const MIN: Self;
    /// The greatest key.
    const MAX: Self;

    /// The next key.
    fn after(self) -> Option<Self>;
    /// The key before.
    fn before(self) -> Option<Self>;
    /// The first eight bytes, which say who owns the key; in the order of the keys.
    fn prefix(self) -> u64;
    /// The least key with this prefix.
    fn lowest(prefix: u64) -> Self;
    /// The greatest key with this prefix.
    fn highest(prefix: u64) -> Self;

    /// Appends the key to a message.
    fn push_words(self, words: &mut Vec<u64>);
    /// Takes a key from the front of a message.
    fn take_words(words: &mut &[u64]) -> Option<Self>;
    /// Appends a value, or what stands for none, to a message.
    fn push_value(value: Option<Self::Value>, words: &mut Vec<u64>);
    /// The value that is all of `words`.
    fn value_from(words: &[u64]) -> Option<Self::Value>;

    /// The node that was read at `at` is one that a compute server writes.
    fn check(node: &Image, at: Address) -> Result<()>;
    /// Entries of a leaf or separators of an inner node, at most what a node can have.
    fn count(node: &impl Words) -> usize;
    /// The lowest key that the node may hold.
    fn low(node: &impl Words) -> Self;
    /// The highest key that the node may hold.
    fn high(node: &impl Words) -> Self;
    /// `key` lies between the fences.
    fn covers(node: &impl Words, key: Self) -> bool;
    /// The node should be split before another is split below it.
    fn is_full(node: &impl Words) -> bool;
    /// So much that a split makes sense.
    fn may_split(node: &impl Words) -> bool;
    /// So few entries that a merge is worth it.
    fn is_sparse(node: &impl Words) -> bool;
    /// The child that covers `wanted`.
    fn route(node: &impl Words, wanted: Self) -> Route<Self>;
    /// The child `slot`, at most the count.
    fn at_slot(node: &impl Words, slot: usize) -> Route<Self>;
    /// The word of child `slot`.
    fn child(node: &impl Words, slot: usize) -> u64;
    /// Replaces the word of child `slot`.
    fn set_child(node: &mut impl Words, slot: usize, word: u64);
    /// Adds a child whose lowest key is `separator`. The node must not be full.
    fn insert_child(node: &mut impl Words, separator: Self, word: u64);
    /// Removes child `slot`, which is not the first, and the separator before it.
    fn remove_child(node: &mut impl Words, slot: usize);
    /// An inner node over `children`, each with its lowest key; the first key is the node's low.
    fn new_inner(address: Address, level: u8, children: &[(Self, u64)], high: Self) -> Image;
    /// An empty leaf.
    fn new_leaf(address: Address, low: Self, high: Self) -> Image;
    /// Moves the upper half of a node of any level to a new one at `right_at`; returns it with its
    /// lowest key.
    fn split(node: &mut impl Words, right_at: Address) -> (Self, Image);
    /// Appends `right`, the next node of the same level, if the result keeps room.
    fn merge(left: &mut impl Words, right: &impl Words) -> bool;
    /// Cuts a node down to `first..=last`, which it covers. `false`: it covers nothing else.
    fn trim(node: &mut Image, first: Self, last: Self) -> bool;
    /// The value of `key` in a leaf.
    fn find(leaf: &impl Words, key: Self) -> Option<Self::Value>;
    /// [`TreeKey::apply`] would find no room.
    fn needs_split(leaf: &impl Words, key: Self, edit: Edit<Self::Value>) -> bool;
    /// Does `edit` to `key` in a leaf.
    fn apply(leaf: &mut impl Words, key: Self, edit: Edit<Self::Value>) -> Change<Self::Value>;
    /// Entries of a leaf with keys from `from` on.
    fn entries(leaf: &impl Words, from: Self) -> impl Iterator<Item = (Self, Self::Value)>;

    /// Removes the entries of a leaf with keys from `from` to `to`; returns their values.
    fn remove_between(leaf: &mut impl Words, from: Self, to: Self) -> Vec<Self::Value> {
        let keys = Self::entries(&*leaf, from).map(|entry| entry.0);
        let keys: Vec<Self> = keys.take_while(|key| *key <= to).collect();
        let gone = keys
            .into_iter()
            .filter_map(|key| match Self::apply(leaf, key, Edit::Remove) {
                Change::Done { old, .. } => old,
                Change::Full => None,
            });
        gone.collect()
    }

    /// A key above `last`, and up to `next`, which is above it too: where a load's leaf starts.
    fn start_between(last: Self, next: Self) -> Self;
    /// Ranges of owners start in the middle of what a load would have as one leaf.
    const LOADS_CUT: bool;
    /// A load puts no more into a leaf; `fill`: of [`CAPACITY`](super::CAPACITY).
    fn leaf_is_loaded(entries: &[(Self, Self::Value)], fill: usize) -> bool;
    /// A load puts no more children into an inner node.
    fn inner_is_loaded(children: &[(Self, u64)], fill: usize) -> bool;
    /// A leaf with these entries; `None`: they do not fit.
    fn loaded_leaf(
        address: Address,
        low: Self,
        high: Self,
        entries: &[(Self, Self::Value)],
    ) -> Option<Image>;
    /// As [`TreeKey::new_inner`]; `None`: the children do not fit.
    fn loaded_inner(
        address: Address,
        level: u8,
        children: &[(Self, u64)],
        high: Self,
    ) -> Option<Image>;

    /// The slot whose word is `word`.
    fn slot_of(node: &impl Words, word: u64) -> Option<usize> {
        (0..=Self::count(node)).find(|&slot| Self::child(node, slot) == word)
    }
}
