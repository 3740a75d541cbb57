//! Changing the structure so that a write finds room: none of this changes what the tree says.
//!
//! Each step latches what it replaces and its parent, builds the new blocks, publishes them with
//! one word, and marks the old ones obsolete. A step that does not get a latch at once gives up;
//! the caller goes down again.
//!
//! Keeps: every part of a range that is split has the mark and the stamp of the whole (I3). Latches
//! are taken without waiting, so that no order among them is needed.

#![forbid(unsafe_code)]

use super::{
    Art, Radix,
    inner::{InnerLatched, InnerRef, Kind, Piece},
    parent::{ParentLatched, ParentSeen},
    place::{Gap, Place},
    split::{SplitAt, common_prefix, split_for, split_point},
    symbol::{END, LAST, Symbol},
};
use crate::{
    mem::{Guard, Memory},
    x::{
        Stamp,
        child::ChildWord,
        counters::Delta,
        edit::Edit,
        entry::NewEntry,
        leaf::{Builder, Contents, LeafLatched, Room, Spare, mask},
        pending::PendingValue,
        tree::Grow,
    },
};
use std::ops::Range;

/// Bytes of a node in the arena.
pub(super) fn arena_bytes(node: InnerRef<'_>) -> isize {
    Memory::size_of(node.block()) as isize
}

impl Grow for Radix {
    fn fill<'g>(
        art: &Art,
        guard: &'g Guard<'_>,
        place: &Place<'g>,
        key: &[u8],
        mount: Option<Stamp>,
        value: &mut PendingValue<'_>,
    ) -> Option<LeafLatched<'g>> {
        if let Some(gap) = place.gap() {
            art.split_prefix(guard, place, gap);
            return None;
        }
        let mut contents = Contents::default();
        contents.add(&value.entry(&key[place.depth..], 0));
        let parent = place.parent.try_latch()?;
        let new = Builder::new(&art.memory, guard, &contents, Spare::Some, place.depth);
        let leaf = new.finish(mount, 0);
        let (first, _) = parent.range(place.symbol);
        let word = leaf.leaf().word();
        let mounts = parent.replace_empty(place.symbol, &[Piece { first, word }]);
        art.counters.add(Delta {
            bytes: leaf.arena_bytes(),
            mounts: mounts + isize::from(mount.is_some()),
            ..Delta::default()
        });
        Some(leaf)
    }

    fn make_room<'g>(
        art: &Art,
        guard: &'g Guard<'_>,
        place: &Place<'g>,
        _key: &[u8],
        leaf: LeafLatched<'g>,
        edit: Edit,
        entry: &NewEntry<'_>,
    ) -> Option<LeafLatched<'g>> {
        match leaf.room_for(edit, entry) {
            Room::Here => Some(leaf),
            Room::Larger(contents, spare) => {
                let parent = place.parent.try_latch()?;
                Some(art.resize(guard, &parent, place.symbol, leaf, &contents, spare))
            }
            Room::Split(at) => {
                let parent = place.parent.try_latch()?;
                art.split(guard, place, parent, leaf, at.map(|at| (at, entry.suffix)));
                None
            }
        }
    }
}

