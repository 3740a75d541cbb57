//! After Sherman: a B+ tree shared by all compute servers. Inner nodes are cached, leaves never.
//!
//! - A read looks the leaf up in the cached node above it and reads it by version, node, version.
//!   A leaf that does not cover the key says that the cached node is stale.
//! - A write takes a word of the memory server's lock table by a swap and reads the leaf. An update
//!   writes the entry's value alone: 8 bytes arrive whole, which stands for Sherman's versions of
//!   entries. An insert changes the leaf's version before and after. The lock ends by a write.
//!
//! Nodes are as the tree's. Splits and merges are not done: an insert into a full leaf is refused.
//! (Sherman has more locks in a table, and queues its own threads before them.)

use super::one_sided::OneSided;
use crate::{
    address::Address,
    error::{Error, Result},
    lock_word,
    node::{self, Change, Edit, Image, VERSION, Words},
    random::Random,
    remote::{LOCKS, LOCKS_OFFSET, RemoteMemory},
    wait::{LOCK_LIMIT, Wait},
};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// How often a stale cached node may be read again.
const MAX_STALE: u32 = 100;

/// One client. No [`Tree`](crate::Tree) may be open on the pool: it has private nodes.
pub struct Sherman<M> {
    tree: OneSided<M>,
    /// Nodes of level 1 by their lowest keys.
    cached: Mutex<BTreeMap<u64, Image>>,
    pages: usize,
    random: Random,
}

impl<M: RemoteMemory> Sherman<M> {
    /// Opens the tree of a pool, with a cache of so many nodes of level 1. The levels above them
    /// are a fortieth of these: they are not counted.
    pub fn open(memory: M, pages: usize) -> Result<Self> {
        Ok(Self {
            tree: OneSided::open(memory)?,
            cached: Mutex::default(),
            pages: pages.max(1),
            random: Random::new(1),
        })
    }

    /// The memory that the tree lies in.
    pub fn memory(&self) -> &M {
        self.tree.memory()
    }

    /// The value of `key`. Cost: three reads; three more a level if no node above is cached.
    pub fn get(&self, key: u64) -> Result<Option<u64>> {
        let (_, leaf) = self.leaf(key, |at| self.tree.read(at))?;
        let found = node::find(&leaf, key).ok();
        Ok(found.map(|at| node::value(&leaf, at)))
    }

    /// Sets the value of `key`. Cost: a swap, a read, two writes; an insert has two writes more.
    pub fn put(&self, key: u64, value: u64) -> Result<Option<u64>> {
        for _ in 0..MAX_STALE {
            let at = self.leaf_address(key)?;
            let lock = self.lock(at)?;
            let done = self.put_locked(at, key, value);
            self.memory().write(lock, &[0])?;
            match done? {
                Some(old) => return Ok(old),
                None => self.forget(key),
            }
        }
        Err(Error::NoProgress {
            attempts: MAX_STALE,
        })
    }

    /// Up to `most` entries from `from` on. Cost: three reads a leaf, one after the other.
    pub fn scan(&self, from: u64, most: usize) -> Result<Vec<(u64, u64)>> {
        let mut found = Vec::new();
        let mut next = from;
        loop {
            let (_, leaf) = self.leaf(next, |at| self.tree.read(at))?;
            found.extend(node::entries(&leaf, next).take(most - found.len()));
            match node::high(&leaf).checked_add(1) {
                Some(after) if found.len() < most => next = after,
                _ => return Ok(found),
            }
        }
    }

    /// `None`: the leaf is another key's.
    fn put_locked(&self, at: Address, key: u64, value: u64) -> Result<Option<Option<u64>>> {
        let mut leaf = Image::zero();
        self.memory().read(at, &mut leaf.0)?;
        node::check(&leaf, at)?;
        if node::level(&leaf) > 0 || !node::covers(&leaf, key) {
            return Ok(None);
        }
        if let Ok(slot) = node::find(&leaf, key) {
            let old = node::value(&leaf, slot);
            let place = at.plus(8 * node::value_word(slot) as u64);
            self.memory().write(place, &[value])?;
            return Ok(Some(Some(old)));
        }
        match node::apply(&mut leaf, key, Edit::Put(value)) {
            Change::Done { old, .. } => {
                let version = leaf.get(VERSION);
                let locked = lock_word::locked(version, self.memory().session());
                leaf.set(VERSION, locked);
                self.memory().write(at, &[locked])?;
                self.memory().write(at, &leaf.0)?;
                self.memory().write(at, &[lock_word::next(version)])?;
                Ok(Some(old))
            }
            Change::Full => {
                let what = "the leaf is full";
                let server = at.server();
                Err(Error::Refused { server, what })
            }
        }
    }

    /// The lock's place.
    fn lock(&self, leaf: Address) -> Result<Address> {
        let number = leaf.offset() / node::NODE_BYTES % LOCKS;
        let at = Address::new(leaf.server(), LOCKS_OFFSET + 8 * number);
        let locked = lock_word::locked(0, self.memory().session());
        let mut wait = Wait::new(LOCK_LIMIT);
        while self.memory().cas(at, 0, locked)? != 0 {
            if !wait.again() {
                return Err(Error::Locked { address: at });
            }
        }
        Ok(at)
    }

