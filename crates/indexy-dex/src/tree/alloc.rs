//! Nodes of the pool: chunks by compare-and-swap, single nodes from a list of our own.
//!
//! The list is in this compute server's memory: what it holds is lost with it.

use crate::{
    address::Address,
    error::{Error, Result},
    node::NODE_BYTES,
    remote::{BYTES_OFFSET, NEXT_FREE_OFFSET, NODES_OFFSET, RemoteMemory},
};
use parking_lot::Mutex;

/// Nodes that are taken from a server at once.
const CHUNK_NODES: u64 = 64;
/// Others that may come first.
const MAX_SWAPS: usize = 10_000;

struct Server {
    free: Vec<Address>,
    /// The word of the next free byte when it was last seen.
    next_free: u64,
    bytes: u64,
}

/// Free nodes of each memory server.
pub(super) struct Allocator {
    servers: Box<[Mutex<Server>]>,
}

impl Allocator {
    pub(super) fn new(servers: usize) -> Self {
        let unknown = || {
            Mutex::new(Server {
                free: Vec::new(),
                next_free: NODES_OFFSET,
                bytes: 0,
            })
        };
        Self {
            servers: (0..servers).map(|_| unknown()).collect(),
        }
    }

    /// A node on `server`. Cost: none, or one swap for 64 nodes.
    pub(super) fn take(&self, memory: &impl RemoteMemory, server: u16) -> Result<Reserved<'_>> {
        let what = "there is no such server";
        let found = self.servers.get(usize::from(server));
        let found = found.ok_or(Error::Refused { server, what })?;
        let mut list = found.lock();
        if list.free.is_empty() {
            list.refill(memory, server)?;
        }
        let at = list.free.pop().ok_or(Error::PoolFull { server })?;
        let allocator = self;
        Ok(Reserved { allocator, at })
    }

    /// Gives the rest of the last chunk of each server back to the pool, if nobody took another
    /// chunk since.
    pub(super) fn settle(&self, memory: &impl RemoteMemory) -> Result<()> {
        for (number, server) in self.servers.iter().enumerate() {
            let mut list = server.lock();
            let Some(lowest) = list.free.iter().map(|at| at.offset()).min() else {
                continue;
            };
            let is_tail = lowest + list.free.len() as u64 * NODE_BYTES == list.next_free;
            let word = Address::new(number as u16, NEXT_FREE_OFFSET);
            if is_tail && memory.cas(word, list.next_free, lowest)? == list.next_free {
                list.free.clear();
                list.next_free = lowest;
            }
        }
        Ok(())
    }

    /// A node that is free again.
    pub(super) fn give(&self, at: Address) {
        if let Some(server) = self.servers.get(usize::from(at.server())) {
            server.lock().free.push(at);
        }
    }
}

impl Server {
    fn refill(&mut self, memory: &impl RemoteMemory, server: u16) -> Result<()> {
        if self.bytes == 0 {
            let mut bytes = [0];
            memory.read(Address::new(server, BYTES_OFFSET), &mut bytes)?;
            self.bytes = bytes[0];
        }
        let word = Address::new(server, NEXT_FREE_OFFSET);
        for _ in 0..MAX_SWAPS {
            let start = self.next_free;
            let room = self.bytes.saturating_sub(start) / NODE_BYTES;
            let end = start + room.min(CHUNK_NODES) * NODE_BYTES;
            let was = memory.cas(word, start, end)?;
            let is_node = was >= NODES_OFFSET && was.is_multiple_of(NODE_BYTES);
            if !is_node || was > self.bytes {
                return Err(Error::corrupt(word, "the next free byte is no node"));
            }
            self.next_free = was;
            if was == start {
                self.next_free = end;
                let nodes = (end - start) / NODE_BYTES;
                let offsets = (0..nodes).rev().map(|i| start + i * NODE_BYTES);
                self.free
                    .extend(offsets.map(|offset| Address::new(server, offset)));
                return Ok(());
            }
        }
        Err(Error::Locked { address: word })
    }
}

/// A node that is to be linked into the tree. Dropped: it is free again.
pub(super) struct Reserved<'a> {
    allocator: &'a Allocator,
    at: Address,
}

impl Reserved<'_> {
    pub(super) fn at(&self) -> Address {
        self.at
    }

    /// The tree has it.
    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.allocator.give(self.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::{Latency, Model, Region};
    use std::{collections::BTreeSet, sync::Arc};

    #[test]
    fn nodes_are_given_once_until_the_region_is_full() {
        let region = Arc::new(Region::create(4096 + 100 * 4096).unwrap());
        let one = Model::new(vec![region], |_, _| Vec::new(), Latency::rdma());
        let two = one.another();
        let (first, second) = (Allocator::new(1), Allocator::new(1));
        let mut seen = BTreeSet::new();
        let full = loop {
            let (allocator, memory) = match seen.len() % 3 {
                0 => (&first, &one),
                _ => (&second, &two),
            };
            match allocator.take(memory, 0) {
                Ok(node) => {
                    assert!(seen.insert(node.at()), "{}", node.at());
                    node.keep();
                }
                Err(error) => break error,
            }
        };
        assert!(matches!(full, Error::PoolFull { server: 0 }));
        assert!(seen.len() > 400 - 64 && seen.len() <= 400, "{}", seen.len());
        first.give(Address::new(0, 4096));
        drop(first.take(&one, 0).unwrap());
        assert_eq!(first.take(&one, 0).unwrap().at(), Address::new(0, 4096));
        assert!(one.counts().swaps < 20);
    }
}
