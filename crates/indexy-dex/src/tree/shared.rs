//! Shared nodes: read by version, changed under a remote lock, read again when they are stale.
//! Source: DEX section 4.
//!
//! A change is a swap (lock), a read, a write of the node with its version still odd, and a write
//! of the next even version. A reader compares the version before and after.
//!
//! Remote locks are taken from the root downwards, and held by one thread for a few verbs. A
//! compute server that dies with one leaves it locked; `recover.rs` ends it.

use super::{
    Tree,
    attempt::{Attempt, Stop},
    owned::owns,
    split::server_of_children,
};
use crate::{
    address::Address,
    cache::{Latched, Place, ROOT, frame_of},
    error::{Error, Result},
    lock_word,
    node::{self, Image, MAX_LEVEL, Route, SWIZZLED, TreeKey, VERSION},
    partition::Ownership,
    remote::{RemoteMemory, read_versioned, swap_lock, take_lock, wait_for_holder},
    wait::{LOCK_LIMIT, Wait},
};
use std::{cell::Cell, collections::HashMap};

/// The child at `address` covers the keys of `route` in `parent`, no more and no fewer.
fn covers_in<K: TreeKey>(parent: &Image, address: u64, route: &Route<K>) -> bool {
    let slot = K::slot_of(parent, address);
    let found = slot.map(|slot| K::at_slot(parent, slot));
    found.is_some_and(|found| (found.low, found.high) == (route.low, route.high))
}

/// A shared node that this thread alone changes. Dropped: unlocked with a new version, for what
/// the pool has may have changed.
pub(super) struct RemoteLock<'a, M: RemoteMemory> {
    memory: &'a M,
    at: Address,
    version: u64,
    /// A write failed: nobody knows what the pool has.
    in_doubt: Cell<bool>,
}

/// L1 and P3: the lock of a compute server that is gone is ended by `recover.rs`, which first
/// completes what it may have left half done.
fn left_locked<M>(at: Address) -> impl Fn(&M, u64) -> Result<()> {
    move |_, _| Err(Error::LeftLocked { address: at })
}

impl<'a, M: RemoteMemory> RemoteLock<'a, M> {
    /// `version`: a guess that saves a swap.
    pub(super) fn take(memory: &'a M, at: Address, version: u64) -> Result<Self> {
        let version = take_lock(memory, at, version, left_locked(at))?;
        Ok(Self::held(memory, at, version))
    }

    /// As `take`; the lock of a compute server that is gone becomes ours.
    pub(super) fn take_over(memory: &'a M, at: Address) -> Result<Self> {
        let mut expected = 0;
        let mut wait = Wait::new(LOCK_LIMIT);
        let fenced = Cell::new(None);
        loop {
            let version = lock_word::version(expected);
            let was = swap_lock(memory, at, expected, version)?;
            if was == expected {
                return Ok(Self::held(memory, at, version));
            }
            expected = match fenced.take() {
                Some(word) if word == was => was,
                _ => lock_word::version(was),
            };
            let end = |_: &M, word| {
                fenced.set(Some(word));
                Ok(())
            };
            if lock_word::is_locked(was) && expected != was {
                wait_for_holder(memory, at, was, &mut wait, end)?;
                expected = fenced.get().unwrap_or(expected);
            }
        }
    }

    fn held(memory: &'a M, at: Address, version: u64) -> Self {
        let in_doubt = Cell::new(false);
        Self {
            memory,
            at,
            version,
            in_doubt,
        }
    }

    pub(super) fn read<K: TreeKey>(&self) -> Result<Image> {
        let mut image = Image::zero();
        self.memory.read(self.at, &mut image.0)?;
        K::check(&image, self.at)?;
        Ok(image)
    }

    /// Writes the node; readers wait until the lock is dropped. The image gets the version that
    /// the node then has.
    pub(super) fn write(&self, image: &mut Image) -> Result<()> {
        image.0[VERSION] = lock_word::locked(self.version, self.memory.session());
        let done = self.memory.write(self.at, &image.0);
        if done.is_err() {
            self.in_doubt.set(true);
        }
        done?;
        image.0[VERSION] = lock_word::next(self.version);
        Ok(())
    }
}

