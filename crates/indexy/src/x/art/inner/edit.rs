//! Making nodes, and changing the children of a latched one.
//!
//! Adjacent empty children that are the same (both complete, or mounted with one stamp) are joined
//! in passing: they stand for one range.

use super::{
    InnerLatched,
    layout::{InnerRef, Kind, Shape, node_bytes},
};
use crate::{
    mem::{Guard, Memory, words::Words},
    x::{
        Stamp,
        art::symbol::{END, LAST, SYMBOLS, Symbol},
        child::ChildWord,
    },
};

/// A child and the first symbol that it covers; it reaches to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub first: Symbol,
    pub word: ChildWord,
}

/// What is below a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Census {
    /// Children, neighbours that are one empty range counted once.
    pub children: usize,
    /// Leaves and nodes among them.
    pub full: usize,
    /// The first symbol of the first of those.
    pub first_full: Symbol,
    /// Mounted ranges: empty children, and the gap.
    pub mounts: isize,
}

/// Most children of a node that has separators.
const MOST_RANKED: usize = 48;
/// A child is replaced by at most this many.
const MOST_PIECES: usize = 3;
const RANKED_PIECES: usize = MOST_RANKED + MOST_PIECES;

/// Up to `N` children in order, neighbours that are one range joined.
struct Pieces<const N: usize> {
    list: [Piece; N],
    n: usize,
}

impl<const N: usize> Pieces<N> {
    fn new() -> Self {
        let nothing = Piece {
            first: END,
            word: ChildWord::EMPTY,
        };
        Self {
            list: [nothing; N],
            n: 0,
        }
    }

    fn push(&mut self, piece: Piece) {
        let joined =
            piece.word.is_empty() && self.n > 0 && self.list[self.n - 1].word == piece.word;
        if !joined {
            self.list[self.n] = piece;
            self.n += 1;
        }
    }

    fn as_slice(&self) -> &[Piece] {
        &self.list[..self.n]
    }

    fn mounts(&self) -> isize {
        self.as_slice().iter().filter(|p| p.word.is_mount()).count() as isize
    }
}

impl<'g> InnerRef<'g> {
    /// A new node of the smallest kind that holds `children`, or of `at_least`. Not yet published.
    pub(crate) fn create(
        memory: &Memory,
        _guard: &'g Guard<'_>,
        at_least: Kind,
        prefix: &[u8],
        gap: Option<Stamp>,
        children: &[Piece],
    ) -> Self {
        let mut pieces = Pieces::<SYMBOLS>::new();
        for &piece in children {
            pieces.push(piece);
        }
        let kind = Kind::for_children(pieces.n).max(at_least);
        let bytes = node_bytes(kind, prefix.len());
        let block = memory.allocate(bytes);
        // SAFETY: the block is new, zeroed and has `bytes` bytes; it is retired under a guard, or
        // freed while nobody else knows it.
        let words = unsafe { Words::new(block.ptr, bytes) };
        let node = Self::format(block.ptr, words, kind, prefix, gap);
        node.write_children(pieces.as_slice());
        node
    }

    /// The children of a node that does not change meanwhile.
    fn pieces<const N: usize>(self) -> Pieces<N> {
        let mut pieces = Pieces::new();
        self.for_each_child(|first, _, word| pieces.push(Piece { first, word }));
        pieces
    }

    /// Mounted ranges of this node itself, empty children and the gap, while it does not change.
    pub(crate) fn mounts(self) -> isize {
        self.census().mounts
    }

    /// What is below the node, while that does not change. Cost: one pass over the child words.
    fn census(self) -> Census {
        let mut census = Census {
            children: 0,
            full: 0,
            first_full: END,
            mounts: isize::from(self.gap().is_some()),
        };
        let mut before = None;
        self.for_each_child(|first, _, word| {
            let joined = word.is_empty() && before == Some(word);
            before = Some(word);
            if joined {
                return;
            }
            census.children += 1;
            if word.is_mount() {
                census.mounts += 1;
            } else if !word.is_empty() {
                if census.full == 0 {
                    census.first_full = first;
                }
                census.full += 1;
            }
        });
        census
    }

    /// Writes all children of a node that has room for them.
    fn write_children(self, pieces: &[Piece]) {
        let shape = self.shape();
        if shape.kind == Kind::Node256 {
            for (i, piece) in pieces.iter().enumerate() {
                let end = pieces
                    .get(i + 1)
                    .map_or(SYMBOLS as Symbol, |next| next.first);
                for symbol in piece.first..end {
                    self.set_child(shape, symbol as usize, piece.word);
                }
            }
            self.set_children(SYMBOLS);
            return;
        }
        debug_assert!(pieces.len() <= shape.kind.capacity());
        for word in 0..shape.kind.separator_words() {
            let mut bytes = [u8::MAX; 8];
            for (byte, piece) in bytes.iter_mut().zip(pieces.iter().skip(1 + 8 * word)) {
                *byte = (piece.first - 1) as u8;
            }
            self.set_cell(shape.separators() + word, u64::from_le_bytes(bytes));
        }
        for (i, piece) in pieces.iter().enumerate() {
            self.set_child(shape, i, piece.word);
        }
        self.set_children(pieces.len());
    }
}

