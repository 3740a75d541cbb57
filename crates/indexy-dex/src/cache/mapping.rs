//! The mapping table: where a node is, if it is not in the pool alone (C2).

use crate::address::Address;
use parking_lot::Mutex;
use std::collections::{HashMap, hash_map::Entry};

const SHARDS: usize = 64;

/// Where a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In this frame, hot or cooling.
    Frame(usize),
    /// One thread works on it.
    Io,
}

pub(crate) struct Mapping {
    shards: Box<[Mutex<HashMap<Address, Place>>]>,
}

impl Default for Mapping {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }
}

/// Well spread bits of a node's address.
pub(super) fn spread(at: Address) -> usize {
    (at.word().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize
}

impl Mapping {
    fn shard(&self, at: Address) -> &Mutex<HashMap<Address, Place>> {
        &self.shards[spread(at) % SHARDS]
    }

    pub(crate) fn get(&self, at: Address) -> Option<Place> {
        self.shard(at).lock().get(&at).copied()
    }

    /// Marks a node that is in the pool alone; `None`: it is not.
    pub(crate) fn mark(&self, at: Address) -> Option<IoMark<'_>> {
        match self.shard(at).lock().entry(at) {
            Entry::Occupied(_) => None,
            Entry::Vacant(vacant) => {
                vacant.insert(Place::Io);
                Some(IoMark { mapping: self, at })
            }
        }
    }

    /// A new node, which nobody else knows.
    pub(crate) fn insert(&self, at: Address, frame: usize) {
        let before = self.shard(at).lock().insert(at, Place::Frame(frame));
        debug_assert_eq!(before, None, "{at}");
    }

    pub(crate) fn remove(&self, at: Address) {
        self.shard(at).lock().remove(&at);
    }
}

/// The node is ours to work on. Dropped: it is in the pool alone again.
pub(crate) struct IoMark<'a> {
    mapping: &'a Mapping,
    at: Address,
}

impl IoMark<'_> {
    /// The node is in a frame from here on.
    pub(crate) fn settle(self, frame: usize) {
        let mut shard = self.mapping.shard(self.at).lock();
        shard.insert(self.at, Place::Frame(frame));
        drop(shard);
        std::mem::forget(self);
    }
}

impl Drop for IoMark<'_> {
    fn drop(&mut self) {
        self.mapping.remove(self.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c2_one_thread_works_on_a_node() {
        let mapping = Mapping::default();
        let at = Address::new(0, 4096);
        let mark = mapping.mark(at).unwrap();
        assert_eq!(mapping.get(at), Some(Place::Io));
        assert!(mapping.mark(at).is_none());
        drop(mark);
        assert_eq!(mapping.get(at), None);
        mapping.mark(at).unwrap().settle(7);
        assert_eq!(mapping.get(at), Some(Place::Frame(7)));
        assert!(mapping.mark(at).is_none());
        mapping.remove(at);
        assert!(mapping.mark(at).is_some());
    }
}
