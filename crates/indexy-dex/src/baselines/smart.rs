//! After SMART: verbs of a radix tree over hashed keys, counted and not done.
//!
//! Inner nodes have the sizes of an adaptive radix tree. Each compute server caches them, first in,
//! first out, up to so many bytes. A read that misses reads the missing nodes one by one, then the
//! leaf: one record. An update reads the leaf, swaps its lock and writes it (SMART combines
//! concurrent writes of one key; one thread has none). With all keys shared, each read of a leaf
//! needs no check: it has a checksum.

use std::collections::{HashSet, VecDeque};

/// Bytes of a leaf: key, value, checksum, lock, as read in one piece.
const LEAF_BYTES: u64 = 64;
/// Bytes of a node without its children.
const HEADER_BYTES: u64 = 16;
/// Depths that are modelled: keys that share three bytes part in the fourth node.
const DEPTHS: usize = 3;

/// Counts of one compute server.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct SmartCounts {
    /// One-sided reads.
    pub reads: u64,
    /// One-sided writes.
    pub writes: u64,
    /// Swaps.
    pub swaps: u64,
    /// Of all of them.
    pub bytes: u64,
}

/// A radix tree's shape, and one compute server's cache of it.
pub struct Smart {
    /// Children of the nodes with one and two bytes above them, and keys below three bytes.
    children: [Vec<u32>; DEPTHS],
    cached: HashSet<u32>,
    order: VecDeque<(u32, u64)>,
    cached_bytes: u64,
    cache_bytes: u64,
    counts: SmartCounts,
}

/// Bytes of a node with so many children: 4, 16, 48 or 256 places.
fn node_bytes(children: u32) -> u64 {
    let places = match children {
        0..=4 => 4 * 9,
        5..=16 => 16 * 9,
        17..=48 => 256 + 48 * 8,
        _ => 256 * 8,
    };
    HEADER_BYTES + places
}

impl Smart {
    /// A tree of `keys`, spread over all 64 bits, and a cache of so many bytes.
    pub fn new(keys: impl Iterator<Item = u64>, cache_bytes: u64) -> Self {
        let mut children: [Vec<u32>; DEPTHS] =
            [vec![0; 1 << 8], vec![0; 1 << 16], vec![0; 1 << 24]];
        for key in keys {
            children[2][(key >> 40) as usize] += 1;
        }
        for prefix in 0..1 << 24 {
            children[1][prefix >> 8] += u32::from(children[2][prefix] > 0);
        }
        for prefix in 0..1 << 16 {
            children[0][prefix >> 8] += u32::from(children[1][prefix] > 0);
        }
        Self {
            children,
            cached: HashSet::new(),
            order: VecDeque::new(),
            cached_bytes: 0,
            cache_bytes,
            counts: SmartCounts::default(),
        }
    }

    /// Verbs so far.
    pub fn counts(&self) -> SmartCounts {
        self.counts
    }

    /// Looks `key` up, or updates it.
    pub fn touch(&mut self, key: u64, is_update: bool) {
        for depth in 0..DEPTHS {
            let prefix = (key >> (56 - 8 * depth)) as usize;
            let children = self.children[depth][prefix];
            // A single child hangs below the node above: path compression.
            if children > 1 {
                // Depths have numbers of their own.
                self.visit(
                    (depth as u32 + 1) << 24 | prefix as u32,
                    node_bytes(children),
                );
            }
        }
        self.counts.reads += 1;
        self.counts.bytes += LEAF_BYTES;
        if is_update {
            self.counts.swaps += 1;
            self.counts.writes += 1;
            self.counts.bytes += LEAF_BYTES + 16;
        }
    }

    fn visit(&mut self, node: u32, bytes: u64) {
        if self.cached.contains(&node) {
            return;
        }
        self.counts.reads += 1;
        self.counts.bytes += bytes;
        self.cached.insert(node);
        self.order.push_back((node, bytes));
        self.cached_bytes += bytes;
        while self.cached_bytes > self.cache_bytes {
            let Some((oldest, bytes)) = self.order.pop_front() else {
                return;
            };
            self.cached.remove(&oldest);
            self.cached_bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_path_is_read_node_by_node() {
        let keys = [
            0x01_02_03_u64 << 40,
            0x01_02_04 << 40,
            0x01_02_04 << 40 | 1,
            0x01_03 << 48,
            2 << 56,
        ];
        let mut smart = Smart::new(keys.into_iter(), 1 << 20);
        // Below 01: 02 and 03. Below 0102: 03 and 04. Below 010204: two keys.
        smart.touch(keys[1], false);
        assert_eq!(smart.counts().reads, 4);
        assert_eq!(smart.counts().bytes, 3 * (16 + 36) + 64);
        smart.touch(keys[2], true);
        assert_eq!(smart.counts().reads, 5, "the path is cached");
        assert_eq!((smart.counts().writes, smart.counts().swaps), (1, 1));
        smart.touch(keys[4], false);
        assert_eq!(smart.counts().reads, 6, "a leaf below the root");
        let mut none = Smart::new(keys.into_iter(), 0);
        none.touch(keys[1], false);
        none.touch(keys[1], false);
        assert_eq!(none.counts().reads, 8);
    }
}
