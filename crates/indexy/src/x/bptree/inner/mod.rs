//! Inner nodes: separators and child words.
//!
//! As leaves, nodes are at one place for their whole life: range, level and depth never change.
//! Children and separators inside do, under the latch. A node with more or fewer than fit is
//! replaced.
//!
//! A child may be an empty range (complete, or mounted with a stamp), a leaf, or a node of any
//! lower level: so a leaf may stand high in the tree where nothing else is left, and levels are
//! filled in when it splits.
//!
//! Threads: readers read optimistically (`InnerSeen`); a writer holds the latch (`InnerLatched`).

pub(super) mod build;
mod child;
pub(super) mod edit;
pub(super) mod layout;
mod read;

pub(super) use child::Child;
pub(super) use layout::InnerRef;

use crate::{
    mem::{Memory, latch::Version},
    x::{bounds::Probe, child::ChildWord, heads, large::LargeRef},
};
use layout::Meta;

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

    /// Frees a node of a tree that is being dropped, with its large separators; its children are
    /// appended to `below`.
    ///
    /// # Safety
    /// The caller owns the tree alone and does not look at the node again.
    pub(crate) unsafe fn free(self, memory: &Memory, below: &mut Vec<ChildWord>) {
        let n = self.meta().n;
        below.extend((0..n).map(|i| self.child_word(i)));
        for i in 0..n - 1 {
            // SAFETY: nobody changes or reads the node; the block is the separator's.
            unsafe {
                if let Some(large) = self.large(&self.separator_at(i)) {
                    large.free(memory);
                }
            }
        }
        // SAFETY: the caller's promise.
        unsafe { memory.free(self.block()) };
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

    /// The child for `key`; `None` when the node changed.
    #[inline]
    pub(crate) fn child_for(&self, key: &[u8]) -> Option<Child<'g>> {
        let meta = self.node.meta();
        let suffix = key.get(meta.depth..).unwrap_or_default();
        let i = self.node.child_of(meta, suffix, || self.unchanged())?;
        self.resolve(self.node.child_word_of(meta, i))
    }

    /// The index of the child for `probe`; `None` when the node changed.
    pub(crate) fn index_for(&self, probe: Probe<'_>) -> Option<usize> {
        let meta = self.node.meta();
        let suffix = probe.rest(meta.depth);
        if !probe.padded {
            return self.node.child_of(meta, suffix, || self.unchanged());
        }
        if suffix.is_empty() {
            return self.unchanged().then_some(meta.n - 1);
        }
        // What starts with `suffix` goes on with less than endless 0xFF. A head of them is most of
        // the way.
        let key = [suffix, &[u8::MAX; heads::HEAD_BYTES]].concat();
        let mut i = self.node.child_of(meta, &key, || self.unchanged())?;
        let mut separator = Vec::new();
        while i + 1 < meta.n {
            separator.clear();
            self.push_separator(i, &mut separator)?;
            if !separator.starts_with(suffix) {
                break;
            }
            i += 1;
        }
        self.unchanged().then_some(i)
    }

    /// Child `i`; `None` when the node changed.
    #[inline]
    pub(crate) fn child(&self, i: usize) -> Option<Child<'g>> {
        self.resolve(self.node.child_word(i))
    }

    /// What `word`, one of the node's, stands for; `None` when the node changed.
    #[inline]
    fn resolve(&self, word: ChildWord) -> Option<Child<'g>> {
        word.prefetch();
        // SAFETY: validated after the load; the guard under which the node was reached lives for
        // `'g`.
        self.unchanged().then(|| unsafe { Child::resolve(word) })
    }

    /// Appends separator `i`, without the node's prefix; `None` when the node changed.
    pub(crate) fn push_separator(&self, i: usize, out: &mut Vec<u8>) -> Option<()> {
        let at = self.node.separator_at(i);
        let word = self.node.words().read_u64(at.rest);
        if !self.unchanged() {
            return None;
        }
        // SAFETY: validated after the word was read.
        let large = at.large.then(|| unsafe { LargeRef::from_raw(word) });
        self.node.append_shared(out);
        self.node.append_separator(&at, large, out);
        self.unchanged().then_some(())
    }

    /// The block of a large separator is in the way; `None` when the node changed.
    pub(crate) fn has_large_in_the_way(&self) -> Option<bool> {
        for i in 0..self.node.meta().n - 1 {
            let at = self.node.separator_at(i);
            let raw = self.node.words().read_u64(at.rest);
            if at.large {
                // SAFETY: validated after the word was read.
                let in_the_way = self.unchanged() && unsafe { LargeRef::raw_is_in_the_way(raw) };
                if in_the_way {
                    return Some(true);
                }
            }
        }
        self.unchanged().then_some(false)
    }

    /// Children; garbage when the node changed.
    pub(crate) fn children(&self) -> usize {
        self.node.meta().n
    }

    /// Bytes of the block that are in use, about; garbage when the node changed.
    pub(crate) fn used_bytes(&self) -> usize {
        self.node.used_bytes()
    }

    /// Latches the node, if it is still as it was seen. Does not wait.
    pub(crate) fn try_latch(self) -> Option<InnerLatched<'g>> {
        self.node
            .latch_word()
            .try_upgrade(self.version)
            .then(|| InnerLatched { node: self.node })
    }
}

impl<'g> InnerLatched<'g> {
    pub(crate) fn node(&self) -> InnerRef<'g> {
        self.node
    }

    pub(crate) fn meta(&self) -> Meta {
        self.node.meta()
    }

    pub(crate) fn child_word(&self, i: usize) -> ChildWord {
        self.node.child_word(i)
    }

    /// Child `i`.
    pub(crate) fn child(&self, i: usize) -> Child<'g> {
        // SAFETY: latched; the guard under which the node was reached lives for `'g`.
        unsafe { Child::resolve(self.node.child_word(i)) }
    }

    /// Appends separator `i`, without the node's prefix.
    pub(crate) fn push_separator(&self, i: usize, out: &mut Vec<u8>) {
        let at = self.node.separator_at(i);
        self.node.append_shared(out);
        self.node.append_separator(&at, self.large(i), out);
    }

    /// What is wrong inside the node.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (meta, node) = (self.meta(), self.node);
        node.heads().check(meta.n - 1)?;
        for i in 0..meta.n - 1 {
            let mut separator = Vec::new();
            self.push_separator(i, &mut separator);
            let (at, shared) = (node.separator_at(i), node.shared_len());
            let own = separator.get(shared..).unwrap_or_default();
            if heads::head(own) != at.head || separator.len() != shared + at.len {
                return Err(format!("separator {i} is not what it says"));
            }
        }
        Ok(())
    }

    fn large(&self, i: usize) -> Option<LargeRef<'g>> {
        // SAFETY: latched, so that the separator is whole.
        unsafe { self.node.large(&self.node.separator_at(i)) }
    }

    /// Bytes in the arena, with those of large separators.
    pub(crate) fn arena_bytes(&self) -> isize {
        let large = (0..self.meta().n - 1).filter_map(|i| self.large(i));
        let large: usize = large.map(LargeRef::arena_bytes).sum();
        (Memory::size_of(self.node.block()) + large) as isize
    }

    /// Takes the node out of use, with its large separators: what replaces it has its own.
    pub(crate) fn retire(self, memory: &Memory) {
        for i in 0..self.meta().n - 1 {
            if let Some(large) = self.large(i) {
                large.retire(memory);
            }
        }
        self.replaced(memory);
    }

    /// Takes the node out of use; its large separators go on in a [copy](Self::copy).
    pub(crate) fn replaced(self, memory: &Memory) {
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