impl Art {
    /// Replaces `leaf` by one for `contents` with the same entries.
    pub(super) fn resize<'g>(
        &self,
        guard: &'g Guard<'_>,
        parent: &ParentLatched<'g>,
        symbol: Symbol,
        leaf: LeafLatched<'g>,
        contents: &Contents,
        spare: Spare,
    ) -> LeafLatched<'g> {
        let new = leaf.resized(&self.memory, guard, contents, spare);
        self.counters.add(Delta {
            bytes: new.arena_bytes() - leaf.arena_bytes(),
            ..Delta::default()
        });
        parent.swap_leaf(&self.memory, symbol, leaf, new.leaf());
        new
    }

    /// Splits `leaf` in two; where its range cannot be split, under a node of their own. `new`:
    /// where a new entry belongs, and its suffix.
    fn split<'g>(
        &self,
        guard: &'g Guard<'_>,
        place: &Place<'g>,
        parent: ParentLatched<'g>,
        leaf: LeafLatched<'g>,
        new: Option<(usize, &[u8])>,
    ) {
        let in_range = if parent.is_root() {
            None
        } else {
            split_for(leaf.stable(), new)
        };
        let more = if in_range.is_some() || parent.is_root() {
            1
        } else {
            2
        };
        if let ParentLatched::Inner(node) = parent {
            if !node.has_room(more) {
                drop(leaf);
                self.grow(guard, place.above, node, more);
                return;
            }
            let parent = ParentLatched::Inner(node);
            match in_range {
                Some(split) => self.split_range(guard, place.symbol, &parent, leaf, split),
                None => self.split_down(guard, place.symbol, &parent, leaf, 1),
            }
        } else {
            self.split_down(guard, place.symbol, &parent, leaf, 0);
        }
    }

    /// The two parts of `leaf` around `split`, of which the first starts at symbol `first`, and
    /// their bytes less those of `leaf`.
    fn halves<'g>(
        &self,
        guard: &'g Guard<'_>,
        leaf: &LeafLatched<'g>,
        first: Symbol,
        split: SplitAt,
        strip: usize,
    ) -> ([Piece; 2], isize) {
        let n = leaf.leaf().len();
        let mut bytes = -leaf.arena_bytes();
        let mut piece = |first, entries: Range<usize>| {
            if entries.is_empty() {
                let word = ChildWord::empty(leaf.leaf().mount());
                return Piece { first, word };
            }
            // A leaf that keeps all is one that keys are appended behind: it is left full.
            let spare = match entries.len() == n {
                true => Spare::None,
                false => Spare::Some,
            };
            let part = leaf.part(&self.memory, guard, mask(entries), strip, spare);
            bytes += part.arena_bytes();
            let word = part.leaf().word();
            Piece { first, word }
        };
        let pieces = [piece(first, 0..split.at), piece(split.symbol, split.at..n)];
        (pieces, bytes)
    }

    /// Splits `leaf` and its range.
    fn split_range<'g>(
        &self,
        guard: &'g Guard<'_>,
        symbol: Symbol,
        parent: &ParentLatched<'g>,
        leaf: LeafLatched<'g>,
        split: SplitAt,
    ) {
        let (first, _) = parent.range(symbol);
        let (pieces, bytes) = self.halves(guard, &leaf, first, split, 0);
        let leaves = pieces.iter().filter(|piece| !piece.word.is_empty()).count() as isize;
        let own = match leaf.leaf().mount() {
            Some(_) => leaves - 1,
            None => 0,
        };
        let mounts = parent.replace_leaf(&self.memory, symbol, leaf, &pieces) + own;
        self.counters.add(Delta {
            bytes,
            mounts,
            ..Delta::default()
        });
    }

    /// Puts a node with the common prefix of the entries in place of `leaf`, and two leaves below
    /// it. The first `consumed` bytes of the suffixes (all the same) select the node in its parent.
    fn split_down<'g>(
        &self,
        guard: &'g Guard<'_>,
        symbol: Symbol,
        parent: &ParentLatched<'g>,
        leaf: LeafLatched<'g>,
        consumed: usize,
    ) {
        let mut prefix = Vec::new();
        let strip = common_prefix(leaf.stable(), &mut prefix);
        let Some(split) = split_point(leaf.stable(), strip) else {
            unreachable!("two different keys have a point where they differ");
        };
        let (children, bytes) = self.halves(guard, &leaf, END, split, strip);
        let mount = leaf.leaf().mount();
        let kind = Kind::Node4;
        let gap = &prefix[consumed..];
        let node = InnerRef::create(&self.memory, guard, kind, gap, mount, &children);
        let bytes = bytes + arena_bytes(node);
        let own = if mount.is_some() {
            1 + node.mounts()
        } else {
            0
        };
        let (first, last) = parent.range(symbol);
        let mounts = if consumed == 0 {
            let pieces = [Piece {
                first,
                word: node.word(),
            }];
            parent.replace_leaf(&self.memory, symbol, leaf, &pieces)
        } else {
            let (pieces, n) = around(first, Symbol::from(prefix[0]) + 1, last, node.word(), mount);
            parent.replace_leaf(&self.memory, symbol, leaf, &pieces[..n])
        };
        self.counters.add(Delta {
            bytes,
            mounts: mounts + own,
            ..Delta::default()
        });
    }

    /// Replaces `node` by a larger copy.
    fn grow<'g>(
        &self,
        guard: &'g Guard<'_>,
        above: Option<(ParentSeen<'g>, Symbol)>,
        node: InnerLatched<'g>,
        more: usize,
    ) {
        let Some((above, symbol)) = above else {
            return;
        };
        let Some(above) = above.try_latch() else {
            return;
        };
        let kind = Kind::for_children(node.node().shape().children + more);
        let new = node.copy(&self.memory, guard, kind, 0);
        let bytes = arena_bytes(new) - arena_bytes(node.node());
        above.swap_inner(&self.memory, symbol, node, new);
        self.counters.add(Delta {
            bytes,
            ..Delta::default()
        });
    }

    /// Puts a node with the first `matched` bytes of the prefix of the gap's node above it, so that
    /// a key which differs there has a range of its own. `None` when a latch was not free.
    fn split_prefix<'g>(
        &self,
        guard: &'g Guard<'_>,
        place: &Place<'g>,
        gap: Gap<'g>,
    ) -> Option<()> {
        let parent = place.parent.try_latch()?;
        let node = gap.node.try_latch()?;
        let matched = gap.matched;
        let mut prefix = Vec::new();
        node.node().push_prefix(&mut prefix);
        let mount = node.gap();
        let lower = node.copy(&self.memory, guard, Kind::Node4, matched + 1);
        let at = Symbol::from(prefix[matched]) + 1;
        let (pieces, n) = around(END, at, LAST, lower.word(), mount);
        let kind = Kind::Node4;
        let gap = &prefix[..matched];
        let upper = InnerRef::create(&self.memory, guard, kind, gap, mount, &pieces[..n]);
        let bytes = arena_bytes(upper) + arena_bytes(lower) - arena_bytes(node.node());
        let mounts = upper.mounts() + lower.mounts() - node.mounts();
        parent.swap_inner(&self.memory, place.symbol, node, upper);
        self.counters.add(Delta {
            bytes,
            mounts,
            ..Delta::default()
        });
        Some(())
    }
}

/// `word` at the symbol `at` of `first..=last`, and empty ranges, mounted as given, on its sides.
fn around(
    first: Symbol,
    at: Symbol,
    last: Symbol,
    word: ChildWord,
    mount: Option<Stamp>,
) -> ([Piece; 3], usize) {
    let empty = ChildWord::empty(mount);
    let mut pieces = [Piece { first, word: empty }; 3];
    let mut n = usize::from(first < at);
    pieces[n] = Piece { first: at, word };
    n += 1;
    if at < last {
        pieces[n] = Piece {
            first: at + 1,
            word: empty,
        };
        n += 1;
    }
    (pieces, n)
}