impl<M: RemoteMemory> Drop for RemoteLock<'_, M> {
    fn drop(&mut self) {
        let next = lock_word::next(self.version);
        if self.in_doubt.get() || self.memory.write(self.at, &[next]).is_err() {
            // It stays locked. Others complete it when our lease lapsed.
            self.memory.abandon();
        }
    }
}

impl<M: RemoteMemory, K: TreeKey> Tree<M, K> {
    /// Reads a shared node as one state: three reads, more while somebody changes it.
    pub(super) fn read_shared(&self, at: Address) -> Result<Image> {
        let mut image = Image::zero();
        read_versioned(&self.memory, at, &mut image.0, left_locked(at))?;
        K::check(&image, at)?;
        Ok(image)
    }

    /// Changes the shared node in `frame`, whose latch is held: in the pool, then here (T2).
    pub(super) fn update_shared(
        &self,
        frame: usize,
        latched: &mut Latched<'_>,
        change: impl FnOnce(&mut Image) -> Attempt<()>,
    ) -> Attempt<()> {
        let cached = Image::of(&self.cache.frame(frame).node());
        let at = self.address_of(frame)?;
        let lock = RemoteLock::take(&self.memory, at, cached.0[VERSION])?;
        let mut fresh = lock.read::<K>()?;
        let fences = |image: &Image| (K::low(image), K::high(image), node::level(image));
        if fences(&fresh) != fences(&cached) || self.has_moved(frame, &fresh)? {
            return Err(Stop::Refresh);
        }
        change(&mut fresh)?;
        lock.write(&mut fresh)?;
        drop(lock);
        latched.changes();
        self.adopt(frame, fresh)?;
        Ok(())
    }

    /// Hot children of `frame` by their addresses. The caller holds its latch.
    fn hot_by_address(&self, frame: usize) -> Result<HashMap<u64, usize>> {
        let children = self.cache.frame(frame).hot_children::<K>();
        let by_address = |child| Ok((self.address_of(child)?.word(), child));
        children.map(by_address).collect()
    }