impl<'g> InnerLatched<'g> {
    /// There is room for `more` children.
    pub(crate) fn has_room(&self, more: usize) -> bool {
        let shape = self.node.shape();
        shape.kind == Kind::Node256 || shape.children + more <= shape.kind.capacity()
    }

    /// Puts `word` in place of the child that covers `symbol`, for the same symbols. Neither is
    /// empty.
    pub(crate) fn swap(&self, symbol: Symbol, word: ChildWord) {
        let shape = self.node.shape();
        let i = self.node.index_of(shape, symbol);
        let old = self.node.child_at(shape, i);
        self.node.set_child(shape, i, word);
        if shape.kind != Kind::Node256 || old.is_inner() {
            return;
        }
        // The same word stands at each symbol that the child covers: many, where keys ascend and
        // the last leaf has the rest.
        self.node.replace_while(shape, old, word, (0..i).rev());
        self.node.replace_while(shape, old, word, i + 1..SYMBOLS);
    }

    /// Puts `pieces` in place of the symbols `first..=last`, which are one or more whole children.
    /// The first piece starts at `first`. There is room. Returns by how much the number of mounted
    /// ranges changed.
    pub(crate) fn replace(&self, first: Symbol, last: Symbol, pieces: &[Piece]) -> isize {
        debug_assert!(pieces.len() <= MOST_PIECES && pieces[0].first == first);
        let shape = self.node.shape();
        if shape.kind == Kind::Node256 {
            return self.replace_direct(shape, first, last, pieces);
        }
        debug_assert!(shape.children <= MOST_RANKED);
        let old = self.node.pieces::<RANKED_PIECES>();
        let mut new = Pieces::<RANKED_PIECES>::new();
        let before = old.as_slice().iter().filter(|p| p.first < first);
        let after = old.as_slice().iter().filter(|p| p.first > last);
        for &piece in before.chain(pieces).chain(after) {
            new.push(piece);
        }
        self.node.write_children(new.as_slice());
        new.mounts() - old.mounts()
    }

    fn replace_direct(&self, shape: Shape, first: Symbol, last: Symbol, pieces: &[Piece]) -> isize {
        // Leaves and nodes in place of leaves and nodes leave mounts alone.
        let full = !self.node.child_at(shape, first as usize).is_empty();
        let counted = !full || pieces.iter().any(|piece| piece.word.is_empty());
        let mounts = || match counted {
            true => self.mount_runs(shape, first, last),
            false => 0,
        };
        let before = mounts();
        for (i, piece) in pieces.iter().enumerate() {
            let end = pieces.get(i + 1).map_or(last + 1, |next| next.first);
            for symbol in piece.first..end {
                self.node.set_child(shape, symbol as usize, piece.word);
            }
        }
        mounts() - before
    }

    /// Runs of one mount that start in `first..=last`, or right after.
    fn mount_runs(&self, shape: Shape, first: Symbol, last: Symbol) -> isize {
        let word = |symbol: Symbol| self.node.child_at(shape, symbol as usize);
        (first..=(last + 1).min(LAST))
            .filter(|&s| word(s).is_mount() && (s == END || word(s - 1) != word(s)))
            .count() as isize
    }

    /// Mounted ranges of this node itself: empty children and the gap.
    pub(crate) fn mounts(&self) -> isize {
        self.node.mounts()
    }

    /// A copy of at least kind `at_least`, without the first `strip` bytes of the prefix. Not yet
    /// published.
    pub(crate) fn copy(
        &self,
        memory: &Memory,
        guard: &'g Guard<'_>,
        at_least: Kind,
        strip: usize,
    ) -> InnerRef<'g> {
        let mut prefix = Vec::new();
        self.node.push_prefix(&mut prefix);
        let pieces = self.node.pieces::<SYMBOLS>();
        let gap = self.gap();
        InnerRef::create(
            memory,
            guard,
            at_least,
            &prefix[strip..],
            gap,
            pieces.as_slice(),
        )
    }

    /// A copy with another prefix and gap, of the smallest kind. Not yet published.
    pub(crate) fn copy_under(
        &self,
        memory: &Memory,
        guard: &'g Guard<'_>,
        prefix: &[u8],
        gap: Option<Stamp>,
    ) -> InnerRef<'g> {
        let pieces = self.node.pieces::<SYMBOLS>();
        InnerRef::create(memory, guard, Kind::Node4, prefix, gap, pieces.as_slice())
    }

    /// What is below the node.
    pub(crate) fn census(&self) -> Census {
        self.node.census()
    }

    /// Sets the mount of the gap; returns by how much the number of mounted ranges changed.
    pub(crate) fn set_gap(&self, gap: Option<Stamp>) -> isize {
        let before = isize::from(self.gap().is_some());
        self.node.set_gap(gap);
        isize::from(self.gap().is_some()) - before
    }
}
