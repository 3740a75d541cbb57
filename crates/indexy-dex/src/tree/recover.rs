//! Ranges of a compute server that is gone go to another one, and its locks end.
//!
//! 1. The session of the one that is gone is fenced at every memory server (F1): from here on
//!    nothing of it arrives. That takes until its lease lapsed.
//! 2. Under the lock of the table of owners: the shared nodes that it left locked are completed
//!    (P3) and unlocked, and the table of the next epoch gives its ranges to the new owner.
//! 3. The new owner adopts the table, as after a hand-over.
//!
//! # Invariants
//! - P1, P2 (`split.rs`, `merge.rs`): every node that a parent in the pool names is there, at its
//!   level, and covers at least what the parent says. It may cover more; then it is cut down when
//!   it is read (`missing.rs`).
//! - P3: a shared node that covers more than its parent says is locked: a shared split writes the
//!   new node, the parent, and then the old one, and unlocks each after that. So whoever ends the
//!   lock of a fenced session cuts the node down first, under the parent's lock.
//! - P4: the owner's number has no newer session when the table is written: one that came back
//!   reads the table after this change of it.
//!
//! What is lost with a compute server: changes of leaves that were not written back since. The
//! pool has each leaf as it was last written, by eviction, [`Tree::flush`] or a hand-over.
//! Its list of free nodes is lost too: that memory is not used again.
//!
//! Ranges that were on their way belong to whom the table names. If the giver died before it wrote
//! the table, they are still the giver's; after that they are the taker's, who may have died too.

use super::{
    Tree,
    attempt::{Attempt, Stop},
    owned::owns,
    shared::RemoteLock,
};
use crate::{
    address::Address,
    error::{Error, Result},
    node::{self, Image, TreeKey},
    partition::{Ownership, Table, TableLock},
    remote::RemoteMemory,
};
use std::collections::BTreeSet;

impl<M: RemoteMemory, K: TreeKey> Tree<M, K> {
    /// Takes all ranges of compute server `gone`, whose lease lapsed; returns the new table.
    ///
    /// [`Error::Alive`]: its lease runs, or it is back with a new session. What `gone` changed
    /// and did not write to the pool is lost; [`Tree::flush`] writes.
    ///
    /// Cost: about ten verbs, and four for each shared node.
    pub fn take_over(&self, gone: u16) -> Result<Table> {
        let own = self.options.owner;
        if gone == own {
            return Err(Error::Options(
                "a compute server cannot replace itself".into(),
            ));
        }
        let session = self.memory.session_of(gone)?;
        if session != 0 {
            self.memory.fence(session)?;
        }
        let lock = TableLock::take(&self.memory)?;
        // P4.
        if self.memory.session_of(gone)? != session {
            return Err(Error::Alive {
                who: format!("owner {gone}"),
                for_ms: 0,
            });
        }
        let table = lock.read()?;
        self.complete(&table)?;
        if let Some(next) = table.all_moved(gone, own)? {
            lock.write(&next)?;
        }
        lock.end()?;
        self.adopt_table()
    }

    /// Ends the locks that a fenced compute server left.
    pub(super) fn end_left_locks(&self) -> Result<()> {
        let lock = TableLock::take(&self.memory)?;
        self.complete(&lock.read()?)?;
        lock.end()
    }

    /// P3: visits the root and every shared node below it. The caller holds the table's lock, so
    /// shared nodes stay shared.
    fn complete(&self, table: &Table) -> Result<()> {
        let owners: BTreeSet<u16> = table.segments().map(|segment| segment.2).collect();
        let owners: Vec<_> = owners
            .into_iter()
            .map(|owner| Ownership::of(table, owner))
            .collect();
        let is_private = |low, high| owners.iter().any(|own| owns(own, low, high));
        // The root in any case: it may have been shared when it was locked.
        let lock = RemoteLock::take_over(&self.memory, self.root)?;
        let image = lock.read::<K>()?;
        self.complete_below(&lock, &image, &is_private)
    }

    fn complete_below(
        &self,
        _above: &RemoteLock<'_, M>,
        parent: &Image,
        is_private: &impl Fn(K, K) -> bool,
    ) -> Result<()> {
        if node::level(parent) == 0 {
            return Ok(());
        }
        for slot in 0..=K::count(parent) {
            let route = K::at_slot(parent, slot);
            if is_private(route.low, route.high) {
                continue;
            }
            let misplaced = || Error::corrupt(Address::new(0, 0), "a child has no address");
            let at = Address::from_word(route.word).ok_or_else(misplaced)?;
            let lock = RemoteLock::take_over(&self.memory, at)?;
            let mut image = lock.read::<K>()?;
            if !K::covers(&image, route.low) || !K::covers(&image, route.high) {
                return Err(Error::corrupt(at, "the node is not what its parent says"));
            }
            if K::trim(&mut image, route.low, route.high) {
                lock.write(&mut image)?;
            }
            self.complete_below(&lock, &image, is_private)?;
        }
        Ok(())
    }

    /// Does `work`, again if it met the lock of a compute server that is gone.
    pub(super) fn unlocking<T>(&self, work: impl Fn() -> Result<T>) -> Result<T> {
        match work() {
            Err(Error::LeftLocked { .. }) => {
                self.end_left_locks()?;
                work()
            }
            done => done,
        }
    }

    /// An attempt on the way to `key` met a lock whose holder is fenced. The node may be on the
    /// way in a stale copy alone, and its holder's by what the pool says: the way is read again.
    pub(super) fn recovered<T>(&self, own: &Ownership, key: K, attempt: Attempt<T>) -> Attempt<T> {
        match attempt {
            Err(Stop::Failed(Error::LeftLocked { .. })) => {
                self.end_left_locks()?;
                match self.refresh(own, key) {
                    Ok(()) | Err(Error::LeftLocked { .. }) => Err(Stop::Restart),
                    Err(error) => Err(error.into()),
                }
            }
            other => other,
        }
    }
}