    /// Reads the leaf of `key`, whose address may have to be found again.
    fn leaf(&self, key: u64, read: impl Fn(Address) -> Result<Image>) -> Result<(Address, Image)> {
        for _ in 0..MAX_STALE {
            let at = self.leaf_address(key)?;
            let leaf = read(at)?;
            if node::level(&leaf) == 0 && node::covers(&leaf, key) {
                return Ok((at, leaf));
            }
            self.forget(key);
        }
        Err(Error::NoProgress {
            attempts: MAX_STALE,
        })
    }

    fn leaf_address(&self, key: u64) -> Result<Address> {
        let address = |node: &Image| Address::from_word(node::route(node, key).word);
        let strange = || Error::corrupt(Address::new(0, 0), "a child has no address");
        let mut cached = self.cached.lock();
        let below = cached.range(..=key).next_back();
        if let Some((_, node)) = below.filter(|(_, node)| node::covers(*node, key)) {
            return address(node).ok_or_else(strange);
        }
        drop(cached);
        let node = self.tree.parent_of_leaf(key)?;
        let at = address(&node).ok_or_else(strange)?;
        cached = self.cached.lock();
        if cached.len() >= self.pages {
            let from = cached.keys().next_back().copied().unwrap_or(0);
            let random = self.random.word() % from.max(1);
            let victim = cached.range(random..).next().map(|(low, _)| *low);
            victim.and_then(|low| cached.remove(&low));
        }
        cached.insert(node::low(&node), node);
        Ok(at)
    }

    fn forget(&self, key: u64) {
        let mut cached = self.cached.lock();
        let low = cached.range(..=key).next_back().map(|(low, _)| *low);
        low.and_then(|low| cached.remove(&low));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        BulkLoad, offload,
        remote::{Counts, Latency, Model, Region},
    };
    use std::{sync::Arc, thread};

    fn pool() -> Model {
        let region = Arc::new(Region::create(16 << 20).unwrap());
        let memory = Model::new(vec![region], offload::serve, Latency::rdma());
        let entries = (0..10_000).map(|key| (2 * key, key));
        BulkLoad::default().load(&memory, entries).unwrap();
        memory
    }

    #[test]
    fn a_read_is_three_reads_and_an_update_four_verbs() {
        let tree = Sherman::open(pool(), 1_000).unwrap();
        tree.get(77).unwrap();
        let cost = |operation: &dyn Fn()| {
            let before = tree.memory().counts();
            operation();
            tree.memory().counts() - before
        };
        let get = cost(&|| assert_eq!(tree.get(100).unwrap(), Some(50)));
        assert_eq!((get.reads, get.verbs(), get.bytes()), (3, 3, 1_040));
        let update = cost(&|| assert_eq!(tree.put(100, 1).unwrap(), Some(50)));
        let expected = Counts {
            reads: 1,
            writes: 2,
            swaps: 1,
            read_bytes: 1_024,
            written_bytes: 16,
            ..Counts::default()
        };
        assert_eq!(update, expected);
        let insert = cost(&|| assert_eq!(tree.put(101, 2).unwrap(), None));
        assert_eq!((insert.reads, insert.writes, insert.swaps), (1, 4, 1));
        assert_eq!(
            (tree.get(100).unwrap(), tree.get(101).unwrap()),
            (Some(1), Some(2))
        );
        assert_eq!(tree.scan(99, 3).unwrap(), [(100, 1), (101, 2), (102, 51)]);
    }

    #[test]
    fn a_small_cache_and_a_stale_one_are_right() {
        let memory = pool();
        let tree = Sherman::open(memory.another(), 2).unwrap();
        for key in (0..10_000).rev() {
            assert_eq!(tree.get(2 * key).unwrap(), Some(key));
        }
        // Another client's tree moves leaves.
        let other = crate::Tree::open(memory, crate::Options::new(0, 100)).unwrap();
        for key in 0..2_000 {
            other.put(2 * key + 1, key).unwrap();
        }
        other.flush().unwrap();
        for key in 0..2_000 {
            assert_eq!(tree.get(2 * key + 1).unwrap(), Some(key));
        }
    }

    #[test]
    fn clients_do_not_lose_writes_of_others() {
        let memory = pool();
        let clients = [0, 1, 2].map(|_| Sherman::open(memory.another(), 100).unwrap());
        thread::scope(|scope| {
            for (i, client) in clients.iter().enumerate() {
                // All in one leaf; the first write of each is an insert.
                scope.spawn(move || {
                    let key = 2 * i as u64 + 1;
                    for round in 0..2_000 {
                        client.put(key, round).unwrap();
                        assert_eq!(client.get(key).unwrap(), Some(round));
                    }
                });
            }
        });
        for i in 0..3 {
            assert_eq!(clients[0].get(2 * i + 1).unwrap(), Some(1_999));
        }
    }
}
