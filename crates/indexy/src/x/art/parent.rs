//! What a child hangs on: an inner node, or the root of the tree.
//!
//! Keeps: who replaces a leaf or a node holds its latch and its parent's; the old one becomes
//! obsolete and is retired here, after the word that led to it is gone.

use super::{
    inner::{Child, InnerLatched, InnerRef, InnerSeen, Piece},
    symbol::{END, LAST, Symbol},
};
use crate::{
    mem::Memory,
    x::{
        Stamp, XStats,
        child::ChildWord,
        leaf::{LeafLatched, LeafRef},
        root::{RootLatched, RootSeen},
    },
};

/// Frees every block of the tree. Not recursive: a tree may be as deep as its longest key.
pub(super) fn free_all(mut stack: Vec<ChildWord>, memory: &Memory) {
    while let Some(word) = stack.pop() {
        // SAFETY: the tree is ours alone, so its words are what they say and nobody reads the
        // blocks any more. Each block is reached once: a child that is repeated in a node is
        // visited once.
        match unsafe { word.resolve() } {
            Child::Empty(_) => {}
            Child::Leaf(leaf) => {
                // SAFETY: as above.
                unsafe { leaf.free(memory) };
            }
            Child::Inner(node) => {
                node.for_each_child(|_, _, word| stack.push(word));
                // SAFETY: as above.
                unsafe { memory.free(node.block()) };
            }
        }
    }
}

/// So many children are fetched ahead.
const FETCHED_AHEAD: usize = 4;

/// See [`Structure::take_apart`](crate::x::tree::Structure::take_apart). Not recursive, as
/// `free_all`.
pub(super) fn take_apart(
    memory: &Memory,
    stack: &mut Vec<ChildWord>,
    enough_bytes: usize,
) -> XStats {
    let mut gone = XStats::default();
    let mut children = Vec::new();
    while gone.bytes < enough_bytes
        && let Some(word) = stack.pop()
    {
        // A guard a node: what is retired here is freed soon.
        let _guard = memory.enter();
        children.clear();
        // SAFETY: nobody but this thread retires what hangs on an obsolete node, or on the word
        // that it came with; the guard is there for what is latched.
        match unsafe { word.resolve() } {
            Child::Inner(node) => {
                let Some(node) = node.latch() else { continue };
                gone.bytes += Memory::size_of(node.node().block());
                gone.mounts += usize::from(node.gap().is_some());
                node.node().for_each_child(|_, _, word| children.push(word));
                node.retire(memory);
            }
            _ => children.push(word),
        }
        for (i, word) in children.iter().enumerate() {
            if gone.bytes >= enough_bytes {
                stack.extend_from_slice(&children[i..]);
                break;
            }
            if let Some(next) = children.get(i + FETCHED_AHEAD) {
                next.prefetch();
            }
            // SAFETY: as above.
            match unsafe { word.resolve() } {
                Child::Empty(mount) => gone.mounts += usize::from(mount.is_some()),
                Child::Leaf(leaf) => {
                    if let Some(leaf) = leaf.latch() {
                        leaf.retire_all(memory, &mut gone);
                    }
                }
                Child::Inner(_) => stack.push(*word),
            }
        }
    }
    gone
}

/// A parent as it was at a version.
#[derive(Clone, Copy)]
pub(crate) enum ParentSeen<'g> {
    Root(RootSeen<'g>),
    Inner(InnerSeen<'g>),
}

impl<'g> ParentSeen<'g> {
    /// The child that covers `symbol`; `None` when the parent changed.
    #[inline]
    pub(super) fn child(&self, symbol: Symbol) -> Option<Child<'g>> {
        match self {
            Self::Inner(node) => node.child(symbol),
            Self::Root(seen) => {
                // SAFETY: the root was valid after the load; `'g` is within the guard's life
                // (`see`).
                seen.word().map(|word| unsafe { word.resolve() })
            }
        }
    }

    /// The parent as it is now; `None` when it is obsolete.
    #[inline]
    pub(super) fn again(self) -> Option<Self> {
        match self {
            Self::Inner(node) => node.node().see().map(Self::Inner),
            Self::Root(root) => Some(Self::Root(root)),
        }
    }

    /// Latches the parent, if it is still as it was seen. Does not wait.
    pub(super) fn try_latch(self) -> Option<ParentLatched<'g>> {
        match self {
            Self::Inner(node) => node.try_latch().map(ParentLatched::Inner),
            Self::Root(root) => root.try_latch().map(ParentLatched::Root),
        }
    }

    pub(super) fn is_root(&self) -> bool {
        matches!(self, Self::Root(_))
    }

    /// Where the parent is; 0: the root. Says little about which it is once the guard is gone.
    pub(super) fn address(&self) -> usize {
        match self {
            Self::Root(_) => 0,
            Self::Inner(node) => node.node().block().addr().get(),
        }
    }
}

