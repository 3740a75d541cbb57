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
    BPlus, Balanced,
    inner::{
        build::{Parts, Room},
        layout::{INNER_BYTES, MAX_CHILDREN, MIN_CHILDREN_TO_SPLIT},
    },
    parent::ParentLatched,
    place::{Place, common_prefix},
};
use crate::{
    mem::Guard,
    x::{
        Stamp,
        bounds::{Bounds, Probe},
        child::ChildWord,
        counters::Delta,
        edit::Edit,
        entry::NewEntry,
        leaf::{Builder, Contents, LeafLatched, Room as LeafRoom, Spare, StableLeaf, mask},
        pending::PendingValue,
        tree::{Grow, Place as _},
    },
};

/// Two neighbours that take the place of one child.
struct Halves {
    left: ChildWord,
    /// Between them; a whole key.
    separator: Vec<u8>,
    right: ChildWord,
    /// Of the children.
    level: usize,
}

impl Grow for Balanced {
    fn fill<'g>(
        tree: &BPlus,
        guard: &'g Guard<'_>,
        place: &Place<'g>,
        key: &[u8],
        mount: Option<Stamp>,
        value: &mut PendingValue<'_>,
    ) -> Option<LeafLatched<'g>> {
        let bounds = place.bounds(Probe::at(key))?;
        let depth = common_prefix(&bounds.start, bounds.end.as_deref());
        let parent = place.hop.parent.try_latch()?;
        let mut contents = Contents::default();
        contents.add(&value.entry(&key[depth..], 0));
        let new = Builder::new(&tree.memory, guard, &contents, Spare::Some, depth);
        let leaf = new.finish(mount, 0);
        parent.set(place.hop.at, leaf.leaf().word());
        tree.counters.add(Delta {
            bytes: leaf.arena_bytes(),
            ..Delta::default()
        });
        Some(leaf)
    }

    fn make_room<'g>(
        tree: &BPlus,
        guard: &'g Guard<'_>,
        place: &Place<'g>,
        key: &[u8],
        leaf: LeafLatched<'g>,
        edit: Edit,
        entry: &NewEntry<'_>,
    ) -> Option<LeafLatched<'g>> {
        match leaf.room_for(edit, entry) {
            LeafRoom::Here => Some(leaf),
            LeafRoom::Larger(contents, spare) => {
                let parent = place.hop.parent.try_latch()?;
                Some(tree.resize(guard, &parent, place.hop.at, leaf, &contents, spare))
            }
            LeafRoom::Split(at) => {
                tree.split_leaf(guard, place, key, leaf, at);
                None
            }
        }
    }
}

