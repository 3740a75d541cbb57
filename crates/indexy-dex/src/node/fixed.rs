//! Keys of eight bytes: nodes with a place for each key and value.

use super::{
    check,
    inner::{self, Route},
    layout::{self, Image, Words},
    leaf::{self, Change, Edit},
    tree_key::{TreeKey, sealed::Sealed},
    trim,
};
use crate::{address::Address, error::Result};

impl Sealed for u64 {}

impl TreeKey for u64 {
    type Value = Self;
    const LAYOUT: u8 = 0;
    const MIN: Self = 0;
    const MAX: Self = Self::MAX;

    #[inline]
    fn after(self) -> Option<Self> {
        self.checked_add(1)
    }

    #[inline]
    fn before(self) -> Option<Self> {
        self.checked_sub(1)
    }

    #[inline]
    fn prefix(self) -> u64 {
        self
    }

    fn lowest(prefix: u64) -> Self {
        prefix
    }

    fn highest(prefix: u64) -> Self {
        prefix
    }

    fn push_words(self, words: &mut Vec<u64>) {
        words.push(self);
    }

    fn take_words(words: &mut &[u64]) -> Option<Self> {
        let (first, rest) = words.split_first()?;
        *words = rest;
        Some(*first)
    }

    fn push_value(value: Option<Self>, words: &mut Vec<u64>) {
        words.push(value.unwrap_or(0));
    }

    fn value_from(words: &[u64]) -> Option<Self> {
        match *words {
            [value] => Some(value),
            _ => None,
        }
    }

    fn check(node: &Image, at: Address) -> Result<()> {
        check::check(node, at)
    }

    #[inline]
    fn count(node: &impl Words) -> usize {
        layout::count(node)
    }

    #[inline]
    fn low(node: &impl Words) -> Self {
        layout::low(node)
    }

    #[inline]
    fn high(node: &impl Words) -> Self {
        layout::high(node)
    }

    #[inline]
    fn covers(node: &impl Words, key: Self) -> bool {
        layout::covers(node, key)
    }

    #[inline]
    fn is_full(node: &impl Words) -> bool {
        layout::is_full(node)
    }

    fn may_split(node: &impl Words) -> bool {
        layout::is_full(node)
    }

    fn is_sparse(node: &impl Words) -> bool {
        leaf::is_sparse(node)
    }

    #[inline]
    fn route(node: &impl Words, wanted: Self) -> Route {
        inner::route(node, wanted)
    }

    fn at_slot(node: &impl Words, slot: usize) -> Route {
        inner::at_slot(node, slot)
    }

    #[inline]
    fn child(node: &impl Words, slot: usize) -> u64 {
        inner::child(node, slot)
    }

    fn set_child(node: &mut impl Words, slot: usize, word: u64) {
        inner::set_child(node, slot, word);
    }

    fn insert_child(node: &mut impl Words, separator: Self, word: u64) {
        inner::insert_child(node, separator, word);
    }

    fn remove_child(node: &mut impl Words, slot: usize) {
        inner::remove_child(node, slot);
    }

    fn new_inner(address: Address, level: u8, children: &[(Self, u64)], high: Self) -> Image {
        inner::new_inner(address, level, children, high)
    }

    fn new_leaf(address: Address, low: Self, high: Self) -> Image {
        leaf::new_leaf(address, low, high)
    }

    fn split(node: &mut impl Words, right_at: Address) -> (Self, Image) {
        if layout::level(node) == 0 {
            leaf::split_leaf(node, right_at)
        } else {
            inner::split_inner(node, right_at)
        }
    }

    fn merge(left: &mut impl Words, right: &impl Words) -> bool {
        leaf::merge(left, right)
    }

    fn trim(node: &mut Image, first: Self, last: Self) -> bool {
        trim::trim(node, first, last)
    }

    #[inline]
    fn find(leaf: &impl Words, key: Self) -> Option<Self> {
        let found = leaf::find(leaf, key).ok();
        found.map(|at| leaf::value(leaf, at))
    }

    #[inline]
    fn needs_split(leaf: &impl Words, key: Self, edit: Edit) -> bool {
        matches!(edit, Edit::Put(_)) && layout::is_full(leaf) && leaf::find(leaf, key).is_err()
    }

    #[inline]
    fn apply(leaf: &mut impl Words, key: Self, edit: Edit) -> Change {
        leaf::apply(leaf, key, edit)
    }

    fn entries(leaf: &impl Words, from: Self) -> impl Iterator<Item = (Self, Self)> {
        leaf::entries(leaf, from)
    }

    fn start_between(_last: Self, next: Self) -> Self {
        next
    }

    const LOADS_CUT: bool = false;

    fn leaf_is_loaded(entries: &[(Self, Self)], fill: usize) -> bool {
        entries.len() >= fill
    }

    fn inner_is_loaded(children: &[(Self, u64)], fill: usize) -> bool {
        children.len() >= fill
    }

    fn loaded_leaf(
        address: Address,
        low: Self,
        high: Self,
        entries: &[(Self, Self)],
    ) -> Option<Image> {
        let mut node = leaf::new_leaf(address, low, high);
        leaf::fill(&mut node, entries.iter().copied());
        (entries.len() <= layout::CAPACITY).then_some(node)
    }

    fn loaded_inner(
        address: Address,
        level: u8,
        children: &[(Self, u64)],
        high: Self,
    ) -> Option<Image> {
        let fits = (1..=layout::CAPACITY + 1).contains(&children.len());
        fits.then(|| inner::new_inner(address, level, children, high))
    }
}
