//! Keys of 0 to `N` bytes: slotted nodes.
//!
//! | byte | field | rule |
//! |---|---|---|
//! | 0 to 23 | version, address, kind | as in nodes of eight-byte keys; the kind's layout is `N` |
//! | 24 to 31 | lengths | of the low fence (8 bits), of the end (8; 255: there is none), of the prefix (8); bytes of the heap (at 32, 16 bits) |
//! | 32 | low | `N` bytes: the low fence |
//! | 32 + N | end | `N` bytes: the key after the high fence |
//! | 32 + 2 N | children | a word each; leaves have none |
//! | | slots | one for each key: offset of its bytes in the node (16 bits), bytes of the key without the prefix (8), mark of the value (8) |
//! | | free | |
//! | to 1023 | heap | keys without the prefix, each with its value |
//!
//! The prefix is what the low fence and the high one have in common: all keys have it. Places for
//! two whole fences are kept, so a node's entries fit whatever its fences become.
//!
//! The least key is the empty one, the greatest `N` bytes of 255. The key before `b` is `a` and
//! `N - 1` bytes of 255; the fence that is stored is `b`.

mod changes;
mod check;
mod key;
mod load;
mod packed;
mod slots;
mod stored;
#[cfg(test)]
mod tests;

pub use key::Bytes;
pub use stored::{MAX_INLINE_BYTES, Stored};

use super::{
    inner::Route,
    layout::{Image, Words},
    leaf::{Change, Edit},
    tree_key::{TreeKey, sealed::Sealed},
};
use crate::{address::Address, error::Result};

impl<const N: usize> Sealed for Bytes<N> {}

impl<const N: usize> TreeKey for Bytes<N> {
    type Value = Stored;
    const LAYOUT: u8 = Self::LIMIT;
    const MIN: Self = Self::EMPTY;
    const MAX: Self = Self::GREATEST;

    fn after(self) -> Option<Self> {
        self.successor()
    }

    fn before(self) -> Option<Self> {
        self.predecessor()
    }

    fn prefix(self) -> u64 {
        self.first_word()
    }

    fn lowest(prefix: u64) -> Self {
        let bytes = prefix.to_be_bytes();
        let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
        Self::cut(&bytes[..bytes.len() - zeros])
    }

    fn highest(prefix: u64) -> Self {
        let next = prefix.checked_add(1).map(Self::lowest);
        next.and_then(Self::predecessor).unwrap_or(Self::GREATEST)
    }

    fn push_words(self, words: &mut Vec<u64>) {
        words.push(self.as_slice().len() as u64);
        stored::push_bytes(self.as_slice(), words);
    }

    fn take_words(words: &mut &[u64]) -> Option<Self> {
        let (length, rest) = words.split_first()?;
        let length = usize::try_from(*length).ok().filter(|bytes| *bytes <= N)?;
        let (bytes, rest) = rest.split_at_checked(length.div_ceil(8))?;
        *words = rest;
        let mut buffer = [0; N];
        stored::copy_words(bytes, &mut buffer[..length]);
        Self::new(&buffer[..length])
    }

    fn push_value(value: Option<Stored>, words: &mut Vec<u64>) {
        if let Some(value) = value {
            value.push_words(words);
        }
    }

    fn value_from(words: &[u64]) -> Option<Stored> {
        Stored::from_words(words)
    }

    fn check(node: &Image, at: Address) -> Result<()> {
        check::check::<N>(node, at)
    }

    fn count(node: &impl Words) -> usize {
        slots::count::<N>(node)
    }

    fn low(node: &impl Words) -> Self {
        slots::low(node)
    }

    fn high(node: &impl Words) -> Self {
        slots::high(node)
    }

    fn covers(node: &impl Words, key: Self) -> bool {
        slots::low::<N>(node) <= key && slots::end::<N>(node).is_none_or(|end| key < end)
    }

    fn is_full(node: &impl Words) -> bool {
        changes::is_full::<N>(node)
    }

    fn may_split(node: &impl Words) -> bool {
        changes::may_split::<N>(node)
    }

    fn is_sparse(node: &impl Words) -> bool {
        changes::is_sparse::<N>(node)
    }

    fn route(node: &impl Words, wanted: Self) -> Route<Self> {
        slots::at_slot(node, slots::search(node, &wanted, true))
    }

    fn at_slot(node: &impl Words, slot: usize) -> Route<Self> {
        slots::at_slot(node, slot)
    }

    fn child(node: &impl Words, slot: usize) -> u64 {
        slots::child::<N>(node, slot)
    }

    fn set_child(node: &mut impl Words, slot: usize, word: u64) {
        slots::set_child::<N>(node, slot, word);
    }

    fn insert_child(node: &mut impl Words, separator: Self, word: u64) {
        changes::insert_child(node, separator, word);
    }

    fn remove_child(node: &mut impl Words, slot: usize) {
        changes::remove_child::<N>(node, slot);
    }

    fn new_inner(address: Address, level: u8, children: &[(Self, u64)], high: Self) -> Image {
        changes::new_inner(address, level, children, high)
    }

    fn new_leaf(address: Address, low: Self, high: Self) -> Image {
        changes::new_leaf(address, low, high)
    }

    fn split(node: &mut impl Words, right_at: Address) -> (Self, Image) {
        changes::split(node, right_at)
    }

    fn merge(left: &mut impl Words, right: &impl Words) -> bool {
        changes::merge::<N>(left, right)
    }

    fn trim(node: &mut Image, first: Self, last: Self) -> bool {
        changes::trim(node, first, last)
    }

    fn find(leaf: &impl Words, key: Self) -> Option<Stored> {
        slots::find(leaf, &key)
            .ok()
            .map(|i| slots::value::<N>(leaf, i))
    }

    fn needs_split(leaf: &impl Words, key: Self, edit: Edit<Stored>) -> bool {
        matches!(edit, Edit::Put(value) if !changes::has_room(leaf, &key, &value))
    }

    fn apply(leaf: &mut impl Words, key: Self, edit: Edit<Stored>) -> Change<Stored> {
        changes::apply(leaf, key, edit)
    }

    fn entries(leaf: &impl Words, from: Self) -> impl Iterator<Item = (Self, Stored)> {
        let first = slots::search(leaf, &from, false);
        (first..slots::count::<N>(leaf)).map(|i| (slots::key(leaf, i), slots::value::<N>(leaf, i)))
    }

    fn start_between(last: Self, next: Self) -> Self {
        last.separator(&next)
    }

    const LOADS_CUT: bool = true;

    fn leaf_is_loaded(entries: &[(Self, Stored)], fill: usize) -> bool {
        let bytes = |value: &Stored| value.as_slice().len();
        load::is_loaded(entries, bytes, fill)
    }

    fn inner_is_loaded(children: &[(Self, u64)], fill: usize) -> bool {
        load::is_loaded(children, |_| slots::CHILD, fill)
    }

    fn loaded_leaf(
        address: Address,
        low: Self,
        high: Self,
        entries: &[(Self, Stored)],
    ) -> Option<Image> {
        load::leaf(address, low, high, entries)
    }

    fn loaded_inner(
        address: Address,
        level: u8,
        children: &[(Self, u64)],
        high: Self,
    ) -> Option<Image> {
        load::inner(address, level, children, high)
    }
}
