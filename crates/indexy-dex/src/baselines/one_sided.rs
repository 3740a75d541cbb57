//! A B+ tree over one-sided verbs alone, shared by all: the paper's baseline (section 2.2).
//!
//! A read of a node is three reads: its version, the node, its version again. A write locks the
//! leaf by a swap, reads it, writes it, and unlocks it by a write. Splits and merges are not done:
//! an insert into a full leaf is refused.

use crate::{
    address::Address,
    error::{Error, Result},
    lock_word,
    node::{self, Change, Edit, Image, VERSION, Words},
    remote::{ROOT_OFFSET, RemoteMemory, read_versioned, take_lock},
};

/// One client. No tree may be open on the pool at the same time: it has private nodes.
pub struct OneSided<M> {
    memory: M,
    root: Address,
}

impl<M: RemoteMemory> OneSided<M> {
    /// Opens the tree of a pool.
    pub fn open(memory: M) -> Result<Self> {
        let at = Address::new(0, ROOT_OFFSET);
        let mut word = [0];
        memory.read(at, &mut word)?;
        let root = Address::from_word(word[0]);
        let root = root.filter(|root| root.offset() > 0);
        let root = root.ok_or(Error::corrupt(at, "the pool has no tree"))?;
        Ok(Self { memory, root })
    }

    /// The memory that the tree lies in.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The value of `key`. Cost: three reads a level.
    pub fn get(&self, key: u64) -> Result<Option<u64>> {
        let leaf = self.leaf(key)?;
        let found = node::find(&leaf, key).ok();
        Ok(found.map(|at| node::value(&leaf, at)))
    }

    /// Sets the value of `key`. Cost: three reads a level, a swap, a read and two writes.
    pub fn put(&self, key: u64, value: u64) -> Result<Option<u64>> {
        let at = node::address(&self.leaf(key)?);
        let at = at.ok_or(Error::corrupt(self.root, "a leaf has no address"))?;
        let version = take_lock(&self.memory, at, 0, |_, _| Ok(()))?;
        let done = self.put_locked(at, key, value, version);
        self.memory.write(at, &[lock_word::next(version)])?;
        done
    }

    fn put_locked(&self, at: Address, key: u64, value: u64, version: u64) -> Result<Option<u64>> {
        let mut leaf = Image::zero();
        self.memory.read(at, &mut leaf.0)?;
        node::check(&leaf, at)?;
        match node::apply(&mut leaf, key, Edit::Put(value)) {
            Change::Done { old, .. } => {
                leaf.set(VERSION, lock_word::locked(version, self.memory.session()));
                self.memory.write(at, &leaf.0)?;
                Ok(old)
            }
            Change::Full => {
                let what = "the leaf is full";
                let server = at.server();
                Err(Error::Refused { server, what })
            }
        }
    }

    fn leaf(&self, key: u64) -> Result<Image> {
        self.walk(key, 0)
    }

    /// The node of level 1 on the way to `key`.
    pub(super) fn parent_of_leaf(&self, key: u64) -> Result<Image> {
        self.walk(key, 1)
    }

    fn walk(&self, key: u64, level: u8) -> Result<Image> {
        let mut at = self.root;
        for _ in 0..=node::MAX_LEVEL {
            let image = self.read(at)?;
            if !node::covers(&image, key) {
                return Err(Error::corrupt(at, "the node is not what its parent says"));
            }
            if node::level(&image) == level {
                return Ok(image);
            }
            let child = Address::from_word(node::route(&image, key).word);
            at = child.ok_or(Error::corrupt(at, "a child has no address"))?;
        }
        Err(Error::corrupt(self.root, "the tree has too many levels"))
    }

    pub(super) fn read(&self, at: Address) -> Result<Image> {
        let mut image = Image::zero();
        read_versioned(&self.memory, at, &mut image.0, |_, _| Ok(()))?;
        node::check(&image, at)?;
        Ok(image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        BulkLoad, offload,
        remote::{Latency, Model, Region},
    };
    use std::{sync::Arc, thread};

    fn pool() -> Model {
        let region = Arc::new(Region::create(16 << 20).unwrap());
        let memory = Model::new(vec![region], offload::serve, Latency::rdma());
        let entries = (0..10_000).map(|key| (key, key));
        BulkLoad::default().load(&memory, entries).unwrap();
        memory
    }

    #[test]
    fn each_level_is_three_reads() {
        let tree = OneSided::open(pool()).unwrap();
        let before = tree.memory.counts();
        assert_eq!(tree.get(77).unwrap(), Some(77));
        let spent = tree.memory.counts() - before;
        assert_eq!((spent.reads, spent.verbs()), (9, 9));
        let before = tree.memory.counts();
        assert_eq!(tree.put(77, 1).unwrap(), Some(77));
        let spent = tree.memory.counts() - before;
        assert_eq!((spent.reads, spent.writes, spent.swaps), (10, 2, 1));
        assert_eq!(tree.get(77).unwrap(), Some(1));
    }

    #[test]
    fn clients_do_not_lose_writes_of_others() {
        let memory = pool();
        let clients = [0, 1, 2].map(|_| OneSided::open(memory.another()).unwrap());
        thread::scope(|scope| {
            for (i, client) in clients.iter().enumerate() {
                // All in one leaf.
                scope.spawn(move || {
                    for round in 0..2_000 {
                        client.put(i as u64, round).unwrap();
                        assert_eq!(client.get(i as u64).unwrap(), Some(round));
                    }
                });
            }
        });
        for key in 0..3 {
            assert_eq!(clients[0].get(key).unwrap(), Some(1_999));
        }
    }
}
