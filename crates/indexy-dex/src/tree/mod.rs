//! The tree of one compute server. Source: DEX sections 3 to 7.
//!
//! Threads: any number call [`Tree`]. An operation holds the gate for reading, descends by
//! optimistic latches from the root's frame, and starts again from there when it meets a conflict.
//! A hand-over holds the gate for writing while the ownership changes.
//!
//! # Invariants
//! - T1: an operation runs under one ownership, and only for keys that are owned: the gate.
//! - T2: a shared node (one whose fences are not owned whole) is never dirty in a cache. It is
//!   changed in the pool, under its remote lock, from what the pool has; the cache follows.
//! - T3: a stale copy of a shared node still leads to every private node of its owner, because an
//!   owner's private nodes are split, merged and freed by the owner alone, who follows in its own
//!   copy. A stale copy that does not is found by the child's fences, and read again from the root.
//! - T4: shared nodes are never merged or freed, so a stale address of one is alive.
//! - T5: after a hand-over the new owner has read every shared node over the range again.
//! - T6: an operation looks at its session's lease after it read the cache. A compute server that
//!   was replaced while it was stopped answers nothing.
//! - T7: hand-overs of one compute server come one after the other. Between the steps of a release
//!   the table still gives the range to its giver: who adopted the table then would serve it again.
//! - P1 to P5: what the pool has is a tree at every moment, whoever dies; `recover.rs`, `doubt.rs`.
//!
//! Invariants C1 to C4 are the cache's.

mod alloc;
mod attempt;
mod blocks;
mod bulk;
mod byte_tree;
mod clear;
mod descend;
mod doubt;
mod format;
mod hand_over;
mod merge;
mod missing;
mod options;
mod owned;
mod recover;
mod scan;
mod shared;
mod split;
mod superblock;
#[cfg(test)]
mod tests;
mod values;

pub use blocks::MAX_VALUE_BYTES;
pub use bulk::{BulkLoad, Loaded};
pub use byte_tree::ByteTree;
pub use options::Options;
pub use values::Values;

