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
    leaf::{LeafLatched, MAX_ENTRIES, SplitAt, leaf_bytes},
    parent::{ParentLatched, ParentSeen},
    place::{Gap, Place},
    symbol::{END, LAST, Symbol},
};
use crate::{
    mem::{Guard, Memory},
    x::{
        Stamp, child::ChildWord, counters::Delta, edit::Edit, entry::NewEntry,
        pending::PendingValue, tree::Grow,
    },
};

/// A leaf does not grow beyond this, unless it has a single entry.
pub(super) const MAX_LEAF_BYTES: usize = 1024;

/// A leaf that is full of dead bytes is tidied in place only when that gives at least this much
/// room.
const WORTHWHILE_BYTES: usize = 64;

/// Bytes to ask for when `needed` are used at once.
fn roomy(needed: usize) -> usize {
    (needed + needed / 8).min(MAX_LEAF_BYTES).max(needed)
}

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
        let parent = place.parent.try_latch()?;
        let bytes = leaf_bytes(1, value.need(&key[place.depth..]));
        let leaf = LeafLatched::create(&art.memory, guard, bytes, mount, 0);
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
        let n = leaf.leaf().len();
        let entries = n + usize::from(matches!(edit, Edit::Insert { .. }));
        // The old version stays until the new one is written.
        let needed = leaf_bytes(entries, leaf.stable().live_bytes() + entry.size());
        if entries <= MAX_ENTRIES && needed + WORTHWHILE_BYTES <= leaf.leaf().size() {
            leaf.compact();
            return Some(leaf);
        }
        let parent = place.parent.try_latch()?;
        if entries <= MAX_ENTRIES && (needed <= MAX_LEAF_BYTES || n < 2) {
            return Some(art.resize(guard, &parent, place.symbol, leaf, roomy(needed)));
        }
        art.split(guard, place, parent, leaf);
        None
    }
}

impl Art {
    /// Replaces `leaf` by one of about `bytes` bytes with the same entries.
    pub(super) fn resize<'g>(
        &self,
        guard: &'g Guard<'_>,
        parent: &ParentLatched<'g>,
        symbol: Symbol,
        leaf: LeafLatched<'g>,
        bytes: usize,
    ) -> LeafLatched<'g> {
        let (mount, run) = (leaf.leaf().mount(), leaf.leaf().run());
        let new = LeafLatched::create(&self.memory, guard, bytes, mount, run);
        new.copy_all(leaf.stable());
        self.counters.add(Delta {
            bytes: new.arena_bytes() - leaf.arena_bytes(),
            ..Delta::default()
        });
        parent.swap_leaf(&self.memory, symbol, leaf, new.leaf());
        new
    }

    /// A new latched leaf of `bytes` bytes with entries of `leaf`.
    fn part<'g>(
        &self,
        guard: &'g Guard<'_>,
        leaf: &LeafLatched<'g>,
        entries: std::ops::Range<usize>,
        strip: usize,
        bytes: usize,
    ) -> LeafLatched<'g> {
        let (mount, run) = (leaf.leaf().mount(), leaf.leaf().run());
        let new = LeafLatched::create(&self.memory, guard, bytes, mount, run);
        new.push_from(leaf.stable(), entries, strip);
        new
    }

    /// Splits `leaf` in two; where its range cannot be split, under a node of their own.
    fn split<'g>(
        &self,
        guard: &'g Guard<'_>,
        place: &Place<'g>,
        parent: ParentLatched<'g>,
        leaf: LeafLatched<'g>,
    ) {
        let in_range = if parent.is_root() {
            None
        } else {
            leaf.stable().split_point(0)
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

    /// The two parts of `leaf` around `split`.
    fn halves<'g>(
        &self,
        guard: &'g Guard<'_>,
        leaf: &LeafLatched<'g>,
        split: SplitAt,
        strip: usize,
    ) -> [LeafLatched<'g>; 2] {
        let stable = leaf.stable();
        [0..split.at, split.at..stable.len()].map(|entries| {
            let needed = leaf_bytes(entries.len(), stable.heap_bytes(entries.clone(), strip));
            self.part(guard, leaf, entries, strip, roomy(needed))
        })
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
        let [low, high] = self.halves(guard, &leaf, split, 0);
        let (first, _) = parent.range(symbol);
        let pieces = [
            Piece {
                first,
                word: low.leaf().word(),
            },
            Piece {
                first: split.symbol,
                word: high.leaf().word(),
            },
        ];
        let bytes = low.arena_bytes() + high.arena_bytes() - leaf.arena_bytes();
        let mounts = isize::from(leaf.leaf().mount().is_some());
        parent.replace_leaf(&self.memory, symbol, leaf, &pieces);
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
        let strip = leaf.stable().common_prefix(&mut prefix);
        let Some(split) = leaf.stable().split_point(strip) else {
            unreachable!("two different keys have a point where they differ");
        };
        let [low, high] = self.halves(guard, &leaf, split, strip);
        let mount = leaf.leaf().mount();
        let children = [
            Piece {
                first: END,
                word: low.leaf().word(),
            },
            Piece {
                first: split.symbol,
                word: high.leaf().word(),
            },
        ];
        let kind = Kind::Node4;
        let gap = &prefix[consumed..];
        let node = InnerRef::create(&self.memory, guard, kind, gap, mount, &children);
        let bytes = arena_bytes(node) + low.arena_bytes() + high.arena_bytes() - leaf.arena_bytes();
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
