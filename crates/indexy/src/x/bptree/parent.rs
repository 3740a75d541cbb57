//! What a child hangs on: an inner node, or the root of the tree.
//!
//! Keeps: who replaces a leaf or a node holds its latch and its parent's; the old one becomes
//! obsolete and is retired after the word that led to it is gone.

use super::inner::{Child, InnerLatched, InnerSeen};
use crate::{
    mem::Memory,
    x::{
        Stamp, XStats,
        child::ChildWord,
        root::{RootLatched, RootSeen},
    },
};

/// Frees every block of a tree that is being dropped.
pub(super) fn free_all(mut stack: Vec<ChildWord>, memory: &Memory) {
    while let Some(word) = stack.pop() {
        // SAFETY: the tree is ours alone, so its words are what they say, each block is reached
        // once, and nobody reads it any more.
        unsafe {
            match Child::resolve(word) {
                Child::Empty(_) => {}
                Child::Leaf(leaf) => leaf.free(memory),
                Child::Inner(node) => node.free(memory, &mut stack),
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
        match unsafe { Child::resolve(word) } {
            Child::Inner(node) => {
                let Some(node) = node.latch() else { continue };
                gone.bytes += node.arena_bytes().unsigned_abs();
                children.extend((0..node.meta().n).map(|i| node.child_word(i)));
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
            match unsafe { Child::resolve(*word) } {
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
    /// Child `at`; `None` when the parent changed.
    #[inline]
    pub(super) fn child(&self, at: usize) -> Option<Child<'g>> {
        match self {
            Self::Inner(node) => node.child(at),
            // SAFETY: the root was valid after the load; `'g` is within the guard's life
            // (`Root::see`).
            Self::Root(root) => root.word().map(|word| unsafe { Child::resolve(word) }),
        }
    }

    /// How many children it has; garbage when it changed.
    pub(super) fn children(&self) -> usize {
        match self {
            Self::Inner(node) => node.children(),
            Self::Root(_) => 1,
        }
    }

    /// The parent as it is now; `None` when it is obsolete.
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

    /// Where the parent is; 0: the root. Says little about which it is once the guard is gone.
    pub(super) fn address(&self) -> usize {
        match self {
            Self::Root(_) => 0,
            Self::Inner(node) => node.node().block().addr().get(),
        }
    }

    /// Above the level of every child; more than any node has, for the root.
    pub(super) fn level(&self) -> usize {
        match self {
            Self::Inner(node) => node.node().level(),
            Self::Root(_) => usize::MAX,
        }
    }
}

/// A parent whose latch is held; given up on drop.
pub(crate) enum ParentLatched<'g> {
    Root(RootLatched<'g>),
    Inner(InnerLatched<'g>),
}

impl<'g> ParentLatched<'g> {
    /// Puts `word` in place of child `at`.
    pub(super) fn set(&self, at: usize, word: ChildWord) {
        match self {
            Self::Inner(node) => node.set_child(at, word),
            Self::Root(root) => root.set(word),
        }
    }

    /// Makes child `at` an empty range, joined with empty ranges beside it that are mounted, or
    /// complete, as it is. `mount` is a fresh stamp. Returns by how much the number of mounted
    /// ranges and the bytes of the parent changed. The old child's mark is not counted.
    pub(super) fn put_empty(
        &self,
        memory: &Memory,
        at: usize,
        mount: Option<Stamp>,
    ) -> (isize, isize) {
        let word = ChildWord::empty(mount);
        let Self::Inner(node) = self else {
            self.set(at, word);
            return (isize::from(mount.is_some()), 0);
        };
        let alike = |other: ChildWord| other.is_empty() && other.is_mount() == word.is_mount();
        let (mut joined, mut bytes, mut at) = (0, 0, at);
        node.set_child(at, word);
        // More than one on a side: two nodes that were joined may have had one each where they met.
        while at + 1 < node.meta().n && alike(node.child_word(at + 1)) {
            bytes -= node.remove(memory, at);
            joined += 1;
        }
        while at > 0 && alike(node.child_word(at - 1)) {
            bytes -= node.remove(memory, at - 1);
            at -= 1;
            joined += 1;
            node.set_child(at, word);
        }
        let mounts = if mount.is_some() { 1 - joined } else { 0 };
        (mounts, bytes)
    }
}