/// A parent whose latch is held; given up on drop.
pub(crate) enum ParentLatched<'g> {
    Root(RootLatched<'g>),
    Inner(InnerLatched<'g>),
}

impl<'g> ParentLatched<'g> {
    pub(super) fn child_word(&self, symbol: Symbol) -> ChildWord {
        match self {
            Self::Inner(node) => node.child_word(symbol),
            Self::Root(latched) => latched.word(),
        }
    }

    /// First and last symbol of the child that covers `symbol`.
    pub(super) fn range(&self, symbol: Symbol) -> (Symbol, Symbol) {
        match self {
            Self::Inner(node) => node.range(symbol),
            Self::Root(_) => (END, LAST),
        }
    }

    pub(super) fn is_root(&self) -> bool {
        matches!(self, Self::Root(_))
    }

    /// Puts `pieces` in place of the symbols `first..=last`: whole children, of which none is a
    /// leaf or a node that others can still find. Returns by how much the number of mounted ranges
    /// changed.
    fn put(&self, first: Symbol, last: Symbol, pieces: &[Piece]) -> isize {
        match self {
            Self::Inner(node) => node.replace(first, last, pieces),
            Self::Root(latched) => {
                debug_assert!(pieces.len() == 1);
                let before = isize::from(latched.word().is_mount());
                let word = pieces[0].word;
                latched.set(word);
                isize::from(word.is_mount()) - before
            }
        }
    }

    /// Puts `pieces` in place of the empty child that covers `symbol`.
    pub(super) fn replace_empty(&self, symbol: Symbol, pieces: &[Piece]) -> isize {
        debug_assert!(self.child_word(symbol).is_empty());
        let (first, last) = self.range(symbol);
        self.put(first, last, pieces)
    }

    /// Puts `pieces` in place of `old`, which covers `symbol`, and retires it.
    pub(super) fn replace_leaf(
        &self,
        memory: &Memory,
        symbol: Symbol,
        old: LeafLatched<'g>,
        pieces: &[Piece],
    ) -> isize {
        assert!(self.child_word(symbol) == old.leaf().word());
        let mounts = match pieces {
            [piece] if !piece.word.is_empty() => {
                self.set(symbol, piece.word);
                0
            }
            _ => {
                let (first, last) = self.range(symbol);
                self.put(first, last, pieces)
            }
        };
        old.retire(memory);
        mounts
    }

    /// Puts `new` in place of the leaf `old`, for the same range, and retires `old`.
    pub(super) fn swap_leaf(
        &self,
        memory: &Memory,
        symbol: Symbol,
        old: LeafLatched<'g>,
        new: LeafRef<'g>,
    ) {
        assert!(self.child_word(symbol) == old.leaf().word());
        self.set(symbol, new.word());
        old.retire(memory);
    }

    /// Replaces the leaf `old` by an empty range, joined with its like beside it: all of them get
    /// `mount`, a fresh stamp. Returns by how much the number of mounted ranges changed.
    pub(super) fn empty_leaf(
        &self,
        memory: &Memory,
        symbol: Symbol,
        old: LeafLatched<'g>,
        mount: Option<Stamp>,
    ) -> isize {
        assert!(self.child_word(symbol) == old.leaf().word());
        let mounts = self.put_empty(symbol, mount);
        old.retire(memory);
        mounts
    }

    /// Puts the node `new` in place of the node `old`, which covers `symbol`, and retires that.
    pub(super) fn swap_inner(
        &self,
        memory: &Memory,
        symbol: Symbol,
        old: InnerLatched<'g>,
        new: InnerRef<'g>,
    ) {
        self.swap_word(symbol, &old, new.word());
        old.retire(memory);
    }

    /// Replaces the inner node `old`, which has no leaf or node below it, by an empty range.
    /// Returns by how much the number of mounted ranges of this parent changed.
    pub(super) fn empty_inner(
        &self,
        memory: &Memory,
        symbol: Symbol,
        old: InnerLatched<'g>,
        mount: Option<Stamp>,
    ) -> isize {
        assert!(self.child_word(symbol) == old.node().word());
        let mounts = self.put_empty(symbol, mount);
        old.retire(memory);
        mounts
    }

    /// Puts the leaf `new` in place of the node `old`, which covers `symbol` and has only the leaf
    /// `below`, and retires both.
    pub(super) fn pull_up_leaf(
        &self,
        memory: &Memory,
        symbol: Symbol,
        old: InnerLatched<'g>,
        below: LeafLatched<'g>,
        new: LeafRef<'g>,
    ) {
        self.swap_word(symbol, &old, new.word());
        below.retire(memory);
        old.retire(memory);
    }

    /// Puts the node `new` in place of the node `old`, which covers `symbol` and has only the node
    /// `below`, and retires both.
    pub(super) fn pull_up_inner(
        &self,
        memory: &Memory,
        symbol: Symbol,
        old: InnerLatched<'g>,
        below: InnerLatched<'g>,
        new: InnerRef<'g>,
    ) {
        self.swap_word(symbol, &old, new.word());
        below.retire(memory);
        old.retire(memory);
    }

    /// Puts `word` in place of the node `old`.
    fn swap_word(&self, symbol: Symbol, old: &InnerLatched<'g>, word: ChildWord) {
        assert!(self.child_word(symbol) == old.node().word());
        self.set(symbol, word);
    }

    /// Puts `word` in place of the child that covers `symbol`, for the same symbols. Neither is
    /// empty.
    fn set(&self, symbol: Symbol, word: ChildWord) {
        match self {
            Self::Inner(node) => node.swap(symbol, word),
            Self::Root(latched) => latched.set(word),
        }
    }

    /// Makes the child that covers `symbol` empty, joined with the empty ranges beside it that are
    /// mounted, or complete, as it is. `mount` is a fresh stamp.
    fn put_empty(&self, symbol: Symbol, mount: Option<Stamp>) -> isize {
        let (mut first, mut last) = self.range(symbol);
        let word = ChildWord::empty(mount);
        let alike = |other: ChildWord| other.is_empty() && other.is_mount() == word.is_mount();
        while first > END && alike(self.child_word(first - 1)) {
            first = self.range(first - 1).0;
        }
        while last < LAST && alike(self.child_word(last + 1)) {
            last = self.range(last + 1).1;
        }
        self.put(first, last, &[Piece { first, word }])
    }

    /// Sets the mark of the empty range that covers `symbol`; a mount comes with a fresh stamp.
    pub(super) fn remount(&self, symbol: Symbol, mount: Option<Stamp>) -> isize {
        debug_assert!(self.child_word(symbol).is_empty());
        self.put_empty(symbol, mount)
    }
}

impl<'g> InnerLatched<'g> {
    /// Puts `new` in place of the leaf `left` and its neighbour `right`, which covers `symbol`, and
    /// retires both.
    pub(super) fn join_leaves(
        &self,
        memory: &Memory,
        symbol: Symbol,
        left: LeafLatched<'g>,
        right: LeafLatched<'g>,
        new: LeafRef<'g>,
    ) {
        let (middle, last) = self.range(symbol);
        assert!(self.child_word(symbol) == right.leaf().word());
        assert!(middle > END && self.child_word(middle - 1) == left.leaf().word());
        let (first, _) = self.range(middle - 1);
        self.replace(
            first,
            last,
            &[Piece {
                first,
                word: new.word(),
            }],
        );
        left.retire(memory);
        right.retire(memory);
    }
}