    /// A child of `frame` that is hot or marked covers other keys in `fresh`, or is none there.
    fn has_moved(&self, frame: usize, fresh: &Image) -> Result<bool> {
        let node = self.cache.frame(frame).node();
        for slot in 0..=K::count(&node) {
            let route = K::at_slot(&node, slot);
            let is_hot = route.word & SWIZZLED != 0;
            let address = match is_hot {
                true => self.address_of(frame_of(route.word))?.word(),
                false => route.word,
            };
            if (is_hot || self.is_marked(address)) && !covers_in(fresh, address, &route) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A thread works on the node. A mark is set under the parent's latch.
    fn is_marked(&self, address: u64) -> bool {
        let at = Address::from_word(address);
        at.and_then(|at| self.cache.mapping().get(at)) == Some(Place::Io)
    }

    /// Replaces a shared node by what the pool has; hot children stay hot. The caller holds the
    /// latch, announced the change and left no orphans.
    fn adopt(&self, frame: usize, mut fresh: Image) -> Result<()> {
        let hot = self.hot_by_address(frame)?;
        if node::level(&fresh) > 0 {
            for slot in 0..=K::count(&fresh) {
                if let Some(child) = hot.get(&K::child(&fresh, slot)) {
                    K::set_child(&mut fresh, slot, SWIZZLED | *child as u64);
                }
            }
        }
        self.cache.frame(frame).fill(&fresh);
        Ok(())
    }

    /// Reads the shared nodes on the way to `key` again, where the pool's version differs.
    pub(super) fn refresh(&self, own: &Ownership, key: K) -> Result<()> {
        let mut at = ROOT;
        let mut latched = self.cache.frame(ROOT).latch.lock();
        loop {
            let node = self.cache.frame(at).node();
            let is_private = owns(own, K::low(&node), K::high(&node));
            if is_private || !self.renew(at, &mut latched, false)? {
                return Ok(());
            }
            if node::level(&node) == 0 || !K::covers(&node, key) {
                return Ok(());
            }
            let word = K::route(&node, key).word;
            if word & SWIZZLED == 0 {
                return Ok(());
            }
            at = frame_of(word);
            // From above, as the cache's order of latches has it.
            latched = self.cache.frame(at).latch.lock();
        }
    }

    /// Reads the shared node in `frame`, whose latch is held, if the pool's version differs or
    /// `force` says so. Children that moved leave the cache. `false`: a thread works on one of
    /// them or below (C3), and the node is as stale as before.
    pub(super) fn renew(
        &self,
        frame: usize,
        latched: &mut Latched<'_>,
        force: bool,
    ) -> Result<bool> {
        let this = self.cache.frame(frame);
        debug_assert!(!this.is_dirty(), "T2");
        let at = self.address_of(frame)?;
        let node = this.node();
        if !force {
            let mut version = [0];
            self.memory.read(at, &mut version)?;
            if version[0] == node::Words::get(&node, VERSION) {
                return Ok(true);
            }
        }
        let fresh = self.read_shared(at)?;
        for slot in 0..=K::count(&node) {
            let route = K::at_slot(&node, slot);
            if node::level(&node) == 0 {
                continue;
            }
            if route.word & SWIZZLED == 0 {
                if self.is_marked(route.word) && !covers_in(&fresh, route.word, &route) {
                    return Ok(false);
                }
                continue;
            }
            let child = frame_of(route.word);
            let address = self.address_of(child)?.word();
            let child = self.cache.frame(child).node();
            // A child's fences change under its parent's latch, or not at all here.
            let (low, high) = (K::low(&child), K::high(&child));
            if covers_in(&fresh, address, &Route { low, high, ..route }) {
                continue;
            }
            if !self.cache.drop_child(frame, latched, slot, &self.memory)? {
                return Ok(false);
            }
        }
        latched.changes();
        self.adopt(frame, fresh)?;
        Ok(true)
    }

    /// Splits the highest full shared node on the way to `key` in the pool, and reads the way
    /// again.
    pub(super) fn grow_shared(&self, own: &Ownership, key: K) -> Result<()> {
        self.split_shared(own, key)?;
        self.refresh(own, key)
    }

    fn split_shared(&self, own: &Ownership, key: K) -> Result<()> {
        let root_at = self.address_of(ROOT)?;
        let mut lock = RemoteLock::take(&self.memory, root_at, 0)?;
        let mut image = lock.read::<K>()?;
        if K::is_full(&image) {
            return self.split_shared_root(&lock, image);
        }
        while node::level(&image) > 0 {
            let route = K::route(&image, key);
            let child_at = Address::from_word(route.word);
            let child_at = child_at.ok_or(Error::corrupt(lock.at, "a child has no address"))?;
            if owns(own, route.low, route.high) {
                return Ok(());
            }
            let below = RemoteLock::take(&self.memory, child_at, 0)?;
            let mut child = below.read::<K>()?;
            if K::is_full(&child) && node::level(&child) > 0 {
                let right_at = self.nodes.take(&self.memory, child_at.server())?;
                let (separator, right) = K::split(&mut child, right_at.at());
                self.memory.write(right_at.at(), &right.0)?;
                K::insert_child(&mut image, separator, right_at.at().word());
                // P3: the child is locked until its upper half is gone from it. From here on the
                // parent may name the new node.
                right_at.keep();
                if let Err(error) = lock.write(&mut image) {
                    below.in_doubt.set(true);
                    return Err(error);
                }
                return below.write(&mut child);
            }
            (lock, image) = (below, child);
        }
        Ok(())
    }

    /// The shared root gets two new children in the pool; its address stays.
    fn split_shared_root(&self, lock: &RemoteLock<'_, M>, root: Image) -> Result<()> {
        let (low, high, level) = (K::low(&root), K::high(&root), node::level(&root));
        if level == 0 || level >= MAX_LEVEL {
            return Err(Error::corrupt(lock.at, "the root has an impossible level"));
        }
        let server = server_of_children::<K>(&root).unwrap_or(lock.at.server());
        let left_at = self.nodes.take(&self.memory, server)?;
        let right_at = self.nodes.take(&self.memory, server)?;
        let mut left = root;
        node::reset(&mut left, left_at.at());
        let (separator, right) = K::split(&mut left, right_at.at());
        self.memory.write(left_at.at(), &left.0)?;
        self.memory.write(right_at.at(), &right.0)?;
        let words = [left_at.at().word(), right_at.at().word()];
        let children = [(low, words[0]), (separator, words[1])];
        let mut fresh = K::new_inner(lock.at, level + 1, &children, high);
        left_at.keep();
        right_at.keep();
        lock.write(&mut fresh)
    }
}
