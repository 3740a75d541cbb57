//! Building a node out of parts of others: growing, splitting, joining.
//!
//! The sources are latched; the new node is latched and not yet published. Separators are copied as bytes, because
//! the new node may have another depth.

use super::{
    super::heads::head,
    InnerLatched,
    edit::NewSeparator,
    layout::{INNER_BYTES, InnerRef, MAX_CHILDREN, Meta, node_bytes, record_bytes},
};
use crate::{
    mem::{Guard, Memory, words::Words},
    x::child::ChildWord,
};

/// Room of a node beside what it is built of, as far as its size allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::x::bptree) enum Room {
    /// A quarter more children.
    Some,
    /// As many again, and one at least, whose separator takes so many heap bytes: nodes are few, and to copy one is dear.
    Growing(usize),
}

/// Children and the separators between them.
#[derive(Default)]
pub(in crate::x::bptree) struct Parts {
    pub separators: Vec<Vec<u8>>,
    pub children: Vec<ChildWord>,
}

impl Parts {
    /// Appends the children of `node`; each separator gets `front` before it.
    pub(in crate::x::bptree) fn add(&mut self, node: &InnerLatched<'_>, front: &[u8]) {
        let n = node.meta().n;
        for i in 0..n - 1 {
            let mut separator = front.to_vec();
            node.push_separator(i, &mut separator);
            self.separators.push(separator);
        }
        self.children.extend((0..n).map(|i| node.child_word(i)));
    }

    /// Cuts everything from child `at` on off; the separator between the two parts belongs to neither.
    pub(in crate::x::bptree) fn split_off(&mut self, at: usize) -> (Vec<u8>, Parts) {
        let children = self.children.split_off(at);
        let separators = self.separators.split_off(at);
        let middle = self.separators.pop().unwrap_or_default();
        let right = Parts {
            separators,
            children,
        };
        (middle, right)
    }

    /// The child to split at: near the middle, with a short separator before it.
    pub(in crate::x::bptree) fn split_point(&self) -> usize {
        let n = self.children.len();
        let window = n / 2 - n / 16..=n / 2 + n / 16;
        let cost = |&at: &usize| (self.separators[at - 1].len(), at.abs_diff(n / 2));
        window
            .filter(|&at| at > 0)
            .min_by_key(cost)
            .unwrap_or(n / 2)
    }

    fn heap(&self, strip: usize) -> usize {
        let bytes = |s: &Vec<u8>| record_bytes(s.len() - strip);
        self.separators.iter().map(bytes).sum()
    }

    /// Bytes of a node of these parts with separators that lose `strip` bytes.
    pub(in crate::x::bptree) fn bytes(&self, strip: usize) -> usize {
        node_bytes(self.children.len().max(2), self.heap(strip))
    }

    /// Bytes of a node with one child more, and `need` heap bytes.
    pub(in crate::x::bptree) fn bytes_with(&self, need: usize) -> usize {
        node_bytes(self.children.len() + 1, self.heap(0) + need)
    }

    /// Room for children, and bytes, of the node that `build` makes.
    pub(in crate::x::bptree) fn size(&self, strip: usize, room: Room) -> (usize, usize) {
        let n = self.children.len();
        let heap = self.heap(strip);
        let (more, need) = match room {
            Room::Some => (n / 4, 0),
            Room::Growing(need) => (n, need),
        };
        // With separators as long as those that are there.
        let bytes = |cap: usize| node_bytes(cap, heap + (heap * (cap - n) / n).max(need));
        let mut cap = (n + more.max(2)).min(MAX_CHILDREN);
        while cap > n + 1 && bytes(cap) > INNER_BYTES {
            cap -= 1;
        }
        (cap, bytes(cap))
    }

    /// A new latched node of these parts, with separators that lose `strip` bytes, and with `room`. `guard` stands for the
    /// time that it may be used.
    pub(in crate::x::bptree) fn build<'g>(
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
        // SAFETY: the block is new and zeroed; once published it is retired, not freed, so that it stays for
        // as long as a guard does.
        let words = unsafe { Words::new(block.ptr, block.bytes) };
        let meta = Meta {
            n,
            cap,
            level,
            depth,
        };
        let node = InnerRef::format(block.ptr, words, meta);
        for (i, separator) in self.separators.iter().enumerate() {
            let suffix = &separator[strip..];
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
