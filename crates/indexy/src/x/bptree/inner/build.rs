//! Building a node out of parts of others: growing, splitting, joining.
//!
//! The sources are latched; the new node is latched and not yet published. Separators are copied as
//! bytes, because the new node may have another depth.

use super::{
    InnerLatched,
    edit::NewSeparator,
    layout::{
        INNER_BYTES, InnerRef, MAX_CHILDREN, MAX_SHARED, Meta, node_bytes, record_bytes,
        shared_bytes,
    },
};
use crate::{
    mem::{Guard, Memory, words::Words},
    x::{child::ChildWord, heads::head},
};

/// Less than so many bytes are left to the heads: to compare them beforehand costs more than heads
/// lose by them.
const WORTHWHILE_SHARED: usize = 2;

/// Room of a node beside what it is built of, as far as its size allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// A quarter more children.
    Some,
    /// As many again: nodes are few, and to copy one is dear.
    Much,
}

/// Children and the separators between them.
#[derive(Default)]
pub(crate) struct Parts {
    pub separators: Vec<Vec<u8>>,
    pub children: Vec<ChildWord>,
    /// A separator that is to come: the node that is made can take it.
    pub coming: Option<Vec<u8>>,
}

impl Parts {
    /// Appends the children of `node`; each separator gets `front` before it.
    pub(crate) fn add(&mut self, node: &InnerLatched<'_>, front: &[u8]) {
        let n = node.meta().n;
        for i in 0..n - 1 {
            let mut separator = front.to_vec();
            node.push_separator(i, &mut separator);
            self.separators.push(separator);
        }
        self.children.extend((0..n).map(|i| node.child_word(i)));
    }

    /// Cuts everything from child `at` on off; the separator between the two parts belongs to
    /// neither. What is to come goes to the part where it belongs.
    pub(crate) fn split_off(&mut self, at: usize) -> (Vec<u8>, Parts) {
        let children = self.children.split_off(at);
        let separators = self.separators.split_off(at);
        let middle = self.separators.pop().unwrap_or_default();
        let right = Parts {
            separators,
            children,
            coming: self.coming.take_if(|coming| *coming >= middle),
        };
        (middle, right)
    }

    /// The child to split at: near the middle, with a short separator before it.
    pub(crate) fn split_point(&self) -> usize {
        let n = self.children.len();
        let window = n / 2 - n / 16..=n / 2 + n / 16;
        let cost = |&at: &usize| (self.separators[at - 1].len(), at.abs_diff(n / 2));
        window
            .filter(|&at| at > 0)
            .min_by_key(cost)
            .unwrap_or(n / 2)
    }

    /// How many bytes the separators share beyond the `strip` that they lose. They ascend, so that
    /// the first and the last say it; but the one that is to come may belong before or behind them.
    fn shared(&self, strip: usize) -> usize {
        let (Some(first), Some(last)) = (self.separators.first(), self.separators.last()) else {
            return 0;
        };
        if self.separators.len() == 1 && self.coming.is_none() {
            // It has all in common with itself, and nothing with the next one.
            return 0;
        }
        let same = |other: &Vec<u8>| {
            let pairs = first[strip..].iter().zip(&other[strip..]);
            pairs.take_while(|(a, b)| a == b).count()
        };
        let coming = self.coming.as_ref().map_or(usize::MAX, same);
        let shared = same(last).min(coming).min(MAX_SHARED);
        if shared < WORTHWHILE_SHARED {
            0
        } else {
            shared
        }
    }

    /// Heap bytes of the separators, each without `strip` bytes, of which the first `shared` stand
    /// elsewhere.
    fn heap(&self, strip: usize, shared: usize) -> usize {
        let bytes = |s: &Vec<u8>| record_bytes(s.len() - strip - shared);
        self.separators.iter().map(bytes).sum()
    }

    /// Heap bytes of the separator that is to come.
    fn need(&self, strip: usize, shared: usize) -> usize {
        let bytes = |s: &Vec<u8>| record_bytes(s.len() - strip - shared);
        self.coming.as_ref().map_or(0, bytes)
    }

    /// Bytes of a node of these parts, with what is to come.
    pub(crate) fn bytes(&self) -> usize {
        let shared = self.shared(0);
        let children = self.children.len() + usize::from(self.coming.is_some());
        let heap = shared_bytes(shared) + self.heap(0, shared) + self.need(0, shared);
        node_bytes(children.max(2), heap)
    }

    /// Room for children, and bytes, of the node that `build` makes.
    pub(crate) fn size(&self, strip: usize, room: Room) -> (usize, usize) {
        let (n, shared) = (self.children.len(), self.shared(strip));
        let (heap, need) = (self.heap(strip, shared), self.need(strip, shared));
        let more = match room {
            Room::Some => n / 4,
            Room::Much => n,
        };
        let fixed = shared_bytes(shared) + heap;
        // With separators as long as those that are there.
        let bytes = |cap: usize| node_bytes(cap, fixed + (heap * (cap - n) / n).max(need));
        let mut cap = (n + more.max(2)).min(MAX_CHILDREN);
        while cap > n + 1 && bytes(cap) > INNER_BYTES {
            cap -= 1;
        }
        (cap, bytes(cap))
    }

    /// A new latched node of these parts, with separators that lose `strip` bytes, and with `room`.
    /// `guard` stands for the time that it may be used.
    pub(crate) fn build<'g>(
        &self,
        memory: &Memory,
        _guard: &'g Guard<'_>,
        level: usize,
        depth: usize,
        strip: usize,
        room: Room,
    ) -> InnerLatched<'g> {
        let (n, (cap, bytes)) = (self.children.len(), self.size(strip, room));
        let block = memory.allocate(bytes);
        // SAFETY: the block is new and zeroed; once published it is retired, not freed, so that it
        // stays for as long as a guard does.
        let words = unsafe { Words::new(block.ptr, block.bytes) };
        let meta = Meta {
            n,
            cap,
            level,
            depth,
        };
        let shared = match self.separators.first() {
            Some(first) => &first[strip..strip + self.shared(strip)],
            None => &[],
        };
        let node = InnerRef::format(block.ptr, words, meta, shared);
        for (i, separator) in self.separators.iter().enumerate() {
            let suffix = &separator[strip + shared.len()..];
            let (slot, _) = node.write_separator(NewSeparator::new(memory, suffix));
            node.set_slot(i, slot);
            node.heads().push(i, head(suffix));
        }
        for (i, &word) in self.children.iter().enumerate() {
            node.set_child_word(i, word);
        }
        node.heads().refresh_hints(0, n - 1);
        node.latch_word().lock();
        InnerLatched { node }
    }
}

impl<'g> InnerLatched<'g> {
    /// The same node in another block, latched, with the same large separators. `guard` stands for
    /// the time that it may be used.
    pub(crate) fn copy(&self, memory: &Memory, _guard: &'g Guard<'_>) -> Self {
        let node = self.node().copy(memory);
        node.latch_word().lock();
        Self { node }
    }
}
