//! Inner nodes: those of ART (4, 16, 48, 256 children, compressed prefix), whose children cover
//! ranges of byte values (`docs/decisions/0001-ranges-and-packed-leaves.md`).
//!
//! An inner child covers exactly one byte value, a leaf or an empty range any number. A node's
//! kind, prefix and place in the tree never change: to grow, to shrink or to lose a part of its
//! prefix it is copied, and the old one becomes obsolete. So a node that is not obsolete is in the
//! tree, or was when all of that was cleared, and a reader need not look at its parent again.
//!
//! Threads: readers read optimistically (`InnerSeen`); who changes children holds the latch
//! (`InnerLatched`).

mod child;
mod edit;
pub(super) mod layout;
mod prefix;
mod rank;

pub(super) use child::{Child, ValidWord};
pub(super) use edit::Piece;
pub(super) use layout::{InnerRef, Kind};

use super::symbol::{END, LAST, Symbol};
use crate::x::child::ChildWord;
use crate::{
    mem::{Memory, latch::Version},
    x::Stamp,
};
use layout::Shape;

/// A node as it was at a version.
#[derive(Clone, Copy)]
pub(crate) struct InnerSeen<'g> {
    node: InnerRef<'g>,
    version: Version,
}

/// A node whose latch the owner of this holds; given up on drop.
pub(crate) struct InnerLatched<'g> {
    node: InnerRef<'g>,
}

impl<'g> InnerRef<'g> {
    /// Waits for a writer; `None` when the node is obsolete.
    #[inline]
    pub(crate) fn see(self) -> Option<InnerSeen<'g>> {
        let version = self.latch_word().read()?;
        Some(InnerSeen {
            node: self,
            version,
        })
    }

    /// Waits for the latch; `None` when the node is obsolete.
    pub(crate) fn latch(self) -> Option<InnerLatched<'g>> {
        self.latch_word()
            .lock()
            .then(|| InnerLatched { node: self })
    }

    /// The symbols that the child covers which covers `symbol`.
    fn range_around(self, shape: Shape, symbol: Symbol) -> (Symbol, Symbol) {
        let i = self.index_of(shape, symbol);
        if shape.kind != Kind::Node256 {
            let first = match i {
                0 => END,
                _ => Symbol::from(self.separator(shape, i - 1)) + 1,
            };
            let last = if i + 1 >= shape.children {
                LAST
            } else {
                Symbol::from(self.separator(shape, i))
            };
            return (first, last);
        }
        let word = self.child_at(shape, i);
        let (mut first, mut last) = (symbol, symbol);
        if word.is_inner() {
            return (first, last);
        }
        while first > END && self.child_at(shape, first as usize - 1) == word {
            first -= 1;
        }
        while last < LAST && self.child_at(shape, last as usize + 1) == word {
            last += 1;
        }
        (first, last)
    }

    /// Calls `visit` with the first and last symbol and the word of each child, in order,
    /// of a node that does not change meanwhile.
    pub(crate) fn for_each_child(self, mut visit: impl FnMut(Symbol, Symbol, ChildWord)) {
        let shape = self.shape();
        if shape.kind == Kind::Node256 {
            let (mut first, mut word) = (END, self.child_at(shape, END as usize));
            for symbol in END + 1..=LAST {
                let next = self.child_at(shape, symbol as usize);
                if next != word || word.is_inner() {
                    visit(first, symbol - 1, word);
                    (first, word) = (symbol, next);
                }
            }
            return visit(first, LAST, word);
        }
        let mut first = END;
        for i in 0..shape.children {
            let last = if i + 1 == shape.children {
                LAST
            } else {
                Symbol::from(self.separator(shape, i))
            };
            visit(first, last, self.child_at(shape, i));
            first = last + 1;
        }
    }
}