impl BPlus {
    /// Replaces `leaf` by one for `contents` with the same entries.
    pub(super) fn resize<'g>(
        &self,
        guard: &'g Guard<'_>,
        parent: &ParentLatched<'g>,
        at: usize,
        leaf: LeafLatched<'g>,
        contents: &Contents,
        spare: Spare,
    ) -> LeafLatched<'g> {
        let new = leaf.resized(&self.memory, guard, contents, spare);
        parent.set(at, new.leaf().word());
        self.counters.add(Delta {
            bytes: new.arena_bytes() - leaf.arena_bytes(),
            ..Delta::default()
        });
        leaf.retire(&self.memory);
        new
    }

    /// Splits `leaf`, in which a new entry of `key` is to be at index `at`.
    fn split_leaf<'g>(
        &self,
        guard: &'g Guard<'_>,
        place: &Place<'g>,
        key: &[u8],
        leaf: LeafLatched<'g>,
        at: Option<usize>,
    ) -> Option<()> {
        let bounds = place.bounds(Probe::at(key))?;
        let old = leaf.stable();
        let (split, suffix) = split_point(old, at, &key[old.raw().depth()..]);
        let mut separator = key[..old.raw().depth()].to_vec();
        separator.extend_from_slice(&suffix);
        let parent = place.hop.parent.try_latch()?;
        if self.lacks_room(&parent, 0, &separator) {
            // Nothing may be latched that a way down meets.
            drop((parent, leaf));
            return self.grow(guard, key, 1, &separator);
        }
        let mounted = leaf.leaf().mount().is_some();
        let depth = common_prefix(&bounds.start, Some(&separator));
        let left = self.part(guard, &leaf, 0..split, depth);
        let depth = common_prefix(&separator, bounds.end.as_deref());
        let right = self.part(guard, &leaf, split..old.len(), depth);
        let halves = Halves {
            left,
            separator,
            right,
            level: 0,
        };
        self.put_halves(guard, &parent, place.hop.at, &halves, &bounds);
        self.counters.add(Delta {
            bytes: -leaf.arena_bytes(),
            mounts: isize::from(mounted),
            ..Delta::default()
        });
        leaf.retire(&self.memory);
        Some(())
    }

    /// A published-to-be leaf with the entries `range` of `leaf`, at a depth of its own; an empty
    /// range when there are none.
    fn part<'g>(
        &self,
        guard: &'g Guard<'_>,
        leaf: &LeafLatched<'g>,
        range: std::ops::Range<usize>,
        depth: usize,
    ) -> ChildWord {
        if range.is_empty() {
            return ChildWord::empty(leaf.leaf().mount());
        }
        // A leaf that keeps all is one that keys are appended behind: it is left full.
        let spare = if range.len() < leaf.leaf().len() {
            Spare::Some
        } else {
            Spare::None
        };
        let strip = depth - leaf.leaf().depth();
        let new = leaf.part(&self.memory, guard, mask(range), strip, spare);
        self.counters.add(Delta {
            bytes: new.arena_bytes(),
            ..Delta::default()
        });
        new.leaf().word()
    }

    /// Whether `parent` has to take `separator`, a whole key, with one more child of `level`, and
    /// has no room.
    fn lacks_room(&self, parent: &ParentLatched<'_>, level: usize, separator: &[u8]) -> bool {
        let ParentLatched::Inner(node) = parent else {
            return false;
        };
        let meta = node.meta();
        meta.level <= level + 1 && !node.has_room(&separator[meta.depth..])
    }

    /// Puts `halves` in place of child `at`, whose range has these bounds. The caller made room.
    fn put_halves(
        &self,
        guard: &Guard<'_>,
        parent: &ParentLatched<'_>,
        at: usize,
        halves: &Halves,
        bounds: &Bounds,
    ) {
        let mut bytes = 0;
        match parent {
            ParentLatched::Inner(node) if node.meta().level == halves.level + 1 => {
                let suffix = &halves.separator[node.meta().depth..];
                node.set_child(at, halves.left);
                bytes += node.insert(&self.memory, at, suffix, halves.right);
            }
            // A level that is not there yet: the root grows, or the child stood higher than its
            // level.
            _ => {
                let depth = common_prefix(&bounds.start, bounds.end.as_deref());
                let parts = Parts {
                    separators: vec![halves.separator.clone()],
                    children: vec![halves.left, halves.right],
                    coming: None,
                };
                let level = halves.level + 1;
                let node = parts.build(&self.memory, guard, level, depth, depth, Room::Some);
                bytes += node.arena_bytes();
                parent.set(at, node.node().word());
            }
        }
        self.counters.add(Delta {
            bytes,
            ..Delta::default()
        });
    }

    /// Makes room in the node of `level` on the way to `key` for one child more, behind `coming`, a
    /// whole key: by a larger node, or by two. Best effort.
    fn grow(&self, guard: &Guard<'_>, key: &[u8], level: usize, coming: &[u8]) -> Option<()> {
        let place = self.descend_to(guard, Probe::at(key), level);
        let node = place.node()?;
        if node.node().level() != level {
            return None;
        }
        let bounds = place.bounds(Probe::at(key))?;
        // Another node may have taken its place meanwhile.
        let ended = bounds.end.as_deref().is_some_and(|end| coming >= end);
        if coming <= &bounds.start[..] || ended {
            return None;
        }
        let node = node.try_latch()?;
        let parent = place.hop.parent.try_latch()?;
        let depth = node.meta().depth;
        let mut parts = Parts::default();
        parts.add(&node, &[]);
        parts.coming = Some(coming[depth..].to_vec());
        let n = parts.children.len();
        let fits = parts.bytes() <= INNER_BYTES && n < MAX_CHILDREN;
        if fits || n < MIN_CHILDREN_TO_SPLIT {
            let new = parts.build(&self.memory, guard, level, depth, 0, Room::Much);
            parent.set(place.hop.at, new.node().word());
            self.counters.add(Delta {
                bytes: new.arena_bytes() - node.arena_bytes(),
                ..Delta::default()
            });
            node.retire(&self.memory);
            return Some(());
        }
        let (middle, right) = parts.split_off(parts.split_point());
        let mut separator = key[..depth].to_vec();
        separator.extend_from_slice(&middle);
        if self.lacks_room(&parent, level, &separator) {
            drop((parent, node));
            return self.grow(guard, key, level + 1, &separator);
        }
        let build = |parts: &Parts, start: &[u8], end: Option<&[u8]>| {
            let deeper = common_prefix(start, end);
            let new = parts.build(
                &self.memory,
                guard,
                level,
                deeper,
                deeper - depth,
                Room::Much,
            );
            (new.arena_bytes(), new.node().word())
        };
        let (a, left) = build(&parts, &bounds.start, Some(&separator));
        let (b, right) = build(&right, &separator, bounds.end.as_deref());
        let halves = Halves {
            left,
            separator,
            right,
            level,
        };
        self.put_halves(guard, &parent, place.hop.at, &halves, &bounds);
        self.counters.add(Delta {
            bytes: a + b - node.arena_bytes(),
            ..Delta::default()
        });
        node.retire(&self.memory);
        Some(())
    }
}

/// Where a leaf splits: the index of the first entry of the right part, and the shortest separator.
/// `at` is where a new key with `suffix` is to go.
fn split_point(leaf: StableLeaf<'_>, at: Option<usize>, suffix: &[u8]) -> (usize, Vec<u8>) {
    let n = leaf.len();
    // Keys that come in order: what is there stays full, the new key starts a leaf of its own.
    if at == Some(n) {
        return (n, shortest_between(&leaf.suffix(n - 1), suffix));
    }
    if at == Some(0) {
        return (0, shortest_between(suffix, &leaf.suffix(0)));
    }
    let window = n / 2 - n / 8..=n / 2 + n / 8;
    let short = |i: usize| common(leaf, i);
    let best = window
        .filter(|&i| i > 0 && i < n)
        .min_by_key(|&i| (short(i), i.abs_diff(n / 2)))
        .unwrap_or(n / 2);
    (
        best,
        shortest_between(&leaf.suffix(best - 1), &leaf.suffix(best)),
    )
}

/// How many bytes entry `i` and the one before have in common; heads only, which is nearly always
/// enough.
fn common(leaf: StableLeaf<'_>, i: usize) -> u32 {
    let differ = leaf.raw().heads().get(i - 1) ^ leaf.raw().heads().get(i);
    differ.leading_zeros() / u8::BITS
}

/// The shortest key that is above `low` and not above `high`, which is above `low`.
fn shortest_between(low: &[u8], high: &[u8]) -> Vec<u8> {
    let same = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    high[..same + 1].to_vec()
}