use crate::{
    address::Address,
    cache::{Cache, ROOT},
    error::{Error, Result},
    node::{Edit, Image, TreeKey, layout},
    offload::Policy,
    partition::{Load, Ownership, Table},
    remote::{Counts, RemoteMemory},
    wait::Wait,
};
use alloc::Allocator;
use attempt::{Job, Stop};
use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard};
use parking_lot::Mutex;
use std::{
    sync::{
        PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// How long an operation starts again and again before it gives up: longer than a verb may take.
const ATTEMPTS_LIMIT: Duration = Duration::from_secs(30);
/// One operation of so many leaves its key as a sample.
const SAMPLE_DIVISOR: u64 = 64;
/// Samples that are kept.
const MAX_SAMPLES: usize = 1024;

/// A compute server's tree over the pool: `u64` keys and values, or another kind of keys
/// ([`ByteTree`]).
///
/// The pool is memory: what it loses is lost. Changes stay in the cache until their page is
/// evicted or handed over, so the pool alone is not a consistent tree; see [`Tree::flush`].
pub struct Tree<M, K = u64> {
    memory: M,
    root: Address,
    cache: Cache<K>,
    gate: ShardedLock<Ownership>,
    /// T7. Taken before the gate.
    hand_over: Mutex<()>,
    nodes: Allocator,
    policy: Policy,
    options: Options,
    operations: AtomicU64,
    sampled_keys: Mutex<Vec<u64>>,
}

impl<M: RemoteMemory> Tree<M> {
    /// Opens the tree of a pool (see [`Tree::format`] and [`BulkLoad`]) as one of its owners.
    ///
    /// With a session (`connect_as` of the transport) the owner can be replaced when it is gone:
    /// [`Tree::take_over`]. Without one nothing keeps two processes from being the same owner.
    ///
    /// Cost: the table of owners and the root, 7 reads.
    pub fn open(memory: M, options: Options) -> Result<Self> {
        Self::open_keys(memory, options)
    }
}

impl<M: RemoteMemory, K: TreeKey> Tree<M, K> {
    fn open_keys(memory: M, options: Options) -> Result<Self> {
        options.check()?;
        let session = memory.session();
        if session != 0 && memory.session_of(options.owner)? != session {
            let owner = options.owner;
            let what = format!("the session is not owner {owner}'s, or was replaced");
            return Err(Error::Options(what));
        }
        let own = Ownership::of(&Table::load(&memory)?, options.owner);
        let root = superblock::root(&memory)?;
        let tree = Self {
            cache: Cache::new(options.cache_pages, options.seed),
            gate: ShardedLock::new(own.clone()),
            hand_over: Mutex::new(()),
            nodes: Allocator::new(memory.servers()),
            policy: Policy::new(options.offloading),
            operations: AtomicU64::new(0),
            sampled_keys: Mutex::default(),
            memory,
            root,
            options,
        };
        let image = tree.unlocking(|| tree.read_root())?;
        tree.cache.start(&image)?;
        if crate::node::level(&image) == 0 && !own.contains(0, u64::MAX) {
            let what = "a tree of one leaf has one owner".into();
            return Err(Error::Options(what));
        }
        Ok(tree)
    }

    /// The value of `key`.
    ///
    /// Cost: no verb if the path is cached; otherwise one read for each private node that is
    /// missing and three for each shared one, or one call.
    pub fn get(&self, key: K) -> Result<Option<K::Value>> {
        self.edit(key, Edit::Get)
    }

    /// Sets the value of `key`; returns the one before.
    ///
    /// Cost: as for `get`. A leaf that is not admitted to the cache is written back at once.
    pub fn put(&self, key: K, value: K::Value) -> Result<Option<K::Value>> {
        self.edit(key, Edit::Put(value))
    }

    /// Removes `key`; returns its value.
    ///
    /// Cost: as for `put`. A leaf that becomes sparse is merged with a neighbour, which may have
    /// to be read.
    pub fn remove(&self, key: K) -> Result<Option<K::Value>> {
        let own = self.gate_read();
        let answer = self.run(&own, key, &mut Job::Edit(Edit::Remove))?;
        if answer.is_sparse {
            self.tidy(&own, key);
        }
        Ok(answer.old)
    }

    #[inline]
    fn edit(&self, key: K, edit: Edit<K::Value>) -> Result<Option<K::Value>> {
        let own = self.gate_read();
        Ok(self.run(&own, key, &mut Job::Edit(edit))?.old)
    }

    /// Attempts until one succeeds.
    fn run(
        &self,
        own: &Ownership,
        key: K,
        job: &mut Job<'_, K>,
    ) -> Result<attempt::Answer<K::Value>> {
        own.check(key.prefix())?;
        self.note(key.prefix());
        let mut wait = Wait::new(ATTEMPTS_LIMIT);
        loop {
            let mut done = self.attempt(own, key, job);
            let follow = match done {
                Err(Stop::Refresh) => self.refresh(own, key),
                Err(Stop::Grow) => self.grow_shared(own, key),
                _ => Ok(()),
            };
            if let Err(error) = follow {
                done = Err(error.into());
            }
            match self.recovered(own, key, done) {
                Ok(answer) => {
                    // T6: last of all.
                    self.memory.check_session()?;
                    return Ok(answer);
                }
                Err(Stop::Failed(error)) => return Err(error),
                Err(_) => {}
            }
            if !wait.again() {
                let attempts = wait.attempts();
                return Err(Error::NoProgress { attempts });
            }
        }
    }

    /// Counts the operation, and keeps some keys for the controller.
    fn note(&self, key: u64) {
        if !self.options.samples_load {
            return;
        }
        let operation = self.operations.fetch_add(1, Relaxed);
        if operation.is_multiple_of(SAMPLE_DIVISOR)
            && let Some(mut keys) = self.sampled_keys.try_lock()
        {
            if keys.len() < MAX_SAMPLES {
                keys.push(key);
            } else {
                let at = self.cache.random().below(MAX_SAMPLES);
                keys[at] = key;
            }
        }
    }

    /// What the controller wants to know, since the last call. Without
    /// [`Options::samples_load`]: nothing.
    pub fn take_load(&self) -> Load {
        Load {
            owner: self.options.owner,
            operations: self.operations.swap(0, Relaxed),
            sampled_keys: std::mem::take(&mut *self.sampled_keys.lock()),
        }
    }

    /// Verbs and bytes so far.
    pub fn counts(&self) -> Counts {
        self.memory.counts()
    }

    /// The memory that the tree lies in.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The ranges that are owned, ends included, and their epoch.
    pub fn ownership(&self) -> Ownership {
        self.gate_read().clone()
    }

    /// Writes every dirty page to the pool. What is written while it runs may be missed.
    ///
    /// Cost: one write a dirty page.
    pub fn flush(&self) -> Result<()> {
        for frame in 0..self.cache.len() {
            self.flush_frame(frame)?;
        }
        Ok(())
    }

    fn flush_frame(&self, frame: usize) -> Result<()> {
        let this = self.cache.frame(frame);
        if this.is_dirty() {
            let latched = this.latch.lock();
            if this.is_dirty() {
                self.cache.write_back(frame, &self.memory)?;
            }
            drop(latched);
        }
        Ok(())
    }

    fn gate_read(&self) -> ShardedLockReadGuard<'_, Ownership> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn gate_write(&self) -> ShardedLockWriteGuard<'_, Ownership> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The root, if it is of a tree of this kind of keys.
    fn read_root(&self) -> Result<Image> {
        let root = self.read_shared(self.root);
        if let Err(Error::Corrupt { .. }) = root {
            let mut image = Image::zero();
            self.memory.read(self.root, &mut image.0)?;
            if layout(&image) != K::LAYOUT {
                let what = "the pool's tree has another kind of keys".into();
                return Err(Error::Options(what));
            }
        }
        root
    }

    /// The address of the node in a frame.
    fn address_of(&self, frame: usize) -> Result<Address> {
        let misplaced = || Error::corrupt(Address::new(0, 0), "a cached node has no address");
        crate::node::address(&self.cache.frame(frame).node()).ok_or_else(misplaced)
    }
}

impl<M, K> std::fmt::Debug for Tree<M, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

const _: () = assert!(ROOT == 0);