impl<'g> InnerSeen<'g> {
    #[inline]
    pub(crate) fn node(&self) -> InnerRef<'g> {
        self.node
    }

    /// The node is still as it was seen.
    #[inline]
    pub(crate) fn unchanged(&self) -> bool {
        self.node.latch_word().validate(self.version)
    }

    /// The word of the child that covers `symbol`; `None` when the node changed.
    #[inline(always)]
    pub(crate) fn valid_word(&self, symbol: Symbol) -> Option<ValidWord<'g>> {
        let shape = self.node.shape();
        let word = self.node.child_at(shape, self.node.index_of(shape, symbol));
        word.prefetch();
        // SAFETY: the node was valid after the word was loaded; the guard that keeps this node for
        // `'g` keeps its child.
        self.unchanged().then(|| unsafe { ValidWord::new(word) })
    }

    /// What stands for the gap as a child of its own would; `None` when the node changed.
    #[inline]
    pub(crate) fn gap_word(&self) -> Option<ValidWord<'g>> {
        let word = ChildWord::empty(self.gap()?);
        // SAFETY: the word of an empty range leads nowhere.
        Some(unsafe { ValidWord::new(word) })
    }

    /// The child that covers `symbol`; `None` when the node changed.
    #[inline]
    pub(crate) fn child(&self, symbol: Symbol) -> Option<Child<'g>> {
        self.valid_word(symbol).map(ValidWord::resolve)
    }

    /// The word of the child that covers `symbol`, which is not fetched; `None` when the node
    /// changed.
    #[inline]
    pub(crate) fn word(&self, symbol: Symbol) -> Option<ChildWord> {
        let shape = self.node.shape();
        let word = self.node.child_at(shape, self.node.index_of(shape, symbol));
        self.unchanged().then_some(word)
    }

    /// The mount of the gap; `None` when the node changed.
    #[inline]
    pub(crate) fn gap(&self) -> Option<Option<Stamp>> {
        let gap = self.node.gap();
        self.unchanged().then_some(gap)
    }

    /// First and last symbol of the child that covers `symbol`; `None` when the node changed.
    pub(crate) fn range(&self, symbol: Symbol) -> Option<(Symbol, Symbol)> {
        let range = self.node.range_around(self.node.shape(), symbol);
        self.unchanged().then_some(range)
    }

    /// Latches the node, if it is still as it was seen. Does not wait.
    #[inline]
    pub(crate) fn try_latch(self) -> Option<InnerLatched<'g>> {
        self.node
            .latch_word()
            .try_upgrade(self.version)
            .then(|| InnerLatched { node: self.node })
    }
}

impl<'g> InnerLatched<'g> {
    #[inline]
    pub(crate) fn node(&self) -> InnerRef<'g> {
        self.node
    }

    #[inline]
    pub(crate) fn child_word(&self, symbol: Symbol) -> ChildWord {
        let shape = self.node.shape();
        self.node.child_at(shape, self.node.index_of(shape, symbol))
    }

    /// First and last symbol of the child that covers `symbol`.
    pub(crate) fn range(&self, symbol: Symbol) -> (Symbol, Symbol) {
        self.node.range_around(self.node.shape(), symbol)
    }

    /// The child that covers `symbol`.
    #[inline]
    pub(crate) fn resolve(&self, symbol: Symbol) -> Child<'g> {
        // SAFETY: the node is latched and kept for `'g`, and so are its children.
        unsafe { self.child_word(symbol).resolve() }
    }

    #[inline]
    pub(crate) fn gap(&self) -> Option<Stamp> {
        self.node.gap()
    }

    /// Takes the node out of use.
    pub(super) fn retire(self, memory: &Memory) {
        let node = self.node;
        std::mem::forget(self);
        node.latch_word().unlock_obsolete();
        // SAFETY: the caller replaced the word that led here, under the parent's latch; nobody
        // finds it again.
        unsafe { memory.retire(node.block()) };
    }
}

impl Drop for InnerLatched<'_> {
    fn drop(&mut self) {
        self.node.latch_word().unlock();
    }
}
