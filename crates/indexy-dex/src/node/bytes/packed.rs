//! A slotted node taken apart, and put together again.

use super::{
    key::Bytes,
    slots::{CHILD, NODE, SLOT, child, count, end, key, low, room, set_head, start, value},
    stored::Stored,
};
use crate::{
    address::Address,
    node::layout::{ADDRESS, Image, KIND, MAGIC, NODE_WORDS, Words, level},
};

/// Keys and what they have, with the fences.
pub(super) struct Parts<const N: usize> {
    pub(super) level: u8,
    pub(super) low: Bytes<N>,
    /// The key after the high fence.
    pub(super) end: Option<Bytes<N>>,
    /// Ascending: a leaf's keys, or separators.
    pub(super) keys: Vec<Bytes<N>>,
    /// A leaf's values.
    pub(super) values: Vec<Stored>,
    /// One more than separators; a leaf has none.
    pub(super) children: Vec<u64>,
}

impl<const N: usize> Parts<N> {
    /// Nothing between these fences.
    pub(super) fn new(level: u8, low: Bytes<N>, high: Bytes<N>) -> Self {
        Self {
            level,
            low,
            end: high.successor(),
            keys: Vec::new(),
            values: Vec::new(),
            children: Vec::new(),
        }
    }

    pub(super) fn of(node: &impl Words) -> Self {
        let (level, keys) = (level(node), count::<N>(node));
        let values = if level == 0 { keys } else { 0 };
        let children = if level == 0 { 0 } else { keys + 1 };
        Self {
            level,
            low: low(node),
            end: end(node),
            keys: (0..keys).map(|i| key(node, i)).collect(),
            values: (0..values).map(|i| value::<N>(node, i)).collect(),
            children: (0..children).map(|i| child::<N>(node, i)).collect(),
        }
    }

    /// What all keys have in common, by the fences.
    fn prefix(&self) -> usize {
        let high = match self.end {
            Some(end) => end.predecessor().unwrap_or(Bytes::EMPTY),
            None => Bytes::GREATEST,
        };
        self.low.common(&high)
    }

    fn bytes(&self, i: usize, prefix: usize) -> usize {
        let value = self.values.get(i).map_or(0, |value| value.as_slice().len());
        SLOT + self.keys[i].as_slice().len().saturating_sub(prefix) + value
    }

    /// Bytes of room that it takes.
    pub(super) fn used(&self) -> usize {
        let prefix = self.prefix();
        let keys: usize = (0..self.keys.len()).map(|i| self.bytes(i, prefix)).sum();
        keys + CHILD * self.children.len()
    }

    /// The first key of the upper half, by bytes: neither half is empty.
    pub(super) fn middle(&self) -> usize {
        let all: usize = (0..self.keys.len()).map(|i| self.bytes(i, 0)).sum();
        let mut below = 0;
        for i in 0..self.keys.len() {
            below += self.bytes(i, 0);
            if below * 2 >= all {
                return i.clamp(1, self.keys.len().saturating_sub(1).max(1));
            }
        }
        1
    }

    /// Replaces all of a node but its version and its address. `false`: it does not fit, and
    /// nothing is done.
    pub(super) fn write(&self, node: &mut impl Words) -> bool {
        if self.used() > room(N) {
            return false;
        }
        let prefix = self.prefix();
        let mut words = [0; NODE_WORDS];
        let slots = start(N) + self.children.len();
        words[start(N)..slots].copy_from_slice(&self.children);
        let mut bytes = [0_u8; NODE];
        let mut top = NODE;
        for (i, key) in self.keys.iter().enumerate() {
            let rest = key.as_slice().get(prefix..).unwrap_or(&[]);
            let (mark, value) = match self.values.get(i) {
                Some(value) => (value.mark(), value.as_slice()),
                None => (0, &[][..]),
            };
            top -= rest.len() + value.len();
            bytes[top..top + rest.len()].copy_from_slice(rest);
            bytes[top + rest.len()..][..value.len()].copy_from_slice(value);
            let half = top as u64 | (rest.len() as u64) << 16 | u64::from(mark) << 24;
            words[slots + i / 2] |= half << (32 * (i % 2));
        }
        let (heap, _) = bytes.as_chunks::<8>();
        for (word, bytes) in words.iter_mut().zip(heap).skip(top / 8) {
            *word |= u64::from_le_bytes(*bytes);
        }
        let count = (self.keys.len() as u64) << 8;
        let layout = u64::from(Bytes::<N>::LIMIT) << 24;
        node.set(KIND, MAGIC << 32 | layout | count | u64::from(self.level));
        set_head(node, &self.low, self.end.as_ref(), prefix, NODE - top);
        for (i, word) in words.iter().enumerate().skip(start(N)) {
            node.set(i, *word);
        }
        true
    }

    /// A new node; its parts fit.
    pub(super) fn image(&self, address: Address) -> Image {
        let mut node = Image::zero();
        node.set(ADDRESS, address.word());
        let fits = self.write(&mut node);
        debug_assert!(fits);
        node
    }

    /// The part with children or entries from `first` on up to `last`, and these fences.
    pub(super) fn between(self, first: Bytes<N>, last: Bytes<N>) -> Self {
        let mut kept = Self::new(self.level, first, last);
        if self.level == 0 {
            for (key, value) in self.keys.into_iter().zip(self.values) {
                if first <= key && key <= last {
                    kept.keys.push(key);
                    kept.values.push(value);
                }
            }
            return kept;
        }
        let lows = [self.low].into_iter().chain(self.keys.iter().copied());
        let ends = self.keys.iter().copied().map(Some).chain([self.end]);
        for ((low, end), child) in lows.zip(ends).zip(self.children) {
            if low <= last && end.is_none_or(|end| first < end) {
                if !kept.children.is_empty() {
                    kept.keys.push(low);
                }
                kept.children.push(child);
            }
        }
        kept
    }
}
